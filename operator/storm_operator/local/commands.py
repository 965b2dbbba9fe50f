"""`storm-operator local up | down | status`: thin; the work is in `cluster`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from storm_operator.cli_output import Form, Output, written_out
from storm_operator.lazy_commands import PLAIN, PlainCommand, PlainGroup
from storm_operator.local.build import plugin_jar as build_plugin_jar
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.lifecycle import take_down
from storm_operator.local.paths import repository_root
from storm_operator.local.prerequisites import missing_prerequisites
from storm_operator.local.spec import LocalClusterError, LocalClusterSpec, UnfitOption
from storm_operator.local.state_file import state_file
from storm_operator.local.status import cluster_status

app = typer.Typer(
    help="A real Storm cluster on this machine.",
    cls=PlainGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=PLAIN,
)
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
Name = Annotated[str, typer.Option(help="The cluster's name.")]


@app.command(cls=PlainCommand)
def up(
    name: Name = "local",
    machines: Annotated[int, typer.Option(help="How many machines, each with one supervisor.")] = 4,
    slots: Annotated[int, typer.Option(help="Worker slots of each machine.")] = 4,
    capacity_millicores: Annotated[float, typer.Option(help="CPU of each machine.")] = 1000.0,
    delay_ms: Annotated[float, typer.Option(help="One-way delay between two machines.")] = 2.0,
    subnet: Annotated[str, typer.Option(help="A free /24.")] = "10.77.0.0/24",
    agents: Annotated[bool, typer.Option(help="An agent beside each supervisor.")] = True,
    plugin: Annotated[bool, typer.Option(help="Storm with the operator's scheduler and metrics.")] = True,
    plugin_jar: Annotated[
        Path | None, typer.Option(help="The plugin's jar; without, it is built from the sources.")
    ] = None,
    fallback: Annotated[
        str, typer.Option(help="Scheduler for what no plan places: default, resource-aware, or an IScheduler class.")
    ] = "default",
    exact_metrics: Annotated[bool, typer.Option(help="Count every tuple instead of sampling.")] = False,
    fast_start: Annotated[bool, typer.Option(help="Workers with C1 alone: start sooner, run slower.")] = False,
) -> None:
    """Bring the cluster up and wait until it is ready."""
    console = Console(stderr=True)
    for missing in missing_prerequisites():
        console.print(f"[{'red' if missing.fatal else 'yellow'}]{missing}")
    with _plain_errors(console), console.status("bringing the cluster up") as spinner:
        if not plugin and (plugin_jar or exact_metrics or fallback != LocalClusterSpec().fallback):
            raise UnfitOption("--plugin-jar, --fallback and --exact-metrics are the plugin's: not with --no-plugin")
        asked = LocalClusterSpec(  # checked before the plugin is built, which takes minutes
            name=name,
            machines=machines,
            slots_per_machine=slots,
            capacity_millicores=capacity_millicores,
            one_way_delay_ms=delay_ms,
            subnet=subnet,
            agents=agents,
            fallback=fallback,
            exact_metrics=exact_metrics,
            fast_start=fast_start,
        )
        spec = replace(asked, plugin_jar=_choose_plugin(plugin, plugin_jar, spinner.update))
        cluster = LocalCluster(spec)
        cluster.up(say=spinner.update)
        spinner.update("waiting for Nimbus and the supervisors")
        try:
            cluster.wait_ready()
        except BaseException:
            cluster.down()
            raise
        now = cluster_status(cluster)
    with written_out("local up"):
        _print_status(now, Console())


@app.command(cls=PlainCommand)
def down(name: Name = "local") -> None:
    """Stop the cluster, and sweep whatever a crash left of it. Logs stay."""
    console = Console(stderr=True)
    with _plain_errors(console):
        was_up = state_file(name).exists()
        layout = take_down(name)
    logs = f"; logs: {escape(str(layout.logs_dir))}" if layout else ""
    console.print(f"cluster {name!r} is down{logs}" + ("" if was_up else " (it was not up)"))


@app.command(cls=PlainCommand)
def status(
    name: Name = "local",
    output: Form = Output.TABLE,
) -> None:
    """Daemons, machines with their CPU, workers, and where the logs are."""
    with _plain_errors(Console(stderr=True)):
        now = cluster_status(LocalCluster.attach(name))
    with written_out("local status"):
        if output is Output.JSON:
            typer.echo(json.dumps(now, indent=2))
        else:
            _print_status(now, Console())


def _choose_plugin(wanted: bool, given: Path | None, say: Any) -> Path | None:
    if not wanted:
        return None
    if given is not None:
        if not given.is_file():
            raise UnfitOption(f"--plugin-jar {given} is not a file")
        return given
    if repository_root() is None:
        raise LocalClusterError("there are no sources here to build the plugin from: give --plugin-jar, or --no-plugin")
    return build_plugin_jar(say)


class _plain_errors:  # noqa: N801 - reads as a statement
    """Print the message of an error that was foreseen, and end with code 1; with 2 where the options are to blame."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: object) -> None:
        if isinstance(value, LocalClusterError | OSError):  # the latter: a full disk, a folder of another user
            self._console.print(str(value), style="red", markup=False, highlight=False, soft_wrap=True)
            raise typer.Exit(EXIT_BAD_INPUT if isinstance(value, UnfitOption) else EXIT_FAILED) from None


def _print_status(now: dict[str, Any], console: Console) -> None:
    console.print(f"Storm cluster [bold]{now['name']}[/]: Nimbus {now['nimbus']}, ZooKeeper {now['zookeeper']}")
    for sentence in now["not_emulated"]:
        console.print(f"[yellow]not emulated: {sentence}")
    machines = _table("machine", "address", "millicores", "throttled", "agent")
    for machine in now["machines"]:
        cpu = f"{_shown(machine['used_millicores'])} / {_shown(machine['capacity_millicores'])}"
        throttled = _shown(machine["throttled_periods"])
        machines.add_row(machine["name"], machine["host"], cpu, throttled, machine["agent_url"] or "-")
    daemons = _table("daemon", "pid", "starts", "MB", "output")
    for daemon in now["daemons"]:
        numbers = (_shown(daemon[key]) for key in ("pid", "starts", "memory_mb"))
        daemons.add_row(daemon["name"], *numbers, Path(daemon["log"]).relative_to(now["logs_dir"]).as_posix())
    workers = _table("worker on", "port", "pid", "topology", "MB")
    for worker in now["workers"]:
        port, pid, memory = (_shown(worker[key]) for key in ("port", "pid", "memory_mb"))
        workers.add_row(worker["machine"], port, pid, escape(worker["topology_id"]), memory)
    for table in (machines, daemons, workers):
        if table.row_count:
            console.print(table)
    console.print(f"memory of everything: {now['memory_mb']:.0f} MB; logs: {escape(now['logs_dir'])}", soft_wrap=True)


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _shown(value: object) -> str:
    return "?" if value is None else f"{value:.0f}" if isinstance(value, float) else str(value)

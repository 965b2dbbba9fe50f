"""`storm-operator simulate`: a scenario on a simulated cluster, managed and as Storm's Even scheduler leaves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from storm_operator.console.server import DEFAULT_PORT
from storm_operator.console.site import PageAddress, PageUnavailable
from storm_operator.core.placement.registry import POLICIES
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.scenario_file import InvalidScenario, read_scenario
from storm_operator.simulated_loop import Scenario
from storm_operator.simulated_loop import simulate as play
from storm_operator.simulated_page import DEFAULT_PACE, Pace, show_simulation
from storm_operator.simulation_report import SimulationReport
from storm_operator.standalone import stop_on_signals


def simulate(
    scenario: Annotated[Path, typer.Argument(help="A scenario in YAML (docs/reference/scenario.md).")],
    policy: Annotated[
        list[str] | None, typer.Option(help="Policies to play it with (repeatable); else the file's own.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-f", help="Folder for the reports as JSON.")] = None,
    history: Annotated[
        str | None, typer.Option(metavar="PATH", help="Record every period; each policy is a cluster of its own there.")
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Play it once, managed, at a pace to look at, beside the operator's page.")
    ] = False,
    page_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of that page; 0: any.")] = DEFAULT_PORT,
    pace: Annotated[
        float, typer.Option(min=0.1, help="Simulated seconds that pass in a second, with --page.")
    ] = DEFAULT_PACE,
) -> None:
    """Play a scenario on a simulated Storm cluster: no Storm, no Java, much faster than real time."""
    console = Console(highlight=False)
    try:
        read = read_scenario(scenario)
    except InvalidScenario as error:
        console.print(f"[red]{scenario}:[/] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(2) from error
    unknown = sorted(set(policy or ()) - set(POLICIES))
    if unknown:
        console.print(f"[red]--policy {unknown[0]}:[/] there are {', '.join(sorted(POLICIES))}", soft_wrap=True)
        raise typer.Exit(2)
    names = policy or [next(iter(read.specs.values())).scheduling.policy]
    if page:
        _show(read.scenario, _under(names[0], read.specs), page_port, pace, console.print)
        return
    try:
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
        with _played_so_far(console) as told:
            reports = [("as it starts (Even)", play(read.scenario, played=told("as it starts (Even)")))]
            for name in names:
                cluster, specs = f"{read.scenario.name}-{name}", _under(name, read.specs)
                reports.append((name, _played(read.scenario, specs, history, cluster, told(name))))
    except OSError as error:
        console.print(f"[red]cannot write:[/] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from error
    console.print(_table(reports))
    if output is not None:
        for name, report in reports:
            (output / f"{name.split(' (')[0].replace(' ', '-')}.json").write_text(report.to_json(), encoding="utf-8")
        console.print(f"reports: {output}")


@contextmanager
def _played_so_far(console: Console) -> Iterator[Callable[[str], Callable[[float], None]]]:
    """A bar for each time that the scenario is played, gone when all is over; none where nobody looks."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:

        def begin(name: str) -> Callable[[float], None]:
            task = progress.add_task(name, total=1.0)
            return lambda share: progress.update(task, completed=share)

        yield begin


def _under(policy: str, specs: Mapping[str, TopologySpec]) -> dict[str, TopologySpec]:
    return {
        topology: replace(spec, scheduling=replace(spec.scheduling, policy=policy)) for topology, spec in specs.items()
    }


def _show(
    scenario: Scenario, specs: Mapping[str, TopologySpec], port: int, pace: float, say: Callable[[str], None]
) -> None:
    pacer = Pace(scenario.period_seconds, pace, stop_on_signals())
    try:
        show_simulation(scenario, specs, PageAddress(port), pacer, say)
    except PageUnavailable as error:
        raise typer.BadParameter(str(error)) from error


def _played(
    scenario: Scenario,
    specs: Mapping[str, TopologySpec],
    history: str | None,
    cluster: str,
    played: Callable[[float], None],
) -> SimulationReport:
    if history is None:
        return play(scenario, specs, played=played)
    from storm_operator.history.recorder import DirectRecorder
    from storm_operator.history.store import HistoryStore

    recorder = DirectRecorder(HistoryStore.at(history, cluster, f"seed-{scenario.seed}", survives_death=False))
    try:
        return play(scenario, specs, recorder, played)
    finally:
        recorder.close()


def _table(reports: list[tuple[str, SimulationReport]]) -> Table:
    table = Table(title=reports[0][1].scenario, title_justify="left", box=None)
    table.add_column("figure")
    for name, _ in reports:
        table.add_column(name, justify="right")
    rows: Mapping[str, Callable[[SimulationReport], str]] = {
        "complete latency, mean (ms)": lambda r: _figure(r.mean_latency_ms()),
        "complete latency, p50 (ms)": lambda r: _figure(r.median_latency_ms()),
        "complete latency, p99 (ms)": lambda r: _figure(r.median_latency_ms(figure="latency_p99_ms")),
        "acked tuples": lambda r: f"{r.sums.acked:,.0f}",
        "failed tuples": lambda r: f"{r.sums.failed:,.0f}",
        "offered, but never sent": lambda r: f"{r.sums.unsent:,.0f}",
        "tuples between supervisors (per second)": lambda r: _figure(r.mean_of("inter_supervisor_tuples_per_second")),
        "supervisors in use": lambda r: f"{r.mean_of('supervisors_used'):.2f}",
        "CPU used (core-seconds)": lambda r: f"{r.sums.cpu_used_core_seconds:,.0f}",
        "CPU reserved in vain (core-seconds)": lambda r: f"{r.sums.over_provided_core_seconds:,.0f}",
        "CPU missing (core-seconds)": lambda r: f"{r.sums.under_provided_core_seconds:,.1f}",
        "plans": lambda r: str(len(r.plans)),
        "worker restarts": lambda r: str(r.sums.worker_restarts),
    }
    for name, told in rows.items():
        table.add_row(name, *(told(report) for _, report in reports))
    return table


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.1f}"

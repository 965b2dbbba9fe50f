"""`storm-operator snapshot`: what a live cluster looks like, in a file."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from storm_operator.adapters.errors import AdapterError
from storm_operator.adapters.metrics import MetricsSource, PrometheusSource, ScrapeSource
from storm_operator.adapters.metrics.addresses import parse_agents
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.nimbus.supervisors import DEFAULT_STORM_ROOT, storm_root
from storm_operator.adapters.observer import ClusterReader, least_shares
from storm_operator.adapters.storm_cluster import StormCluster
from storm_operator.adapters.zookeeper import ZooKeeperSession
from storm_operator.cli_output import written_out
from storm_operator.core.host_and_port import host_and_port
from storm_operator.core.metrics_window import WINDOW_PERIODS
from storm_operator.core.server_url import check_zookeeper, checked_url
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.snapshot_builder import build_snapshot
from storm_operator.core.snapshot_json import dump_snapshot
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.folders import is_folder
from storm_operator.told_specs import read_told_specs

DEFAULT_AGENT_PORT = 9464
NOT_TOLD = (
    "what StormTopologies say of stateful components and of workers is not in it: they were not given (--topologies)"
)
LONGEST_SECONDS = 24 * 3600.0
"""As that of a control period."""
EXIT_CLUSTER = 1
EXIT_BAD_INPUT = 2


def snapshot(
    nimbus: Annotated[list[str], typer.Option(metavar="HOST:PORT", help="A Nimbus (repeatable).")],
    zookeeper: Annotated[str, typer.Option(metavar="HOST:PORT,...", help="Storm's ZooKeeper: it knows the slots.")],
    agent: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST=URL", help="The agent of a supervisor that is not where --agent-port says."),
    ] = None,
    prometheus: Annotated[
        str | None, typer.Option(metavar="URL", help="A Prometheus that scrapes the agents, instead of --agent.")
    ] = None,
    match: Annotated[str, typer.Option(help="Narrows --prometheus to the cluster's series: 'cluster=\"blue\"'.")] = "",
    agent_port: Annotated[
        int, typer.Option(min=1, max=65535, help="The agents' port on the supervisors' hosts.")
    ] = DEFAULT_AGENT_PORT,
    period: Annotated[
        float, typer.Option(min=1.0, max=LONGEST_SECONDS, help="Seconds between the two readings.")
    ] = 10.0,
    root: Annotated[str, typer.Option("--storm-root", help="storm.zookeeper.root")] = DEFAULT_STORM_ROOT,
    topologies: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="StormTopologies (a folder, or a file, also of `kubectl get -o yaml`): what they say counts.",
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Where to write it (default: stdout).")] = None,
) -> None:
    """Write a snapshot of a live cluster: what `storm-operator plan` reads. Takes one period."""
    if file is not None and not is_folder(file.parent):
        _fail(f"--file: there is no folder {file.parent} to write {file.name} into", EXIT_BAD_INPUT)
    try:
        client = NimbusClient(nimbus, named_by="--nimbus")
        check_zookeeper("--zookeeper", zookeeper)
        session = ZooKeeperSession(zookeeper, named_by="--zookeeper")
        cluster = StormCluster(client, session, storm_root(root), "--storm-root")
        source = metrics_source(agent or (), prometheus, cluster.supervisor_ids, agent_port, match)
        specs = None if topologies is None else read_told_specs(topologies, nimbus, _say)
    except ValueError as error:
        _fail(str(error), EXIT_BAD_INPUT)
    try:
        taken = take_snapshot(cluster, specs, source, period, time.time, time.sleep)
    except AdapterError as error:
        _fail(str(error), EXIT_CLUSTER)
    finally:
        client.close()
        session.close()
    for problem in taken.completeness.problems:
        _say(problem)
    if file is None:
        with written_out("snapshot"):
            typer.echo(dump_snapshot(taken).encode(), nl=False)  # in UTF-8, whatever a terminal has
    else:
        _write(file, dump_snapshot(taken))


def metrics_source(
    agents: Sequence[str],
    prometheus: str | None,
    hosts: Callable[[], Iterable[str]],
    agent_port: int,
    match: str = "",
) -> MetricsSource:
    """The Prometheus, or the agents on `hosts`: those named where they are said to be. ValueError when both are.

    `match` narrows what the Prometheus is asked for; ValueError, too, when none is.
    """
    if agents and prometheus is not None:
        raise ValueError("expected either --agent HOST=URL or --prometheus URL: one of them is asked, not both")
    if prometheus is not None:
        return PrometheusSource(checked_url("--prometheus", prometheus), match)
    if match:
        raise ValueError(f"--match {match} narrows what a Prometheus is asked for: give --prometheus URL as well")
    named = parse_agents(agents)
    return ScrapeSource(lambda: agent_urls(hosts(), agent_port, named))


def agent_urls(hosts: Iterable[str], agent_port: int, named: Mapping[str, str]) -> Mapping[str, str]:
    """URL of each host's agent: the one that was named, else the usual one."""
    return {**{host: f"http://{host_and_port(host, agent_port)}/metrics" for host in hosts}, **named}


def take_snapshot(
    cluster: ClusterReader,
    specs: Mapping[str, TopologySpec] | None,
    source: MetricsSource,
    period_seconds: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> ClusterSnapshot:
    """Two readings one period apart, and Nimbus' view at the second. Raises AdapterError when Nimbus is not there.

    `specs` are by topology name; None: nobody knows what StormTopologies say, which is among its problems.
    """
    told = specs or {}
    cluster.read_view(told)  # a cluster that does not answer is better known before the wait than after it
    begun_seconds = clock()
    source.read_window(begun_seconds, WINDOW_PERIODS * period_seconds)
    sleep(period_seconds)
    view = cluster.read_view(told)
    now_seconds = clock()
    past_seconds = now_seconds - begun_seconds  # longer than a period where Nimbus took its time
    window_seconds = WINDOW_PERIODS * max(period_seconds, past_seconds)
    window = source.read_window(now_seconds, window_seconds, begun_seconds)
    shares = least_shares(view.topologies, told)
    known_seconds = past_seconds if past_seconds > 0.0 else None  # else the clock was set back
    taken = build_snapshot(view, window, (), now_seconds, known_seconds, shares)
    if specs is not None or not view.topologies:
        return taken
    known = taken.completeness
    return replace(taken, completeness=replace(known, problems=(*known.problems, NOT_TOLD)))


def _write(path: Path, text: str) -> None:
    """To a plain file whole or not at all; a device or a pipe (`/dev/stdout`) stays what it is."""
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            _put_in_place(path.resolve(), text)
    except OSError as error:
        _fail(f"{path} cannot be written: {error.strerror}", EXIT_BAD_INPUT)


def _put_in_place(path: Path, text: str) -> None:
    """An interrupted command, or a full disk, leaves no half file."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as temporary:
        half = Path(temporary.name)
        try:
            temporary.write(text)
            temporary.flush()
            half.chmod(0o666 & ~_umask())
            half.replace(path)
        except BaseException:
            half.unlink(missing_ok=True)
            raise


def _umask() -> int:
    present = os.umask(0)
    os.umask(present)
    return present


def _say(message: str) -> None:
    typer.echo(f"storm-operator snapshot: {message}", err=True)


def _fail(message: str, code: int) -> NoReturn:
    _say(message)
    raise typer.Exit(code)

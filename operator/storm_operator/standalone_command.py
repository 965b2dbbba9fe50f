"""The command line of standalone mode."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from storm_operator.adapters.errors import AdapterError
from storm_operator.adapters.manager_lock import ManagedByAnother, ManagerLock
from storm_operator.adapters.profile_file import ProfileFile
from storm_operator.adapters.resources import SUFFIXES
from storm_operator.adapters.submission import DEFAULT_TIMEOUT_SECONDS
from storm_operator.assembly import DEFAULT_AGENT_PORT, ClusterConnection, assemble, manager_lock
from storm_operator.connection_options import agents_from, connection_from, prometheus_from
from storm_operator.console.server import DEFAULT_PORT, LOOPBACK
from storm_operator.console.site import PageAddress, PageUnavailable, SinglePage
from storm_operator.control_loop import PassReport
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.executor_counts import ExecutorCounts
from storm_operator.history.settings import (
    MOST_DAYS,
    MOST_GIGABYTES,
    HistoryRecorder,
    HistorySettings,
    NoHistory,
    start_recorder,
)
from storm_operator.http_listening import HttpServer
from storm_operator.jvm_submitter import JvmSubmitter
from storm_operator.loop_ports import Audience, Listener, report_of_unseen
from storm_operator.operator_metrics import DEFAULT_METRICS_PORT, ListenError, OperatorMetrics, RunMode
from storm_operator.standalone import (
    AroundPasses,
    Patience,
    last_words,
    run_forever,
    saying_when_asked_to_end,
    stop_on_signals,
)
from storm_operator.standalone_options import check_paths, refuse_idle, say_what_is_no_profile_yet
from storm_operator.suspended_here import SuspendedHere
from storm_operator.terminal import CountsTeller, TerminalListener, say_on_stdout
from storm_operator.topology_folder import TopologyFolder

LONGEST_SUBMISSION_SECONDS = 3600.0
NOBODY_MAY_APPROVE = "plans that wait can be approved on the page only, with --page-approval"
NOBODY_CAN_APPROVE = "plans that wait can be approved on the page only, which is not served"


def standalone(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Folder of StormTopology YAML files; changes are followed.")],
    local: Annotated[
        str | None, typer.Option(metavar="NAME", help="Use the local cluster of this name (storm-operator local up).")
    ] = None,
    nimbus: Annotated[list[str] | None, typer.Option(metavar="HOST:PORT", help="Nimbus (repeatable).")] = None,
    zookeeper: Annotated[str | None, typer.Option(metavar="HOST:PORT,...", help="Storm's ZooKeeper.")] = None,
    zookeeper_root: Annotated[str, typer.Option(help="Storm's storm.zookeeper.root.")] = "/storm",
    agent: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST=URL", help="An agent that is not at the usual place (repeatable)."),
    ] = None,
    agent_port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of the agents on their supervisors.")
    ] = DEFAULT_AGENT_PORT,
    prometheus: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Ask this Prometheus instead of the agents; it scrapes every 3/4 period or oftener. "
            "While a plan is applied the agents are asked all the same.",
        ),
    ] = None,
    match: Annotated[str, typer.Option(help="Narrows --prometheus to the cluster's series: 'cluster=\"blue\"'.")] = "",
    storm_home: Annotated[
        Path | None, typer.Option(help="A Storm installation, to submit topologies with (jar and flux).")
    ] = None,
    storm_conf_dir: Annotated[Path | None, typer.Option(help="Folder of the storm.yaml to submit with.")] = None,
    submission_seconds: Annotated[
        float,
        typer.Option(
            min=1.0, max=LONGEST_SUBMISSION_SECONDS, help="A main class that has not ended by then is; all wait for it."
        ),
    ] = DEFAULT_TIMEOUT_SECONDS,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help=f"Serve the operator's metrics here (usually {DEFAULT_METRICS_PORT})."),
    ] = None,
    page_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page that shows all this, and of its JSON API; 0: none.")
    ] = DEFAULT_PORT,
    page_host: Annotated[str, typer.Option(help="Address that the page is served on.")] = LOOPBACK,
    page_approval: Annotated[
        bool, typer.Option("--page-approval", help="Whoever reaches the page may approve and reject plans there.")
    ] = False,
    history: Annotated[
        str | None, typer.Option(metavar="PATH", help="Record every period to this folder or s3:// prefix.")
    ] = None,
    history_cluster: Annotated[
        str | None,
        typer.Option(help="Name of the cluster there and in --profile; else that of --local, or Nimbus' address."),
    ] = None,
    history_days: Annotated[float, typer.Option(min=1.0, max=MOST_DAYS, help="Recorded days that are kept.")] = 400.0,
    history_gigabytes: Annotated[
        float, typer.Option(min=0.01, max=MOST_GIGABYTES, help="Recorded gigabytes that are kept.")
    ] = 20.0,
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What the pipeline learned from this cluster's history; changes are followed."
        ),
    ] = None,
) -> None:
    """Manage the topologies described in FOLDER on one Storm cluster. Ctrl-C leaves them running."""
    check_paths(folder, storm_home, storm_conf_dir)
    is_recorded = history is not None
    refuse_idle(context, ("page_approval", "page_host"), page_port, "for the page; --page-port 0 says: none")
    refuse_idle(context, ("history_days", "history_gigabytes"), is_recorded, "for what --history records: give it too")
    refuse_idle(context, ("submission_seconds",), local or storm_home, "for what is submitted: give --storm-home too")
    refuse_idle(context, ("history_cluster",), is_recorded or profile, "for --history and --profile: give one of them")
    connection = connection_from(
        local,
        nimbus,
        zookeeper,
        storm_root=zookeeper_root,
        agent_port=agent_port,
        agents=agents_from(agent or ()),
        prometheus=prometheus_from(prometheus),
        match=match,
        storm_home=storm_home,
        storm_conf_dir=storm_conf_dir,
    )
    stop = stop_on_signals()
    say, patience = say_on_stdout(on_closed=stop.set), Patience(stop)
    say_what_is_no_profile_yet(profile, say)
    say(f"connecting to Nimbus {', '.join(connection.nimbus)} and ZooKeeper {connection.zookeeper}; Ctrl-C ends it")
    with ExitStack() as until_ended:
        until_ended.enter_context(saying_when_asked_to_end(stop, say))
        lock = until_ended.enter_context(_lock(connection, stop.set, patience, say))
        terminal = TerminalListener(say, NOBODY_CAN_APPROVE if page_approval else NOBODY_MAY_APPROVE)
        listeners: list[Listener] = [terminal]
        if history is not None:
            settings = HistorySettings(history, history_cluster or local, history_days, history_gigabytes)
            recorder = recorder_for(settings, connection.nimbus[0], say)
            until_ended.callback(recorder.close)
            listeners.append(recorder)
        nimbus_name = connection.nimbus[0]
        metrics = OperatorMetrics(RunMode.STANDALONE, leads=True)
        told = metrics.cluster(nimbus_name)
        listeners.append(told)
        if metrics_port is not None:
            until_ended.callback(_serve(metrics, metrics_port).shutdown)
        page = SinglePage(", ".join(connection.nimbus), page_approval, is_ending=stop.is_set)
        if page_port:
            listeners.append(page.watcher)
        try:
            profiles = ProfileFile(profile, history_cluster or local or connection.nimbus[0]) if profile else None
            audience, calls = Audience(tuple(listeners), say), metrics.calls(nimbus_name)
            assembly = assemble(
                connection,
                audience,
                profiles=profiles,
                calls=calls,
                confirm=lock.take,
                is_ending=stop.is_set,
                gives_up=patience.is_over,
            )
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        until_ended.callback(assembly.close)
        loop = assembly.loop
        patience.being_moved = lambda: loop.being_moved
        page.proposals = lambda: loop.memory.proposals
        if page_port and _show(page, PageAddress(page_port, page_host), say) and page_approval:
            terminal.on_first_proposal = ""
        followed = _follow(folder, say, connection.nimbus)
        teller = CountsTeller(say)
        counts = ExecutorCounts(teller.tell, onlooker=page.watcher.on_held_resizes)

        lifecycle = assembly.lifecycle(say, JvmSubmitter(assembly.home, submission_seconds))
        page.watcher.refused = lambda: (*followed.refusals(), *lifecycle.not_as_described())
        lifecycle.on_submission = page.watcher.look_again
        suspended = SuspendedHere(assembly.store, lifecycle, say)

        def begin() -> None:
            """Only a cluster whose ZooKeeper and Nimbus answer is managed, and that nobody else manages."""
            lock.take()
            assembly.client.leader(patience_seconds=0.0)  # tried again soon, once it is said what is in the way
            patience.is_recovering = True
            suspended.recall()
            say(f"managing {folder} on Nimbus {', '.join(connection.nimbus)}; Ctrl-C leaves topologies running")

        def before() -> None:
            patience.is_recovering = False
            suspended.keep()
            page.carry_out(loop.desk)

        def after(specs: Mapping[str, TopologySpec], report: PassReport) -> None:
            teller.begin_pass()
            counts.follow(specs, report, loop, assembly.change_counts)

        around = AroundPasses(
            begin=begin,
            confirm=lock.check,
            before=before,
            after=after,
            ended=told.pass_ended,
            over=patience.end_passes,
            unseen=lambda why: page.watcher.on_pass(report_of_unseen(time.time(), why)),
        )
        begun = run_forever(followed, lifecycle, loop, stop, say, around)
        for undone in page.end():
            say(undone)
    say(last_words(loop, begun=begun))


@contextmanager
def _lock(
    connection: ClusterConnection, on_lost: Callable[[], None], patience: Patience, say: Callable[[str], None]
) -> Iterator[ManagerLock]:
    """The cluster's lock, taken if that is possible now; ends the program where another has it, or gets it later."""
    try:
        lock = manager_lock(connection, on_lost=on_lost, gives_up=patience.is_over)
    except ValueError as error:
        raise typer.BadParameter(f"--zookeeper: {connection.zookeeper!r} is no address of one: {error}") from error
    try:
        with suppress(AdapterError):  # the loop tries again, and says what is in the way
            lock.take()
        yield lock
    except ManagedByAnother as error:
        say(str(error))
        raise typer.Exit(1) from None
    finally:
        lock.close()


def _serve(metrics: OperatorMetrics, port: int) -> HttpServer:
    try:
        return metrics.serve(port)
    except ListenError as error:
        raise typer.BadParameter(f"--metrics-port: {error}") from None


def _follow(folder: Path, say: Callable[[str], None], nimbus: tuple[str, ...]) -> TopologyFolder:
    followed = TopologyFolder(folder, say, nimbus)
    if followed.is_empty():
        say(f"no StormTopology is in {folder} yet ({', '.join(SUFFIXES)}): nothing is managed until one is there")
    return followed


def recorder_for(settings: HistorySettings, nimbus: str, say: Callable[[str], None]) -> HistoryRecorder:
    """A recorder at work; a usage error when there can be none."""
    try:
        return start_recorder(settings, nimbus, say, insist=True)
    except NoHistory as error:
        raise typer.BadParameter(f"--history: {error}") from error


def _show(page: SinglePage, address: PageAddress, say: Callable[[str], None]) -> bool:
    """Whether the page is served; where that is impossible the loop runs without it."""
    try:
        _, where = page.open(address)
    except PageUnavailable as error:
        say(str(error))
        return False
    say(f"page: {where.url}")
    return True

"""`storm-operator simulate`: a scenario on a simulated cluster, managed and as Storm's Even scheduler leaves it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from storm_operator.cli_output import plain_console, written_out
from storm_operator.console.server import DEFAULT_PORT
from storm_operator.console.site import PageAddress, PageUnavailable
from storm_operator.core.learned_profile import why_refused
from storm_operator.core.learned_profile_json import load_profile
from storm_operator.core.placement.registry import POLICIES, check_policy
from storm_operator.core.schema_errors import InvalidDocument
from storm_operator.core.settings import SchedulingSettings
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.history.settings import NoHistory, insist_on_plain
from storm_operator.scenario_fields import InvalidScenario
from storm_operator.scenario_file import ScenarioFile, read_scenario
from storm_operator.simulated_cluster import EPOCH_SECONDS, AgelessProfile
from storm_operator.simulated_loop import Scenario
from storm_operator.simulated_loop import simulate as play
from storm_operator.simulated_page import DEFAULT_PACE, Pace, show_simulation
from storm_operator.simulation_comparison import compared
from storm_operator.simulation_report import SimulationReport
from storm_operator.simulation_table import UNMANAGED, tables
from storm_operator.standalone import stop_on_signals

if TYPE_CHECKING:
    from storm_operator.history.store import HistoryStore


def simulate(
    scenario: Annotated[Path, typer.Argument(help="A scenario in YAML (docs/reference/scenario.md).")],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Policies to play it with (repeatable); else the file's own. "
            "The file's scheduling.parameters are those of its own policy: others play with their defaults."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-f", help="Folder for the reports as JSON.")] = None,
    history: Annotated[
        str | None, typer.Option(metavar="PATH", help="Record every period; each policy is a cluster of its own there.")
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Play each policy once more, with what storm-pipeline has learned."),
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Play it once, managed, at a pace to look at, beside the operator's page.")
    ] = False,
    page_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port of that page; 0: any.", show_default=str(DEFAULT_PORT)),
    ] = None,
    pace: Annotated[
        float | None,
        typer.Option(
            min=0.1, help="Simulated seconds that pass in a second, with --page.", show_default=f"{DEFAULT_PACE:g}"
        ),
    ] = None,
) -> None:
    """Play a scenario on a simulated Storm cluster: no Storm, no Java, much faster than real time."""
    console, errors = plain_console(), Console(highlight=False, stderr=True)
    others = {"--profile": profile, "--output": output, "--history": history}
    _check_page_options(page, {"--page-port": page_port, "--pace": pace}, others, policy or ())
    read = _read(scenario, errors)
    names = list(dict.fromkeys(policy or ())) or [next(iter(read.specs.values())).scheduling.policy]
    _check_policies(names, errors)
    learned = _learned(profile, read.scenario) if profile else None
    if page:
        port = DEFAULT_PORT if page_port is None else page_port
        with written_out("simulate"):
            _show(read.scenario, _under(names[0], read.specs), port, pace or DEFAULT_PACE, console.print)
        return
    _check_places(output, history, read.scenario.name)
    try:
        stores = _stores(history, read, names)
        with _played_so_far(console) as told:
            unmanaged = play(read.scenario, played=told(UNMANAGED))
            reports, sentences = [(UNMANAGED, unmanaged)], []
            for name in names:
                specs = _under(name, read.specs)
                managed = _played(read.scenario, specs, stores.get(name), told(name))
                reports.append((name, managed))
                sentences.append(against_even(name, managed, unmanaged))
                if learned is not None:
                    both = f"{name} learned"
                    by_profile = play(read.scenario, specs, played=told(both), profiles=learned)
                    reports.append((both, by_profile))
                    sentences.append(against_unlearned(name, by_profile, managed))
        if output is not None:
            for name, report in reports:
                (output / f"{name.replace(' ', '-')}.json").write_text(report.to_json(), encoding="utf-8")
    except OSError as error:
        errors.print(f"[red]cannot write:[/] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from error
    with written_out("simulate"):
        for table in tables(reports, console):
            console.print(table)
        for sentence in (*sentences, *_recorded_before(stores.values())):
            console.print(sentence, soft_wrap=True)
        if output is not None:
            console.print(f"reports: {output}")


def _insist_on_writable(output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=output):
            pass
    except OSError as error:
        raise typer.BadParameter(f"--output: {output} is no folder that can be written to: {error.strerror}") from error


def _read(file: Path, errors: Console) -> ScenarioFile:
    try:
        return read_scenario(file)
    except InvalidScenario as error:
        errors.print(f"[red]{escape(str(file))}:[/] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(2) from error


def _check_page_options(
    page: bool, of_page: Mapping[str, object], others: Mapping[str, object], policies: Sequence[str]
) -> None:
    """`of_page` are of the page alone; `others` are for what only several runs, each to its end, are good for."""
    idle = [option for option, value in of_page.items() if value is not None and not page]
    if idle:
        raise typer.BadParameter(f"{idle[0]} is for --page, beside which the scenario is played at a pace to look at")
    given = [option for option, value in others.items() if value is not None]
    if page and given:
        raise typer.BadParameter(f"{given[0]} is not for --page, which plays the scenario once, to be looked at only")
    if page and len(policies) > 1:
        raise typer.BadParameter("--page plays the scenario once, under one --policy")


def _check_policies(names: Sequence[str], errors: Console) -> None:
    unknown = sorted(set(names) - set(POLICIES))
    if unknown:
        errors.print(f"[red]--policy {escape(unknown[0])}:[/] there are {', '.join(sorted(POLICIES))}", soft_wrap=True)
        raise typer.Exit(2)
    for name in names:
        try:
            check_policy(name, ())
        except ValueError as error:
            errors.print(f"[red]--policy {escape(name)}:[/] {escape(str(error))}", soft_wrap=True)
            raise typer.Exit(2) from error


@contextmanager
def _played_so_far(console: Console) -> Iterator[Callable[[str], Callable[[float], None]]]:
    """A bar for each time that the scenario is played, gone when all is over; none where nobody looks."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:

        def begin(name: str) -> Callable[[float], None]:
            task = progress.add_task(name, total=1.0)
            return lambda share: progress.update(task, completed=share)

        yield begin


def _under(policy: str, specs: Mapping[str, TopologySpec]) -> dict[str, TopologySpec]:
    return {topology: replace(spec, scheduling=_led_by(policy, spec.scheduling)) for topology, spec in specs.items()}


def _led_by(policy: str, scheduling: SchedulingSettings) -> SchedulingSettings:
    """One name can mean two things to two policies (`alpha`), so that a policy's parameters go with it."""
    return scheduling if policy == scheduling.policy else replace(scheduling, policy=policy, parameters=())


def _learned(file: Path, scenario: Scenario) -> AgelessProfile:
    """The profile in `file`, which must be of the scenario's topologies."""
    try:
        source = AgelessProfile(load_profile(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise typer.BadParameter(f"--profile: {file} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, InvalidDocument) as error:
        raise typer.BadParameter(f"--profile {file}: {error}") from error
    for simulated in scenario.model.topologies:
        topology = simulated.as_topology()
        if why := why_refused(source.ageless, topology, source.cluster, EPOCH_SECONDS):
            raise typer.BadParameter(f"--profile {file}: {why}")
    return source


def _show(
    scenario: Scenario, specs: Mapping[str, TopologySpec], port: int, pace: float, say: Callable[[str], None]
) -> None:
    pacer = Pace(scenario.period_seconds, pace, stop_on_signals())
    try:
        show_simulation(scenario, specs, PageAddress(port), pacer, say)
    except PageUnavailable as error:
        raise typer.BadParameter(str(error)) from error


def _check_places(output: Path | None, history: str | None, scenario: str) -> None:
    """Better known before the scenario is played than after it."""
    if output is not None:
        _insist_on_writable(output)
    if history is not None:
        _insist_on_recordable(history, scenario)


def _insist_on_recordable(root: str, scenario: str) -> None:
    """That an object store takes what is written is known only when there is something to write."""
    try:
        insist_on_plain(scenario)
    except NoHistory as error:
        raise typer.BadParameter(f"--history: {error}: give the scenario another name") from error
    try:
        from storm_operator.history.files import Files

        Files.at(root).insist_on_use()
    except (OSError, ValueError, ImportError) as error:
        raise typer.BadParameter(f"--history: {root!r} cannot be written to: {error}") from error


def _stores(history: str | None, read: ScenarioFile, policies: Sequence[str]) -> Mapping[str, HistoryStore]:
    """Where each policy is recorded, as a cluster of its own; a usage error where another scenario's recording is.

    All simulations are of the same time, of which a cluster can have had one past only.
    """
    if history is None:
        return {}
    from storm_operator.history.store import HistoryStore

    run_id = f"seed-{read.scenario.seed}-{read.fingerprint}"
    stores = {}
    for policy in policies:
        cluster = f"{read.scenario.name}-{policy}"
        stores[policy] = HistoryStore.at(history, cluster, run_id, survives_death=False)
        if stores[policy].is_shared():
            raise typer.BadParameter(
                f"--history: {history!r} holds a recording of cluster {cluster} already, of another scenario, seed or "
                f"version and of the same times: give another place, or the scenario another name, or delete the "
                f"folders of that cluster there"
            )
    return stores


def _recorded_before(stores: Iterable[HistoryStore]) -> Iterator[str]:
    for store in stores:
        if store.left_alone:
            yield (
                f"history: {store.left_alone} files of cluster {store.cluster} were there already, of this very "
                "scenario, and stay as they are"
            )


def _played(
    scenario: Scenario,
    specs: Mapping[str, TopologySpec],
    store: HistoryStore | None,
    played: Callable[[float], None],
) -> SimulationReport:
    if store is None:
        return play(scenario, specs, played=played)
    from storm_operator.history.recorder import DirectRecorder

    recorder = DirectRecorder(store)
    try:
        return play(scenario, specs, recorder, played)
    finally:
        recorder.close()


def against_even(name: str, managed: SimulationReport, unmanaged: SimulationReport) -> str:
    """What the column of policy `name` shows beside the first."""
    return (
        f"The operator with policy {name}, beside Storm alone: {compared(managed, unmanaged)} Storm alone sets no CPU "
        "limits, so that all CPU of a supervisor in use counts as reserved. Tuples wait, and may fail, where CPU is "
        "missing and while workers restart: the mean latency has these times in it, p50 and p99 are those of the "
        "median period."
    )


def against_unlearned(name: str, learned: SimulationReport, managed: SimulationReport) -> str:
    """What the column of policy `name` with a learned profile shows beside that without."""
    return f"The operator with policy {name} and the profile, beside without: {compared(learned, managed)}"

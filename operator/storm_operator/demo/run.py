"""Plays the demo: Even first, then storm-operator, then a load step, then the load falls; and writes the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape

from storm_operator.assembly import Assembly, assemble
from storm_operator.connection_options import connection_of
from storm_operator.core.plan_record import PlanState
from storm_operator.core.settings import Mode
from storm_operator.core.snapshot_builder import build_snapshot
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.demo.ended import Ended
from storm_operator.demo.figures import PhaseFigures, conclusion, headline, nothing_compared, phase_figures
from storm_operator.demo.recorder import Point, Recorder
from storm_operator.demo.report import write_report
from storm_operator.demo.scenario import (
    BASE,
    EVEN,
    LOW,
    MANAGED,
    PEAK,
    PERIOD_SECONDS,
    WORKLOADS,
    Durations,
    durations,
    offered_per_second,
    specs,
)
from storm_operator.demo.settled import has_settled
from storm_operator.demo.view import PlainLines, picture, render
from storm_operator.local.build import plugin_jar, workloads_jar
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.distribution import Say
from storm_operator.local.network import free_subnet
from storm_operator.local.spec import LocalClusterSpec

COMPLETE_TIMEOUT_SECONDS = 60.0
MEASURING_ATTEMPTS = 2
SLOTS_PER_MACHINE = 6  # two workers for each of two topologies, and room to restart them on other ports


class DemoError(Exception):
    """The demo cannot go on; the message says why."""


@dataclass(slots=True)
class Stage:
    """The running demo: the loop, what it recorded, and the load that it sets."""

    assembly: Assembly
    recorder: Recorder
    jar: str
    rate_files: Mapping[str, Path]
    status: str = ""
    mode: Mode = Mode.OBSERVE
    load: int = BASE
    next_pass_at: float = field(default_factory=time.time)
    told: Callable[[], None] = lambda: None
    """Called when the status has changed, and after each pass."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the figures is to know."""

    def enter(self, status: str) -> None:
        self.status = status
        self.told()

    def specs(self) -> dict[str, TopologySpec]:
        return specs(self.jar, {name: str(path) for name, path in self.rate_files.items()}, self.mode)

    def set_load(self, load: int) -> None:
        self.load = load
        for workload in WORKLOADS:
            write_rate(self.rate_files[workload.name], workload.rates[load])

    def begin(self, title: str) -> None:
        """A phase, under the load that is set."""
        self.recorder.begin(title, time.time(), offered_per_second(self.load))

    def run_pass(self) -> None:
        """Wait for the next period and run one pass of the loop."""
        time.sleep(max(0.0, self.next_pass_at - time.time()))
        self.next_pass_at = time.time() + PERIOD_SECONDS
        self.assembly.loop.run_once(self.specs())
        self.told()

    def run_for(self, seconds: float) -> None:
        self.run_until(lambda: False, seconds)

    def run_until(self, condition: Callable[[], bool], limit_seconds: float) -> bool:
        """Pass after pass until `condition` or the limit; whether the condition came true."""
        deadline = time.time() + limit_seconds
        while time.time() < deadline:
            self.run_pass()
            if condition():
                return True
        return False

    def measure(self, title: str, status: str, seconds: float) -> PhaseFigures:
        """A phase of its own, measured from its start to its end and nothing else; what it waits for is not yet it.

        A plan in the middle mixes two assignments: then the phase is played once more, and a note tells of one that
        comes again.
        """
        for attempts_left in reversed(range(MEASURING_ATTEMPTS)):
            self.run_until(self.is_complete, COMPLETE_TIMEOUT_SECONDS)
            self.enter(status)
            started, plans = time.time(), len(self.recorder.plans)
            self.begin(title)
            self.run_for(seconds)
            if len(self.recorder.plans) == plans:
                break
            if attempts_left:
                self.run_until(self.is_calm, COMPLETE_TIMEOUT_SECONDS)
        else:
            self.notes.append(f"A plan was made each time the phase {title!r} was measured: it mixes two assignments.")
        now = time.time()
        view = self.assembly.storm.read_view(self.specs())
        window = self.assembly.metrics.read_window(now, now - started + PERIOD_SECONDS / 2)
        return phase_figures(build_snapshot(view, window, (), now), window)

    def settle(self, who: str, limit_seconds: float) -> None:
        """Wait until latency falls no more, since this phase began; where that takes too long, a note says so."""
        if not self.run_until(self.has_settled, limit_seconds):
            self.notes.append(f"Latency was still falling, or not known, when {who} was measured: it may be less.")

    def has_settled(self) -> bool:
        """Whether the slowest topology's latency has come to rest in this phase."""
        began = self.recorder.phases[-1].started_at_seconds
        return has_settled([_slowest(point) for point in self.recorder.points if point.at_seconds >= began])

    def is_complete(self) -> bool:
        """Whether the last pass had a reading of every executor."""
        return bool(self.recorder.points) and self.recorder.points[-1].inter_supervisor_per_second is not None

    def supervisors_used(self) -> int:
        return self.recorder.points[-1].supervisors_used if self.recorder.points else 0

    def is_calm(self) -> bool:
        """Whether the last plan was verified."""
        records = self.assembly.loop.memory.records
        return bool(records) and records[-1].state is PlanState.VERIFIED and self.is_complete()


def _slowest(point: Point) -> float | None:
    known = [value for value in point.latency_p50_ms.values() if value is not None]
    return max(known) if known and len(known) == len(point.latency_p50_ms) else None


def run_demo(minutes: float, output: Path, console: Console) -> Ended:
    """Play the demo for about `minutes` and write the report into `output`."""
    recorder = Recorder()
    with awaited(
        console, "starting ZooKeeper, Nimbus, four supervisors and their agents: seconds, once all is built"
    ) as say:
        spec = LocalClusterSpec(
            name="demo",
            subnet=free_subnet("demo"),
            plugin_jar=plugin_jar(say),
            one_way_delay_ms=2.0,
            message_timeout_seconds=10,
            slots_per_machine=SLOTS_PER_MACHINE,
        )
        jar = str(workloads_jar(say))
        cluster = LocalCluster(spec)
        cluster.up(owned=True, say=say)
    try:
        with awaited(console, "waiting for Nimbus and the supervisors"):
            cluster.wait_ready()
        for sentence in cluster.not_emulated:
            console.print(f"[yellow]not emulated:[/] {escape(sentence)}")
        stage = _stage(cluster, recorder, jar, durations(minutes).measured)
        try:
            figures = _play(stage, durations(minutes), console)
        finally:
            stage.assembly.close()
    finally:
        with awaited(console, "stopping the cluster"):
            cluster.down()
    _, page = write_report(output, recorder, *figures, notes=(*cluster.not_emulated, *stage.notes))
    for sentence in conclusion(recorder, *figures):
        console.print(sentence, markup=False, emoji=False, soft_wrap=True)
    (output / "view.svg").write_text(picture(recorder, headline(recorder, *figures)), encoding="utf-8")
    return Ended(page, compared=nothing_compared(recorder) is None)


def _stage(cluster: LocalCluster, recorder: Recorder, jar: str, measured_seconds: float = 120.0) -> Stage:
    folder = cluster.layout.data_dir
    rate_files = {workload.name: folder / f"{workload.name}.rate" for workload in WORKLOADS}
    assembly = assemble(connection_of(cluster), recorder, retention_seconds=2 * measured_seconds)
    assembly.loop.period_seconds = PERIOD_SECONDS
    return Stage(assembly, recorder, jar, rate_files)


def _play(stage: Stage, phases: Durations, console: Console) -> tuple[PhaseFigures, PhaseFigures]:
    stage.set_load(BASE)
    _submit(stage, console)
    with show(stage, console):
        stage.enter("warming up under Storm's own scheduler")
        stage.begin("warm-up")
        stage.run_for(phases.warm_up)
        stage.settle("Storm's own scheduler", phases.settling_limit)
        baseline = stage.measure(EVEN, "Storm's own scheduler (Even); storm-operator only watches", phases.measured)

        stage.enter("storm-operator takes over: measures, plans, applies, verifies")
        stage.begin("takeover")
        stage.mode = Mode.ENFORCE
        if not stage.run_until(stage.is_calm, phases.takeover_limit):
            stage.enter("no plan was verified in time; measuring what there is")
        stage.settle("storm-operator", phases.settling_limit)
        managed = stage.measure(MANAGED, "managed by storm-operator, same load as under Even", phases.measured)

        stage.enter("the load steps up: a supervisor is overloaded")
        stage.set_load(PEAK)
        stage.begin("load step")
        stage.run_for(phases.peak)

        stage.enter("the load falls: supervisors are emptied")
        stage.set_load(LOW)
        stage.begin("load falls")
        used = stage.supervisors_used()
        stage.run_until(lambda: stage.supervisors_used() < used and stage.is_calm(), phases.fall_limit)
        stage.recorder.end(time.time())
        stage.enter("the phases are over")
    return baseline, managed


@contextmanager
def awaited(console: Console, what: str) -> Iterator[Say]:
    """Says what is waited for: as long as it lasts in a terminal, else once. What it yields says what else is."""
    if console.is_terminal:
        with console.status(what) as status:
            yield lambda sentence: status.update(escape(sentence))
        return
    console.print(what, soft_wrap=True)
    yield lambda sentence: console.print(sentence, markup=False, soft_wrap=True)


@contextmanager
def show(stage: Stage, console: Console) -> Iterator[None]:
    """The live view in a terminal; else lines meanwhile, and the view at the end."""

    def view() -> RenderableType:
        return render(stage.recorder, time.time(), stage.status)

    if console.is_terminal:
        with Live(console=console, get_renderable=view, refresh_per_second=2):
            yield
        return
    lines = PlainLines(lambda line: console.print(line, soft_wrap=True))
    stage.told = lambda: lines.tell(stage.recorder, time.time(), stage.status)
    yield
    console.print(view())


def _submit(stage: Stage, console: Console) -> None:
    lifecycle = stage.assembly.lifecycle(lambda sentence: console.print(sentence, style="dim", markup=False))
    lifecycle.step(stage.specs(), time.time())
    running = {topology.name for topology in stage.assembly.storm.running()}
    missing = [workload.name for workload in WORKLOADS if workload.name not in running]
    if missing:
        raise DemoError(f"not submitted: {', '.join(missing)} (the reason stands above)")


def write_rate(path: Path, tuples_per_second: int) -> None:
    """Tell a running workload its rate; whole or not at all."""
    fresh = path.with_suffix(".new")
    fresh.write_text(f"steady:{tuples_per_second}\n", encoding="utf-8")
    fresh.replace(path)

"""The demo's scenario on a simulated cluster: the same topologies, loads, phases, settings and report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from storm_operator.console.site import PageAddress, SinglePage
from storm_operator.core.distances import Distances
from storm_operator.core.plan_record import PlanState
from storm_operator.core.settings import Mode
from storm_operator.demo.ended import Ended
from storm_operator.demo.figures import PhaseFigures, conclusion, headline, nothing_compared
from storm_operator.demo.recorder import Recorder
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
from storm_operator.demo.view import picture, render
from storm_operator.loop_ports import Audience, Listener
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulated_page import Pace, shown_page
from storm_operator.simulator.measure import Meter
from storm_operator.simulator.model import ClusterModel, SimulatedSupervisor, SimulatedTopology, Timings
from storm_operator.simulator.workloads import reference_chain, word_count
from storm_operator.standalone import stop_on_signals

MACHINES = 4
MACHINE_MILLICORES = 1000.0
ONE_WAY_DELAY_MS = 2.0
PORTS = tuple(range(6700, 6706))
QUICK = Timings(scheduling_seconds=1.0, supervisor_timeout_seconds=15.0)
"""The demo's real cluster is set to react quickly too."""
DURATION_LIMIT_SECONDS = 3600.0
SUBJECT = "a simulated Storm cluster"
NOTE = "Simulated: no JVM ran. docs/explanation/simulator.md says how far such figures can be trusted."


@dataclass(slots=True)
class Dial:
    """A load that is turned by hand."""

    tuples_per_second: float

    def rate_at(self, seconds: float) -> float:
        return self.tuples_per_second


@dataclass(slots=True)
class SimulatedDemo:
    """The demo in progress."""

    stage: SimulatedStage
    dials: dict[str, Dial]
    recorder: Recorder
    mode: Mode = Mode.OBSERVE
    load: int = BASE
    after_period: Callable[[], None] = lambda: None

    @property
    def now(self) -> float:
        return self.stage.cluster.clock.now()

    def set_load(self, load: int) -> None:
        self.load = load
        for workload in WORKLOADS:
            self.dials[workload.name].tuples_per_second = float(workload.rates[load])

    def begin(self, title: str) -> None:
        """A phase, under the load that is set."""
        self.recorder.begin(title, self.now, offered_per_second(self.load))

    def run_for(self, seconds: float) -> None:
        self.run_until(lambda: False, seconds)

    def run_until(self, condition: Callable[[], bool], limit_seconds: float) -> bool:
        """Period after period until `condition` or the limit; whether the condition came true."""
        files = {workload.name: "" for workload in WORKLOADS}
        deadline = self.now + limit_seconds
        while self.now < deadline:
            self.stage.run_period(specs("", files, self.mode))
            self.after_period()
            if condition():
                return True
        return False

    def measure(self, title: str, seconds: float) -> PhaseFigures:
        """A phase of its own, measured from its start to its end and nothing else."""
        self.run_until(self.is_complete, DURATION_LIMIT_SECONDS)
        self.begin(title)
        meter, failed = Meter(self.stage.engine), float(self.stage.engine.totals.failed.sum())
        self.run_for(seconds)
        latency, snapshot = meter.mixed_latency(), meter.read()
        meter.close()
        acked = [rates.acked_per_second for rates in snapshot.rates.values()]
        known = [value for value in acked if value is not None]
        return PhaseFigures(
            latency=latency,
            inter_supervisor_tuples_per_second=(
                snapshot.traffic.inter_supervisor(snapshot.assignment) if snapshot.traffic_is_known else None
            ),
            throughput_tuples_per_second=sum(known) if len(known) == len(acked) else None,
            failed_tuples=float(self.stage.engine.totals.failed.sum()) - failed,
            supervisors_used=len(snapshot.assignment.used_supervisors()),
            cpu_millicores=sum(snapshot.supervisor_cpu_millicores.values()),
        )

    def is_complete(self) -> bool:
        return bool(self.recorder.points) and self.recorder.points[-1].inter_supervisor_per_second is not None

    def supervisors_used(self) -> int:
        return self.recorder.points[-1].supervisors_used if self.recorder.points else 0

    def is_calm(self) -> bool:
        """Whether the last plan was verified."""
        records = self.stage.loop.memory.records
        return bool(records) and records[-1].state is PlanState.VERIFIED and self.is_complete()


def play_simulated(minutes: float, output: Path, console: Console) -> Ended:
    """Play the demo and write the report into `output`."""
    demo = simulated_demo()
    figures = play(demo, durations(minutes))
    now = demo.now
    console.print(render(demo.recorder, now, "simulated, at its end"))
    _, page = write_report(output, demo.recorder, *figures, notes=(NOTE,), subject=SUBJECT)
    _conclude(demo, figures, output, console)
    return Ended(page, compared=nothing_compared(demo.recorder) is None)


def play_beside_page(minutes: float, output: Path, console: Console, port: int, pace: float) -> Ended:
    """The same at a pace that people can follow, beside the operator's page, which stays until Ctrl-C.

    KeyboardInterrupt where that comes before the end.
    """
    page = SinglePage("demo", may_approve=True)
    demo = simulated_demo(audience=page.watcher)
    pacer = Pace(PERIOD_SECONDS, pace, stop_on_signals())
    page.proposals = lambda: demo.stage.loop.memory.proposals

    def between_periods() -> None:
        page.carry_out(demo.stage.loop.desk)
        pacer.rest()
        if pacer.stop.is_set():
            raise KeyboardInterrupt

    demo.after_period = between_periods
    with shown_page(page, PageAddress(port), console.print):
        figures = play(demo, durations(minutes))
        page.end()
        _, report_page = write_report(output, demo.recorder, *figures, notes=(NOTE,), subject=SUBJECT)
        _conclude(demo, figures, output, console)
        console.print("the demo has ended; the page stays until Ctrl-C")
        pacer.stop.wait()
    return Ended(report_page, compared=nothing_compared(demo.recorder) is None)


def _conclude(demo: SimulatedDemo, figures: tuple[PhaseFigures, PhaseFigures], output: Path, console: Console) -> None:
    for sentence in conclusion(demo.recorder, *figures):
        console.print(sentence, markup=False, emoji=False, soft_wrap=True)
    (output / "view.svg").write_text(picture(demo.recorder, headline(demo.recorder, *figures)), encoding="utf-8")


def simulated_demo(seed: int = 0, audience: Listener | None = None) -> SimulatedDemo:
    """The demo's cluster with its topologies as Even places them, before anything happens."""
    dials = {workload.name: Dial(float(workload.rates[BASE])) for workload in WORKLOADS}
    model = ClusterModel(
        supervisors=tuple(
            SimulatedSupervisor(f"machine-{n}", f"machine-{n}", PORTS, MACHINE_MILLICORES)
            for n in range(1, MACHINES + 1)
        ),
        topologies=_topologies(dials),
        distances=Distances({}, default_ms=2.0 * ONE_WAY_DELAY_MS),
        timings=QUICK,
    )
    recorder = Recorder()
    scenario = Scenario("demo", model, DURATION_LIMIT_SECONDS, period_seconds=PERIOD_SECONDS, seed=seed)
    listeners: tuple[Listener, ...] = (recorder,) if audience is None else (recorder, audience)
    return SimulatedDemo(SimulatedStage(scenario, Audience(listeners, _fail)), dials, recorder)


def play(demo: SimulatedDemo, phases: Durations) -> tuple[PhaseFigures, PhaseFigures]:
    """Even first, then managed, then the load steps up and falls; figures of the first two."""
    demo.begin("warm-up")
    demo.run_for(phases.warm_up)
    baseline = demo.measure(EVEN, phases.measured)
    demo.begin("takeover")
    demo.mode = Mode.ENFORCE
    demo.run_until(demo.is_calm, phases.takeover_limit)
    managed = demo.measure(MANAGED, phases.measured)
    demo.set_load(PEAK)
    demo.begin("load step")
    demo.run_for(phases.peak)
    demo.set_load(LOW)
    demo.begin("load falls")
    used = demo.supervisors_used()
    demo.run_until(lambda: demo.supervisors_used() < used and demo.is_calm(), phases.fall_limit)
    demo.recorder.end(demo.now)
    return baseline, managed


def _fail(sentence: str) -> None:
    raise RuntimeError(sentence)


def _topologies(dials: dict[str, Dial]) -> tuple[SimulatedTopology, ...]:
    """What demo.scenario submits (`WORKLOADS`): workers, parallelism and CPU as its arguments say."""
    return (
        word_count(
            dials["wordcount"],
            parallelism={"sentences": 1, "split": 2, "count": 3},
            cpu_ms={"split": 0.2, "count": 0.25},
            num_workers=4,
            message_timeout_seconds=10.0,
        ),
        reference_chain(
            dials["chain"],
            stages=5,
            parallelism={"spout": 1, "simple": 1, "stateful": 1, "ack": 1},
            topology_id="chain-2",
            name="chain",
            num_workers=3,
            message_timeout_seconds=10.0,
        ),
    )

"""The whole loop on a fake cluster and a fake clock: one topology, spread over three supervisors, to be gathered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from builders import (
    PERIOD_SECONDS,
    chain_topology,
    component_load,
    even_traffic,
    history,
    placed,
    snapshot,
    supervisors,
)
from fake_cluster import FakeClock, FakeCluster
from storm_operator.apply import Applier
from storm_operator.control_loop import ControlLoop, PassReport
from storm_operator.core.decision import Hold, Plan
from storm_operator.core.model import Assignment, ExecutorLoad
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.settings import Mode, ResourceSettings, SchedulingSettings, Separation
from storm_operator.core.snapshot import (
    ClusterSnapshot,
    Completeness,
    ComponentLoad,
    LatencySummary,
    LoadPeriod,
    TopologyRates,
)
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_cluster import MemoryJournal

WORDS = chain_topology("words", ("spout", 1), ("split", 2), ("count", 2), stateful=("count",))
SPREAD = placed(WORDS, {"spout": "s1", "split": ["s2", "s3"], "count": ["s2:6701", "s3:6701"]})
RATE = 300.0
SETTINGS = SchedulingSettings(settling_seconds=20.0, minimum_periods=1, separation=Separation.ALWAYS)
SPECS = {
    "words": TopologySpec(
        "words", AdoptSource(), scheduling=SETTINGS, resources=ResourceSettings(theta_millicores=50.0)
    )
}


@dataclass
class FakeObserver:
    """Always the same traffic and CPU, wherever the executors are; latency as told."""

    cluster: FakeCluster
    latency_ms: float = 8.0
    missing: bool = False
    error: Exception | None = None
    gone: frozenset[str] = frozenset()
    """Supervisors that have died."""
    silent: tuple[str, ...] = ()
    """Supervisors whose agents do not answer."""
    capacity_millicores: float = 1000.0
    """Of each supervisor."""
    stopped: bool = False
    """Nothing is acked."""
    unknown: bool = False
    """What is acked, and how fast."""
    counted_seconds: float = PERIOD_SECONDS
    """What lies between the two readings that figures are made of."""
    problems: tuple[str, ...] = ()
    """What could not be read, though all executors were measured."""
    queued: float | None = None
    """Nothing is ever acked: so many tuples wait for each bolt."""

    def observe(
        self,
        specs: Mapping[str, TopologySpec],
        history: tuple[LoadPeriod, ...],
        now_seconds: float,
        period_seconds: float,
        steady_since_seconds: float,
    ) -> ClusterSnapshot:
        if self.error is not None:
            raise self.error
        loads = {name: [component_load(RATE, cpu=100.0)] for name in ("spout", "split", "count")}
        picture = snapshot(
            (WORDS,),
            [one for one in supervisors(3, self.capacity_millicores) if one.id not in self.gone],
            self.cluster.assignment.slot_of,
            rates=even_traffic(WORDS, RATE),
            periods=past(loads, now_seconds, self.counted_seconds),
        )
        latency = LatencySummary(self.latency_ms, self.latency_ms, self.latency_ms, 1000.0)
        rates = TopologyRates(0.0, 0.0, None) if self.stopped else TopologyRates(RATE, 0.0, latency)
        picture = replace(picture, taken_at_seconds=now_seconds, rates={} if self.unknown else {"words": rates})
        if self.queued is not None:
            bolt, spout = ExecutorLoad(100.0, RATE, RATE, RATE, self.queued, 0.0), ExecutorLoad(100.0, RATE, RATE, RATE)
            own = {executor: spout if executor.component == "spout" else bolt for executor in WORDS.executors}
            picture = replace(picture, loads=own, rates={"words": TopologyRates(0.0, 0.0, None)})
        if self.problems:
            picture = replace(picture, completeness=Completeness(5, (), 0.0, self.problems))
        if self.silent:
            picture = replace(picture, completeness=Completeness(5, (), 0.0, silent_supervisors=self.silent))
        if self.missing:
            executor = WORDS.executors[0]
            picture = replace(picture, completeness=Completeness(5, (executor,), 0.0, ("agent s1 is silent",)))
        return picture


def past(
    loads: Mapping[str, list[ComponentLoad]], now_seconds: float, counted_seconds: float
) -> tuple[LoadPeriod, ...]:
    (only,) = history("words", loads)
    return (replace(only, ended_at_seconds=now_seconds, period_seconds=counted_seconds),)


@dataclass
class Audience:
    reports: list[PassReport] = field(default_factory=list)
    records: list[PlanRecord] = field(default_factory=list)

    def on_pass(self, report: PassReport) -> None:
        self.reports.append(report)

    def on_record(self, record: PlanRecord) -> None:
        self.records.append(record)


@dataclass
class FakeJournal(MemoryJournal):
    """Keeps what it is given, but for one save that it was told to refuse."""

    kept: PlanRecord | None = None
    refusal: Exception | None = None
    refuses: Callable[[PlanRecord], bool] = lambda _: True
    refused: int = 0

    def refuse_next(self, refusal: Exception, of: Callable[[PlanRecord], bool] = lambda _: True) -> None:
        """Raise `refusal` in the next save of such a record."""
        self.refusal, self.refuses = refusal, of

    def save(self, record: PlanRecord) -> None:
        if self.refusal is not None and self.refuses(record):
            refusal, self.refusal = self.refusal, None
            self.refused += 1
            raise refusal
        super().save(record)


@dataclass
class Scene:
    cluster: FakeCluster
    observer: FakeObserver
    loop: ControlLoop
    journal: FakeJournal
    audience: Audience

    def run(self, specs: Mapping[str, TopologySpec] = SPECS, seconds: float = 10.0) -> Plan | Hold:
        self.cluster.clock.seconds += seconds
        return self.loop.run_once(specs).decisions[0][1]


def scene() -> Scene:
    cluster = FakeCluster(Assignment(SPREAD), FakeClock())
    observer, journal, audience = FakeObserver(cluster), FakeJournal(), Audience()
    loop = ControlLoop(
        observer=observer,
        applier=Applier(cluster, cluster, cluster, cluster.clock),
        journal=journal,
        clock=cluster.clock,
        listener=audience,
        new_plan_id=lambda now: f"p-{now:.0f}",
    )
    return Scene(cluster, observer, loop, journal, audience)


def with_mode(mode: Mode) -> dict[str, TopologySpec]:
    return {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, mode=mode))}


def last_state(played: Scene) -> PlanState:
    return played.loop.memory.records[-1].state

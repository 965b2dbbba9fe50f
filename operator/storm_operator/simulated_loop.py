"""The control loop on a simulated cluster: scenario and specs in, report out. The very loop that runs real clusters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from storm_operator.apply import Applier
from storm_operator.control_loop import ControlLoop, Listener, PassReport
from storm_operator.core.decision import Hold
from storm_operator.core.model import Assignment
from storm_operator.core.placement.even import deal_out, interleaved_free_slots
from storm_operator.core.plan_record import PlanRecord
from storm_operator.core.snapshot import ClusterSnapshot, LoadPeriod
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.executor_counts import ExecutorCounts
from storm_operator.loop_ports import NoProfiles, ProfileSource
from storm_operator.simulated_cluster import EPOCH_SECONDS, MemoryJournal, SimulatedCluster
from storm_operator.simulation_report import PlanSummary, Point, SimulationReport, Sums, TopologyPoint
from storm_operator.simulator.engine import DEFAULT_STEP_SECONDS, Engine
from storm_operator.simulator.milestones import Counted, Milestones
from storm_operator.simulator.model import MS_PER_SECOND, ClusterModel
from storm_operator.simulator.totals import Totals


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is simulated and for how long. `start` None: as Storm's Even scheduler places it.

    `drawn_trees` is how many tuple trees of each topology are drawn in a step: more give smoother latencies.
    """

    name: str
    model: ClusterModel
    duration_seconds: float
    start: Assignment | None = None
    period_seconds: float = 10.0
    warm_up_seconds: float = 0.0
    seed: int = 0
    step_seconds: float = DEFAULT_STEP_SECONDS
    drawn_trees: int = 32

    @property
    def end_seconds(self) -> float:
        """When the last period ends that is over within the duration."""
        return math.floor(self.duration_seconds / self.period_seconds + 1e-9) * self.period_seconds


def even_start(model: ClusterModel) -> Assignment:
    """The assignment that Storm's Even scheduler gives a cluster that is empty so far."""
    supervisors = tuple(supervisor.as_supervisor() for supervisor in model.supervisors)
    placed = Assignment({})
    for topology in sorted(model.topologies, key=lambda topology: topology.id):
        free = interleaved_free_slots(supervisors, placed.slot_of.values())
        if not free:
            raise ValueError(f"topology {topology.name} needs at least one free slot and there is none")
        executors = topology.as_topology().executors
        placed = placed.with_moves(deal_out(executors, free[: max(1, topology.num_workers)]))
    return placed


def simulate(
    scenario: Scenario,
    specs: Mapping[str, TopologySpec] | None = None,
    audience: Listener | None = None,
    played: Callable[[float], None] = lambda _: None,
    profiles: ProfileSource | None = None,
) -> SimulationReport:
    """Play `scenario`, with the topologies in `specs` (by name) managed; None: the assignment stays as it starts.

    `played` hears after each period which share of the scenario is over; `profiles` None: nothing was learned.
    """
    stage = SimulatedStage(scenario, audience, profiles)
    while not stage.is_over:
        stage.run_period(specs)
        played(min(stage.engine.now / scenario.end_seconds, 1.0))
    policies = sorted({spec.scheduling.policy for spec in specs.values()}) if specs else ["none"]
    return stage.report(", ".join(policies))


@dataclass(slots=True)
class _Notes:
    """A listener that keeps what the report needs, and tells `audience`."""

    audience: Listener | None = None
    records: dict[str, PlanRecord] = field(default_factory=dict)

    def on_pass(self, report: PassReport) -> None:
        if self.audience is not None:
            self.audience.on_pass(report)

    def on_record(self, record: PlanRecord) -> None:
        self.records[record.plan.id] = record
        if self.audience is not None:
            self.audience.on_record(record)


class SimulatedStage:
    """One simulation in progress, period by period; `loop` and `cluster` may be looked at and used in between."""

    def __init__(
        self, scenario: Scenario, audience: Listener | None = None, profiles: ProfileSource | None = None
    ) -> None:
        self.scenario = scenario
        start = scenario.start if scenario.start is not None else even_start(scenario.model)
        self.engine = Engine(scenario.model, start, scenario.seed, scenario.step_seconds, scenario.drawn_trees)
        self._milestones = Milestones(self.engine, {scenario.warm_up_seconds, scenario.end_seconds})
        self.cluster = SimulatedCluster(self.engine, self._milestones)
        self.notes = _Notes(audience)
        self.loop = ControlLoop(
            observer=self.cluster,
            applier=Applier(self.cluster, self.cluster, self.cluster, self.cluster.clock),
            journal=MemoryJournal(),
            clock=self.cluster.clock,
            listener=self.notes,
            new_plan_id=self._new_plan_id,
            period_seconds=scenario.period_seconds,
            profiles=profiles or NoProfiles(),
        )
        self.counts = ExecutorCounts(self._hear_of_counts)
        self._heard: list[str] = []
        self.points: list[Point] = []
        self._plans_made = 0
        self._last_pass = 0.0
        self._history: tuple[LoadPeriod, ...] = ()
        self._last = self.engine.totals.summed()
        self._last_at = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the next period would end after the scenario."""
        return self._next_pass > self.scenario.end_seconds + 1e-6

    @property
    def _next_pass(self) -> float:
        """A period after the last one; at once where applying a plan took longer."""
        return max(self._last_pass + self.scenario.period_seconds, self.cluster.clock.now() - EPOCH_SECONDS)

    def run_period(self, specs: Mapping[str, TopologySpec] | None) -> ClusterSnapshot | None:
        """Simulate until the next period is over, and let the loop have its pass if there is something to manage.

        What is left after the last whole one, where plans have shifted them, passes by without another.
        """
        self._last_pass = self._next_pass
        self.cluster.clock.sleep_until(EPOCH_SECONDS + self._last_pass)
        totals, at = self.engine.totals.summed(), self.engine.now
        if specs:
            report = self.loop.run_once(specs)
            self._heard.clear()
            self.counts.follow(specs, report, self.loop, self.cluster.change_counts)
            decisions = [_described(made) for _, made in report.decisions]
            snapshot, decision = report.snapshot, "; ".join([*decisions, *self._heard])
        else:
            snapshot, decision = self.cluster.meter.read(self._history), ""
            self._history = snapshot.history
        if snapshot is not None:
            self.points.append(self._point(snapshot, totals.since(self._last), at - self._last_at, decision))
        self._last, self._last_at = totals, at
        if self.is_over:
            self.cluster.clock.sleep_until(EPOCH_SECONDS + self.scenario.end_seconds)
        return snapshot

    @property
    def counted(self) -> Totals:
        """What counts: from the warm-up to the scenario's end, or up to now. By topology; all executors as one."""
        began, ended = self._bounds()
        return ended.totals.since(began.totals)

    def _bounds(self) -> tuple[Counted, Counted]:
        counted_at, scenario = self._milestones.counted_at, self.scenario
        return counted_at(scenario.warm_up_seconds), counted_at(scenario.end_seconds)

    def report(self, policy: str) -> SimulationReport:
        """Its sums end with the scenario, also where a plan was still being applied then."""
        return SimulationReport(
            scenario=self.scenario.name,
            policy=policy,
            period_seconds=self.scenario.period_seconds,
            warm_up_seconds=self.scenario.warm_up_seconds,
            points=tuple(self.points),
            plans=tuple(_plan_summary(record) for record in self.notes.records.values()),
            sums=_sums(*self._bounds()),
        )

    def _hear_of_counts(self, topology: str, reason: str, message: str, warning: bool) -> None:
        self._heard.append(f"{topology}: {message}")

    def _new_plan_id(self, now_seconds: float) -> str:
        self._plans_made += 1
        return f"p-{now_seconds - EPOCH_SECONDS:.0f}-{self._plans_made}"

    def _point(self, snapshot: ClusterSnapshot, counted: Totals, seconds: float, decision: str) -> Point:
        per_second = 1.0 / max(seconds, 1e-9)
        cores = per_second / MS_PER_SECOND
        is_known = snapshot.traffic_is_known
        traffic, assignment = snapshot.traffic, snapshot.assignment
        topologies = {}
        for number, topology in enumerate(self.engine.topologies):
            rates = snapshot.rates[topology.id]
            slots = {slot for e, slot in snapshot.assignment.slot_of.items() if e.topology_id == topology.id}
            topologies[topology.name] = TopologyPoint(
                acked_per_second=rates.acked_per_second,
                failed_per_second=rates.failed_per_second,
                replayed_per_second=float(counted.replayed[number]) * per_second,
                offered_per_second=float(counted.offered[number]) * per_second,
                latency_mean_ms=rates.latency.mean_ms if rates.latency else None,
                latency_p50_ms=rates.latency.p50_ms if rates.latency else None,
                latency_p99_ms=rates.latency.p99_ms if rates.latency else None,
                workers=len(slots),
                supervisors=len({slot.supervisor_id for slot in slots}),
                executors=len(snapshot.topology(topology.id).executors),
            )
        return Point(
            at_seconds=snapshot.taken_at_seconds - EPOCH_SECONDS,
            topologies=topologies,
            inter_supervisor_tuples_per_second=traffic.inter_supervisor(assignment) if is_known else None,
            inter_worker_tuples_per_second=traffic.inter_worker(assignment) if is_known else None,
            supervisors_used=len(assignment.used_supervisors()),
            cpu_used_cores=float(counted.supervisor_cpu_ms.sum()) * cores,
            over_provided_cores=float(counted.over_provided_ms.sum()) * cores,
            under_provided_cores=float(counted.under_provided_ms.sum()) * cores,
            decision=decision,
        )


def _described(decision: object) -> str:
    if isinstance(decision, Hold):
        return f"hold, {decision.reason.value}: {decision.message}"
    return f"plan {decision.id}: {decision.reason}"  # type: ignore[attr-defined]


def _plan_summary(record: PlanRecord) -> PlanSummary:
    return PlanSummary(
        id=record.plan.id,
        at_seconds=record.started_at_seconds - EPOCH_SECONDS,
        state=record.state.value,
        reason=record.plan.reason,
        message=record.message,
        moves=len(record.plan.moves),
        restarted_workers=len(record.plan.started_workers),
        seconds_to_in_force=record.seconds_to_in_force,
        seconds_to_running=record.seconds_to_running,
    )


def _sums(began: Counted, ended: Counted) -> Sums:
    counted = ended.totals.since(began.totals)
    return Sums(
        offered=float(counted.offered.sum()),
        acked=float(counted.acked.sum()),
        failed=float(counted.failed.sum()),
        replayed=float(counted.replayed.sum()),
        unsent=float(counted.unsent.sum()),
        lost_tuples=float(counted.lost.sum()),
        cpu_used_core_seconds=float(counted.supervisor_cpu_ms.sum()) / MS_PER_SECOND,
        over_provided_core_seconds=float(counted.over_provided_ms.sum()) / MS_PER_SECOND,
        under_provided_core_seconds=float(counted.under_provided_ms.sum()) / MS_PER_SECOND,
        worker_restarts=ended.restarts - began.restarts,
        forgotten=float(counted.forgotten.sum()),
    )

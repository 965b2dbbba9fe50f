"""Everything the demo saw, in order: a point for each pass of the loop, the plans, and the phases."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from storm_operator.control_loop import PassReport
from storm_operator.core.decision import Hold
from storm_operator.core.plan_record import PlanRecord


@dataclass(frozen=True, slots=True)
class Point:
    """What one pass measured. Per topology by name, per supervisor by host; None is unknown."""

    at_seconds: float
    latency_p50_ms: dict[str, float | None]
    latency_p99_ms: dict[str, float | None]
    throughput_per_second: dict[str, float | None]
    inter_supervisor_per_second: float | None
    cpu_millicores: dict[str, float]
    supervisors_used: int
    decision: str

    @property
    def acked_per_second(self) -> float | None:
        """Of all topologies together."""
        acked = [value for value in self.throughput_per_second.values() if value is not None]
        return sum(acked) if acked and len(acked) == len(self.throughput_per_second) else None


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the demo with a title for the plots; `ended_at_seconds` is None while it goes on.

    `offered_per_second` are root tuples of all topologies together.
    """

    title: str
    started_at_seconds: float
    offered_per_second: float
    ended_at_seconds: float | None = None


@dataclass(slots=True)
class Recorder:
    """A listener of the control loop that forgets nothing."""

    points: list[Point] = field(default_factory=list)
    plans: dict[str, PlanRecord] = field(default_factory=dict)
    phases: list[Phase] = field(default_factory=list)
    hosts: dict[str, str] = field(default_factory=dict)
    decisions: list[tuple[float, str]] = field(default_factory=list)
    """When each pass decided, and what; also of those that have no point, as where the cluster was out of reach."""

    def on_pass(self, report: PassReport) -> None:
        if report.decisions:
            self.decisions.append((report.at_seconds, described(report)))
        if report.snapshot is not None:
            self.hosts |= {supervisor.id: supervisor.host for supervisor in report.snapshot.supervisors}
            self.points.append(point_of(report))

    def on_record(self, record: PlanRecord) -> None:
        self.plans[record.plan.id] = record

    def begin(self, title: str, now_seconds: float, offered_per_second: float) -> None:
        """End the phase that goes on, if any, and begin the next."""
        self.end(now_seconds)
        self.phases.append(Phase(title, now_seconds, offered_per_second))

    def end(self, now_seconds: float) -> None:
        if self.phases and self.phases[-1].ended_at_seconds is None:
            self.phases[-1] = replace(self.phases[-1], ended_at_seconds=now_seconds)

    def last_titled(self, title: str) -> Phase | None:
        """Of the phases with that title the one that counts: a phase that is played once more has it again."""
        return next((phase for phase in reversed(self.phases) if phase.title == title), None)

    def at_end_of(self, phase: Phase) -> Point | None:
        """The last that was measured in `phase`, or before it began."""
        ended = phase.ended_at_seconds
        before = [point for point in self.points if ended is None or point.at_seconds <= ended]
        return before[-1] if before else None


def point_of(report: PassReport) -> Point:
    """The pass as a point of the plots; ValueError when it has no snapshot."""
    snapshot = report.snapshot
    if snapshot is None:
        raise ValueError("a pass without a snapshot is no point")
    names = {topology.id: topology.name for topology in snapshot.topologies}
    hosts = {supervisor.id: supervisor.host for supervisor in snapshot.supervisors}
    latencies = {names[i]: rates.latency for i, rates in snapshot.rates.items()}
    return Point(
        at_seconds=report.at_seconds,
        latency_p50_ms={name: latency.p50_ms if latency else None for name, latency in latencies.items()},
        latency_p99_ms={name: latency.p99_ms if latency else None for name, latency in latencies.items()},
        throughput_per_second={names[i]: rates.acked_per_second for i, rates in snapshot.rates.items()},
        inter_supervisor_per_second=(
            snapshot.traffic.inter_supervisor(snapshot.assignment) if snapshot.traffic_is_known else None
        ),
        cpu_millicores={hosts[i]: used for i, used in snapshot.supervisor_cpu_millicores.items() if i in hosts},
        supervisors_used=len(snapshot.assignment.used_supervisors()),
        decision=described(report),
    )


def described(report: PassReport) -> str:
    """What the pass decided, in one line; empty where there was nothing to decide about."""
    return "; ".join(describe(decision) for _, decision in report.decisions)


def describe(decision: Any) -> str:
    """One line for a decision."""
    if isinstance(decision, Hold):
        return f"hold, {decision.reason.value}: {decision.message}"
    return f"plan {decision.id}: {decision.reason}"

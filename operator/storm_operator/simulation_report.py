"""What a simulation saw, as a value: a point for each period, the plans, and sums. To JSON and back."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

VERSION = 2


@dataclass(frozen=True, slots=True)
class TopologyPoint:
    """One topology in one period; None is unknown (its spouts restarted, or nothing was complete)."""

    acked_per_second: float | None
    failed_per_second: float | None
    replayed_per_second: float
    offered_per_second: float
    latency_mean_ms: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    workers: int
    supervisors: int
    executors: int


@dataclass(frozen=True, slots=True)
class Point:
    """One period that ended at `at_seconds` (since the simulation began). CPU is in core-seconds per second.

    Tuples are None in a period in which any worker began to run, or did not: not all of them were measured.
    """

    at_seconds: float
    topologies: Mapping[str, TopologyPoint]
    inter_supervisor_tuples_per_second: float | None
    inter_worker_tuples_per_second: float | None
    supervisors_used: int
    cpu_used_cores: float
    over_provided_cores: float
    under_provided_cores: float
    decision: str


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """One plan, as far as it came. `predicted_latency_ms` and `measured_latency_ms` are means."""

    id: str
    at_seconds: float
    state: str
    reason: str
    message: str
    moves: int
    restarted_workers: int
    seconds_to_in_force: float | None
    seconds_to_running: float | None


@dataclass(frozen=True, slots=True)
class Sums:
    """Over the whole simulation (after its warm-up): counts of trees, core-seconds, restarts of workers.

    `failed` are those that Storm calls so, `forgotten` those whose spout restarted while they were pending.
    """

    offered: float
    acked: float
    failed: float
    replayed: float
    unsent: float
    lost_tuples: float
    cpu_used_core_seconds: float
    over_provided_core_seconds: float
    under_provided_core_seconds: float
    worker_restarts: int
    forgotten: float = 0.0

    @property
    def unsuccessful(self) -> float:
        """Trees that were sent and of which nobody heard that they were complete."""
        return self.failed + self.forgotten


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """`warm_up_seconds` at the beginning count neither for `sums` nor for the means below."""

    scenario: str
    policy: str
    period_seconds: float
    warm_up_seconds: float
    points: tuple[Point, ...]
    plans: tuple[PlanSummary, ...]
    sums: Sums

    @property
    def counted_points(self) -> tuple[Point, ...]:
        return tuple(point for point in self.points if point.at_seconds > self.warm_up_seconds)

    @property
    def counted_plans(self) -> tuple[PlanSummary, ...]:
        """Those that came into force after the warm-up, as the restarts that `sums` count did."""
        return tuple(
            plan
            for plan in self.plans
            if plan.seconds_to_in_force is not None
            and plan.at_seconds + plan.seconds_to_in_force > self.warm_up_seconds
        )

    def mean_latency_ms(self, topology: str | None = None, figure: str = "latency_mean_ms") -> float | None:
        """Mean of a latency figure over periods, weighted with the trees that were complete in each."""
        weighted = [
            (value, acked)
            for one in self._of(topology)
            if (value := getattr(one, figure)) is not None and (acked := one.acked_per_second)
        ]
        total = sum(acked for _, acked in weighted)
        return sum(value * acked for value, acked in weighted) / total if total else None

    def median_latency_ms(self, topology: str | None = None, figure: str = "latency_p50_ms") -> float | None:
        values = [getattr(one, figure) for one in self._of(topology)]
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    def mean_of(self, figure: str) -> float:
        """Mean of a figure of `Point` over the periods in which it is known; NaN when there is none."""
        values = [getattr(point, figure) for point in self.counted_points]
        known = [float(value) for value in values if value is not None]
        return statistics.fmean(known) if known else math.nan

    def _of(self, topology: str | None) -> Sequence[TopologyPoint]:
        return [
            one
            for point in self.counted_points
            for name, one in sorted(point.topologies.items())
            if topology is None or name == topology
        ]

    def to_json(self) -> str:
        return json.dumps({"version": VERSION, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> SimulationReport:
        """ValueError when the text is no report of this version."""
        document = json.loads(text)
        if not isinstance(document, dict) or document.pop("version", None) != VERSION:
            raise ValueError(f"no simulation report of version {VERSION}")
        points = tuple(
            Point(**{**point, "topologies": {n: TopologyPoint(**one) for n, one in point["topologies"].items()}})
            for point in document.pop("points")
        )
        plans = tuple(PlanSummary(**plan) for plan in document.pop("plans"))
        return cls(points=points, plans=plans, sums=Sums(**document.pop("sums")), **document)

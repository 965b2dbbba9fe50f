"""The metrics of one Storm cluster: a listener to its loop that keeps what the last pass said."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from storm_operator.core.forecast import ComponentKey, LoadForecast
from storm_operator.core.model import name_of_topology
from storm_operator.core.plan_record import PlanRecord
from storm_operator.loop_ports import PassReport
from storm_operator.operator_metrics.durations import Durations
from storm_operator.operator_metrics.holds import HoldBook
from storm_operator.operator_metrics.plans import PlanBook
from storm_operator.operator_metrics.readings import Reading
from storm_operator.operator_metrics.supervisors import pair_readings, supervisor_readings
from storm_operator.operator_metrics.topologies import component_readings, topology_readings

RESIZE_OUTCOMES = ("asked", "refused")

NOTHING_SEEN = PassReport(0.0, None, None, ())


@dataclass(slots=True)
class ClusterMetrics:
    """A `loop_ports.Listener`. Safe for threads: the loop tells, scrapes ask.

    `namespace_of` gives the namespace of a topology by its name, empty where there are none. `resizes_pods` tells
    whether the CPU limits of pods are this operator's to set. `stopwatch` is a monotonic clock in seconds.
    """

    nimbus: str
    durations: Durations
    namespace_of: Callable[[str], str] = lambda _: ""
    resizes_pods: bool = False
    stopwatch: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _passes: int = 0
    _failed_passes: int = 0
    _last_pass_at: float | None = None
    _is_reported: bool = False
    """Whether the pass that goes on came as far as to a report."""
    _of_loop: tuple[Reading, ...] = ()
    _of_snapshot: tuple[Reading, ...] = ()
    _forecasts: Mapping[ComponentKey, LoadForecast] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    """Of the managed topologies, by id."""
    _plans: PlanBook = field(default_factory=PlanBook)
    _holds: HoldBook = field(default_factory=HoldBook)
    _resizes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESIZE_OUTCOMES, 0))
    _resize_problems: tuple[str, ...] = ()

    def pass_ended(self, seconds: float, failed: bool, managed: int, period_seconds: float) -> None:
        """A pass is over, with everything around it. `managed` counts topologies, whether they run or not.

        Of one that `failed` before there was a report nothing is known: earlier figures would look like its own.
        """
        self.durations.of_pass(self.nimbus, seconds)
        if failed and not self._is_reported:
            self.on_pass(NOTHING_SEEN)
        self._is_reported = False
        with self._lock:
            self._passes += 1
            self._failed_passes += failed
            self._last_pass_at = self.stopwatch()
            self._of_loop = (
                Reading("last_pass_duration_seconds", (), seconds),
                Reading("topologies", (), managed),
                Reading("period_seconds", (), period_seconds),
            )

    def on_pass(self, report: PassReport) -> None:
        self._is_reported = True
        for step, seconds in report.step_seconds.items():
            self.durations.of_step(self.nimbus, step, seconds)
        managed = {topology_id for topology_ids, _ in report.decisions for topology_id in topology_ids}
        readings = tuple(self._readings_of(report, managed))
        with self._lock:
            self._of_snapshot = readings
            self._forecasts = report.forecasts
            if report.snapshot is not None:
                self._names = {t.id: t.name for t in report.snapshot.topologies if t.id in managed}
                self._plans.see_topologies(frozenset(self._names.values()))
            self._holds.see(report, self._names)

    def on_record(self, record: PlanRecord) -> None:
        with self._lock:
            self._plans.see_record(record, map(self._name_of, record.plan.topology_ids))

    def resize_asked(self, accepted: bool) -> None:
        """A pod's CPU limit was asked for."""
        with self._lock:
            self._resizes[RESIZE_OUTCOMES[0] if accepted else RESIZE_OUTCOMES[1]] += 1

    def resize_problems(self, reasons: Iterable[str]) -> None:
        """Why pods' CPU limits are not what was asked, a reason for each of them."""
        with self._lock:
            self._resize_problems = tuple(reasons)

    def readings(self) -> Iterable[Reading]:
        """All that is known now."""
        with self._lock:
            return (*self._loop_readings(), *self._of_snapshot, *self._plans.readings(), *self._holds.readings())

    def _readings_of(self, report: PassReport, managed: Collection[str]) -> Iterator[Reading]:
        snapshot = report.snapshot
        if snapshot is None:
            return
        completeness = snapshot.completeness
        yield Reading("metrics_completeness_ratio", (), completeness.ratio)
        if completeness.known_age_seconds is not None:
            yield Reading("metrics_age_seconds", (), completeness.known_age_seconds)
        yield Reading("metrics_problems", (), len(completeness.problems))
        yield from topology_readings(snapshot, managed, self.namespace_of)
        yield from component_readings(snapshot, managed, report.demand, report.forecasts, self._forecasts)
        yield from supervisor_readings(snapshot, report.demand)
        yield from pair_readings(snapshot)

    def _loop_readings(self) -> Iterator[Reading]:
        yield from self._of_loop
        yield Reading("passes_total", (), self._passes)
        yield Reading("failed_passes_total", (), self._failed_passes)
        if self._last_pass_at is not None:
            yield Reading("last_pass_age_seconds", (), self.stopwatch() - self._last_pass_at)
        if self.resizes_pods:
            for outcome, count in self._resizes.items():
                yield Reading("pod_resizes_total", (outcome,), count)
            for reason in sorted(set(self._resize_problems)):
                yield Reading("pod_resize_problems", (reason,), self._resize_problems.count(reason))

    def _name_of(self, topology_id: str) -> str:
        # Storm makes an id of the name, a counter and the time: good until a pass has seen it.
        return self._names.get(topology_id) or name_of_topology(topology_id)


def is_number(reading: Reading) -> bool:
    """Whether the value says anything: what never pays back has no payback time."""
    return math.isfinite(reading.value)

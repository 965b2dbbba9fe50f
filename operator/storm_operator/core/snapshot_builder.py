"""ClusterView (what Nimbus says) and MetricsWindow (what the agents say) become one ClusterSnapshot.

What could not be read is absent and named in `completeness`; nothing is replaced by zero.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from storm_operator.core.latency_histogram import summarize_latency, upper_bound
from storm_operator.core.load_history import EVERY_EXECUTOR, load_period, with_period
from storm_operator.core.measured_distances import measured_distances, problems_of_distances
from storm_operator.core.metrics_window import MetricsWindow, SeriesKey, SeriesWindow
from storm_operator.core.model import (
    Assignment,
    ComponentKind,
    Executor,
    ExecutorLoad,
    Supervisor,
    Topology,
    WorkerSlot,
    in_order,
)
from storm_operator.core.snapshot import ClusterSnapshot, Completeness, LatencySummary, LoadPeriod, TopologyRates
from storm_operator.core.traffic import TrafficMatrix
from storm_operator.core.traffic_observation import observe_traffic
from storm_operator.core.window_readings import (
    MILLICORES_PER_CORE,
    ExecutorReading,
    Place,
    WindowReadings,
    problems_of_values,
)
from storm_operator.core.wording import first_of

LATENCY_BUCKET = "storm_complete_latency_seconds_bucket"
LATENCY_SUM = "storm_complete_latency_seconds_sum"
AVAILABILITY = "storm_supervisor_availability_ratio"
CAPACITY = "storm_supervisor_cpu_capacity_cores"
SUPERVISOR_CPU = "storm_supervisor_cpu_seconds_total"
NAMED_EXECUTORS = 6

Readings = Mapping[Executor, ExecutorReading]
Histograms = Sequence[tuple[SeriesKey, SeriesWindow]]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster as Nimbus has it: who could run what, what runs, and who lives where."""

    supervisors: tuple[Supervisor, ...]
    topologies: tuple[Topology, ...]
    assignment: Assignment
    problems: tuple[str, ...] = ()


def build_snapshot(
    view: ClusterView,
    window: MetricsWindow,
    history: Sequence[LoadPeriod],
    now_seconds: float,
    period_seconds: float | None = None,
    least_shares: Mapping[str, float] = EVERY_EXECUTOR,
) -> ClusterSnapshot:
    """Join `view` and `window` by host, port and executor.

    `period_seconds` is how long it is since the snapshot before; None: nobody knows, and what was counted longest
    stands for it. Its rates are of the readings' own time all the same, which scrapes by others make differ.
    `history` is that of the snapshot before (oldest first); the new one's ends with this period, if any topology
    was measured completely in it, or as much of it as `least_shares` say (see `load_period`), and keeps as many as
    `with_period` does.
    """
    readings_in = WindowReadings(window)
    hosts = {supervisor.id: supervisor.host for supervisor in view.supervisors}
    readings = _executor_readings(view, readings_in, hosts)
    complete = {executor: reading for executor, reading in readings.items() if not reading.missing}
    counted_seconds = max((reading.counted_seconds for reading in complete.values()), default=window.window_seconds)
    located = {e: (hosts[view.assignment.slot_of[e].supervisor_id], reading) for e, reading in complete.items()}
    rates, traffic_problems = observe_traffic(view.topologies, window, located, counted_seconds)
    supervisor_cpu = _supervisor_cpu_millicores(view, readings_in)
    complete_loads = {executor: reading.load for executor, reading in complete.items()}
    for_history = {**complete_loads, **_never_busy(readings, least_shares)}
    period = load_period(view.topologies, for_history, supervisor_cpu, now_seconds, counted_seconds, least_shares)
    histograms = _histograms_by_topology(window)
    distances = measured_distances(view.supervisors, readings_in)
    problems = (
        *view.problems,
        *window.problems,
        *_problems_of_supervisors(view, readings_in),
        *_problems_of_executors(view, readings, hosts),
        *problems_of_values(window),
        *traffic_problems,
        *problems_of_distances(distances, view.supervisors, readings_in),
    )
    return ClusterSnapshot(
        taken_at_seconds=now_seconds,
        period_seconds=counted_seconds if period_seconds is None else period_seconds,
        supervisors=_measured_supervisors(view, readings_in),
        topologies=view.topologies,
        assignment=view.assignment,
        loads={executor: reading.load for executor, reading in readings.items() if reading.load != ExecutorLoad()},
        traffic=TrafficMatrix(rates, (executor for topology in view.topologies for executor in topology.executors)),
        distances=distances,
        completeness=_completeness(readings, problems, _silent_supervisors(view, readings_in)),
        supervisor_cpu_millicores=supervisor_cpu,
        rates={topology.id: _rates(topology, complete, located, histograms) for topology in view.topologies},
        worker_pids=_worker_pids(view, readings_in, hosts),
        history=with_period(history, period),
    )


def _executor_readings(view: ClusterView, readings_in: WindowReadings, hosts: Mapping[str, str]) -> Readings:
    """A reading of every placed executor of the view's topologies."""
    readings: dict[Executor, ExecutorReading] = {}
    for topology in view.topologies:
        spouts = {component.name for component in topology.components if component.kind is ComponentKind.SPOUT}
        for executor in topology.executors:
            slot = view.assignment.slot_of.get(executor)
            if slot is not None:
                place = Place(hosts.get(slot.supervisor_id, ""), slot.port)
                readings[executor] = readings_in.executor(executor, place, executor.component in spouts)
    return readings


def _never_busy(readings: Readings, least_shares: Mapping[str, float]) -> dict[Executor, ExecutorLoad]:
    """The executors whose thread nobody knows yet since no tuple has come, of topologies of which not all need to be
    measured: what they do is nothing, and not what the others of their component do."""
    return {
        executor: reading.load
        for executor, reading in readings.items()
        if least_shares.get(executor.topology_id, 1.0) < 1.0 and reading.load.never_busy
    }


def _measured_supervisors(view: ClusterView, readings_in: WindowReadings) -> tuple[Supervisor, ...]:
    """The view's supervisors with the capacity and the availability that agents measured, where they did."""
    seen_from_others: dict[str, list[float]] = {}
    for (host, peer), ratio in readings_in.by_supervisor_and_peer(AVAILABILITY).items():
        if host != peer:
            seen_from_others.setdefault(peer, []).append(min(ratio, 1.0))
    measured = []
    for supervisor in view.supervisors:
        cores = readings_in.supervisor_gauge(CAPACITY, supervisor.host)
        ratios = seen_from_others.get(supervisor.host)
        measured.append(
            replace(
                supervisor,
                cpu_capacity_millicores=(
                    MILLICORES_PER_CORE * cores if cores is not None else supervisor.cpu_capacity_millicores
                ),
                availability=statistics.median(ratios) if ratios else supervisor.availability,
            )
        )
    return tuple(measured)


def _supervisor_cpu_millicores(view: ClusterView, readings_in: WindowReadings) -> Mapping[str, float]:
    used = {}
    for supervisor in view.supervisors:
        cores = readings_in.supervisor_rate(SUPERVISOR_CPU, supervisor.host)
        if cores is not None:
            used[supervisor.id] = MILLICORES_PER_CORE * cores
    return used


def _silent_supervisors(view: ClusterView, readings_in: WindowReadings) -> tuple[str, ...]:
    """Ids of the supervisors whose agent said nothing: each answer of one has the capacity."""
    return tuple(
        supervisor.id
        for supervisor in view.supervisors
        if readings_in.supervisor_gauge(CAPACITY, supervisor.host) is None
    )


def _completeness(readings: Readings, problems: tuple[str, ...], silent_supervisors: tuple[str, ...]) -> Completeness:
    ages: dict[str, float] = {}
    for executor, reading in readings.items():
        if reading.age_seconds is not None:
            ages[executor.topology_id] = max(ages.get(executor.topology_id, 0.0), reading.age_seconds)
    return Completeness(
        expected_executors=len(readings),
        missing_executors=tuple(sorted(executor for executor, reading in readings.items() if reading.missing)),
        age_seconds=max(ages.values(), default=0.0),
        problems=problems,
        topology_age_seconds=ages,
        silent_supervisors=silent_supervisors,
    )


def _problems_of_supervisors(view: ClusterView, readings_in: WindowReadings) -> list[str]:
    hosts = [supervisor.host for supervisor in view.supervisors]
    problems = [
        f"{hosts.count(host)} supervisors have the host name {host}: their metrics cannot be told apart"
        for host in sorted(set(hosts))
        if hosts.count(host) > 1
    ]
    unmeasured = [
        supervisor.host
        for supervisor in view.supervisors
        if supervisor.cpu_capacity_millicores is None
        and readings_in.supervisor_gauge(CAPACITY, supervisor.host) is None
    ]
    if unmeasured:
        problems.append(f"the CPU capacity of {', '.join(sorted(unmeasured))} is unknown")
    return problems


def _problems_of_executors(view: ClusterView, readings: Readings, hosts: Mapping[str, str]) -> list[str]:
    """One sentence for each worker and reason: executors of a worker mostly share their fate."""
    groups: dict[tuple[str, str, WorkerSlot, str], list[str]] = {}
    names = {topology.id: topology.name for topology in view.topologies}
    for executor in in_order(readings):
        slot, reason = view.assignment.slot_of[executor], readings[executor].missing
        if reason:
            if slot.supervisor_id not in hosts:
                reason = "its supervisor is not among those that Nimbus sees"
            place = f"{hosts.get(slot.supervisor_id, slot.supervisor_id)}:{slot.port}"
            groups.setdefault((names[executor.topology_id], place, slot, reason), []).append(executor.label)
    return [
        f"worker {place} of {name}, executors {first_of(labels, most=NAMED_EXECUTORS)}: {reason}"
        for (name, place, _, reason), labels in groups.items()
    ]


def _rates(
    topology: Topology,
    complete: Readings,
    located: Mapping[Executor, tuple[str, ExecutorReading]],
    histograms: Mapping[str, Histograms],
) -> TopologyRates:
    """Acked and failed roots per second, unknown unless all spouts were read; latency of those that were."""
    spouts = [e for e in topology.executors if topology.component(e.component).kind is ComponentKind.SPOUT]
    acked = [complete[e].acked_per_second if e in complete else None for e in spouts]
    failed = [complete[e].failed_per_second if e in complete else None for e in spouts]
    return TopologyRates(
        acked_per_second=_sum_if_known(acked),
        failed_per_second=_sum_if_known(failed),
        latency=_latency(histograms.get(topology.id, ()), {e.label: located[e][0] for e in spouts if e in located}),
    )


def _sum_if_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known and len(known) == len(values) else None


def _histograms_by_topology(window: MetricsWindow) -> Mapping[str, Histograms]:
    found: dict[str, list[tuple[SeriesKey, SeriesWindow]]] = {}
    for name in (LATENCY_BUCKET, LATENCY_SUM):
        for key, series in window.named(name):
            found.setdefault(key.label("topology_id"), []).append((key, series))
    return found


def _latency(histograms: Histograms, host_of: Mapping[str, str]) -> LatencySummary | None:
    """`histograms` are those of one topology; `host_of` has the agents of its executors that were read."""
    buckets: dict[float, float] = {}
    sum_seconds = 0.0
    for key, series in histograms:
        if host_of.get(key.label("executor")) != key.label("supervisor"):
            continue
        if math.isnan(series.increase):
            return None
        if key.name == LATENCY_SUM:
            sum_seconds += series.increase
            continue
        bound = upper_bound(key.label("le"))
        if bound is None:
            return None
        buckets[bound] = buckets.get(bound, 0.0) + series.increase
    return summarize_latency(buckets, sum_seconds)


def _worker_pids(view: ClusterView, readings_in: WindowReadings, hosts: Mapping[str, str]) -> Mapping[WorkerSlot, int]:
    pids = {}
    for executor, slot in view.assignment.slot_of.items():
        if slot not in pids and slot.supervisor_id in hosts:
            pid = readings_in.worker_pid(executor.topology_id, Place(hosts[slot.supervisor_id], slot.port))
            if pid is not None:
                pids[slot] = pid
    return pids

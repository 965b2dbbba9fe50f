"""What one pass saw of managed topologies and their components, as readings. Pure. What is unknown has no reading."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.forecast import ComponentKey, LoadForecast
from storm_operator.core.model import Component, ComponentKind, Executor, ExecutorLoad, Topology
from storm_operator.core.placed_traffic import place_traffic
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.operator_metrics.readings import MILLICORES_PER_CORE, MS_PER_SECOND, Reading

LEVELS = ("worker", "supervisor", "inter_supervisor")
Forecasts = Mapping[ComponentKey, LoadForecast]


def topology_readings(
    snapshot: ClusterSnapshot, managed: Collection[str], namespace_of: Callable[[str], str]
) -> Iterator[Reading]:
    """`managed` are topology ids; `namespace_of` gives a topology's namespace by its name."""
    traffic, unknown = _traffic_by_level(snapshot), snapshot.topologies_of_unknown_traffic()
    for topology in _only(snapshot, managed):
        of_it = (topology.name,)
        slots = [snapshot.assignment.slot_of[e] for e in topology.executors if e in snapshot.assignment.slot_of]
        yield Reading("topology_info", (namespace_of(topology.name), topology.name, topology.id), 1.0)
        yield Reading("topology_executors", of_it, len(topology.executors))
        yield Reading("topology_workers", of_it, len(set(slots)))
        yield Reading("topology_supervisors", of_it, len({slot.supervisor_id for slot in slots}))
        if topology.id not in unknown:
            yield from _traffic(topology, traffic.get(topology.id, dict.fromkeys(LEVELS, 0.0)))
        yield from _rates(snapshot, topology)


def _only(snapshot: ClusterSnapshot, managed: Collection[str]) -> Iterable[Topology]:
    return (topology for topology in snapshot.topologies if topology.id in managed)


def _traffic_by_level(snapshot: ClusterSnapshot) -> Mapping[str, Mapping[str, float]]:
    """Tuples per second by topology id and level; all pairs of executors in one go."""
    placed = place_traffic(snapshot.traffic, snapshot.distances, snapshot.assignment)
    numbers: dict[str, int] = {}
    of_row = [numbers.setdefault(executor.topology_id, len(numbers)) for executor in snapshot.traffic.executors]
    of_pair = np.array(of_row, dtype=np.int64)[placed.sources]
    masks = (placed.same_worker, placed.same_supervisor & ~placed.same_worker, ~placed.same_supervisor)
    sums = [np.bincount(of_pair[m], placed.per_second[m], minlength=len(numbers)).tolist() for m in masks]
    return {
        topology_id: {level: of_level[number] for level, of_level in zip(LEVELS, sums, strict=True)}
        for topology_id, number in numbers.items()
    }


def _traffic(topology: Topology, by_level: Mapping[str, float]) -> Iterator[Reading]:
    for level, tuples in by_level.items():
        yield Reading("traffic_tuples_per_second", (topology.name, level), tuples)
    all_traffic = sum(by_level.values())
    if all_traffic > 0.0:
        yield Reading("inter_supervisor_traffic_ratio", (topology.name,), by_level["inter_supervisor"] / all_traffic)


def _rates(snapshot: ClusterSnapshot, topology: Topology) -> Iterator[Reading]:
    rates = snapshot.rates.get(topology.id)
    if rates is None:
        return
    yield from _known("acked_tuples_per_second", (topology.name,), rates.acked_per_second)
    yield from _known("failed_tuples_per_second", (topology.name,), rates.failed_per_second)
    if rates.latency is not None:
        by_statistic = {"mean": rates.latency.mean_ms, "p50": rates.latency.p50_ms, "p99": rates.latency.p99_ms}
        for statistic, latency_ms in by_statistic.items():
            yield Reading("complete_latency_seconds", (topology.name, statistic), latency_ms / MS_PER_SECOND)


def component_readings(
    snapshot: ClusterSnapshot,
    managed: Collection[str],
    demand: Demand | None,
    next_period: Forecasts,
    before: Forecasts,
) -> Iterator[Reading]:
    """`next_period` is what this pass forecasts, `before` the last one's of the period measured now."""
    for topology in _only(snapshot, managed):
        for component in topology.components:
            executors, labels = topology.executors_of(component.name), (topology.name, component.name)
            key = topology.id, component.name
            yield Reading("component_executors", labels, len(executors))
            yield from _load(component, labels, [snapshot.loads.get(executor) for executor in executors])
            yield from _demand(labels, executors, demand)
            if key in before:
                forecast = before[key].arrivals_per_second
                yield Reading("component_forecast_arrival_tuples_per_second", labels, forecast)
            if key in next_period:
                forecast = next_period[key].arrivals_per_second
                yield Reading("component_next_arrival_tuples_per_second", labels, forecast)


def _load(component: Component, labels: tuple[str, ...], loads: Sequence[ExecutorLoad | None]) -> Iterator[Reading]:
    known = [load for load in loads if load is not None]
    if len(known) < len(loads):
        return
    # A spout has no input: what it emits is what it has to process, as forecasts have it.
    is_spout = component.kind is ComponentKind.SPOUT
    arrivals = [load.emitted_per_second if is_spout else load.arrived_per_second for load in known]
    cpu = _sum([load.cpu_millicores for load in known])
    yield from _known("component_arrival_tuples_per_second", labels, _sum(arrivals))
    yield from _known("component_cpu_used_cores", labels, None if cpu is None else cpu / MILLICORES_PER_CORE)
    if not is_spout:
        yield from _known("component_queue_tuples", labels, _sum([load.queue_length for load in known]))
        growth = _sum([load.queue_growth_per_second for load in known])
        yield from _known("component_queue_growth_tuples_per_second", labels, growth)


def _demand(labels: tuple[str, ...], executors: Sequence[Executor], demand: Demand | None) -> Iterator[Reading]:
    cores = {e: demand.millicores[e] / MILLICORES_PER_CORE for e in executors if demand and e in demand.millicores}
    if executors and len(cores) == len(executors):
        yield Reading("component_cpu_demand_cores", labels, math.fsum(cores.values()))
    for executor, value in cores.items():
        yield Reading("executor_cpu_demand_cores", (*labels, executor.label), value)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known and len(known) == len(values) else None


def _known(metric: str, labels: tuple[str, ...], value: float | None) -> Iterator[Reading]:
    if value is not None:
        yield Reading(metric, labels, value)

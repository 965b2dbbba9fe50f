"""Xu, Chen, Tang, Su, "T-Storm: Traffic-Aware Online Scheduling in Storm", ICDCS'14: Algorithm 1.

Executors in descending order of their traffic; each goes to the slot that adds least traffic between nodes, among the
nodes that have CPU for it and fewer than gamma times their even share of all executors, gamma being the consolidation
factor. On a node a topology has one worker. With gamma = 1 all nodes are used; the default leaves 30% of them idle, as
in the evaluation's headline.

A new schedule is made every 300 s, at once when a node is overloaded, and when an executor has no place. CPU and
traffic are estimated by exponential smoothing, Y = alpha * Y + (1 - alpha) * S, alpha = 0.5. Snapshots have a history
of components, not of executors: an executor's load, and what it receives, is that of the newest period times the
component's smoothed load over its newest.

Written after the paper's abstract and what other papers tell of it, not after its text: period, alpha and the form of
gamma's bound are as told there. Decided here: at equal traffic the node with more executors is taken (consolidation).
Where no node keeps both bounds, that of gamma is given up first; where none has CPU, the node with the least load for
its capacity is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement.capacity import by_supervisor, cpu_capacities
from storm_operator.core.placement.inventory import executor_loads, obstacles
from storm_operator.core.placement.one_by_one import executors_in_order, place_one_by_one
from storm_operator.core.placement.parameters import Parameter, read_parameters
from storm_operator.core.placement.triggers import DAY_SECONDS, must_place_anew, was_at_bound
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot, ComponentLoad

NAME = "t-storm"

PARAMETERS = {
    "gamma": Parameter(1.0 / 0.7, 1.0, 1e6, "consolidation factor: most executors of a node over its even share"),
    "capacity_fraction": Parameter(0.9, 0.01, 1.0, "share of a node's CPU that may be used; at it, it is overloaded"),
    "alpha": Parameter(0.5, 0.0, 0.99, "weight of the past in estimates of load and traffic"),
    "reschedule_seconds": Parameter(300.0, 1.0, DAY_SECONDS, "time between new schedules", is_period=True),
}

Neighbours = Mapping[Executor, Mapping[Executor, float]]


def place_t_storm(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """A new schedule when it is time, a node is overloaded or an executor has no place, else the one in force."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)
    if not is_overloaded(snapshot, settings) and not must_place_anew(snapshot, settings, values["reschedule_seconds"]):
        return snapshot.assignment
    measured = executor_loads(snapshot, demand)
    cpu_trend = _smoothed_over_newest(snapshot, values["alpha"], lambda load: load.cpu_millicores)
    loads = {executor: load * cpu_trend.get(_component(executor), 1.0) for executor, load in measured.items()}
    neighbours = _neighbours(snapshot, values["alpha"])
    nodes = _Nodes(snapshot, settings, values, loads, neighbours)
    busiest_first = sorted(
        executors_in_order(snapshot, settings), key=lambda executor: -math.fsum(neighbours.get(executor, {}).values())
    )
    return place_one_by_one(snapshot, settings, busiest_first, nodes.choose)


def is_overloaded(snapshot: ClusterSnapshot, settings: PlacementSettings) -> bool:
    """Whether a node's CPU is at its bound, which brings a new schedule at once."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)
    return was_at_bound(snapshot, settings, values["capacity_fraction"], 0.0)


class _Nodes:
    """Mutable: what each supervisor carries so far."""

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        settings: PlacementSettings,
        values: Mapping[str, float],
        loads: Mapping[Executor, float],
        neighbours: Neighbours,
    ) -> None:
        self._loads, self._neighbours = loads, neighbours
        self._limits = {at: values["capacity_fraction"] * most for at, most in cpu_capacities(snapshot).items()}
        self._carried = by_supervisor(snapshot, settings, loads)
        self._counts = by_supervisor(snapshot, settings, dict.fromkeys(obstacles(snapshot, settings), 1.0))
        even_share = len(loads) / max(1, len(snapshot.supervisors))
        self._most = math.ceil(values["gamma"] * even_share - 1e-9)
        self._place: dict[Executor, str] = {}

    def choose(self, executor: Executor, candidates: Sequence[str]) -> str:
        near = dict.fromkeys(candidates, 0.0)
        for other, rate in self._neighbours.get(executor, {}).items():
            at = self._place.get(other)
            if at in near:
                near[at] += rate
        fitting = [at for at in candidates if self._carried[at] + self._loads[executor] <= self._limits[at] + 1e-9]
        if fitting:
            few = [at for at in fitting if self._counts[at] < self._most]
            chosen = min(few or fitting, key=lambda at: (-near[at], -self._counts[at], at))
        else:
            chosen = min(candidates, key=lambda at: (self._carried[at] / self._limits[at], at))
        self._place[executor] = chosen
        self._carried[chosen] += self._loads[executor]
        self._counts[chosen] += 1.0
        return chosen


def _neighbours(snapshot: ClusterSnapshot, alpha: float) -> Neighbours:
    """Smoothed tuples per second of each executor with every other, both directions together."""
    trend = _smoothed_over_newest(snapshot, alpha, lambda load: load.executed_per_second)
    found: dict[Executor, dict[Executor, float]] = {}
    for source, target, rate in snapshot.traffic.pairs():
        smoothed = rate * trend.get(_component(target), 1.0)
        for one, other in ((source, target), (target, source)):
            row = found.setdefault(one, {})
            row[other] = row.get(other, 0.0) + smoothed
    return found


def _smoothed_over_newest(
    snapshot: ClusterSnapshot, alpha: float, value: Callable[[ComponentLoad], float]
) -> Mapping[tuple[str, str], float]:
    """By topology id and component: the smoothed value over that of the newest period; absent where that was 0."""
    smoothed: dict[tuple[str, str], float] = {}
    newest: dict[tuple[str, str], float] = {}
    for period in snapshot.history:
        for component, load in period.components.items():
            newest[component] = value(load)
            smoothed[component] = alpha * smoothed.get(component, newest[component]) + (1.0 - alpha) * newest[component]
    return {component: smoothed[component] / sample for component, sample in newest.items() if sample > 0.0}


def _component(executor: Executor) -> tuple[str, str]:
    return executor.topology_id, executor.component

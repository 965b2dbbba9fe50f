"""History -> forecast -> demand against what was needed, over days; the functions are the operator's own, no engine.

A spout and a bolt, whose arrivals and CPU follow from the source's load by fixed ratios. Nothing queues here:
what was not provided is counted, not made up for later.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from storm_operator.core.demand import demand_of_forecasts
from storm_operator.core.forecast import forecast_load
from storm_operator.core.learned_profile import NOTHING_LEARNED, Learned
from storm_operator.core.model import (
    Assignment,
    Component,
    ComponentKind,
    Demand,
    Edge,
    Executor,
    ExecutorLoad,
    Topology,
)
from storm_operator.core.settings import Forecast, ResourceSettings
from storm_operator.core.snapshot import ClusterSnapshot, Completeness, ComponentLoad, Distances, LoadPeriod
from storm_operator.core.traffic import TrafficMatrix

PHI = 5
RESOURCES = ResourceSettings()
NO_TRAFFIC = TrafficMatrix.from_arrays((), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
MS_PER_SECOND = 1000.0


@dataclass(frozen=True, slots=True)
class Stage:
    """One component: tuples for each of the source's, CPU milliseconds of each, executors."""

    name: str
    per_source_tuple: float
    cpu_ms: float
    executors: int


STAGES = (Stage("spout", 1.0, 0.2, 2), Stage("count", 1.0, 0.8, 8))
"""At 1,500 tuples per second, the load at night, 150 millicores an executor; eight times as much at the worst spike."""


@dataclass(frozen=True, slots=True)
class Provided:
    """CPU-seconds that executors lacked, and that were reserved for them in vain."""

    under: float
    over: float

    def __add__(self, other: Provided) -> Provided:
        return Provided(self.under + other.under, self.over + other.over)


def chain(stages: Sequence[Stage] = STAGES) -> Topology:
    """The topology of `stages`, one after the other."""
    components = [
        Component(stage.name, ComponentKind.SPOUT if number == 0 else ComponentKind.BOLT, stage.executors)
        for number, stage in enumerate(stages)
    ]
    executors, task = [], 1
    for stage in stages:
        for _ in range(stage.executors):
            executors.append(Executor("words-1", task, task, stage.name))
            task += 1
    edges = tuple(Edge(a.name, "default", b.name, "shuffle") for a, b in itertools.pairwise(stages))
    return Topology("words-1", "words", tuple(components), edges, tuple(executors))


def period(stages: Sequence[Stage], rate: float, ended_at_seconds: float, period_seconds: float) -> LoadPeriod:
    """What would be measured of each component while the source sends `rate`."""
    loads = {}
    emitted = [*(stage.per_source_tuple for stage in stages[1:]), 0.0]
    for stage, after in zip(stages, emitted, strict=True):
        arrived = rate * stage.per_source_tuple
        loads["words-1", stage.name] = ComponentLoad(arrived, arrived, rate * after, 0.0, arrived * stage.cpu_ms)
    return LoadPeriod(ended_at_seconds, period_seconds, loads, {})


def provided(
    rates: Sequence[float],
    first: int,
    period_seconds: float,
    method: Forecast,
    learned: Learned = NOTHING_LEARNED,
    resources: ResourceSettings = RESOURCES,
) -> Provided:
    """What executors lack and have too much in the periods of `rates` from `first` on; those before are history."""
    topology = chain()
    history = [period(STAGES, rates[n], (n + 1) * period_seconds, period_seconds) for n in range(first - PHI, first)]
    demand: Demand | None = None
    total = Provided(0.0, 0.0)
    for n in range(first, len(rates)):
        seen = _snapshot(topology, tuple(history), period_seconds)
        found = forecast_load(topology, seen.history, PHI, None, method, learned)
        loads = {(topology.id, component): forecast for component, forecast in found.items()}
        demand = demand_of_forecasts(seen, loads, demand, resources, PHI)
        total += _missed(topology, demand, rates[n], period_seconds, resources)
        history = [*history[1:], period(STAGES, rates[n], (n + 1) * period_seconds, period_seconds)]
    return total


def _missed(
    topology: Topology, demand: Demand, rate: float, period_seconds: float, resources: ResourceSettings
) -> Provided:
    core_seconds = period_seconds / MS_PER_SECOND
    total = Provided(0.0, 0.0)
    for stage in STAGES:
        # A thread cannot use more than a core, whatever it is given.
        needed = min(rate * stage.per_source_tuple * stage.cpu_ms / stage.executors, resources.ceiling_millicores)
        spare = [demand.millicores[executor] - needed for executor in topology.executors_of(stage.name)]
        total += Provided(
            core_seconds * sum(-value for value in spare if value < 0.0),
            core_seconds * sum(value for value in spare if value > 0.0),
        )
    return total


def _snapshot(topology: Topology, history: tuple[LoadPeriod, ...], period_seconds: float) -> ClusterSnapshot:
    newest = history[-1]
    loads: Mapping[Executor, ExecutorLoad] = {
        executor: ExecutorLoad(cpu_millicores=load.cpu_millicores / len(topology.executors_of(stage.name)))
        for stage in STAGES
        for executor in topology.executors_of(stage.name)
        for load in (newest.components["words-1", stage.name],)
    }
    return ClusterSnapshot(
        taken_at_seconds=newest.ended_at_seconds,
        period_seconds=period_seconds,
        supervisors=(),
        topologies=(topology,),
        assignment=Assignment({}),
        loads=loads,
        traffic=NO_TRAFFIC,
        distances=Distances({}),
        completeness=Completeness(0),
        history=history,
    )

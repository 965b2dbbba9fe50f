"""What past control periods measured, one LoadPeriod each: the memory that forecast and demand look back over."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from storm_operator.core.model import Executor, ExecutorLoad, Topology
from storm_operator.core.snapshot import ClusterSnapshot, ComponentLoad, LoadPeriod
from storm_operator.core.wording import ROUNDING

KEPT_PERIODS = 60
"""As many as `spec.scheduling.historyPeriods` may ask for."""

EVERY_EXECUTOR: Mapping[str, float] = {}

KEPT_SECONDS = 600.0
"""Where periods are short, all those of this time are kept: policies may ask for how long a supervisor was full."""


def load_period(
    topologies: Iterable[Topology],
    loads: Mapping[Executor, ExecutorLoad],
    supervisor_cpu_millicores: Mapping[str, float],
    ended_at_seconds: float,
    period_seconds: float,
    least_shares: Mapping[str, float] = EVERY_EXECUTOR,
) -> LoadPeriod | None:
    """The period that just ended, with the topologies of which `loads` has every executor; None when there is none.

    A topology is in it whole or not at all: sums over some of its executors would look like a fall of the load. Where
    `least_shares` says, by topology id, that less than all of its executors will do, those that were not measured
    count as the mean of their component's others; a component of which none was is not in it. `loads` holds completely
    measured executors only.
    """
    components = {}
    for topology in topologies:
        measured = sum(executor in loads for executor in topology.executors)
        if not measured or measured < executors_needed(least_shares.get(topology.id, 1.0), len(topology.executors)):
            continue
        for component in topology.components:
            all_of_it = topology.executors_of(component.name)
            own = [loads[executor] for executor in all_of_it if executor in loads]
            if own:
                components[topology.id, component.name] = _component_load(own, len(all_of_it) / len(own))
    if not components:
        return None
    return LoadPeriod(ended_at_seconds, period_seconds, components, supervisor_cpu_millicores)


def executors_needed(least_share: float, executors: int) -> int:
    """How many of `executors` must be measured, where `least_share` of them must: 0.55 of 100 is 55, and not 56 because
    their product is a little more than that."""
    return math.ceil(least_share * executors - ROUNDING)


def with_period(history: Sequence[LoadPeriod], period: LoadPeriod | None) -> tuple[LoadPeriod, ...]:
    """`history` (oldest first) with `period` at its end, and without what is both too old and too many periods ago."""
    if period is None:
        return tuple(history)
    earlier = tuple(old for old in history if old.ended_at_seconds < period.ended_at_seconds)
    young = sum(period.ended_at_seconds - old.ended_at_seconds < KEPT_SECONDS for old in earlier)
    return (*earlier, period)[-max(KEPT_PERIODS, young + 1) :]


def _component_load(loads: Sequence[ExecutorLoad], times: float) -> ComponentLoad:
    return ComponentLoad(
        arrived_per_second=times * math.fsum(load.arrived_per_second or 0.0 for load in loads),
        executed_per_second=times * math.fsum(load.executed_per_second or 0.0 for load in loads),
        emitted_per_second=times * math.fsum(load.emitted_per_second or 0.0 for load in loads),
        queue_growth_per_second=times * math.fsum(load.queue_growth_per_second or 0.0 for load in loads),
        cpu_millicores=times * math.fsum(load.cpu_millicores or 0.0 for load in loads),
    )


def undisturbed(history: Sequence[LoadPeriod], since_seconds: float | None) -> tuple[LoadPeriod, ...]:
    """The periods that began at `since_seconds` or later: what starting JVMs and their backlog cost is no load.

    None: nothing was disturbed, all periods stay.
    """
    if since_seconds is None:
        return tuple(history)
    return tuple(period for period in history if period.ended_at_seconds - period.period_seconds >= since_seconds)


def each_since(history: Sequence[LoadPeriod], since_seconds: Mapping[str, float]) -> tuple[LoadPeriod, ...]:
    """The history without what was measured of a topology (its id) in periods that began before `since_seconds`."""

    def counts(topology_id: str, period: LoadPeriod) -> bool:
        return period.ended_at_seconds - period.period_seconds >= since_seconds.get(topology_id, -math.inf)

    if not since_seconds:
        return tuple(history)
    kept = (
        replace(period, components={key: load for key, load in period.components.items() if counts(key[0], period)})
        for period in history
    )
    return tuple(period for period in kept if period.components)


def periods_by_topology(history: Sequence[LoadPeriod]) -> Counter[str]:
    """In how many periods each topology was measured."""
    return Counter(topology_id for period in history for topology_id in {owner for owner, _ in period.components})


def periods_seen(history: Sequence[LoadPeriod], topology_ids: Iterable[str]) -> int:
    """In how many periods each of these topologies was measured; of one that was submitted lately they are fewer.

    One that never was counts nothing: whether to go on without its figures is for `minimum_completeness` to say.
    """
    seen = periods_by_topology(history)
    return min((seen[topology_id] for topology_id in topology_ids if topology_id in seen), default=len(history))


def was_counted_since(snapshot: ClusterSnapshot, since_seconds: float) -> bool:
    """Whether both readings that the snapshot's figures are made of are of after `since_seconds`."""
    newest = snapshot.history[-1:]
    is_of_now = bool(newest) and newest[0].ended_at_seconds == snapshot.taken_at_seconds
    return is_of_now and undisturbed(newest, since_seconds) == newest

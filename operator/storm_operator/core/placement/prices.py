"""The weights of the objective as prices: what overload, a supervisor, a restart cost in this cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from storm_operator.core.executor_values import rows_of
from storm_operator.core.model import Executor, in_order, read_only
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

LEAST_TUPLES_PER_SECOND = 1.0
"""An executor counts as at least this much traffic: restarting idle workers is cheap but not free."""

LEAST_DISTANCE_MS = 0.01


@dataclass(frozen=True, slots=True)
class Prices:
    """The weights turned into tuple-ms/s for one cluster in one period."""

    per_overloaded_millicore: float
    per_overfull_megabyte: float
    per_supervisor: float
    share_of: Mapping[Executor, float]
    """Tuples per second that count as each executor's; their sum is the traffic of the cluster."""
    loss_ms: Mapping[str, float]
    """What a tuple on each supervisor costs for the time in which it does not answer."""
    restart_of: Mapping[Executor, float]
    """What restarting the worker of each running executor costs, per executor, spread over the plan's life."""
    state_of: Mapping[Executor, float]
    """The part of that which the state of each stateful executor makes, also of those that run nowhere yet."""
    between_workers_ms: float
    """What a tuple pays between two workers of one supervisor."""


def prices_of(snapshot: ClusterSnapshot, settings: PlacementSettings) -> Prices:
    """What overload, a supervisor and a restart cost in this cluster, in tuple-ms/s."""
    scheduling = settings.scheduling
    weights = scheduling.weights
    typical_ms = max(snapshot.distances.typical_ms, LEAST_DISTANCE_MS)
    shares = _traffic_shares(snapshot)
    all_traffic_one_hop = sum(shares.values()) * typical_ms
    supervisors_in_force = max(1, len(snapshot.assignment.used_supervisors()))
    disturbed = typical_ms * settings.restart_seconds / max(scheduling.expected_life_seconds, 1.0)
    stateful = stateful_components(snapshot)
    state_of = {
        e: share * disturbed * weights.state_lost
        for e, share in shares.items()
        if (e.topology_id, e.component) in stateful
    }
    restart_of = {
        executor: share * disturbed * weights.worker_restart
        for executor, share in shares.items()
        if executor in snapshot.assignment.slot_of
    }
    restart_of |= {e: restart_of[e] + state for e, state in state_of.items() if e in restart_of}
    return Prices(
        per_overloaded_millicore=weights.overload_per_millicore * all_traffic_one_hop,
        per_overfull_megabyte=weights.overfull_per_megabyte * all_traffic_one_hop,
        per_supervisor=weights.supervisor_in_use * all_traffic_one_hop / supervisors_in_force,
        share_of=read_only(shares),
        loss_ms={s.id: (1.0 - s.availability) * weights.tuple_lost * typical_ms for s in snapshot.supervisors},
        restart_of=read_only(restart_of),
        state_of=read_only(state_of),
        between_workers_ms=snapshot.distances.between_workers_ms,
    )


def _traffic_shares(snapshot: ClusterSnapshot) -> dict[Executor, float]:
    """Half of what each executor sends and receives, so that the sum over all is the traffic of the cluster."""
    # Sorted, so that sums are the same to the last bit whatever the order of the input.
    executors = tuple(in_order(e for topology in snapshot.topologies for e in topology.executors))
    row_of = rows_of(executors, snapshot.traffic.executors)
    through = np.append(snapshot.traffic.through() / 2.0, 0.0)  # the last one, NOWHERE, is who was not measured
    return dict(zip(executors, np.maximum(through[row_of], LEAST_TUPLES_PER_SECOND).tolist(), strict=True))


def stateful_components(snapshot: ClusterSnapshot) -> frozenset[tuple[str, str]]:
    """The stateful components of all topologies, by topology id and name."""
    return frozenset(
        (topology.id, component.name)
        for topology in snapshot.topologies
        for component in topology.components
        if component.stateful
    )


def stateful_executors(snapshot: ClusterSnapshot) -> frozenset[Executor]:
    """The executors of stateful components, over all topologies."""
    stateful = stateful_components(snapshot)
    return frozenset(
        executor
        for topology in snapshot.topologies
        for executor in topology.executors
        if (topology.id, executor.component) in stateful
    )

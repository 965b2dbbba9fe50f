"""Which topologies keep their stateful and stateless executors in one worker.

Separate workers keep state alive when only stateless executors move (Liu, section III-B), at the price of a hop
between processes for every tuple from one kind to the other. Both have a price in the objective's own unit, so that
`Auto` can tell which is less: hops are paid all the time, and state is lost once in a plan's expected life, taking it
that in each such time something stateless moves.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from storm_operator.core.arrays import NOWHERE
from storm_operator.core.placement.inventory import free_slots, obstacles
from storm_operator.core.placement.prices import Prices, stateful_components
from storm_operator.core.settings import PlacementSettings, Separation
from storm_operator.core.snapshot import ClusterSnapshot


def ways_to_separate(
    snapshot: ClusterSnapshot, settings: PlacementSettings, prices: Prices
) -> tuple[frozenset[str], ...]:
    """Which topologies live together: each way that the settings allow.

    Under `Auto` those for which that is cheaper; where some of them are separated in force, staying so is a way, too,
    since the change costs restarts.
    """
    separation = settings.scheduling.separation
    if separation is Separation.ALWAYS:
        return (frozenset(),)
    if separation is Separation.NEVER:
        return (settings.movable,)
    together = cheaper_together(snapshot, settings, prices)
    separated = together & _separated_in_force(snapshot)
    return (together, together - separated) if separated else (together,)


def cheaper_together(snapshot: ClusterSnapshot, settings: PlacementSettings, prices: Prices) -> frozenset[str]:
    """The movable topologies whose hops between workers would cost more than the state that a restart loses.

    A topology of one kind of executors is among them: there is nothing to separate. So is one of which no traffic is
    known yet: what has no figure is not free, and once apart it stays so where a restart does not pay.
    """
    lost: dict[str, float] = {}
    for executor, price in prices.state_of.items():
        lost[executor.topology_id] = lost.get(executor.topology_id, 0.0) + price
    crossing = _crossing_tuples(snapshot)
    hop_ms = _hop_between_kinds_ms(snapshot, settings)
    unmeasured = {topology for topology in snapshot.topologies_of_unknown_traffic() if not crossing.get(topology)}
    return frozenset(
        topology_id
        for topology_id in settings.movable
        if topology_id in unmeasured or lost.get(topology_id, 0.0) <= crossing.get(topology_id, 0.0) * hop_ms
    )


def _hop_between_kinds_ms(snapshot: ClusterSnapshot, settings: PlacementSettings) -> float:
    """What a tuple pays between kinds apart: on two supervisors, where none has two slots for what may move."""
    free = free_slots(snapshot, obstacles(snapshot, settings).values())
    distances = snapshot.distances
    is_room_for_both = any(len(slots) > 1 for slots in free.values())
    return distances.between_workers_ms if is_room_for_both else distances.typical_ms


def _crossing_tuples(snapshot: ClusterSnapshot) -> Mapping[str, float]:
    """Tuples per second between stateful and stateless executors, by topology id."""
    ids = [topology.id for topology in snapshot.topologies]
    number = {topology_id: at for at, topology_id in enumerate(ids)}
    stateful = stateful_components(snapshot)
    traffic = snapshot.traffic
    topology_of = np.array([number.get(e.topology_id, NOWHERE) for e in traffic.executors], dtype=np.int64)
    is_stateful = np.array([(e.topology_id, e.component) in stateful for e in traffic.executors], dtype=np.bool_)
    sources, targets, rates = traffic.flows()
    crosses = (is_stateful[sources] != is_stateful[targets]) & (topology_of[sources] != NOWHERE)
    sums = np.bincount(topology_of[sources[crosses]], rates[crosses], len(ids))
    return dict(zip(ids, sums.tolist(), strict=True))


def _separated_in_force(snapshot: ClusterSnapshot) -> frozenset[str]:
    """The topologies of which some supervisor runs both kinds, and no worker there runs both."""
    stateful = stateful_components(snapshot)
    kinds: dict[tuple[str, str], dict[int, set[bool]]] = {}
    for executor, slot in snapshot.assignment.slot_of.items():
        workers = kinds.setdefault((executor.topology_id, slot.supervisor_id), {})
        workers.setdefault(slot.port, set()).add((executor.topology_id, executor.component) in stateful)
    return frozenset(
        topology_id
        for (topology_id, _), workers in kinds.items()
        if len(set().union(*workers.values())) == 2 and all(len(kind) == 1 for kind in workers.values())
    )

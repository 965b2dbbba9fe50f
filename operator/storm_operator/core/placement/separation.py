"""Which topologies keep their stateful and stateless executors in one worker.

Separate workers keep state alive when only stateless executors move (Liu, section III-B), at the price of a hop
between processes. Under `Auto` a topology pays that price only while something is expected to move.
"""

from __future__ import annotations

import numpy as np

from storm_operator.core.model import Demand, Topology
from storm_operator.core.placement.objective import usable_millicores
from storm_operator.core.settings import PlacementSettings, Separation
from storm_operator.core.snapshot import ClusterSnapshot

CALM_SWING = 0.2
"""A component whose arrivals stayed within this share of their mean, trend included, is calm."""


def ways_to_separate(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> tuple[frozenset[str], ...]:
    """Which topologies live together: each way that the settings allow.

    Under `Auto` that is both for calm topologies, since what is in force may be either and changing costs restarts.
    """
    separation = settings.scheduling.separation
    if separation is Separation.ALWAYS:
        return (frozenset(),)
    if separation is Separation.NEVER:
        return (settings.movable,)
    calm = frozenset(
        topology.id
        for topology in snapshot.topologies
        if topology.id in settings.movable and is_calm(snapshot, topology, demand, settings)
    )
    return (calm, frozenset()) if calm else (frozenset(),)


def is_calm(snapshot: ClusterSnapshot, topology: Topology, demand: Demand, settings: PlacementSettings) -> bool:
    """Nothing of `topology` is expected to move: its load is steady and its supervisors could take a swing of it.

    Steady: over a full history the arrivals of every component stay within CALM_SWING of their mean and so does
    their linear trend. A swing fits when each supervisor it lives on could take CALM_SWING more demand. A history that
    is too short says nothing: not calm.
    """
    periods = snapshot.history[-settings.scheduling.history_periods :]
    if len(periods) < settings.scheduling.history_periods or len(periods) < 2:
        return False
    for component in topology.components:
        series = [period.components.get((topology.id, component.name)) for period in periods]
        if any(load is None for load in series):
            return False
        if not _is_steady([load.arrived_per_second for load in series if load is not None]):
            return False
    return _has_room_for_a_swing(snapshot, topology, demand, settings)


def _is_steady(arrivals: list[float]) -> bool:
    values = np.asarray(arrivals, dtype=np.float64)
    mean = float(values.mean())
    if mean <= 0.0:
        return bool((values == 0.0).all())
    slope = float(np.polyfit(np.arange(len(values)), values, 1)[0])
    drift = abs(slope) * len(values)
    return float(np.abs(values - mean).max()) <= CALM_SWING * mean and drift <= CALM_SWING * mean


def _has_room_for_a_swing(
    snapshot: ClusterSnapshot, topology: Topology, demand: Demand, settings: PlacementSettings
) -> bool:
    usable = usable_millicores(snapshot, settings)
    own = snapshot.assignment.restricted_to({topology.id})
    for supervisor_id in own.used_supervisors():
        there = [e for e, slot in snapshot.assignment.slot_of.items() if slot.supervisor_id == supervisor_id]
        mine = [e for e in there if e.topology_id == topology.id]
        if demand.total(there) + CALM_SWING * demand.total(mine) > usable.get(supervisor_id, 0.0):
            return False
    return True

"""Too little CPU for all: how much is missing in the assignment in force, and who goes without. Pure.

Told by what executors need, as overload is, and not by the room that placement would like to keep. It begins where
supervisors are fuller than is borne without a plan, and ends where a plan would have filled them no more: a load
that goes up and down between the two says nothing new.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Executor, Supervisor
from storm_operator.core.placement.bearable import BUSY_FRACTION
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.worker_overhead import worker_overhead

NAMED_TOPOLOGIES = 5

LEAST_MILLICORES = 1.0
"""Less than that is rounding."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """CPU that `supervisors` would need beyond what may be filled, in millicores.

    `lacking` is how much of it each topology goes short of, by id, the lowest priority first.
    """

    supervisors: int
    filled_fraction: float
    lacking: Mapping[str, float]

    def in_words(self, snapshot: ClusterSnapshot) -> str:
        """E.g. `2 supervisors lack 460 millicores of CPU (90% may be filled); short, lowest priority first: ...`."""
        many = "1 supervisor lacks" if self.supervisors == 1 else f"{self.supervisors} supervisors lack"
        short = [f"{snapshot.topology(i).name} by {part:,.0f}" for i, part in self.lacking.items()]
        more = f" and {len(short) - NAMED_TOPOLOGIES} more" if len(short) > NAMED_TOPOLOGIES else ""
        missing, filled = math.fsum(self.lacking.values()), 100.0 * self.filled_fraction
        return (
            f"{many} {missing:,.0f} millicores of CPU ({filled:.0f}% may be filled); "
            f"short, lowest priority first: {', '.join(short[:NAMED_TOPOLOGIES])}{more}"
        )


def find_shortage(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, *, was_short: bool
) -> Shortage | None:
    """What is missing where movable topologies run; None while their supervisors can bear what is needed.

    On each supervisor the lowest priority goes short first, and those of one priority by need; topologies that nobody
    manages, and so nobody holds back, go short last.
    """
    filled = settings.scheduling.headroom_fraction
    borne = filled if was_short else max(filled, BUSY_FRACTION)
    needs = demand.of_now().room_millicores
    overhead = worker_overhead(snapshot)
    residents = snapshot.assignment.residents()
    lacking: dict[str, float] = {}
    supervisors = 0
    for supervisor, capacity in _measured(snapshot):
        there = [executor for executor in residents.get(supervisor.id, ()) if executor in needs]
        if not any(executor.topology_id in settings.movable for executor in there):
            continue
        need = overhead * math.fsum(needs[executor] for executor in there)
        if need > borne * capacity + LEAST_MILLICORES:
            found = _who_lacks(there, needs, need - filled * capacity, overhead, settings)
            supervisors += 1
            for topology_id, missing in found.items():
                lacking[topology_id] = lacking.get(topology_id, 0.0) + missing
    if not settings.movable & lacking.keys():
        return None
    ordered = sorted(lacking, key=lambda topology_id: (_rank(topology_id, settings), topology_id))
    return Shortage(supervisors, filled, {topology_id: lacking[topology_id] for topology_id in ordered})


def has_room_for(millicores: float, snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> bool:
    """Whether all supervisors together may be filled with so much more: what one lacks, the others have to take first.

    So they may where one hosts nobody yet, or nobody knows what it has.
    """
    measured = dict(_measured(snapshot))
    used = set(snapshot.assignment.used_supervisors())
    if any(one not in measured or one.id not in used for one in snapshot.supervisors):
        return True
    needs = demand.of_now().room_millicores
    residents = snapshot.assignment.residents()
    needed = math.fsum(needs.get(executor, 0.0) for one in measured for executor in residents.get(one.id, ()))
    filled = settings.scheduling.headroom_fraction * math.fsum(measured.values())
    return worker_overhead(snapshot) * (needed + millicores) <= filled


def _measured(snapshot: ClusterSnapshot) -> Iterator[tuple[Supervisor, float]]:
    """The supervisors whose capacity is known, with it."""
    for supervisor in snapshot.supervisors:
        if supervisor.cpu_capacity_millicores is not None:
            yield supervisor, supervisor.cpu_capacity_millicores


def _who_lacks(
    executors: Sequence[Executor],
    needs: Mapping[Executor, float],
    missing: float,
    overhead: float,
    settings: PlacementSettings,
) -> Mapping[str, float]:
    """How much of `missing` each topology of one supervisor goes short of."""
    wanted: dict[str, float] = {}
    for executor in executors:
        wanted[executor.topology_id] = wanted.get(executor.topology_id, 0.0) + overhead * needs[executor]
    lacking: dict[str, float] = {}
    for rank in sorted({_rank(topology_id, settings) for topology_id in wanted}):
        tier = {topology_id: need for topology_id, need in wanted.items() if _rank(topology_id, settings) == rank}
        need = math.fsum(tier.values())
        taken = min(missing, need)
        if taken > 0.0:
            lacking |= {topology_id: taken * own / need for topology_id, own in tier.items() if own > 0.0}
        missing -= taken
    return lacking


def _rank(topology_id: str, settings: PlacementSettings) -> float:
    """Who goes short first has the lowest."""
    if topology_id in settings.priority:
        return float(settings.priority[topology_id])
    return 0.0 if topology_id in settings.movable else math.inf

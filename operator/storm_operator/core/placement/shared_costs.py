"""What assignments cost, each by the shares that it would bring: the same as `cost_seen` of `ShuffleShares.under`.

A search asks for assignments that differ in one or two executors, and what those change is of one topology. So costs
are sums over topologies, of which a part is kept for each way in which its executors were ever placed. Only what the
topologies share is counted each time: overload, memory, and how many supervisors are in use.

Executors that no topology of the snapshot lists stay where they are. No worker is shared by two topologies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.placed_traffic import place_traffic
from storm_operator.core.placement.capacity import memory_capacities
from storm_operator.core.placement.objective import (
    beyond_threads,
    excess,
    losses_of,
    overload_cost,
    restarts_of,
    room_for_executors,
    wanted_megabytes,
    wanted_millicores,
)
from storm_operator.core.placement.prices import Prices, prices_of
from storm_operator.core.placement.priorities import are_ranked, outranking_millicores
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.shuffle_shares import ShuffleShares

UNLISTED = ""
"""No topology's id: who has none has no priority either."""
Placed = tuple[WorkerSlot | None, ...]
"""The slot of each executor of a topology; None where it has no place."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What one topology adds: in tuple-ms/s what is its own, and by supervisor what it wants of those."""

    own: float
    """Network, restarts, losses, and what finds no room in threads."""
    millicores: Mapping[str, float]
    megabytes: Mapping[str, float]


class SharedCosts:
    """Costs of assignments of all executors of a snapshot; `total` answers in tuple-ms/s."""

    def __init__(self, shares: ShuffleShares, settings: PlacementSettings) -> None:
        snapshot = shares.snapshot
        self._priority, self._are_held = settings.priority, settings.are_held
        self._prices = prices_of(snapshot, settings)
        self._room = room_for_executors(snapshot, settings)
        self._memory = memory_capacities(snapshot)
        self._topologies = {
            one.id: _TopologyCosts(one.executors, shares.of_topology(one.id), self._prices)
            for one in snapshot.topologies
        }
        listed = {executor for one in snapshot.topologies for executor in one.executors}
        others = Assignment({e: slot for e, slot in snapshot.assignment.slot_of.items() if e not in listed})
        self._others = _Part(0.0, wanted_millicores(others, shares.demand), {})

    def total(self, assignment: Assignment) -> float:
        """Beyond what executors cost that no topology lists, which is always the same."""
        parts = {topology_id: costs.part(assignment) for topology_id, costs in self._topologies.items()}
        parts[UNLISTED] = self._others
        used = {at for part in parts.values() for at in part.millicores}
        return (
            sum(part.own for part in parts.values())
            + len(used) * self._prices.per_supervisor
            + overload_cost(self._overloaded_millicores(parts), self._overfull_megabytes(parts), self._prices)
        )

    def _overloaded_millicores(self, parts: Mapping[str, _Part]) -> float:
        overload = excess(_summed(part.millicores for part in parts.values()), self._room)
        if not overload or not are_ranked(self._priority):
            return overload
        by_topology = {topology_id: part.millicores for topology_id, part in parts.items()}
        return overload + outranking_millicores(by_topology, self._room, self._priority, are_held=self._are_held)

    def _overfull_megabytes(self, parts: Mapping[str, _Part]) -> float:
        return excess(_summed(part.megabytes for part in parts.values()), self._memory)


class _TopologyCosts:
    """One topology's part, by where its executors are."""

    def __init__(self, executors: tuple[Executor, ...], shares: ShuffleShares, prices: Prices) -> None:
        self._executors, self._shares, self._prices = executors, shares, prices
        self._known: dict[Placed, _Part] = {}

    def part(self, assignment: Assignment) -> _Part:
        placed = tuple(map(assignment.slot_of.get, self._executors))
        if placed not in self._known:
            self._known[placed] = self._part_of(placed)
        return self._known[placed]

    def _part_of(self, placed: Placed) -> _Part:
        own = Assignment({e: slot for e, slot in zip(self._executors, placed, strict=True) if slot is not None})
        now, prices = self._shares.snapshot, self._prices
        then, demand = self._shares.under(own)
        network = place_traffic(then.traffic, then.distances, own).network_usage(prices.between_workers_ms)
        return _Part(
            network
            + restarts_of(now.assignment, own, prices)
            + losses_of(own, prices)
            + overload_cost(beyond_threads(own, demand), 0.0, prices),
            wanted_millicores(own, demand),
            wanted_megabytes(now, own),
        )


def _summed(parts: Iterable[Mapping[str, float]]) -> Mapping[str, float]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total

"""Executors to supervisors one by one: how schedulers that speak of tasks and nodes place (T-Storm, R-Storm, ...).

A topology has at most one worker on a supervisor, which takes all its executors there (T-Storm's rule: no traffic
between processes of a node). Such schedulers go by nodes, not by `topology.workers`. Which of a supervisor's slots a
worker gets is no part of them: the present one, where it can stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement.inventory import free_slots, movable_topologies, obstacles, slots_missing
from storm_operator.core.placement.slots import on_free_slots
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

Choose = Callable[[Executor, Sequence[str]], str | Infeasible]
"""The supervisor for one more executor, of those (by id, never none) that have a worker for it or a slot for one."""


def place_one_by_one(
    snapshot: ClusterSnapshot, settings: PlacementSettings, executors: Iterable[Executor], choose: Choose
) -> Assignment | Infeasible:
    """Each of the movable `executors`, in this order, where `choose` says; or the first reason why not."""
    places = _Places(snapshot, settings)
    if places.missing_slots > 0:
        return slots_missing(places.missing_slots)
    for executor in executors:
        chosen = choose(executor, places.open_to(executor.topology_id))
        if isinstance(chosen, Infeasible):
            return chosen
        places.put(executor, chosen)
    return places.assignment()


def executors_in_order(snapshot: ClusterSnapshot, settings: PlacementSettings) -> tuple[Executor, ...]:
    """The movable executors, by topology id and task."""
    return tuple(sorted(chain.from_iterable(t.executors for t in movable_topologies(snapshot, settings))))


class _Places:
    """Mutable: who is where so far. Keeps a slot for each topology that has no worker yet."""

    def __init__(self, snapshot: ClusterSnapshot, settings: PlacementSettings) -> None:
        self._snapshot = snapshot
        self._fixed = obstacles(snapshot, settings)
        self._free = {machine: len(slots) for machine, slots in free_slots(snapshot, self._fixed.values()).items()}
        self._supervisors = sorted(self._free)
        topologies = [topology for topology in movable_topologies(snapshot, settings) if topology.executors]
        self._workers: dict[str, dict[str, list[Executor]]] = {topology.id: {} for topology in topologies}
        self._without_worker = {topology.id for topology in topologies}
        self._free_together = sum(self._free.values())

    @property
    def missing_slots(self) -> int:
        return len(self._without_worker) - self._free_together

    def open_to(self, topology_id: str) -> list[str]:
        """Supervisors that could take an executor of the topology, by id."""
        own = self._workers[topology_id]
        may_start_worker = self._free_together > len(self._without_worker - {topology_id})
        return [at for at in self._supervisors if at in own or (may_start_worker and self._free[at] > 0)]

    def put(self, executor: Executor, supervisor_id: str) -> None:
        own = self._workers[executor.topology_id]
        if supervisor_id not in own:
            own[supervisor_id] = []
            self._free[supervisor_id] -= 1
            self._free_together -= 1
            self._without_worker.discard(executor.topology_id)
        own[supervisor_id].append(executor)

    def assignment(self) -> Assignment:
        there = {
            at: [frozenset(workers[at]) for workers in self._workers.values() if at in workers]
            for at in self._supervisors
        }
        return on_free_slots(self._snapshot, self._fixed, there)

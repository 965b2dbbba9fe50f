"""Who lives where, as Nimbus has it: the assignment in force and how long its workers have been up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from storm_operator.adapters.errors import TopologyNotAlive
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.nimbus.values import TopologyInfo
from storm_operator.core.model import Assignment, Executor, Supervisor, WorkerSlot, read_only


@dataclass(frozen=True, slots=True)
class AssignmentReading:
    """The assignment, and what else the same answer tells.

    `worker_uptime_seconds` comes from heartbeats, seconds old: a worker without one since its start is absent.
    `homeless` executors are assigned to a host where no supervisor lives any more; they are not in the assignment.
    """

    assignment: Assignment
    worker_uptime_seconds: Mapping[WorkerSlot, float]
    homeless: tuple[Executor, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "worker_uptime_seconds", read_only(self.worker_uptime_seconds))


def read_assignment(
    client: NimbusClient, topology_ids: Collection[str], supervisors: Collection[Supervisor]
) -> AssignmentReading:
    """The assignment of `topology_ids` in force; topologies that have ended meanwhile are absent."""
    infos = []
    for topology_id in sorted(topology_ids):
        try:
            infos.append(client.topology_info(topology_id))
        except TopologyNotAlive:
            continue
    return assignment_from(infos, supervisors)


def assignment_from(infos: Iterable[TopologyInfo], supervisors: Collection[Supervisor]) -> AssignmentReading:
    """Pure: the same from answers that were already fetched."""
    slots = SlotFinder(supervisors)
    slot_of: dict[Executor, WorkerSlot] = {}
    uptimes: dict[WorkerSlot, float] = {}
    homeless: list[Executor] = []
    for info in infos:
        for each in info.executors:
            executor = Executor(info.id, each.task_start, each.task_end, each.component)
            slot = slots.find(each.host, each.port)
            if slot is None:
                homeless.append(executor)
                continue
            slot_of[executor] = slot
            if each.uptime_seconds > 0:
                uptimes[slot] = max(uptimes.get(slot, 0.0), float(each.uptime_seconds))
    return AssignmentReading(Assignment(slot_of), uptimes, tuple(sorted(homeless)))


class SlotFinder:
    """From host and port, which Nimbus tells, to the slot of a supervisor.

    Supervisors that share a host have different ports. A port that no supervisor lists is still a slot of the only
    supervisor of its host, since Storm runs workers there when told to.
    """

    def __init__(self, supervisors: Iterable[Supervisor]) -> None:
        self._by_address: dict[tuple[str, int], str] = {}
        self._by_host: dict[str, list[str]] = {}
        for supervisor in sorted(supervisors):
            self._by_host.setdefault(supervisor.host, []).append(supervisor.id)
            for port in supervisor.ports:
                self._by_address[(supervisor.host, port)] = supervisor.id

    def find(self, host: str, port: int) -> WorkerSlot | None:
        """The slot; None when no supervisor, or more than one, could be meant."""
        supervisor_id = self._by_address.get((host, port))
        if supervisor_id is None:
            living_there = self._by_host.get(host, [])
            supervisor_id = living_there[0] if len(living_there) == 1 else None
        return None if supervisor_id is None else WorkerSlot(supervisor_id, port)

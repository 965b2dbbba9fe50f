"""What supervisors can give, and how much of it is taken by others, for policies that need a number for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from storm_operator.core.model import Component, Executor
from storm_operator.core.placement.inventory import obstacles
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

UNMEASURED_MILLICORES = 1000.0
LEAST_MILLICORES = 1.0
"""What a supervisor counts with that has nothing to give: shares of it can still be told."""


def cpu_capacities(snapshot: ClusterSnapshot) -> Mapping[str, float]:
    """Millicores of each supervisor, more than 0; an unmeasured one counts as the smallest that was measured.

    When none was measured all count the same.
    """
    measured = {
        machine.id: max(machine.cpu_capacity_millicores, LEAST_MILLICORES)
        for machine in snapshot.supervisors
        if machine.cpu_capacity_millicores is not None
    }
    assumed = min(measured.values(), default=UNMEASURED_MILLICORES)
    return {machine.id: measured.get(machine.id, assumed) for machine in snapshot.supervisors}


def memory_capacities(snapshot: ClusterSnapshot) -> Mapping[str, float]:
    """MB of each supervisor; one that declares none counts as the smallest that does; infinite when none does."""
    declared = {m.id: m.memory_mb for m in snapshot.supervisors if m.memory_mb is not None}
    assumed = min(declared.values(), default=float("inf"))
    return {machine.id: declared.get(machine.id, assumed) for machine in snapshot.supervisors}


def declared_memory_mb(snapshot: ClusterSnapshot) -> Mapping[Executor, float]:
    """Memory that each executor needs by its submitter's word; executors without such a word are absent."""
    return _declared(snapshot, lambda component: component.declared_memory_mb)


def declared_cpu_millicores(snapshot: ClusterSnapshot) -> Mapping[Executor, float]:
    """CPU that each executor needs by its submitter's word; executors without such a word are absent."""
    return _declared(snapshot, lambda component: component.declared_cpu_millicores)


def _declared(snapshot: ClusterSnapshot, amount_of: Callable[[Component], float | None]) -> Mapping[Executor, float]:
    declared: dict[Executor, float] = {}
    for topology in snapshot.topologies:
        by_name = {component.name: amount_of(component) for component in topology.components}
        for executor in topology.executors:
            amount = by_name.get(executor.component)
            if amount is not None:
                declared[executor] = amount
    return declared


def by_supervisor(
    snapshot: ClusterSnapshot, settings: PlacementSettings, amounts: Mapping[Executor, float]
) -> dict[str, float]:
    """The `amounts` of the obstacles on each supervisor, summed; an executor without an amount adds nothing."""
    sums = dict.fromkeys(sorted(machine.id for machine in snapshot.supervisors), 0.0)
    for executor, slot in sorted(obstacles(snapshot, settings).items()):
        if slot.supervisor_id in sums:
            sums[slot.supervisor_id] += amounts.get(executor, 0.0)
    return sums


def cpu_of_others(
    snapshot: ClusterSnapshot, settings: PlacementSettings, loads: Mapping[Executor, float]
) -> dict[str, float]:
    """Millicores in use on each supervisor that placement cannot move, whoever uses them.

    What was measured for the supervisor less the `loads` of the movable executors there, but no less than the `loads`
    of the obstacles.
    """
    of_obstacles = by_supervisor(snapshot, settings, loads)
    measured = dict(snapshot.supervisor_cpu_millicores)
    for executor, slot in sorted(snapshot.assignment.slot_of.items()):
        if executor.topology_id in settings.movable and slot.supervisor_id in measured:
            measured[slot.supervisor_id] -= loads.get(executor, 0.0)
    return {at: max(taken, measured.get(at, 0.0)) for at, taken in of_obstacles.items()}

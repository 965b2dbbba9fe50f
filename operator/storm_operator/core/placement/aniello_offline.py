"""Aniello, Baldoni, Querzoni, "Adaptive Online Scheduling in Storm", DEBS'13: the offline scheduler (section 3.1).

Looks at the component graph alone, neither at traffic nor at CPU: components are taken in a linear order that agrees
with the streams, each executor goes to a slot that holds executors of the components that feed it, and the slots go
to supervisors in turn.

- `alpha` in [0, 1]: M, the most executors in a slot, between ceil(E/W) and E-W+1 (section 3).
- `beta` in [0, 1]: from component number floor(beta*C)+1 on, empty slots are used first (section 3.1).

Defaults are those of the evaluation (section 4.1): alpha = 0, beta = 0.5. Where the paper is silent: executors of
components that nothing feeds go to the slot with fewest executors, which spreads them (section 4.1 counts on that:
F of F*F streams become local); among slots that hold parents the one with fewest executors of the same component,
then with fewest executors, is taken; when all of those are full, any used slot, then an empty one. The acker's answers
to the spout are left out of the graph, but Storm's own components are among the C; components in a cycle (which the
paper excludes) are one step. Where fewer than min(W, E) slots are free, so that the paper has no schedule (section 3),
all of them are used, as Storm would.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import networkx as nx

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import (
    Assignment,
    ComponentKind,
    Executor,
    Infeasible,
    Topology,
    WorkerSlot,
)
from storm_operator.core.placement.even import interleaved_free_slots
from storm_operator.core.placement.parameters import Parameter, read_parameters
from storm_operator.core.placement.slots import in_slots_of_before
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "aniello-offline"

ALPHA = Parameter(0.0, 0.0, 1.0, "how unevenly slots may be filled: 0 even, 1 all but one executor each in one slot")
PARAMETERS = {
    "alpha": ALPHA,
    "beta": Parameter(0.5, 0.0, 1.0, "share of the components after which empty slots are used first"),
}


def place_aniello_offline(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> Assignment | Infeasible:
    """Every movable topology by its graph over its number of workers; demand plays no part."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)
    slot_of = {e: slot for e, slot in snapshot.assignment.slot_of.items() if e.topology_id not in settings.movable}
    for topology in sorted(snapshot.topologies, key=lambda t: t.id):
        if topology.id not in settings.movable or not topology.executors:
            continue
        free = interleaved_free_slots(snapshot.supervisors, slot_of.values())
        if not free:
            return Infeasible(f"topology {topology.name} needs at least one free slot and there is none")
        workers = min(max(1, topology.num_workers), len(topology.executors), len(free))
        slot_of.update(_fill(topology, free[:workers], values["alpha"], values["beta"]))
    return in_slots_of_before(snapshot, Assignment(slot_of), settings.movable)


def most_executors_in_slot(executors: int, workers: int, alpha: float) -> int:
    """M(alpha) = ceil(E/W) + alpha * (E - W + 1 - ceil(E/W)) of section 3, to the nearest integer.

    Rounding to the nearest gives the paper's own M for figures 8 and 9: 4, 5 and 8 at alpha 0, 0.05 and 0.2.
    """
    least = math.ceil(executors / workers)
    return least + math.floor(alpha * (executors - workers + 1 - least) + 0.5)


def linear_order(topology: Topology) -> tuple[str, ...]:
    """The linearization phi of the components (section 3.1): parents first, spouts before others, then by name."""
    kind = {component.name: component.kind for component in topology.components}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(kind)
    graph.add_edges_from((e.source, e.target) for e in topology.edges if kind.get(e.source) is not ComponentKind.ACKER)
    steps = nx.condensation(graph)
    names = {step: sorted(members) for step, members in steps.nodes(data="members")}

    def spouts_then_names(step: int) -> tuple[bool, str]:
        return all(kind.get(name) is not ComponentKind.SPOUT for name in names[step]), names[step][0]

    return tuple(
        name for step in nx.lexicographical_topological_sort(steps, key=spouts_then_names) for name in names[step]
    )


def _fill(topology: Topology, slots: Sequence[WorkerSlot], alpha: float, beta: float) -> dict[Executor, WorkerSlot]:
    most = most_executors_in_slot(len(topology.executors), len(slots), alpha)
    order = linear_order(topology)
    members: list[list[Executor]] = [[] for _ in slots]
    for number, component in enumerate(order, start=1):
        parents = set(topology.parents_of(component)) - {component}
        for executor in topology.executors_of(component):
            empty_first = number > math.floor(beta * len(order))
            members[_choose(members, component, parents, most, empty_first)].append(executor)
    return {executor: slots[at] for at, inside in enumerate(members) for executor in inside}


def _choose(
    members: Sequence[Sequence[Executor]], component: str, parents: set[str], most: int, empty_first: bool
) -> int:
    """The index of the slot for one more executor of `component`."""
    fed = any(executor.component in parents for inside in members for executor in inside)

    def preference(at: int) -> tuple[bool, int, int, int, int]:
        inside = members[at]
        same = sum(executor.component == component for executor in inside)
        if not fed:
            kind = 0
        elif any(executor.component in parents for executor in inside):
            kind = 1
        else:
            kind = 2 if inside else 3
        return not (empty_first and not inside), kind, same, len(inside), at

    return min((at for at in range(len(members)) if len(members[at]) < most), key=preference)

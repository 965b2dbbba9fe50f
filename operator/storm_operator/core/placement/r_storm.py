"""Peng, Hosseini, Hong, Farivar, Campbell, "R-Storm: Resource-Aware Scheduling in Storm", Middleware'15.

Algorithm 2 orders the components by a breadth-first traversal from the spouts, Algorithm 3 the tasks by taking one of
each component in turn, and Algorithm 4 gives each task to the node whose available resources are nearest to what the
task needs: the Euclidean distance over memory, CPU and the network distance to the reference node. Memory is a hard
constraint; CPU is a soft one. The reference node is that with the most resources when the topology's first task is
placed. (The paper takes it from the rack with the most; snapshots know distances, not racks.)

Resources are declared, before the topology runs, and not measured: `Component.declared_memory_mb` and
`declared_cpu_millicores`, Storm's own defaults where the submitter says nothing. So, as after a `storm rebalance`,
movable topologies are placed anew each time and the answer stays the same; the paper has no other trigger.

Written after the paper's abstract and what is commonly told of its algorithms, not after its text. Decided here: each
axis is divided by the largest value in the cluster, so that the weights compare like with like. CPU being soft, nodes
that have enough of it come first; where none has, the one that is exceeded least. Storm's own components (ackers) come
last. The memory of a supervisor that declares none counts as in `capacity`; where none declares any, memory plays no
part.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, ComponentKind, Executor, Infeasible, Topology
from storm_operator.core.placement.capacity import (
    by_supervisor,
    cpu_capacities,
    declared_cpu_millicores,
    declared_memory_mb,
    memory_capacities,
)
from storm_operator.core.placement.inventory import movable_topologies
from storm_operator.core.placement.one_by_one import place_one_by_one
from storm_operator.core.placement.parameters import Parameter, read_parameters
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "r-storm"

WEIGHT_MEANING = "weight of this axis in the distance"
PARAMETERS = {
    "cpu_millicores": Parameter(100.0, 0.0, 1e6, "CPU of an executor that declares none; Storm's own default"),
    "memory_mb": Parameter(128.0, 0.0, 1e9, "memory of an executor that declares none; Storm's own default"),
    "cpu_weight": Parameter(1.0, 0.0, 1e6, WEIGHT_MEANING),
    "memory_weight": Parameter(1.0, 0.0, 1e6, WEIGHT_MEANING),
    "network_weight": Parameter(1.0, 0.0, 1e6, WEIGHT_MEANING),
}


def place_r_storm(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """Every movable topology by what it declares; demand, which is measured, plays no part."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)
    tasks = chain.from_iterable(task_order(topology) for topology in movable_topologies(snapshot, settings))
    return place_one_by_one(snapshot, settings, tasks, _Nodes(snapshot, settings, values).choose)


def component_order(topology: Topology) -> tuple[str, ...]:
    """Algorithm 2: breadth first from the spouts; then what no spout reaches, then Storm's own components."""
    kind = {component.name: component.kind for component in topology.components}
    users = [name for name in sorted(kind) if not _is_storms_own(name, kind[name])]
    children: dict[str, set[str]] = {}
    for edge in topology.edges:
        children.setdefault(edge.source, set()).add(edge.target)
    found = dict.fromkeys(name for name in users if kind[name] is ComponentKind.SPOUT)
    queue = deque(found)
    while queue:
        fresh = sorted(children.get(queue.popleft(), set()).intersection(users) - found.keys())
        found |= dict.fromkeys(fresh)
        queue.extend(fresh)
    rest = (name for name in (*users, *sorted(kind)) if name not in found)
    return tuple(dict.fromkeys((*found, *rest)))


def task_order(topology: Topology) -> tuple[Executor, ...]:
    """Algorithm 3: one executor of each component in turn, until there are no more."""
    columns = (topology.executors_of(name) for name in component_order(topology))
    return tuple(executor for executor in chain.from_iterable(zip_longest(*columns)) if executor is not None)


def _is_storms_own(name: str, kind: ComponentKind) -> bool:
    return kind is ComponentKind.ACKER or name.startswith("__")


class _Nodes:
    """Mutable: what each supervisor has left, and the reference node of each topology (Algorithm 4)."""

    def __init__(self, snapshot: ClusterSnapshot, settings: PlacementSettings, values: Mapping[str, float]) -> None:
        executors = [executor for topology in snapshot.topologies for executor in topology.executors]
        self._values = values
        self._distances = snapshot.distances
        self._cpu = dict.fromkeys(executors, values["cpu_millicores"]) | dict(declared_cpu_millicores(snapshot))
        self._memory = dict.fromkeys(executors, values["memory_mb"]) | dict(declared_memory_mb(snapshot))
        cpu, memory = cpu_capacities(snapshot), memory_capacities(snapshot)
        self._memory_counts = all(map(math.isfinite, memory.values()))
        self._most_cpu = max(cpu.values(), default=1.0)
        self._most_memory = max((*memory.values(), 1.0))
        self._farthest = max(self._distances.longest_ms(tuple(cpu)), self._distances.default_ms, 1e-9)
        taken_cpu = by_supervisor(snapshot, settings, self._cpu)
        taken_memory = by_supervisor(snapshot, settings, self._memory)
        self._cpu_left = {at: cpu[at] - taken_cpu[at] for at in cpu}
        self._memory_left = {at: memory[at] - taken_memory[at] for at in memory}
        self._reference: dict[str, str] = {}

    def choose(self, executor: Executor, candidates: Sequence[str]) -> str | Infeasible:
        cpu, memory = self._cpu[executor], self._memory[executor]
        reference = self._reference.setdefault(executor.topology_id, self._richest(candidates))
        roomy = [at for at in candidates if self._memory_left[at] >= memory]
        if not roomy:
            most = max(0.0, *(self._memory_left[at] for at in candidates))
            return Infeasible(
                f"executor {executor.label} of {executor.topology_id} needs {memory:.0f} MB of memory; "
                f"no supervisor with a slot for it has more than {most:.0f} MB left"
            )
        shortfall = {at: max(0.0, cpu - self._cpu_left[at]) for at in roomy}
        chosen = min(roomy, key=lambda at: (shortfall[at], self._distance(cpu, memory, at, reference), at))
        self._cpu_left[chosen] -= cpu
        self._memory_left[chosen] -= memory
        return chosen

    def _richest(self, candidates: Sequence[str]) -> str:
        def resources(at: str) -> float:
            memory = self._memory_left[at] / self._most_memory if self._memory_counts else 0.0
            return self._cpu_left[at] / self._most_cpu + memory

        return min(candidates, key=lambda at: (-resources(at), at))

    def _distance(self, cpu: float, memory: float, at: str, reference: str) -> float:
        memory_gap = (self._memory_left[at] - memory) / self._most_memory if self._memory_counts else 0.0
        cpu_gap = (self._cpu_left[at] - cpu) / self._most_cpu
        network = 0.0 if at == reference else self._distances.between_supervisors(at, reference) / self._farthest
        return math.sqrt(
            self._values["memory_weight"] * memory_gap**2
            + self._values["cpu_weight"] * cpu_gap**2
            + self._values["network_weight"] * network**2
        )

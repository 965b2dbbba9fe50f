"""Cardellini, Grassi, Lo Presti, Nardelli, "Distributed QoS-aware Scheduling in Storm", DEBS'15.

Every supervisor's AdaptiveScheduler runs a MAPE loop every 30 s (section 3.2). Monitor: which of its executors are
movable, that is not pinned and not directly connected to one that is being reassigned. Then, for one executor at a
time, Analyze: the virtual placement (section 2.2, `springs`) tells where it would best be; Plan: the supervisor that is
closest in the cost space (sections 2.1 and 2.2, `cost_space`) and can host it; Execute: it moves there.

Here all loops run in one place. Which are due follows from the time: that of the n-th of N supervisors (by id) comes
n/N of the period after the first one's. A later loop sees what earlier ones of the same control period did.

Where the paper is silent:

- Virtual places are those in which all unpinned executors of a topology are at rest together (Pietzuch's operators know
  each other's virtual coordinates).
- "Movable" leaves the size of a step open: a loop moves at most `moves_per_loop` executors, so that relocations do not
  pile up, which is the paper's reason to take them one at a time.
- Analyze asks for a move when the executor's supervisor is further than `analyze_distance` from its virtual place;
  Plan accepts a supervisor that is closer by more than `migration_gain`. Both are in the unit of the cost space.
- A supervisor can host an executor that has a worker of its topology, or a free slot.
- Utilisation is what it would be with the executor there, or else two supervisors would hand it to and fro for ever.
  The paper's is the node's, whoever uses it. Here it is what Storm uses of the supervisor's capacity: agents count
  Storm's own CPU, and the capacity that they tell does not fall under the load of others.
- Pinned are producers (spouts), consumers (bolts that no bolt subscribes to; both as in figure 1) and what
  `scheduling.pinnedComponents` names. Storm's own components are neither: its ackers and metrics consumers move like
  other bolts, and a bolt whose metrics one of them takes is a consumer all the same.
- The defaults of the weights are those of section 4: w_l = 1, w_a = 10 of dQoS_la, w_u = 0.5 of dQoS_lu.
- The BootstrapScheduler, which places what has no place, is Storm's own rule (section 3 leaves it open).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, ComponentKind, Infeasible, Topology
from storm_operator.core.placement.cost_space import CostSpace, CostWeights, cost_space
from storm_operator.core.placement.executor_arrays import ExecutorArrays, executor_arrays
from storm_operator.core.placement.homes import Homes, with_homes
from storm_operator.core.placement.inventory import executor_loads, movable_topologies
from storm_operator.core.placement.one_by_one import executors_in_order
from storm_operator.core.placement.parameters import SEED, Parameter, read_parameters
from storm_operator.core.placement.springs import rest_positions
from storm_operator.core.placement.triggers import DAY_SECONDS, has_passed
from storm_operator.core.placement.utilisation import supervisor_loads
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "dqos"

PARAMETERS = {
    "latency_weight": Parameter(1.0, 0.0, 1000.0, "w_l: weight of the latency dimensions"),
    "availability_weight": Parameter(10.0, 0.0, 1000.0, "w_a: weight of availability"),
    "utilisation_weight": Parameter(0.5, 0.0, 1000.0, "w_u: weight of CPU utilisation"),
    "loop_seconds": Parameter(30.0, 1.0, DAY_SECONDS, "period of each supervisor's MAPE loop", is_period=True),
    "moves_per_loop": Parameter(1.0, 1.0, 1000.0, "most executors that one loop moves", is_whole=True),
    "analyze_distance": Parameter(0.1, 0.0, 1000.0, "an executor closer than this to its virtual place stays"),
    "migration_gain": Parameter(0.1, 0.0, 1000.0, "another supervisor must be closer by more than this"),
    "samples": Parameter(100.0, 1.0, 10000.0, "round trips that each supervisor measures for Vivaldi", is_whole=True),
    "seed": SEED,
}


def place_dqos(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """What the loops that are due in this period make of the assignment in force."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)
    unknown = _unknown_pinned(snapshot, settings)
    if unknown is not None:
        return unknown
    settled = with_homes(snapshot, settings)
    loops = _loops_due(snapshot, values["loop_seconds"])
    if isinstance(settled, Infeasible) or not loops or not executors_in_order(snapshot, settings):
        return settled
    scheduler = _Scheduler(snapshot, demand, settings, settled, values)
    for column in loops:
        scheduler.run_loop(column)
    return scheduler.homes.assignment()


def pinned_components(topology: Topology, named: Collection[str]) -> frozenset[str]:
    """Producers, consumers, and those of the components `named` that the topology has."""
    names = {component.name for component in topology.components}
    kind = {component.name: component.kind for component in topology.components if not component.name.startswith("__")}
    feeding = {edge.source for edge in topology.edges if kind.get(edge.target) is ComponentKind.BOLT}
    ends = {name for name in kind if kind[name] is ComponentKind.SPOUT or name not in feeding}
    return frozenset(names.intersection(named) | ends)


def loops_in(snapshot: ClusterSnapshot) -> int:
    """How many loops begin in a period, one after the other: one for each supervisor."""
    return max(1, len(snapshot.supervisors))


def _unknown_pinned(snapshot: ClusterSnapshot, settings: PlacementSettings) -> Infeasible | None:
    names = {component.name for topology in movable_topologies(snapshot, settings) for component in topology.components}
    unknown = sorted(set(settings.scheduling.pinned_components) - names)
    if not unknown:
        return None
    return Infeasible(
        f"scheduling.pinnedComponents names {', '.join(unknown)}, which no topology under these settings has; "
        f"there are {', '.join(sorted(names))}"
    )


def _loops_due(snapshot: ClusterSnapshot, every_seconds: float) -> list[int]:
    """Supervisors by number (in order of id) whose loop is due, in the order in which they are."""
    count = len(snapshot.supervisors)
    offset_of = {at: every_seconds * at / count for at in range(count)}
    due = [at for at, offset in offset_of.items() if has_passed(snapshot, every_seconds, offset)]
    return sorted(due, key=lambda at: (-((snapshot.taken_at_seconds - offset_of[at]) % every_seconds), at))


class _Scheduler:
    """The AdaptiveSchedulers of all supervisors, in one control period."""

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        demand: Demand,
        settings: PlacementSettings,
        settled: Assignment,
        values: Mapping[str, float],
    ) -> None:
        loads = executor_loads(snapshot, demand)
        self.homes = Homes(snapshot, settled)
        self._values = values
        self._arrays = executor_arrays(snapshot, settings, loads)
        self._ids = [machine.id for machine in self._arrays.machines]
        self._space = _space(snapshot, self._arrays, values)
        self._at = self._arrays.supervisors_of(settled)
        in_use = supervisor_loads(snapshot, settled, loads)
        self._in_use = np.array([in_use[id_] for id_ in self._ids])
        self._pinned = _pinned(snapshot, settings, self._arrays)
        self._places = rest_positions(self._space.latency[self._at], self._pinned, self._arrays.rates)
        self._busy: set[int] = set()
        """Rows of executors that are reassigned in this period, and of those connected to them."""

    def run_loop(self, column: int) -> None:
        """One iteration of a supervisor's loop: analyze, plan and execute for its movable executors in turn."""
        moves_left = int(self._values["moves_per_loop"])
        for row in np.flatnonzero((self._at == column) & ~self._pinned).tolist():
            target = None if row in self._busy else self._plan(row)
            if target is not None:
                self._execute(row, target)
                moves_left -= 1
            if moves_left == 0:
                return

    def _plan(self, row: int) -> int | None:
        """Analyze and Plan: the supervisor that the executor is to move to, None where it is to stay."""
        executor, here = self._arrays.executors[row], self._at[row]
        in_use = self._in_use + self._arrays.loads[row]
        in_use[here] -= self._arrays.loads[row]
        utilisation = np.clip(in_use / self._arrays.capacities, 0.0, 1.0)
        distances = self._space.distances(self._places[row], utilisation)
        least_gain = self._values["migration_gain"]
        if distances[here] <= self._values["analyze_distance"] or distances[here] - distances.min() <= least_gain:
            return None
        distances[~np.array(self.homes.hosts(self._ids, executor.topology_id))] = np.inf
        closest = int(np.argmin(distances))
        return closest if distances[here] - distances[closest] > least_gain else None

    def _execute(self, row: int, target: int) -> None:
        self.homes.move(self._arrays.executors[row], self._ids[target])
        load = self._arrays.loads[row]
        self._in_use[self._at[row]] -= load
        self._in_use[target] += load
        self._at[row] = target
        rates = self._arrays.rates
        self._busy.update([row, *rates.indices[rates.indptr[row] : rates.indptr[row + 1]].tolist()])


def _space(snapshot: ClusterSnapshot, arrays: ExecutorArrays, values: Mapping[str, float]) -> CostSpace:
    weights = CostWeights(values["latency_weight"], values["availability_weight"], values["utilisation_weight"])
    samples, seed = int(values["samples"]), int(values["seed"])
    return cost_space(arrays.machines, snapshot.distances, weights, samples=samples, seed=seed)


def _pinned(snapshot: ClusterSnapshot, settings: PlacementSettings, arrays: ExecutorArrays) -> npt.NDArray[np.bool_]:
    pinned = {
        topology.id: pinned_components(topology, settings.scheduling.pinned_components)
        for topology in movable_topologies(snapshot, settings)
    }
    return np.array([executor.component in pinned[executor.topology_id] for executor in arrays.executors])

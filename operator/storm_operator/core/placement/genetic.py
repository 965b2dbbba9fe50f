"""Genetic scheduling (paper 003): scheduling as an optimisation problem, solved by selection, crossover and mutation.

Paper 003 names the family and says no more. What was decided:

- A chromosome is the supervisor of every executor, in order of topology and task, so that executors of a component are
  neighbours on it. A topology has one worker on each supervisor that it uses.
- Cost is what this project's objective says of a running assignment (docs/explanation/objective.md: network, overload,
  losses, supervisors in use), but for what overload counts on top where topologies differ in priority; needing slots
  that are not there costs more than anything else.
- The first generation is the assignment in force, copies of it with half of their genes at random, and random ones.
- Parents win tournaments of two, crossover is at two points, the two best live on unchanged. A mutated gene becomes the
  supervisor of one of the executor's peers, or, as often, any supervisor.
- It runs every `reschedule_seconds`, or when an executor has no place. The assignment in force stays in force unless
  another is better by `least_gain_percent`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from storm_operator.core.arrays import Floats, Ints
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement.capacity import by_supervisor, declared_memory_mb, memory_capacities
from storm_operator.core.placement.executor_arrays import ExecutorArrays
from storm_operator.core.placement.inventory import obstacles
from storm_operator.core.placement.objective import room_for_executors
from storm_operator.core.placement.parameters import SEED, Parameter, read_parameters
from storm_operator.core.placement.prices import prices_of
from storm_operator.core.placement.search_when_due import PARAMETERS as SEARCH_PARAMETERS
from storm_operator.core.placement.search_when_due import search_when_due
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "genetic"

PARAMETERS = {
    "population": Parameter(24.0, 4.0, 1000.0, "chromosomes in each generation", is_whole=True),
    "generations": Parameter(100.0, 1.0, 10000.0, "generations", is_whole=True),
    "crossover_share": Parameter(0.8, 0.0, 1.0, "share of children that have two parents"),
    "mutation_share": Parameter(0.02, 0.0, 1.0, "share of a child's genes that mutate"),
    "seed": SEED,
    **SEARCH_PARAMETERS,
}

ELITE = 2
PAIRS_AT_ONCE = 16384


def place_genetic(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """The best of the last generation when it is due and better by enough, else the assignment in force."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)

    def search(arrays: ExecutorArrays, present: Ints) -> tuple[Ints, float, float]:
        cost = RunningCost(snapshot, settings, arrays)
        best = evolve(arrays, cost, present, values)
        before, after = cost.of(np.stack([present, best])).tolist()
        return best, before, after

    return search_when_due(snapshot, settings, values, _demands(snapshot, demand), search)


class RunningCost:
    """`Cost.running` of the objective for whole populations, where topologies have one worker on a supervisor.

    The network usage and the losses of executors that may not move, which are always the same, are left out, and all
    topologies count as being of one priority.
    """

    def __init__(self, snapshot: ClusterSnapshot, settings: PlacementSettings, arrays: ExecutorArrays) -> None:
        prices = prices_of(snapshot, settings)
        usable = room_for_executors(snapshot, settings)
        self._arrays = arrays
        self._per_millicore = prices.per_overloaded_millicore
        self._per_megabyte = prices.per_overfull_megabyte
        self._per_supervisor = prices.per_supervisor
        self._usable = np.array([usable[machine.id] for machine in arrays.machines])
        self._distances = _distances(snapshot, arrays)
        ids = [machine.id for machine in arrays.machines]
        declared, memory = declared_memory_mb(snapshot), memory_capacities(snapshot)
        fixed = by_supervisor(snapshot, settings, declared)
        held = {slot.supervisor_id for slot in obstacles(snapshot, settings).values()}
        self._held = np.array([at in held for at in ids], dtype=bool)
        self._megabytes = np.array([declared.get(executor, 0.0) for executor in arrays.executors])
        self._fixed_megabytes = np.array([fixed[at] for at in ids])
        self._memory = np.array([memory[at] for at in ids])
        shares = np.array([prices.share_of[executor] for executor in arrays.executors])
        self._losses = np.outer(shares, [prices.loss_ms[at] for at in ids])
        self._lacking_slot = 1.0 + self._all_together()

    def of(self, population: Ints) -> Floats:
        """The cost of each chromosome (row)."""
        arrays, size, count = self._arrays, len(population), len(self._arrays.machines)
        loads = np.stack([np.bincount(choice, arrays.loads, count) for choice in population]) + arrays.fixed_loads
        workers = np.zeros((size, int(arrays.topology_of.max()) + 1, count), dtype=bool)
        workers[np.arange(size)[:, None], arrays.topology_of, population] = True
        in_use = (workers.any(axis=1) | self._held).sum(axis=1)
        lacking = np.maximum(0, workers.sum(axis=1) - arrays.slots).sum(axis=1)
        overload = np.maximum(0.0, loads - self._usable).sum(axis=1)
        costs: Floats = (
            self._network(population)
            + overload * self._per_millicore
            + self._overfull_megabytes(population) * self._per_megabyte
            + self._losses[np.arange(population.shape[1]), population].sum(axis=1)
            + in_use * self._per_supervisor
            + lacking * self._lacking_slot
        )
        return costs

    def _all_together(self) -> float:
        """More than anything else can cost: all traffic the farthest way, all CPU and memory too much, all supervisors
        in use, everyone where most is lost."""
        arrays = self._arrays
        farthest = float(arrays.pairs[2].sum()) * float(self._distances.max(initial=0.0))
        overload = float(arrays.loads.sum() + arrays.fixed_loads.sum()) * self._per_millicore
        overfull = float(self._megabytes.sum() + self._fixed_megabytes.sum()) * self._per_megabyte
        losses = float(self._losses.max(axis=1, initial=0.0).sum())
        return farthest + overload + overfull + losses + self._per_supervisor * len(arrays.machines)

    def _overfull_megabytes(self, population: Ints) -> Floats:
        if not self._megabytes.any():
            return np.zeros(len(population))  # what others declare is always the same
        count = len(self._memory)
        wanted = np.stack([np.bincount(choice, self._megabytes, count) for choice in population])
        beyond: Floats = np.maximum(0.0, wanted + self._fixed_megabytes - self._memory).sum(axis=1)
        return beyond

    def _network(self, population: Ints) -> Floats:
        """Tuples per second times distance; some pairs at a time, so that intermediate arrays stay in the cache."""
        targets = np.ascontiguousarray(population.T)
        sources = targets * len(self._arrays.machines)
        usage = np.zeros(len(population))
        one, other, rates = self._arrays.pairs
        for begin in range(0, len(rates), PAIRS_AT_ONCE):
            some = slice(begin, begin + PAIRS_AT_ONCE)
            hops = sources.take(one[some], axis=0) + targets.take(other[some], axis=0)
            usage += rates[some] @ self._distances.take(hops)
        return usage


def evolve(arrays: ExecutorArrays, cost: RunningCost, present: Ints, values: Mapping[str, float]) -> Ints:
    """The best chromosome of the last generation; never worse than `present`."""
    rng = np.random.default_rng(int(values["seed"]))
    size = int(values["population"])
    population = _first_generation(rng, present, size, len(arrays.machines))
    costs = cost.of(population)
    for _ in range(int(values["generations"])):
        elite = np.argsort(costs, kind="stable")[:ELITE]
        children = _crossed(rng, population, costs, size - ELITE, values["crossover_share"])
        children = _mutated(rng, children, arrays, values["mutation_share"])
        population = np.concatenate([population[elite], children])
        costs = np.concatenate([costs[elite], cost.of(children)])
    best: Ints = population[int(np.argmin(costs))]
    return best


def _first_generation(rng: np.random.Generator, present: Ints, size: int, supervisors: int) -> Ints:
    population = np.tile(present, (size, 1))
    at_random = rng.integers(0, supervisors, size=population.shape)
    share = np.where(np.arange(size) < size // 2, 0.5, 1.0)
    share[0] = 0.0
    return np.where(rng.random(population.shape) < share[:, None], at_random, population)


def _crossed(rng: np.random.Generator, population: Ints, costs: Floats, size: int, share: float) -> Ints:
    """Children of winners of tournaments: the first parent's genes, and between two points the second one's."""
    drawn = rng.integers(0, len(population), size=(2, size, 2))
    parents = np.where(costs[drawn[..., 0]] <= costs[drawn[..., 1]], drawn[..., 0], drawn[..., 1])
    genes = np.arange(population.shape[1])
    begin, end = np.sort(rng.integers(0, len(genes) + 1, size=(2, size)), axis=0)
    of_second = (begin[:, None] <= genes) & (genes < end[:, None]) & (rng.random(size) < share)[:, None]
    children: Ints = np.where(of_second, population[parents[1]], population[parents[0]])
    return children


def _mutated(rng: np.random.Generator, children: Ints, arrays: ExecutorArrays, share: float) -> Ints:
    rates = arrays.rates
    peers_of = np.diff(rates.indptr)
    child, gene = np.nonzero(rng.random(children.shape) < share)
    to_peer = (rng.random(len(gene)) < 0.5) & (peers_of[gene] > 0)
    mutated = children.copy()
    mutated[child, gene] = rng.integers(0, len(arrays.machines), size=len(gene))
    child, gene = child[to_peer], gene[to_peer]
    peer = rates.indices[rates.indptr[gene] + rng.integers(0, peers_of[gene])]
    mutated[child, gene] = children[child, peer]
    return mutated


def _distances(snapshot: ClusterSnapshot, arrays: ExecutorArrays) -> Floats:
    """Milliseconds between supervisors, all counted; 0 on one, where a topology has one worker."""
    matrix = snapshot.distances.matrix_ms(tuple(machine.id for machine in arrays.machines))
    matrix += snapshot.distances.worker_hop_ms
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _demands(snapshot: ClusterSnapshot, demand: Demand) -> Mapping[Executor, float]:
    """As in the objective: what is to be made room for, and nothing for executors without a demand."""
    return {e: demand.room_millicores.get(e, 0.0) for topology in snapshot.topologies for e in topology.executors}

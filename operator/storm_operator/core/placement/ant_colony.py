"""Wang, Wang, "Optimisation of Storm task scheduling by an improved ant colony algorithm", Computer Measurement &
Control 27(8), 2019, known here from its abstract (paper 003): ants place executors to lower the CPU load of supervisors
and to balance it; the evaporation factor follows a sigmoid and so adapts while the program runs.

Each ant takes the executors one by one, heaviest first within a topology, and goes to supervisor s with probability
proportional to trail^alpha * attraction^beta (the ant system of Dorigo, Maniezzo, Colorni, 1996). After each iteration
trails evaporate by rho, ants leave trails in inverse proportion to their cost, and so does the best ant of all.

What the abstract does not tell was decided:

- Cost is the mean CPU utilisation of the supervisors plus its standard deviation. An executor adds its own CPU, and
  each tuple between two supervisors adds CPU on both, for serialisation and network (`transfer_millicores`): without it
  no placement could change the mean.
- Attraction is the share of CPU that stays free on s with the executor there, times 1 plus twice the share of the
  executor's traffic that is with executors that the ant put there before.
- Rho falls from `evaporation_most` to `evaporation_least`: early trails, of ants that knew little, fade quickly, late
  ones last. A trail never fades below a twentieth of what all begin with.
- The best alpha, beta and number of iterations, "found by many experiments", are not told: the defaults are usual.
- The colony runs every `reschedule_seconds`, or when an executor has no place. The assignment in force counts as the
  first ant's, and stays in force unless another is better by `least_gain_percent`.
- A topology has one worker on each supervisor it uses; other slots stay free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from storm_operator.core.arrays import Floats, Ints
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.executor_arrays import ExecutorArrays
from storm_operator.core.placement.inventory import executor_loads
from storm_operator.core.placement.parameters import SEED, Parameter, read_parameters
from storm_operator.core.placement.search_when_due import PARAMETERS as SEARCH_PARAMETERS
from storm_operator.core.placement.search_when_due import search_when_due
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "ant-colony"

PARAMETERS = {
    "alpha": Parameter(1.0, 0.0, 10.0, "weight of trails"),
    "beta": Parameter(5.0, 0.0, 10.0, "weight of attraction: free CPU and traffic"),
    "ants": Parameter(10.0, 1.0, 1000.0, "ants in each iteration", is_whole=True),
    "iterations": Parameter(12.0, 1.0, 1000.0, "iterations of the colony", is_whole=True),
    "evaporation_least": Parameter(0.1, 0.0, 1.0, "evaporation factor rho at the end"),
    "evaporation_most": Parameter(0.6, 0.0, 1.0, "evaporation factor rho at the beginning"),
    "transfer_millicores": Parameter(
        20.0, 0.0, 10000.0, "CPU that 1,000 tuples/s between supervisors cost on each of them"
    ),
    "seed": SEED,
    **SEARCH_PARAMETERS,
}

SIGMOID_STEEPNESS = 10.0
LEAST_TRAIL = 0.05
LEAST_FREE_SHARE = 0.01
"""A supervisor without CPU left attracts as if this much were free: a little, not nothing."""
TRAFFIC_WEIGHT = 2.0
"""A supervisor with all of an executor's peers attracts it so many times more than one without any, plus once."""


def place_ant_colony(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """The best that the colony finds when it is due and that is better by enough, else the assignment in force."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)
    transfer = values["transfer_millicores"]

    def search(arrays: ExecutorArrays, present: Ints) -> tuple[Ints, float, float]:
        best = _Colony(arrays, values).best_from(present)
        return best, sum(cpu_load(arrays, present, transfer)), sum(cpu_load(arrays, best, transfer))

    return search_when_due(snapshot, settings, values, executor_loads(snapshot, demand), search)


def cpu_load(arrays: ExecutorArrays, choice: Ints, transfer_millicores: float) -> tuple[float, float]:
    """Mean and standard deviation of the supervisors' CPU utilisation, tuples between supervisors included."""
    count = len(arrays.machines)
    one, other, rates = arrays.pairs
    a, b = choice[one], choice[other]
    crossing = np.where(a != b, rates, 0.0)
    tuples = np.bincount(a, crossing, count) + np.bincount(b, crossing, count)
    millicores = arrays.fixed_loads + np.bincount(choice, arrays.loads, count) + tuples * transfer_millicores / 1000.0
    utilisation = millicores / arrays.capacities
    return float(utilisation.mean()), float(utilisation.std())


def evaporation(progress: float, least: float, most: float) -> float:
    """The factor rho at `progress` 0..1 through the iterations: a sigmoid from `most` to `least`."""
    return least + (most - least) / (1.0 + math.exp(SIGMOID_STEEPNESS * (progress - 0.5)))


class _Colony:
    """All ants of an iteration go at once, each a row of every array."""

    def __init__(self, arrays: ExecutorArrays, values: Mapping[str, float]) -> None:
        self._arrays = arrays
        self._values = values
        self._ants = int(values["ants"])
        self._rng = np.random.default_rng(int(values["seed"]))
        self._order = np.lexsort((-arrays.loads, arrays.topology_of)).tolist()
        self._traffic = np.asarray(arrays.rates.sum(axis=1), dtype=np.float64).ravel()
        self._trails = np.ones((len(arrays.executors), len(arrays.machines)))

    def best_from(self, present: Ints) -> Ints:
        """The best choice of a supervisor for each executor over all iterations, `present` included."""
        best, least = present, self._cost(present)
        iterations = int(self._values["iterations"])
        for number in range(iterations):
            choices = self._walk()
            costs = np.array([self._cost(choice) for choice in choices])
            first = int(np.argmin(costs))
            if costs[first] < least:
                best, least = choices[first].copy(), costs[first]
            self._renew_trails(choices, least / np.maximum(costs, 1e-12), best, number / max(1, iterations - 1))
        return best

    def _cost(self, choice: Ints) -> float:
        return sum(cpu_load(self._arrays, choice, self._values["transfer_millicores"]))

    def _renew_trails(self, choices: Ints, worth: Floats, best: Ints, progress: float) -> None:
        rho = evaporation(progress, self._values["evaporation_least"], self._values["evaporation_most"])
        self._trails *= 1.0 - rho
        rows = np.arange(len(best))
        for choice, share in zip(choices, worth / self._ants, strict=True):
            self._trails[rows, choice] += share
        self._trails[rows, best] += 1.0
        np.maximum(self._trails, LEAST_TRAIL, out=self._trails)

    def _walk(self) -> Ints:
        """The supervisor of every executor (column) for every ant (row)."""
        arrays, ants = self._arrays, np.arange(self._ants)
        trails = self._trails ** self._values["alpha"]
        draws = self._rng.random((len(self._order), self._ants))
        choices = np.full((self._ants, len(self._order)), -1, dtype=np.int64)
        loads = np.tile(arrays.fixed_loads, (self._ants, 1))
        slots = _Slots(arrays, self._ants)
        for row, draw in zip(self._order, draws, strict=True):
            wish = trails[row] * self._attraction(row, choices, loads) ** self._values["beta"]
            wish = np.cumsum(wish * slots.allowed(arrays.topology_of[row]), axis=1)
            chosen = np.minimum((wish <= draw[:, None] * wish[:, -1:]).sum(axis=1), wish.shape[1] - 1)
            choices[:, row] = chosen
            loads[ants, chosen] += arrays.loads[row]
            slots.take(arrays.topology_of[row], chosen)
        return choices

    def _attraction(self, row: int, choices: Ints, loads: Floats) -> Floats:
        arrays, count = self._arrays, len(self._arrays.machines)
        free: Floats = np.maximum(LEAST_FREE_SHARE, 1.0 - (loads + arrays.loads[row]) / arrays.capacities)
        if self._traffic[row] <= 0.0:
            return free
        inside = slice(arrays.rates.indptr[row], arrays.rates.indptr[row + 1])
        theirs = choices[:, arrays.rates.indices[inside]]
        # Peers that are not placed yet (-1) count in a column of their own, which is cut off.
        bins = np.where(theirs < 0, count, theirs) + (count + 1) * np.arange(self._ants)[:, None]
        weights = np.broadcast_to(arrays.rates.data[inside], theirs.shape)
        near = np.bincount(bins.ravel(), weights.ravel(), (count + 1) * self._ants).reshape(self._ants, count + 1)
        with_peers: Floats = 1.0 + TRAFFIC_WEIGHT * near[:, :count] / self._traffic[row]
        return free * with_peers


class _Slots:
    """Which supervisors each ant may still use for a topology; there is always one."""

    def __init__(self, arrays: ExecutorArrays, ants: int) -> None:
        self._free = np.tile(arrays.slots, (ants, 1))
        self._topologies = int(arrays.topology_of.max()) + 1
        self._used = np.zeros((self._topologies, ants, len(arrays.machines)), dtype=bool)

    def allowed(self, topology: int) -> npt.NDArray[np.bool_]:
        """Where the topology has a worker, or a slot is free that no topology without a worker yet will need."""
        own = self._used[topology]
        without = self._topologies - 1 - topology
        spare = (self._free.sum(axis=1) > without) | ~own.any(axis=1)
        allowed: npt.NDArray[np.bool_] = own | ((self._free > 0) & spare[:, None])
        return allowed

    def take(self, topology: int, chosen: Ints) -> None:
        ants = np.arange(len(chosen))
        self._free[ants, chosen] -= ~self._used[topology][ants, chosen]
        self._used[topology][ants, chosen] = True

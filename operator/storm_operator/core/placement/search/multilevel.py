"""A multilevel partition of the executors onto supervisors, as a fresh start for a local search.

Executors that talk much are joined until few clusters are left, these fill supervisors one after the other, and on the
way back every level is refined (the scheme of Karypis and Kumar, SIAM J. Sci. Comput. 20(1), 1998). Below the level of
executors a cluster may mix stateful and stateless ones; there, ports are counted as if every topology needed a worker
for each. Deterministic: rows break ties.
"""

from __future__ import annotations

import numpy as np

from storm_operator.core.arrays import Flags, Floats, Ints
from storm_operator.core.placement.search.arrays import afresh, with_bonds
from storm_operator.core.placement.search.coarsening import contract, match
from storm_operator.core.placement.search.emptying import empty_supervisors
from storm_operator.core.placement.search.growth import grow
from storm_operator.core.placement.search.partition_state import Graph, Machines, Partition, Search, empty_partition
from storm_operator.core.placement.search.problem import Problem
from storm_operator.core.placement.search.refinement import refine
from storm_operator.core.placement.search.step_prices import put_all

CLUSTERS_PER_SUPERVISOR = 4
LARGEST_CLUSTER = 0.3
"""No cluster may need more than this share of the largest supervisor: bigger ones pack badly."""
LEAST_SHRINKAGE = 0.95


def partition(problem: Problem, search: Search) -> Ints:
    """A supervisor for each executor, regardless of where it lives now."""
    if not len(problem.executors):
        return np.zeros(0, dtype=np.int64)
    levels, clusters_of = _coarsen(problem, search)
    machines = search.machines._replace(ports=_topologies_that_fit(problem, search.machines))
    state = _grown(problem, afresh(search, levels[-1], machines))
    for graph, clusters in zip(reversed(levels[:-1]), reversed(clusters_of), strict=True):
        is_finest = graph is levels[0]
        level = afresh(search, search.graph if is_finest else graph, search.machines if is_finest else machines)
        finer = empty_partition(len(graph.demand), level.machines)
        put_all(level, finer, state.place[clusters])
        improve_partition(level, finer, everybody(finer))
        state = finer
    return state.place


def everybody(state: Partition) -> Flags:
    """All vertices, to be looked at."""
    return np.ones(len(state.place), dtype=np.bool_)


def improve_partition(search: Search, state: Partition, awake: Flags) -> None:
    """Single moves and exchanges of those `awake`, and whole supervisors emptied, until nothing helps."""
    refine(search, state, awake)
    if empty_supervisors(search, state, awake):
        refine(search, state, awake)


def _coarsen(problem: Problem, search: Search) -> tuple[list[Graph], list[Ints]]:
    """The graphs from finest to coarsest, and which cluster each vertex of all but the last belongs to."""
    machines = search.machines
    enough = max(8, CLUSTERS_PER_SUPERVISOR * len(machines.room))
    largest = LARGEST_CLUSTER * float(machines.room.max(initial=0.0))
    levels, clusters_of = [with_bonds(problem, search.graph._replace(group=problem.topology_of))], []
    while len(levels[-1].demand) > enough:
        graph = levels[-1]
        cluster, clusters = match(graph, np.argsort(_tuples_through(graph), kind="stable"), largest)
        if clusters > LEAST_SHRINKAGE * len(graph.demand):
            break
        clusters_of.append(cluster)
        levels.append(with_bonds(problem, contract(graph, cluster, clusters)))
    return levels, clusters_of


def _tuples_through(graph: Graph) -> Floats:
    sums = np.concatenate(([0.0], np.cumsum(graph.rates)))
    through: Floats = sums[graph.starts[1:]] - sums[graph.starts[:-1]]
    return through


def _topologies_that_fit(problem: Problem, machines: Machines) -> Ints:
    """How many topologies find a worker for each of their groups on a supervisor; one, if any worker does."""
    pairs = np.unique(np.stack((problem.topology_of, problem.group_of)), axis=1)
    groups_of_topology = int(np.bincount(pairs[0]).max(initial=1))
    return np.minimum(machines.ports, np.maximum(1, machines.ports // groups_of_topology))


def _grown(problem: Problem, search: Search) -> Partition:
    state = empty_partition(len(search.graph.demand), search.machines)
    seeds = np.argsort(-search.graph.demand, kind="stable")
    grow(search, state, np.array(_filling_order(problem), dtype=np.int64), seeds)
    improve_partition(search, state, everybody(state))
    return state


def _filling_order(problem: Problem) -> list[int]:
    """Supervisors in use anyway and roomy ones first, zone by zone, each zone the closest to those before it.

    In each zone those that answer less than most come last.
    """
    room = problem.usable - problem.fixed_load
    first = np.lexsort((np.arange(len(room)), -room, ~problem.fixed_in_use, problem.is_risky))
    order = [at for at in first.tolist() if problem.free_ports[at]]
    if not order:
        return []
    left = list(dict.fromkeys(problem.zone_of[order].tolist()))
    zones = [left.pop(0)]
    distance = problem.zone_ms[zones[0]].copy()
    while left:
        # `left` is in the order of preference, so that of equally close zones the first is taken.
        nearest = left.pop(int(np.argmin(distance[left])))
        zones.append(nearest)
        distance += problem.zone_ms[nearest]
    rank = {zone: at for at, zone in enumerate(zones)}
    return sorted(order, key=lambda at: rank[int(problem.zone_of[at])])

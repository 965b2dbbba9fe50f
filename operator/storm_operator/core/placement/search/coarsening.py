"""A graph made smaller by joining executors that talk most: the coarsening phase of multilevel partitioning.

Heavy-edge matching after Karypis and Kumar (SIAM J. Sci. Comput. 20(1), 1998), rated by rate^2 over the product of the
demands (the `expansion*2` of Holtgrewe, Sanders and Schulz, IPDPS'10), so that no cluster grows out of proportion.
"""

from __future__ import annotations

import numpy as np

from storm_operator.core.arrays import NOWHERE, Floats, Ints
from storm_operator.core.placement.search.compiled import compiled, inner
from storm_operator.core.placement.search.partition_state import Graph

LEAST_DEMAND = 1e-3


@compiled
def match(graph: Graph, order: Ints, largest: float) -> tuple[Ints, int]:
    """The cluster of each vertex, and how many there are.

    Vertices choose in `order`; a cluster needs at most `largest` millicores.
    """
    size = len(graph.demand)
    cluster = np.full(size, NOWHERE)
    clusters = 0
    for vertex in order:
        if cluster[vertex] != NOWHERE:
            continue
        mate, best = NOWHERE, 0.0
        for edge in range(graph.starts[vertex], graph.starts[vertex + 1]):
            other = graph.neighbours[edge]
            if cluster[other] != NOWHERE or graph.demand[vertex] + graph.demand[other] > largest:
                continue
            weight = max(graph.demand[vertex], LEAST_DEMAND) * max(graph.demand[other], LEAST_DEMAND)
            rating = graph.rates[edge] * graph.rates[edge] / weight
            if rating > best:
                mate, best = other, rating
        cluster[vertex] = clusters
        if mate != NOWHERE:
            cluster[mate] = clusters
        clusters += 1
    return cluster, clusters


@compiled
def contract(graph: Graph, cluster: Ints, clusters: int) -> Graph:
    """The graph whose vertices are the clusters; a cluster has the group, and so the rank, of its first vertex."""
    demand, memory, share = np.zeros(clusters), np.zeros(clusters), np.zeros(clusters)
    group, rank = np.full(clusters, NOWHERE), np.zeros(clusters, dtype=np.int64)
    starts_of = np.zeros(clusters + 1, dtype=np.int64)
    for vertex in range(len(cluster)):
        demand[cluster[vertex]] += graph.demand[vertex]
        memory[cluster[vertex]] += graph.memory[vertex]
        share[cluster[vertex]] += graph.share[vertex]
        starts_of[cluster[vertex] + 1] += 1
        if group[cluster[vertex]] == NOWHERE:
            group[cluster[vertex]] = graph.group[vertex]
            rank[cluster[vertex]] = graph.rank[vertex]
    starts_of = np.cumsum(starts_of)
    members = np.zeros(len(cluster), dtype=np.int64)
    filled = starts_of[:-1].copy()
    for vertex in range(len(cluster)):
        members[filled[cluster[vertex]]] = vertex
        filled[cluster[vertex]] += 1
    starts, neighbours, rates = _joined(graph, cluster, clusters, members, starts_of)
    return Graph(starts, neighbours, rates, rates[:0], demand, rank, memory, share, group)


@inner
def _joined(graph: Graph, cluster: Ints, clusters: int, members: Ints, starts_of: Ints) -> tuple[Ints, Ints, Floats]:
    """Where the neighbours of each cluster are, who they are, and the rates: as in the graph of clusters."""
    edges = len(graph.neighbours)
    starts = np.zeros(clusters + 1, dtype=np.int64)
    neighbours = np.zeros(edges, dtype=np.int64)
    rates = np.zeros(edges)
    position = np.full(clusters, NOWHERE)
    end = 0
    for at in range(clusters):
        begin = end
        for member in range(starts_of[at], starts_of[at + 1]):
            vertex = members[member]
            for edge in range(graph.starts[vertex], graph.starts[vertex + 1]):
                other = cluster[graph.neighbours[edge]]
                if other == at:
                    continue
                if position[other] == NOWHERE:
                    position[other] = end
                    neighbours[end] = other
                    end += 1
                rates[position[other]] += graph.rates[edge]
        for edge in range(begin, end):
            position[neighbours[edge]] = NOWHERE
        starts[at + 1] = end
    return starts, neighbours[:end].copy(), rates[:end].copy()

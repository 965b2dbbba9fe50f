"""The problem as machine code wants it."""

from __future__ import annotations

import numpy as np

from storm_operator.core.arrays import NOWHERE
from storm_operator.core.placement.search.partition_state import WISHES, Graph, Homes, Machines, Pull, Search, Tariff
from storm_operator.core.placement.search.problem import Problem

SMALLEST_GAIN = 1e-9
"""As a share of what all traffic would cost between supervisors."""


def search_of(problem: Problem) -> Search:
    """Everything that a search needs, restarts included where the problem prices them.

    Of the same types whatever the problem: machine code that is not there yet takes minutes.
    """
    traffic = problem.traffic
    graph = with_bonds(
        problem,
        Graph(
            starts=traffic.indptr.astype(np.int64),
            neighbours=traffic.indices.astype(np.int64),
            rates=np.ascontiguousarray(traffic.data, dtype=np.float64),
            bonds=np.zeros(0),
            demand=problem.demand,
            rank=problem.rank,
            memory=problem.memory,
            share=problem.share,
            group=problem.group_of,
        ),
    )
    machines = Machines(
        room=problem.usable - problem.fixed_load,
        taken=problem.fixed_load,
        taken_above=problem.fixed_above,
        memory=problem.usable_memory - problem.fixed_memory,
        loss_ms=problem.loss_ms,
        is_risky=problem.is_risky,
        ports=np.array([len(ports) for ports in problem.free_ports], dtype=np.int64),
        in_use=problem.fixed_in_use,
        zone=problem.zone_of,
        zone_ms=np.ascontiguousarray(problem.zone_ms),
    )
    homes = Homes(problem.home, problem.settled, problem.restart_price, problem.kept_group, problem.kept_size)
    return Search(graph, machines, tariff_of(problem), homes, new_pull(machines, len(graph.demand)))


def with_bonds(problem: Problem, graph: Graph) -> Graph:
    """The graph with what is saved by sharing a supervisor: the way to another one less that to another worker."""
    sources = np.repeat(np.arange(len(graph.demand)), np.diff(graph.starts))
    strangers = graph.group[sources] != graph.group[graph.neighbours]
    saved_ms = problem.zone_ms[0, 0] - strangers * problem.between_workers_ms
    return graph._replace(bonds=graph.rates * saved_ms)


def afresh(search: Search, graph: Graph, machines: Machines) -> Search:
    """The search for a place for the vertices of `graph` as if none lived anywhere."""
    vertices = len(graph.demand)
    nothing = np.zeros((len(machines.room), 1), dtype=np.int64)
    homes = Homes(
        np.full(vertices, NOWHERE, dtype=np.int64),
        np.zeros(vertices, dtype=np.bool_),
        np.zeros(vertices),
        nothing + NOWHERE,
        nothing,
    )
    return Search(graph, machines, search.tariff._replace(has_restarts=False), homes, search.pull)


def with_own_scratch(search: Search) -> Search:
    """The same search, to go on beside the other on another core."""
    return search._replace(pull=new_pull(search.machines, len(search.graph.demand)))


def tariff_of(problem: Problem) -> Tariff:
    """The prices of the problem; a worker without a port costs more than all else together could."""
    farthest = float(problem.zone_ms.max(initial=0.0))
    everything = float(problem.traffic.sum()) * max(farthest, problem.between_workers_ms)
    everything += problem.supervisor_price * len(problem.supervisors) + 1.0
    needs = float(problem.demand.sum() + problem.fixed_load.sum())
    everything += problem.overload_price * needs * (1.0 + float(problem.rank_steps.sum()))
    everything += problem.overfull_price * float(problem.memory.sum())
    everything += float(problem.share.sum() * problem.loss_ms.max(initial=0.0))
    return Tariff(
        overloaded_millicore=problem.overload_price,
        overfull_megabyte=problem.overfull_price,
        supervisor=problem.supervisor_price,
        between_workers_ms=problem.between_workers_ms,
        missing_port=everything,
        smallest_gain=SMALLEST_GAIN * float(problem.traffic.sum() * farthest + 1.0),
        has_restarts=bool(problem.restart_price.any()),
        has_memory=bool(problem.memory.any()),
        rank_steps=problem.rank_steps,
        are_held=problem.are_held,
    )


def new_pull(machines: Machines, vertices: int) -> Pull:
    """Scratch for one search of at most so many vertices."""
    columns, zones = len(machines.room), len(machines.zone_ms)
    return Pull(
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(zones),
        np.zeros(zones),
        np.zeros(columns, dtype=np.int64),
        np.zeros(zones, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(vertices),
        np.zeros(vertices, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.full((vertices, WISHES), NOWHERE),
        np.zeros((vertices, WISHES)),
    )

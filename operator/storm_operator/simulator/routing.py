"""What follows from wiring and assignment: which tuples cross workers and supervisors, and what a tuple costs then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from storm_operator.core.arrays import NOWHERE, Flags, Floats, Ints
from storm_operator.core.distances import Distances
from storm_operator.core.model import Assignment
from storm_operator.simulator.arrays import Matrix, ratio, times, total_by
from storm_operator.simulator.model import Costs, SimulatedSupervisor
from storm_operator.simulator.wiring import Wiring

Levels = tuple[tuple[Ints, Matrix], ...]
"""For each level its executors, and what their executed tuples bring to all executors."""


@dataclass(frozen=True, slots=True)
class Places:
    """Supervisors and slots by number, and one way between supervisors in milliseconds."""

    supervisor_ids: tuple[str, ...]
    number_of: Mapping[str, int]
    one_way_ms: Floats
    loopback_one_way_ms: float


@dataclass(frozen=True, slots=True)
class Routing:
    """Rows as in `Wiring`; `worker_of` and `supervisor_of` are `NOWHERE` for executors without a place."""

    worker_of: Ints
    supervisor_of: Ints
    pair_weight: Floats
    pair_cumulative: Floats
    """Running sum of the pair weights, 0 first: a segment's pairs are chosen by it."""
    cpu_ms: Floats
    """CPU of the executor for each tuple that it executes,"""
    own_cpu_ms: Floats
    """and with what its worker adds to that."""
    network_cpu_ms: Matrix
    """CPU of each supervisor's network threads (rows) for each tuple that an executor (columns) executes."""
    levels: Levels
    feedback: Matrix
    """The same for pairs that lead back: what they bring arrives in the next step."""
    visits: Floats
    """Tuples that an executor executes for each tuple tree of its topology."""
    batch: Floats
    """Of the tuples that come to an executor at once from the same one, how many are before the middle one."""
    tree_cpu_ms: sparse.coo_array[np.float64]
    """CPU on each supervisor (rows) for each tuple tree of each topology (columns), network threads included."""


def places(supervisors: tuple[SimulatedSupervisor, ...], distances: Distances) -> Places:
    ids = tuple(sorted(supervisor.id for supervisor in supervisors))
    number_of = {supervisor_id: number for number, supervisor_id in enumerate(ids)}
    one_way = distances.matrix_ms(ids) / 2.0
    np.fill_diagonal(one_way, 0.0)
    return Places(ids, number_of, one_way, distances.loopback_ms / 2.0)


def route(wiring: Wiring, assignment: Assignment, where: Places, costs: Costs, emission_share: Floats) -> Routing:
    """`emission_share` is the part of its topology's tuple trees that an executor begins."""
    worker_of, supervisor_of = _located(wiring, assignment, where)
    weight = _localised(wiring, worker_of, supervisor_of)
    source = np.concatenate([wiring.pair_source, wiring.ack_source])
    target = np.concatenate([wiring.pair_target, wiring.ack_target])
    amount = np.concatenate([weight, wiring.ack_weight])
    leaves = worker_of[source] != worker_of[target]
    levels, feedback = _by_level(wiring, source, target, amount)
    cpu_ms = _executor_cpu_ms(wiring, costs, source, amount, leaves)
    network_cpu_ms = _network_cpu_ms(wiring, where, supervisor_of, source, target, amount * leaves, costs)
    own_cpu_ms = cpu_ms * (1.0 + costs.worker_cpu_share)
    return Routing(
        worker_of=worker_of,
        supervisor_of=supervisor_of,
        pair_weight=weight,
        pair_cumulative=np.concatenate([[0.0], np.cumsum(weight)]),
        cpu_ms=cpu_ms,
        network_cpu_ms=network_cpu_ms,
        levels=levels,
        feedback=feedback,
        own_cpu_ms=own_cpu_ms,
        **_by_tree(wiring, levels, weight, supervisor_of, own_cpu_ms, network_cpu_ms, emission_share),
    )


def with_shares(routing: Routing, wiring: Wiring, emission_share: Floats) -> Routing:
    """The same places and ways for trees that executors begin in other shares."""
    ways = routing.levels, routing.pair_weight, routing.supervisor_of, routing.own_cpu_ms, routing.network_cpu_ms
    return replace(routing, **_by_tree(wiring, *ways, emission_share))


def _by_tree(
    wiring: Wiring,
    levels: Levels,
    weight: Floats,
    supervisor_of: Ints,
    own_cpu_ms: Floats,
    network_cpu_ms: Matrix,
    emission_share: Floats,
) -> dict[str, Any]:
    """What of a routing depends on who begins the trees."""
    visits = visits_of(levels, emission_share)
    return {
        "visits": visits,
        "batch": _batches(wiring, weight, visits),
        "tree_cpu_ms": _tree_cpu_ms(wiring, supervisor_of, own_cpu_ms, network_cpu_ms, visits),
    }


def _located(wiring: Wiring, assignment: Assignment, where: Places) -> tuple[Ints, Ints]:
    slots = {slot: number for number, slot in enumerate(sorted(set(assignment.slot_of.values())))}
    worker_of = np.full(wiring.size, NOWHERE, dtype=np.int64)
    supervisor_of = np.full(wiring.size, NOWHERE, dtype=np.int64)
    for row, executor in enumerate(wiring.executors):
        slot = assignment.slot_of.get(executor)
        if slot is not None and slot.supervisor_id in where.number_of:
            worker_of[row] = slots[slot]
            supervisor_of[row] = where.number_of[slot.supervisor_id]
    return worker_of, supervisor_of


def _localised(wiring: Wiring, worker_of: Ints, supervisor_of: Ints) -> Floats:
    """Pair weights, with segments that prefer local targets narrowed to those that there are.

    Storm's shuffle (LoadAwareShuffleGrouping) begins with tasks of the own worker, else those of the own host, and
    widens only when their queues are four fifths full; that widening is not modelled. localOrShuffle without it knows
    the own worker alone.
    """
    weight = wiring.pair_weight
    if not wiring.segment_prefers_local.any():
        return weight
    starts = wiring.segment_start[:-1]
    sizes = np.diff(wiring.segment_start)
    same_worker = worker_of[wiring.pair_source] == worker_of[wiring.pair_target]
    same_host = supervisor_of[wiring.pair_source] == supervisor_of[wiring.pair_target]
    any_worker = np.add.reduceat(same_worker, starts) > 0
    any_host = np.add.reduceat(same_host, starts) > 0
    by_worker = np.repeat(wiring.segment_prefers_local & any_worker, sizes)
    by_host = np.repeat(wiring.segment_prefers_host & ~any_worker & any_host, sizes)
    eligible = np.where(by_worker, same_worker, np.where(by_host, same_host, True))
    narrowed = weight * eligible
    before, after = np.add.reduceat(weight, starts), np.add.reduceat(narrowed, starts)
    scale = ratio(before, after, 1.0)
    return narrowed * np.repeat(scale, sizes)


def _executor_cpu_ms(wiring: Wiring, costs: Costs, source: Ints, amount: Floats, leaves: Flags) -> Floats:
    emitted = total_by(source, amount, wiring.size)
    sent_out = total_by(source, amount * leaves, wiring.size)
    own = np.where(wiring.is_acker, costs.acker_cpu_ms, wiring.cpu_ms + costs.execute_cpu_ms)
    return own + emitted * costs.emit_cpu_ms + sent_out * costs.serialise_cpu_ms


def _network_cpu_ms(
    wiring: Wiring, where: Places, supervisor_of: Ints, source: Ints, target: Ints, leaving: Floats, costs: Costs
) -> Matrix:
    known = (leaving > 0.0) & (supervisor_of[source] != NOWHERE) & (supervisor_of[target] != NOWHERE)
    source, target, leaving = source[known], target[known], leaving[known] * costs.transfer_cpu_ms
    rows = np.concatenate([supervisor_of[source], supervisor_of[target]])
    columns = np.concatenate([source, source])
    shape = (len(where.supervisor_ids), wiring.size)
    return sparse.csr_array((np.concatenate([leaving, leaving]), (rows, columns)), shape=shape)


def _by_level(wiring: Wiring, source: Ints, target: Ints, amount: Floats) -> tuple[Levels, Matrix]:
    levels = []
    backward = wiring.level_of[target] <= wiring.level_of[source]
    column_of = np.zeros(wiring.size, dtype=np.int64)
    for level in range(int(wiring.level_of.max(initial=-1)) + 1):
        members = np.flatnonzero(wiring.level_of == level)
        column_of[members] = np.arange(len(members))
        mine = (wiring.level_of[source] == level) & ~backward & (amount > 0.0)
        matrix = sparse.csr_array(
            (amount[mine], (target[mine], column_of[source[mine]])), shape=(wiring.size, len(members))
        )
        levels.append((members, matrix))
    feedback = sparse.csr_array(
        (amount[backward], (target[backward], source[backward])), shape=(wiring.size, wiring.size)
    )
    return tuple(levels), feedback


def visits_of(levels: Levels, emission_share: Floats) -> Floats:
    """Tuples that each executor executes for each tree, where executors begin `emission_share` of the trees."""
    visits = emission_share.copy()
    for members, brings in levels:
        visits += times(brings, visits[members])
    return visits


def _batches(wiring: Wiring, weight: Floats, visits: Floats) -> Floats:
    """(E[X^2] - E[X]) / 2 E[X] for X tuples at once, binomial: n tuples each of which comes here with probability p."""
    tuples = np.repeat(wiring.segment_tuples, np.diff(wiring.segment_start))
    share = ratio(weight, tuples, 0.0)
    before = np.maximum(tuples - 1.0, 0.0) * np.minimum(share, 1.0) / 2.0
    flow = visits[wiring.pair_source] * weight
    arrived = total_by(wiring.pair_target, flow, wiring.size)
    return ratio(total_by(wiring.pair_target, flow * before, wiring.size), arrived, 0.0)


def _tree_cpu_ms(
    wiring: Wiring, supervisor_of: Ints, own_cpu_ms: Floats, network_cpu_ms: Matrix, visits: Floats
) -> sparse.coo_array[np.float64]:
    placed = np.flatnonzero(supervisor_of != NOWHERE)
    own = sparse.csr_array((own_cpu_ms[placed], (supervisor_of[placed], placed)), shape=network_cpu_ms.shape)
    topologies = len(wiring.topologies)
    by_topology = sparse.csr_array(
        (visits, (np.arange(wiring.size), wiring.topology_of)), shape=(wiring.size, topologies)
    )
    return sparse.coo_array((own + network_cpu_ms) @ by_topology)

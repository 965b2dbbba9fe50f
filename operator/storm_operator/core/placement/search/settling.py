"""A complete placement from a wish, improved until no step helps: for clusters of any size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from storm_operator.core.arrays import NOWHERE, Flags, Ints
from storm_operator.core.placement.search.compiled import compiled
from storm_operator.core.placement.search.kicks import kick_and_settle
from storm_operator.core.placement.search.multilevel import everybody, improve_partition
from storm_operator.core.placement.search.partition_state import Partition, Search, empty_partition, is_too_full, put
from storm_operator.core.placement.search.port_repair import repair_ports
from storm_operator.core.placement.search.problem import Problem
from storm_operator.core.placement.search.refinement import best_move
from storm_operator.core.placement.search.restoring import restore_workers
from storm_operator.core.placement.search.step_prices import cheapest, put_all, total_cost, wake

SEED = 1
MOST_ROUNDS = 3
"""Of putting workers back and looking again for what the room that they left is good for."""
HESITATION = 3.0
"""How much dearer restarts are at first when the search starts from what is in force."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A supervisor for each executor, what that costs (tuple-ms/s), and how many executors it moved to get there."""

    place: Ints
    total: float
    moved: int


def settle(problem: Problem, search: Search, wanted: Ints, patience: int, restless: Flags | None = None) -> Settled:
    """Executors where `wanted` says, the others (NOWHERE) where they cost least; then moved as long as that pays.

    `patience` is how many attempts to find something better by larger steps may be in vain one after the other.
    `restless` are those who have reason to leave home, where all others need not be looked at but for their sake.

    Needs at least one free port for each group in the cluster.
    """
    state = empty_partition(len(wanted), search.machines)
    put_all(search, state, wanted)
    through = np.asarray(problem.traffic.sum(axis=1), dtype=np.float64).ravel()
    _place_missing(search, state, np.argsort(-through, kind="stable"))
    awake = everybody(state) if restless is None else restless | _concerned(search, state, problem.home)
    improve_partition(search, state, awake)
    if search.tariff.has_restarts:
        for _ in range(MOST_ROUNDS):
            before = state.place.copy()
            if not restore_workers(search, state):
                break
            improve_partition(search, state, _concerned(search, state, before))
    if patience:
        kick_and_settle(search, state, patience, np.random.default_rng(SEED))
    if not repair_ports(search, state):
        raise ValueError(f"{problem.groups} workers have no port each")
    return Settled(state.place, float(total_cost(search, state)), int(np.count_nonzero(state.place != wanted)))


def settle_from_home(problem: Problem, search: Search, patience: int, restless: Flags | None = None) -> Settled:
    """As `settle`, from where everyone lives in force, with HESITATION.

    With `restless` the others are looked at only for the sake of these, unless somebody is short of CPU or memory in
    the end: for whom there is no room nearby, others must make way.

    The first step out of a worker pays for its restart and the others follow for nothing, so that steps taken one by
    one restart many workers for little each. With dearer restarts only the few best are opened for what must move;
    then all is looked at once more as it costs. Where the load of all changes that is 0.5 to 2% cheaper than without.
    """
    homes = search.homes
    dearer = search._replace(homes=homes._replace(restart_price=HESITATION * homes.restart_price))
    wanted = problem.home
    if search.tariff.has_restarts:
        wanted = settle(problem, dearer, problem.home, 0, restless).place
    found = settle(problem, search, wanted, patience, restless)
    if restless is not None and _is_anyone_short(search, found.place):
        return settle_from_home(problem, search, patience)
    return replace(found, moved=int(np.count_nonzero(found.place != problem.home)))


def _is_anyone_short(search: Search, place: Ints) -> bool:
    graph, machines = search.graph, search.machines
    columns = len(machines.room)
    load = np.bincount(place, weights=graph.demand, minlength=columns)
    memory = np.bincount(place, weights=graph.memory, minlength=columns)
    return bool((load > np.maximum(machines.room, 0.0)).any() or (memory > np.maximum(machines.memory, 0.0)).any())


@compiled
def _concerned(search: Search, state: Partition, before: Ints) -> Flags:
    """Who may find something better since they lived as in `before`, when they did not.

    Those who have moved, and who exchange tuples with them; who are on a supervisor that others have left or come to,
    or whose home it is; who exchange tuples with one there, where somebody has left; and who look everywhere, since
    they must leave. To look at all others again would take most of the time.
    """
    columns = len(state.load)
    left, changed = np.zeros(columns, dtype=np.bool_), np.zeros(columns, dtype=np.bool_)
    for vertex in range(len(before)):
        if state.place[vertex] != before[vertex]:
            changed[state.place[vertex]] = True
            if before[vertex] != NOWHERE:
                left[before[vertex]] = changed[before[vertex]] = True
    awake = np.zeros(len(before), dtype=np.bool_)
    for vertex in range(len(before)):
        at, home = state.place[vertex], search.homes.home[vertex]
        must_leave = is_too_full(search, state, at) or search.machines.is_risky[at]
        must_leave = must_leave or state.workers[at] > search.machines.ports[at]
        if left[at] or at != before[vertex]:
            wake(search, awake, vertex)
        elif changed[at] or must_leave or (home != NOWHERE and changed[home]):
            awake[vertex] = True
    return awake


def restless(search: Search) -> Flags:
    """Which executors live nowhere, or where CPU is short, or would cost less elsewhere, each alone."""
    home = search.homes.home
    state = empty_partition(len(home), search.machines)
    put_all(search, state, home)
    return _restless(search, state)


@compiled
def _restless(search: Search, state: Partition) -> Flags:
    flags = np.zeros(len(state.place), dtype=np.bool_)
    for vertex in range(len(state.place)):
        at = state.place[vertex]
        flags[vertex] = (
            at == NOWHERE or is_too_full(search, state, at) or best_move(search, state, vertex)[0] != NOWHERE
        )
    return flags


@compiled
def _place_missing(search: Search, state: Partition, order: Ints) -> None:
    for vertex in order:
        if state.place[vertex] != NOWHERE:
            continue
        column, _ = cheapest(search, state, vertex, NOWHERE)
        put(search, state, vertex, column)

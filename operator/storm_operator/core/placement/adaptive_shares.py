"""The default policy where a placement changes who gets the tuples: `adaptive`, judged and mended by its own shares.

The search takes rates and needs as given, but shuffle prefers executors nearby (`shuffle_shares`). So what it finds is
looked at as it would be in force, and is searched for anew by those rates; the cheapest is mended by single moves and
swaps, each looked at in the same way. Of that and the assignment in force, the cheaper one is proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, cycle, zip_longest

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Infeasible, WorkerSlot, in_order
from storm_operator.core.placement.adaptive import SMALLEST_GAIN, place_adaptive
from storm_operator.core.placement.bearable import is_beyond_gain
from storm_operator.core.placement.inventory import existing_slots
from storm_operator.core.placement.objective import see
from storm_operator.core.placement.prices import stateful_executors
from storm_operator.core.placement.shared_costs import SharedCosts
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.shuffle_shares import ShuffleShares
from storm_operator.core.snapshot import ClusterSnapshot

MOST_ROUNDS = 3
"""Of searching anew: after that, shares go in circles."""

MOST_TRIES = 400
"""Changes that mending looks at: each takes a fraction of a millisecond, or a few where a topology is large."""
TRIES_EXECUTORS = 20_000
"""Tries times executors of the cluster: where there are many, each try takes longer."""

MOST_EXECUTORS = 1_000
"""Of the cluster: above, what is found by the rates in force has to do, so that plans are made within the second."""

TotalCost = Callable[[Assignment], float]
Change = Callable[[Assignment], Mapping[Executor, WorkerSlot]]


def place_adaptive_as_shared(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> Assignment | Infeasible:
    """The cheapest assignment found by the rates that it would bring itself; `Infeasible` as `place_adaptive`."""
    first = place_adaptive(snapshot, demand, settings, if_it_pays=True)
    if isinstance(first, Infeasible) or first == snapshot.assignment or len(first.slot_of) > MOST_EXECUTORS:
        return first
    if _can_stay(snapshot, first, settings) and is_beyond_gain(snapshot, demand, settings):
        return first
    shares = ShuffleShares.of(snapshot, demand, settings.movable)
    found = list(_searched_anew(first, shares, settings))
    if len(found) == 1:
        return first
    total_of = SharedCosts(shares, settings).total
    best = _mended(min(found, key=total_of), total_of, shares, settings)
    in_force = snapshot.assignment
    if _can_stay(snapshot, best, settings) and not _is_cheaper(total_of(best), total_of(in_force)):
        return in_force
    return best


def _can_stay(snapshot: ClusterSnapshot, proposal: Assignment, settings: PlacementSettings) -> bool:
    """Whether all that may be moved have a place, on a supervisor that is there."""
    there, slot_of = existing_slots(snapshot), snapshot.assignment.slot_of
    return all(slot_of.get(e) in there for e in proposal.slot_of if e.topology_id in settings.movable)


def _searched_anew(first: Assignment, shares: ShuffleShares, settings: PlacementSettings) -> Iterator[Assignment]:
    """`first`, and what is found by the rates that the one before would bring; it alone if it brings no other rates."""
    known = [first]
    yield first
    while len(known) < MOST_ROUNDS:
        snapshot, demand = shares.under(known[-1])
        if snapshot is shares.snapshot:
            return
        found = place_adaptive(snapshot, demand, settings)
        if isinstance(found, Infeasible) or found in known:
            return
        known.append(found)
        yield found


def _mended(start: Assignment, total_of: TotalCost, shares: ShuffleShares, settings: PlacementSettings) -> Assignment:
    """`start` after each change that lowers its cost, in turn until none does or there were too many."""
    best, least = start, total_of(start)
    changes = _changes(start, shares, settings)
    tries = min(MOST_TRIES, TRIES_EXECUTORS // len(start.slot_of))
    tried = in_vain = 0
    for change in cycle(changes):
        if tried == tries or in_vain == len(changes):
            break
        in_vain += 1
        moves = change(best)
        if all(best.slot_of[executor] == slot for executor, slot in moves.items()):
            continue
        tried += 1
        changed = best.with_moves(moves)
        total = total_of(changed)
        if _is_cheaper(total, least):
            best, least, in_vain = changed, total, 0
    return best


def _changes(start: Assignment, shares: ShuffleShares, settings: PlacementSettings) -> Sequence[Change]:
    """One executor to another worker of its kind, and two of a kind that change places, in turn.

    Kinds are topology, and with state or without. Those come first that are where most CPU is wanted.
    """
    snapshot, demand = shares.under(start)
    wanted = see(snapshot, start, demand, settings).wanted_millicores
    stateful = stateful_executors(snapshot)
    kinds: dict[tuple[str, bool], list[Executor]] = {}
    for executor in sorted(
        in_order(e for e in start.slot_of if e.topology_id in settings.movable),
        key=lambda executor: -wanted.get(start.slot_of[executor].supervisor_id, 0.0),
    ):
        kinds.setdefault((executor.topology_id, executor in stateful), []).append(executor)
    moves: list[Change] = []
    swaps: list[Change] = []
    for executors in kinds.values():
        slots = list(dict.fromkeys(start.slot_of[executor] for executor in executors))
        moves.extend(_move(e, slot) for e in executors for slot in slots if slot != start.slot_of[e])
        swaps.extend(_swap(a, b) for a, b in combinations(executors, 2) if a.component != b.component)
    in_turn = (change for pair in zip_longest(moves, swaps) for change in pair)
    return [change for change in in_turn if change is not None]


def _move(executor: Executor, slot: WorkerSlot) -> Change:
    return lambda _: {executor: slot}


def _swap(a: Executor, b: Executor) -> Change:
    return lambda assignment: {a: assignment.slot_of[b], b: assignment.slot_of[a]}


def _is_cheaper(total: float, other: float) -> bool:
    return total < other - SMALLEST_GAIN * (1.0 + abs(other))

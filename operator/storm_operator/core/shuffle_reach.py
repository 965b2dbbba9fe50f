"""Whom Storm's shuffle reaches from where a sender lives, and how it shares among those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from storm_operator.core.arrays import NOWHERE, Flags, Floats, Ints
from storm_operator.core.model import Executor, WorkerSlot

NEARLY_ALL = 0.95
"""Of its tuples a sender keeps to full receivers in reach where it does not leave them."""


@dataclass(frozen=True, slots=True)
class Seats:
    """Where the executors of a component live: numbers that are alike in the same worker, and on the same supervisor.

    NOWHERE where one has no place.
    """

    workers: Ints
    supervisors: Ints


@dataclass(frozen=True, slots=True)
class NearFirst:
    """Two components of which the one sends to the nearest of the other, as it is under the assignment in force."""

    reach: Flags
    """Whom each sender (row) sends to."""
    is_new: Flags
    """Who was not seen to send: nobody knows to whom, but by its reach."""
    keeps_to_reach: bool
    """Whether they were seen to send as they should; where supervisors do not count, workers still may."""
    is_own_worker_only: bool
    """Whether senders with receivers in their own worker never send to others, full or not."""
    stays_when_full: bool
    """Whether those with a full receiver in reach were seen to send hardly anything to others."""
    tasks: Floats
    """Of each receiver."""


def near_first(
    block: Floats, senders: Seats, receivers: Seats, *, tasks: Floats, full: Flags, is_own_worker_only: bool
) -> NearFirst:
    """What `block` (tuples per second; a row for each sender, a column for each receiver) tells of two components.

    `full` is which receivers need nearly all that a thread has.
    """
    reach = in_reach(senders, receivers)
    tells = ~(with_own_worker(senders, receivers) & is_own_worker_only)  # those keep to it whatever the others do
    keeps = _keeps_to_reach(block[tells], reach[tells], tasks)
    beside_full = tells & _has_a_choice(block, reach) & reach[:, full].any(axis=1)
    stays = keeps and _share_inside(block[beside_full], reach[beside_full]) >= NEARLY_ALL
    if not keeps:
        reach = in_reach(senders, receivers, of_host=False)
    return NearFirst(reach, block.sum(axis=1) == 0.0, keeps, is_own_worker_only, stays, tasks)


def seats_of(
    executors: Mapping[str, Sequence[Executor]], slot_of: Mapping[Executor, WorkerSlot]
) -> Mapping[str, Seats]:
    """By component."""
    workers: dict[WorkerSlot | None, int] = {None: NOWHERE}
    supervisors: dict[str | None, int] = {None: NOWHERE}
    found: dict[str, Seats] = {}
    for name, own in executors.items():
        slots = [slot_of.get(executor) for executor in own]
        at_worker = [workers.setdefault(slot, len(workers)) for slot in slots]
        hosts = [None if slot is None else slot.supervisor_id for slot in slots]
        at_supervisor = [supervisors.setdefault(host, len(supervisors)) for host in hosts]
        found[name] = Seats(np.array(at_worker, dtype=np.int64), np.array(at_supervisor, dtype=np.int64))
    return found


def in_reach(senders: Seats, receivers: Seats, *, of_host: bool = True) -> Flags:
    """Whom each sender sends to: those of its worker, or else, if `of_host`, of its supervisor, or else all."""
    same_worker = _same(senders.workers, receivers.workers)
    same_host = _same(senders.supervisors, receivers.supervisors) & of_host
    reach: Flags = np.where(np.any(same_host, axis=1, keepdims=True), same_host, True)
    return np.where(np.any(same_worker, axis=1, keepdims=True), same_worker, reach)


def with_own_worker(senders: Seats, receivers: Seats) -> Flags:
    """Which senders have a receiver in their own worker."""
    near: Flags = np.any(_same(senders.workers, receivers.workers), axis=1)
    return near


def spread(sent: Floats, reach: Flags, tasks: Floats) -> Floats:
    """What each sender sends to those in its reach: to each task alike."""
    weights: Floats = reach * tasks
    shares: Floats = weights / weights.sum(axis=1)[:, None]
    return shares * sent[:, None]


def _same(ours: Ints, theirs: Ints) -> Flags:
    """Which of `theirs` (columns) are at the place of each of `ours` (rows); NOWHERE is no place."""
    same: Flags = (ours[:, None] == theirs) & (ours != NOWHERE)[:, None]
    return same


def _keeps_to_reach(block: Floats, reach: Flags, tasks: Floats) -> bool:
    """Whether senders with some receivers in reach, and others not, were seen to prefer those; true where none has."""
    told = _has_a_choice(block, reach)
    if not told.any():
        return True
    rows, inside = block[told], reach[told]
    if_even = float((rows.sum(axis=1) * (inside @ tasks)).sum()) / float(rows.sum() * tasks.sum())
    return _share_inside(rows, inside) > (1.0 + if_even) / 2.0


def _share_inside(block: Floats, reach: Flags) -> float:
    """Of all that these senders send; 0 where none does."""
    sent = float(block.sum())
    return float(block[reach].sum()) / sent if sent > 0.0 else 0.0


def _has_a_choice(block: Floats, reach: Flags) -> Flags:
    """The senders that send, with some receivers in reach and others not."""
    has: Flags = ~reach.all(axis=1) & (block.sum(axis=1) > 0.0)
    return has

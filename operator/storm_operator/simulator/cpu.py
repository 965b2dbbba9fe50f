"""How a supervisor's CPU is shared among threads that want more than there is."""

from __future__ import annotations

import numpy as np

from storm_operator.core.arrays import Floats, Ints
from storm_operator.simulator.arrays import count_by, total_by

UNLIMITED = np.inf
HIGHEST_STATIONARY_LOAD = 0.98
"""Closer to saturation than this a queue needs longer to build up than anything stays the same."""
LEAST_SEEN_IDLE = 0.02
"""The same for threads that are too many to count."""


def fair_levels(wanted: Floats, group_of: Ints, capacity: Floats) -> Floats:
    """The most that any member of each group gets, such that together they get no more than the group's capacity.

    Max-min fairness, which the kernel's scheduler gives to threads of equal weight: who wants less than the level gets
    all that it wants, the others get the level. Infinite where everybody gets what it wants. Members whose group is
    negative belong to none.
    """
    groups = len(capacity)
    levels = np.full(groups, UNLIMITED)
    member = group_of >= 0
    total = total_by(group_of[member], wanted[member], groups)
    contended = total > capacity
    if not contended.any():
        return levels
    rows = np.flatnonzero(member & contended[np.maximum(group_of, 0)])
    rows = rows[np.lexsort((wanted[rows], group_of[rows]))]
    group, want = group_of[rows], wanted[rows]
    first = np.searchsorted(group, np.arange(groups))
    count = count_by(group, groups)
    running = np.concatenate([[0.0], np.cumsum(want)])
    rank = np.arange(len(rows)) - first[group]
    satisfied_before = running[:-1] - running[first[group]]
    # With all members of smaller wants satisfied, the rest share what is left; the level is the first that fits.
    share = (capacity[group] - satisfied_before) / (count[group] - rank)
    fits = share <= want
    positions = np.where(fits, np.arange(len(rows)), len(rows))
    starts = np.unique(first[group])
    chosen = np.minimum.reduceat(positions, starts)
    ok = chosen < len(rows)
    levels[group[starts[ok]]] = np.maximum(share[chosen[ok]], 0.0)
    return levels


def stretch_by_others(others_utilisation: Floats, cores: Floats, one_of_them: Floats) -> Floats:
    """How much longer a thread takes because others use the same cores, at least 1.

    The mean slowdown of processor sharing on several servers, with Sakasegawa's approximation of the probability to
    wait. Where others are few, each of them in turn waits for all but itself, so that the idle share that it sees has
    its own use on top (Bard and Schweitzer's approximation of mean value analysis). `one_of_them` is that: the share of
    all cores that one of the others uses, on average over what they use. At 0 they are many, and one core's stretch is
    1 / (1 - utilisation); n threads that always run stretch it to n + 1. `benchmarks/shared_cores.py` holds it to real
    threads.
    """
    busy = np.clip(others_utilisation, 0.0, 1.0)
    waiting = busy ** (np.sqrt(2.0 * (cores + 1.0)) - 1.0)
    seen_idle = np.maximum(1.0 - busy + one_of_them, LEAST_SEEN_IDLE)
    return np.asarray(1.0 + waiting / (np.maximum(cores, 1.0) * seen_idle), dtype=np.float64)


def mean_wait_seconds(
    arrivals_per_second: Floats, service_rate: Floats, deviation: Floats, batch: Floats | float = 0.0
) -> Floats:
    """Mean wait in the queue of M^X/G/1 (Pollaczek and Khinchine) for services of mean 1/`service_rate`.

    `deviation` is the standard deviation of the service over its mean, `batch` as in `held_back`: of tuples that come
    together the first one's wait, since what they wait for each other is in `roots`. Close to saturation the formula
    knows no bound, while a queue needs time to grow: there the simulation's own backlog takes over.
    """
    rate = np.maximum(service_rate, 1e-12)
    load = np.clip(arrivals_per_second / rate, 0.0, HIGHEST_STATIONARY_LOAD)
    return load / (1.0 - load) * (1.0 + deviation**2 + 2.0 * batch) / (2.0 * rate)


def held_back(load: Floats, tuples_per_period: Floats, deviation: Floats, batch: Floats) -> Floats:
    """How much of what a server of the limit's own speed adds to the wait is left when the quota may be used at once.

    A fraction, at `load` of that server. A thread is held back only when the work that such a server would have waiting
    exceeds what the thread may use at once after idling: two quotas at the begin of a period (the burst is as large as
    the quota), one at its end, on average over the period; `tuples_per_period` is one. The tail of that work is
    exponential (Kingman's heavy-traffic approximation), and the longer the more tuples come together (`batch`, half of
    what the mean square of their number over its mean exceeds 1 by). Within a factor of 1.7 of a quota played out.
    """
    decay = 2.0 * (1.0 - np.clip(load, 0.0, HIGHEST_STATIONARY_LOAD)) / (1.0 + deviation**2 + 2.0 * batch)
    one_quota = np.maximum(decay * tuples_per_period, 1e-9)
    return np.exp(-one_quota) * -np.expm1(-one_quota) / one_quota

"""How a supervisor's CPU is shared among threads that want more than there is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from storm_operator.core.arrays import Flags, Floats, Ints
from storm_operator.simulator.arrays import count_by, total_by

UNLIMITED = np.inf
HIGHEST_STATIONARY_LOAD = 0.98
"""Closer to saturation than this a queue needs longer to build up than anything stays the same."""
LEVEL_TOLERANCE = 0.002
"""Of a level: as near as this to the one that is sought is near enough."""
SHORTER_STEP, LONGER_STEP = 0.4, 1.2
"""Times the step before, where a search turns and where it goes on: levels of other groups may move what is sought."""
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


@dataclass(frozen=True, slots=True)
class LevelSearch:
    """Looks for the levels at which threads turn out to want what leads to these very levels. Arrays are by group.

    Threads that get more hand on more work to others. So levels as they follow from what was wanted are too low and too
    high by turns, and may never meet. What is sought lies between a level and the one that follows from it: the next to
    be tried lies there, too, by a step from the last that is shorter after each turn.
    """

    levels: Floats
    """To be tried next."""
    top: Floats
    """The most that any member may have: at that, nobody has to share."""
    step: Floats
    went_up: Flags
    is_over: bool = False

    @classmethod
    def begin(cls, most: Floats, group_of: Ints, groups: int) -> LevelSearch:
        """As if nobody had to share. `most` is what each member may have; those of negative groups belong to none."""
        top, member = np.zeros(groups), group_of >= 0
        np.maximum.at(top, group_of[member], most[member])
        return cls(np.full(groups, UNLIMITED), top, np.full(groups, np.inf), np.zeros(groups, dtype=bool))

    def next(self, fair: Floats) -> LevelSearch:
        """`fair` are the levels by what turned out to be wanted at `levels`."""
        tried, then = np.minimum(self.levels, self.top), np.minimum(fair, self.top)
        up, way, near = then > tried, np.abs(then - tried), LEVEL_TOLERANCE * tried
        step = np.minimum(way, self.step * np.where(up == self.went_up, LONGER_STEP, SHORTER_STEP))
        levels = np.where(np.minimum(way, step) <= near, tried, tried + np.where(up, step, -step))
        is_over = bool((levels == tried).all())
        levels = np.where(levels >= (1.0 - LEVEL_TOLERANCE) * self.top, UNLIMITED, levels)
        is_on_its_way = way > near
        return LevelSearch(
            levels,
            self.top,
            np.where(is_on_its_way, step, self.step),
            np.where(is_on_its_way, up, self.went_up),
            is_over,
        )


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

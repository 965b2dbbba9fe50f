"""Complete latency by sampling: tuple trees are drawn and walked through queues and network.

A step emits far more trees than are drawn; each drawn one stands for as many. Its fate is settled when it begins, from
the queues as they are then: when it will be complete, or that it fails. Until that time it is pending.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from storm_operator.core.arrays import NOWHERE, Flags, Floats, Ints
from storm_operator.simulator.arrays import total_by
from storm_operator.simulator.model import Costs
from storm_operator.simulator.routing import Places, Routing
from storm_operator.simulator.wiring import Wiring

MOST_GENERATIONS = 64
MOST_TUPLES_PER_TREE = 400
"""Both beyond what a topology has without cycles: where these never end, a tree does."""
NEVER = np.inf


@dataclass(frozen=True, slots=True)
class Delays:
    """What a tuple meets at each executor in this step, in seconds."""

    backlog: Floats
    """Until all that waits already is executed."""
    wait: Floats
    """Mean of the random wait beyond that."""
    busy: Floats
    """Probability that there is such a wait: the executor's utilisation, of its limit as far as that holds it back."""
    service: Floats
    deviation: Floats
    is_down: Flags


@dataclass(slots=True)
class Sampler:
    """Draws tuple trees. `begins` are the executors that begin them."""

    wiring: Wiring
    where: Places
    costs: Costs
    random: np.random.Generator

    def walk(self, begins: Ints, acker: Ints, routing: Routing, delays: Delays) -> tuple[Floats, Floats]:
        """Seconds until each tree's spout learns that it is complete, and its complete latency as Storm reports it.

        Both are infinite when one of its tuples is lost. Storm's ackers measure the latency (Acker, AckObject): from
        the first message about a tree, mostly the spout's own, to the last one. The ways of the first and of the
        answer to the spout do not count.
        """
        count = len(begins)
        first = self._ack_arrival(begins, np.zeros(count), np.arange(count), acker, routing)
        last = first.copy()
        root, executor, at = np.arange(count), begins, np.zeros(count)
        topology_of = self.wiring.topology_of
        tuples = total_by(topology_of, routing.visits, len(self.wiring.topologies))
        budget = float((MOST_TUPLES_PER_TREE + 2.0 * tuples[topology_of[begins]]).sum())
        for _ in range(MOST_GENERATIONS + int(self.wiring.level_of.max(initial=0))):
            root, executor, at, together = self._children(root, executor, at, routing, delays)
            if not len(root):
                break
            at = at + self._time_at(executor, delays, together)
            at[delays.is_down[executor]] = NEVER
            arrival = self._ack_arrival(executor, at, root, acker, routing)
            np.maximum.at(last, root, arrival)
            np.minimum.at(first, root, arrival)
            budget -= len(root)
            if budget < 0:
                break
            alive = np.isfinite(at)
            root, executor, at = root[alive], executor[alive], at[alive]
        reported = np.subtract(last, np.minimum(first, last), out=np.full(count, NEVER), where=np.isfinite(last))
        return self._return_to_spout(last, begins, acker, routing, delays), reported

    def _children(
        self, root: Ints, executor: Ints, at: Floats, routing: Routing, delays: Delays
    ) -> tuple[Ints, Ints, Floats, Ints]:
        """By tuple that is sent: its tree, who gets it and when, and the first of those that come there with it."""
        wiring = self.wiring
        first, past = wiring.executor_segments[executor], wiring.executor_segments[executor + 1]
        segment = _ranges(first, past - first)
        parent = np.repeat(np.arange(len(executor)), past - first)
        is_all = wiring.segment_is_all[segment]
        tuples = wiring.segment_tuples[segment]
        copies = np.floor(tuples + self.random.random(len(tuples))).astype(np.int64)
        starts, sizes = wiring.segment_start[segment], np.diff(wiring.segment_start)[segment]
        drawn = self._draw(segment, copies * ~is_all, starts, sizes, routing)
        every = copies * is_all
        to_all = _ranges(np.repeat(starts, every), np.repeat(sizes, every))
        pair = np.concatenate([drawn, to_all])
        parent = np.concatenate([np.repeat(parent, copies * ~is_all), np.repeat(parent, every * sizes)])
        target = wiring.pair_target[pair]
        together, rank = _groups(parent * wiring.size + target)
        jitter = self.random.random(len(target))[together]
        hop = self.hop(executor[parent], target, routing, jitter)
        return root[parent], target, at[parent] + hop + rank * delays.service[target], together

    def _draw(self, segment: Ints, copies: Ints, starts: Ints, sizes: Ints, routing: Routing) -> Ints:
        """A pair for each copy, by the weights of its segment."""
        low = routing.pair_cumulative[np.repeat(starts, copies)]
        high = routing.pair_cumulative[np.repeat(starts + sizes, copies)]
        point = np.minimum(low + self.random.random(len(low)) * (high - low), np.nextafter(high, low))
        found = np.searchsorted(routing.pair_cumulative, point, side="right") - 1
        return np.clip(found, np.repeat(starts, copies), np.repeat(starts + sizes, copies) - 1)

    def _time_at(self, executor: Ints, delays: Delays, together: Ints | None = None) -> Floats:
        """Wait and service: the wait is 0 when the executor is free, else exponential, as in M/M/1.

        Tuples that come `together` find the same queue: their wait is that of the first, whose place that is.
        """
        waits = self.random.random(len(executor)) < delays.busy[executor]
        mean = delays.wait[executor] / np.maximum(delays.busy[executor], 1e-9)
        wait = waits * self.random.exponential(1.0, len(executor)) * mean
        if together is not None:
            wait = wait[together]
        spread = delays.deviation[executor]
        service = delays.service[executor] * (1.0 - spread + spread * self.random.exponential(1.0, len(executor)))
        return delays.backlog[executor] + wait + service

    def hop(self, source: Ints, target: Ints, routing: Routing, jitter: Floats | None = None) -> Floats:
        """From one executor to the other: an idle receiver looks up after a time that is uniform around its mean.

        `jitter` (0..1) is where in that time, None: drawn.
        """
        costs = self.costs
        place = routing.supervisor_of
        same_worker = routing.worker_of[source] == routing.worker_of[target]
        same_host = place[source] == place[target]
        one_way = self.where.one_way_ms[np.maximum(place[source], 0), np.maximum(place[target], 0)]
        network = np.where(
            same_worker,
            0.0,
            np.where(
                same_host,
                costs.between_workers_ms + self.where.loopback_one_way_ms,
                costs.between_supervisors_ms + one_way,
            ),
        )
        jitter = self.random.random(len(source)) if jitter is None else jitter
        delay = (network * (0.75 + 0.5 * self.random.random(len(source))) + 2.0 * costs.poll_ms * jitter) / 1000.0
        return np.where(place[target] == NOWHERE, NEVER, delay)

    def ackers_of(self, begins: Ints) -> Ints:
        """An acker for each tree; -1 where its topology has none."""
        topology = self.wiring.topology_of[begins]
        start, past = self.wiring.acker_start[topology], self.wiring.acker_end[topology]
        chosen = start + (self.random.random(len(begins)) * (past - start)).astype(np.int64)
        return np.where(past > start, chosen, NOWHERE)

    def _ack_arrival(self, executor: Ints, at: Floats, root: Ints, acker: Ints, routing: Routing) -> Floats:
        mine = acker[root]
        hop = self.hop(executor, np.maximum(mine, 0), routing)
        return np.where(mine == NOWHERE, at, at + hop)

    def _return_to_spout(self, latency: Floats, begins: Ints, acker: Ints, routing: Routing, delays: Delays) -> Floats:
        tracked = acker != NOWHERE
        at = np.maximum(acker, 0)
        through = self._time_at(at, delays) + self.hop(at, begins, routing)
        through += self.random.random(len(begins)) * 2.0 * (self.costs.spout_poll_ms - self.costs.poll_ms) / 1000.0
        through[delays.is_down[at]] = NEVER
        return np.where(tracked, latency + np.maximum(through, 0.0), latency)


@dataclass(slots=True)
class Pending:
    """Tuple trees on their way, one row for each drawn one: all arrays alike in length."""

    due: Floats = field(default_factory=lambda: np.empty(0))
    began: Floats = field(default_factory=lambda: np.empty(0))
    latency: Floats = field(default_factory=lambda: np.empty(0))
    trees: Floats = field(default_factory=lambda: np.empty(0))
    """How many trees the drawn one stands for."""
    topology: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    spout: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    acker: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    fails: Flags = field(default_factory=lambda: np.empty(0, bool))
    is_replay: Flags = field(default_factory=lambda: np.empty(0, bool))

    def add(self, other: Pending) -> None:
        for name in self.__slots__:
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))

    def take(self, wanted: Flags) -> Pending:
        """Remove the wanted rows and return them."""
        taken = Pending(*(getattr(self, name)[wanted] for name in self.__slots__))
        for name in self.__slots__:
            setattr(self, name, getattr(self, name)[~wanted])
        return taken

    def with_trees(self, trees: Floats) -> Pending:
        """The same rows, each standing for another number of trees."""
        return replace(self, trees=trees)

    def count(self, topologies: int, rows: Flags | None = None) -> Floats:
        """Trees by topology."""
        if rows is None:
            return total_by(self.topology, self.trees, topologies)
        return total_by(self.topology[rows], self.trees[rows], topologies)


def _ranges(first: Ints, length: Ints) -> Ints:
    """first[0], first[0] + 1, ... (length[0] of them), first[1], ..."""
    total = int(length.sum())
    if not total:
        return np.empty(0, np.int64)
    ends = np.cumsum(length)
    return np.arange(total) - np.repeat(ends - length, length) + np.repeat(first, length)


def _groups(keys: Ints) -> tuple[Ints, Ints]:
    """For each key the place of the first one like it, and how many like it came before."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(keys) else np.empty(0, bool)
    first_at = np.maximum.accumulate(np.where(begins, np.arange(len(keys)), 0))
    first, rank = np.empty_like(order), np.empty_like(order)
    first[order] = order[first_at]
    rank[order] = np.arange(len(keys)) - first_at
    return first, rank

"""The tuple trees on their way: what began, what is complete, what failed and is sent again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from storm_operator.core.arrays import Flags, Floats, Ints
from storm_operator.simulator.arrays import ratio, total_by
from storm_operator.simulator.heirs import Heirs
from storm_operator.simulator.model import SimulatedTopology
from storm_operator.simulator.roots import Delays, Pending, Sampler
from storm_operator.simulator.routing import Routing
from storm_operator.simulator.totals import Totals
from storm_operator.simulator.wiring import Wiring


@dataclass(frozen=True, slots=True)
class Finished:
    """Trees that are complete: latencies in seconds, with the trees that each stands for."""

    topology: Ints
    latency: Floats
    trees: Floats


class Trees:
    """Draws some of the trees that begin in each step, and settles when each will be complete or fail."""

    def __init__(
        self,
        topologies: tuple[SimulatedTopology, ...],
        wiring: Wiring,
        sampler: Sampler,
        random: np.random.Generator,
        drawn_trees: int,
    ) -> None:
        self._wiring, self._sampler, self._random, self._drawn = wiring, sampler, random, drawn_trees
        self._timeout = np.array([topology.message_timeout_seconds for topology in topologies])
        self._replays = np.array([topology.replays_failed for topology in topologies], dtype=bool)
        self._replays_once = np.array([topology.replays_once for topology in topologies], dtype=bool)
        self._first_row = np.searchsorted(wiring.topology_of, np.arange(len(topologies) + 1))
        self.tracked = wiring.acker_end > wiring.acker_start
        self.pending = Pending()
        self.mean_seconds: Floats = np.zeros(len(topologies))
        """How long the trees of each topology that began last will be pending."""

    def take_over(self, earlier: Trees, heirs: Heirs) -> None:
        """Go on with the trees of former executors."""
        self.pending, self.mean_seconds = earlier.pending, earlier.mean_seconds
        self.pending.spout = heirs.of_first_task[self.pending.spout]
        self.pending.acker = heirs.of_first_task[self.pending.acker]

    def begin(
        self, emitted: Floats, replayed_share: Floats, routing: Routing, delays: Delays, begin: float, step: float
    ) -> None:
        """`emitted` trees began at spout executors; `replayed_share` of them for the second time."""
        by_topology = total_by(self._wiring.topology_of, emitted, len(self._timeout))
        drawn_from = np.flatnonzero(self.tracked & (by_topology > 0.0))
        if not len(drawn_from):
            return
        topology = np.repeat(drawn_from, self._drawn)
        spout = self._draw_spouts(emitted, topology)
        acker = self._sampler.ackers_of(spout)
        complete, latency = self._sampler.walk(spout, acker, routing, delays)
        patience = self._patience(topology)
        fails = complete > patience
        lasts = np.where(fails, patience, complete)
        began = begin + self._random.random(len(topology)) * step
        self.pending.add(
            Pending(
                due=began + lasts,
                began=began,
                latency=latency,
                trees=by_topology[topology] / self._drawn,
                topology=topology,
                spout=spout,
                acker=acker,
                fails=fails,
                is_replay=self._random.random(len(spout)) < replayed_share[spout],
            )
        )
        self.mean_seconds[drawn_from] = lasts.reshape(len(drawn_from), self._drawn).mean(axis=1)

    def settle(self, now: float, totals: Totals) -> tuple[Finished, Floats]:
        """Trees whose time has come: those that are complete, and how many are sent again by each spout executor."""
        ended = self.pending.take(self.pending.due <= now)
        number = len(self._timeout)
        complete = ~ended.fails
        totals.acked += ended.count(number, complete)
        totals.failed += ended.count(number, ended.fails)
        finished = Finished(ended.topology[complete], ended.latency[complete], ended.trees[complete])
        return finished, self._sent_again(ended, ended.fails, totals)

    def forget(self, spouts: Ints, totals: Totals) -> Floats:
        """The processes of spout executors `spouts` are gone, and what they knew of their pending trees with them.

        These take no place any longer, and no answer is heard. Returns how many each spout executor sends again: a
        source such as Kafka is read on from what was acknowledged.
        """
        gone = self.pending.take(np.isin(self.pending.spout, spouts))
        totals.forgotten += gone.count(len(self._timeout))
        return self._sent_again(gone, np.ones(len(gone.trees), dtype=bool), totals)

    def fail(self, lost: Floats, now: float) -> None:
        """`lost` of each topology's pending trees will not be complete after all."""
        open_ones = self._open_ones(now)
        there = self.pending.count(len(self._timeout), open_ones)
        part = np.minimum(ratio(lost, there, 0.0), 1.0)
        hit = open_ones & (part[self.pending.topology] > 0.0)
        if not hit.any():
            return
        doomed = self.pending.take(hit)
        share = part[doomed.topology]
        self.pending.add(doomed.with_trees(doomed.trees * (1.0 - share)))
        self._let_time_out(doomed.with_trees(doomed.trees * share), now)

    def lose_track(self, ackers: Ints, now: float) -> None:
        """The processes of acker executors `ackers` are gone, and with them what was acked of the trees they follow."""
        orphaned = self._open_ones(now) & np.isin(self.pending.acker, ackers)
        if orphaned.any():
            self._let_time_out(self.pending.take(orphaned), now)

    def _open_ones(self, now: float) -> Flags:
        return ~self.pending.fails & (self.pending.due > now)

    def _let_time_out(self, doomed: Pending, now: float) -> None:
        """These are pending again, until their spout's patience is over."""
        doomed.due = np.maximum(doomed.began + self._patience(doomed.topology), now)
        doomed.fails = np.ones(len(doomed.trees), dtype=bool)
        self.pending.add(doomed)

    def _sent_again(self, ended: Pending, unsuccessful: Flags, totals: Totals) -> Floats:
        """By spout executor, those of the `unsuccessful` trees that its source sends again; counted in `totals`."""
        again = unsuccessful & self._replays[ended.topology]
        again &= ~(self._replays_once[ended.topology] & ended.is_replay)
        totals.replayed += ended.count(len(self._timeout), again)
        return total_by(ended.spout[again], ended.trees[again], self._wiring.size)

    def _draw_spouts(self, emitted: Floats, topology: Ints) -> Ints:
        """A spout executor of each topology, by what they emitted."""
        running = np.concatenate([[0.0], np.cumsum(emitted)])
        low, high = running[self._first_row[topology]], running[self._first_row[topology + 1]]
        point = np.minimum(low + self._random.random(len(topology)) * (high - low), np.nextafter(high, low))
        found = np.searchsorted(running, point, side="right") - 1
        # Emissions too small for the running sum to show belong to the topology's first or last row all the same.
        return np.asarray(np.clip(found, self._first_row[topology], self._first_row[topology + 1] - 1), dtype=np.int64)

    def _patience(self, topology: Ints) -> Floats:
        """Storm looks once per timeout for trees that are older: they fail between once and twice the timeout."""
        return self._timeout[topology] * (1.0 + self._random.random(len(topology)))

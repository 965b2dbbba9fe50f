"""Where tuples come from: what spouts are offered, what waits to be sent, and what they may send."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from storm_operator.core.arrays import NOWHERE, Floats, Ints
from storm_operator.simulator.arrays import ratio, times, total_by
from storm_operator.simulator.cluster import ClusterState
from storm_operator.simulator.conditions import Conditions
from storm_operator.simulator.cpu import fair_levels
from storm_operator.simulator.heirs import Heirs
from storm_operator.simulator.load import LoadShape
from storm_operator.simulator.model import STORM_RECEIVE_QUEUE, SimulatedTopology
from storm_operator.simulator.routing import Routing, visits_of
from storm_operator.simulator.totals import Totals
from storm_operator.simulator.trees import Trees
from storm_operator.simulator.wiring import Wiring

LEAST_SHARE_OF_A_TOPOLOGY = 0.1
SAME_SHARE = 0.01
"""Of a share of trees: one that differs by less is the same."""


class Sources:
    """The spouts' sources and the rules that hold spouts back. Arrays are by executor, 0 for all but spouts."""

    def __init__(self, topologies: tuple[SimulatedTopology, ...], wiring: Wiring) -> None:
        self._topologies, self._wiring = topologies, wiring
        self._keeps_backlog = np.array([t.source_keeps_backlog for t in topologies])[wiring.topology_of]
        self._loads = self._spout_loads()
        self._have_rivals = any(sum(c.load is not None for c in t.components) > 1 for t in topologies)
        tasks = total_by(wiring.topology_of, wiring.is_spout * wiring.tasks, len(topologies))
        self._limited = [n for n, t in enumerate(topologies) if t.max_spout_pending is not None and t.ackers > 0]
        self.most_pending: Floats = np.full(len(topologies), np.inf)
        """Trees of each topology that may be pending (which counts per spout task)."""
        for at in self._limited:
            self.most_pending[at] = tasks[at] * (topologies[at].max_spout_pending or 0)
        self.backlog: Floats = np.zeros(wiring.size)
        self.replays: Floats = np.zeros(wiring.size)
        self.shares_of_trees: Floats = self._shares([shape.rate_at(0.0) for _, shape in self._loads])
        """Which part of its topology's trees each spout executor begins: at first by the loads at the beginning."""
        self.begun: Floats = np.zeros(len(topologies))
        """Trees that each topology began in the last step."""

    def take_over(self, earlier: Sources, heirs: Heirs) -> None:
        """Go on with what waits to be sent by former executors."""
        self.backlog, self.replays = times(heirs.shares, earlier.backlog), times(heirs.shares, earlier.replays)
        self.begun = earlier.begun

    def offered(self, begin: float, step: float) -> Floats:
        """Tuples that come to each spout executor in this step."""
        offered = np.zeros(self._wiring.size)
        for rows, shape in self._loads:
            offered[rows] = self._wiring.load_share[rows] * shape.rate_at(begin + step / 2.0) * step
        return offered

    def follow(self, offered: Floats) -> bool:
        """Whether by what is `offered` now other shares of the trees begin at spouts than before.

        Only where a topology has several: one spout always begins all. A spout that is offered nothing counts with what
        waits to be sent; where no spout of a topology has anything, all is as it was.
        """
        if not self._have_rivals:
            return False
        of, waiting = self._wiring.topology_of, self.backlog + self.replays
        shares = self._shares([float(offered[rows].sum()) or float(waiting[rows].sum()) for rows, _ in self._loads])
        idle = total_by(of, offered + waiting, len(self._topologies)) <= 0.0
        shares = np.where(idle[of], self.shares_of_trees, shares)
        if np.allclose(shares, self.shares_of_trees, rtol=SAME_SHARE, atol=0.0):
            return False
        self.shares_of_trees = shares
        return True

    def _shares(self, by_spout: Sequence[float]) -> Floats:
        """By spout executor, where each spout's executors together begin trees in proportion to these."""
        share = np.zeros(self._wiring.size)
        for (rows, _), amount in zip(self._loads, by_spout, strict=True):
            share[rows] = self._wiring.load_share[rows] * max(amount, 1e-6)
        total = total_by(self._wiring.topology_of, share, len(self._topologies))
        return share / np.maximum(total, 1e-12)[self._wiring.topology_of]

    def allowed(
        self,
        wanted: Floats,
        queue: Floats,
        trees: Trees,
        cluster: ClusterState,
        routing: Routing,
        conditions: Conditions,
        begin: float,
        step: float,
    ) -> Floats:
        """What spouts may emit of what they want to: pauses, back-pressure, max spout pending.

        Back-pressure holds all spouts of a topology back for the same part of the time. Places under max spout pending
        go to those who need few first. Who does not run takes nothing from the others.
        """
        of, number = self._wiring.topology_of, len(self._topologies)
        runs = ~conditions.is_down
        most = self._until_full(queue, routing, conditions, step)
        for at, topology in enumerate(self._topologies):
            if cluster.is_spout_paused(topology.id, begin):
                most[at] = 0.0
        if self._limited:
            free = np.full(number, np.inf)
            free[self._limited] = self._free_pending(trees, routing, conditions, begin, step)[self._limited]
            spouts_of = np.where(self._wiring.is_spout & runs, of, NOWHERE)
            wanted = np.minimum(wanted, fair_levels(wanted, spouts_of, free)[of])
        total = total_by(of, wanted * runs, number)
        part = np.where(total > most, ratio(most, total, 1.0), 1.0)
        return np.asarray(wanted * part[of], dtype=np.float64)

    def keep_unsent(self, wanted: Floats, executed: Floats, totals: Totals) -> Floats:
        """What was not sent waits, replays always, new tuples where their source keeps them; else they are lost.

        Replays go first. Returns which part of what each spout executor sent were replays.
        """
        of, number = self._wiring.topology_of, len(self._topologies)
        sent = np.where(self._wiring.is_spout, executed, 0.0)
        replays = np.minimum(self.replays, sent)
        self.replays = self.replays - replays
        unsent = np.maximum(np.where(self._wiring.is_spout, wanted - sent, 0.0) - self.replays, 0.0)
        self.backlog = np.where(self._keeps_backlog, unsent, 0.0)
        self.begun = total_by(of, sent, number)
        totals.unsent += total_by(of, unsent - self.backlog, number)
        return ratio(replays, sent, 0.0)

    def _spout_loads(self) -> tuple[tuple[Ints, LoadShape], ...]:
        shapes = {(t.id, c.name): c.load for t in self._topologies for c in t.components if c.load is not None}
        return tuple(
            (np.flatnonzero(self._wiring.component_of == number), shapes[name])
            for number, name in enumerate(self._wiring.component_names)
            if name in shapes
        )

    def _free_pending(
        self, trees: Trees, routing: Routing, conditions: Conditions, begin: float, step: float
    ) -> Floats:
        """Trees that each topology may begin in this step under its max spout pending (which counts per spout task).

        Those that stay pending take a place each; others are begun and finished within the step, as far as latency
        (Little's law: a spout cannot begin more than pending / latency per second) and CPU allow. Trees that come to an
        executor that does not work stay, whatever the last ones took.
        """
        number = len(self._topologies)
        stay = trees.pending.count(number, trees.pending.due > begin + step)
        ending = trees.pending.count(number) - stay
        free = np.maximum(self.most_pending - stay, 0.0)
        by_latency = free / np.clip(trees.mean_seconds / step, 1e-6, 1.0)
        beyond = np.maximum(self._finishable(routing, conditions, step) - ending, 0.0)
        most = np.minimum(by_latency, free + beyond)
        share_that_stays = self._share_that_stays(routing, conditions)
        return np.asarray(np.minimum(most, free / np.maximum(share_that_stays, 1e-9)), dtype=np.float64)

    def _share_that_stays(self, routing: Routing, conditions: Conditions) -> Floats:
        """The part of the trees that each topology begins now that comes to an executor that does not work."""
        of, number = self._wiring.topology_of, len(self._topologies)
        works = conditions.most_millicores > 0.0
        if works.all():
            return np.zeros(number)
        begun = np.where(works, self.shares_of_trees, 0.0)
        stuck = visits_of(routing.levels, begun) * ~works
        return np.minimum(ratio(total_by(of, stuck, number), total_by(of, begun, number), 0.0), 1.0)

    def _until_full(self, queue: Floats, routing: Routing, conditions: Conditions, step: float) -> Floats:
        """Trees that each topology may begin in a step before back-pressure stops it: no queue is over-full afterwards.

        Spouts go on as soon as queues are no longer full: who drains them is never left without work. At who is down
        nothing fills up: what is sent there is lost.
        """
        room = np.maximum(STORM_RECEIVE_QUEUE + _executed_at_most(routing, conditions, step) - queue, 0.0)
        return self._trees_for(np.where(conditions.is_down, np.inf, room), routing)

    def _trees_for(self, tuples: Floats, routing: Routing) -> Floats:
        """Trees of each topology, of which no executor gets more than its `tuples`."""
        most = np.full(len(self._topologies), np.inf)
        np.minimum.at(most, self._wiring.topology_of, ratio(tuples, routing.visits, np.inf))
        return most

    def _finishable(self, routing: Routing, conditions: Conditions, step: float) -> Floats:
        """Trees of each topology that its executors and supervisors can finish in a step, others doing as before.

        Executors that do not work at all bound nothing here: trees that come to them stay pending, a place each.
        """
        works = conditions.most_millicores > 0.0
        most = self._trees_for(np.where(works, _executed_at_most(routing, conditions, step), np.inf), routing)
        of = routing.tree_cpu_ms
        left = (conditions.capacity_millicores - conditions.quota_idle_millicores) * step
        used = of.data * self.begun[of.col]
        others = total_by(of.row.astype(np.int64), used, len(left))[of.row] - used
        share = np.maximum(left[of.row] - others, LEAST_SHARE_OF_A_TOPOLOGY * left[of.row])
        np.minimum.at(most, of.col, ratio(share, of.data, np.inf))
        return most


def _executed_at_most(routing: Routing, conditions: Conditions, step: float) -> Floats:
    """Tuples that each executor can execute in a step with all the CPU that it may have."""
    return np.asarray(step * conditions.most_millicores / np.maximum(routing.cpu_ms, 1e-9), dtype=np.float64)

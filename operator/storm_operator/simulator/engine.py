"""The simulation: rates per step, queues as levels of a fluid, latency from queueing and sampled tuple trees.

In each step spouts emit what they are offered and may (max spout pending, back-pressure, pauses); tuples go down the
topology level by level, each executor executing what its share of CPU allows and keeping the rest in its queue. CPU is
shared max-min within a supervisor. What that means for the trees that began in the step is drawn by `roots`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from storm_operator.core.model import Assignment, Executor
from storm_operator.simulator.accounting import Work, count_cpu, delays_of
from storm_operator.simulator.arrays import Floats, Ints, ratio, times, total_by
from storm_operator.simulator.cluster import ClusterState
from storm_operator.simulator.conditions import Conditions, ConditionsReader
from storm_operator.simulator.cpu import fair_levels
from storm_operator.simulator.load import LoadShape
from storm_operator.simulator.model import STORM_RECEIVE_QUEUE, ClusterModel
from storm_operator.simulator.roots import Sampler
from storm_operator.simulator.routing import Places, Routing, places, route
from storm_operator.simulator.totals import Totals
from storm_operator.simulator.trees import Finished, Trees
from storm_operator.simulator.wiring import Wiring, wire

DEFAULT_STEP_SECONDS = 0.5
MOST_SHARING_ROUNDS = 5
LEAST_SHARE_OF_A_TOPOLOGY = 0.1
LEAST_CAPACITY_SHARE = 0.02
"""What network threads and idling leave to executors at least, as a share of the supervisor's CPU."""


@dataclass(frozen=True, slots=True)
class Record:
    """What happened since somebody began to keep it and cannot be told from totals.

    `flows` are tuples executed by each executor under each routing: traffic pairs follow from them.
    """

    flows: list[tuple[Routing, Floats]]
    finished: list[Finished]


class Engine:
    """Simulates one cluster. `advance_to` is the only way forward; the state is there to be read between steps."""

    def __init__(
        self,
        model: ClusterModel,
        assignment: Assignment,
        seed: int = 0,
        step_seconds: float = DEFAULT_STEP_SECONDS,
        drawn_trees: int = 32,
    ) -> None:
        self.model = model
        self.step_seconds = step_seconds
        self.wiring: Wiring = wire(model.topologies)
        self.where: Places = places(model.supervisors, model.distances)
        self.topologies = tuple(sorted(model.topologies, key=lambda topology: topology.id))
        self.row_of = {executor: row for row, executor in enumerate(self.wiring.executors)}
        self.cluster = ClusterState(model, seed)
        self.cluster.restore_seconds = {
            executor: float(self.wiring.restore_seconds[row]) for executor, row in self.row_of.items()
        }
        random = np.random.default_rng((seed, 2))
        sampler = Sampler(self.wiring, self.where, model.costs, random)
        self.trees = Trees(self.topologies, self.wiring, sampler, random, drawn_trees)
        self._conditions = ConditionsReader(model, self.cluster, self.wiring, self.where)
        size, topologies = self.wiring.size, len(self.topologies)
        self.now = 0.0
        self.queue: Floats = np.zeros(size)
        self.stationary_queue: Floats = np.zeros(size)
        """Tuples that wait on average although the executor keeps up: Little's law on the mean wait."""
        self.source_backlog: Floats = np.zeros(size)
        self.replays_waiting: Floats = np.zeros(size)
        self.totals = Totals.zero(size, topologies, len(self.where.supervisor_ids))
        self._records: list[Record] = []
        self._keeps_backlog = np.array([t.source_keeps_backlog for t in self.topologies])[self.wiring.topology_of]
        self._loads = self._spout_loads()
        self._emission_share = self._shares_of_trees()
        self._carried: Floats = np.zeros(size)
        self._begun: Floats = np.zeros(topologies)
        """Trees that each topology began in the last step."""
        self._levels: Floats = np.full(len(self.where.supervisor_ids), np.inf)
        self._routed_version = -1
        self.routing: Routing
        self.cluster.place(assignment, 0.0, immediately=True)
        self._reroute()

    def advance_to(self, seconds: float) -> None:
        """Whole steps up to `seconds`; what is left of a step waits for the next call."""
        while self.now + self.step_seconds <= seconds + 1e-9:
            self._step()

    def record(self) -> Record:
        """A record that is kept from now on, in addition to those that are kept already."""
        record = Record([(self.routing, np.zeros(self.wiring.size))], [])
        self._records.append(record)
        return record

    def stop(self, record: Record) -> None:
        """`record` need not be kept any longer."""
        self._records = [kept for kept in self._records if kept is not record]

    def lose(self, executors: frozenset[Executor]) -> None:
        """What waited at `executors` is gone: the trees that it belonged to will fail."""
        if not executors:
            return
        rows = np.array([self.row_of[executor] for executor in sorted(executors) if executor in self.row_of])
        gone = self.queue[rows].copy()
        self.queue[rows] = 0.0
        self.totals.lost[rows] += gone
        trees = gone / np.maximum(1.0, self.routing.visits[rows])
        self.trees.fail(total_by(self.wiring.topology_of[rows], trees, len(self.topologies)), self.now)

    def place(self, assignment: Assignment) -> None:
        """Put `assignment` in force now."""
        self.lose(self.cluster.place(assignment, self.now))
        self._reroute()

    def _spout_loads(self) -> tuple[tuple[Ints, LoadShape], ...]:
        loads = []
        for number, (topology_id, name) in enumerate(self.wiring.component_names):
            topology = next(t for t in self.topologies if t.id == topology_id)
            shape = next((c.load for c in topology.components if c.name == name), None)
            if shape is not None:
                loads.append((np.flatnonzero(self.wiring.component_of == number), shape))
        return tuple(loads)

    def _shares_of_trees(self) -> Floats:
        """Which part of its topology's trees a spout executor begins, by the loads at the beginning."""
        share = np.zeros(self.wiring.size)
        for rows, shape in self._loads:
            share[rows] = self.wiring.load_share[rows] * max(shape.rate_at(0.0), 1e-6)
        total = total_by(self.wiring.topology_of, share, len(self.topologies))
        return share / np.maximum(total, 1e-12)[self.wiring.topology_of]

    def _reroute(self) -> None:
        if self.cluster.version != self._routed_version:
            self.routing = route(
                self.wiring, self.cluster.assignment, self.where, self.model.costs, self._emission_share
            )
            for record in self._records:
                record.flows.append((self.routing, np.zeros(self.wiring.size)))
            self._routed_version = self.cluster.version

    def _step(self) -> None:
        step, begin = self.step_seconds, self.now
        for supervisor_id in self.cluster.faults_begin(begin - step, begin):
            self.lose(self.cluster.kill_workers_of(supervisor_id))
        self.lose(self.cluster.reschedule_lost(begin))
        self._reroute()
        conditions = self._conditions.at(begin, self.routing)
        offered = self._offered(begin)
        wanted = offered + self.source_backlog + self.replays_waiting
        emission = self._allowed(wanted, conditions, begin)
        executed, arrived = self._flow(emission, conditions)
        before = self.queue
        self._count(executed, arrived, offered, conditions)
        replayed_share = self._keep_unsent(wanted, executed)
        work = Work(executed, arrived, (before + self.queue) / 2.0, self._levels, step)
        count_cpu(self.totals, work, self.routing, conditions, self.model.costs)
        delays = delays_of(work, self.routing, conditions, self.wiring.cpu_deviation, self.model.costs)
        self.stationary_queue = delays.wait * arrived / step
        self.trees.begin(executed * self.wiring.is_spout, replayed_share, self.routing, delays, begin, step)
        self.now = begin + step
        finished, again = self.trees.settle(self.now, self.totals)
        self.replays_waiting += again
        for record in self._records:
            record.finished.append(finished)

    def _offered(self, begin: float) -> Floats:
        """Tuples that come to each spout executor in this step."""
        offered = np.zeros(self.wiring.size)
        middle = begin + self.step_seconds / 2.0
        for rows, shape in self._loads:
            offered[rows] = self.wiring.load_share[rows] * shape.rate_at(middle) * self.step_seconds
        return offered

    def _allowed(self, wanted: Floats, conditions: Conditions, begin: float) -> Floats:
        """What spouts may emit of what they want to: pauses, back-pressure, max spout pending."""
        of = self.wiring.topology_of
        most = np.full(len(self.topologies), np.inf)
        full = total_by(of, self.queue > STORM_RECEIVE_QUEUE, len(self.topologies)) > 0
        most[full] = 0.0
        for number, topology in enumerate(self.topologies):
            if self.cluster.is_spout_paused(topology.id, begin):
                most[number] = 0.0
        limited = [n for n, topology in enumerate(self.topologies) if topology.max_spout_pending is not None]
        if limited:
            most[limited] = np.minimum(most[limited], self._free_pending(conditions)[limited])
        total = total_by(of, wanted, len(self.topologies))
        part = np.divide(most, total, out=np.ones_like(total), where=total > most)
        return np.asarray(wanted * part[of], dtype=np.float64)

    def _free_pending(self, conditions: Conditions) -> Floats:
        """Trees that each topology may begin in this step under its max spout pending (which counts per spout task).

        Those that stay pending take a place each; others are begun and finished within the step, as far as latency
        (Little's law: a spout cannot begin more than pending / latency per second) and CPU allow.
        """
        step, number, pending = self.step_seconds, len(self.topologies), self.trees.pending
        tasks = total_by(self.wiring.topology_of, self.wiring.is_spout, number)
        allowed = np.array([t.max_spout_pending or 0 for t in self.topologies]) * tasks
        stay = pending.count(number, pending.due > self.now + step)
        ending = pending.count(number) - stay
        free = np.maximum(allowed - stay, 0.0)
        by_latency = free / np.clip(self.trees.mean_seconds / step, 1e-6, 1.0)
        beyond = np.maximum(self._finishable(conditions) - ending, 0.0)
        return np.asarray(np.minimum(by_latency, free + beyond), dtype=np.float64)

    def _finishable(self, conditions: Conditions) -> Floats:
        """Trees of each topology that its executors and supervisors can finish in a step, others doing as before."""
        step, number, visits = self.step_seconds, len(self.topologies), self.routing.visits
        rate = conditions.most_millicores / np.maximum(self.routing.cpu_ms, 1e-9)
        most = np.full(number, np.inf)
        np.minimum.at(most, self.wiring.topology_of, ratio(rate * step, visits, np.inf))
        of = self.routing.tree_cpu_ms
        left = (conditions.capacity_millicores - conditions.quota_idle_millicores) * step
        used = of.data * self._begun[of.col]
        others = total_by(of.row.astype(np.int64), used, len(left))[of.row] - used
        share = np.maximum(left[of.row] - others, LEAST_SHARE_OF_A_TOPOLOGY * left[of.row])
        np.minimum.at(most, of.col, ratio(share, of.data, np.inf))
        return most

    def _rates_at_most(self, conditions: Conditions) -> Floats:
        """Tuples per second that each executor can execute with the CPU that it can get."""
        share = np.minimum(conditions.most_millicores, self._levels[np.maximum(self.routing.supervisor_of, 0)])
        return np.asarray(share / np.maximum(self.routing.cpu_ms, 1e-9), dtype=np.float64)

    def _flow(self, emission: Floats, conditions: Conditions) -> tuple[Floats, Floats]:
        """Executed and arrived tuples by executor; CPU is shared by what they turn out to want.

        What an executor wants depends on what those before it get: the sharing is repeated until it stays the same.
        """
        self._levels = np.full(len(self.where.supervisor_ids), np.inf)
        executed, arrived = self._cascade(emission, conditions)
        for _ in range(MOST_SHARING_ROUNDS):
            levels = self._fair_levels(emission, executed, arrived, conditions)
            if np.array_equal(np.isinf(levels), np.isinf(self._levels)) and np.allclose(levels, self._levels, 0.01):
                break
            self._levels = levels
            executed, arrived = self._cascade(emission, conditions)
        return executed, arrived

    def _cascade(self, emission: Floats, conditions: Conditions) -> tuple[Floats, Floats]:
        arrived, executed = self._carried.copy(), np.zeros(self.wiring.size)
        most = self._rates_at_most(conditions) * self.step_seconds
        waiting = np.where(self.wiring.is_spout, emission, self.queue)
        for members, brings in self.routing.levels:
            done = np.minimum(waiting[members] + arrived[members], most[members])
            executed[members] = done
            arrived += times(brings, done)
        return executed, arrived

    def _fair_levels(self, emission: Floats, executed: Floats, arrived: Floats, conditions: Conditions) -> Floats:
        """Millicores that an executor of each supervisor gets at most, since others want some too."""
        step, routing = self.step_seconds, self.routing
        wanted = (np.where(self.wiring.is_spout, emission, self.queue) + arrived) * routing.cpu_ms / step
        wanted = np.minimum(wanted, conditions.most_millicores)
        network = times(routing.network_cpu_ms, executed) / step
        own = total_by(np.maximum(routing.supervisor_of, 0), executed * routing.cpu_ms, len(network)) / step
        # Network threads have as much to do as executors send and receive: both get less in proportion.
        executors_part = ratio(own, own * (1.0 + self.model.costs.worker_cpu_share) + network, 1.0)
        left = (conditions.capacity_millicores - conditions.quota_idle_millicores) * executors_part
        left = np.maximum(left, LEAST_CAPACITY_SHARE * conditions.capacity_millicores)
        return fair_levels(wanted, routing.supervisor_of, left)

    def _count(self, executed: Floats, arrived: Floats, offered: Floats, conditions: Conditions) -> None:
        """Move the queues on and count what was done."""
        wiring, totals, of, number = self.wiring, self.totals, self.wiring.topology_of, len(self.topologies)
        spout = wiring.is_spout
        rest = np.where(spout, 0.0, self.queue + arrived - executed)
        lost = np.where(conditions.is_down, rest, 0.0)
        self.queue = np.maximum(rest - lost, 0.0)
        self._carried = times(self.routing.feedback, executed)
        totals.executed += executed
        totals.arrived += np.where(spout, executed, arrived)
        totals.lost += lost
        emitted = total_by(of, executed * spout, number)
        totals.offered += total_by(of, offered, number)
        totals.emitted += emitted
        self._begun = emitted
        totals.acked += np.where(self.trees.tracked, 0.0, emitted)
        for record in self._records:
            record.flows[-1][1][:] += executed

    def _keep_unsent(self, wanted: Floats, executed: Floats) -> Floats:
        """What was not sent waits, replays always, new tuples where their source keeps them; else they are lost.

        Replays go first. Returns which part of what each spout executor sent were replays.
        """
        sent = np.where(self.wiring.is_spout, executed, 0.0)
        replays = np.minimum(self.replays_waiting, sent)
        unsent = np.where(self.wiring.is_spout, wanted - sent, 0.0) - (self.replays_waiting - replays)
        self.replays_waiting = self.replays_waiting - replays
        self.source_backlog = np.where(self._keeps_backlog, np.maximum(unsent, 0.0), 0.0)
        dropped = np.where(self._keeps_backlog, 0.0, np.maximum(unsent, 0.0))
        self.totals.unsent += total_by(self.wiring.topology_of, dropped, len(self.topologies))
        return ratio(replays, sent, 0.0)

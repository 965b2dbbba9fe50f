"""The simulation: rates per step, queues as levels of a fluid, latency from queueing and sampled tuple trees.

In each step spouts emit what they are offered and may (max spout pending, back-pressure, pauses); tuples go down the
topology level by level, each executor executing what its share of CPU allows and keeping the rest in its queue. CPU is
shared max-min within a supervisor. What that means for the trees that began in the step is drawn by `roots`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from storm_operator.core.arrays import Floats
from storm_operator.core.model import Assignment, Executor
from storm_operator.simulator.accounting import Work, count_cpu, delays_of, held_to_pending
from storm_operator.simulator.arrays import ratio, times, total_by
from storm_operator.simulator.cluster import ClusterState
from storm_operator.simulator.conditions import Conditions, ConditionsReader
from storm_operator.simulator.cpu import LevelSearch, fair_levels
from storm_operator.simulator.heirs import heirs
from storm_operator.simulator.model import ClusterModel
from storm_operator.simulator.roots import Sampler
from storm_operator.simulator.routing import Places, Routing, places, route, visits_of, with_shares
from storm_operator.simulator.sources import Sources
from storm_operator.simulator.totals import Totals
from storm_operator.simulator.trees import Finished, Trees
from storm_operator.simulator.wiring import Wiring, wire

DEFAULT_STEP_SECONDS = 0.5
MOST_SHARING_ROUNDS = 20
ROUNDING = 1e-6
"""By less than that share two sums of the same tuples may differ."""
LEAST_CAPACITY_SHARE = 0.02
"""What network threads and idling leave to executors at least, as a share of the supervisor's CPU."""


@dataclass(slots=True)
class Record:
    """What somebody keeps from `begun_at` on, and how totals and queues were then.

    `flows` are tuples executed by each executor under each routing: traffic pairs follow from them. Where there are
    other executors than before, the record begins anew: figures of executors that are gone compare with nothing.
    """

    begun_at: float
    totals: Totals
    queue: Floats
    flows: list[tuple[Routing, Floats]]
    finished: list[Finished] = field(default_factory=list)

    def become(self, other: Record) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))


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
        self.where: Places = places(model.supervisors, model.distances)
        self.cluster = ClusterState(model, seed)
        self._random = np.random.default_rng((seed, 2))
        self._drawn_trees = drawn_trees
        self._wire()
        size, topologies = self.wiring.size, len(self.topologies)
        self.now = 0.0
        self.queue: Floats = np.zeros(size)
        self.stationary_queue: Floats = np.zeros(size)
        """Tuples that wait on average although the executor keeps up: Little's law on the mean wait."""
        self.totals = Totals.zero(size, topologies, len(self.where.supervisor_ids))
        self._records: list[Record] = []
        self._carried: Floats = np.zeros(size)
        self._levels: Floats = np.full(len(self.where.supervisor_ids), np.inf)
        self.routing: Routing
        self.cluster.place(assignment, 0.0, immediately=True)
        self._reroute()

    def advance_to(self, seconds: float) -> None:
        """Whole steps up to `seconds`; what is left of a step waits for the next call."""
        while self.now + self.step_seconds <= seconds + 1e-9:
            self._step()

    def record(self) -> Record:
        """A record that is kept from now on, in addition to those that are kept already."""
        record = self._new_record()
        self._records.append(record)
        return record

    def _new_record(self) -> Record:
        flows = [(self.routing, np.zeros(self.wiring.size))]
        return Record(self.now, self.totals.copy(), self.queue.copy(), flows)

    def stop(self, record: Record) -> None:
        """`record` need not be kept any longer."""
        self._records = [kept for kept in self._records if kept is not record]

    def lose(self, executors: frozenset[Executor]) -> None:
        """The processes of `executors` are gone, with what waited in them: the trees that it belonged to will fail, as
        will those that an acker among them followed; but for those whose spout is among them, which nobody waits for
        any longer."""
        if not executors:
            return
        rows = np.array([self.row_of[executor] for executor in sorted(executors) if executor in self.row_of])
        gone = self.queue[rows].copy()
        self.queue[rows] = 0.0
        self.totals.lost[rows] += gone
        trees = gone / np.maximum(1.0, self.routing.visits[rows])
        self.trees.fail(total_by(self.wiring.topology_of[rows], trees, len(self.topologies)), self.now)
        self.trees.lose_track(rows[self.wiring.is_acker[rows]], self.now)
        self.sources.replays += self.trees.forget(rows[self.wiring.is_spout[rows]], self.totals)

    def place(self, assignment: Assignment) -> None:
        """Put `assignment` in force now."""
        self.lose(self.cluster.place(assignment, self.now))
        self._reroute()

    def resize(self, topology_id: str, executors: Mapping[str, int]) -> None:
        """Give components of a topology other numbers of executors now; see `ClusterState.resize`."""
        topologies = tuple(t.with_executors(executors) if t.id == topology_id else t for t in self.model.topologies)
        self.model = replace(self.model, topologies=topologies)
        self.lose(self.cluster.resize(self.model, topology_id, self.now))
        before, trees, sources = self.wiring, self.trees, self.sources
        self._wire()
        passed_on = heirs(before.executors, self.wiring.executors)
        self.trees.take_over(trees, passed_on)
        self.sources.take_over(sources, passed_on)
        self.totals = self.totals.passed_on(passed_on.shares)
        self.queue = times(passed_on.shares, self.queue)
        self.stationary_queue = times(passed_on.shares, self.stationary_queue)
        self._carried = times(passed_on.shares, self._carried)
        self._reroute()
        for record in self._records:
            record.become(self._new_record())

    def _wire(self) -> None:
        """All that depends on which executors there are."""
        model, cluster = self.model, self.cluster
        self.topologies = tuple(sorted(model.topologies, key=lambda topology: topology.id))
        self.wiring: Wiring = wire(model.topologies)
        self.row_of = {executor: row for row, executor in enumerate(self.wiring.executors)}
        sampler = Sampler(self.wiring, self.where, model.costs, self._random)
        self.trees = Trees(self.topologies, self.wiring, sampler, self._random, self._drawn_trees)
        self.sources = Sources(self.topologies, self.wiring)
        self._conditions = ConditionsReader(model, cluster, self.wiring, self.where)
        self._routed_version = -1

    def _reroute(self) -> None:
        if self.cluster.version != self._routed_version:
            self.routing = route(
                self.wiring, self.cluster.assignment, self.where, self.model.costs, self.sources.shares_of_trees
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
        offered = self.sources.offered(begin, step)
        if self.sources.follow(offered):
            self.routing = with_shares(self.routing, self.wiring, self.sources.shares_of_trees)
        wanted = offered + self.sources.backlog + self.sources.replays
        emission = self.sources.allowed(
            wanted, self.queue, self.trees, self.cluster, self.routing, conditions, begin, step
        )
        executed, arrived = self._flow(emission, conditions)
        before = self.queue
        lost = self._count(executed, arrived, offered, conditions)
        replayed_share = self.sources.keep_unsent(wanted, executed, self.totals)
        due = np.where(self.wiring.is_spout, np.minimum(offered, emission), arrived)
        work = Work(executed, arrived, due, (before + self.queue) / 2.0, self._levels, step)
        count_cpu(self.totals, work, self.routing, conditions, self.model.costs)
        delays = delays_of(work, self.routing, conditions, self.wiring.cpu_deviation, self.model.costs)
        delays = held_to_pending(delays, work, self.routing, self.wiring.topology_of, self.sources.most_pending)
        self.stationary_queue = delays.wait * arrived / step
        self._fail_older_trees(lost, executed, begin)
        self.trees.begin(executed * self.wiring.is_spout, replayed_share, self.routing, delays, begin, step)
        self.now = begin + step
        finished, again = self.trees.settle(self.now, self.totals)
        self.sources.replays += again
        for record in self._records:
            record.finished.append(finished)

    def _fail_older_trees(self, lost: Floats, executed: Floats, begin: float) -> None:
        """Trees fail that began before this step, and of which tuples were `lost` in it.

        That is what came to who is down beyond what trees of this step send there, which are drawn as failing.
        """
        if not lost.any():
            return
        of, number, visits = self.wiring.topology_of, len(self.topologies), self.routing.visits
        of_this_step = visits_of(self.routing.levels, executed * self.wiring.is_spout)
        of_older = np.where(lost > (1.0 + ROUNDING) * of_this_step, lost - of_this_step, 0.0)
        passed = np.zeros(number)
        np.maximum.at(passed, of, ratio(of_older, visits, 0.0))
        share = np.minimum(total_by(of, visits * (of_older > 0.0), number), 1.0)
        self.trees.fail(passed * share, begin)

    def _rates_at_most(self, conditions: Conditions) -> Floats:
        """Tuples per second that each executor can execute with the CPU that it can get."""
        share = np.minimum(conditions.most_millicores, self._levels[np.maximum(self.routing.supervisor_of, 0)])
        return np.asarray(share / np.maximum(self.routing.cpu_ms, 1e-9), dtype=np.float64)

    def _flow(self, emission: Floats, conditions: Conditions) -> tuple[Floats, Floats]:
        """Executed and arrived tuples by executor; CPU is shared by what they turn out to want.

        What an executor wants depends on what those before it get: levels are tried until they lead to themselves. With
        others, CPU would be idle that somebody has work for, or be used twice.
        """
        search = LevelSearch.begin(conditions.most_millicores, self.routing.supervisor_of, len(self._levels))
        self._levels = search.levels
        executed, arrived = self._cascade(emission, conditions)
        for _ in range(MOST_SHARING_ROUNDS):
            search = search.next(self._fair_levels(emission, executed, arrived, conditions))
            if search.is_over:
                break
            self._levels = search.levels
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

    def _count(self, executed: Floats, arrived: Floats, offered: Floats, conditions: Conditions) -> Floats:
        """Move the queues on and count what was done; what was lost, by executor."""
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
        totals.acked += np.where(self.trees.tracked, 0.0, emitted)
        for record in self._records:
            record.flows[-1][1][:] += executed
        return lost

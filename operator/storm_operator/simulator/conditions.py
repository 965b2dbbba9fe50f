"""What holds during one step: which executors run, how much CPU each may have, what supervisors have to give."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from storm_operator.core.arrays import NOWHERE, Flags, Floats
from storm_operator.core.model import Executor
from storm_operator.simulator.arrays import count_by, ratio
from storm_operator.simulator.cluster import ClusterState
from storm_operator.simulator.model import MILLICORES_PER_CORE, ClusterModel
from storm_operator.simulator.routing import Places, Routing
from storm_operator.simulator.wiring import Wiring


@dataclass(frozen=True, slots=True)
class Conditions:
    """By executor; capacity and idling by supervisor."""

    is_down: Flags
    silent_seconds: Floats
    """How much longer an executor's supervisor does not answer; 0 when it does."""
    availability: Floats
    """The share of the time in which it answers afterwards,"""
    availability_seconds: Floats
    """for so much longer; then it always does."""
    most_millicores: Floats
    """One core, or the executor's limit; 0 when it does not run or its supervisor is silent."""
    speed_millicores: Floats
    has_limit: Flags
    capacity_millicores: Floats
    """What others leave to Storm."""
    foreign_millicores: Floats
    """What others take."""
    cores: Floats
    idle_workers_millicores: Floats
    """Of daemons and workers: no more than there is."""
    idle_executor_millicores: Floats
    """Of each executor that runs: no more than these leave it."""
    idle_millicores: Floats
    """Of daemons, workers and the executors that run."""
    quota_idle_millicores: Floats
    """The same on a supervisor at its quota: threads that stand still for a part of the time do not poll then."""


def quota_share(capacity_millicores: Floats, cores: Floats) -> Floats:
    """The share of the time in which threads of a machine at its quota may run: the rest they stand still."""
    return np.asarray(np.minimum(capacity_millicores / (MILLICORES_PER_CORE * cores), 1.0), dtype=np.float64)


class ConditionsReader:
    """Reads the conditions off the cluster's state; what cannot have changed is not read again."""

    def __init__(self, model: ClusterModel, cluster: ClusterState, wiring: Wiring, where: Places) -> None:
        self._cluster, self._wiring, self._where, self._costs = cluster, wiring, where, model.costs
        self._supervisors = tuple(sorted(model.supervisors, key=lambda supervisor: supervisor.id))
        at_fault = {fault.supervisor_id for fault in model.faults}
        self._troubled = [
            (number, supervisor)
            for number, supervisor in enumerate(self._supervisors)
            if supervisor.id in at_fault or supervisor.availability < 1.0
        ]
        self._capacity = np.array([supervisor.capacity_millicores for supervisor in self._supervisors])
        self._cores = np.array([s.cores or s.capacity_millicores / MILLICORES_PER_CORE for s in self._supervisors])
        self._speed = np.array([supervisor.thread_speed for supervisor in self._supervisors]) * MILLICORES_PER_CORE
        self._row_of = {executor: row for row, executor in enumerate(wiring.executors)}
        self._seen_version = self._seen_limits = -1
        self._runs_from: Floats = np.full(wiring.size, np.inf)
        self._worker_idle: Floats = np.zeros(len(self._supervisors))
        self._limit: Floats = np.full(wiring.size, np.inf)

    def at(self, now: float, routing: Routing) -> Conditions:
        self._read_workers()
        self._read_limits()
        left, silent = np.ones(len(self._supervisors)), np.zeros(len(self._supervisors))
        dead = np.zeros(len(self._supervisors), dtype=bool)
        availability, lasts = np.ones(len(self._supervisors)), np.full(len(self._supervisors), np.inf)
        for number, supervisor in self._troubled:
            dead[number] = self._cluster.is_dead(supervisor.id, now)
            left[number] = self._cluster.speed_of(supervisor, now)
            availability[number] = self._cluster.availability_of(supervisor, now)
            lasts[number] = self._cluster.availability_lasts_seconds(supervisor, now)
            silent[number] = min(self._cluster.silent_for_seconds(supervisor, now), lasts[number])
        capacity = self._capacity * left
        place = np.maximum(routing.supervisor_of, 0)
        down = (self._runs_from > now) | (routing.supervisor_of == NOWHERE) | dead[place]
        speed = self._speed[place]
        most = np.minimum(speed, self._limit)
        most[down | (silent[place] > 0.0)] = 0.0
        running = count_by(place[~down], len(capacity))
        workers = np.minimum((self._worker_idle + self._costs.idle_supervisor_millicores) * ~dead, capacity)
        executor = np.minimum(self._costs.idle_executor_millicores, ratio(capacity - workers, running, np.inf))
        polling = running * executor
        return Conditions(
            is_down=down,
            silent_seconds=silent[place],
            availability=availability[place],
            availability_seconds=(lasts - silent)[place],
            most_millicores=most,
            speed_millicores=speed,
            has_limit=np.isfinite(self._limit),
            capacity_millicores=capacity,
            foreign_millicores=self._capacity - capacity,
            cores=self._cores,
            idle_workers_millicores=workers,
            idle_executor_millicores=executor,
            idle_millicores=workers + polling,
            quota_idle_millicores=workers + polling * quota_share(capacity, self._cores),
        )

    def _read_workers(self) -> None:
        if self._cluster.version == self._seen_version:
            return
        self._seen_version = self._cluster.version
        self._runs_from = np.full(self._wiring.size, np.inf)
        self._worker_idle = np.zeros(len(self._supervisors))
        of_topology = Counter(worker.executors[0].topology_id for worker in self._cluster.workers.values())
        for slot, worker in self._cluster.workers.items():
            self._runs_from[self._rows(worker.executors)] = worker.runs_from_seconds
            is_connected = of_topology[worker.executors[0].topology_id] > 1
            self._worker_idle[self._where.number_of[slot.supervisor_id]] += (
                self._costs.idle_worker_millicores + is_connected * self._costs.connected_worker_millicores
            )

    def _read_limits(self) -> None:
        if self._cluster.limits_version == self._seen_limits:
            return
        self._seen_limits = self._cluster.limits_version
        self._limit = np.full(self._wiring.size, np.inf)
        for limits in self._cluster.limits.values():
            for executor, millicores in limits.items():
                row = self._row_of.get(executor)
                if row is not None:
                    self._limit[row] = millicores

    def _rows(self, executors: tuple[Executor, ...]) -> list[int]:
        return [self._row_of[executor] for executor in executors]

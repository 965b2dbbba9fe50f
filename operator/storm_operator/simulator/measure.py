"""A ClusterSnapshot from a period of simulation: the same fields that the agents of a real cluster give."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from storm_operator.core.arrays import Floats, Ints
from storm_operator.core.load_history import EVERY_EXECUTOR, load_period, with_period
from storm_operator.core.model import Executor, ExecutorLoad, Supervisor, WorkerSlot
from storm_operator.core.snapshot import ClusterSnapshot, Completeness, LatencySummary, LoadPeriod, TopologyRates
from storm_operator.core.traffic import TrafficMatrix
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.model import MS_PER_SECOND
from storm_operator.simulator.routing import Routing
from storm_operator.simulator.totals import Totals
from storm_operator.simulator.trees import Finished
from storm_operator.simulator.wiring import Wiring

LEAST_PERIOD_SECONDS = 1.0
NAMED_WORKERS = 6


class Meter:
    """Reads an engine's counters. Rates are those between two readings; the second takes the place of the first.

    `epoch_seconds` is what the clock says when the simulation begins.
    """

    def __init__(self, engine: Engine, epoch_seconds: float = 0.0) -> None:
        self._engine, self._epoch = engine, epoch_seconds
        self._record = engine.record()
        self._unread = engine.cluster.unanswering(engine.now)
        """Supervisors of which there is no reading from when the record began."""

    def close(self) -> None:
        """Nothing will be read any more."""
        self._engine.stop(self._record)

    def mixed_latency(self) -> LatencySummary | None:
        """Complete latency of all topologies' trees together, in the period so far."""
        latency = np.concatenate([*(one.latency for one in self._record.finished), np.empty(0)])
        trees = np.concatenate([*(one.trees for one in self._record.finished), np.empty(0)])
        order = np.argsort(latency, kind="stable")
        return _summary(latency[order], trees[order])

    def read(
        self, history: tuple[LoadPeriod, ...] = (), least_shares: Mapping[str, float] = EVERY_EXECUTOR
    ) -> ClusterSnapshot:
        """The period since the last reading (or since the meter was made). `least_shares`: see `load_period`.

        An executor whose worker began to run within the period has no complete pair of readings: it is missing, as it
        is when its worker does not run. Nor has any of a supervisor that did not answer at one of the two. Reading
        twice within a second gives empty rates: nothing can be said.
        """
        engine = self._engine
        seconds = engine.now - self._record.begun_at
        counted = engine.totals.since(self._record.totals)
        silent = engine.cluster.unanswering(engine.now)
        unread = silent | self._unread
        missing = self._missing(seconds, unread)
        loads = self._loads(counted, seconds, missing)
        topologies = engine.wiring.topologies
        live = tuple(_as_heard(s, silent) for s in engine.cluster.live_supervisors(engine.now))
        used = counted.supervisor_cpu_ms / max(seconds, 1e-9)
        number_of = engine.where.number_of
        supervisor_cpu = {s.id: float(used[number_of[s.id]]) for s in live if s.id not in unread}
        now = self._epoch + engine.now
        placed = len(engine.cluster.assignment.slot_of)
        period = None
        if seconds > 0:
            period = load_period(topologies, loads, supervisor_cpu, now, seconds, least_shares)
        snapshot = ClusterSnapshot(
            taken_at_seconds=now,
            period_seconds=max(seconds, 1e-9),
            supervisors=live,
            topologies=topologies,
            assignment=engine.cluster.assignment,
            loads=loads,
            traffic=self._traffic(seconds, missing),
            distances=engine.model.distances,
            completeness=Completeness(
                placed,
                tuple(missing),
                0.0,
                _problems(missing, unread),
                silent_supervisors=tuple(s.id for s in live if s.id in silent),
            ),
            supervisor_cpu_millicores=supervisor_cpu,
            rates=self._rates(counted, seconds, missing),
            worker_pids=self._pids(silent),
            history=with_period(history, period),
        )
        self._begin_anew(silent)
        return snapshot

    def _begin_anew(self, silent: frozenset[str]) -> None:
        self._engine.stop(self._record)
        self._record, self._unread = self._engine.record(), silent

    def _missing(self, seconds: float, unread: Collection[str]) -> dict[Executor, WorkerSlot]:
        """Placed executors without two readings of one process, sorted, with their slots."""
        engine = self._engine
        missing: dict[Executor, WorkerSlot] = {}
        for slot, worker in engine.cluster.workers.items():
            known = worker.runs_from_seconds <= self._record.begun_at and slot.supervisor_id not in unread
            if not known or seconds < LEAST_PERIOD_SECONDS:
                missing |= dict.fromkeys(worker.executors, slot)
        return dict(sorted(missing.items())) if missing else missing

    def _loads(
        self, counted: Totals, seconds: float, missing: Mapping[Executor, WorkerSlot]
    ) -> dict[Executor, ExecutorLoad]:
        engine = self._engine
        if seconds < LEAST_PERIOD_SECONDS:
            return {}
        waiting = engine.queue + engine.stationary_queue
        growth = np.where(engine.wiring.is_spout, 0.0, (engine.queue - self._record.queue) / seconds)
        executed = counted.executed / seconds
        emitted = executed * engine.wiring.emitted_per_tuple
        limited = {executor for limits in engine.cluster.limits.values() for executor in limits}
        waited = (counted.throttled_ms / MS_PER_SECOND / seconds).tolist()
        throttled = [part if e in limited else None for e, part in zip(engine.wiring.executors, waited, strict=True)]
        columns = zip(
            engine.wiring.executors,
            (counted.executor_cpu_ms / seconds).tolist(),
            executed.tolist(),
            emitted.tolist(),
            np.maximum(executed + growth, 0.0).tolist(),
            waiting.tolist(),
            growth.tolist(),
            throttled,
            strict=True,
        )
        placed = engine.cluster.assignment.slot_of
        return {
            executor: ExecutorLoad(*figures)
            for executor, *figures in columns
            if executor not in missing and executor in placed
        }

    def _traffic(self, seconds: float, missing: Mapping[Executor, WorkerSlot]) -> TrafficMatrix:
        wiring = self._engine.wiring
        blocks = [_pairs(wiring, routing, executed) for routing, executed in self._record.flows]
        sources = np.concatenate([block[0] for block in blocks])
        targets = np.concatenate([block[1] for block in blocks])
        rates = np.concatenate([block[2] for block in blocks]) / max(seconds, 1e-9)
        if missing:
            unknown = np.array([executor in missing for executor in wiring.executors], dtype=bool)
            rates = np.where(unknown[sources] | unknown[targets], 0.0, rates)
        seen = rates > 0.0
        return TrafficMatrix.from_arrays(wiring.executors, sources[seen], targets[seen], rates[seen])

    def _rates(
        self, counted: Totals, seconds: float, missing: Mapping[Executor, WorkerSlot]
    ) -> dict[str, TopologyRates]:
        engine = self._engine
        if seconds < LEAST_PERIOD_SECONDS:
            return {topology.id: TopologyRates() for topology in engine.wiring.topologies}
        spouts = {engine.wiring.executors[row] for row in np.flatnonzero(engine.wiring.is_spout)}
        blind = {executor.topology_id for executor in missing if executor in spouts}
        summaries = summarise_latency(self._record.finished, len(engine.wiring.topologies))
        rates = {}
        for number, topology in enumerate(engine.wiring.topologies):
            known = topology.id not in blind
            rates[topology.id] = TopologyRates(
                float(counted.acked[number]) / seconds if known else None,
                float(counted.failed[number]) / seconds if known else None,
                summaries[number] if known else None,
            )
        return rates

    def _pids(self, silent: Collection[str]) -> dict[WorkerSlot, int]:
        running = self._engine.cluster.running_workers(self._engine.now)
        return {slot: worker.pid for slot, worker in running.items() if slot.supervisor_id not in silent}


def _as_heard(supervisor: Supervisor, silent: Collection[str]) -> Supervisor:
    """What is known of it: its capacity only where it answers."""
    return replace(supervisor, cpu_capacity_millicores=None) if supervisor.id in silent else supervisor


def _problems(missing: Mapping[Executor, WorkerSlot], unread: Collection[str]) -> tuple[str, ...]:
    slots = sorted(set(missing.values()))
    more = (f"and {len(slots) - NAMED_WORKERS} more workers",) if len(slots) > NAMED_WORKERS else ()
    return (*(_problem(slot, slot.supervisor_id in unread) for slot in slots[:NAMED_WORKERS]), *more)


def _problem(slot: WorkerSlot, is_unread: bool) -> str:
    reason = "its supervisor did not answer at a reading" if is_unread else "it restarted between two readings"
    return f"worker {slot.supervisor_id}:{slot.port}: {reason}"


def _pairs(wiring: Wiring, routing: Routing, executed: Floats) -> tuple[Ints, Ints, Floats]:
    """Tuples between executors while `executed` tuples were executed: user streams, acks, and acks to the spouts."""
    back = wiring.is_spout[wiring.ack_source]
    sources = np.concatenate([wiring.pair_source, wiring.ack_source, wiring.ack_target[back]])
    targets = np.concatenate([wiring.pair_target, wiring.ack_target, wiring.ack_source[back]])
    acks = wiring.ack_weight * executed[wiring.ack_source]
    tuples = np.concatenate([routing.pair_weight * executed[wiring.pair_source], acks, acks[back]])
    return sources, targets, tuples


def summarise_latency(finished: list[Finished], topologies: int) -> list[LatencySummary | None]:
    """Complete latency of each topology, from the trees that were complete in the period; None where there was none."""
    if not finished:
        return [None] * topologies
    topology = np.concatenate([one.topology for one in finished])
    latency, trees = np.concatenate([one.latency for one in finished]), np.concatenate([one.trees for one in finished])
    order = np.lexsort((latency, topology))
    topology, latency, trees = topology[order], latency[order], trees[order]
    edges = np.searchsorted(topology, np.arange(topologies + 1))
    return [_summary(latency[a:b], trees[a:b]) for a, b in pairwise(edges.tolist())]


def _summary(latency: Floats, trees: Floats) -> LatencySummary | None:
    total = float(trees.sum())
    if total <= 0.0:
        return None
    running = np.cumsum(trees)
    p50, p99 = (float(latency[min(int(np.searchsorted(running, q * total)), len(latency) - 1)]) for q in (0.50, 0.99))
    mean = float(np.dot(latency, trees)) / total
    return LatencySummary(1000.0 * mean, 1000.0 * p50, 1000.0 * p99, total)

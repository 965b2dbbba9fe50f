"""What Prometheus and the operator scrape: everything is read and added up at the moment of the scrape."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Protocol

from storm_operator.agent.counter_ledger import CounterLedger
from storm_operator.agent.enforcement import Enforcer, Place
from storm_operator.agent.families import Families, SeriesNames
from storm_operator.agent.limits import ExecutorKey
from storm_operator.agent.machine import Machine
from storm_operator.agent.peers import PeerReport
from storm_operator.agent.processes import ThreadClock, process_use
from storm_operator.agent.traffic_folding import Pair, TrafficFolding
from storm_operator.agent.worker_series import (
    counter_readings,
    executor_labels,
    gauge_readings,
    latency_histograms,
)
from storm_operator.agent.worker_snapshot import ExecutorReading, WorkerSnapshot
from storm_operator.metric_contract import DEFAULT_PAIR_LIMIT, OTHER

MILLICORES_PER_CORE = 1000.0
MS_PER_SECOND = 1000.0
FORGET_SECONDS = 3600.0
"""A worker that restarts, or comes back after a plan, goes on counting. Each submission of a topology brings series of
its own: kept for a day, those of somebody who submits again and again fill the agent's memory."""
FORGET_EVERY_SECONDS = 600.0
MOST_REMEMBERED = 500_000
"""Series that may be remembered, at some 300 bytes each, beside those of workers that are there: one that calls its
components anew each second would fill the agent's memory within the hour."""
TRAFFIC = "storm_traffic_tuples_total"


class Workers(Protocol):
    """Where worker snapshots come from; safe for threads."""

    def workers(self) -> tuple[WorkerSnapshot, ...]: ...

    def take_last_words(self) -> tuple[WorkerSnapshot, ...]: ...


class EnforcementReport(Protocol):
    """Whether limits are enforced here, how, and why not."""

    @property
    def enforcer(self) -> Enforcer | None: ...

    @property
    def mode(self) -> str: ...

    @property
    def reason(self) -> str: ...


class AgentExporter:
    """Computes all metrics of one supervisor at each scrape. `version` is that of the agent.

    `clock` gives seconds since 1970, and `began_at_seconds` is when the agent did: what workers counted before is not
    exported. `pair_limit` bounds the pairs of tasks that are exported one by one. Nobody sets the clock `monotonic`.
    """

    def __init__(
        self,
        supervisor: str,
        workers: Workers,
        machine: Machine,
        enforcement: EnforcementReport,
        peers: Callable[[], PeerReport],
        clock: Callable[[], float],
        version: str,
        began_at_seconds: float,
        pair_limit: int = DEFAULT_PAIR_LIMIT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workers = workers
        self._machine = machine
        self._enforcement = enforcement
        self._peers = peers
        self._clock = clock
        self._version = version
        self._began_at_seconds = began_at_seconds
        self._ledger = CounterLedger()
        self._read_before: frozenset[Hashable] = frozenset()
        self._folding = TrafficFolding(pair_limit)
        self._names = SeriesNames(supervisor)
        self._threads = ThreadClock()
        self._lock = threading.Lock()
        self._forgot_at_seconds = clock()
        self._monotonic = monotonic
        self._began_at_monotonic = monotonic()

    def text(self) -> bytes:
        """The page that scrapers get, in Prometheus' text format."""
        with self._lock:
            return self._families().text()

    def _families(self) -> Families:
        families = Families(self._names)
        now_seconds, uptime_seconds = self._clock(), self._monotonic() - self._began_at_monotonic
        workers = self._workers.workers()
        last_words = self._workers.take_last_words()
        self._leave_out_what_earlier_agents_saw((*last_words, *workers))
        for ended in last_words:
            self._count_last_words(ended, now_seconds)
        for worker in workers:
            self._add_worker(families, worker, now_seconds)
        self._add_traffic(families, workers, now_seconds)
        self._add_machine(families, workers)
        _add_peers(families, self._peers())
        families.add("storm_agent_enforcement", (self._enforcement.mode, self._enforcement.reason), 1.0)
        families.add("storm_agent_build_info", (self._version,), 1.0)
        families.add("storm_agent_start_time_seconds", (), self._began_at_seconds)
        families.add("storm_agent_uptime_seconds", (), uptime_seconds)
        self._threads.forget_all_but(worker.pid for worker in workers)
        self._forget_what_left(now_seconds)
        return families

    def _forget_what_left(self, now_seconds: float) -> None:
        is_full = len(self._ledger) > MOST_REMEMBERED
        if is_full or now_seconds - self._forgot_at_seconds >= FORGET_EVERY_SECONDS:
            self._ledger.forget_unseen_since(now_seconds - (0.0 if is_full else FORGET_SECONDS))
            self._folding.forget_unless(lambda pair: pair in self._ledger)
            self._forgot_at_seconds = now_seconds

    def _leave_out_what_earlier_agents_saw(self, workers: tuple[WorkerSnapshot, ...]) -> None:
        """Of workers older than the agent; what appears in them after their first reading counts whole."""
        began_at_ms = self._began_at_seconds * MS_PER_SECOND
        older = [worker for worker in workers if worker.started_at_ms < began_at_ms]
        first_read = [worker for worker in older if worker.incarnation not in self._read_before]
        self._ledger.count_from_zero(each for worker in first_read for each in _incarnations(worker))
        self._read_before = frozenset(worker.incarnation for worker in older)

    def _count_last_words(self, worker: WorkerSnapshot, now_seconds: float) -> None:
        """Takes what an ended worker counted after the last scrape into the ledger, exporting nothing."""
        for metric, labels, value in counter_readings(worker):
            self._ledger.total((metric, labels), worker.incarnation, value, now_seconds)
        self._traffic_totals(worker, now_seconds)
        self._latency_series(worker, now_seconds)

    def _add_worker(self, families: Families, worker: WorkerSnapshot, now_seconds: float) -> None:
        incarnation = worker.incarnation
        for metric, labels, value in counter_readings(worker):
            families.add(metric, labels, self._ledger.total((metric, labels), incarnation, value, now_seconds))
        for metric, labels, value in gauge_readings(worker):
            families.add(metric, labels, value)
        for spout_labels, buckets, sum_seconds in self._latency_series(worker, now_seconds):
            families.latency(spout_labels, buckets, sum_seconds)
        self._add_process(families, worker, now_seconds)
        enforcer = self._enforcement.enforcer  # read once: the loop that enforces may lose it meanwhile
        in_force = enforcer.limits_in_force() if enforcer else {}
        for executor in worker.executors:
            self._add_thread(families, worker, executor, now_seconds)
            place = Place(ExecutorKey(worker.topology_id, executor.task_start, executor.task_end), worker.port)
            if place in in_force:
                self._add_limit(families, executor_labels(worker, executor), place, in_force[place], now_seconds)

    def _add_traffic(self, families: Families, workers: Iterable[WorkerSnapshot], now_seconds: float) -> None:
        totals: dict[Pair, float] = {}
        topology_ids = set()
        for worker in workers:
            totals.update(self._traffic_totals(worker, now_seconds))
            topology_ids.add(worker.topology_id)
        folded = self._folding.fold(totals, now_seconds)
        families.add_all(TRAFFIC, folded.pairs)
        for row, tuples in folded.folds:
            families.add(TRAFFIC, (*row, OTHER), tuples)
        for topology_id in sorted(topology_ids):
            families.add("storm_traffic_folded_pairs", (topology_id,), folded.folded_pairs.get(topology_id, 0))
            tuples = folded.folded_tuples.get(topology_id, 0.0)
            families.add("storm_traffic_folded_tuples_total", (topology_id,), tuples)

    def _traffic_totals(self, worker: WorkerSnapshot, now_seconds: float) -> dict[Pair, float]:
        topology_id = worker.topology_id
        readings = (
            ((topology_id, source, stream, target), tuples) for source, stream, target, tuples in worker.traffic
        )
        return self._ledger.totals(readings, worker.incarnation, now_seconds)

    def _latency_series(
        self, worker: WorkerSnapshot, now_seconds: float
    ) -> list[tuple[tuple[str, ...], list[tuple[str, float]], float]]:
        """Histograms with their counts carried over worker restarts; buckets as Prometheus writes bounds."""
        series: list[tuple[tuple[str, ...], list[tuple[str, float]], float]] = []
        for labels, sum_seconds, buckets in latency_histograms(worker):
            totals = [
                (_bound_label(bound), self._ledger.total((labels, bound), worker.incarnation, count, now_seconds))
                for bound, count in buckets
            ]
            total_sum = self._ledger.total((labels, "sum"), worker.incarnation, sum_seconds, now_seconds)
            series.append((labels, totals, total_sum))
        return series

    def _add_process(self, families: Families, worker: WorkerSnapshot, now_seconds: float) -> None:
        labels = (worker.topology_id, str(worker.port))
        age = max(0.0, now_seconds - worker.written_at_ms / 1000.0)
        families.add("storm_worker_snapshot_age_seconds", labels, age)
        use = process_use(worker.pid)
        if use is not None:
            series = ("storm_worker_cpu_seconds_total", labels)
            total = self._ledger.total(series, worker.incarnation, use.cpu_seconds, now_seconds)
            families.add("storm_worker_cpu_seconds_total", labels, total)
            families.add("storm_worker_memory_bytes", labels, use.memory_bytes)

    def _add_thread(
        self, families: Families, worker: WorkerSnapshot, executor: ExecutorReading, now_seconds: float
    ) -> None:
        used = None if executor.tid is None else self._threads.cpu_seconds(worker.pid, executor.tid)
        if used is not None:
            labels = executor_labels(worker, executor)
            incarnation = _thread_incarnation(worker, executor)
            total = self._ledger.total(("storm_executor_cpu_seconds_total", labels), incarnation, used, now_seconds)
            families.add("storm_executor_cpu_seconds_total", labels, total)

    def _add_limit(
        self, families: Families, labels: tuple[str, ...], place: Place, millicores: float, now_seconds: float
    ) -> None:
        families.add("storm_executor_cpu_limit_cores", labels, millicores / MILLICORES_PER_CORE)
        enforcer = self._enforcement.enforcer
        waited = enforcer.throttled_seconds(place) if enforcer else None
        if waited is not None:
            group, seconds = waited
            total = self._ledger.total(("storm_executor_throttled_seconds_total", labels), group, seconds, now_seconds)
            families.add("storm_executor_throttled_seconds_total", labels, total)

    def _add_machine(self, families: Families, workers: tuple[WorkerSnapshot, ...]) -> None:
        use = self._machine.use(tuple(worker.pid for worker in workers))
        families.add("storm_supervisor_cpu_seconds_total", (), use.cpu_seconds)
        families.add("storm_supervisor_throttled_seconds_total", (), use.throttled_seconds)
        families.add("storm_supervisor_cpu_capacity_cores", (), use.capacity_cores)
        families.add("storm_supervisor_cpu_limit_cores", (), use.limit_cores)
        families.add("storm_supervisor_memory_bytes", (), use.memory_bytes)


def _incarnations(worker: WorkerSnapshot) -> Iterator[Hashable]:
    yield worker.incarnation
    for executor in worker.executors:
        yield _thread_incarnation(worker, executor)


def _thread_incarnation(worker: WorkerSnapshot, executor: ExecutorReading) -> Hashable:
    return worker.incarnation, executor.tid


def _bound_label(bound: float) -> str:
    return "+Inf" if math.isinf(bound) else repr(bound)


def _add_peers(families: Families, report: PeerReport) -> None:
    for peer, statistics in sorted(report.statistics.items()):
        families.add("storm_supervisor_round_trip_seconds", (peer,), statistics.round_trip_seconds)
        families.add("storm_supervisor_availability_ratio", (peer,), statistics.availability_ratio)
    if report.coordinate is not None:
        for dimension in ("x", "y", "height"):
            value = getattr(report.coordinate, dimension)
            families.add("storm_supervisor_coordinate_seconds", (dimension,), value / MS_PER_SECOND)
        families.add("storm_supervisor_coordinate_error_ratio", (), report.coordinate.error)

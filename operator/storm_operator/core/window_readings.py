"""A metrics window read in the cluster's own words: what each executor, worker and supervisor did.

Every reading is matched to the place that Nimbus names (host and port), because for a while after a move both the
old and the new worker of an executor have series.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from storm_operator.core.finite import is_measure
from storm_operator.core.metrics_window import MetricsWindow, SeriesKey, SeriesWindow
from storm_operator.core.model import Executor, ExecutorLoad, waiting_work

MINIMUM_SPAN_FRACTION = 0.25
"""Two readings closer together than this share of the window make no rate: their jitter would be too large."""

LATELY_FRACTION = 0.5
"""What a worker wrote longer ago than this share of the window says nothing of now: it may have ended since."""

MILLICORES_PER_CORE = 1000.0
COUNTER_SUFFIXES = ("_total", "_bucket", "_count", "_sum")
COORDINATE = "storm_supervisor_coordinate_seconds"
MAY_BE_NEGATIVE = frozenset({COORDINATE})
NAMED_BAD_SERIES = 3
SHOWN_CHARACTERS = 300

CPU = "storm_executor_cpu_seconds_total"
EXECUTED = "storm_executor_executed_tuples_total"
EMITTED = "storm_executor_emitted_tuples_total"
ACKED = "storm_executor_acked_tuples_total"
FAILED = "storm_executor_failed_tuples_total"
QUEUE = "storm_executor_queue_length"
THROTTLED = "storm_executor_throttled_seconds_total"
WORKER_INFO = "storm_worker_info"
SNAPSHOT_AGE = "storm_worker_snapshot_age_seconds"
AGENT_START = "storm_agent_start_time_seconds"
AGENT_UPTIME = "storm_agent_uptime_seconds"


@dataclass(frozen=True, slots=True)
class Place:
    """Where series of a worker come from: the `supervisor` (host) and `port` labels."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ExecutorReading:
    """What one executor did between two readings of its agent.

    `missing` says why the pair of readings is not complete, and is empty when it is. Counts come from the worker's
    snapshot file, written once a second at its own time: `counted_seconds` is the time between the two files read,
    which differs from the time between the two scrapes. `since_seconds` is when the agent first read it in this window,
    and `age_seconds` how old the newer file is (None: there is none).
    """

    load: ExecutorLoad
    missing: str
    counted_seconds: float = 0.0
    since_seconds: float = 0.0
    age_seconds: float | None = None
    acked_per_second: float | None = None
    failed_per_second: float | None = None


class WindowReadings:
    """Lookups over one `MetricsWindow`."""

    def __init__(self, window: MetricsWindow) -> None:
        self.window = window
        self._processes: dict[tuple[str, Place], list[tuple[int, SeriesWindow]]] = {}
        for key, series in window.named(WORKER_INFO):
            port, pid = key.whole("port"), key.whole("pid")
            if port is not None and pid is not None:
                place = Place(key.label("supervisor"), port)
                self._processes.setdefault((key.label("topology_id"), place), []).append((pid, series))

    def worker_pid(self, topology_id: str, place: Place) -> int | None:
        """The process seen last at `place`; None when nobody saw one."""
        process = self._newest_process(topology_id, place)
        return process[0] if process else None

    def executor(self, executor: Executor, place: Place, is_spout: bool) -> ExecutorReading:
        """What `executor` did at `place`."""
        series = {name: self._of_executor(name, executor, place) for name in (CPU, EXECUTED, EMITTED, QUEUE)}
        present = [entry for entry in series.values() if entry is not None]
        if not present:
            return ExecutorReading(ExecutorLoad(), "no metrics of it at this worker")
        scraped = max(present, key=lambda entry: entry.span_seconds)
        ages = self._snapshot_ages(executor.topology_id, place)
        if ages is not None and not all(map(is_measure, ages)):
            return ExecutorReading(ExecutorLoad(), "how long ago its worker has written its snapshot is not known")
        first_age, last_age = ages or (0.0, 0.0)
        age_seconds = self.window.end_seconds - scraped.last.timestamp_seconds + last_age
        reason = self._unusable(executor.topology_id, place, scraped)
        late_seconds = self._late_seconds(place.host, scraped)
        shift_seconds = late_seconds + first_age - last_age
        counted_seconds = scraped.span_seconds + shift_seconds
        if not reason and counted_seconds < self._minimum_span():
            reason = f"its worker has written no snapshot for {age_seconds:.1f} s"
        if reason:
            return ExecutorReading(ExecutorLoad(), reason, age_seconds=age_seconds)
        load = self._load(series, late_seconds, shift_seconds, is_spout)
        throttled = self._rate(self._of_executor(THROTTLED, executor, place), late_seconds)
        return ExecutorReading(
            load=replace(load, throttled_fraction=throttled),
            missing=_lacking(load),
            counted_seconds=counted_seconds,
            since_seconds=scraped.first.timestamp_seconds,
            age_seconds=age_seconds,
            acked_per_second=self._rate(self._of_executor(ACKED, executor, place), shift_seconds),
            failed_per_second=self._rate(self._of_executor(FAILED, executor, place), shift_seconds),
        )

    def shows_at_work(self, executor: Executor, place: Place) -> bool:
        """Whether the worker at `place` has written lately of the executor's thread, or that no tuple has come to it.

        One reading is enough, which makes no rate: as where the agent did not answer in time before, or just began.
        """
        cpu, executed, queue = (self._of_executor(name, executor, place) for name in (CPU, EXECUTED, QUEUE))
        age_seconds = self.executor(executor, place, is_spout=False).age_seconds
        if age_seconds is None or age_seconds > LATELY_FRACTION * self.window.window_seconds:
            return False
        if cpu is not None:
            return True
        counts = (gauge(executed), gauge(queue))
        return None not in counts and counts[0] == 0.0 and waiting_work(counts[1] or 0.0) == 0.0

    def supervisor_gauge(self, name: str, host: str) -> float | None:
        """The newest value of a gauge without labels other than `supervisor`."""
        return gauge(self.window.series.get(SeriesKey.of(name, {"supervisor": host})))

    def coordinate(self, host: str, dimension: str) -> float | None:
        """The newest value of one dimension of a supervisor's place, in seconds; None when it is not known."""
        series = self.window.series.get(SeriesKey.of(COORDINATE, {"supervisor": host, "dimension": dimension}))
        return series.last.value if series is not None and is_measure(abs(series.last.value)) else None

    def supervisor_rate(self, name: str, host: str) -> float | None:
        """The rate per second of a counter without labels other than `supervisor`; None without two of one agent."""
        series = self.window.series.get(SeriesKey.of(name, {"supervisor": host}))
        if series is None or self._agent_restarted(host, series):
            return None
        return self._rate(series, self._late_seconds(host, series))

    def by_supervisor_and_peer(self, name: str) -> Mapping[tuple[str, str], float]:
        """The newest values of a gauge that one supervisor has for each of its peers, by (host, peer)."""
        values = {}
        for key, series in self.window.named(name):
            value = gauge(series)
            if value is not None:
                values[key.label("supervisor"), key.label("peer")] = value
        return values

    def _of_executor(self, name: str, executor: Executor, place: Place) -> SeriesWindow | None:
        labels = {
            "supervisor": place.host,
            "topology_id": executor.topology_id,
            "component": executor.component,
            "executor": executor.label,
            "port": str(place.port),
        }
        return self.window.series.get(SeriesKey.of(name, labels))

    def _unusable(self, topology_id: str, place: Place, scraped: SeriesWindow) -> str:
        """Why the two readings do not belong together; empty when they do."""
        if self._agent_restarted(place.host, scraped):
            return "the agent beside it restarted between two readings"
        process = self._newest_process(topology_id, place)
        if process and process[1].first.timestamp_seconds > scraped.first.timestamp_seconds:
            return "its worker restarted between two readings"
        if scraped.span_seconds == 0.0:
            return "only one reading so far"
        if scraped.span_seconds < self._minimum_span():
            return f"its two readings are only {scraped.span_seconds:.1f} s apart"
        return ""

    def _agent_restarted(self, host: str, scraped: SeriesWindow) -> bool:
        """Then counters began anew, and what was counted meanwhile is not known. False for agents that do not tell."""
        began = self.window.series.get(SeriesKey.of(AGENT_START, {"supervisor": host}))
        if began is None:
            return False
        first_told_later = began.first.timestamp_seconds > scraped.first.timestamp_seconds
        return first_told_later or began.first.value != began.last.value

    def _late_seconds(self, host: str, scraped: SeriesWindow) -> float:
        """How much longer it was between the two pages than between the times that their scrapes are known by.

        A scrape has the time at which it was begun, and an agent that is short of CPU answers late. 0 where the agent
        does not tell of these very pages.
        """
        uptime = self.window.series.get(SeriesKey.of(AGENT_UPTIME, {"supervisor": host}))
        if uptime is None or not (is_measure(uptime.first.value) and is_measure(uptime.last.value)):
            return 0.0
        told = (uptime.first.timestamp_seconds, uptime.last.timestamp_seconds)
        if told != (scraped.first.timestamp_seconds, scraped.last.timestamp_seconds):
            return 0.0
        return uptime.last.value - uptime.first.value - uptime.span_seconds

    def _newest_process(self, topology_id: str, place: Place) -> tuple[int, SeriesWindow] | None:
        found = self._processes.get((topology_id, place), [])
        return max(found, key=lambda entry: (entry[1].last.timestamp_seconds, entry[0]), default=None)

    def _snapshot_ages(self, topology_id: str, place: Place) -> tuple[float, float] | None:
        """How old the worker's file was at the first and at the last reading, as its agent says; None: it does not."""
        labels = {"supervisor": place.host, "topology_id": topology_id, "port": str(place.port)}
        series = self.window.series.get(SeriesKey.of(SNAPSHOT_AGE, labels))
        return None if series is None else (series.first.value, series.last.value)

    def _load(
        self, series: Mapping[str, SeriesWindow | None], late_seconds: float, shift_seconds: float, is_spout: bool
    ) -> ExecutorLoad:
        cores = self._rate(series[CPU], late_seconds)
        emitted = self._rate(series[EMITTED], shift_seconds)
        # A spout's executed count and queue are about acks: what it emits is what it processes (and what arrived).
        executed = emitted if is_spout else self._rate(series[EXECUTED], shift_seconds)
        growth = 0.0 if is_spout else self._growth(series[QUEUE], shift_seconds)
        return ExecutorLoad(
            cpu_millicores=None if cores is None else MILLICORES_PER_CORE * cores,
            executed_per_second=executed,
            emitted_per_second=emitted,
            arrived_per_second=None if executed is None or growth is None else max(0.0, executed + growth),
            queue_length=gauge(series[QUEUE]),
            queue_growth_per_second=growth,
        )

    def _rate(self, series: SeriesWindow | None, shift_seconds: float = 0.0) -> float | None:
        """Increase per second; None when it is unknown or its readings are too close together.

        Spans are each series' own: one that appeared later than others (a thread not seen at first) has less time.
        """
        if series is None or math.isnan(series.increase):
            return None
        seconds = series.span_seconds + shift_seconds
        return series.increase / seconds if seconds >= self._minimum_span() else None

    def _growth(self, queue: SeriesWindow | None, shift_seconds: float) -> float | None:
        if queue is None or not (is_measure(queue.first.value) and is_measure(queue.last.value)):
            return None
        seconds = queue.span_seconds + shift_seconds
        grown = waiting_work(queue.last.value) - waiting_work(queue.first.value)
        return grown / seconds if seconds >= self._minimum_span() else None

    def _minimum_span(self) -> float:
        return MINIMUM_SPAN_FRACTION * self.window.window_seconds


def gauge(series: SeriesWindow | None) -> float | None:
    """The newest value of a gauge that cannot be negative; None when it is unknown or no number."""
    return series.last.value if series is not None and is_measure(series.last.value) else None


def problems_of_values(window: MetricsWindow) -> tuple[str, ...]:
    """One sentence for readings that no counter or gauge can have (NaN, negative, beyond reason): they are ignored."""
    bad = sorted(key for key, series in window.series.items() if not _is_believable(key.name, series))
    if not bad:
        return ()
    named = ", ".join(f"{_shown(key)} = {window.series[key].last.value:g}" for key in bad[:NAMED_BAD_SERIES])
    more = f" and {len(bad) - NAMED_BAD_SERIES} more" if len(bad) > NAMED_BAD_SERIES else ""
    return (f"not a number of 0 or more, or too large, so taken as unknown: {named}{more}",)


def _shown(key: SeriesKey) -> str:
    text = str(key)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def _is_believable(name: str, series: SeriesWindow) -> bool:
    if name.endswith(COUNTER_SUFFIXES):
        return not math.isnan(series.increase)
    if name in MAY_BE_NEGATIVE:
        return is_measure(abs(series.last.value))
    return is_measure(series.last.value)


def _lacking(load: ExecutorLoad) -> str:
    known = {
        "CPU": load.cpu_millicores,
        "executed tuples": load.executed_per_second,
        "emitted tuples": load.emitted_per_second,
        "queue length": load.queue_growth_per_second,
    }
    lacking = [name for name, value in known.items() if value is None]
    return f"no count of its {', '.join(lacking)}" if lacking else ""

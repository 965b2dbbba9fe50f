"""The recorder: a listener that keeps what the loop saw and did, off the loop's path."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from storm_operator.core.history_rows import Pass, columns_of
from storm_operator.core.plan_record import PlanRecord
from storm_operator.history.store import HistoryStore, LeftBehind, NotPublished
from storm_operator.loop_ports import PassReport

LEAST_APART_SECONDS = 2e-6
"""By which recorded times differ for sure: they are whole microseconds, and today's are no multiples of one."""
QUEUED_PASSES = 8
"""Passes that may wait to be written; more would only fill memory."""
MOST_RECORDS_KEPT = 1000
"""Of plans, while nothing can be written; the newest."""
DIFFERS_EACH_TIME = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
"""In the words of one obstacle: the file, which is of one period alone, how many, and how long an answer took."""
Say = Callable[[str], None]


@dataclass(slots=True)
class PassCollector:
    """Makes one `Pass` of what a listener hears: plans' states come before the pass that they belong to."""

    sequence: int = 0
    dropped: int = 0
    _records: list[PlanRecord] = field(default_factory=list)
    _last_at_seconds: float = 0.0

    def note(self, record: PlanRecord) -> None:
        self._records.append(record)

    def collect(self, report: PassReport) -> Pass:
        self._last_at_seconds = report.at_seconds
        return self._take(
            Pass(
                at_seconds=report.at_seconds,
                sequence=self.sequence,
                snapshot=report.snapshot,
                demand=report.demand,
                decisions=report.decisions,
                forecasts=report.forecasts,
                records=tuple(self._records),
                pass_seconds=sum(report.step_seconds.values()) if report.step_seconds else None,
                dropped_before=self.dropped,
            )
        )

    def leftover(self) -> Pass | None:
        """What was heard after the last pass; None when nothing was."""
        if not self._records:
            return None
        # At the last pass' time a plan may have a row already. Before the first there is no time but the plans' own.
        at_seconds = (
            self._last_at_seconds + LEAST_APART_SECONDS
            if self._last_at_seconds
            else max(record.in_force_at_seconds or record.plan.created_at_seconds for record in self._records)
        )
        return self._take(Pass(at_seconds, self.sequence, records=tuple(self._records)))

    def _take(self, made: Pass) -> Pass:
        self._records.clear()
        self.sequence += 1
        return made


@dataclass(slots=True)
class DirectRecorder:
    """A listener that writes each pass at once: for simulations, where nobody waits."""

    store: HistoryStore
    source: str = "simulator"
    collector: PassCollector = field(default_factory=PassCollector)

    def on_pass(self, report: PassReport) -> None:
        write_pass(self.store, self.collector.collect(report), self.source)

    def on_record(self, record: PlanRecord) -> None:
        self.collector.note(record)

    def close(self) -> None:
        """Write what is left and publish it."""
        leftover = self.collector.leftover()
        if leftover is not None:
            write_pass(self.store, leftover, self.source)
        self.store.publish()


class Recorder:
    """A listener that hands each pass to a thread that writes it; never waits, and never raises for what a disk does.

    When writing cannot keep up or fails, passes are lost, counted and said; the next one that is written tells how many
    they were, and what became of plans meanwhile.
    """

    def __init__(self, store: HistoryStore, say: Say, queued: int = QUEUED_PASSES) -> None:
        self._store = store
        self._say = say
        self._collector = PassCollector()
        self._queue: queue.Queue[Pass | None] = queue.Queue(queued)
        self._dropping = False
        self._obstacle = ""
        self._left_behind: set[str] = set()
        self.written = 0
        self.lost = 0
        """Passes dropped or not written, since the start."""
        self._thread = threading.Thread(target=self._write_all, name="history", daemon=True)
        self._thread.start()

    def on_record(self, record: PlanRecord) -> None:
        self._collector.note(record)

    def on_pass(self, report: PassReport) -> None:
        made = self._collector.collect(report)
        try:
            self._queue.put_nowait(made)
        except queue.Full:
            self._drop(made)
            return
        self._collector.dropped = 0
        self._dropping = False

    def _drop(self, made: Pass) -> None:
        self._collector.dropped += 1
        self.lost += 1
        for record in made.records[-MOST_RECORDS_KEPT:]:  # what became of plans is told with the next pass
            self._collector.note(record)
        if not self._dropping:
            self._say(f"history: {self._queue.maxsize} periods wait to be written; periods are dropped until one is")
        self._dropping = True

    def close(self, patience_seconds: float = 30.0) -> None:
        """Write what is left and publish it; gives up, and says so, where all of that takes `patience_seconds`."""
        deadline = time.monotonic() + patience_seconds

        def left() -> float:
            return max(0.0, deadline - time.monotonic())

        leftover = self._collector.leftover()
        try:
            if leftover is not None:
                self._queue.put(leftover, timeout=left())
            self._queue.put(None, timeout=left())
            self._thread.join(left())
        except queue.Full:
            pass  # the thread is still at work, as it is where it could not end in time
        if self._thread.is_alive():
            self._say("history: not all of it could be written before the end")

    def _write_all(self) -> None:
        is_recovered = self._attempt(self._recover) is None
        unwritten: Pass | None = None
        untold = 0
        while (made := self._queue.get()) is not None:
            told = replace(made, dropped_before=made.dropped_before + untold)
            if unwritten is not None:
                told = telling(told, unwritten)
            was_away = bool(self._obstacle)
            if self._written(told):
                self.written += 1
                unwritten = None
                # Of a pass that could not see the cluster no row has it.
                untold = told.dropped_before if told.snapshot is None else 0
                if was_away and not self._obstacle:
                    is_recovered = is_recovered or self._recovers_now()
            else:
                self.lost += 1
                unwritten, untold = told, 0
        if unwritten is not None and unwritten.records:
            self._written(Pass(unwritten.at_seconds, unwritten.sequence, records=unwritten.records))
        self._attempt(self._store.publish)

    def _written(self, made: Pass) -> bool:
        failure = self._attempt(lambda: write_pass(self._store, made, "operator"))
        if failure is None and self._obstacle:
            self._say("history: written again")
            self._obstacle = ""
        return failure is None or isinstance(failure, NotPublished)

    def _recover(self) -> None:
        try:
            if self._store.recover():
                self._say("history: what an earlier recorder had not published is published now")
        except LeftBehind as rest:
            self._tell_of_rest(rest)

    def _recovers_now(self) -> bool:
        """Whether that works when writing works again; else it is left until it does so once more."""
        try:
            self._recover()
        except Exception as error:
            self._say(f"history: what an earlier recorder left is not published yet: {type(error).__name__}: {error}")
            return False
        return True

    def _attempt(self, act: Callable[[], object]) -> Exception | None:
        """Why it did not work; an obstacle is said once, until something is written."""
        try:
            act()
        except LeftBehind as rest:
            self._tell_of_rest(rest)
        except Exception as error:  # a full disk, an object store that is away: the loop goes on without history
            self._tell(error)
            return error
        return None

    def _tell_of_rest(self, rest: LeftBehind) -> None:
        """Once: it stays so, as a rule, and is no obstacle to what is written."""
        first_line = next(iter(str(rest).splitlines()), "")  # stores may name each file in a line of its own
        gist = DIFFERS_EACH_TIME.sub("", first_line)
        if gist not in self._left_behind:
            self._say(f"history: {first_line}")
        self._left_behind.add(gist)

    def _tell(self, obstacle: Exception) -> None:
        words = f"history: not written to {self._store.files.place}: {type(obstacle).__name__}: {obstacle}"
        if isinstance(obstacle, NotPublished):
            words = f"history: {obstacle}"
        gist = DIFFERS_EACH_TIME.sub("", words)
        if gist != self._obstacle:
            self._say(words)
        self._obstacle = gist


def telling(made: Pass, unwritten: Pass) -> Pass:
    """`made`, which tells as well of a pass before it that could not be written, and of what that one told."""
    return replace(
        made,
        records=(*unwritten.records, *made.records)[-MOST_RECORDS_KEPT:],
        dropped_before=unwritten.dropped_before + 1 + made.dropped_before,
    )


def write_pass(store: HistoryStore, made: Pass, source: str) -> None:
    """Keep one pass in `store`."""
    seconds = made.snapshot.period_seconds if made.snapshot is not None else None
    store.write(made.at_seconds, seconds, columns_of(made, source))

"""The folder in which workers leave their snapshots, read so that an idle agent costs nearly nothing.

Files change every second but are parsed only when someone asks. Between, their bytes are kept: when a worker has
been replaced or has died, its last words are still there to be counted. A file that is not as it should be concerns its
own worker alone.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from storm_operator.agent.snapshot_claims import check_claims, with_largest_flows
from storm_operator.agent.snapshot_fields import SnapshotError
from storm_operator.agent.snapshot_files import MOST_FILES, Content, Listed, list_snapshots, read_snapshot
from storm_operator.agent.worker_snapshot import WorkerSnapshot, parse_worker_snapshot
from storm_operator.core.short_repr import short_repr

LAST_WORDS_KEPT = 256
LAST_WORDS_BYTES = 16 * 1024 * 1024
HEAD_BYTES = 1024
MISSING_SECONDS = 20.0  # a worker that has just started makes the folder within this
TAKEN_FOR_DEAD_IN_VAIN = 3
"""A worker may be killed just after it wrote. One that has written again so often, each time said to be gone, lives."""
PID_PATTERN = re.compile(rb'"pid"\s*:\s*(\d+)')
TID_PATTERN = re.compile(rb'"tid"\s*:\s*(\d+|null)')
STARTED_PATTERN = re.compile(rb'"started_at_ms"\s*:\s*([\d.]+)')

log = logging.getLogger(__name__)
IsWriterAlive = Callable[[int, float], bool]
Objection = Callable[[WorkerSnapshot, int], str]
"""Why a file of a user cannot be of the worker that it says it is of; empty: nothing speaks against it."""
Incarnation = tuple[int, float]


@dataclass(slots=True)
class _File:
    """One file as last read. `snapshot` may be older than `content`."""

    listed: Listed
    content: Content
    """Empty once the writer has ended, and its last words were kept."""
    incarnation: Incarnation | None
    snapshot: WorkerSnapshot | None = None
    parsed_stamp: tuple[int, int, int] | None = None
    parsed_tids: list[bytes] | None = None
    is_accepted: bool = False
    is_cut: bool = False
    """Whether it had more flows than are told."""
    complained: bool = False
    alive: bool = True
    taken_for_dead: int = 0


class SnapshotFolder:
    """Safe for threads: the loop that enforces limits and the scrapes share one."""

    def __init__(
        self,
        folder: Path,
        is_writer_alive: IsWriterAlive,
        clock: Callable[[], float] = time.monotonic,
        objection: Objection = lambda _worker, _owner: "",
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = threading.RLock()
        self._is_writer_alive = is_writer_alive
        self._objection = objection
        self._files: dict[str, _File] = {}
        self._last_words: deque[tuple[WorkerSnapshot, int]] = deque(maxlen=LAST_WORDS_KEPT)
        self._complaint = ""
        self._is_crowded = False
        self._missing_since_seconds: float | None = None

    def workers(self) -> tuple[WorkerSnapshot, ...]:
        """What the living workers last wrote, by file name. Unreadable files are left out, each said once."""
        return self._living(self._parsed)

    def threads(self) -> tuple[WorkerSnapshot, ...]:
        """Like `workers`, but the counts may be old: good for who runs where, and cheaper."""
        return self._living(self._with_threads)

    def take_last_words(self) -> tuple[WorkerSnapshot, ...]:
        """The last snapshots of workers that have ended since the last call."""
        with self._lock:
            words = tuple(snapshot for snapshot, _ in self._last_words)
            self._last_words.clear()
            return words

    def _living(self, read: Callable[[str], WorkerSnapshot | None]) -> tuple[WorkerSnapshot, ...]:
        with self._lock:
            self._refresh()
            found = (read(name) for name in sorted(self._files) if self._files[name].alive)
            return tuple(snapshot for snapshot in found if snapshot is not None)

    def _refresh(self) -> None:
        """Reads what changed, parses nothing that is not needed."""
        present = self._list()
        if present is None:
            return
        for name in self._files.keys() - present.keys():
            self._keep_last_words(name)
            del self._files[name]
        for name, listed in present.items():
            self._refresh_file(name, listed)

    def _list(self) -> Mapping[str, Listed] | None:
        """The snapshot files; empty without a folder, None when that cannot be told."""
        accepted = {name for name, file in self._files.items() if file.alive and file.is_accepted}
        try:
            listing = list_snapshots(self._folder, first=accepted)
        except FileNotFoundError:
            self._note_missing()
            return {}
        except OSError as error:
            self._complain(f"cannot read the metrics folder {self._folder}: {error.strerror}")
            return None
        self._missing_since_seconds = None
        if self._complaint:
            log.info("the metrics folder %s is there and can be read", self._folder)
        self._complaint = ""
        if listing.is_cut and not self._is_crowded:
            log.warning("the metrics folder %s has more than %d files: no more are read", self._folder, MOST_FILES)
        self._is_crowded = listing.is_cut
        return listing.files

    def _note_missing(self) -> None:
        now = self._clock()
        if self._missing_since_seconds is None:
            self._missing_since_seconds = now
        if now - self._missing_since_seconds >= MISSING_SECONDS:
            self._complain(
                f"the metrics folder {self._folder} is not there, nobody has written metrics: no worker has run here"
                " yet, or the workers' storm_operator.metrics.dir is another"
            )

    def _refresh_file(self, name: str, listed: Listed) -> None:
        known = self._files.get(name)
        if known is None or known.listed.stamp != listed.stamp:
            try:
                content = read_snapshot(self._folder / name)
            except FileNotFoundError:
                return  # renamed or removed this very moment: the next pass sees it
            incarnation = _incarnation(content.document)
            complained = known is not None and known.complained
            if known is not None and known.incarnation != incarnation:
                self._keep_last_words(name)
                known = None
            if known is None:
                known = self._files[name] = _File(listed, content, incarnation, complained=complained)
            known.listed, known.content = listed, content
            known.alive = True  # it has just been written
        self._check_alive(name, known)

    def _check_alive(self, name: str, file: _File) -> None:
        # A file that does not say whose it is goes on to the parser, which says what is wrong with it.
        if not file.alive:
            return  # until somebody writes it again
        if file.incarnation is None or self._is_writer_alive(file.incarnation[0], file.listed.written_at_seconds):
            file.taken_for_dead = 0
            return
        self._keep_last_words(name)
        file.alive = False
        file.taken_for_dead += 1
        if file.taken_for_dead == TAKEN_FOR_DEAD_IN_VAIN:
            log.warning(
                "%s is written on and on by process %d, which is not to be seen here, so that nothing is told of that"
                " worker: the agent must share the workers' process namespace (shareProcessNamespace of a pod) and be"
                " allowed to see them (hidepid of /proc)",
                name,
                file.incarnation[0],
            )
        file.content, file.snapshot, file.parsed_tids = Content(), None, None

    def _keep_last_words(self, name: str) -> None:
        """Of workers that were told while they lived: whose words these are cannot be asked any more."""
        file = self._files[name]
        if file.alive and file.is_accepted and (snapshot := self._parsed(name)) is not None:
            self._last_words.append((snapshot, len(file.content.document)))
            while sum(size for _, size in self._last_words) > LAST_WORDS_BYTES and len(self._last_words) > 1:
                self._last_words.popleft()

    def _parsed(self, name: str) -> WorkerSnapshot | None:
        file = self._files[name]
        if file.parsed_stamp != file.listed.stamp:
            file.parsed_stamp = file.listed.stamp
            file.parsed_tids = TID_PATTERN.findall(file.content.document)
            try:
                file.snapshot = self._read(name, file)
            except SnapshotError as error:
                self._refuse(name, file, error)
            else:
                file.is_accepted, file.complained = True, False
        return file.snapshot

    def _read(self, name: str, file: _File) -> WorkerSnapshot:
        content = file.content
        if content.owner is None:
            raise SnapshotError(content.problem)
        whole = parse_worker_snapshot(content.document)
        snapshot = with_largest_flows(whole)
        if snapshot is not whole and not file.is_cut:
            log.warning(
                "%s has %d pairs of tasks: only the %d with most tuples are told",
                short_repr(name),
                len(whole.traffic),
                len(snapshot.traffic),
            )
        file.is_cut = snapshot is not whole
        check_claims(snapshot, name)
        if file.incarnation is None or snapshot.pid != file.incarnation[0]:
            raise SnapshotError("has more than one pid")
        if objection := self._objection(snapshot, content.owner):
            raise SnapshotError(objection)
        return snapshot

    def _refuse(self, name: str, file: _File, error: SnapshotError) -> None:
        file.snapshot, file.is_accepted, file.parsed_tids = None, False, None
        file.content = Content(problem=str(error))  # whatever it is, it is not needed any more
        if not file.complained:
            log.warning("skipping the snapshot %s: %s", short_repr(name), error)
        file.complained = True

    def _with_threads(self, name: str) -> WorkerSnapshot | None:
        # Executors and their threads turn up one by one in a worker's first seconds, and then stay.
        file = self._files[name]
        if file.snapshot is not None and file.parsed_tids == TID_PATTERN.findall(file.content.document):
            return file.snapshot
        return self._parsed(name)

    def _complain(self, message: str) -> None:
        if message != self._complaint:
            log.warning(message)
        self._complaint = message


def _incarnation(document: bytes) -> Incarnation | None:
    """Pid and start time: from the document's head if it is written in the contract's order, else by parsing it."""
    pid = PID_PATTERN.search(document, 0, HEAD_BYTES)
    started = STARTED_PATTERN.search(document, 0, HEAD_BYTES)
    try:
        if pid and started:
            return (int(pid[1]), float(started[1]))
        return parse_worker_snapshot(document).incarnation
    except ValueError:  # SnapshotError is one; all that looks like digits and dots need not be a number
        return None

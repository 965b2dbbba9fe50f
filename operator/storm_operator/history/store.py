"""Where recorded periods are kept: Parquet files in a folder or an object store.

A period is safe as soon as it is written: as small files of its own below `_open/` (readers skip names that begin with
an underscore). From time to time they are put together into one file for each table and date, which is published whole
and never changed again:

    <root>/<table>/cluster=<cluster>/date=<date>/<time of first period>-<run>-<first>-<last>.parquet

A recorder that died leaves its periods below `_open/`; the next one of the same cluster publishes them. Publishing can
be cut short anywhere and repeated: names depend on the periods alone, so that what is published already is left alone.
Where it was cut short while periods were being deleted, some are published twice, which readers must bear anyway. Where
a store deletes nothing, as one without the right to, a recorder publishes each of its periods once all the same.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from storm_operator.core.history_rows import Columns
from storm_operator.core.history_tables import TABLES, Kind, Table
from storm_operator.history.arrow import PeriodStamp, arrow_table
from storm_operator.history.at_once import at_once
from storm_operator.history.files import Files
from storm_operator.history.part_names import PartName, by_date, utc_clock, utc_date
from storm_operator.history.pruning import Pruning

OPEN = "_open"
COMPRESSION_LEVEL = 3
ABANDONED_SECONDS = 86_400.0
"""Nobody writes on one file for so long."""


class NotPublished(Exception):
    """A period is kept as it should be, and what is open could not be published: that is tried again with the next."""


class LeftBehind(Exception):
    """All that can be is kept and published. The message says what cannot be read, or why nothing was deleted."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When files are published, and how much is kept. None: no bound. Sizes are those of compressed files."""

    publish_after_seconds: float = 600.0
    publish_after_bytes: int = 64 * 1024 * 1024
    keep_bytes: int | None = 20 * 1024 * 1024 * 1024
    keep_days: float | None = 400.0


@dataclass(slots=True)
class HistoryStore:
    """The history of one cluster, written by one recorder; `run_id` is that recorder's life. Not thread-safe.

    `survives_death` False keeps open periods in memory: for what can be had again, a simulation or a backfill.
    """

    files: Files
    cluster: str
    run_id: str
    limits: Limits = Limits()
    survives_death: bool = True
    clock: Callable[[], float] = time.time
    """What time it is, in seconds since 1970: nothing is old because a period says that it ended later."""
    left_alone: int = 0
    """Files that were published already, and stay as they are."""
    _held: dict[tuple[Table, str], list[tuple[PartName, Any]]] = field(default_factory=dict)
    _open_since_seconds: float | None = None
    _open_bytes: int = 0
    _parts: int = 0
    _first_unpublished: int = 0
    """Of the parts."""
    _broken: set[str] = field(default_factory=set)
    """Own parts that cannot be read. A later recorder tries again."""
    _undeleted: Exception | None = None
    """Why something that is published, or old, could not be deleted."""
    _dates: set[str] = field(default_factory=set)
    pruning: Pruning = field(init=False)

    def __post_init__(self) -> None:
        tables = tuple(posixpath.join(table.name, self._cluster_folder()) for table in TABLES)
        self.pruning = Pruning(self.files, tables, self.limits.keep_bytes, self.limits.keep_days)

    @classmethod
    def at(
        cls,
        root: str,
        cluster: str,
        run_id: str,
        limits: Limits = Limits(),
        survives_death: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> HistoryStore:
        """The store at a folder or URL (`s3://bucket/prefix`). OSError or ValueError when it cannot be used."""
        return cls(Files.at(root), cluster, run_id, limits, survives_death, clock)

    def recover(self) -> int:
        """Publish what earlier recorders of this cluster left open; returns of how many of them nothing is left.

        `LeftBehind` names what could not be read or deleted, when all else is published.
        """
        self.files.delete_abandoned(self.clock() - ABANDONED_SECONDS)
        left = [name for name in self.files.names(self._open_folder()) if name != self.run_id]
        self._tell_of_rest([path for run_id in sorted(left) for path in self._publish_run(run_id)])
        return len(set(left) - set(self.files.names(self._open_folder())))

    def is_shared(self) -> bool:
        """Whether something of this cluster is published that another run wrote."""
        own = f"-{quote(self.run_id, safe='')}-"
        folders = [posixpath.join(table.name, self._cluster_folder()) for table in TABLES]
        return any(own not in posixpath.basename(path) for folder in folders for path, _ in self.files.below(folder))

    def write(self, period_end_seconds: float, period_seconds: float | None, tables: Mapping[Table, Columns]) -> None:
        """Keep one period; publishes what is open when it is due. `NotPublished` when only that failed.

        `LeftBehind` when that is done as well, but for what `publish` says.
        """
        stamp = PeriodStamp(self.run_id, period_end_seconds, period_seconds)
        failure: Exception | None = None
        if self._dates and stamp.date not in self._dates:
            failure = self._publish_failure()  # a file never spans two dates
        for table, columns in tables.items():
            self._open_bytes += self._keep_part(table, arrow_table(table, stamp, columns), stamp)
        self._parts += 1
        self._dates.add(stamp.date)
        if self._open_since_seconds is None:
            self._open_since_seconds = period_end_seconds
        open_seconds = abs(period_end_seconds - self._open_since_seconds)  # the clock may have been set back
        if open_seconds >= self.limits.publish_after_seconds or self._open_bytes >= self.limits.publish_after_bytes:
            failure = self._publish_failure()
        if isinstance(failure, LeftBehind):
            raise failure
        if failure is not None:
            raise NotPublished(
                f"kept below {OPEN} in {self.files.place}, not published yet: {type(failure).__name__}: {failure}"
            ) from failure

    def _publish_failure(self) -> Exception | None:
        try:
            self.publish()
        except Exception as error:  # whatever it is, the period at hand is to be kept
            return error
        return None

    def publish(self) -> None:
        """Put the open periods together, publish them, and delete what is beyond the limits.

        `LeftBehind` names what could not be read or deleted, when all else is published.
        """
        unreadable: list[str] = []
        self._undeleted = None
        if self._dates:
            for (table, _), parts in self._held.items():
                self._publish_rows(table, self.run_id, parts[0][0], parts[-1][0], [rows for _, rows in parts])
            self._held.clear()
            if self.survives_death:
                unreadable = self._publish_run(self.run_id)
                self._first_unpublished = self._parts
        newest = max(self._dates, default=None)
        self._open_since_seconds, self._open_bytes = None, 0
        self._dates.clear()
        if newest is not None:
            self._delete(lambda: self.pruning.look(min(newest, utc_date(self.clock()))))
        self._tell_of_rest(unreadable)

    def _keep_part(self, table: Table, rows: Any, stamp: PeriodStamp) -> int:
        name = PartName(stamp.date, utc_clock(stamp.period_end_seconds), f"{self._parts:07d}")
        if not self.survives_death:
            self._held.setdefault((table, stamp.date), []).append((name, rows))
            return 0
        path = posixpath.join(self._open_folder(), self.run_id, table.name, str(name))
        return self.files.write_whole(path, lambda sink: write_parquet(rows, table, sink))

    def _publish_run(self, run_id: str) -> list[str]:
        """Publish what a run has open; returns what was found that cannot be read, which stays."""
        folder = posixpath.join(self._open_folder(), run_id)
        unreadable: list[str] = []
        for table in TABLES:
            of_table = posixpath.join(folder, table.name)
            parts = by_date(path for path, _ in self.files.below(of_table))
            for paths in parts.values():
                fresh = [path for path in paths if not self._is_published(run_id, path)]
                sound = self._publish_parts(table, run_id, fresh)
                unreadable += [path for path in fresh if path not in sound]
                done = [path for path in paths if path not in unreadable and path not in self._broken]
                # Another recorder may be about to end, and have written more meanwhile.
                if run_id == self.run_id and len(parts) == 1 and len(done) == len(paths):
                    self._delete(partial(self.files.delete, of_table))
                else:
                    self._delete(partial(at_once, self.files.delete, done))
        if run_id == self.run_id:
            self._broken.update(unreadable)
        if not self.files.below(folder):  # what it wrote meanwhile, or a version with more tables
            self._delete(partial(self.files.delete, folder))
        return unreadable

    def _is_published(self, run_id: str, part: str) -> bool:
        """Whether a part is an own one that only waits to be deleted, or cannot be read."""
        number = PartName.of(part).number
        return run_id == self.run_id and number.isdecimal() and int(number) < self._first_unpublished

    def _delete(self, act: Callable[[], object]) -> None:
        """What is published is so, whatever becomes of what is deleted for it."""
        try:
            act()
        except Exception as error:
            self._undeleted = error

    def _tell_of_rest(self, unreadable: list[str]) -> None:
        undeleted, self._undeleted = self._undeleted, None
        rest = _unread(unreadable)
        if undeleted is not None:
            why = f"{type(undeleted).__name__}: {undeleted}"
            rest.append(f"what is published by now, or too old, cannot be deleted from {self.files.place}: {why}")
        if rest:
            raise LeftBehind("; ".join(rest)) from undeleted

    def _publish_parts(self, table: Table, run_id: str, paths: list[str]) -> list[str]:
        """Publish parts of one date as one file; returns those that could be read."""
        parts = {
            path: rows for path, rows in zip(paths, at_once(self._read_part, paths), strict=True) if rows is not None
        }
        sound = list(parts)
        if sound:
            names = PartName.of(sound[0]), PartName.of(sound[-1])
            self._publish_rows(table, run_id, *names, parts.values())
        return sound

    def _publish_rows(self, table: Table, run_id: str, first: PartName, last: PartName, parts: Iterable[Any]) -> None:
        name = f"{first.clock}-{quote(run_id, safe='')}-{first.number}-{last.number}.parquet"
        target = posixpath.join(table.name, self._cluster_folder(), f"date={first.date}", name)
        if self.files.exists(target):
            self.left_alone += 1
            return
        rows = pa.concat_tables(parts, promote_options="default")
        self.pruning.note(self.files.write_whole(target, lambda sink: write_parquet(rows, table, sink)))

    def _read_part(self, path: str) -> Any | None:
        """Its rows; None where it is broken. That its bytes cannot be had is no fault of its own, and an error."""
        with self.files.open(path) as source:
            content = source.read()
        try:
            return pq.read_table(pa.BufferReader(content))
        except (pa.ArrowException, OSError):
            return None

    def _open_folder(self) -> str:
        return posixpath.join(OPEN, quote(self.cluster, safe=""))

    def _cluster_folder(self) -> str:
        return f"cluster={quote(self.cluster, safe='')}"


def write_parquet(rows: Any, table: Table, sink: Any) -> None:
    """Texts, which repeat, by dictionary; all of it in zstd."""
    repeated = [column.name for column in table.columns if column.kind is not Kind.NUMBER]
    pq.write_table(
        rows,
        sink,
        compression="zstd",
        compression_level=COMPRESSION_LEVEL,
        use_dictionary=[*repeated, "period_seconds"],
        coerce_timestamps="us",
    )


def _unread(unreadable: list[str]) -> list[str]:
    """A sentence, or none."""
    if not unreadable:
        return []
    others = f" and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
    return [f"not published, and left as it is: {unreadable[0]}{others} cannot be read as Parquet"]

"""What a store asks of an object store: little, however much is kept there, and more only where it must."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.implementations.local import LocalFileSystem
from pyarrow import fs

from storm_operator.core.history_tables import FORECASTS, PERIODS, TABLES
from storm_operator.history.at_once import at_once
from storm_operator.history.files import Files
from storm_operator.history.store import HistoryStore, Limits

FIRST_SECONDS = 1_767_225_660.0
DAY_SECONDS = 86_400.0
COLUMNS = {
    FORECASTS: {"topology_id": ["t"], "component": ["c"], "arrivals_per_second": [1.0]},
    PERIODS: {"sequence": [1], "source": ["operator"]},
}


class Counted(fs.FSSpecHandler):  # type: ignore[misc]
    """A folder in the place of an object store, which counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__(LocalFileSystem(auto_mkdir=True))
        self.asked: Counter[str] = Counter()

    def get_file_info_selector(self, selector: Any) -> Any:
        self.asked["list"] += 1
        return super().get_file_info_selector(selector)

    def delete_dir(self, path: str) -> None:
        self.asked["delete folder"] += 1
        super().delete_dir(path)

    def delete_file(self, path: str) -> None:
        self.asked["delete file"] += 1
        super().delete_file(path)


def store_of(root: Path, counted: Counted, limits: Limits) -> HistoryStore:
    reached = ArrowFSWrapper(fs.PyFileSystem(counted)), str(root)
    return HistoryStore(Files("s3://bucket", False, lambda: reached), "blue", "r1", limits)


def files_of(root: Path) -> list[Path]:
    return sorted(root.rglob("*.parquet"))


def test_what_a_run_has_published_goes_folder_by_folder(tmp_path: Path) -> None:
    counted = Counted()
    store = store_of(tmp_path, counted, Limits(keep_days=None, keep_bytes=None))
    for number in range(20):
        store.write(FIRST_SECONDS + 10.0 * number, 10.0, COLUMNS)
    store.publish()
    assert len(files_of(tmp_path)) == len(COLUMNS)
    assert counted.asked["delete file"] == 0
    assert counted.asked["delete folder"] == len(COLUMNS) + 1  # the run's own, at last
    assert counted.asked["list"] == len(TABLES) + 1


def test_what_is_kept_is_looked_at_once_a_day(tmp_path: Path) -> None:
    for times in (1, 5):
        counted = Counted()
        store = store_of(tmp_path / str(times), counted, Limits(publish_after_seconds=1e9))
        for number in range(times):
            store.write(FIRST_SECONDS + 10.0 * number, 10.0, COLUMNS)
            store.publish()
        assert counted.asked["list"] == times * (len(TABLES) + 1) + len(TABLES)


def test_what_is_kept_is_looked_at_on_the_same_day_where_much_was_published(tmp_path: Path) -> None:
    store = HistoryStore.at(str(tmp_path), "blue", "r1", Limits(keep_bytes=1))
    for number in range(2):
        store.write(FIRST_SECONDS + 10.0 * number, 10.0, COLUMNS)
        store.publish()
    assert files_of(tmp_path) == []


@pytest.mark.slow
def test_a_day_of_which_all_is_old_goes_folder_by_folder(tmp_path: Path) -> None:
    kept = HistoryStore.at(str(tmp_path), "blue", "r0", Limits(1.0, keep_days=None, keep_bytes=None))
    for day in range(6):
        for number in range(3):
            kept.write(FIRST_SECONDS + DAY_SECONDS * day + 10.0 * number, 10.0, COLUMNS)
    kept.publish()
    before, counted = len(files_of(tmp_path)), Counted()
    gone = store_of(tmp_path, counted, Limits(keep_days=2.0, keep_bytes=None)).pruning.prune("2026-01-06")
    assert {path.parent.name for path in files_of(tmp_path)} == {f"date=2026-01-0{day}" for day in (4, 5, 6)}
    assert before - len(files_of(tmp_path)) == gone > 0
    assert counted.asked == {"list": len(TABLES), "delete folder": 3 * len(COLUMNS)}


def test_files_are_read_at_once_by_threads_that_no_process_waits_for() -> None:
    may_go_on, begun = threading.Event(), threading.Barrier(3)
    before = set(threading.enumerate())

    def act(path: str) -> str:
        begun.wait(60.0)
        assert may_go_on.wait(60.0)
        if path == "b":
            raise OSError("no answer")
        return path

    def read() -> None:
        with pytest.raises(OSError, match="no answer"):
            at_once(act, ["a", "b"])

    reader = threading.Thread(target=read)
    reader.start()
    begun.wait(60.0)
    assert all(thread.daemon for thread in set(threading.enumerate()) - before - {reader})
    may_go_on.set()
    reader.join()
    assert at_once(str.upper, ["a", "b", "c"]) == ["A", "B", "C"]

"""What an earlier recorder left open: published as soon as it can be, and nothing of it deleted that was not."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.dataset as ds
import pytest
from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.implementations.local import LocalFileSystem
from pyarrow import fs

from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.history_tables import DECISIONS, FORECASTS
from storm_operator.history import files as files_module
from storm_operator.history.files import Files
from storm_operator.history.recorder import Recorder
from storm_operator.history.settings import HistorySettings, recorder_or_none
from storm_operator.history.store import HistoryStore, LeftBehind, Limits
from storm_operator.loop_ports import PassReport

FIRST_SECONDS = 1_767_225_660.0


def keep(store: HistoryStore, number: int) -> None:
    """The period of that number, with one row."""
    columns = {"topology_id": ["t"], "component": ["c"], "arrivals_per_second": [float(number)]}
    store.write(FIRST_SECONDS + 10.0 * number, 10.0, {FORECASTS: columns})


def published(root: Path) -> list[float]:
    """Which periods are, by their number."""
    found = ds.dataset(root / FORECASTS.name).to_table()["arrivals_per_second"].to_pylist()
    return sorted(found)


def test_what_a_recorder_that_still_lives_writes_meanwhile_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = HistoryStore.at(str(tmp_path), "blue", "r1")
    keep(old, 0)
    write_whole = Files.write_whole

    def slowly(files: Files, path: str, write: Any) -> int:
        size = write_whole(files, path, write)
        if not path.startswith("_open"):
            monkeypatch.setattr(Files, "write_whole", write_whole)
            keep(old, 1)
        return size

    monkeypatch.setattr(Files, "write_whole", slowly)
    HistoryStore.at(str(tmp_path), "blue", "r2").recover()
    old.publish()
    assert published(tmp_path) == [0.0, 1.0]


def test_rows_of_a_table_that_is_not_known_yet_stay_for_who_knows_it(tmp_path: Path) -> None:
    keep(HistoryStore.at(str(tmp_path), "blue", "r1"), 0)
    part = next((tmp_path / "_open").rglob("*.parquet"))
    newer = part.parent.with_name("of_tomorrow") / part.name
    newer.parent.mkdir()
    newer.write_bytes(part.read_bytes())
    store = HistoryStore.at(str(tmp_path), "blue", "r2")
    assert store.recover() == 0
    assert published(tmp_path) == [0.0]
    assert newer.is_file()


def test_a_broken_period_is_said_and_keeps_no_other_from_being_published(tmp_path: Path) -> None:
    for run in (1, 2):
        store = HistoryStore.at(str(tmp_path), "blue", f"r{run}")
        for number in range(2):
            keep(store, 10 * run + number)
    broken = min((tmp_path / "_open").rglob("*.parquet"))
    broken.write_bytes(broken.read_bytes()[:100])
    store = HistoryStore.at(str(tmp_path), "blue", "r3")
    with pytest.raises(LeftBehind, match=broken.name):
        store.recover()
    assert published(tmp_path) == [11.0, 20.0, 21.0]
    assert broken.is_file()


class AwayStore(HistoryStore):
    """An object store that answers only once `is_back`."""

    is_back = False

    def recover(self) -> int:
        self._insist()
        return super().recover()

    def write(self, *told: Any) -> None:
        self._insist()
        super().write(*told)

    def _insist(self) -> None:
        if not self.is_back:
            raise OSError("no answer")


def test_a_store_that_was_away_at_the_start_is_asked_again_when_it_is_back(tmp_path: Path) -> None:
    keep(HistoryStore.at(str(tmp_path), "blue", "r1"), 0)
    store = AwayStore.at(str(tmp_path), "blue", "r2")
    assert isinstance(store, AwayStore)
    said: list[str] = []
    recorder = Recorder(store, said.append)
    recorder.on_pass(PassReport(FIRST_SECONDS + 100.0, None, None, ()))
    while recorder.written + recorder.lost < 1:
        threading.Event().wait(0.01)
    store.is_back = True
    recorder.on_pass(PassReport(FIRST_SECONDS + 110.0, None, None, ()))
    recorder.close()
    assert published(tmp_path) == [0.0]
    assert said == [
        f"history: not written to {store.files.place}: OSError: no answer",
        "history: written again",
        "history: what an earlier recorder had not published is published now",
    ]


class Unlisted(fs.FSSpecHandler):  # type: ignore[misc]
    """An object store, or what stands for it, that lists nothing for a moment."""

    def get_file_info_selector(self, selector: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")


def lists_nothing(self: LocalFileSystem, path: str, detail: bool = False, **_: Any) -> Any:
    raise OSError(errno.EIO, "Input/output error", path)


@pytest.mark.parametrize("is_local", [True, False], ids=["a folder", "an object store"])
def test_what_cannot_be_listed_is_not_taken_for_gone(
    is_local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = HistoryStore.at(str(tmp_path), "blue", "r1")
    keep(store, 0)
    reachable = store.files
    with monkeypatch.context() as patch:
        if is_local:
            patch.setattr(LocalFileSystem, "ls", lists_nothing)
        else:
            away = ArrowFSWrapper(fs.PyFileSystem(Unlisted(LocalFileSystem())))
            store.files = Files("s3://bucket", False, lambda: (away, str(tmp_path)))
        with pytest.raises(OSError, match="Input/output"):
            store.publish()
        store.files = reachable
    keep(store, 1)
    store.publish()
    assert published(tmp_path) == [0.0, 1.0]


def test_an_object_store_that_is_away_at_the_start_is_recorded_to_when_it_can_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_back = threading.Event()

    class Amazon:
        """Is asked for the bucket's region."""

        @staticmethod
        def from_uri(_: str) -> tuple[Any, str]:
            if not is_back.is_set():
                raise OSError("no answer")
            return fs.PyFileSystem(fs.FSSpecHandler(LocalFileSystem(auto_mkdir=True))), str(tmp_path)

    monkeypatch.setattr(files_module, "fs", SimpleNamespace(**{**vars(fs), "FileSystem": Amazon}))
    said: list[str] = []
    recorder = recorder_or_none(HistorySettings("s3://bucket/recorded"), "nimbus:6627", said.append)
    assert isinstance(recorder, Recorder)
    hold = ((), Hold(HoldReason.CLUSTER_UNREACHABLE, "Nimbus is away"))
    recorder.on_pass(PassReport(FIRST_SECONDS, None, None, (hold,)))
    while recorder.written + recorder.lost < 1:
        threading.Event().wait(0.01)
    is_back.set()
    recorder.on_pass(PassReport(FIRST_SECONDS + 10.0, None, None, (hold,)))
    recorder.close()
    assert said == ["history: not written to s3://bucket/recorded: OSError: no answer", "history: written again"]
    assert (recorder.written, recorder.lost) == (1, 1)
    assert len(list((tmp_path / DECISIONS.name).rglob("*.parquet"))) == 1


def test_a_place_that_can_never_be_one_is_refused_at_the_start() -> None:
    said: list[str] = []
    assert recorder_or_none(HistorySettings("nowhere://bucket"), "nimbus:6627", said.append) is None
    assert said[0].startswith("nimbus:6627: no history is recorded: 'nowhere://bucket' cannot be written to: ")


def test_a_broken_period_is_no_obstacle_to_what_is_written(tmp_path: Path) -> None:
    keep(HistoryStore.at(str(tmp_path), "blue", "r1"), 0)
    broken = next((tmp_path / "_open").rglob("*.parquet"))
    broken.write_bytes(b"")
    said: list[str] = []
    recorder = Recorder(HistoryStore.at(str(tmp_path), "blue", "r2"), said.append)
    recorder.on_pass(PassReport(FIRST_SECONDS + 100.0, None, None, ()))
    recorder.close()
    place = broken.relative_to(tmp_path)
    assert said == [f"history: not published, and left as it is: {place} cannot be read as Parquet"]


def test_a_clock_that_was_set_back_keeps_nothing_from_being_published(tmp_path: Path) -> None:
    store = HistoryStore.at(str(tmp_path), "blue", "r1")
    for number in (4000, 3000, 3001):  # nearly three hours back, on the same date
        keep(store, number)
    assert published(tmp_path) == [3000.0, 4000.0]


def test_a_period_of_a_clock_that_was_set_back_is_not_taken_for_one_that_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is between those of periods that are published, and still open as they could not be deleted."""
    store = HistoryStore.at(str(tmp_path), "blue", "r1")
    for number in (0, 2):
        keep(store, number)
    with monkeypatch.context() as patch:
        patch.setattr(Files, "delete", lists_nothing)
        with pytest.raises(LeftBehind, match="Input/output"):
            store.publish()
    keep(store, 1)
    store.publish()
    assert published(tmp_path) == [0.0, 1.0, 2.0]
    assert not list((tmp_path / "_open").rglob("*.parquet"))


def deletes_nothing(_: Files, path: str) -> None:
    raise PermissionError(f"When deleting key '{path}' in bucket 'history': AWS Error ACCESS_DENIED")


def deletes_nothing_key_by_key(files: Files, path: str) -> None:
    keys = files.below(path)
    told = "".join(f"\n- key '{key}': Access Denied" for key in keys)
    raise OSError(f"Got the following {len(keys)} errors when deleting objects in S3 bucket 'history':{told}")


def recorded(store: HistoryStore) -> tuple[Recorder, list[str]]:
    """Who recorded nine periods in it, and what was said of that."""
    said: list[str] = []
    recorder = Recorder(store, said.append, queued=100)
    hold = ((), Hold(HoldReason.CLUSTER_UNREACHABLE, "Nimbus is away"))
    for number in range(9):
        recorder.on_pass(PassReport(FIRST_SECONDS + 10.0 * number, None, None, (hold,)))
    recorder.close()
    return recorder, said


@pytest.mark.parametrize("refusal", [deletes_nothing, deletes_nothing_key_by_key])
def test_a_store_that_deletes_nothing_has_each_period_published_once_and_it_is_said_once(
    refusal: Callable[[Files, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Files, "delete", refusal)
    store = HistoryStore.at(str(tmp_path), "blue", "r1", Limits(publish_after_seconds=20.0))
    recorder, said = recorded(store)
    assert (recorder.written, recorder.lost) == (9, 0)
    table = ds.dataset(tmp_path / DECISIONS.name)
    assert (table.count_rows(), len(table.files)) == (9, 3)
    assert [words.partition(" from ")[0] for words in said] == [
        "history: what is published by now, or too old, cannot be deleted"
    ]
    assert "\n" not in said[0]


def test_of_an_own_period_that_broke_it_is_said_once_and_the_others_are_published(tmp_path: Path) -> None:
    store = HistoryStore.at(str(tmp_path), "blue", "r1")
    for number in range(3):
        keep(store, number)
    broken = sorted((tmp_path / "_open").rglob("*.parquet"))[1]
    broken.write_bytes(b"")
    with pytest.raises(LeftBehind, match=broken.name):
        store.publish()
    keep(store, 3)
    store.publish()
    assert published(tmp_path) == [0.0, 2.0, 3.0]
    assert broken.is_file()


def test_what_is_too_old_and_cannot_be_deleted_is_not_told_as_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(old := HistoryStore.at(str(tmp_path), "blue", "r1"), 0)
    old.publish()

    def refuse(files: Files, path: str) -> None:
        if not path.startswith("_open"):
            deletes_nothing(files, path)

    monkeypatch.setattr(Files, "delete", refuse)
    store = HistoryStore.at(str(tmp_path), "blue", "r2", Limits(publish_after_seconds=20.0, keep_bytes=1))
    recorder, said = recorded(store)
    assert ["cannot be deleted" in words for words in said] == [True]
    assert recorder.lost == 0

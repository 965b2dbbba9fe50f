from __future__ import annotations

import gc
import json
import logging
from pathlib import Path

import pytest

from agent_snapshots import executor_document, snapshot_document, write_snapshot
from storm_operator.agent import worker_snapshot
from storm_operator.agent.snapshot_folder import MISSING_SECONDS, TAKEN_FOR_DEAD_IN_VAIN, SnapshotFolder
from storm_operator.agent.worker_snapshot import WorkerSnapshot


class Living:
    """Which pids are alive, as the test says."""

    def __init__(self, *pids: int) -> None:
        self.pids = set(pids)
        self.asked = 0

    def __call__(self, pid: int, written_at_seconds: float) -> bool:
        self.asked += 1
        return pid in self.pids


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The documents that were parsed."""
    documents: list[bytes] = []
    parse = worker_snapshot.parse_worker_snapshot

    def recorded(document: bytes) -> object:
        documents.append(document)
        return parse(document)

    monkeypatch.setattr("storm_operator.agent.snapshot_folder.parse_worker_snapshot", recorded)
    return documents


def test_missing_folder_is_empty(tmp_path: Path) -> None:
    assert SnapshotFolder(tmp_path / "none", Living()).workers() == ()


def test_folder_that_stays_missing_is_said_once_and_so_is_its_coming(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    now = [100.0]
    missing = tmp_path / "none"
    folder = SnapshotFolder(missing, Living(4711), lambda: now[0])
    for _ in range(int(MISSING_SECONDS)):
        folder.threads()
        now[0] += 1.0
    assert caplog.text == "", "a worker may just be starting"
    for _ in range(100):
        folder.threads()
        now[0] += 1.0
    ((_, level, words),) = caplog.record_tuples
    assert level == logging.WARNING
    assert f"{missing} is not there" in words
    assert "storm_operator.metrics.dir" in words
    missing.mkdir()
    write_snapshot(missing, snapshot_document())
    assert len(folder.workers()) == len(folder.workers()) == 1
    (_, (_, level, words)) = caplog.record_tuples
    assert (level, words) == (logging.INFO, f"the metrics folder {missing} is there and can be read")


def test_dead_workers_are_left_out(tmp_path: Path) -> None:
    write_snapshot(tmp_path, snapshot_document(port=6700, pid=1))
    write_snapshot(tmp_path, snapshot_document(port=6701, pid=2))
    assert [worker.port for worker in SnapshotFolder(tmp_path, Living(2)).workers()] == [6701]


def test_unchanged_files_are_parsed_once(tmp_path: Path, parses: list[bytes]) -> None:
    write_snapshot(tmp_path, snapshot_document())
    folder = SnapshotFolder(tmp_path, Living(4711))
    assert len(folder.workers()) == 1
    assert len(folder.workers()) == 1
    assert len(parses) == 1


def test_looking_for_threads_parses_only_when_there_are_new_ones(tmp_path: Path, parses: list[bytes]) -> None:
    folder = SnapshotFolder(tmp_path, Living(4711))
    steps: list[dict[int, int | None]] = [{2: None}, {2: None}, {2: 77}, {2: 77}, {2: 77, 3: 78}, {2: 77, 3: 78}]
    for written_at_ms, tids in enumerate(steps):
        executors = [executor_document(task, tid=tid) for task, tid in tids.items()]
        write_snapshot(tmp_path, snapshot_document(written_at_ms=written_at_ms, executors=executors))
        (worker,) = folder.threads()
        assert {executor.task_start: executor.tid for executor in worker.executors} == tids
    assert len(parses) == 3


def test_new_worker_at_the_same_port_is_seen_when_looking_for_threads(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path, Living(1, 2))
    write_snapshot(tmp_path, snapshot_document(pid=1, executors=[executor_document(2, tid=10)]))
    folder.threads()
    write_snapshot(tmp_path, snapshot_document(pid=2, executors=[executor_document(3, tid=20)]))
    (worker,) = folder.threads()
    assert (worker.pid, worker.executors[0].tid) == (2, 20)


def test_last_words_of_a_replaced_worker_are_its_newest_file(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path, Living(1, 2))
    for executed in (5, 9):
        write_snapshot(tmp_path, snapshot_document(pid=1, executors=[executor_document(2, tid=1, executed=executed)]))
        folder.threads()
    write_snapshot(tmp_path, snapshot_document(pid=2))
    folder.threads()
    (words,) = folder.take_last_words()
    assert (words.pid, words.executors[0].executed) == (1, 9.0)
    assert folder.take_last_words() == ()


@pytest.mark.parametrize("way", ["removed", "killed"])
def test_last_words_of_an_ended_worker(tmp_path: Path, way: str) -> None:
    living = Living(1)
    folder = SnapshotFolder(tmp_path, living)
    file = write_snapshot(tmp_path, snapshot_document(pid=1))
    folder.threads()
    if way == "removed":
        file.unlink()
    else:
        living.pids.clear()
    assert folder.workers() == ()
    assert [words.pid for words in folder.take_last_words()] == [1]
    assert folder.workers() == ()
    assert folder.take_last_words() == ()


def test_worker_dead_from_the_start_has_no_last_words_twice(tmp_path: Path) -> None:
    write_snapshot(tmp_path, snapshot_document(pid=1))
    folder = SnapshotFolder(tmp_path, Living())
    folder.threads()
    folder.take_last_words()
    folder.threads()
    assert folder.take_last_words() == ()


def test_a_dead_worker_s_file_costs_nothing_once_its_last_words_are_taken(tmp_path: Path) -> None:
    living = Living(77)
    folder = SnapshotFolder(tmp_path, living)
    write_snapshot(tmp_path, snapshot_document(pid=77))
    folder.threads()
    living.pids.clear()
    folder.threads()
    assert [words.pid for words in folder.take_last_words()] == [77]
    asked = living.asked
    for _ in range(3):
        assert folder.threads() == ()
    assert living.asked == asked
    assert not [each for each in gc.get_objects() if isinstance(each, WorkerSnapshot) and each.pid == 77]


def test_a_worker_that_was_taken_for_dead_is_back_when_it_writes_again(tmp_path: Path) -> None:
    living = Living()
    folder = SnapshotFolder(tmp_path, living)
    write_snapshot(tmp_path, snapshot_document(pid=77))
    assert folder.workers() == ()
    living.pids.add(77)
    write_snapshot(tmp_path, snapshot_document(pid=77, written_at_ms=3_000))
    assert [worker.written_at_ms for worker in folder.workers()] == [3_000]


def test_a_worker_that_goes_on_writing_and_cannot_be_seen_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = SnapshotFolder(tmp_path, Living())
    for second in range(1, 6):
        write_snapshot(tmp_path, snapshot_document(pid=77, written_at_ms=second * 1_000))
        assert folder.workers() == ()
        if second < TAKEN_FOR_DEAD_IN_VAIN:
            assert caplog.messages == [], "it may have been killed in the moment after it wrote"
    (said,) = caplog.messages
    assert said.startswith("wordcount-1-1767268800@6700.json is written on and on by process 77, which is not to be")
    assert "process namespace" in said


def test_a_worker_that_is_taken_for_dead_now_and_then_is_nothing_to_complain_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    living = Living()
    folder = SnapshotFolder(tmp_path, living)
    for second in range(10):
        living.pids = {77} if second % 2 else set()
        write_snapshot(tmp_path, snapshot_document(pid=77, written_at_ms=second * 1_000))
        assert len(folder.workers()) == second % 2
    assert caplog.messages == []


def test_workers_that_were_killed_are_nothing_to_complain_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = SnapshotFolder(tmp_path, Living())
    for pid in range(77, 87):
        write_snapshot(tmp_path, snapshot_document(pid=pid))
        assert folder.workers() == folder.workers() == ()
    assert caplog.messages == []


def test_malformed_file_is_said_once_and_comes_back_when_good(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = SnapshotFolder(tmp_path, Living(4711))
    file = tmp_path / "wordcount-1-1767268800@6700.json"
    with caplog.at_level(logging.WARNING):
        for garbage in ("{", '{"version": 9}', "[]", '{"pid": 5, "started_at_ms": 1.2.3}'):
            file.write_text(garbage)
            assert folder.workers() == ()
    assert len(caplog.records) == 1
    assert "wordcount-1-1767268800@6700.json" in caplog.text
    write_snapshot(tmp_path, snapshot_document())
    assert len(folder.workers()) == 1


def test_order_of_fields_does_not_matter(tmp_path: Path) -> None:
    document = snapshot_document(
        pid=5, traffic=[{"source_task": 1, "stream": "s" * 2000, "target_task": 2, "tuples": 1}]
    )
    backwards = dict(reversed(document.items()))
    (tmp_path / f"{document['topology_id']}@{document['port']}.json").write_text(json.dumps(backwards))
    folder = SnapshotFolder(tmp_path, Living(5))
    assert [worker.pid for worker in folder.workers()] == [5]
    assert SnapshotFolder(tmp_path, Living()).workers() == ()


def test_other_files_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "a@1.json.tmp").write_text("{")
    (tmp_path / "folder").mkdir()
    assert SnapshotFolder(tmp_path, Living()).workers() == ()

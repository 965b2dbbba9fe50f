"""Whatever one worker writes, the others of its supervisor are told and held to their limits."""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent_snapshots import executor_document, snapshot_document, write_snapshot
from fake_cgroups import FakeCgroups
from storm_operator.agent import snapshot_files
from storm_operator.agent.enforcement import Enforcer, Place
from storm_operator.agent.exporter import AgentExporter
from storm_operator.agent.limits import ExecutorKey
from storm_operator.agent.machine import Machine
from storm_operator.agent.peers import PeerReport
from storm_operator.agent.snapshot_claims import MOST_PAIRS
from storm_operator.agent.snapshot_files import MOST_BYTES, read_snapshot
from storm_operator.agent.snapshot_folder import SnapshotFolder
from storm_operator.agent.worker_snapshot import MOST_VALUES

GOOD = "wordcount-1-1767268800"
BAD = "hostile-2-1767268800"
BAD_FILE = f"{BAD}@6701.json"
GOOD_PLACE = Place(ExecutorKey(GOOD, 2, 2), 6700)
DEEP = 100_000
TOO_LARGE = 10**400
HALF_A_PAIR = "\ud800"

Harm = Callable[[Path], object]


class Enforcing:
    """What the exporter asks of the switch."""

    mode = "cgroup-v1"
    reason = ""

    def __init__(self, enforcer: Enforcer) -> None:
        self.enforcer = enforcer


class Supervisor:
    """An agent's parts that read a folder, in which a good worker is."""

    def __init__(self, metrics_dir: Path) -> None:
        self.metrics_dir = metrics_dir
        self.folder = SnapshotFolder(metrics_dir, lambda _pid, _written_at_seconds: True)
        enforcer = Enforcer(FakeCgroups(), "sup-1", is_thread_of=lambda _pid, _tid: True)
        self._enforcing = Enforcing(enforcer)
        self._exporter = AgentExporter(
            "sup-1",
            self.folder,
            Machine(1500, 0.0),
            self._enforcing,
            lambda: PeerReport({}, None),
            lambda: 5.0,
            "1.2.3",
            0.0,
        )
        self._written = 0

    def work(self) -> None:
        """The good worker has done more, and written that."""
        self._written += 1
        executors = [executor_document(2, tid=77, executed=100 * self._written)]
        write_snapshot(self.metrics_dir, snapshot_document(executors=executors, written_at_ms=self._written))

    def step(self) -> dict[Place, float]:
        """One step of the loop; the limits that are in force then."""
        limits = {ExecutorKey(GOOD, 2, 2): 400.0, ExecutorKey(BAD, 2, 2): 300.0}
        self._enforcing.enforcer.enforce(self.folder.threads(), limits)
        return self._enforcing.enforcer.limits_in_force()

    def scrape(self) -> dict[tuple[str, str], list[float]]:
        """Values by series and topology."""
        found: dict[tuple[str, str], list[float]] = {}
        for family in text_string_to_metric_families(self._exporter.text().decode()):
            for sample in family.samples:
                found.setdefault((sample.name, sample.labels.get("topology_id", "")), []).append(sample.value)
        return found


@pytest.fixture
def supervisor(tmp_path: Path) -> Supervisor:
    return Supervisor(tmp_path)


def bad_document(**fields: Any) -> dict[str, Any]:
    return snapshot_document(topology_id=BAD, port=6701, executors=[executor_document(2, tid=78)]) | fields


def text(document: str) -> Harm:
    return lambda folder: (folder / BAD_FILE).write_text(document)


def fields(**changed: Any) -> Harm:
    """A snapshot that is right but for these."""
    return text(json.dumps(bad_document(**changed)))


def nested(field: str, levels: int, around: str = "") -> Harm:
    document = json.dumps(bad_document(**{field: "HERE"}))
    return text(document.replace('"HERE"', "[" * levels + around + "]" * levels))


def executors(*rows: dict[str, Any]) -> Harm:
    return fields(executors=list(rows))


def latency(*buckets: Any, rows: int = 1) -> Harm:
    row = {"task": 2, "sum_ms": 1, "count": 1, "buckets": [*buckets, [None, 1]]}
    return fields(complete_latency=[row] * rows)


def sparse(folder: Path) -> None:
    with (folder / BAD_FILE).open("wb") as file:
        file.truncate(1024**4)


def a_socket(folder: Path) -> None:
    there = Path.cwd()
    os.chdir(folder)  # its address is too long otherwise
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(BAD_FILE)
    finally:
        os.chdir(there)


def not_utf8(folder: Path) -> None:
    (Path(os.fsdecode(os.fsencode(folder) + b"/\xff\n@6701.json"))).write_text(json.dumps(bad_document()))


FLOW = {"source_task": 2, "stream": "s", "target_task": 3, "tuples": 1}
MARGIN = {"task": 2, "source_component": "spout", "stream": "s", "tuples": 1}
HARMS: dict[str, tuple[Harm, str]] = {
    "lists in lists without end": (nested("traffic", DEEP), "not JSON: maximum recursion depth"),
    "lists that can be read and hardly shown": (nested("traffic", 600), "traffic[0] must be an object"),
    "deep where a number should be": (nested("written_at_ms", 600), "written_at_ms must be a number"),
    "deep where a text should be": (nested("topology_id", 600), "topology_id must be a non-empty string"),
    "a time of 400 digits": (fields(written_at_ms=TOO_LARGE), "written_at_ms must be a number of at least 0 and at"),
    "a start of 400 digits": (fields(started_at_ms=TOO_LARGE), "started_at_ms must be a number"),
    "a number of 5,000 digits": (text('{"version": 1, "pid": ' + "9" * 5_000 + "}"), "not JSON: Exceeds the limit"),
    "a count beyond floats": (executors(executor_document(2, executed=TOO_LARGE)), "executors[0].executed must be"),
    "an infinite count": (executors(executor_document(2, executed=float("inf"))), "executors[0].executed must be"),
    "a count that is no number": (executors(executor_document(2, acked=float("nan"))), "executors[0].acked must be"),
    "a count that Java has not": (executors(executor_document(2, acked=1e300)), "executors[0].acked must be"),
    "traffic beyond floats": (fields(traffic=[FLOW, FLOW | {"tuples": TOO_LARGE}]), "traffic[1].tuples must be"),
    "traffic that is no number": (fields(traffic=[FLOW, FLOW | {"tuples": float("nan")}]), "traffic[1].tuples must"),
    "a task of 400 digits": (fields(traffic=[FLOW, FLOW | {"target_task": TOO_LARGE}]), "traffic[1].target_task"),
    "a task below zero": (fields(traffic=[FLOW | {"source_task": -1}]), "traffic[0].source_task must be from 0"),
    "a process below zero": (fields(pid=-5), "pid must be from 1"),
    "a process of 400 digits": (fields(pid=TOO_LARGE), "pid must be from 1"),
    "a thread of 400 digits": (executors(executor_document(2, tid=TOO_LARGE)), "executors[0].tid must be from 1"),
    "thread 0, which is whoever writes it": (executors(executor_document(2, tid=0)), "executors[0].tid must be from 1"),
    "half a pair as component": (executors(executor_document(2, HALF_A_PAIR)), "component must be text"),
    "half a pair as source": (fields(executed_from=[MARGIN | {"source_component": HALF_A_PAIR}]), "source_component"),
    "half a pair as stream": (fields(traffic=[FLOW, FLOW | {"stream": HALF_A_PAIR}]), "traffic[1].stream must be text"),
    "half a pair as topology": (fields(topology_id=HALF_A_PAIR), "topology_id must be text"),
    "a component of a megabyte": (executors(executor_document(2, "x" * 2**20)), "must be text of at most 4000"),
    "a page full of one worker": (
        executors(*(executor_document(task, f"{task:04000}", executed=1) for task in range(1_000))),
        "bytes of the page, one worker has at most",
    ),
    "a page full of buckets": (latency(*([bound, 1] for bound in range(200_000))), "bytes of the page"),
    "a million values": (fields(transferred=[0] * MOST_VALUES), "values, at most 1000000 are read"),
    "two billion tasks": (executors(executor_document(0, task_end=2**31 - 1)), "executors have 2147483648 tasks"),
    "one executor twice": (executors(executor_document(2), executor_document(2)), "have tasks in common"),
    "two executors of a task": (
        executors(executor_document(4), executor_document(2, task_end=5)),
        "executors 2-5 and 4-4 have tasks in common",
    ),
    "the latency of a task twice": (latency(rows=2), "complete_latency has a task more than once"),
    "another topology's id": (fields(topology_id=GOOD), "topology_id and port are those of another file"),
    "another worker's port": (fields(port=6700), "topology_id and port are those of another file"),
    "two pids": (
        text(json.dumps(bad_document(pid=5)).replace('"executors"', '"pid": 4711, "executors"')),
        "has more than one pid",
    ),
    "a pipe": (lambda folder: os.mkfifo(folder / BAD_FILE), "is not a regular file (p"),
    "a folder": (lambda folder: (folder / BAD_FILE).mkdir(), "is not a regular file (d"),
    "a socket": (a_socket, "is not a regular file (s"),
    "a link to another's file": (
        lambda folder: (folder / BAD_FILE).symlink_to(folder / f"{GOOD}@6700.json"),
        "is not a regular file (l",
    ),
    "a link to nowhere": (lambda folder: (folder / BAD_FILE).symlink_to("nowhere"), "is not a regular file (l"),
    "a file of a terabyte": (sparse, f"has more than {MOST_BYTES} bytes"),
    "a name that is not UTF-8": (not_utf8, f"are those of another file, '{BAD_FILE}'"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("harm", "reason"), HARMS.values(), ids=HARMS.keys())
def test_a_bad_file_is_said_once_and_the_worker_beside_it_is_told_and_enforced(
    supervisor: Supervisor, caplog: pytest.LogCaptureFixture, harm: Harm, reason: str
) -> None:
    supervisor.work()
    harm(supervisor.metrics_dir)
    for executed in (100.0, 200.0):
        assert supervisor.step() == {GOOD_PLACE: 400.0}
        page = supervisor.scrape()
        assert page["storm_executor_executed_tuples_total", GOOD] == [executed]
        assert not [name for name, topology_id in page if topology_id not in (GOOD, "")]
        supervisor.work()
    (said,) = (message for message in caplog.messages)
    assert said.startswith("skipping the snapshot ")
    assert reason in said
    assert len(said) < 600
    said.encode()


@pytest.mark.slow
def test_a_worker_with_more_flows_than_are_told_is_measured_and_enforced_and_keeps_the_largest(
    supervisor: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    """It is honest: a few dozen tasks that shuffle to thousands have so many."""
    supervisor.work()
    flows = [FLOW | {"target_task": 3 + task, "tuples": 100 + task} for task in range(MOST_PAIRS + 1)]
    for written_at_ms in (1, 2):
        fields(traffic=flows, written_at_ms=written_at_ms)(supervisor.metrics_dir)
        assert supervisor.step() == {GOOD_PLACE: 400.0, Place(ExecutorKey(BAD, 2, 2), 6701): 300.0}
    (_, told) = sorted(supervisor.folder.workers(), key=lambda worker: worker.port)
    assert len(told.traffic) == MOST_PAIRS
    assert min(flow.tuples for flow in told.traffic) == 101
    (said,) = caplog.messages
    assert said.endswith(f"has {MOST_PAIRS + 1} pairs of tasks: only the {MOST_PAIRS} with most tuples are told")


@pytest.mark.slow
def test_a_worker_of_many_spout_tasks_in_few_executors_has_few_histograms_on_the_page(supervisor: Supervisor) -> None:
    supervisor.work()
    buckets = [*([bound, 1] for bound in range(71)), [None, 1]]
    latencies = [{"task": task, "sum_ms": 1, "count": 1, "buckets": buckets} for task in range(25 * 60)]
    spouts = [executor_document(60 * at, "kafka-spout-eu", task_end=60 * at + 59) for at in range(25)]
    fields(executors=spouts, complete_latency=latencies)(supervisor.metrics_dir)
    assert len(supervisor.scrape()["storm_complete_latency_seconds_count", BAD]) == 25


def test_the_bad_worker_of_these_tests_would_be_told_if_it_were_good(supervisor: Supervisor) -> None:
    supervisor.work()
    fields()(supervisor.metrics_dir)
    assert supervisor.step() == {GOOD_PLACE: 400.0, Place(ExecutorKey(BAD, 2, 2), 6701): 300.0}
    assert supervisor.scrape()["storm_executor_executed_tuples_total", BAD] == [0.0]


def test_a_file_that_was_bad_is_told_as_soon_as_it_is_good(supervisor: Supervisor) -> None:
    supervisor.work()
    pipe = supervisor.metrics_dir / BAD_FILE
    os.mkfifo(pipe)
    assert supervisor.step() == {GOOD_PLACE: 400.0}
    pipe.unlink()
    fields()(supervisor.metrics_dir)
    assert len(supervisor.step()) == 2


def test_a_file_that_grows_while_it_is_read_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    growing = tmp_path / BAD_FILE
    growing.write_bytes(b"x" * 10)
    monkeypatch.setattr(snapshot_files, "MOST_BYTES", 100)
    read = os.read

    def read_and_grow(descriptor: int, _size: int) -> bytes:
        with growing.open("ab") as file:
            file.write(b"x" * 10)
        return read(descriptor, 10)

    monkeypatch.setattr("storm_operator.agent.snapshot_files.os.read", read_and_grow)
    assert read_snapshot(growing).problem == "has more than 100 bytes"


def test_a_file_that_may_not_be_read_is_said(
    supervisor: Supervisor, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor.work()
    fields()(supervisor.metrics_dir)
    opened = os.open

    def refused(path: Any, *arguments: Any) -> int:
        if Path(path).name == BAD_FILE:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *arguments)

    monkeypatch.setattr("storm_operator.agent.snapshot_files.os.open", refused)
    assert supervisor.step() == {GOOD_PLACE: 400.0}
    assert caplog.messages == [f"skipping the snapshot '{BAD_FILE}': cannot be read: Permission denied"]


@pytest.fixture
def three_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_files, "MOST_FILES", 3)


@pytest.mark.usefixtures("three_files")
def test_a_worker_that_is_told_stays_so_however_many_files_others_make(
    supervisor: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor.work()
    supervisor.step()
    for number in range(50):
        (supervisor.metrics_dir / f"{number}.json").write_text("{")
    for _ in range(3):
        assert supervisor.step() == {GOOD_PLACE: 400.0}
        supervisor.work()
    assert len([message for message in caplog.messages if "files: no more are read" in message]) == 1


def test_a_process_that_is_gone_has_no_last_words_for_a_worker_that_nobody_saw(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path, lambda pid, _written_at_seconds: pid == 4711)
    write_snapshot(tmp_path, snapshot_document(executors=[executor_document(2)]))
    for pid in range(5, 10):
        write_snapshot(tmp_path, snapshot_document(topology_id=BAD, pid=pid))
        assert len(folder.workers()) == 1
    assert folder.take_last_words() == ()


def test_what_ended_workers_said_is_kept_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storm_operator.agent.snapshot_folder.LAST_WORDS_BYTES", 100_000)
    folder = SnapshotFolder(tmp_path, lambda _pid, _written_at_seconds: True)
    for pid in range(1, 30):
        transferred = [{"task": task, "stream": "s", "tuples": 1} for task in range(200)]
        write_snapshot(tmp_path, snapshot_document(pid=pid, transferred=transferred))
        folder.threads()
    kept = [words.pid for words in folder.take_last_words()]
    assert 5 < len(kept) < 20
    assert kept == list(range(29 - len(kept), 29))


def test_an_objection_to_a_writer_is_said_and_its_file_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[tuple[int, int]] = []

    def objection(worker: Any, owner: int) -> str:
        asked.append((worker.pid, owner))
        return "it is another's" if worker.pid == 5 else ""

    folder = SnapshotFolder(tmp_path, lambda _pid, _written_at_seconds: True, objection=objection)
    write_snapshot(tmp_path, snapshot_document(pid=4711))
    write_snapshot(tmp_path, snapshot_document(pid=5, topology_id=BAD))
    for _ in range(2):
        assert [worker.pid for worker in folder.threads()] == [4711]
    assert sorted(asked) == [(5, os.geteuid()), (4711, os.geteuid())]
    assert caplog.messages == [f"skipping the snapshot '{BAD}@6700.json': it is another's"]


def test_a_reason_is_said_once_however_often_the_writer_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    folder = SnapshotFolder(tmp_path, lambda _pid, _written_at_seconds: True)
    for pid in range(1, 10):
        (tmp_path / BAD_FILE).write_text(json.dumps(bad_document(pid=pid, executors=None)))
        os.utime(tmp_path / BAD_FILE, (pid, pid))
        assert folder.threads() == ()
    assert len(caplog.messages) == 1

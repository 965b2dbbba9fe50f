from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from storm_operator.agent import processes
from storm_operator.agent.processes import (
    DEPARTED_KEPT,
    ProcessCpuMeter,
    ProcessUse,
    ThreadClock,
    is_writer_alive,
    objection_to_writer,
    process_use,
)

TOPOLOGY = "wordcount-1-1767268800"
WORKER_MAIN = "org.apache.storm.daemon.worker.Worker"
OF_WORKER = (TOPOLOGY, "supervisor-1", "6628", "6700", "worker-1")


def test_writer_is_alive_while_it_runs() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        assert is_writer_alive(child.pid, time.time())
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_writer_alive(child.pid, time.time())  # a zombie, not yet waited for
        child.wait()
        assert not is_writer_alive(child.pid, time.time())


def test_writer_is_not_a_later_process_with_its_pid() -> None:
    assert not is_writer_alive(os.getpid(), written_at_seconds=time.time() - 86_400 * 365)


@contextlib.contextmanager
def waiting(*words: str) -> Iterator[int]:
    """The pid of a process whose command line ends with `words`."""
    command = ["bash", "-c", "echo begun; read", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()  # before, its command line may not be there yet
            yield child.pid
        finally:
            child.kill()


def test_nothing_speaks_against_a_process_of_the_file_s_owner_that_is_no_other_worker() -> None:
    assert objection_to_writer(os.getpid(), os.geteuid(), TOPOLOGY, 6700) == ""
    assert objection_to_writer(2**22 + 1, os.geteuid(), TOPOLOGY, 6700) == "", "it has ended"
    with waiting(WORKER_MAIN, *OF_WORKER) as pid:
        assert objection_to_writer(pid, os.geteuid(), TOPOLOGY, 6700) == ""
    with waiting("org.apache.storm.LogWriter", "java", WORKER_MAIN, *OF_WORKER) as pid:
        assert objection_to_writer(pid, os.geteuid(), TOPOLOGY, 6700) == ""


def test_the_process_of_another_user_did_not_write_the_file() -> None:
    user = os.geteuid()
    said = objection_to_writer(os.getpid(), user + 1, TOPOLOGY, 6700)
    assert said == f"the file is user {user + 1}'s, and process {os.getpid()} user {user}'s"


@pytest.mark.parametrize(
    ("topology_id", "port", "words"),
    [
        ("hostile-2-1767268800", 6700, (WORKER_MAIN, *OF_WORKER)),
        (TOPOLOGY, 6701, (WORKER_MAIN, *OF_WORKER)),
        (TOPOLOGY, 6700, ("org.apache.storm.daemon.supervisor.Supervisor",)),
        # What a topology may choose of its own command line stands before the main class.
        ("hostile-2-1767268800", 6700, (WORKER_MAIN, "hostile-2-1767268800", "6700", WORKER_MAIN, *OF_WORKER)),
    ],
)
def test_a_worker_does_not_speak_for_the_process_of_another(
    topology_id: str, port: int, words: tuple[str, ...]
) -> None:
    with waiting(*words) as pid:
        said = objection_to_writer(pid, os.geteuid(), topology_id, port)
    assert said.startswith(f"process {pid} is another's: it runs org.apache.storm.")


def test_cpu_of_a_gone_thread_is_unknown() -> None:
    tids: list[int] = []
    thread = threading.Thread(target=lambda: tids.append(threading.get_native_id()))
    thread.start()
    thread.join()
    deadline = time.monotonic() + 5
    while processes.is_thread_of(os.getpid(), tids[0]) and time.monotonic() < deadline:
        os.sched_yield()
    assert ThreadClock().cpu_seconds(os.getpid(), tids[0]) is None


def test_reused_thread_id_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ThreadClock()
    pid, tid = os.getpid(), threading.get_native_id()
    assert clock.cpu_seconds(pid, tid) is not None
    started = processes.thread_start_ticks(pid, tid)
    assert started is not None
    monkeypatch.setattr(processes, "thread_start_ticks", lambda _pid, _tid: started + 1)
    assert clock.cpu_seconds(pid, tid) is None
    clock.forget_all_but(())
    assert clock.cpu_seconds(pid, tid) is not None


def test_use_of_a_process() -> None:
    use = process_use(os.getpid())
    assert use is not None
    assert use.cpu_seconds > 0
    assert use.memory_bytes > 1_000_000
    assert process_use(2**22 + 1) is None


def test_meter_does_not_count_a_process_again_when_the_clock_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = ProcessCpuMeter(began_at_seconds=0.0)
    use = process_use(os.getpid())
    assert use is not None
    counted = meter.add([use])
    boot_seconds = psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: boot_seconds + 1.0)
    again = process_use(os.getpid())
    assert again is not None
    assert again.started == use.started + 1.0
    assert meter.add([again]) - counted < counted


def test_meter_never_falls_when_a_process_ends() -> None:
    meter = ProcessCpuMeter(began_at_seconds=0.0)
    assert meter.add([ProcessUse(1, 0, 0.0, 5.0, 0), ProcessUse(2, 0, 0.0, 3.0, 0)]) == 8.0
    assert meter.add([ProcessUse(1, 0, 0.0, 6.0, 0)]) == 9.0
    assert meter.add([ProcessUse(1, 900, 9.0, 0.5, 0)]) == 9.5  # the pid belongs to another process now
    assert meter.add([]) == 9.5


def test_meter_does_not_count_a_process_again_that_was_not_seen_for_a_while() -> None:
    """As a worker that is taken for dead while the clock is set, until it writes again."""
    meter = ProcessCpuMeter(began_at_seconds=0.0)
    assert meter.add([ProcessUse(1, 900, 9.0, 3600.0, 0)]) == 3600.0
    assert meter.add([]) == 3600.0
    assert meter.add([ProcessUse(1, 900, 9.0, 3601.0, 0)]) == 3601.0


def test_meter_remembers_no_more_of_those_that_left_than_it_must() -> None:
    meter = ProcessCpuMeter(began_at_seconds=0.0)
    lives = [ProcessUse(1, ticks, 9.0, 1.0, 0) for ticks in range(DEPARTED_KEPT + 2)]
    for use in lives:
        meter.add([use])
    assert meter.add([lives[1]]) == len(lives)
    assert meter.add([lives[0]]) == len(lives) + 1, "forgotten"


def test_meter_leaves_out_what_was_used_before_it_began() -> None:
    meter = ProcessCpuMeter(began_at_seconds=10.0)
    assert meter.add([ProcessUse(1, 900, 9.0, 3600.0, 0), ProcessUse(2, 1100, 11.0, 3.0, 0)]) == 3.0
    assert meter.add([ProcessUse(1, 900, 9.0, 3601.0, 0), ProcessUse(2, 1100, 11.0, 3.0, 0)]) == 4.0

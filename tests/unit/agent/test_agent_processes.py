from __future__ import annotations

import os
import subprocess
import threading
import time

import psutil
import pytest

from storm_operator.agent import processes
from storm_operator.agent.processes import (
    DEPARTED_KEPT,
    ProcessCpuMeter,
    ProcessUse,
    ThreadClock,
    is_writer_alive,
    process_use,
)


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

"""Plans on a real Storm cluster: exact placement, workers that live on, the three ways, and what survives what."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from cluster_bench import Bench
from eventually import eventually

from functional.plans.conftest import PROBE_SECONDS
from storm_operator.assembly import DEFAULT_AGENT_PORT, assemble
from storm_operator.connection_options import connection_of
from storm_operator.core.model import Executor, WorkerSlot
from storm_operator.core.plan_json import plan_to_json, record_to_json
from storm_operator.core.plan_record import PlanState
from storm_operator.core.settings import ApplyMethod, Mode, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.demo.recorder import Recorder
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.storm_config import ZOOKEEPER_SESSION_MS

pytestmark = pytest.mark.functional

MESSAGE_TIMEOUT_SECONDS = 10.0
PASS_SECONDS = 5.0
AWAY = "Storm does not see the supervisor"


def test_executors_are_where_the_plan_says_and_kept_workers_live_on(bench: Bench) -> None:
    first = bench.apply(bench.layout(1))
    assert first.state is PlanState.SETTLING, first.message
    assert bench.assignment().slot_of == bench.layout(1).slot_of

    record = bench.record(bench.layout(2))
    (kept,) = record.plan.kept_workers
    pid = bench.pid_of(kept)
    moved = bench.assembly.loop.applier.apply(record, lambda _: None)
    assert bench.assignment().slot_of == bench.layout(2).slot_of
    assert pid is not None
    assert bench.pid_of(kept) == pid
    assert moved.workers_kept == len(moved.plan.kept_workers) == 1
    assert moved.seconds_to_running is not None, moved.message
    # Not within the ten seconds after which they would have asked by themselves: they were told.
    eventually(
        lambda: bench.assembly.storm.tell_supervisors([machine.id for machine in bench.supervisors()]),
        "all supervisors can be told",
    )


@pytest.mark.parametrize("method", list(ApplyMethod))
def test_each_way_moves_the_same_executors(bench: Bench, method: ApplyMethod) -> None:
    bench.apply(bench.layout(1))
    if method is ApplyMethod.DRAIN:
        failures_before = bench.wait_until_no_tuple_fails(MESSAGE_TIMEOUT_SECONDS + 3.0)
    moved = bench.apply(bench.layout(2), method)
    assert moved.state is PlanState.SETTLING, moved.message
    assert bench.assignment().slot_of == bench.layout(2).slot_of
    assert moved.workers_kept == 1
    if method is ApplyMethod.DRAIN:
        # A tuple lost in the move would fail by the message timeout, and be counted within the next two seconds.
        deadline = time.monotonic() + MESSAGE_TIMEOUT_SECONDS + 3.0
        while time.monotonic() < deadline:
            assert bench.failures() <= failures_before
            time.sleep(1.0)


def test_plan_survives_the_death_of_nimbus(bench: Bench) -> None:
    bench.apply(bench.layout(2))
    before = bench.assignment()
    pids = {slot: bench.pid_of(slot) for slot in before.workers()}
    bench.cluster.kill_nimbus(signal.SIGKILL)
    bench.cluster.wait_ready()
    uptime = bench.assembly.client.wait_until_ready(patience_seconds=60.0)
    assert uptime.is_leader
    rounds_until = time.monotonic() + 5.0  # nimbus.monitor.freq.secs is 1: several scheduling rounds of the new leader
    while time.monotonic() < rounds_until:
        assert bench.assignment().slot_of == before.slot_of
        time.sleep(0.5)
    assert {slot: bench.pid_of(slot) for slot in before.workers()} == pids


def test_executors_of_a_dead_supervisor_go_to_the_fallback_and_come_home(bench: Bench) -> None:
    target = bench.layout(2)
    bench.apply(target)
    dead = bench.cluster.machines[2].name
    bench.cluster.stop_supervisor(dead)
    try:
        lost = {e for e in target.slot_of if e.component == "count"}

        def run_elsewhere() -> bool:
            slot_of = bench.assignment().slot_of
            return all(slot_of.get(executor, target.slot_of[executor]) != target.slot_of[executor] for executor in lost)

        eventually(run_elsewhere, "the executors of the dead supervisor run elsewhere", seen=bench.assignment)
        acknowledgement = bench.assembly.store.read_acknowledgement(bench.topology_id)
        assert acknowledgement is not None
        assert acknowledgement.outcome == "partial"
        assert {unplaced.executor for unplaced in acknowledgement.unplaced} == {
            (e.task_start, e.task_end) for e in lost
        }
    finally:
        bench.cluster.start_supervisor(dead)
    eventually(lambda: bench.assignment().slot_of == target.slot_of, "the executors are home again")
    eventually(lambda: bench.pid_of(bench.layout(2).slot_of[min(lost)]) is not None, "their worker runs")


def other_ports(cluster: LocalCluster) -> dict[str, str]:
    """The agents that do not listen where they are looked for: all, where machines share one address."""
    return {host: url for host, url in cluster.agent_urls.items() if f":{DEFAULT_AGENT_PORT}/" not in url}


def test_executors_stay_where_their_workers_run_on_while_a_supervisors_daemon_restarts(bench: Bench) -> None:
    """ZooKeeper forgets the supervisor meanwhile: a plan of then would have healthy workers killed."""
    target = bench.layout(2)
    bench.apply(target)
    # As on Kubernetes: agents are looked for beside the supervisors that Storm knows.
    assembly = assemble(replace(connection_of(bench.cluster), agents=other_ports(bench.cluster)), Recorder())
    observer, away = assembly.loop.observer, bench.cluster.machines[2]
    pids = {slot: bench.pid_of(slot) for slot in target.workers()}

    def look() -> ClusterSnapshot:
        time.sleep(PASS_SECONDS)
        return observer.observe({}, (), time.time(), PASS_SECONDS, -math.inf)

    def places(snapshot: ClusterSnapshot) -> dict[Executor, WorkerSlot]:
        return {one: slot for one, slot in snapshot.assignment.slot_of.items() if one in target.slot_of}

    eventually(lambda: not look().completeness.missing_executors, "all executors are measured", seconds=90.0)
    bench.cluster.stop_supervisor(away.name, with_workers=False)
    try:
        for _ in range(ZOOKEEPER_SESSION_MS // 1000):
            seen = look()
            assert places(seen) == target.slot_of, seen.completeness.problems
            if any(AWAY in problem for problem in seen.completeness.problems):
                assert seen.completeness.missing_executors, "its topology is held meanwhile"
                break
        else:
            pytest.fail(f"ZooKeeper never forgot the supervisor: {seen.completeness.problems}")
        (supervisor,) = [one for one in seen.supervisors if one.host == away.host]
        assert set(supervisor.slots) <= set(target.workers()), "nobody else may come meanwhile"
    finally:
        bench.cluster.start_supervisor(away.name)
    eventually(
        lambda: not any(AWAY in problem for problem in look().completeness.problems),
        "Storm sees the supervisor again",
        seconds=90.0,
    )
    assert {slot: bench.pid_of(slot) for slot in target.workers()} == pids
    assembly.close()


CHILD = """
import json, os, signal, sys
from pathlib import Path
from storm_operator.adapters import worker_probe
from storm_operator.assembly import assemble
from storm_operator.core.plan_json import record_from_json
from storm_operator.demo.recorder import Recorder
from storm_operator.local.cluster import LocalCluster
from storm_operator.connection_options import connection_of

name, record_file, deadly_save = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
worker_probe.TIMEOUT_SECONDS = float(sys.argv[4])
assembly = assemble(connection_of(LocalCluster.attach(name)), Recorder())
assembly.storm.read_view({})
saves = 0

def save(record):
    global saves
    assembly.loop.journal.save(record)
    saves += 1
    if saves == deadly_save:
        os.kill(os.getpid(), signal.SIGKILL)

assembly.loop.applier.apply(record_from_json(json.loads(record_file.read_text())), save)
"""


@pytest.mark.parametrize("deadly_save", [1, 2])
def test_operator_killed_in_mid_apply_finishes_the_plan_in_its_next_life(
    bench: Bench, deadly_save: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    bench.apply(bench.layout(1))
    record = bench.record(bench.layout(3))
    file = tmp_path_factory.mktemp("record") / "record.json"
    file.write_text(json.dumps(record_to_json(record)))
    child = subprocess.run(
        [sys.executable, "-c", CHILD, bench.cluster.spec.name, str(file), str(deadly_save), str(PROBE_SECONDS)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr

    reborn = assemble(connection_of(bench.cluster), Recorder())
    loop = reborn.loop
    left = loop.journal.load()
    assert left is not None
    assert left.state is PlanState.APPLYING
    recovered = loop.recover()
    assert recovered is not None
    assert recovered.state is PlanState.SETTLING, recovered.message
    assert plan_to_json(recovered.plan) == plan_to_json(record.plan)
    assert bench.assignment().slot_of == bench.layout(3).slot_of
    assert recovered.workers_kept == 1
    loop.journal.clear()
    reborn.close()


def test_plan_that_made_things_worse_is_rolled_back_and_remembered(bench: Bench) -> None:
    together = bench.layout(0)
    assert bench.apply(together).state is PlanState.SETTLING
    worse = bench.record(bench.layout(3))
    # What the plan promised was less traffic than before; what it brings is traffic that was not there.
    record = bench.assembly.loop.applier.apply(worse, bench.assembly.loop.journal.save)
    loop = bench.assembly.loop
    loop.memory.records = (record,)
    managed = {
        name: replace(
            spec,
            scheduling=SchedulingSettings(
                mode=Mode.ENFORCE, settling_seconds=10.0, cool_down_seconds=600.0, maximum_age_seconds=30.0
            ),
        )
        for name, spec in bench.specs.items()
    }

    def rolled_back() -> bool:
        loop.run_once(managed)
        return any(known.state is PlanState.ROLLED_BACK for known in loop.memory.records)

    eventually(rolled_back, "the plan is found to be worse")
    verdict = next(known for known in loop.memory.records if known.plan.id == record.plan.id)
    assert "inter-supervisor traffic" in verdict.message
    assert bench.assignment().slot_of == together.slot_of
    assert loop.memory.decisions.known_bad

    def settled() -> bool:
        loop.run_once(managed)
        return loop.journal.load() is None

    eventually(settled, "the way back has settled")
    assert loop.memory.records[-1].message == f"rolled back {record.plan.id}"
    loop.memory.records = ()

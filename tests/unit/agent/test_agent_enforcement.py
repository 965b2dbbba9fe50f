from __future__ import annotations

import errno
import json
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_snapshots import executor_document, snapshot_document
from fake_cgroups import FakeCgroups
from storm_operator.agent import enforcement_switch
from storm_operator.agent.cgroups import Bandwidth, CgroupV2, bandwidth_for
from storm_operator.agent.counter_ledger import CounterLedger
from storm_operator.agent.enforcement import Enforcer, Place, ThreadLimit, changes
from storm_operator.agent.enforcement_switch import EnforcementSwitch
from storm_operator.agent.limits import ExecutorKey
from storm_operator.agent.machine import Machine
from storm_operator.agent.machine_cgroup import CgroupError, MachineCgroup
from storm_operator.agent.worker_snapshot import WorkerSnapshot, parse_worker_snapshot

TOPOLOGY = "wordcount-1-1767268800"


def worker(tids: Mapping[int, int | None], port: int = 6700) -> WorkerSnapshot:
    executors = [executor_document(task, tid=tid) for task, tid in tids.items()]
    return parse_worker_snapshot(json.dumps(snapshot_document(port=port, executors=executors)).encode())


def limits(millicores: Mapping[int, float]) -> dict[ExecutorKey, float]:
    return {ExecutorKey(TOPOLOGY, task, task): limit for task, limit in millicores.items()}


def enforcer(cgroups: FakeCgroups) -> Enforcer:
    return Enforcer(cgroups, "sup-1", is_thread_of=lambda _pid, _tid: True)


GROUP_2 = f"storm-executor@sup-1@{TOPOLOGY}@6700@2-2"
GROUP_3 = f"storm-executor@sup-1@{TOPOLOGY}@6700@3-3"


def test_bandwidth_is_of_100_ms() -> None:
    assert bandwidth_for(400, None) == Bandwidth(40_000, 100_000)
    assert bandwidth_for(400, 300) == Bandwidth(30_000, 100_000)


def test_small_limits_get_a_longer_period() -> None:
    assert bandwidth_for(5, None) == Bandwidth(1_000, 200_000)
    assert bandwidth_for(0.1, None) == Bandwidth(1_000, 1_000_000)


@given(st.floats(1, 4000), st.none() | st.floats(1, 4000))
def test_bandwidth_never_exceeds_the_ceiling_and_is_what_the_kernel_takes(
    millicores: float, ceiling: float | None
) -> None:
    bandwidth = bandwidth_for(millicores, ceiling)
    assert bandwidth.quota_us >= 1_000
    assert 1_000 <= bandwidth.period_us <= 1_000_000
    allowed = millicores if ceiling is None else min(millicores, ceiling)
    assert allowed * 0.98 - 0.1 <= bandwidth.millicores <= allowed + 1e-9


@given(
    st.dictionaries(st.integers(1, 5), st.tuples(st.integers(1, 3), st.integers(1, 3))),
    st.dictionaries(st.integers(1, 5), st.tuples(st.integers(1, 3), st.integers(1, 3))),
)
def test_changes_lead_from_what_is_to_what_should_be(
    before: dict[int, tuple[int, int]], after: dict[int, tuple[int, int]]
) -> None:
    def build(plain: dict[int, tuple[int, int]]) -> dict[Place, ThreadLimit]:
        return {
            Place(ExecutorKey("t", task, task), 1): ThreadLimit(1, tid, Bandwidth(quota, 1))
            for task, (tid, quota) in plain.items()
        }

    applied, wanted = build(before), build(after)
    todo = changes(applied, wanted)
    for place in todo.remove:
        del applied[place]
    for place in todo.create:
        assert place not in applied
        applied[place] = wanted[place]
    for place in todo.adjust:
        assert applied[place] != wanted[place]
        applied[place] = wanted[place]
    assert applied == wanted


def test_only_executors_with_a_thread_and_a_limit_get_a_group() -> None:
    cgroups = FakeCgroups()
    enforcer(cgroups).enforce([worker({2: 20, 3: None, 4: 40})], limits({2: 100, 3: 100, 9: 100}))
    assert cgroups.groups == {GROUP_2: (Bandwidth(10_000, 100_000), [20])}


def test_executors_of_a_topology_with_a_long_name_get_groups_that_can_be_made(tmp_path: Path) -> None:
    cgroups = FakeCgroups()
    subject = Enforcer(cgroups, "pod-of-many-letters-" * 3, is_thread_of=lambda _pid, _tid: True)
    for name in ("a" * 200, "b" * 200):
        document = snapshot_document(topology_id=f"{name}-1-1767268800", executors=[executor_document(2, tid=20)])
        executor = ExecutorKey(document["topology_id"], 2, 2)
        subject.enforce([parse_worker_snapshot(json.dumps(document).encode())], {executor: 100.0})
        (made,) = cgroups.groups
        (tmp_path / made).mkdir()
    assert len(list(tmp_path.iterdir())) == 2, "each topology has its own"
    subject.enforce([], {})
    assert cgroups.groups == {}


def test_the_limit_is_there_before_the_thread_and_nothing_is_written_twice() -> None:
    cgroups = FakeCgroups()
    subject = enforcer(cgroups)
    for _ in range(3):
        subject.enforce([worker({2: 20})], limits({2: 100}))
    assert cgroups.deeds == ["create", "limit", "add"]


def test_what_a_limited_thread_starts_does_not_stay_in_its_group() -> None:
    cgroups = FakeCgroups()
    subject = enforcer(cgroups)
    subject.enforce([worker({2: 20})], limits({2: 100}))
    cgroups.groups[GROUP_2][1].extend((21, 22))
    subject.enforce([worker({2: 20})], limits({2: 100}))
    assert cgroups.groups[GROUP_2][1] == [20]


def test_a_group_that_somebody_removed_is_made_anew() -> None:
    cgroups = FakeCgroups()
    subject = enforcer(cgroups)
    subject.enforce([worker({2: 20})], limits({2: 100}))
    cgroups.groups.clear()
    subject.enforce([worker({2: 20})], limits({2: 100}))
    assert subject.limits_in_force() == {}
    subject.enforce([worker({2: 20})], limits({2: 100}))
    assert cgroups.groups[GROUP_2][1] == [20]


def test_limits_change_in_place() -> None:
    cgroups = FakeCgroups()
    subject = enforcer(cgroups)
    subject.enforce([worker({2: 20})], limits({2: 100}))
    subject.enforce([worker({2: 20})], limits({2: 200}))
    assert cgroups.deeds == ["create", "limit", "add", "limit"]
    assert subject.limits_in_force() == {Place(ExecutorKey(TOPOLOGY, 2, 2), 6700): 200.0}


def test_limits_follow_the_ceiling() -> None:
    cgroups = FakeCgroups(ceiling=50)
    subject = enforcer(cgroups)
    subject.enforce([worker({2: 20})], limits({2: 100}))
    assert list(subject.limits_in_force().values()) == [50.0]
    cgroups.ceiling = 1000
    subject.enforce([worker({2: 20})], limits({2: 100}))
    assert list(subject.limits_in_force().values()) == [100.0]


def test_restarted_worker_gets_a_new_group() -> None:
    cgroups = FakeCgroups()
    subject = enforcer(cgroups)
    subject.enforce([worker({2: 20})], limits({2: 100}))
    subject.enforce([worker({2: 21})], limits({2: 100}))
    assert cgroups.deeds == ["create", "limit", "add", "remove", "create", "limit", "add"]
    assert cgroups.groups[GROUP_2][1] == [21]


def test_groups_go_with_their_executor_their_limit_and_the_agent() -> None:
    cgroups = FakeCgroups()
    subject = enforcer(cgroups)
    subject.enforce([worker({2: 20, 3: 30, 4: 40})], limits({2: 100, 3: 100, 4: 100}))
    subject.enforce([worker({3: 30, 4: 40})], limits({2: 100, 3: 100}))
    assert list(cgroups.groups) == [GROUP_3]
    subject.close()
    assert cgroups.groups == {}


def test_waiting_is_counted_on_when_a_limit_is_lifted_and_set_again() -> None:
    cgroups, ledger = FakeCgroups(), CounterLedger()
    enforcing = enforcer(cgroups)
    totals = []
    for limit, waited_seconds in ((100.0, 5.0), (100.0, 8.0), (None, 0.0), (100.0, 1.0), (200.0, 2.0)):
        cgroups.waited_seconds = waited_seconds
        enforcing.enforce([worker({2: 22})], limits({2: limit}) if limit else {})
        group_and_seconds = enforcing.throttled_seconds(Place(ExecutorKey(TOPOLOGY, 2, 2), 6700))
        if group_and_seconds is not None:
            totals.append(ledger.total("waited", *group_and_seconds, 0.0))
    assert totals == [5.0, 8.0, 9.0, 10.0]
    cgroups.waited_seconds = None
    assert enforcing.throttled_seconds(Place(ExecutorKey(TOPOLOGY, 2, 2), 6700)) is None, "the kernel does not tell"


def test_start_removes_its_own_leftovers_only() -> None:
    foreign = ("storm-executor@sup-2@t@6700@1-1", "system.slice")
    cgroups = FakeCgroups(GROUP_2, *foreign)
    enforcer(cgroups).start()
    assert cgroups.names() == foreign


@pytest.mark.parametrize("declined", ["told not to (--no-enforce)", ""])
def test_threads_that_a_crashed_agent_left_limited_are_freed_also_where_limits_are_declined(
    declined: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cgroups = FakeCgroups("storm-executor@sup-1@t@6700@2-2", "storm-executor@sup-2@t@6700@2-2", "other")
    monkeypatch.setattr(enforcement_switch, "executor_cgroups", lambda _: cgroups)
    cgroup = MachineCgroup(1, tmp_path, tmp_path, accounting=None)
    monkeypatch.setattr(enforcement_switch, "find_cgroup", lambda _pids, _given: cgroup)
    switch = EnforcementSwitch(Machine(None, began_at_seconds=0.0), "sup-1", None, declined)
    switch.step((worker({2: 12}),), limits({}), now_seconds=0.0)
    assert cgroups.names() == ("other", "storm-executor@sup-2@t@6700@2-2")
    assert switch.mode == ("observe-only" if declined else "cgroup-v1")
    assert switch.reason == declined


def test_a_cgroup_that_was_made_anew_at_its_old_place_is_prepared_like_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a service is started anew between two steps: what was enabled in the old one is not in the new."""
    made: list[FakeCgroups] = []

    def executor_cgroups(_: MachineCgroup) -> FakeCgroups:
        made.append(FakeCgroups())
        return made[-1]

    service = tmp_path / "storm-supervisor.service"
    service.mkdir()
    monkeypatch.setattr(enforcement_switch, "executor_cgroups", executor_cgroups)
    monkeypatch.setattr(enforcement_switch, "Enforcer", partial(Enforcer, is_thread_of=lambda _pid, _tid: True))
    cgroup = MachineCgroup(2, service, tmp_path, accounting=service)
    monkeypatch.setattr(enforcement_switch, "find_cgroup", lambda _pids, _given: cgroup)
    switch = EnforcementSwitch(Machine(None, began_at_seconds=0.0), "sup-1", None, "")
    switch.step((worker({2: 12}),), limits({2: 100}), now_seconds=0.0)
    switch.step((worker({2: 12}),), limits({2: 100}), now_seconds=1.0)
    service.rename(tmp_path / "old")
    service.mkdir()
    switch.step((worker({2: 13}),), limits({2: 100}), now_seconds=2.0)
    assert [cgroups.names() for cgroups in made] == [(GROUP_2,), (GROUP_2,)]


def test_limits_that_went_with_the_cpu_controller_are_set_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when `systemctl set-property` changes a service that does not delegate its cgroup: groups stay, unlimited."""
    cgroups = FakeCgroups()
    monkeypatch.setattr(enforcement_switch, "executor_cgroups", lambda _: cgroups)
    monkeypatch.setattr(enforcement_switch, "Enforcer", partial(Enforcer, is_thread_of=lambda _pid, _tid: True))
    cgroup = MachineCgroup(2, tmp_path, tmp_path, accounting=tmp_path)
    monkeypatch.setattr(enforcement_switch, "find_cgroup", lambda _pids, _given: cgroup)
    switch = EnforcementSwitch(Machine(None, began_at_seconds=0.0), "sup-1", None, "")
    switch.step((worker({2: 12}),), limits({2: 100}), now_seconds=0.0)
    cgroups.has_controller, cgroups.groups[GROUP_2] = False, (None, [12])
    switch.step((worker({2: 12}),), limits({2: 100}), now_seconds=1.0)
    assert cgroups.has_controller
    assert cgroups.groups == {GROUP_2: (bandwidth_for(100, None), [12])}


def test_waiting_is_counted_on_when_limits_are_set_anew_for_the_same_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cgroups, ledger = FakeCgroups(), CounterLedger()
    monkeypatch.setattr(enforcement_switch, "executor_cgroups", lambda _: cgroups)
    monkeypatch.setattr(enforcement_switch, "Enforcer", partial(Enforcer, is_thread_of=lambda _pid, _tid: True))
    cgroup = MachineCgroup(2, tmp_path, tmp_path, accounting=tmp_path)
    monkeypatch.setattr(enforcement_switch, "find_cgroup", lambda _pids, _given: cgroup)
    switch = EnforcementSwitch(Machine(None, began_at_seconds=0.0), "sup-1", None, "")
    totals = []
    for has_controller, waited_seconds in ((False, 500.0), (False, 1.0), (True, 3.0)):
        cgroups.has_controller, cgroups.waited_seconds = has_controller, waited_seconds
        switch.step((worker({2: 12}),), limits({2: 100}), now_seconds=0.0)
        assert switch.enforcer is not None
        group_and_seconds = switch.enforcer.throttled_seconds(Place(ExecutorKey(TOPOLOGY, 2, 2), 6700))
        assert group_and_seconds is not None
        totals.append(ledger.total("waited", *group_and_seconds, 0.0))
    assert totals == [500.0, 501.0, 503.0]


def test_trouble_with_one_executor_is_said_once_and_spares_the_others(caplog: pytest.LogCaptureFixture) -> None:
    cgroups = FakeCgroups()
    cgroups.fails[GROUP_2] = errno.EINVAL
    subject = enforcer(cgroups)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            subject.enforce([worker({2: 20, 3: 30})], limits({2: 100, 3: 100}))
    assert list(cgroups.groups) == [GROUP_3]
    assert len(caplog.records) == 1
    assert subject.why_not_all().startswith("the kernel refuses to hold 1 executor")
    cgroups.fails.clear()
    subject.enforce([worker({2: 20, 3: 30})], limits({2: 100, 3: 100}))
    assert set(cgroups.groups) == {GROUP_2, GROUP_3}
    assert subject.why_not_all() == ""


def test_executors_that_are_gone_are_no_longer_said_to_be_refused() -> None:
    cgroups = FakeCgroups()
    cgroups.fails[GROUP_2] = errno.EINVAL
    subject = enforcer(cgroups)
    subject.enforce([worker({2: 20})], limits({2: 100}))
    assert subject.why_not_all() != ""
    subject.enforce([], limits({2: 100}))
    assert subject.why_not_all() == ""


def test_a_thread_of_somebody_else_is_never_touched() -> None:
    cgroups = FakeCgroups()
    Enforcer(cgroups, "sup-1", is_thread_of=lambda _pid, _tid: False).enforce([worker({2: 20})], limits({2: 100}))
    assert cgroups.deeds == []


def version_2_tree(folder: Path, controllers: str) -> CgroupV2:
    (folder / "cgroup.controllers").write_text(controllers)
    (folder / "cgroup.subtree_control").write_text("")
    (folder / "cgroup.threads").write_text("")
    (folder / "cpu.max").write_text("50000 100000\n")
    return CgroupV2(MachineCgroup(2, folder, folder, accounting=folder))


def test_version_2_writes_cpu_max(tmp_path: Path) -> None:
    cgroups = version_2_tree(tmp_path, "cpu memory")
    group = tmp_path / "g"
    group.mkdir()
    for name in ("cgroup.type", "cpu.max", "cgroup.threads"):
        (group / name).write_text("")
    cgroups.create("g")
    cgroups.limit("g", bandwidth_for(800, cgroups.ceiling_millicores()))
    cgroups.add_thread("g", 42)
    assert (group / "cgroup.type").read_text() == "threaded"
    assert (group / "cpu.max").read_text() == "50000 100000"
    assert (group / "cgroup.threads").read_text() == "42"


def test_version_2_without_the_cpu_controller_says_so(tmp_path: Path) -> None:
    with pytest.raises(CgroupError, match="the cpu controller is not available"):
        version_2_tree(tmp_path, "memory io").prepare()


def test_version_2_enables_the_controller_and_says_when_groups_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(CgroupError, match="cannot make threaded cgroups"):
        version_2_tree(tmp_path, "cpu").prepare()  # plain folders have no cgroup.type
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_dir()] == []


def test_version_2_sees_that_the_controller_was_taken_from_it(tmp_path: Path) -> None:
    cgroups = version_2_tree(tmp_path, "cpu memory")
    (tmp_path / "cgroup.subtree_control").write_text("cpu\n")
    assert cgroups.can_limit()
    (tmp_path / "cgroup.subtree_control").write_text("memory\n")
    assert not cgroups.can_limit()

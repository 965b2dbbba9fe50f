"""Plans in a real ZooKeeper, also one that goes away and comes back."""

from __future__ import annotations

import random
import time
from typing import Protocol

import pytest

from large_plan import all_moved
from storm_operator.adapters.errors import MalformedDocument, ZooKeeperUnreachable
from storm_operator.adapters.nimbus.supervisors import read_supervisors
from storm_operator.adapters.plan_store import PlanStore
from storm_operator.adapters.zookeeper import LARGEST_NODE_BYTES, ZooKeeperSession
from storm_operator.core.decision import Plan, Prediction
from storm_operator.core.model import Assignment, Executor
from storm_operator.core.plan_json import record_to_json

pytestmark = pytest.mark.functional
TOPOLOGY = "nimbus-plan-store-1-1"
NOTHING = Prediction(0.0, 0.0, 0.0, 0, 0.0)


class StoppableZooKeeper(Protocol):
    @property
    def servers(self) -> str: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


def test_all_documents_round_trip(session: ZooKeeperSession) -> None:
    store = PlanStore(session)
    first, *_ = read_supervisors(session)
    executor = Executor(TOPOLOGY, 1, 2, "split")
    target = Assignment({executor: first.slots[0]})
    plan = Plan("p-1", 0.0, "even", "", (TOPOLOGY,), target, target, (), (), (), {}, NOTHING, NOTHING)
    try:
        for _ in range(2):  # once to make the nodes, once to write over them
            store.write_plan(TOPOLOGY, plan)
            store.write_cpu_limits(TOPOLOGY, "p-1", {executor: 400.0})
        written = store.read_plan(TOPOLOGY)
        assert written is not None
        assert [(each.host, each.port, each.executors) for each in written.workers] == [
            (first.host, first.ports[0], ((1, 2),))
        ]
        assert store.read_cpu_limits(TOPOLOGY) == {executor: 400.0}
        assert TOPOLOGY in store.planned_topologies()
    finally:
        store.delete_plan(TOPOLOGY)
    assert store.read_plan(TOPOLOGY) is None
    assert store.read_cpu_limits(TOPOLOGY) == {}


def test_what_zookeeper_could_not_hold_is_refused_with_its_size(session: ZooKeeperSession) -> None:
    with pytest.raises(MalformedDocument, match=f"holds at most {LARGEST_NODE_BYTES}"):
        PlanStore(session).write_journal({"long": random.Random(1).randbytes(LARGEST_NODE_BYTES).hex()})


def test_the_journal_of_a_large_plan_round_trips(session: ZooKeeperSession) -> None:
    journal = record_to_json(all_moved(10_000))
    PlanStore(session).write_journal(journal)
    try:
        assert PlanStore(session).read_journal() == journal
    finally:
        PlanStore(session).clear_journal()


def test_an_outage_is_reported_in_time_and_survived(lone_zookeeper: StoppableZooKeeper) -> None:
    patient = ZooKeeperSession(lone_zookeeper.servers, timeout_seconds=60.0, session_timeout_seconds=4.0)
    hasty = ZooKeeperSession(lone_zookeeper.servers, timeout_seconds=1.0, session_timeout_seconds=4.0)
    try:
        # The first operation waits for a ZooKeeper that is still starting.
        PlanStore(patient).write_journal({"n": 1})
        assert PlanStore(patient).read_journal() == {"n": 1}
        lone_zookeeper.stop()
        began = time.monotonic()
        with pytest.raises(ZooKeeperUnreachable, match=rf"{lone_zookeeper.servers} did not answer within 1 s"):
            PlanStore(hasty).read_journal()
        assert time.monotonic() - began < 30.0, "it hung"
        lone_zookeeper.start()
        assert PlanStore(patient).read_journal() == {"n": 1}
        PlanStore(patient).write_journal({"n": 2})
        assert PlanStore(patient).read_journal() == {"n": 2}
    finally:
        patient.close()
        hasty.close()


def test_a_server_that_was_never_there() -> None:
    session = ZooKeeperSession("127.0.0.1:1", timeout_seconds=0.5)
    try:
        with pytest.raises(ZooKeeperUnreachable, match=r"127\.0\.0\.1:1 did not answer"):
            PlanStore(session).write_journal({})
    finally:
        session.close()

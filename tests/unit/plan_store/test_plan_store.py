"""PlanStore over a dictionary instead of ZooKeeper: which document goes where, and waiting for an answer."""

from __future__ import annotations

import gzip
import json

import pytest
from thriftpy2.utils import serialize

from storm_operator.adapters.errors import MalformedDocument
from storm_operator.adapters.nimbus.connection import storm_thrift
from storm_operator.adapters.plan_store import PlanStore
from storm_operator.core.decision import Plan, Prediction
from storm_operator.core.model import Assignment, Executor, WorkerSlot

ROOT = "/storm/storm-operator"
NOTHING = Prediction(0.0, 0.0, 0.0, 0, 0.0)
DEAD = "8c1f0c5e-7513-4525-983d-45ba518fea28-10.77.0.12"


class Dictionary:
    """ZooKeeper's nodes in memory."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def get(self, path: str) -> bytes | None:
        return self.content.get(path)

    def put(self, path: str, content: bytes) -> None:
        self.content[path] = content

    def remove(self, path: str) -> None:
        self.content.pop(path, None)

    def children(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(name.removeprefix(path + "/") for name in self.content if name.startswith(path + "/")))

    def add_supervisor(self, supervisor_id: str, host: str) -> None:
        info = storm_thrift.SupervisorInfo(time_secs=1, hostname=host, meta=[6700])
        self.content[f"/storm/supervisors/{supervisor_id}"] = gzip.compress(serialize(info))


def executor(topology_id: str, task: int) -> Executor:
    return Executor(topology_id, task, task, "split")


def plan(*placed: tuple[Executor, str]) -> Plan:
    target = Assignment({each: WorkerSlot(supervisor, 6700) for each, supervisor in placed})
    ids = tuple(sorted({each.topology_id for each, _ in placed}))
    return Plan("p-1", 0.0, "even", "", ids, Assignment({}), target, (), (), (), {}, NOTHING, NOTHING)


def test_a_plan_is_written_per_topology_with_the_hosts_of_its_supervisors() -> None:
    nodes = Dictionary()
    nodes.add_supervisor("s1", "10.77.0.11")
    nodes.add_supervisor("s2", "10.77.0.12")
    both = plan((executor("a-1", 1), "s1"), (executor("a-1", 2), "s2"), (executor("b-1", 1), "s1"))
    PlanStore(nodes).write_plan("a-1", both)
    assert json.loads(nodes.content[f"{ROOT}/plans/a-1"]) == {
        "version": 1,
        "plan_id": "p-1",
        "topology_id": "a-1",
        "workers": [
            {"supervisor_id": "s1", "host": "10.77.0.11", "port": 6700, "executors": [[1, 1]]},
            {"supervisor_id": "s2", "host": "10.77.0.12", "port": 6700, "executors": [[2, 2]]},
        ],
    }


def test_the_host_of_a_supervisor_that_died_is_remembered_or_read_from_its_id() -> None:
    nodes = Dictionary()
    nodes.add_supervisor("s1", "10.77.0.11")
    store = PlanStore(nodes)
    store.write_plan("a-1", plan((executor("a-1", 1), "s1")))
    nodes.remove("/storm/supervisors/s1")
    store.write_plan("a-1", plan((executor("a-1", 1), "s1"), (executor("a-1", 2), DEAD), (executor("a-1", 3), "odd")))
    written = store.read_plan("a-1")
    assert written is not None
    assert [worker.host for worker in written.workers] == ["10.77.0.12", "odd", "10.77.0.11"]


def test_what_is_not_there_is_none() -> None:
    store = PlanStore(Dictionary(), "/other")
    assert store.read_plan("a-1") is None
    assert store.read_acknowledgement("a-1") is None
    assert store.read_cpu_limits("a-1") == {}
    assert store.read_journal() is None
    store.clear_journal()


def test_cpu_limits_of_other_topologies_are_left_out() -> None:
    nodes = Dictionary()
    store = PlanStore(nodes)
    store.write_cpu_limits("a-1", "p-1", {executor("a-1", 1): 400.0, executor("b-1", 1): 200.0})
    assert store.read_cpu_limits("a-1") == {executor("a-1", 1): 400.0}
    assert list(nodes.content) == [f"{ROOT}/cpu-limits/a-1"]


def test_deleting_a_plan_deletes_all_that_belongs_to_it() -> None:
    nodes = Dictionary()
    nodes.put(f"{ROOT}/acks/a-1", b"{}")
    store = PlanStore(nodes)
    store.write_plan("a-1", plan((executor("a-1", 1), "s1")))
    store.write_cpu_limits("a-1", "p-1", {executor("a-1", 1): 400.0})
    assert store.planned_topologies() == ("a-1",)
    store.delete_plan("a-1")
    assert nodes.content == {}


def test_topology_with_nothing_but_limits_is_known() -> None:
    store = PlanStore(Dictionary())
    store.write_cpu_limits("b-1", "", {executor("b-1", 1): 400.0})
    assert store.planned_topologies() == ("b-1",)


def test_the_journal_is_any_object() -> None:
    store = PlanStore(Dictionary())
    store.write_journal({"state": "applying", "n": [1, None, "ü"]})
    assert store.read_journal() == {"state": "applying", "n": [1, None, "ü"]}
    store.clear_journal()
    assert store.read_journal() is None


@pytest.mark.parametrize("topology_id", ["", "a/b", "../journal"])
def test_ids_that_would_lead_elsewhere_are_refused(topology_id: str) -> None:
    with pytest.raises(MalformedDocument, match="without a slash"):
        PlanStore(Dictionary()).read_plan(topology_id)

"""PlanStore over a dictionary instead of ZooKeeper: which document goes where, and waiting for an answer."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace

import pytest
from thriftpy2.utils import serialize

from large_plan import all_moved, settling
from storm_operator.adapters import plan_store
from storm_operator.adapters.errors import MalformedDocument
from storm_operator.adapters.nimbus.connection import storm_thrift
from storm_operator.adapters.plan_store import PlanStore
from storm_operator.adapters.storm_cluster import SPARE_BYTES, SPARE_BYTES_PER_EXECUTOR, PlanJournal
from storm_operator.adapters.zookeeper import LARGEST_NODE_BYTES
from storm_operator.core.decision import Plan, Prediction
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.packed_json import encode
from storm_operator.core.plan_json import record_to_json
from storm_operator.cpu_limits import CpuLimits
from storm_operator.local.paths import repository_root


def spare_bytes(executors: int) -> int:
    return SPARE_BYTES + executors * SPARE_BYTES_PER_EXECUTOR


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
        assert len(content) <= LARGEST_NODE_BYTES
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


@pytest.mark.parametrize("kind", ["plans", "cpu-limits", "acks"])
def test_a_topology_of_which_one_document_is_left_is_known(kind: str) -> None:
    """What ZooKeeper could not delete any more, or the scheduler wrote meanwhile, is deleted by a later pass."""
    nodes = Dictionary()
    nodes.put(f"{ROOT}/{kind}/b-1", b"{}")
    assert PlanStore(nodes).planned_topologies() == ("b-1",)


def test_the_journal_is_any_object() -> None:
    store = PlanStore(Dictionary())
    store.write_journal({"state": "applying", "n": [1, None, "ü"]})
    assert store.read_journal() == {"state": "applying", "n": [1, None, "ü"]}
    store.clear_journal()
    assert store.read_journal() is None


@pytest.mark.slow
def test_all_that_is_kept_of_ten_thousand_executors_that_move_fits_into_zookeeper() -> None:
    record = all_moved(10_000)
    nodes = Dictionary()
    store = PlanStore(nodes)
    for step in (record, settling(record)):
        PlanJournal(store).save(step)
        assert PlanJournal(store).load() == step
    for topology_id in record.plan.topology_ids:
        store.write_plan(topology_id, record.plan)
        store.write_cpu_limits(topology_id, record.plan.id, record.plan.cpu_limits_millicores)
        assert store.read_cpu_limits(topology_id)


@pytest.mark.slow
def test_record_of_a_plan_grows_by_less_than_is_spared_for_it() -> None:
    applying = all_moved(2_000)
    unseen = replace(applying, failures_before={})
    first, grown, unseen_first, unseen_grown = (
        len(encode(record_to_json(record))) for record in (applying, settling(applying), unseen, settling(unseen))
    )
    assert grown < 1.02 * first, "counters of places that executors have left are not kept"
    assert unseen_grown - unseen_first < spare_bytes(2_000)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0, 1])
def test_plan_whose_record_may_become_too_large_is_refused_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    """In force it could neither be verified nor taken back any more."""
    record, nodes = all_moved(1_500), Dictionary()
    journal = PlanJournal(PlanStore(nodes))
    most = len(encode(record_to_json(record))) + spare_bytes(1_500) - missing
    monkeypatch.setattr(plan_store, "LARGEST_NODE_BYTES", most)
    if not missing:
        journal.save(record)
        return
    words = (
        rf"journal would be {most + 1} bytes before the plan is over; .* at most {most}: these are too many executors"
    )
    with pytest.raises(MalformedDocument, match=words):
        journal.save(record)
    assert nodes.content == {}
    for step in (settling(record), replace(record, rollback_of="p-bad"), replace(record, in_force_at_seconds=1.0)):
        journal.save(step)  # too late, or better begun than refused


def test_one_topology_of_ten_thousand_executors_has_documents_that_zookeeper_holds() -> None:
    only = "wordcount-1-1767268800"
    executors = {Executor(only, task, task, "split"): task + 1 / 3 for task in range(1, 10_001)}
    store = PlanStore(Dictionary())
    store.write_plan(only, plan(*((each, f"s{each.task_start % 200}") for each in executors)))
    store.write_cpu_limits(only, "p-1", executors)
    written = store.read_plan(only)
    assert written is not None
    assert sum(len(worker.executors) for worker in written.workers) == len(executors)


def test_a_journal_of_an_earlier_version_is_read_however_long_it_is() -> None:
    record = all_moved(900)
    nodes = Dictionary()
    nodes.put(f"{ROOT}/journal", json.dumps(record_to_json(record)).encode())
    assert PlanJournal(PlanStore(nodes)).load() == record


def test_a_short_journal_can_be_read_by_people() -> None:
    nodes = Dictionary()
    PlanStore(nodes).write_journal({"state": "applying"})
    assert nodes.content[f"{ROOT}/journal"] == b'{"state":"applying"}'


@pytest.mark.parametrize(
    "content",
    [b"\x1f\x8bnonsense", gzip.compress(b"{}", mtime=0), gzip.compress(b"[1]", mtime=0), b"\x00"],
    ids=["cut short", "no document", "no object", "no JSON"],
)
def test_a_journal_that_cannot_be_unpacked_is_refused(content: bytes) -> None:
    nodes = Dictionary()
    nodes.put(f"{ROOT}/journal", content)
    with pytest.raises(MalformedDocument, match="journal: not JSON"):
        PlanStore(nodes).read_journal()


@pytest.mark.parametrize("content", [b"{", b"\x1f\x8bnonsense", b"{}", b'{"plan": 1}'])
def test_whoever_waits_for_a_journal_that_cannot_be_read_is_told_which_node_to_delete(content: bytes) -> None:
    nodes = Dictionary()
    nodes.put("/other/storm-operator/journal", content)
    with pytest.raises(MalformedDocument, match=r"cannot be read \(.*delete the node /other/storm-operator/journal "):
        PlanJournal(PlanStore(nodes, "/other")).load()


@pytest.mark.parametrize("topology_id", ["", "a/b", "../journal"])
def test_ids_that_would_lead_elsewhere_are_refused(topology_id: str) -> None:
    with pytest.raises(MalformedDocument, match="without a slash"):
        PlanStore(Dictionary()).read_plan(topology_id)


@pytest.mark.parametrize("content", [b"{", b"", b'{"version": 9}'])
def test_cpu_limits_that_cannot_be_read_are_written_anew(content: bytes) -> None:
    """Damaged, or of another version: all that an operator does for all topologies would wait for one document."""
    nodes, path = Dictionary(), f"{ROOT}/cpu-limits/a-1"
    store, wanted = PlanStore(nodes), {executor("a-1", 1): 100.0}
    limits = CpuLimits(store)
    nodes.content[path] = content
    limits.rise("a-1", wanted)
    assert limits.hold("a-1")
    limits.follow("a-1", wanted, wanted)
    assert store.read_cpu_limits("a-1") == wanted
    nodes.content[path] = content
    limits.lift("a-1")
    assert not limits.hold("a-1")
    nodes.content[path] = content
    limits.raise_for(plan((executor("a-1", 1), "s1")))
    assert store.read_cpu_limits("a-1") == {}


def test_limits_of_restarted_workers_are_doubled_as_far_as_the_ceiling_goes() -> None:
    store = PlanStore(Dictionary())
    small, large, kept = (executor("a-1", task) for task in (1, 2, 3))
    settled = replace(
        plan((small, "s1"), (large, "s1"), (kept, "s2")),
        restarted_workers=(WorkerSlot("s1", 6700),),
        cpu_limits_millicores={small: 100.0, large: 200.0, kept: 200.0},
        cpu_ceiling_millicores=300.0,
    )
    CpuLimits(store).settle_after(settled)
    assert store.read_cpu_limits("a-1") == {small: 200.0, large: 300.0, kept: 200.0}


def test_while_a_plan_settles_limits_fall_only_for_who_is_held_back() -> None:
    store = PlanStore(Dictionary())
    ordinary, held = (executor("a-1", task) for task in (1, 2))
    store.write_cpu_limits("a-1", "p-1", {ordinary: 400.0, held: 400.0})
    CpuLimits(store).rise("a-1", {ordinary: 200.0, held: 100.0}, {held: 350.0})
    assert store.read_cpu_limits("a-1") == {ordinary: 400.0, held: 100.0}


@pytest.mark.parametrize("kind", ["plans", "cpu-limits"])
def test_what_stays_in_zookeeper_without_an_operator_can_be_deleted_as_the_documentation_says(kind: str) -> None:
    root = repository_root()
    assert root is not None
    said = (root / "docs" / "how-to" / "operate-on-kubernetes.md").read_text()
    (path,) = re.findall(rf"zkCli.sh -server ZOOKEEPER:2181 delete (\S+/{kind}/TOPOLOGY-ID)", said)
    nodes, own = Dictionary(), executor("TOPOLOGY-ID", 1)
    PlanStore(nodes).write_plan("TOPOLOGY-ID", plan((own, "s1")))
    PlanStore(nodes).write_cpu_limits("TOPOLOGY-ID", "p-1", {own: 50.0})
    assert path in nodes.content

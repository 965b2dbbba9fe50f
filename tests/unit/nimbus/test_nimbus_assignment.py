"""From hosts and ports to slots, and what supervisors say of themselves."""

from __future__ import annotations

import gzip
from unittest.mock import Mock

import pytest
from thriftpy2.utils import serialize

from storm_operator.adapters.errors import MalformedDocument
from storm_operator.adapters.nimbus.assignment import assignment_from
from storm_operator.adapters.nimbus.connection import storm_thrift
from storm_operator.adapters.nimbus.supervisors import read_supervisors, supervisor_from
from storm_operator.adapters.nimbus.values import ExecutorSummary, TopologyInfo
from storm_operator.core.model import Executor, Supervisor, WorkerSlot

TWO_ON_ONE_HOST = (Supervisor("a", "h1", (6700,)), Supervisor("b", "h1", (6701,)), Supervisor("c", "h2", (6700,)))


def info(*placed: tuple[int, str, int, int]) -> TopologyInfo:
    executors = tuple(ExecutorSummary(task, task, "split", host, port, up) for task, host, port, up in placed)
    return TopologyInfo("t-1", "t", "ACTIVE", 9, None, executors, {})


def executor(task: int) -> Executor:
    return Executor("t-1", task, task, "split")


def test_supervisors_of_one_host_are_told_apart_by_port() -> None:
    reading = assignment_from([info((1, "h1", 6700, 5), (2, "h1", 6701, 0))], TWO_ON_ONE_HOST)
    assert reading.assignment.slot_of == {executor(1): WorkerSlot("a", 6700), executor(2): WorkerSlot("b", 6701)}
    assert reading.worker_uptime_seconds == {WorkerSlot("a", 6700): 5.0}, "no heartbeat is unknown, not zero"


def test_an_unlisted_port_belongs_to_the_only_supervisor_of_its_host() -> None:
    reading = assignment_from([info((1, "h2", 6799, 1))], TWO_ON_ONE_HOST)
    assert reading.assignment.slot_of == {executor(1): WorkerSlot("c", 6799)}


def test_executors_of_a_dead_or_ambiguous_host_are_homeless() -> None:
    reading = assignment_from([info((1, "h9", 6700, 1), (2, "h1", 6799, 1))], TWO_ON_ONE_HOST)
    assert reading.assignment.slot_of == {}
    assert reading.homeless == (executor(1), executor(2))


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_supervisor_ports(pack: type[bytes]) -> None:
    written = storm_thrift.SupervisorInfo(time_secs=1, hostname="10.77.0.11", meta=[6701, 6700], used_ports=[6700])
    supervisor = supervisor_from("id-1", pack(serialize(written)))
    assert supervisor == Supervisor("id-1", "10.77.0.11", (6700, 6701))
    assert supervisor.cpu_capacity_millicores is None


def test_memory_that_a_supervisor_declares() -> None:
    resources = {"memory.mb": 4096.0, "cpu.pcore.percent": 400.0}
    written = storm_thrift.SupervisorInfo(time_secs=1, hostname="h1", meta=[6700], resources_map=resources)
    assert supervisor_from("id-1", serialize(written)).memory_mb == 4096.0


def test_a_port_that_a_supervisor_names_twice_is_one_slot() -> None:
    written = storm_thrift.SupervisorInfo(time_secs=1, hostname="10.77.0.11", meta=[6701, 6700, 6700])
    assert supervisor_from("id-1", serialize(written)).ports == (6700, 6701)


def living(**told: dict[str, object]) -> list[str]:
    """Ids of the supervisors that are there, where these are told of in ZooKeeper."""
    nodes = {one: serialize(storm_thrift.SupervisorInfo(hostname="h1", **fields)) for one, fields in told.items()}
    zookeeper = Mock(children=lambda _: sorted(nodes), get=lambda path: nodes[path.rpartition("/")[2]])
    return [supervisor.id for supervisor in read_supervisors(zookeeper)]


@pytest.mark.parametrize(("new", "old"), [("a", "b"), ("b", "a")])
def test_a_supervisor_that_lost_its_id_takes_the_place_of_the_one_it_was(new: str, old: str) -> None:
    """Whose node stays until its session ends: machine and slots would be counted twice."""
    began_last = {"time_secs": 1020, "uptime_secs": 5, "meta": [6700, 6701]}
    began_first = {"time_secs": 1012, "uptime_secs": 900, "meta": [6700, 6701]}
    assert living(**{new: began_last, old: began_first}) == [new]


def test_supervisors_of_one_host_with_slots_of_their_own_are_all_there() -> None:
    first = {"time_secs": 1020, "uptime_secs": 900, "meta": [6700]}
    second = {"time_secs": 1020, "uptime_secs": 5, "meta": [6701]}
    assert living(a=first, b=second) == ["a", "b"]


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\x1f\x8bnonsense", gzip.compress(b"nonsense", mtime=0), b"\xac\xed\x00\x05sr"]
)
def test_what_is_no_supervisor_is_refused(content: bytes) -> None:
    with pytest.raises(MalformedDocument, match="supervisors/id-1 in ZooKeeper is not a Thrift SupervisorInfo"):
        supervisor_from("id-1", content)

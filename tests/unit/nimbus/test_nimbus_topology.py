"""From what Nimbus sends to core values: components, edges, executors, state."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from storm_operator.adapters.errors import MalformedDocument, UnknownComponent
from storm_operator.adapters.nimbus.connection import storm_thrift as thrift
from storm_operator.adapters.nimbus.declared_resources import (
    CPU_PERCENT,
    OFF_HEAP,
    ON_HEAP,
    RESOURCES_MAP,
    declared_for_all,
)
from storm_operator.adapters.nimbus.java_stream import class_names
from storm_operator.adapters.nimbus.topology import TopologyReading, topology_from
from storm_operator.adapters.nimbus.values import ExecutorSummary, TopologyInfo, TopologySummary
from storm_operator.adapters.storm_cluster import StormCluster
from storm_operator.core.model import ComponentKind, Edge
from storm_operator.core.topology_spec import StatefulSpec

# Bolts of tests/functional/nimbus/ManyKinds.java as Storm 2.8.3 serializes them.
SERIALIZED = json.loads(Path(__file__).with_name("serialized_bolts.json").read_text(encoding="utf-8"))
STATEFUL = b64decode(SERIALIZED["stateful"])
WINDOWED_FORWARDED = b64decode(SERIALIZED["windowed in a forwarder"])
PLAIN_FORWARDED = b64decode(SERIALIZED["plain in a forwarder"])
SHUFFLE = thrift.Grouping(shuffle=thrift.NullStruct())
Inputs = dict[tuple[str, str], Any]


def common(tasks: int, executors: int, inputs: Inputs | None = None, conf: dict[str, object] | None = None) -> Any:
    subscriptions = {
        thrift.GlobalStreamId(componentId=source, streamId=stream): grouping
        for (source, stream), grouping in (inputs or {}).items()
    }
    return thrift.ComponentCommon(
        inputs=subscriptions, parallelism_hint=executors, json_conf=json.dumps({"topology.tasks": tasks} | (conf or {}))
    )


def spout(tasks: int = 1, executors: int = 1) -> Any:
    return thrift.SpoutSpec(spout_object=thrift.ComponentObject(serialized_java=b""), common=common(tasks, executors))


def bolt(inputs: Inputs, *, tasks: int = 1, executors: int = 1, serialized: bytes = PLAIN_FORWARDED) -> Any:
    return thrift.Bolt(
        bolt_object=thrift.ComponentObject(serialized_java=serialized), common=common(tasks, executors, inputs)
    )


def fields(*names: str) -> Any:
    return thrift.Grouping(fields=list(names))


def words() -> Any:
    """Task ids: __acker 1, __metrics_X 2, count 3-4, lines 5, split 6-8."""
    return thrift.StormTopology(
        spouts={"lines": spout()},
        bolts={
            "split": bolt({("lines", "default"): SHUFFLE}, tasks=3, executors=2),
            "count": bolt({("split", "default"): fields("word")}, tasks=2, executors=2),
            "__acker": bolt({("lines", "__ack_init"): fields("id"), ("split", "__ack_ack"): fields("id")}),
            "__metrics_X": bolt({("__system", "__metrics"): SHUFFLE}),
            "__system": bolt({}, tasks=0, executors=0),
        },
    )


def info(*placed: tuple[str, int, int]) -> TopologyInfo:
    executors = tuple(ExecutorSummary(start, end, name, "h", 6700, 1) for name, start, end in placed)
    return TopologyInfo("words-1-1", "words", "ACTIVE", 1, None, executors, {})


def read(topology: Any, running: TopologyInfo | None = None, spec: StatefulSpec | None = None) -> TopologyReading:
    return topology_from(topology, running or info(), spec or StatefulSpec(), 2)


def finding(topology: Any, component: str, spec: StatefulSpec | None = None) -> tuple[bool, str]:
    found = {each.component: each for each in read(topology, spec=spec).findings}
    return found[component].stateful, found[component].reason


def ranges(reading: TopologyReading, component: str) -> list[tuple[int, int]]:
    return [(each.task_start, each.task_end) for each in reading.topology.executors_of(component)]


def test_every_component_that_the_scheduler_places_is_there_and_no_other() -> None:
    topology = read(words()).topology
    assert [(each.name, each.kind, each.tasks) for each in topology.components] == [
        ("__acker", ComponentKind.ACKER, 1),
        ("__metrics_X", ComponentKind.BOLT, 1),
        ("count", ComponentKind.BOLT, 2),
        ("lines", ComponentKind.SPOUT, 1),
        ("split", ComponentKind.BOLT, 3),
    ]
    assert topology.num_workers == 2


@pytest.mark.parametrize(
    ("conf", "memory_mb", "cpu_millicores"),
    [
        ({}, None, None),
        (
            {"topology.component.resources.onheap.memory.mb": 256.0, "topology.component.cpu.pcore.percent": 30},
            256,
            300,
        ),
        ({"topology.component.resources.offheap.memory.mb": 64}, 64, None),
        ({ON_HEAP[0]: 1e308, "topology.component.resources.offheap.memory.mb": 1e308}, None, None),
        ({ON_HEAP[0]: 1e300, "topology.component.resources.offheap.memory.mb": 64}, 64, None),
        ({"topology.component.resources.map": {"cpu.pcore.percent": 1e308}}, None, None),
        ({"topology.component.resources.map": {"onheap.memory.mb": 100, "offheap.memory.mb": 28}}, 128, None),
        (
            {"topology.component.resources.map": {"cpu.pcore.percent": 5}, "topology.component.cpu.pcore.percent": 7},
            None,
            50,
        ),
        (
            # What Storm 2.8.3 writes for setMemoryLoad(96, 16), but for the same keys beside the map.
            {
                "topology.component.resources.map": {
                    "topology.component.resources.offheap.memory.mb": 16.0,
                    "topology.component.resources.onheap.memory.mb": 96.0,
                }
            },
            112,
            None,
        ),
        ({"topology.component.resources.onheap.memory.mb": "much", "topology.component.resources.map": []}, None, None),
    ],
)
def test_what_a_component_declares_is_read_and_nothing_is_made_up(
    conf: dict[str, object], memory_mb: float | None, cpu_millicores: float | None
) -> None:
    spec = thrift.SpoutSpec(spout_object=thrift.ComponentObject(serialized_java=b""), common=common(1, 1, conf=conf))
    (lines,) = read(thrift.StormTopology(spouts={"lines": spec}, bolts={})).topology.components
    assert (lines.declared_memory_mb, lines.declared_cpu_millicores) == (memory_mb, cpu_millicores)


def test_what_a_topology_declares_for_all_is_that_of_each_component_that_says_nothing_itself() -> None:
    on_heap, off_heap, percent = ON_HEAP[0], OFF_HEAP[0], CPU_PERCENT[0]
    nimbus = {on_heap: 128.0, off_heap: 0.0, percent: 10.0, RESOURCES_MAP: {}}
    own = thrift.SpoutSpec(
        spout_object=thrift.ComponentObject(serialized_java=b""), common=common(1, 1, conf={on_heap: 256.0})
    )
    topology = words()
    topology.spouts["lines"] = own

    def declared(conf: dict[str, object]) -> dict[str, tuple[float | None, float | None]]:
        of_all = declared_for_all(nimbus | conf, nimbus)
        found = topology_from(topology, info(), StatefulSpec(), 2, of_all).topology.components
        return {each.name: (each.declared_memory_mb, each.declared_cpu_millicores) for each in found}

    nothing = {"__acker": (None, None), "__metrics_X": (None, None)}
    of_defaults = {**nothing, "count": (None, None), "lines": (256.0, None), "split": (None, None)}
    assert declared({}) == of_defaults
    assert declared({on_heap: 1024.0, percent: 50.0}) == {
        **nothing,
        "count": (1024.0, 500.0),
        "lines": (256.0, 500.0),
        "split": (1024.0, 500.0),
    }
    assert declared({RESOURCES_MAP: {"offheap.memory.mb": 64.0}})["lines"] == (320.0, None)


@pytest.mark.parametrize(("megabytes", "declared"), [(1024.0, 1024.0), (128.0, None)])
def test_memory_that_is_declared_for_a_whole_topology_is_seen_in_a_view(
    megabytes: float, declared: float | None
) -> None:
    client = Mock()
    client.cluster_info.return_value.topologies = [TopologySummary("words-1-1", "words", "ACTIVE", 1, 1, 1, 1, None)]
    client.system_topology.return_value = words()
    client.topology_info.return_value = info()
    client.nimbus_conf.return_value = {ON_HEAP[0]: 128.0}
    client.topology_conf.return_value = {ON_HEAP[0]: megabytes}
    (seen,) = StormCluster(client, Mock(get=lambda _: None, children=lambda _: [])).read_view({}).topologies
    assert seen.component("split").declared_memory_mb == declared


def test_edges_carry_storms_names_of_groupings_and_leave_the_system_bolt_out() -> None:
    assert read(words()).topology.edges == (
        Edge("lines", "__ack_init", "__acker", "fields"),
        Edge("lines", "default", "split", "shuffle"),
        Edge("split", "__ack_ack", "__acker", "fields"),
        Edge("split", "default", "count", "fields"),
    )


@pytest.mark.parametrize(
    ("grouping", "name"),
    [
        (fields(), "global"),
        (thrift.Grouping(all=thrift.NullStruct()), "all"),
        (thrift.Grouping(none=thrift.NullStruct()), "none"),
        (thrift.Grouping(direct=thrift.NullStruct()), "direct"),
        (thrift.Grouping(local_or_shuffle=thrift.NullStruct()), "local_or_shuffle"),
        (thrift.Grouping(custom_serialized=b"x"), "custom"),
    ],
)
def test_grouping_names(grouping: Any, name: str) -> None:
    topology = thrift.StormTopology(spouts={"a": spout()}, bolts={"b": bolt({("a", "default"): grouping})})
    assert [edge.grouping for edge in read(topology).topology.edges] == [name]


def test_executors_without_a_slot_follow_from_storms_rule() -> None:
    reading = read(words())
    assert ranges(reading, "__acker") == [(1, 1)]
    assert ranges(reading, "count") == [(3, 3), (4, 4)]
    assert ranges(reading, "lines") == [(5, 5)]
    assert ranges(reading, "split") == [(6, 7), (8, 8)]


def test_a_rebalanced_number_of_executors_shows_in_the_placed_ones() -> None:
    assert ranges(read(words(), info(("split", 7, 7))), "split") == [(6, 6), (7, 7), (8, 8)]
    assert ranges(read(words(), info(("split", 6, 8))), "split") == [(6, 8)]


def test_tasks_must_be_a_number() -> None:
    topology = words()
    topology.bolts["split"].common.json_conf = '{"topology.tasks": "many"}'
    with pytest.raises(MalformedDocument, match=r"component split: topology.tasks is 'many'; it must be an integer"):
        read(topology)


def test_class_names_are_found_in_a_serialized_bolt() -> None:
    names = class_names(STATEFUL)
    assert names[0] == "org.apache.storm.topology.StatefulBoltExecutor"
    assert "ManyKinds$Sum" in names


@pytest.mark.parametrize("broken", [b"", b"hello", STATEFUL[4:], STATEFUL[:20], b"\xac\xed\x00\x05" + b"r" * 50])
def test_what_is_no_java_stream_or_is_cut_off_names_nothing(broken: bytes) -> None:
    assert class_names(broken) == ()


def test_stateful_and_windowed_bolts_are_found_by_class() -> None:
    shuffled = {("a", "default"): SHUFFLE}
    topology = thrift.StormTopology(
        spouts={"a": spout()},
        bolts={
            "sum": bolt(shuffled, serialized=STATEFUL),
            "window": bolt(shuffled, serialized=WINDOWED_FORWARDED),
            "plain": bolt(shuffled, serialized=PLAIN_FORWARDED),
        },
    )
    assert finding(topology, "sum") == (True, "a stateful bolt (StatefulBoltExecutor)")
    assert finding(topology, "window") == (True, "a windowed bolt (WindowedBoltExecutor)")
    assert finding(topology, "plain")[0] is False
    assert finding(topology, "a") == (False, "a spout")


def test_fields_grouping_is_a_hint_but_not_on_storms_own_streams() -> None:
    assert finding(words(), "count") == (True, "fields grouping on word of split/default (a hint)")
    assert finding(words(), "__acker") == (False, "Storm's own component")
    assert not read(words()).topology.component("split").stateful


def test_global_grouping_is_no_fields_grouping() -> None:
    topology = thrift.StormTopology(spouts={"a": spout()}, bolts={"b": bolt({("a", "default"): fields()})})
    assert finding(topology, "b")[0] is False


def test_the_users_word_counts_most() -> None:
    spec = StatefulSpec(stateful=("lines",), stateless=("count",))
    assert finding(words(), "count", spec) == (False, "named stateless by the user")
    assert finding(words(), "lines", spec) == (True, "named stateful by the user")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (StatefulSpec(stateful=("cuont",)), "stateful: no component cuont; the topology has count, lines, split"),
        (StatefulSpec(stateful=("count",), stateless=("count",)), "count: named both stateful and stateless"),
    ],
)
def test_wrong_lists_are_refused(spec: StatefulSpec, message: str) -> None:
    with pytest.raises(UnknownComponent, match=message):
        read(words(), spec=spec)

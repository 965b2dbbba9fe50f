"""Snapshots as JSON: nothing lost, nothing wrong accepted, one message for each mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from builders import chain_topology, component_load, even_traffic, history, latency, placed, snapshot, supervisors
from storm_operator.adapters.nimbus.topology import GROUPINGS
from storm_operator.core.distances import Distances
from storm_operator.core.model import (
    Assignment,
    Component,
    ComponentKind,
    Edge,
    Executor,
    ExecutorLoad,
    Supervisor,
    Topology,
    WorkerSlot,
)
from storm_operator.core.network_places import NO_PLACES, NetworkPlaces
from storm_operator.core.snapshot import (
    ClusterSnapshot,
    Completeness,
    ComponentLoad,
    LatencySummary,
    LoadPeriod,
    TopologyRates,
)
from storm_operator.core.snapshot_document import InvalidSnapshot
from storm_operator.core.snapshot_json import dump_snapshot, load_snapshot, snapshot_schema
from storm_operator.core.traffic import TrafficMatrix
from storm_operator.core.view_from_metrics import UNKNOWN_GROUPING
from storm_operator.core.vivaldi import Coordinate
from storm_operator.simulator.model import Grouping

REPOSITORY = Path(__file__).parents[3]
EXAMPLES = sorted((REPOSITORY / "examples" / "snapshots").glob("*.json"))
REFERENCE = REPOSITORY / "docs" / "reference" / "snapshot.md"

EDGE: Mapping[str, Any] = snapshot_schema()["$defs"]["topology"]["properties"]["edges"]["items"]
KNOWN_GROUPINGS: list[str] = EDGE["properties"]["grouping"]["enum"]

K = TypeVar("K")
V = TypeVar("V")

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=8)
amounts = st.floats(0.0, 1e12)
coordinates = st.builds(Coordinate, st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), amounts, amounts)
places = st.just(NO_PLACES) | st.builds(
    NetworkPlaces, st.dictionaries(names, coordinates, min_size=1, max_size=3), amounts
)
maybe = st.none() | amounts
ports = st.integers(1, 65535)


@st.composite
def topologies(draw: st.DrawFn, topology_id: str) -> Topology:
    sizes = draw(st.dictionaries(names, st.lists(st.integers(1, 3), max_size=3), min_size=1, max_size=3))
    components, executors, task = [], [], 1
    for name, tasks in sizes.items():
        kind = draw(st.sampled_from(ComponentKind))
        components.append(Component(name, kind, sum(tasks), draw(st.booleans()), draw(maybe), draw(maybe)))
        for count in tasks:
            executors.append(Executor(topology_id, task, task + count - 1, name))
            task += count
    some = st.sampled_from(sorted(sizes))
    edges = draw(st.lists(st.builds(Edge, some, names, some, st.sampled_from(KNOWN_GROUPINGS)), max_size=3))
    return Topology(
        topology_id, draw(names), tuple(components), tuple(edges), tuple(executors), draw(st.integers(0, 9))
    )


def mappings(keys: Sequence[K], values: st.SearchStrategy[V]) -> st.SearchStrategy[dict[K, V]]:
    """Some of `keys`, which may be empty, each with a value."""
    return st.dictionaries(st.sampled_from(keys), values, max_size=4) if keys else st.just({})


latencies = st.builds(LatencySummary, amounts, amounts, amounts, amounts)
periods = st.builds(
    LoadPeriod,
    amounts,
    st.floats(0.1, 100.0),
    st.dictionaries(st.tuples(names, names), st.builds(ComponentLoad, *[amounts] * 5), max_size=3),
    st.dictionaries(names, amounts, max_size=2),
)


def ended_at(period: LoadPeriod) -> float:
    return period.ended_at_seconds


@st.composite
def snapshots(draw: st.DrawFn) -> ClusterSnapshot:
    running = tuple(draw(topologies(name)) for name in draw(st.sets(names, max_size=2)))
    executors = [executor for topology in running for executor in topology.executors]
    pairs = [(a, b) for a in executors for b in executors if a.topology_id == b.topology_id]
    slots = st.builds(WorkerSlot, names, ports)
    machines = draw(st.lists(names, unique=True, max_size=3))
    return ClusterSnapshot(
        taken_at_seconds=draw(amounts),
        period_seconds=draw(st.floats(0.1, 100.0)),
        supervisors=tuple(
            Supervisor(
                id=name,
                host=draw(names),
                ports=tuple(draw(st.lists(ports, unique=True, max_size=3))),
                cpu_capacity_millicores=draw(maybe),
                availability=draw(st.floats(0, 1)),
                memory_mb=draw(maybe),
            )
            for name in machines
        ),
        topologies=running,
        assignment=Assignment(draw(mappings(executors, slots))),
        loads=draw(mappings(executors, st.builds(ExecutorLoad, *[maybe] * 6))),
        traffic=TrafficMatrix(
            draw(mappings(pairs, st.floats(1e-6, 1e9))),
            executors,
        ),
        distances=Distances(
            draw(st.dictionaries(st.tuples(names, names), amounts, max_size=3)),
            draw(amounts),
            draw(amounts),
            places=draw(places),
        ),
        completeness=Completeness(
            draw(st.integers(0, 99)),
            tuple(draw(mappings(executors, st.none()))),
            draw(amounts),
            tuple(draw(st.lists(st.text(max_size=9), max_size=2))),
            draw(st.dictionaries(names, amounts, max_size=2)),
        ),
        supervisor_cpu_millicores=draw(st.dictionaries(names, amounts, max_size=2)),
        rates={
            topology.id: draw(st.builds(TopologyRates, maybe, maybe, st.none() | latencies))
            for topology in running
            if draw(st.booleans())
        },
        worker_pids=draw(st.dictionaries(slots, st.integers(1, 2**22), max_size=2)),
        history=tuple(sorted(draw(st.lists(periods, unique_by=ended_at, max_size=2)), key=ended_at)),
    )


def assert_same(one: ClusterSnapshot, other: ClusterSnapshot) -> None:
    for field in fields(ClusterSnapshot):
        if field.name != "traffic":
            assert getattr(one, field.name) == getattr(other, field.name), field.name
    assert one.traffic.executors == other.traffic.executors
    assert list(one.traffic.pairs()) == list(other.traffic.pairs())


def small() -> ClusterSnapshot:
    words = chain_topology("words", ("spout", 1), ("split", 2), ("count", 2), stateful=("count",))
    return snapshot(
        (words,),
        supervisors(2),
        placed(words, {"spout": "s1", "split": "s1", "count": "s2"}),
        rates=even_traffic(words, 300.0),
        loads={words.executors[0]: ExecutorLoad(100.0, 300.0, 300.0, 300.0, 0.0, -1.5)},
        periods=history("words", {"spout": [component_load(300.0)]}),
        topology_rates={"words": latency(2.0)},
        missing=(words.executors[1],),
    )


@pytest.mark.slow
@given(snapshots())
def test_nothing_is_lost(original: ClusterSnapshot) -> None:
    text = dump_snapshot(original)
    assert_same(load_snapshot(text), original)
    assert dump_snapshot(load_snapshot(text)) == text


def test_what_was_written_before_there_was_memory_is_read() -> None:
    document = json.loads(dump_snapshot(small()))
    for supervisor in document["supervisors"]:
        del supervisor["memory_mb"]
    for component in document["topologies"][0]["components"]:
        del component["declared_memory_mb"], component["declared_cpu_millicores"]
    assert_same(load_snapshot(json.dumps(document)), small())


def test_nan_cannot_be_written() -> None:
    words = chain_topology("words", ("spout", 1))
    broken = snapshot((words,), supervisors(1), loads={words.executors[0]: ExecutorLoad(cpu_millicores=float("nan"))})
    with pytest.raises(ValueError, match="JSON compliant"):
        dump_snapshot(broken)


def test_executor_of_no_topology_cannot_be_written() -> None:
    stranger = Executor("gone", 1, 1, "spout")
    with pytest.raises(ValueError, match="no topology of the snapshot has the executor"):
        dump_snapshot(snapshot((), supervisors(1), {stranger: WorkerSlot("s1", 6700)}))


def at(document: Any, path: str) -> tuple[Any, Any]:
    """The container and the last key of a path like `topologies.0.id`."""
    *steps, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
    for step in steps:
        document = document[step]
    return document, last


def with_value(path: str, value: object) -> str:
    document = json.loads(dump_snapshot(small()))
    container, key = at(document, path)
    container[key] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("version", 2, "version is 2: expected 1"),
        ("version", True, "version is true: expected 1"),
        ("supervisors.1.availability", 1.5, "supervisors[1].availability is 1.5: expected 1 or less"),
        ("supervisors.0.ports", [70000], "supervisors[0].ports[0] is 70000: expected 65535 or less"),
        ("supervisors.0.cpu_capacity_millicores", "2", '.cpu_capacity_millicores is "2": expected a number or null'),
        ("supervisors.1.id", "s1", "supervisors has 's1' twice"),
        ("supervisors.0.ports", [6700, 6701, 6700], "supervisors[0].ports has 6700 twice: expected each once"),
        ("period_seconds", 0, "period_seconds is 0: expected more than 0"),
        ("topologies.0.executors.0.load.cpu_millicores", -5, ".load.cpu_millicores is -5: expected 0 or more"),
        ("topologies.0.executors.0.tasks", [1], "tasks is [1]: expected 2 entries"),
        ("topologies.0.executors.2.tasks", [4, 3], "executors[2].tasks is [4, 3]: expected the first task before"),
        ("topologies.0.executors.2.tasks", [2, 3], "executors has task 2 twice"),
        ("topologies.0.executors.0.tasks", [0, 10**15], "executors has task 2 twice"),
        ("topologies.0.executors.0.component", "nobody", "executors[0].component is 'nobody': expected a component"),
        ("topologies.0.components.0.kind", "operator", 'is "operator": expected one of "spout", "bolt", "acker"'),
        ("topologies.0.components.1.name", "spout", "topologies[0].components has 'spout' twice"),
        ("topologies.0.edges.0.target", "nobody", "edges[0].target is 'nobody': expected a component"),
        ("topologies.0.edges.0.grouping", "shufle", '.grouping is "shufle": expected one of "shuffle", "local'),
        ("topologies.0.traffic.0.source", [9, 9], "traffic[0].source is [9, 9]: expected the tasks of an executor"),
        ("topologies.0.traffic.1", {"source": [1, 1], "target": [2, 2], "tuples_per_second": 1}, "is there twice"),
        ("topologies.0.name", "", 'topologies[0].name is "": expected a text that is not empty'),
        ("completeness.missing_executors.0.tasks", [7, 7], "completeness.missing_executors[0].tasks is [7, 7]"),
        ("history.0.components.0.cpu_millicores", None, "is null: expected a number"),
        ("topologies", {}, "topologies is {}: expected a list"),
        ("colour", "blue", "the document has the unknown field 'colour': expected only version"),
    ],
)
def test_each_mistake_has_one_message_with_field_value_and_what_would_be_right(
    path: str, value: object, message: str
) -> None:
    with pytest.raises(InvalidSnapshot, match=re.escape(message)) as caught:
        load_snapshot(with_value(path, value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("slot", [{"supervisor_id": "died", "port": 6700}, {"supervisor_id": "s1", "port": 1}])
def test_an_executor_may_be_where_there_is_no_supervisor_or_port_any_more(slot: dict[str, Any]) -> None:
    read = load_snapshot(with_value("topologies.0.executors.0.slot", slot))
    assert read.assignment.slot_of[read.topologies[0].executors[0]] == WorkerSlot(**slot)


def test_every_grouping_that_edges_are_given_can_be_read() -> None:
    given = {"custom" if name.startswith("custom") else name for name in GROUPINGS} | {"global", UNKNOWN_GROUPING}
    assert set(KNOWN_GROUPINGS) == given | set(Grouping)


@pytest.mark.parametrize("ended_at", [900.0, 890.0])
def test_periods_that_do_not_end_one_after_the_other_are_told(ended_at: float) -> None:
    document = json.loads(dump_snapshot(small()))
    (period,) = document["history"]
    document["history"] = [{**period, "ended_at_seconds": at} for at in (880.0, 900.0, ended_at)]
    words = f"history[2].ended_at_seconds is {ended_at}: expected more than 900.0, that of history[1]"
    with pytest.raises(InvalidSnapshot, match=re.escape(words)):
        load_snapshot(json.dumps(document))


def test_missing_field_is_named() -> None:
    document = json.loads(dump_snapshot(small()))
    del document["topologies"][0]["executors"][0]["load"]["queue_length"]
    with pytest.raises(InvalidSnapshot, match=r"executors\[0\].load lacks the field 'queue_length'"):
        load_snapshot(json.dumps(document))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: not JSON"),
        ("{", "line 1, column 2: not JSON"),
        ("[1]", "expected an object with a version"),
        ("{}", "version is null: expected 1"),
        ('{"version": 1, "period_seconds": NaN}', "contains NaN: expected finite numbers"),
        ('{"version": 1, "period_seconds": 1e999}', "contains 1e999: expected finite numbers"),
        ('{"version": 1, "period_seconds": -1' + "0" * 5000 + "}", "00...: expected up to 1e+15"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_snapshot_at_all(text: str, message: str) -> None:
    with pytest.raises(InvalidSnapshot, match=re.escape(message)):
        load_snapshot(text)


def test_a_number_too_large_to_be_reckoned_with_is_named() -> None:
    document = json.loads(dump_snapshot(small()))
    document["topologies"][0]["executors"][0]["load"]["cpu_millicores"] = 1e308
    words = r"^topologies\[0\].executors\[0\].load.cpu_millicores is 1e\+308: expected a number up to 1e\+15"
    with pytest.raises(InvalidSnapshot, match=words):
        load_snapshot(json.dumps(document))


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(InvalidSnapshot) as caught:
        load_snapshot(with_value("taken_at_seconds", "x" * 10_000))
    assert len(str(caught.value)) < 200


def test_schema_is_a_valid_schema_and_closed_everywhere() -> None:
    schema = snapshot_schema()
    Draft202012Validator.check_schema(schema)
    objects = [schema, *(entry for entry in schema["$defs"].values() if "properties" in entry)]
    assert len(objects) > 5
    for entry in objects:
        assert entry["additionalProperties"] is False
        assert set(entry["required"]) == set(entry["properties"]) - OPTIONAL


OPTIONAL = {"memory_mb", "worker_hop_ms", "topology_age_seconds", "silent_supervisors", "places"}

PINNED: Mapping[str, tuple[type, set[str]]] = {
    "supervisor": (Supervisor, set()),
    "load_period": (LoadPeriod, set()),
    "completeness": (Completeness, set()),
    "rates": (TopologyRates, set()),
    "topology": (Topology, {"traffic", "rates"}),
}


@pytest.mark.parametrize("name", sorted(PINNED))
def test_schema_has_the_fields_of_the_code(name: str) -> None:
    kind, more = PINNED[name]
    assert set(snapshot_schema()["$defs"][name]["properties"]) == {field.name for field in fields(kind)} | more


def test_schema_has_the_fields_of_loads() -> None:
    load = snapshot_schema()["$defs"]["executor"]["properties"]["load"]["properties"]
    assert set(load) == {field.name for field in fields(ExecutorLoad)}
    component = snapshot_schema()["$defs"]["load_period"]["properties"]["components"]["items"]["properties"]
    assert set(component) == {field.name for field in fields(ComponentLoad)} | {"topology_id", "component"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_valid(path: Path) -> None:
    assert load_snapshot(path.read_text(encoding="utf-8")).completeness.ratio == 1.0


def test_there_is_an_example() -> None:
    assert EXAMPLES


def documented(find: Callable[[str], list[str]]) -> list[str]:
    return find(REFERENCE.read_text(encoding="utf-8"))


def test_example_in_the_reference_is_valid() -> None:
    blocks = documented(lambda text: re.findall(r"```json\n(.*?)```", text, re.DOTALL))
    assert blocks
    for block in blocks:
        load_snapshot(block)


def test_reference_names_every_field_of_the_schema() -> None:
    """And no others: each row of its tables begins with a field in backquotes."""
    rows = documented(lambda text: re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))
    assert sorted(rows) == sorted(field_paths(snapshot_schema()))


def field_paths(schema: Mapping[str, Any]) -> set[str]:
    """`topologies[].executors[].tasks` and the like, for every field that the schema has."""
    return set(_paths(schema, schema["$defs"], ""))


def _paths(entry: Mapping[str, Any], definitions: Mapping[str, Any], prefix: str) -> list[str]:
    if "$ref" in entry:
        return _paths(definitions[entry["$ref"].rpartition("/")[2]], definitions, prefix)
    if "items" in entry:
        return _paths(entry["items"], definitions, f"{prefix}[]")
    found = []
    for name, part in entry.get("properties", {}).items():
        path = f"{prefix}.{name}".removeprefix(".")
        found += [path, *_paths(part, definitions, path)]
    return found

"""A running topology as `core.model.Topology`, read from Nimbus."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from storm_operator.adapters.errors import MalformedDocument
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.nimbus.declared_resources import NOTHING_DECLARED, declared_for_all, declared_resources
from storm_operator.adapters.nimbus.executors import ComponentSize, executor_ranges
from storm_operator.adapters.nimbus.stateful import StatefulFinding, find_stateful
from storm_operator.adapters.nimbus.values import TopologyInfo
from storm_operator.core.model import ACKER_COMPONENT, Component, ComponentKind, Edge, Executor, Topology, read_only
from storm_operator.core.topology_spec import StatefulSpec

GROUPINGS = (
    "fields",
    "shuffle",
    "all",
    "none",
    "direct",
    "custom_object",
    "custom_serialized",
    "local_or_shuffle",
)
METRICS_CONSUMERS = "__metrics"
TASKS_KEY = "topology.tasks"
WORKERS_KEY = "topology.workers"
SUBMITTED_COUNTS: Mapping[str, int] = read_only({})


@dataclass(frozen=True, slots=True)
class TopologyReading:
    """A topology, and for each of its components whether it holds state and why."""

    topology: Topology
    findings: tuple[StatefulFinding, ...]


def read_topology_with_findings(
    client: NimbusClient, topology_id: str, stateful: StatefulSpec | None = None
) -> TopologyReading:
    """The topology with every component and executor that the scheduler places: ackers and metrics consumers too.

    Raises TopologyNotAlive, UnknownComponent (in `stateful`), or whatever keeps Nimbus from answering.
    """
    storm_topology = client.system_topology(topology_id)
    conf = client.topology_conf(topology_id)
    workers = conf.get(WORKERS_KEY)
    return topology_from(
        storm_topology,
        client.topology_info(topology_id),
        stateful or StatefulSpec(),
        workers if isinstance(workers, int) else 1,
        declared_for_all(conf, client.nimbus_conf()),
    )


def number_of_tasks(storm_topology: Any) -> int:
    """Of all its components; MalformedDocument where the conf of one cannot be read."""
    return sum(size.tasks for size in _sizes(storm_topology).values())


def is_placed_wholly(tasks: int, info: TopologyInfo) -> bool:
    """Whether the placed executors tell of each of that many tasks whose it is."""
    return sum(executor.task_end - executor.task_start + 1 for executor in info.executors) >= tasks


def topology_from(
    storm_topology: Any,
    info: TopologyInfo,
    stateful: StatefulSpec,
    num_workers: int,
    of_all: Mapping[str, Any] = NOTHING_DECLARED,
    counts: Mapping[str, int] = SUBMITTED_COUNTS,
) -> TopologyReading:
    """Pure: Thrift's StormTopology (with system components) and the placed executors as one value.

    `of_all` is what its conf declares for each component (`declared_for_all`). `counts` are the numbers of executors
    that components were given last; for one that it does not name that is the submitted one.
    """
    sizes = {
        name: replace(size, executors=counts.get(name, size.executors)) for name, size in _sizes(storm_topology).items()
    }
    findings = tuple(each for each in find_stateful(storm_topology, stateful) if each.component in sizes)
    holds_state = {each.component: each.stateful for each in findings}
    commons = _components(storm_topology)
    placed: dict[str, list[tuple[int, int]]] = {}
    for executor in info.executors:
        placed.setdefault(executor.component, []).append((executor.task_start, executor.task_end))
    topology = Topology(
        id=info.id,
        name=info.name,
        components=tuple(
            Component(
                name,
                _kind(storm_topology, name),
                size.tasks,
                holds_state[name],
                **declared_resources(_conf(name, commons[name]), _without_own_settings(name, of_all)),
            )
            for name, size in sorted(sizes.items())
        ),
        edges=tuple(sorted(_edges(storm_topology, sizes))),
        executors=tuple(
            sorted(
                Executor(info.id, start, end, name)
                for name, ranges in executor_ranges(sizes, placed).items()
                for start, end in ranges
            )
        ),
        num_workers=num_workers,
    )
    return TopologyReading(topology, findings)


def _components(storm_topology: Any) -> dict[str, Any]:
    parts = {**storm_topology.spouts, **storm_topology.bolts}
    return {name: part.common for name, part in parts.items()}


def _sizes(storm_topology: Any) -> dict[str, ComponentSize]:
    """Components that have tasks: `__system`, which lives in every worker by itself, has none."""
    sizes = {}
    for name, common in _components(storm_topology).items():
        hint = common.parallelism_hint if common.parallelism_hint is not None else 1
        tasks = _conf(name, common).get(TASKS_KEY, hint)
        if not isinstance(tasks, int):
            raise MalformedDocument(f"component {name}: {TASKS_KEY} is {tasks!r}; it must be an integer")
        if tasks > 0:
            sizes[name] = ComponentSize(tasks, hint)
    return sizes


def _conf(name: str, common: Any) -> Mapping[str, Any]:
    try:
        conf = json.loads(common.json_conf or "{}")
    except (ValueError, RecursionError) as error:
        raise MalformedDocument(f"component {name}: json_conf is not JSON: {error}") from error
    return conf if isinstance(conf, dict) else {}


def _without_own_settings(name: str, of_all: Mapping[str, Any]) -> Mapping[str, Any]:
    """Ackers and metrics consumers: Storm has settings of their own for them, with defaults, which go before it."""
    has_own = name == ACKER_COMPONENT or name.startswith(METRICS_CONSUMERS)
    return NOTHING_DECLARED if has_own else of_all


def _kind(storm_topology: Any, name: str) -> ComponentKind:
    if name == ACKER_COMPONENT:
        return ComponentKind.ACKER
    return ComponentKind.SPOUT if name in storm_topology.spouts else ComponentKind.BOLT


def _edges(storm_topology: Any, sizes: Mapping[str, ComponentSize]) -> Iterator[Edge]:
    for target, common in _components(storm_topology).items():
        for stream, grouping in common.inputs.items():
            if target in sizes and stream.componentId in sizes:
                yield Edge(stream.componentId, stream.streamId, target, grouping_name(grouping))


def grouping_name(grouping: Any) -> str:
    """Storm's name of a Thrift grouping; `global` is what Thrift writes as a fields grouping without fields."""
    for name in GROUPINGS:
        if getattr(grouping, name) is not None:
            if name == "fields" and not grouping.fields:
                return "global"
            return "custom" if name.startswith("custom") else name
    return "none"

"""What agents' metrics alone tell of a cluster: who ran where. For the past, of which nobody can ask Nimbus any more.

Less than Nimbus knows: supervisors go by their host, groupings are unknown, as are slots that nobody uses and who has
state, and an executor that no agent has seen does not exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from storm_operator.core.history_tables import EXECUTORS, SUPERVISORS, Table
from storm_operator.core.metrics_window import MetricsWindow, SeriesKey, SeriesWindow
from storm_operator.core.model import (
    ACKER_COMPONENT,
    Assignment,
    Component,
    ComponentKind,
    Edge,
    Executor,
    Supervisor,
    Topology,
    WorkerSlot,
    in_order,
    name_of_topology,
)
from storm_operator.core.snapshot_builder import CAPACITY, ClusterView
from storm_operator.core.traffic_observation import RECEIVED
from storm_operator.core.window_readings import EXECUTED

UNKNOWN_GROUPING = "unknown"
UNKNOWN_COLUMNS: Mapping[Table, tuple[str, ...]] = {SUPERVISORS: ("slots", "availability"), EXECUTORS: ("stateful",)}
"""What a view has of these is made up: a slot that nobody uses has no series, and state none at all."""
SYSTEM = "__"
"""Begins the names of Storm's own streams and components."""


def view_from_metrics(window: MetricsWindow, unseen: Iterable[Executor] = ()) -> ClusterView:
    """The cluster as the series of `window` show it; an executor that moved is where it was seen last.

    `unseen` are executors that were there although they may have no series: nobody knows where. They count with others
    of their components, whose sums would lack them; of a component without any nothing is known, not even its kind.
    One whose tasks others have by now is not there.
    """
    slot_of = _placed(window)
    there = in_order({*slot_of, *_unseen_beside(slot_of, unseen)})
    hosts = {key.label("supervisor") for key, _ in window.named(CAPACITY)} | {
        slot.supervisor_id for slot in slot_of.values()
    }
    ports: dict[str, set[int]] = {host: set() for host in hosts}
    for slot in slot_of.values():
        ports[slot.supervisor_id].add(slot.port)
    topologies = [
        _topology(topology_id, [e for e in there if e.topology_id == topology_id], slot_of, window)
        for topology_id in sorted({executor.topology_id for executor in there})
    ]
    supervisors = tuple(Supervisor(host, host, tuple(sorted(ports[host]))) for host in sorted(hosts))
    return ClusterView(supervisors, tuple(topologies), Assignment(slot_of))


def _unseen_beside(seen: Collection[Executor], unseen: Iterable[Executor]) -> Iterator[Executor]:
    components = {(one.topology_id, one.component) for one in seen}
    taken = {(one.topology_id, task) for one in seen for task in one.tasks}
    for one in in_order(unseen):
        own = {(one.topology_id, task) for task in one.tasks}
        if (one.topology_id, one.component) in components and taken.isdisjoint(own):
            taken |= own
            yield one


def _placed(window: MetricsWindow) -> Mapping[Executor, WorkerSlot]:
    newest: dict[Executor, tuple[float, WorkerSlot]] = {}
    for key, series in window.named(EXECUTED):
        executor, slot = executor_of(key), _slot(key)
        if executor is not None and slot is not None:
            seen = (series.last.timestamp_seconds, slot)
            newest[executor] = max(newest.get(executor, seen), seen)
    return {executor: newest[executor][1] for executor in in_order(newest)}


def executor_of(key: SeriesKey) -> Executor | None:
    """The executor that a series is of, by its labels; None where they do not name one."""
    tasks = key.executor_tasks()
    if tasks is None or not key.label("component"):
        return None
    return Executor(key.label("topology_id"), *tasks, key.label("component"))


def _slot(key: SeriesKey) -> WorkerSlot | None:
    port = key.whole("port")
    return None if port is None else WorkerSlot(key.label("supervisor"), port)


def _topology(
    topology_id: str, executors: list[Executor], slot_of: Mapping[Executor, WorkerSlot], window: MetricsWindow
) -> Topology:
    component_of = {str(task): executor.component for executor in executors for task in executor.tasks}
    received = [key for key, series in window.named(RECEIVED) if _counts(key, series, topology_id, component_of)]
    sources = {*component_of.values(), ACKER_COMPONENT}
    edges = sorted(
        {
            Edge(source, key.label("stream"), component_of[key.label("task")], UNKNOWN_GROUPING)
            for key in received
            if (source := key.label("source_component")) in sources
        }
    )
    # Whoever receives is no spout, be its sources seen or not.
    receivers = {component_of[key.label("task")] for key in received if not key.label("stream").startswith(SYSTEM)}
    tasks: dict[str, int] = {}
    for executor in executors:
        tasks[executor.component] = tasks.get(executor.component, 0) + len(executor.tasks)
    components = tuple(Component(name, _kind(name, receivers), count) for name, count in sorted(tasks.items()))
    workers = len({slot_of[executor] for executor in executors if executor in slot_of})
    return Topology(topology_id, name_of_topology(topology_id), components, tuple(edges), tuple(executors), workers)


def _counts(key: SeriesKey, series: SeriesWindow, topology_id: str, component_of: Mapping[str, str]) -> bool:
    """Whether the task is one of the topology's, and has ever received anything from there."""
    is_own = key.label("topology_id") == topology_id and key.label("task") in component_of
    return is_own and series.last.value > 0.0


def _kind(component: str, receivers: set[str]) -> ComponentKind:
    if component == ACKER_COMPONENT:
        return ComponentKind.ACKER
    return ComponentKind.BOLT if component in receivers else ComponentKind.SPOUT

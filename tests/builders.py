"""Small snapshots for tests, with sensible defaults: supervisors `s1..sn`, ports from 6700, topologies as chains.

machines = supervisors(2, capacity=1000)
words = chain_topology("words", ("spout", 1), ("split", 2), ("count", 2), stateful=("count",))
picture = snapshot((words,), machines, placed(words, {"spout": "s1:6700", "split": "s1:6700", "count": "s2:6700"}))
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from storm_operator.core.cpu_demand import Demand
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
from storm_operator.core.network_paths import network_paths_ms
from storm_operator.core.placed_traffic import place_traffic
from storm_operator.core.settings import PlacementSettings, SchedulingSettings
from storm_operator.core.snapshot import (
    ClusterSnapshot,
    Completeness,
    ComponentLoad,
    LatencySummary,
    LoadPeriod,
    TopologyRates,
)
from storm_operator.core.traffic import TrafficMatrix

FIRST_PORT = 6700
NOW_SECONDS = 1000.0
PERIOD_SECONDS = 10.0


def supervisors(count: int, capacity: float | None = 1000.0, slots: int = 4) -> tuple[Supervisor, ...]:
    """`s1..s<count>`, each with `slots` ports from 6700 and `capacity` millicores."""
    ports = tuple(range(FIRST_PORT, FIRST_PORT + slots))
    return tuple(Supervisor(f"s{n}", f"10.77.0.{10 + n}", ports, capacity) for n in range(1, count + 1))


def slot(text: str) -> WorkerSlot:
    """`"s1:6701"`, or `"s1"` for its first port."""
    supervisor_id, _, port = text.partition(":")
    return WorkerSlot(supervisor_id, int(port or FIRST_PORT))


def chain_topology(
    topology_id: str,
    *steps: tuple[str, int],
    stateful: Sequence[str] = (),
    num_workers: int = 1,
    tasks_per_executor: int = 1,
) -> Topology:
    """A chain of (component, executors), the first being the spout; stateful components get fields grouping."""
    names = [name for name, _ in steps]
    edges = [
        Edge(source, "default", target, "fields" if target in stateful else "shuffle")
        for source, target in itertools.pairwise(names)
    ]
    return graph_topology(
        topology_id,
        dict(steps),
        edges,
        stateful=stateful,
        num_workers=num_workers,
        tasks_per_executor=tasks_per_executor,
    )


def graph_topology(
    topology_id: str,
    parallelism: Mapping[str, int],
    edges: Iterable[Edge],
    stateful: Sequence[str] = (),
    num_workers: int = 1,
    tasks_per_executor: int = 1,
) -> Topology:
    """Any component graph; components without a parent are spouts. Task ids go up in the order of `parallelism`."""
    edges = tuple(edges)
    fed = {edge.target for edge in edges}
    components = []
    executors = []
    next_task = 1
    for name, count in parallelism.items():
        kind = ComponentKind.BOLT if name in fed else ComponentKind.SPOUT
        components.append(Component(name, kind, count * tasks_per_executor, stateful=name in stateful))
        for _ in range(count):
            executors.append(Executor(topology_id, next_task, next_task + tasks_per_executor - 1, name))
            next_task += tasks_per_executor
    return Topology(topology_id, topology_id, tuple(components), edges, tuple(sorted(executors)), num_workers)


def placed(topology: Topology, where: Mapping[str, str | Sequence[str]]) -> dict[Executor, WorkerSlot]:
    """Slots by component: one slot for all its executors, or a sequence that is dealt out in turn."""
    slot_of = {}
    for component, places in where.items():
        names = [places] if isinstance(places, str) else list(places)
        for at, executor in enumerate(topology.executors_of(component)):
            slot_of[executor] = slot(names[at % len(names)])
    return slot_of


def even_traffic(topology: Topology, per_second: float) -> dict[tuple[Executor, Executor], float]:
    """`per_second` over every edge, spread evenly over its pairs of executors."""
    rates: dict[tuple[Executor, Executor], float] = {}
    for edge in topology.edges:
        sources, targets = topology.executors_of(edge.source), topology.executors_of(edge.target)
        for source in sources:
            for target in targets:
                share = per_second / (len(sources) * len(targets))
                rates[source, target] = rates.get((source, target), 0.0) + share
    return rates


def same_demand(topologies: Iterable[Topology], millicores: float = 200.0, **by_component: float) -> Demand:
    """`millicores` for every executor, or what `by_component` says for those of a component."""
    each = {
        executor: by_component.get(executor.component, millicores)
        for topology in topologies
        for executor in topology.executors
    }
    return Demand(each, each)


def component_load(
    arrived: float,
    cpu: float = 100.0,
    *,
    executed: float | None = None,
    emitted: float | None = None,
    growth: float = 0.0,
) -> ComponentLoad:
    """A component that executes what arrives and emits one tuple for each, unless told otherwise."""
    done = arrived if executed is None else executed
    return ComponentLoad(arrived, done, done if emitted is None else emitted, growth, cpu)


def history(topology_id: str, loads: Mapping[str, Sequence[ComponentLoad]]) -> tuple[LoadPeriod, ...]:
    """One period for each position of the sequences (all of one length), oldest first, the last ending now."""
    length = max((len(series) for series in loads.values()), default=0)
    return tuple(
        LoadPeriod(
            NOW_SECONDS - (length - 1 - at) * PERIOD_SECONDS,
            PERIOD_SECONDS,
            {(topology_id, component): series[at] for component, series in loads.items()},
            {},
        )
        for at in range(length)
    )


def latency(mean_ms: float, count: float = 1000.0) -> TopologyRates:
    """Rates of a topology whose complete latency is `mean_ms`."""
    return TopologyRates(count / PERIOD_SECONDS, 0.0, LatencySummary(mean_ms, mean_ms, 2 * mean_ms, count))


def snapshot(
    topologies: Sequence[Topology],
    machines: Sequence[Supervisor],
    slot_of: Mapping[Executor, WorkerSlot] | None = None,
    *,
    rates: Mapping[tuple[Executor, Executor], float] | None = None,
    round_trip_ms: float = 4.0,
    worker_hop_ms: float = 0.0,
    loads: Mapping[Executor, ExecutorLoad] | None = None,
    periods: tuple[LoadPeriod, ...] = (),
    topology_rates: Mapping[str, TopologyRates] | None = None,
    missing: tuple[Executor, ...] = (),
    problems: tuple[str, ...] = (),
    age_seconds: float = 0.0,
    supervisor_cpu: Mapping[str, float] | None = None,
) -> ClusterSnapshot:
    """A complete, fresh picture: nothing placed, nobody talking, every pair of supervisors `round_trip_ms` apart.

    Leaving a worker costs nothing beside the network unless told otherwise, so that sums can be done in the head.
    """
    assignment = Assignment(slot_of or {})
    executors = [executor for topology in topologies for executor in topology.executors]
    return ClusterSnapshot(
        taken_at_seconds=NOW_SECONDS,
        period_seconds=PERIOD_SECONDS,
        supervisors=tuple(machines),
        topologies=tuple(topologies),
        assignment=assignment,
        loads=loads or {},
        traffic=TrafficMatrix(rates or {}, executors),
        distances=Distances(
            {(a.id, b.id): round_trip_ms for a in machines for b in machines if a != b},
            default_ms=round_trip_ms,
            worker_hop_ms=worker_hop_ms,
        ),
        completeness=Completeness(len(assignment.slot_of), missing, age_seconds, problems),
        supervisor_cpu_millicores=supervisor_cpu or {},
        rates=topology_rates or {},
        history=periods,
    )


def placement_settings(
    topologies: Iterable[Topology], *, restart_seconds: float = 8.0, scheduling: SchedulingSettings | None = None
) -> PlacementSettings:
    """Settings under which every one of `topologies` may be moved."""
    return PlacementSettings(
        scheduling=scheduling or SchedulingSettings(minimum_periods=1),
        movable=frozenset(topology.id for topology in topologies),
        restart_seconds=restart_seconds,
    )


def network_path_ms(picture: ClusterSnapshot, topology: Topology, assignment: Assignment) -> float:
    """The network's part of the complete latency of one topology under `assignment`."""
    placed_traffic = place_traffic(picture.traffic, picture.distances, assignment)
    between_workers_ms = picture.distances.between_workers_ms
    return network_paths_ms([topology], picture.traffic, placed_traffic, between_workers_ms)[topology.id]

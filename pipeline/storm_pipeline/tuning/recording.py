"""Recorded history as something to replay: topologies with their measured costs, supervisors, the load of spouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from storm_operator.core.distances import Distances
from storm_operator.core.model import ComponentKind
from storm_operator.simulator.load import Recorded
from storm_operator.simulator.model import (
    ClusterModel,
    Costs,
    Grouping,
    SimulatedComponent,
    SimulatedEdge,
    SimulatedSupervisor,
    SimulatedTopology,
)

FIRST_PORT = 6700
USUAL_CAPACITY_MILLICORES = 1000.0
USUAL_ROUND_TRIP_MS = 1.0
COSTS = Costs(emit_cpu_ms=0.0)
"""Of Storm itself in a replay: what a tuple was measured to cost has what it costs to emit others in it."""


@dataclass(frozen=True, slots=True)
class RecordedMachine:
    """A supervisor that was there at the end."""

    id: str
    slots: int
    capacity_millicores: float | None


@dataclass(frozen=True, slots=True)
class RecordedComponent:
    """A component: `load` is (seconds since the beginning, tuples per second) of a spout, empty for others.

    `cpu_ms` is what a tuple costs, without what its executors need when idle.
    """

    name: str
    kind: str
    executors: int
    stateful: bool
    cpu_ms: float
    load: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedEdge:
    """Who sends to whom, and how many tuples for each one executed, every copy of one sent to `all` counted."""

    source: str
    stream: str
    target: str
    grouping: str
    tuples_per_tuple: float


@dataclass(frozen=True, slots=True)
class RecordedTopology:
    """One topology and how it behaved."""

    id: str
    name: str
    num_workers: int
    ackers: int
    components: tuple[RecordedComponent, ...]
    edges: tuple[RecordedEdge, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """A stretch of a cluster's history. Plain values only: it travels to Spark's executors.

    `ended_at_seconds` is when its newest period ended, since 1970; `assumed` says in sentences what was not recorded.
    """

    cluster: str
    seconds: float
    period_seconds: float
    round_trip_ms: float
    machines: tuple[RecordedMachine, ...]
    topologies: tuple[RecordedTopology, ...]
    ended_at_seconds: float
    assumed: tuple[str, ...] = ()

    def model(self) -> ClusterModel:
        """The cluster for the simulator; an `InvalidRecording` says what is missing."""
        if not self.machines or not self.topologies:
            raise InvalidRecording(f"the history of {self.cluster} has no supervisors or no topologies in that time")
        return ClusterModel(
            tuple(_machine(machine) for machine in self.machines),
            tuple(_topology(topology) for topology in self.topologies),
            Distances({}, default_ms=self.round_trip_ms),
            COSTS,
        )

    def part(self, start_seconds: float, seconds: float) -> Recording:
        """What was recorded from `start_seconds` on; one that reaches beyond the end is cut."""
        length = min(seconds, self.seconds - start_seconds)
        topologies = tuple(
            replace(topology, components=tuple(_part(one, start_seconds, length) for one in topology.components))
            for topology in self.topologies
        )
        return replace(self, seconds=length, topologies=topologies)


class InvalidRecording(ValueError):
    """A history that cannot be replayed; the message says why."""


def _part(component: RecordedComponent, start: float, seconds: float) -> RecordedComponent:
    if not component.load:
        return component
    within = tuple((at - start, rate) for at, rate in component.load if start <= at <= start + seconds)
    last = tuple((0.0, rate) for at, rate in component.load if at <= start)[-1:]
    return replace(component, load=within or last or ((0.0, component.load[0][1]),))


def _machine(machine: RecordedMachine) -> SimulatedSupervisor:
    ports = tuple(range(FIRST_PORT, FIRST_PORT + machine.slots))
    return SimulatedSupervisor(machine.id, machine.id, ports, machine.capacity_millicores or USUAL_CAPACITY_MILLICORES)


def _topology(topology: RecordedTopology) -> SimulatedTopology:
    executors = {component.name: component.executors for component in topology.components}
    return SimulatedTopology(
        topology.id,
        topology.name,
        tuple(_component(topology, component) for component in topology.components),
        tuple(
            _edge(edge, executors[edge.target])
            for edge in topology.edges
            if {edge.source, edge.target} <= executors.keys()
        ),
        ackers=topology.ackers,
        num_workers=max(1, topology.num_workers),
    )


def _component(topology: RecordedTopology, component: RecordedComponent) -> SimulatedComponent:
    is_spout = component.kind == ComponentKind.SPOUT.value
    if is_spout and not component.load:
        raise InvalidRecording(f"topology {topology.name}: nothing is known of what spout {component.name} emitted")
    return SimulatedComponent(
        component.name,
        ComponentKind(component.kind),
        component.executors,
        cpu_ms_per_tuple=component.cpu_ms,
        stateful=component.stateful,
        load=Recorded(_ascending(component.load)) if is_spout else None,
    )


def _ascending(points: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    latest: Mapping[float, float] = dict(sorted(points))
    return tuple(latest.items())


def _edge(edge: RecordedEdge, receivers: int) -> SimulatedEdge:
    known = {grouping.value for grouping in Grouping}
    # Groupings of others' making spread tuples somehow; evenly is the best guess.
    grouping = Grouping(edge.grouping) if edge.grouping in known else Grouping.SHUFFLE
    sent = edge.tuples_per_tuple / (receivers if grouping is Grouping.ALL else 1)  # the simulator makes the copies
    return SimulatedEdge(edge.source, edge.target, grouping, sent, edge.stream)

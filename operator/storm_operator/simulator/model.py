"""What a simulated Storm cluster is made of, as frozen values: topologies with their costs, supervisors, network.

Core values (`Topology`, `Supervisor`, `Distances`) say what an observer can see; what is here says how the simulated
thing behaves, which an observer can only measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from storm_operator.core.distances import Distances
from storm_operator.core.model import ACKER_COMPONENT, Component, ComponentKind, Edge, Executor, Supervisor, Topology
from storm_operator.simulator.load import LoadShape

ACK_STREAMS = {"init": "__ack_init", "ack": "__ack_ack"}
MILLICORES_PER_CORE = 1000.0
MS_PER_SECOND = 1000.0
LIMIT_PERIOD_SECONDS = 0.1
"""How often an executor's CPU limit is filled up again: the period of its cgroup's quota."""
STORM_RECEIVE_QUEUE = 32768


class Grouping(StrEnum):
    """How a stream's tuples are shared out among the tasks of the subscriber."""

    SHUFFLE = "shuffle"
    LOCAL_OR_SHUFFLE = "localOrShuffle"
    FIELDS = "fields"
    ALL = "all"
    GLOBAL = "global"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class SimulatedComponent:
    """A spout or bolt. `tasks` None: as many as executors.

    `cpu_ms_per_tuple` is spent on each executed (spout: emitted) tuple, beside what Storm itself costs; its deviation
    is `cpu_deviation` times its mean (0: always the same, 1: as if exponential). `state_restore_seconds` is how much
    longer a restarted worker needs until a stateful executor has its state again. `load` is what a spout is offered.
    """

    name: str
    kind: ComponentKind
    executors: int
    tasks: int | None = None
    cpu_ms_per_tuple: float = 0.0
    cpu_deviation: float = 0.0
    stateful: bool = False
    state_restore_seconds: float = 0.0
    load: LoadShape | None = None
    load_spread: float = 0.0
    """A spout's executors are offered between (1 - spread) and (1 + spread) of their even share."""

    def __post_init__(self) -> None:
        if self.executors < 1:
            raise ValueError(f"component {self.name}: executors = {self.executors}; 1 or more is right")
        if self.tasks is not None and self.tasks < self.executors:
            raise ValueError(f"component {self.name}: tasks = {self.tasks}; at least its {self.executors} executors")
        if (self.load is None) == (self.kind is ComponentKind.SPOUT):
            raise ValueError(f"component {self.name}: a spout needs a load, and nothing else has one")


@dataclass(frozen=True, slots=True)
class SimulatedEdge:
    """`target` subscribes to `stream` of `source`; `tuples_per_tuple` are sent for each tuple that `source` executes.

    `shares` (fields, direct) is how the tuples fall on the target's tasks, in order, summing to 1; None: evenly.
    `pinned_share` is the part of each source task's tuples that always go to one and the same target task, as with a
    constant value of its own under fields grouping.
    """

    source: str
    target: str
    grouping: Grouping = Grouping.SHUFFLE
    tuples_per_tuple: float = 1.0
    stream: str = "default"
    shares: tuple[float, ...] | None = None
    pinned_share: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedTopology:
    """A topology and how it behaves.

    `max_spout_pending` None: no limit. `message_timeout_seconds` is Storm's: a tuple tree that is not complete is
    failed between once and twice as long after it began (Storm looks once per timeout). Failed trees are sent again
    where `replays_failed` (at most once each where `replays_once`). What a spout cannot emit at once waits in its
    source where `source_keeps_backlog` (Kafka), else it is lost (a sensor). `load_aware`: shuffle prefers tasks of the
    own worker, then of the own supervisor, as Storm's default does. `ackers` 0: nothing is tracked.
    """

    id: str
    name: str
    components: tuple[SimulatedComponent, ...]
    edges: tuple[SimulatedEdge, ...]
    ackers: int = 1
    num_workers: int = 1
    max_spout_pending: int | None = None
    message_timeout_seconds: float = 30.0
    replays_failed: bool = False
    replays_once: bool = False
    source_keeps_backlog: bool = False
    load_aware: bool = True
    acker_tasks: int | None = None
    """None: as many as `ackers`."""

    def component(self, name: str) -> SimulatedComponent:
        for component in self.components:
            if component.name == name:
                return component
        raise KeyError(f"topology {self.name} has no component {name!r}")

    def with_executors(self, executors: Mapping[str, int]) -> SimulatedTopology:
        """The same with other numbers of executors by component, ackers too; tasks are as many as they were."""
        components = tuple(
            replace(c, executors=executors.get(c.name, c.executors), tasks=c.tasks or c.executors)
            for c in self.components
        )
        ackers = executors.get(ACKER_COMPONENT, self.ackers)
        return replace(self, components=components, ackers=ackers, acker_tasks=self.acker_tasks or self.ackers)

    def as_topology(self) -> Topology:
        """What Nimbus shows: components (ackers included), edges, executors with tasks numbered as Storm does."""
        components = [
            Component(c.name, c.kind, c.tasks or c.executors, c.stateful)
            for c in sorted(self.components, key=lambda c: c.name)
        ]
        executors_of = {c.name: c.executors for c in self.components}
        if self.ackers:
            components.insert(0, Component(ACKER_COMPONENT, ComponentKind.ACKER, self.acker_tasks or self.ackers))
            executors_of[ACKER_COMPONENT] = self.ackers
        executors: list[Executor] = []
        first = 1
        for component in components:
            for low, high in _split(first, component.tasks, executors_of[component.name]):
                executors.append(Executor(self.id, low, high, component.name))
            first += component.tasks
        edges = [Edge(e.source, e.stream, e.target, e.grouping.value) for e in self.edges]
        return Topology(
            id=self.id,
            name=self.name,
            components=tuple(components),
            edges=tuple(edges) + (self._ack_edges() if self.ackers else ()),
            executors=tuple(sorted(executors)),
            num_workers=self.num_workers,
        )

    def _ack_edges(self) -> tuple[Edge, ...]:
        edges = []
        for component in self.components:
            if component.kind is ComponentKind.SPOUT:
                edges.append(Edge(component.name, ACK_STREAMS["init"], ACKER_COMPONENT, "fields"))
                edges.append(Edge(ACKER_COMPONENT, ACK_STREAMS["ack"], component.name, "direct"))
            else:
                edges.append(Edge(component.name, ACK_STREAMS["ack"], ACKER_COMPONENT, "fields"))
        return tuple(edges)


def _split(first: int, tasks: int, executors: int) -> list[tuple[int, int]]:
    """Tasks in ranges, the longer ones first, as Storm partitions them."""
    ranges = []
    for at in range(executors):
        length = tasks // executors + (1 if at < tasks % executors else 0)
        ranges.append((first, first + length - 1))
        first += length
    return ranges


@dataclass(frozen=True, slots=True)
class SimulatedSupervisor:
    """A machine.

    `capacity_millicores` is all that its workers can use together, on `cores` cores (None: as many as that is), and
    `thread_speed` how fast one thread is compared to the core that costs are given for. It does not answer for the
    share 1 - `availability` of the time, in outages of `outage_seconds` on average. Nothing is lost in an outage: what
    comes waits, agents and tuples get no answer, but Nimbus keeps it, however long that lasts.
    """

    id: str
    host: str
    ports: tuple[int, ...]
    capacity_millicores: float = 1000.0
    cores: float | None = None
    thread_speed: float = 1.0
    availability: float = 1.0
    outage_seconds: float = 10.0

    def as_supervisor(self, availability: float | None = None, capacity_millicores: float | None = None) -> Supervisor:
        return Supervisor(
            self.id,
            self.host,
            self.ports,
            self.capacity_millicores if capacity_millicores is None else capacity_millicores,
            self.availability if availability is None else availability,
        )


@dataclass(frozen=True, slots=True)
class Costs:
    """What Storm itself costs, calibrated against a real cluster (docs/explanation/simulator.md).

    Delays are means; an idle executor finds a tuple after up to twice `poll_ms`. A tuple between workers of one
    supervisor takes `between_workers_ms` longer, one between supervisors `between_supervisors_ms` and half the round
    trip. CPU: of the executor for each tuple that it executes, emits, and sends out of its worker; of the worker (its
    network threads) for each tuple that it sends or receives, and `worker_cpu_share` of what its executors use
    (garbage collection, compilation); of executors, workers and a supervisor's own daemons that do nothing, and what
    a worker that is connected to others needs on top.
    """

    poll_ms: float = 0.377
    spout_poll_ms: float = 0.5
    between_workers_ms: float = 0.7376
    between_supervisors_ms: float = 0.4682
    execute_cpu_ms: float = 0.0
    emit_cpu_ms: float = 0.0024
    serialise_cpu_ms: float = 0.0
    transfer_cpu_ms: float = 0.0014
    acker_cpu_ms: float = 0.0016
    idle_executor_millicores: float = 11.0
    idle_worker_millicores: float = 13.6
    connected_worker_millicores: float = 31.7
    idle_supervisor_millicores: float = 8.1
    worker_cpu_share: float = 0.091


@dataclass(frozen=True, slots=True)
class Timings:
    """How long a cluster takes to react.

    A worker whose executors change is gone at once and runs again `worker_start_seconds` later (after `notice_seconds`
    in which its supervisor learns of it), and with state to restore later still. A rebalance pauses the topology's
    spouts for `spout_pause_seconds`. Nimbus looks every `scheduling_seconds`; it gives up a dead supervisor after
    `supervisor_timeout_seconds` and places its executors elsewhere. It gives up none for an outage.
    """

    notice_seconds: float = 1.0
    worker_start_seconds: float = 6.0
    spout_pause_seconds: float = 1.0
    scheduling_seconds: float = 10.0
    supervisor_timeout_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class SupervisorDies:
    """The supervisor and its workers are gone at `at_seconds`; it is back at `until_seconds`, None: never."""

    supervisor_id: str
    at_seconds: float
    until_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SupervisorSlows:
    """From `at_seconds` to `until_seconds` others take `1 - factor` of the supervisor's CPU, as `stress` does."""

    supervisor_id: str
    at_seconds: float
    factor: float
    until_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class AvailabilityDrops:
    """From `at_seconds` to `until_seconds` the supervisor answers only in this share of the time."""

    supervisor_id: str
    at_seconds: float
    availability: float
    until_seconds: float | None = None


Fault = SupervisorDies | SupervisorSlows | AvailabilityDrops


@dataclass(frozen=True, slots=True)
class ClusterModel:
    """All that is simulated, before anything has happened."""

    supervisors: tuple[SimulatedSupervisor, ...]
    topologies: tuple[SimulatedTopology, ...]
    distances: Distances = field(default_factory=lambda: Distances({}, default_ms=1.0))
    costs: Costs = field(default_factory=Costs)
    timings: Timings = field(default_factory=Timings)
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        known = [supervisor.id for supervisor in self.supervisors]
        for at, fault in enumerate(self.faults):
            if fault.supervisor_id not in known:
                there_are = f"there are {', '.join(known) or 'none'}"
                raise ValueError(f"faults[{at}].supervisor: {fault.supervisor_id!r} is no supervisor; {there_are}")

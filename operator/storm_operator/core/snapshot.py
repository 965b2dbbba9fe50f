"""Everything a decision is made from, as one value: what the cluster looked like over the last period.

A snapshot is what `storm-operator snapshot` writes, what `storm-operator plan` reads and what every placement
policy gets, so that a decision can always be repeated from its file. Missing is missing, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from storm_operator.core.distances import Distances
from storm_operator.core.model import Assignment, Executor, ExecutorLoad, Supervisor, Topology, WorkerSlot, read_only
from storm_operator.core.traffic import TrafficMatrix


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Complete latency of one topology over the period, from the histogram of its spouts."""

    mean_ms: float
    p50_ms: float
    p99_ms: float
    count: float


@dataclass(frozen=True, slots=True)
class TopologyRates:
    """Whole-topology rates over the period; None is unknown."""

    acked_per_second: float | None = None
    failed_per_second: float | None = None
    latency: LatencySummary | None = None


@dataclass(frozen=True, slots=True)
class ComponentLoad:
    """One component in one period, summed over its executors (Liu, section III-A: L, delta, R, and what gives rho)."""

    arrived_per_second: float
    executed_per_second: float
    emitted_per_second: float
    queue_growth_per_second: float
    cpu_millicores: float


@dataclass(frozen=True, slots=True)
class LoadPeriod:
    """What one past control period measured; keys of `components` are (topology_id, component)."""

    ended_at_seconds: float
    period_seconds: float
    components: Mapping[tuple[str, str], ComponentLoad]
    supervisor_cpu_millicores: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", read_only(self.components))
        object.__setattr__(self, "supervisor_cpu_millicores", read_only(self.supervisor_cpu_millicores))


@dataclass(frozen=True, slots=True)
class Completeness:
    """How much of what should be known is known, and how old the newest and oldest parts are.

    `expected_executors` counts placed executors; `missing_executors` are those without a full pair of readings;
    `problems` are sentences for a person (an agent that did not answer, a worker without a snapshot).
    `topology_age_seconds` is the age by topology id, of those that were read at all; empty where nobody told it.
    `silent_supervisors` are the ids of those that Nimbus sees and no agent spoke for.
    """

    expected_executors: int
    missing_executors: tuple[Executor, ...] = ()
    age_seconds: float = 0.0
    problems: tuple[str, ...] = ()
    topology_age_seconds: Mapping[str, float] = field(default_factory=dict)
    silent_supervisors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "topology_age_seconds", read_only(self.topology_age_seconds))

    def age_of(self, topology_ids: Iterable[str]) -> float:
        """The age of the oldest part of what is known of these topologies."""
        if not self.topology_age_seconds:
            return self.age_seconds
        return max((self.topology_age_seconds.get(topology_id, 0.0) for topology_id in topology_ids), default=0.0)

    @property
    def ratio(self) -> float:
        if self.expected_executors == 0:
            return 1.0
        return 1.0 - len(self.missing_executors) / self.expected_executors

    @property
    def known_age_seconds(self) -> float | None:
        """`age_seconds`; None where of no executor anything was read, also since none is placed."""
        none_read = len(self.missing_executors) == self.expected_executors and not self.topology_age_seconds
        return None if none_read else self.age_seconds

    @property
    def incomplete_topologies(self) -> frozenset[str]:
        """Ids of those with placed executors that are not fully measured: sums over the rest would look like a fall."""
        return frozenset(executor.topology_id for executor in self.missing_executors)


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """One consistent picture of a Storm cluster. `history` is oldest first and ends with this very period."""

    taken_at_seconds: float
    period_seconds: float
    supervisors: tuple[Supervisor, ...]
    topologies: tuple[Topology, ...]
    assignment: Assignment
    loads: Mapping[Executor, ExecutorLoad]
    traffic: TrafficMatrix
    distances: Distances
    completeness: Completeness
    supervisor_cpu_millicores: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, TopologyRates] = field(default_factory=dict)
    worker_pids: Mapping[WorkerSlot, int] = field(default_factory=dict)
    history: tuple[LoadPeriod, ...] = ()
    unheard_seconds: float = 0.0
    """For so long before this period the policy that is asked was not heard (`missed_turns`)."""
    leaving: tuple[Supervisor, ...] = ()
    """Supervisors that are to be emptied, none of `supervisors`: nothing may be placed there, and what runs there is to
    move. Told by who scales them, and so in no file."""

    def __post_init__(self) -> None:
        for name in ("loads", "supervisor_cpu_millicores", "rates", "worker_pids"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def all_supervisors(self) -> tuple[Supervisor, ...]:
        """Those that leave as well: executors run there until they have moved."""
        return (*self.supervisors, *self.leaving)

    def topology(self, topology_id: str) -> Topology:
        for topology in self.topologies:
            if topology.id == topology_id:
                return topology
        raise KeyError(f"no topology {topology_id!r} in the snapshot")

    def supervisor(self, supervisor_id: str) -> Supervisor:
        for supervisor in self.supervisors:
            if supervisor.id == supervisor_id:
                return supervisor
        raise KeyError(f"no supervisor {supervisor_id!r} in the snapshot")

    @property
    def traffic_is_known(self) -> bool:
        """Whether sums over all that has a place are known. Where nothing has one nobody measures anything: that is
        no zero."""
        return bool(self.assignment.slot_of) and not self.completeness.missing_executors

    def topologies_of_unknown_traffic(self) -> frozenset[str]:
        """Ids of those with placed executors that are not fully measured, and of those without any place."""
        placed = {executor.topology_id for executor in self.assignment.slot_of}
        nowhere = frozenset(topology.id for topology in self.topologies if topology.id not in placed)
        return self.completeness.incomplete_topologies | nowhere

    def incomplete_places(self) -> tuple[frozenset[str], ...]:
        """By topology that is not fully measured, the ids of the supervisors that it runs on.

        What two of one's supervisors exchange is not known, whoever else is measured there.
        """
        incomplete = self.completeness.incomplete_topologies
        if not incomplete:
            return ()
        places: dict[str, set[str]] = {}
        for executor, slot in self.assignment.slot_of.items():
            if executor.topology_id in incomplete:
                places.setdefault(executor.topology_id, set()).add(slot.supervisor_id)
        return tuple(map(frozenset, places.values()))

    def is_stateful(self, executor: Executor) -> bool:
        return self.topology(executor.topology_id).is_stateful(executor)

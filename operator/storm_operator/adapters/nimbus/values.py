"""What Nimbus says about the cluster, as frozen values; `*_from` functions make them from Thrift structs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storm_operator.core.model import read_only

KILLED = "KILLED"
REBALANCING = "REBALANCING"
ACTIVE = "ACTIVE"
INACTIVE = "INACTIVE"


@dataclass(frozen=True, slots=True, order=True)
class NimbusSummary:
    """One Nimbus as ZooKeeper knows it; host and port are what it advertises."""

    host: str
    port: int
    is_leader: bool
    uptime_seconds: int
    version: str


@dataclass(frozen=True, slots=True, order=True)
class SupervisorSummary:
    """One live supervisor; Nimbus tells the number of its slots, not their ports."""

    id: str
    host: str
    total_slots: int
    used_slots: int
    uptime_seconds: int
    version: str | None


@dataclass(frozen=True, slots=True, order=True)
class TopologySummary:
    """One topology. `status` is ACTIVE, INACTIVE, REBALANCING or KILLED; `sched_status` the scheduler's sentence."""

    id: str
    name: str
    status: str
    tasks: int
    executors: int
    workers: int
    uptime_seconds: int
    sched_status: str | None


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """Everything in one answer, each part sorted."""

    nimbuses: tuple[NimbusSummary, ...]
    supervisors: tuple[SupervisorSummary, ...]
    topologies: tuple[TopologySummary, ...]

    def topology_named(self, name: str) -> TopologySummary | None:
        """The topology of that name that is not being killed; None when there is none."""
        for topology in self.topologies:
            if topology.name == name and topology.status != KILLED:
                return topology
        return None


@dataclass(frozen=True, slots=True, order=True)
class ExecutorSummary:
    """One placed executor. `uptime_seconds` is 0 until the executor has sent its first heartbeat from that slot."""

    task_start: int
    task_end: int
    component: str
    host: str
    port: int
    uptime_seconds: int


@dataclass(frozen=True, slots=True, order=True)
class ComponentError:
    """An exception that a component reported or died of."""

    component: str
    time_seconds: int
    host: str | None
    port: int | None
    error: str


@dataclass(frozen=True, slots=True)
class TopologyInfo:
    """One topology with its placed executors (those that have no slot are absent) and its last errors."""

    id: str
    name: str
    status: str
    uptime_seconds: int
    sched_status: str | None
    executors: tuple[ExecutorSummary, ...]
    errors: Mapping[str, tuple[ComponentError, ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "errors", read_only(self.errors))


def nimbus_from(raw: Any) -> NimbusSummary:
    return NimbusSummary(raw.host, raw.port, bool(raw.isLeader), raw.uptime_secs, raw.version)


def supervisor_from(raw: Any) -> SupervisorSummary:
    return SupervisorSummary(
        raw.supervisor_id, raw.host, raw.num_workers, raw.num_used_workers, raw.uptime_secs, raw.version
    )


def topology_summary_from(raw: Any) -> TopologySummary:
    return TopologySummary(
        raw.id,
        raw.name,
        raw.status,
        raw.num_tasks,
        raw.num_executors,
        raw.num_workers,
        raw.uptime_secs,
        raw.sched_status,
    )


def cluster_info_from(raw: Any) -> ClusterInfo:
    return ClusterInfo(
        nimbuses=tuple(sorted(nimbus_from(nimbus) for nimbus in raw.nimbuses)),
        supervisors=tuple(sorted((supervisor_from(each) for each in raw.supervisors), key=lambda each: each.id)),
        topologies=tuple(sorted((topology_summary_from(each) for each in raw.topologies), key=lambda each: each.id)),
    )


def topology_info_from(raw: Any) -> TopologyInfo:
    executors = (
        ExecutorSummary(
            each.executor_info.task_start,
            each.executor_info.task_end,
            each.component_id,
            each.host,
            each.port,
            each.uptime_secs,
        )
        for each in raw.executors
    )
    errors = {
        component: tuple(
            ComponentError(component, error.error_time_secs, error.host, error.port, error.error) for error in reported
        )
        for component, reported in sorted(raw.errors.items())
        if reported
    }
    return TopologyInfo(
        raw.id, raw.name, raw.status, raw.uptime_secs, raw.sched_status, tuple(sorted(executors)), errors
    )

"""Topologies that are managed by the same settings are placed together; demand is told by each one's own settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from storm_operator.core.demand import estimate_demand
from storm_operator.core.model import Demand, Executor
from storm_operator.core.settings import ResourceSettings, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import TopologySpec


@dataclass(frozen=True, slots=True)
class Group:
    """Topologies under the very same settings."""

    scheduling: SchedulingSettings
    resources: ResourceSettings
    topology_ids: tuple[str, ...]


def group_by_settings(snapshot: ClusterSnapshot, specs: Mapping[str, TopologySpec]) -> tuple[Group, ...]:
    """Managed topologies that run, grouped by equal settings.

    Groups come in the order of their highest `spec.priority`, then of their first topology id: plans for the first are
    made first, and one plan is applied at a time.
    """
    priority = {
        topology.id: specs[topology.name].priority for topology in snapshot.topologies if topology.name in specs
    }
    members: dict[tuple[SchedulingSettings, ResourceSettings], list[str]] = {}
    for topology in sorted(snapshot.topologies, key=lambda topology: topology.id):
        spec = specs.get(topology.name)
        if spec is not None and not spec.suspend:
            members.setdefault((spec.scheduling, spec.resources), []).append(topology.id)
    groups = [Group(scheduling, resources, tuple(ids)) for (scheduling, resources), ids in members.items()]
    return tuple(sorted(groups, key=lambda group: (-max(priority[i] for i in group.topology_ids), group.topology_ids)))


def estimate_group_demand(snapshot: ClusterSnapshot, groups: Sequence[Group], previous: Demand | None) -> Demand:
    """Demand of all topologies, each group's by its own settings; that of unmanaged ones by the defaults."""
    managed = {topology_id for group in groups for topology_id in group.topology_ids}
    others = tuple(topology.id for topology in snapshot.topologies if topology.id not in managed)
    rounded: dict[Executor, float] = {}
    raw: dict[Executor, float] = {}
    for group in (*groups, Group(SchedulingSettings(), ResourceSettings(), others)):
        members, scheduling = frozenset(group.topology_ids), group.scheduling
        own = replace(snapshot, topologies=tuple(t for t in snapshot.topologies if t.id in members))
        part = estimate_demand(
            own, previous, group.resources, phi=scheduling.history_periods, forecast=scheduling.forecast
        )
        rounded.update(part.millicores)
        raw.update(part.raw_millicores)
    return Demand(rounded, raw)

"""Topologies that are managed by the same settings are placed together; demand is told by each one's own settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.demand import demand_of_forecasts
from storm_operator.core.forecast import ComponentKey, LoadForecast, forecast_loads
from storm_operator.core.lasting_demand import lasting_demand, remembering_peaks, with_room_that_fits
from storm_operator.core.learned_profile import NOTHING_LEARNED, Learned
from storm_operator.core.model import Executor, Topology, read_only
from storm_operator.core.settings import Forecast, ResourceSettings, SchedulingSettings, holds_executors
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.core.worker_overhead import worker_overhead

NOTHING_HIDDEN: Mapping[Executor, float] = read_only({})


@dataclass(frozen=True, slots=True)
class Group:
    """Topologies under the very same settings."""

    scheduling: SchedulingSettings
    resources: ResourceSettings
    topology_ids: tuple[str, ...]

    @property
    def are_held(self) -> bool:
        """Whether its executors are to be held to CPU limits, one by one."""
        return holds_executors(self.scheduling, self.resources)


def priority_of_topologies(snapshot: ClusterSnapshot, specs: Mapping[str, TopologySpec]) -> Mapping[str, int]:
    """`spec.priority` of the managed topologies, by id."""
    return {topology.id: spec.priority for topology, spec in _managed(snapshot, specs)}


def group_by_settings(snapshot: ClusterSnapshot, specs: Mapping[str, TopologySpec]) -> tuple[Group, ...]:
    """Managed topologies that run, grouped by equal settings.

    Groups come in the order of their highest `spec.priority`, then of their first topology id: plans for the first are
    made first, and one plan is applied at a time.
    """
    priority = priority_of_topologies(snapshot, specs)
    members: dict[tuple[SchedulingSettings, ResourceSettings], list[str]] = {}
    for topology, spec in _managed(snapshot, specs):
        members.setdefault((spec.scheduling, spec.resources), []).append(topology.id)
    groups = [Group(scheduling, resources, tuple(ids)) for (scheduling, resources), ids in members.items()]
    return tuple(sorted(groups, key=lambda group: (-max(priority[i] for i in group.topology_ids), group.topology_ids)))


def _managed(snapshot: ClusterSnapshot, specs: Mapping[str, TopologySpec]) -> tuple[tuple[Topology, TopologySpec], ...]:
    """The topologies that run and are not suspended, with their specs; in the order of their ids."""
    known = ((topology, specs.get(topology.name)) for topology in snapshot.topologies)
    managed = [(topology, spec) for topology, spec in known if spec is not None and not spec.suspend]
    return tuple(sorted(managed, key=lambda pair: pair[0].id))


def forecast_groups(
    snapshot: ClusterSnapshot, groups: Sequence[Group], learned: Learned = NOTHING_LEARNED
) -> Mapping[ComponentKey, LoadForecast]:
    """The next period's load of all components, by each group's own settings; of unmanaged ones by the defaults.

    Where `learned` has a season that is the best for a component, that goes before the settings' forecaster.
    """
    found: dict[ComponentKey, LoadForecast] = {}
    for group, own in _with_the_unmanaged(snapshot, groups):
        scheduling = group.scheduling
        found.update(forecast_loads(own, scheduling.history_periods, scheduling.forecast, learned))
    return found


def estimate_group_demand(
    snapshot: ClusterSnapshot,
    groups: Sequence[Group],
    forecasts: Mapping[ComponentKey, LoadForecast],
    previous: Demand | None,
    priority: Mapping[str, int],
    hidden_millicores: Mapping[Executor, float] = NOTHING_HIDDEN,
) -> Demand:
    """Demand of all topologies, each group's by its own settings; that of unmanaged ones by the defaults.

    With forecast `Line` it is Liu's as published, else made to last as long as a plan. `priority` is by topology id.
    `hidden_millicores` is what executors are known to need whose load does not show it (`served_first`).
    """
    parts = []
    for group, own in _with_the_unmanaged(snapshot, groups):
        scheduling, resources = group.scheduling, group.resources
        if scheduling.forecast is Forecast.LINE:
            published = demand_of_forecasts(own, forecasts, previous, resources, scheduling.history_periods)
            parts.append(remembering_peaks(published, previous, own, resources, scheduling))
        else:
            parts.append(lasting_demand(own, forecasts, previous, resources, scheduling))
    whole = Demand(
        millicores={e: value for part in parts for e, value in part.millicores.items()},
        raw_millicores={e: value for part in parts for e, value in part.raw_millicores.items()},
        room_millicores={e: value for part in parts for e, value in part.room_millicores.items()},
        peak_millicores={e: value for part in parts for e, value in part.peak_millicores.items()},
        room_peak_millicores={e: value for part in parts for e, value in part.room_peak_millicores.items()},
        limit_peak_millicores={e: value for part in parts for e, value in part.limit_peak_millicores.items()},
        coming_millicores={e: value for part in parts for e, value in part.coming_millicores.items()},
    )
    whole = whole.no_less_than(hidden_millicores)
    filled_share = _filled_fraction(groups, whole) / worker_overhead(snapshot)
    are_all_equal = len(set(priority.values())) < 2
    return with_room_that_fits(whole, snapshot, filled_share, are_all_equal=are_all_equal)


def _filled_fraction(groups: Sequence[Group], demand: Demand) -> float:
    """The groups' headroom, by what they need: a small topology that asks for much takes no room from all others."""
    headroom = {i: group.scheduling.headroom_fraction for group in groups for i in group.topology_ids}
    if not headroom:
        return 1.0  # nobody fills anything
    needs = {e: need for e, need in demand.of_now().room_millicores.items() if e.topology_id in headroom}
    total = math.fsum(needs.values())
    if total <= 0.0:
        return min(headroom.values())
    # Between the least and the most, whatever rounding makes of it.
    mean = math.fsum(headroom[e.topology_id] * need for e, need in needs.items()) / total
    return min(max(mean, min(headroom.values())), max(headroom.values()))


def _with_the_unmanaged(
    snapshot: ClusterSnapshot, groups: Sequence[Group]
) -> tuple[tuple[Group, ClusterSnapshot], ...]:
    """Each group and the snapshot of its topologies alone; last, those that nobody manages, under the defaults."""
    managed = {topology_id for group in groups for topology_id in group.topology_ids}
    others = tuple(topology.id for topology in snapshot.topologies if topology.id not in managed)
    parts = (*groups, Group(SchedulingSettings(), ResourceSettings(), others))
    return tuple((group, _only(snapshot, frozenset(group.topology_ids))) for group in parts)


def _only(snapshot: ClusterSnapshot, topology_ids: frozenset[str]) -> ClusterSnapshot:
    return replace(snapshot, topologies=tuple(t for t in snapshot.topologies if t.id in topology_ids))

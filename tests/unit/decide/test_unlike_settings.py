"""Topologies under unlike settings share supervisors: what one asks for leaves the others what they need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import chain_topology, component_load, even_traffic, history, placed, snapshot, supervisors
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decide import decide
from storm_operator.core.decision import Decision, Plan, PlanCause
from storm_operator.core.decision_memory import DecisionMemory
from storm_operator.core.groups import Group, estimate_group_demand, forecast_groups, group_by_settings
from storm_operator.core.placement.registry import policy_named
from storm_operator.core.settings import Mode, PlacementSettings, ResourceSettings, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import AdoptSource, TopologySpec

BUSY = chain_topology("busy", ("spout", 1), ("bolt", 4))
IDLE = chain_topology("idle", ("spout", 1), ("bolt", 1))
OWN = Group(SchedulingSettings(minimum_periods=1), ResourceSettings(), ("busy",))
NOBODY_FIRST = {"busy": 0, "idle": 0}


def picture() -> ClusterSnapshot:
    """All of `busy`, 1300 millicores, on one of three supervisors of 1000; `idle` on another."""
    slot_of = placed(BUSY, {"spout": "s1", "bolt": ["s1"] * 4}) | placed(IDLE, {"spout": "s3:6701", "bolt": "s3:6701"})
    (period,) = history("busy", {"spout": [component_load(300.0, cpu=300.0)], "bolt": [component_load(300.0, cpu=1e3)]})
    (other,) = history("idle", {name: [component_load(10.0, cpu=20.0)] for name in ("spout", "bolt")})
    return snapshot(
        (BUSY, IDLE),
        supervisors(3, 1000.0),
        slot_of,
        rates={**even_traffic(BUSY, 300.0), **even_traffic(IDLE, 10.0)},
        periods=(replace(period, components={**period.components, **other.components}),),
    )


def decided(headroom_of_idle: float) -> tuple[Demand, Decision]:
    """For `busy`."""
    seen = picture()
    careful = SchedulingSettings(headroom_fraction=headroom_of_idle, mode=Mode.OBSERVE)
    groups = (OWN, Group(careful, ResourceSettings(), ("idle",)))
    demand = estimate_group_demand(seen, groups, forecast_groups(seen, groups), None, NOBODY_FIRST)
    settings = PlacementSettings(OWN.scheduling, frozenset(OWN.topology_ids))
    proposal = policy_named("adaptive")(seen, demand, settings)
    now = seen.taken_at_seconds
    return demand, decide(seen, demand, proposal, settings, DecisionMemory(), now_seconds=now, plan_id="p-1")


@pytest.mark.parametrize("headroom", [0.9, 0.3, 0.05])
def test_headroom_of_a_small_topology_hides_no_overload_of_another(headroom: float) -> None:
    demand, decision = decided(headroom)
    assert all(demand.room_millicores[e] >= demand.raw_millicores[e] for e in BUSY.executors)
    assert isinstance(decision, Plan)
    assert decision.cause is PlanCause.OVERLOAD
    assert decision.after.overloaded_millicores == 0.0


def test_where_all_ask_for_little_to_be_filled_room_is_as_little() -> None:
    seen = picture()
    careful = replace(OWN, scheduling=replace(OWN.scheduling, headroom_fraction=0.3))
    groups = (careful, replace(careful, topology_ids=("idle",)))
    demand = estimate_group_demand(seen, groups, forecast_groups(seen, groups), None, NOBODY_FIRST)
    assert sum(demand.room_millicores.values()) == pytest.approx(0.98 * 0.3 * 3000.0)


def test_room_is_what_all_ask_for_to_be_filled_by_what_they_need() -> None:
    seen = picture()
    idle = SchedulingSettings(headroom_fraction=0.3)
    half = replace(OWN, scheduling=replace(OWN.scheduling, headroom_fraction=0.5))
    groups = (half, Group(idle, ResourceSettings(), ("idle",)))
    demand = estimate_group_demand(seen, groups, forecast_groups(seen, groups), None, NOBODY_FIRST)
    busy = sum(demand.raw_millicores[e] for e in BUSY.executors)
    whole = sum(demand.raw_millicores.values())
    filled = (0.5 * busy + 0.3 * (whole - busy)) / whole
    assert sum(demand.room_millicores.values()) == pytest.approx(0.98 * filled * 3000.0)


@pytest.mark.parametrize("priority", [{"busy": 2, "idle": 1}, {"busy": 1, "idle": 1}], ids=["ranked", "equal"])
def test_where_needs_are_more_than_there_is_they_stay_whole_if_who_goes_short_is_decided_by_rank(
    priority: dict[str, int],
) -> None:
    seen = replace(picture(), supervisors=supervisors(3, 100.0))
    groups = (OWN, Group(OWN.scheduling, OWN.resources, ("idle",)))
    demand = estimate_group_demand(seen, groups, forecast_groups(seen, groups), None, priority)
    are_whole = demand.room_millicores == demand.raw_millicores
    assert are_whole is (len(set(priority.values())) > 1)


@pytest.mark.parametrize(("of_idle", "first"), [(7, "idle"), (0, "busy"), (-1, "busy")])
def test_groups_come_in_the_order_of_their_highest_priority_and_then_of_their_ids(of_idle: int, first: str) -> None:
    specs = {
        "busy": TopologySpec("busy", AdoptSource()),
        "idle": TopologySpec(
            "idle", AdoptSource(), scheduling=SchedulingSettings(headroom_fraction=0.3), priority=of_idle
        ),
    }
    groups = group_by_settings(picture(), specs)
    assert len(groups) == 2
    assert groups[0].topology_ids == (first,)

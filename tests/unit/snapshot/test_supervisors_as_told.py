"""What the operator knows better than the agents: what a supervisor can be given, and which are to be emptied."""

from __future__ import annotations

from builders import (
    chain_topology,
    component_load,
    even_traffic,
    history,
    placed,
    placement_settings,
    same_demand,
    supervisors,
)
from builders import snapshot as make_snapshot
from storm_operator.adapters.observer import with_supervisors_as_told
from storm_operator.core.decide import DecisionMemory, decide
from storm_operator.core.decision import Plan
from storm_operator.core.placement.registry import policy_named
from storm_operator.core.snapshot import ClusterSnapshot

LINE = chain_topology("line", ("spout", 1), ("bolt", 1))
PERIODS = history("line", {name: [component_load(100)] for name in ("spout", "bolt")})


def picture() -> ClusterSnapshot:
    here = placed(LINE, {"spout": "s2", "bolt": "s2"})
    return make_snapshot([LINE], supervisors(2), here, rates=even_traffic(LINE, 100), periods=PERIODS)


def test_without_news_it_is_the_very_snapshot() -> None:
    seen = picture()
    assert with_supervisors_as_told(seen, {}, ()) is seen


def test_capacity_is_what_can_be_given_not_what_is() -> None:
    told = with_supervisors_as_told(picture(), {"s1": 4000.0}, ())
    assert told.supervisors[0].cpu_capacity_millicores == 4000.0
    assert told.supervisors[1] == picture().supervisors[1]


def test_a_supervisor_that_is_to_be_emptied_is_kept_apart_with_its_capacity() -> None:
    told = with_supervisors_as_told(picture(), {"s2": 4000.0}, {"s2"})
    assert [supervisor.id for supervisor in told.supervisors] == ["s1"]
    assert [(one.id, one.cpu_capacity_millicores) for one in told.leaving] == [("s2", 4000.0)]


def test_executors_of_a_supervisor_that_is_to_be_emptied_move_at_once() -> None:
    told = with_supervisors_as_told(picture(), {}, {"s2"})
    settings, demand = placement_settings([LINE]), same_demand([LINE], 100)
    proposal = policy_named("adaptive")(told, demand, settings)
    plan = decide(told, demand, proposal, settings, DecisionMemory(), now_seconds=1000.0, plan_id="p-1")
    assert isinstance(plan, Plan), plan
    assert {slot.supervisor_id for slot in plan.target.slot_of.values()} == {"s1"}
    assert plan.base.slot_of == picture().assignment.slot_of

"""What an approved plan is carried out and judged by, where the load changed while it waited."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    chain_topology,
    component_load,
    even_traffic,
    history,
    placed,
    placement_settings,
    same_demand,
    snapshot,
    supervisors,
)
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decide import decide
from storm_operator.core.decision import Plan, PlanCause
from storm_operator.core.decision_memory import DecisionMemory
from storm_operator.core.direct_plan import reverse_plan
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState
from storm_operator.core.proposals import as_of_now
from storm_operator.core.settings import ApplyMethod, SchedulingSettings, Separation
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.verify import judge

LINE = chain_topology("t", ("spout", 1), ("work", 3), stateful=("work",))
DECLARED = replace(LINE, components=tuple(replace(c, declared_memory_mb=300.0) for c in LINE.components))
SETTINGS = placement_settings([LINE], scheduling=SchedulingSettings(separation=Separation.NEVER, minimum_periods=1))


def at_rate(per_second: float) -> ClusterSnapshot:
    """All on one supervisor, which has not the memory for it."""
    machines = tuple(replace(supervisor, memory_mb=700.0) for supervisor in supervisors(3))
    periods = history("t", {c.name: [component_load(per_second)] for c in LINE.components})
    together = placed(LINE, {component.name: "s1" for component in LINE.components})
    return snapshot((DECLARED,), machines, together, rates=even_traffic(LINE, per_second), periods=periods)


def needing(millicores: float) -> Demand:
    return same_demand([LINE], millicores)


def proposed_at(per_second: float, millicores: float) -> Plan:
    """It spreads them, and says what that costs the network."""
    seen, demand = at_rate(per_second), needing(millicores)
    proposal = place_adaptive(seen, demand, SETTINGS)
    plan = decide(seen, demand, proposal, SETTINGS, DecisionMemory(), now_seconds=0.0, plan_id="p")
    assert isinstance(plan, Plan)
    assert plan.cause is PlanCause.MEMORY
    return plan


@pytest.mark.parametrize(("measured_per_second", "is_kept"), [(2000.0, True), (3000.0, False)])
def test_plan_is_judged_by_what_it_should_bring_of_the_load_it_began_with(
    measured_per_second: float, is_kept: bool
) -> None:
    shown = proposed_at(30.0, 50.0)
    assert shown.after.inter_supervisor_tuples_per_second == pytest.approx(20.0)
    plan = as_of_now(shown, at_rate(3000.0), needing(100.0), SETTINGS)
    assert plan.after.inter_supervisor_tuples_per_second == pytest.approx(2000.0)
    before, after = Outcome(0.0, 3000.0, 5.0, 5.0, 9.0), Outcome(measured_per_second, 3000.0, 5.0, 5.0, 9.0)
    record = PlanRecord(plan, ApplyMethod.REBALANCE, PlanState.SETTLING, before, 0.0)
    assert judge(record, after, 25.0).worse is not is_kept


def test_limits_are_of_the_load_that_it_begins_with() -> None:
    plan = as_of_now(proposed_at(30.0, 50.0), at_rate(3000.0), needing(200.0), SETTINGS)
    assert set(plan.cpu_limits_millicores.values()) == {200.0}


def test_what_was_approved_stays() -> None:
    shown = proposed_at(30.0, 50.0)
    plan = as_of_now(shown, at_rate(3000.0), needing(200.0), SETTINGS)
    assert (plan.target, plan.moves, plan.reason, plan.gain_percent) == (
        shown.target,
        shown.moves,
        shown.reason,
        shown.gain_percent,
    )
    assert as_of_now(shown, at_rate(30.0), needing(50.0), SETTINGS) == replace(shown, cpu_ceiling_millicores=1000.0)


def test_of_a_way_back_nothing_is_foretold() -> None:
    plan = proposed_at(30.0, 50.0)
    back = reverse_plan(plan, "back", 0.0)
    there = replace(at_rate(3000.0), assignment=plan.target)
    assert as_of_now(back, there, needing(200.0), SETTINGS) == back

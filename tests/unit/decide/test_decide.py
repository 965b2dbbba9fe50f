"""Plan or Hold: every rule, in order, with its sentence; urgent changes; what a plan says of itself."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    NOW_SECONDS,
    chain_topology,
    component_load,
    even_traffic,
    history,
    latency,
    placed,
    placement_settings,
    same_demand,
    slot,
    snapshot,
    supervisors,
)
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decide import DecisionMemory, assignment_hash, decide
from storm_operator.core.decision import Decision, Hold, HoldReason, Plan, PlanCause
from storm_operator.core.fresh_slots import on_fresh_slots
from storm_operator.core.model import Assignment, Executor, Infeasible, WorkerSlot
from storm_operator.core.placement.objective import cost_of
from storm_operator.core.plan_diff import diff_assignments
from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState
from storm_operator.core.settings import (
    ApplyMethod,
    ExcludedWindow,
    Mode,
    ResourceSettings,
    SchedulingSettings,
    Trigger,
)
from storm_operator.core.snapshot import ClusterSnapshot, Completeness
from storm_operator.core.wording import figure

LINE = chain_topology("line", ("spout", 1), ("a", 2), ("b", 1))
APART = placed(LINE, {"spout": "s1", "a": ["s2", "s3"], "b": "s1:6701"})
TOGETHER = Assignment(placed(LINE, {"spout": "s1", "a": "s1", "b": "s1"}))
PERIODS = history("line", {name: [component_load(100)] for name in ("spout", "a", "b")})


def picture(here: dict[Executor, WorkerSlot] | None = None, per_second: float = 1000) -> ClusterSnapshot:
    return snapshot(
        [LINE],
        supervisors(3),
        APART if here is None else here,
        rates=even_traffic(LINE, per_second),
        periods=PERIODS,
        topology_rates={"line": latency(10)},
    )


def decision(
    proposal: Assignment | Infeasible = TOGETHER,
    now: ClusterSnapshot | None = None,
    demand: Demand | None = None,
    memory: DecisionMemory | None = None,
    **scheduling: object,
) -> Decision:
    rules = dataclasses.replace(SchedulingSettings(minimum_periods=1), **scheduling)  # type: ignore[arg-type]
    return decide(
        now or picture(),
        demand or same_demand([LINE], 100),
        proposal,
        placement_settings([LINE], scheduling=rules),
        memory or DecisionMemory(),
        now_seconds=NOW_SECONDS,
        plan_id="p-1",
    )


def held(made: Decision, reason: HoldReason) -> str:
    assert isinstance(made, Hold), made
    assert made.reason is reason
    return made.message


def planned(made: Decision) -> Plan:
    assert isinstance(made, Plan), made
    return made


def test_what_could_wait_waits_until_it_is_known_whether_load_rises() -> None:
    held = decision(minimum_periods=3)
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.WARMING_UP
    assert "1 of 3 periods" in held.message
    assert isinstance(decision(minimum_periods=3, trigger=Trigger.POLICY), Plan)


def test_a_plan_tells_what_it_does_and_why() -> None:
    plan = planned(decision())
    _, a1, a2, b = LINE.executors
    assert [move.executor for move in plan.moves] == [a1, a2, b]
    assert plan.moves[0].source == slot("s2")
    assert plan.restarted_workers == tuple(slot(text) for text in ("s1:6700", "s1:6701", "s2:6700", "s3:6700"))
    assert plan.kept_workers == ()
    assert plan.cpu_limits_millicores == dict.fromkeys(LINE.executors, 100)
    assert plan.cpu_ceiling_millicores == ResourceSettings().ceiling_millicores
    assert plan.base == Assignment(APART)
    assert plan.target == TOGETHER
    assert (plan.before.inter_supervisor_tuples_per_second, plan.after.inter_supervisor_tuples_per_second) == (2000, 0)
    assert plan.after.complete_latency_ms == pytest.approx(6)
    assert "; moves 2 executors, changes only the port of 1 executor, restarts 1 worker; " in plan.reason
    assert "inter-supervisor traffic 2,000 -> 0 tuples/s" in plan.reason
    assert "supervisors in use 3 -> 1" in plan.reason
    assert plan.cause is PlanCause.SAVINGS
    assert plan.payback_seconds is not None
    assert f"pays back in {plan.payback_seconds:.0f} s" in plan.reason


def test_workers_with_the_same_executors_are_kept() -> None:
    a2 = LINE.executors[2]
    diff = diff_assignments(Assignment(APART), Assignment({**APART, a2: slot("s2")}))
    assert diff.kept_workers == (slot("s1:6700"), slot("s1:6701"))
    assert diff.restarted_workers == (slot("s2:6700"), slot("s3:6700"))
    assert [move.executor for move in diff.moves] == [a2]


def test_no_plan_in_an_excluded_window_however_much_it_would_gain() -> None:
    window = ExcludedWindow("0 0 1 1 *", 3600)  # NOW_SECONDS is in the first hour of 1970
    message = held(decision(excluded_windows=(window,)), HoldReason.EXCLUDED_WINDOW)
    assert "'0 0 1 1 *'" in message
    assert message.endswith(f"; the next may be in {(3600 - NOW_SECONDS) / 60:.0f} minutes")
    always = ExcludedWindow("* * * * *", 3600)
    message = held(decision(excluded_windows=(always,)), HoldReason.EXCLUDED_WINDOW)
    assert message.endswith("; nor in those that follow it without a gap")
    planned(decision(excluded_windows=(ExcludedWindow("0 5 * * *", 3600),)))


def test_hold_tells_what_the_best_known_placement_would_gain() -> None:
    small = decision(minimum_gain_percent=99.0)
    assert isinstance(small, Hold)
    assert small.gain_percent is not None
    assert 50.0 < small.gain_percent < 99.0
    none = decision(proposal=Assignment(APART))
    assert isinstance(none, Hold)
    assert none.gain_percent == 0.0


def test_without_a_measured_period_it_warms_up() -> None:
    held(decision(now=dataclasses.replace(picture(), history=())), HoldReason.WARMING_UP)


def test_what_keeps_it_from_being_measured_is_told() -> None:
    gaps = Completeness(4, (LINE.executors[0],), problems=("agent 10.77.0.12 did not answer",))
    message = held(decision(now=dataclasses.replace(picture(), history=(), completeness=gaps)), HoldReason.WARMING_UP)
    assert "agent 10.77.0.12 did not answer" in message


def test_incomplete_metrics_name_the_executors_and_the_problems() -> None:
    spout = LINE.executors[0]
    gaps = Completeness(4, (spout,), problems=("agent 10.77.0.12 did not answer",))
    message = held(decision(now=dataclasses.replace(picture(), completeness=gaps)), HoldReason.METRICS_INCOMPLETE)
    assert "75% of executors" in message
    assert "spout 1-1 of line" in message
    assert "agent 10.77.0.12 did not answer" in message
    planned(decision(now=dataclasses.replace(picture(), completeness=gaps), minimum_completeness=0.75))


def test_an_executor_without_demand_is_incomplete_too() -> None:
    known = dict.fromkeys(LINE.executors[1:], 100.0)
    assert "spout 1-1" in held(decision(demand=Demand(known, known)), HoldReason.METRICS_INCOMPLETE)


def test_stale_metrics_hold() -> None:
    old = dataclasses.replace(picture(), completeness=Completeness(4, age_seconds=31))
    assert "31 s old, at most 15 s" in held(decision(now=old), HoldReason.METRICS_STALE)


def test_observing_plans_nothing_and_recommending_does() -> None:
    held(decision(mode=Mode.OBSERVE), HoldReason.OBSERVE_ONLY)
    planned(decision(mode=Mode.RECOMMEND))


def test_infeasible_keeps_its_reason() -> None:
    assert held(decision(Infeasible("too small by 300")), HoldReason.INFEASIBLE) == "too small by 300"


def test_the_assignment_in_force_is_no_change() -> None:
    held(decision(Assignment(APART)), HoldReason.NO_CHANGE)


def test_a_policy_whose_time_has_not_come_has_not_answered() -> None:
    made = decide(
        picture(),
        same_demand([LINE], 100),
        Assignment(APART),
        placement_settings([LINE]),
        DecisionMemory(),
        now_seconds=NOW_SECONDS,
        plan_id="p-1",
        looks_in_seconds=40.0,
    )
    assert held(made, HoldReason.NOT_DUE) == "adaptive looks for something better in 40 s"


def test_what_was_rolled_back_is_not_tried_again() -> None:
    bad = DecisionMemory().with_known_bad(planned(decision()).target, NOW_SECONDS)
    assert "rolled back" in held(decision(memory=bad), HoldReason.KNOWN_BAD)


def test_the_like_of_it_in_other_slots_is_not_tried_either() -> None:
    proposed = planned(decision()).target
    (slot,) = set(proposed.slot_of.values())
    elsewhere = Assignment(dict.fromkeys(proposed.slot_of, WorkerSlot(f"not-{slot.supervisor_id}", slot.port + 1)))
    held(decision(memory=DecisionMemory().with_known_bad(elsewhere)), HoldReason.KNOWN_BAD)
    planned(decision(memory=DecisionMemory().with_known_bad(Assignment(APART))))


def test_memory_tells_the_very_target_that_was_bad_from_its_like_elsewhere() -> None:
    memory = DecisionMemory().with_known_bad(Assignment(dict.fromkeys(APART, WorkerSlot("gone", 1))))
    there = Assignment(dict.fromkeys(APART, WorkerSlot("fresh", 1)))
    assert memory.known_bad_like(there, NOW_SECONDS, exactly=False)
    assert not memory.known_bad_like(there, NOW_SECONDS, exactly=True)


DAY_SECONDS = 86_400.0


def test_what_was_rolled_back_may_be_tried_again_a_day_later() -> None:
    target = planned(decision()).target
    memory = DecisionMemory().with_known_bad(target, NOW_SECONDS - DAY_SECONDS + 3600.0)
    assert "may be tried again in 1.0 h" in held(decision(memory=memory), HoldReason.KNOWN_BAD)
    planned(decision(memory=DecisionMemory().with_known_bad(target, NOW_SECONDS - DAY_SECONDS)))


def test_what_a_person_refused_stands_though_it_is_rolled_back_later() -> None:
    target = planned(decision()).target
    memory = DecisionMemory().with_known_bad(target).with_known_bad(target, NOW_SECONDS - 9.0 * DAY_SECONDS)
    assert "refused by a person" in held(decision(memory=memory), HoldReason.KNOWN_BAD)


def test_what_was_refused_or_rolled_back_twice_is_remembered_once() -> None:
    memory = DecisionMemory().with_known_bad(Assignment(APART), 60.0).with_known_bad(Assignment(APART), 120.0)
    assert [known.rolled_back_at_seconds for known in memory.known_bad] == [120.0]
    memory = memory.with_known_bad(Assignment(APART)).with_known_bad(Assignment(APART), 180.0)
    assert [known.rolled_back_at_seconds for known in memory.known_bad] == [None]


def test_a_burst_of_bad_targets_pushes_out_none_of_the_same_day() -> None:
    memory = DecisionMemory().with_known_bad(Assignment(APART), 0.0)
    for port in range(100):
        memory = memory.with_known_bad(Assignment(dict.fromkeys(APART, WorkerSlot("s1", port))), 60.0 * port)
    assert memory.known_bad_like(Assignment(APART), 6000.0, exactly=True)
    later = memory.with_known_bad(Assignment({}), DAY_SECONDS + 3000.0)
    assert len(later.known_bad) == 50, "what is too old is not kept"


def test_cool_down() -> None:
    recent = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS - 20})
    assert "the last change is 20 s old" in held(decision(memory=recent), HoldReason.COOL_DOWN)
    planned(decision(memory=recent, cool_down_seconds=20.0))
    planned(decision(memory=DecisionMemory(changed_at_seconds={"another": NOW_SECONDS})))
    elsewhere = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS + 30.0})
    assert "the last change is 0 s old" in held(decision(memory=elsewhere), HoldReason.COOL_DOWN)
    set_back = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS + 3600.0})
    planned(decision(memory=set_back))


def test_change_of_before_the_clock_was_set_back_hides_no_younger_one() -> None:
    other = chain_topology("other", ("spout", 1), ("a", 1))
    apart = placed(other, {"spout": "s2:6701", "a": "s3:6701"})
    gathered = Assignment({**TOGETHER.slot_of, **placed(other, {"spout": "s1:6701", "a": "s1:6701"})})
    both = snapshot(
        [LINE, other],
        supervisors(3),
        APART | apart,
        rates=even_traffic(LINE, 1000) | even_traffic(other, 1000),
        periods=PERIODS,
    )
    changed_at = {"line": NOW_SECONDS + 3600.0, "other": NOW_SECONDS - 20.0}

    def decided(**scheduling: float) -> Decision:
        return decide(
            both,
            same_demand([LINE, other], 100),
            gathered,
            placement_settings([LINE, other], scheduling=SchedulingSettings(minimum_periods=1, **scheduling)),  # type: ignore[arg-type]
            DecisionMemory(changed_at_seconds=changed_at),
            now_seconds=NOW_SECONDS,
            plan_id="p-1",
        )

    assert "the last change is 20 s old" in held(decided(), HoldReason.COOL_DOWN)
    planned(decided(cool_down_seconds=20.0))


def test_cool_down_doubles_with_each_plan_of_the_topology_that_was_rolled_back_within_a_day() -> None:
    """Where many targets are as good as each other, the next is another one, and as bad as those before."""
    memory = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS - 100.0})
    planned(decision(memory=memory))
    for port, age_seconds in enumerate((DAY_SECONDS, 400.0, 100.0)):
        bad = Assignment(
            {executor: dataclasses.replace(slot, port=slot.port + port + 1) for executor, slot in APART.items()}
        )
        memory = memory.with_known_bad(bad, NOW_SECONDS - age_seconds)
    others = Assignment({dataclasses.replace(next(iter(APART)), topology_id="another"): WorkerSlot("gone", 9)})
    memory = memory.with_known_bad(others, NOW_SECONDS).with_known_bad(Assignment({**APART, **others.slot_of}))
    assert "may follow after 240 s, since 2 plans made things worse within a day" in held(
        decision(memory=memory), HoldReason.COOL_DOWN
    )
    planned(decision(memory=dataclasses.replace(memory, changed_at_seconds={"line": NOW_SECONDS - 240.0})))


def test_a_small_gain_holds_with_its_figures() -> None:
    message = held(decision(minimum_gain_percent=99.9), HoldReason.GAIN_TOO_SMALL)
    assert "tuple-ms/s" in message
    assert "moves 2 executors, changes only the port of 1 executor" in message


def test_among_several_topologies_it_is_said_whose_executors_would_move() -> None:
    """A hold is told of each topology of the group, and most of them would stay where they are."""
    rules = SchedulingSettings(minimum_periods=1, minimum_gain_percent=99.9)
    alone = placement_settings([LINE], scheduling=rules)
    told = [
        decide(
            picture(),
            same_demand([LINE], 100),
            TOGETHER,
            dataclasses.replace(alone, movable=alone.movable | others),
            DecisionMemory(),
            now_seconds=NOW_SECONDS,
            plan_id="p-1",
        )
        for others in (frozenset(), frozenset({"another"}))
    ]
    messages = [held(one, HoldReason.GAIN_TOO_SMALL) for one in told]
    assert ["restarts 1 worker) changes" in one for one in messages] == [True, False]
    assert "restarts 1 worker of line) changes" in messages[1]


def test_a_gain_that_misses_the_minimum_by_little_does_not_read_as_if_it_met_it() -> None:
    gain = planned(decision()).gain_percent
    assert gain is not None
    message = held(decision(minimum_gain_percent=math.floor(gain) + 0.95), HoldReason.GAIN_TOO_SMALL)
    assert f"(-{figure(gain)}%)" in message
    assert f"a fall of {math.floor(gain)}.95% or more is asked for" in message


def test_a_loss_holds_whatever_the_minimum() -> None:
    backwards = decision(Assignment(APART), picture(dict(TOGETHER.slot_of)), minimum_gain_percent=-1e9)
    held(backwards, HoldReason.GAIN_TOO_SMALL)


def test_a_long_payback_holds() -> None:
    paying = planned(decision()).payback_seconds
    assert paying is not None
    message = held(decision(maximum_payback_seconds=paying / 2), HoldReason.PAYBACK_TOO_LONG)
    assert f"in {paying:.0f} s" in message


def test_under_trigger_policy_neither_gain_nor_payback_is_asked_for() -> None:
    backwards = decision(Assignment(APART), picture(dict(TOGETHER.slot_of)), trigger=Trigger.POLICY)
    assert planned(backwards).payback_seconds is None
    assert planned(backwards).cause is PlanCause.POLICY
    planned(decision(minimum_gain_percent=100.0, maximum_payback_seconds=0.0, trigger=Trigger.POLICY))


def test_under_trigger_policy_all_other_rules_stay() -> None:
    held(decision(TOGETHER, picture(dict(TOGETHER.slot_of)), trigger=Trigger.POLICY), HoldReason.NO_CHANGE)
    recent = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS - 20})
    held(decision(memory=recent, trigger=Trigger.POLICY), HoldReason.COOL_DOWN)
    bad = DecisionMemory().with_known_bad(planned(decision()).target)
    held(decision(memory=bad, trigger=Trigger.POLICY), HoldReason.KNOWN_BAD)
    window = ExcludedWindow("0 0 1 1 *", 3600)
    held(decision(excluded_windows=(window,), trigger=Trigger.POLICY), HoldReason.EXCLUDED_WINDOW)
    unmeasured = dataclasses.replace(picture(), history=())
    held(decision(now=unmeasured, trigger=Trigger.POLICY), HoldReason.WARMING_UP)


def test_payback_is_the_cost_of_the_restarts_over_what_is_saved_each_second() -> None:
    rules = placement_settings([LINE])
    demand = same_demand([LINE], 100)
    before, after = (cost_of(picture(), a, demand, rules) for a in (Assignment(APART), TOGETHER))
    one_off = after.restarts * rules.scheduling.expected_life_seconds
    assert planned(decision()).payback_seconds == pytest.approx(one_off / (before.running - after.running))


def test_slower_restarts_take_longer_to_pay_back() -> None:
    def payback(restart_seconds: float) -> float:
        rules = placement_settings([LINE], restart_seconds=restart_seconds)
        made = decide(
            picture(), same_demand([LINE], 100), TOGETHER, rules, DecisionMemory(), now_seconds=0, plan_id="p"
        )
        paid = planned(made).payback_seconds
        assert paid is not None
        return paid

    assert payback(16) == pytest.approx(2 * payback(8))


def test_overload_waits_for_nothing() -> None:
    """1400 millicores on s1: out they go, though traffic rises and the last plan is a second old."""
    here = dict(TOGETHER.slot_of)
    spread = Assignment({**here, LINE.executors[1]: slot("s2"), LINE.executors[2]: slot("s2")})
    recent = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS - 1})
    plan = planned(decision(spread, picture(here), same_demand([LINE], 350), recent, minimum_gain_percent=100.0))
    assert plan.reason.startswith("supervisor 10.77.0.11 needs 1,400 of 1,000 millicores; moves 2 executors")
    assert plan.cause is PlanCause.OVERLOAD
    assert plan.before.overloaded_millicores > plan.after.overloaded_millicores == 0


@pytest.mark.parametrize(
    ("millicores", "words", "cause"),
    [
        (100.0, "needs 400 of 0 millicores", PlanCause.OVERLOAD),
        (0.0, "will need 800 millicores as its load rises, 0 may be filled", PlanCause.COMING_OVERLOAD),
    ],
    ids=["now", "as load rises"],
)
def test_a_supervisor_without_any_cpu_is_overloaded_by_whoever_is_on_it(
    millicores: float, words: str, cause: PlanCause
) -> None:
    first, *others = supervisors(3)
    without = (dataclasses.replace(first, cpu_capacity_millicores=0.0), *others)
    seen = dataclasses.replace(picture(dict(TOGETHER.slot_of)), supervisors=without)
    away = Assignment(placed(LINE, {"spout": "s2", "a": "s2", "b": "s2"}))
    needs = same_demand([LINE], millicores)
    rising = dataclasses.replace(needs, coming_millicores=dict.fromkeys(needs.millicores, 200.0))
    plan = planned(decision(away, seen, rising))
    assert plan.reason.startswith(f"supervisor 10.77.0.11 {words}; moves 4 executors")
    assert plan.cause is cause


def test_room_that_is_missing_is_no_overload() -> None:
    """700 of 1,000 millicores are needed on s1 afterwards; room for twice as much there is not."""
    needs = same_demand([LINE], 175)
    wide = dataclasses.replace(needs, room_millicores=dict.fromkeys(needs.millicores, 350.0))
    here = {**TOGETHER.slot_of, LINE.executors[1]: slot("s2")}
    plan = planned(decision(TOGETHER, picture(here), wide))
    assert plan.cause is PlanCause.SAVINGS
    assert plan.before.overloaded_millicores == plan.after.overloaded_millicores == 0.0


def test_an_overload_that_a_rise_will_bring_is_named_before_it_is_there() -> None:
    """700 of 1,000 millicores are needed on s1, and twice as much will be."""
    here = dict(TOGETHER.slot_of)
    spread = Assignment({**here, LINE.executors[1]: slot("s2"), LINE.executors[2]: slot("s2")})
    needs = same_demand([LINE], 175)
    rising = dataclasses.replace(needs, coming_millicores=dict.fromkeys(needs.millicores, 350.0))
    plan = planned(decision(spread, picture(here), rising))
    assert plan.reason.startswith(
        "supervisor 10.77.0.11 will need 1,400 millicores as its load rises, 950 may be filled;"
    )
    assert plan.cause is PlanCause.COMING_OVERLOAD
    recent = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS - 1})
    held(decision(spread, picture(here), rising, recent), HoldReason.COOL_DOWN)


@pytest.mark.parametrize("growth", [1.0, 2.0], ids=["now", "as load rises"])
def test_the_same_needs_added_up_in_another_order_are_no_relief(growth: float) -> None:
    """Two workers of a full supervisor become one: its sum is less by a rounding error, and nothing is relieved."""
    spout, one, two, end = LINE.executors
    here = {spout: slot("s1"), two: slot("s1"), one: slot("s1:6701"), end: slot("s1:6701")}
    needed = {spout: 399.254, one: 385.994, two: 312.088, end: 333.27}
    now = {executor: need / growth for executor, need in needed.items()}
    demand = Demand(now, now, coming_millicores=needed if growth > 1.0 else {})
    plan = planned(decision(TOGETHER, picture(here), demand, trigger=Trigger.POLICY))
    assert plan.cause is PlanCause.SAVINGS
    assert plan.reason.startswith("cost ")


def test_a_supervisor_that_is_measured_full_is_overloaded() -> None:
    here = dict(TOGETHER.slot_of)
    spread = Assignment({**here, LINE.executors[3]: slot("s2")})
    full = dataclasses.replace(picture(here), supervisor_cpu_millicores={"s1": 980})
    assert "uses 980 of 1,000" in planned(decision(spread, full, same_demand([LINE], 100))).reason
    calm = dataclasses.replace(picture(here), supervisor_cpu_millicores={"s1": 500})
    held(decision(spread, calm, same_demand([LINE], 100)), HoldReason.GAIN_TOO_SMALL)


def test_a_full_supervisor_that_is_hardly_relieved_can_wait() -> None:
    """By less than a twentieth of it, which measuring hardly tells apart: at saturation one is always full."""
    here = dict(TOGETHER.slot_of)
    spread = Assignment({**here, LINE.executors[3]: slot("s2")})
    full = dataclasses.replace(picture(here), supervisor_cpu_millicores={"s1": 980})
    recent = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS - 1})
    planned(decision(spread, full, same_demand([LINE], 60), recent))
    held(decision(spread, full, same_demand([LINE], 40), recent), HoldReason.COOL_DOWN)


def test_overload_that_is_hardly_less_in_all_can_wait() -> None:
    """1400 millicores on s1 become 1050, and as much is too much on s2."""
    other = chain_topology("other", ("spout", 1))
    here = {**TOGETHER.slot_of, **placed(other, {"spout": "s2:6703"})}
    needs = {**dict.fromkeys(LINE.executors, 350.0), other.executors[0]: 930.0}
    both = dataclasses.replace(picture(), topologies=(LINE, other), assignment=Assignment(here))
    spread = Assignment({**here, LINE.executors[3]: slot("s2")})
    recent = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS - 1})
    held(decision(spread, both, Demand(needs, needs), recent), HoldReason.COOL_DOWN)
    needs[other.executors[0]] = 600.0
    planned(decision(spread, both, Demand(needs, needs), recent))


def test_filling_the_headroom_is_a_reason_but_can_wait() -> None:
    here = dict(TOGETHER.slot_of)
    spread = Assignment({**here, LINE.executors[3]: slot("s2")})
    plan = planned(decision(spread, picture(here), same_demand([LINE], 240)))
    assert plan.reason.startswith("supervisor 10.77.0.11 needs 960 millicores, 950 of 1,000 may be filled")
    assert plan.cause is PlanCause.LITTLE_HEADROOM
    recent = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS - 1})
    held(decision(spread, picture(here), same_demand([LINE], 240), recent), HoldReason.COOL_DOWN)


def test_filling_the_headroom_of_several_supervisors_can_wait_too() -> None:
    """990 of 1,000 millicores on each of two: by more than a twentieth of one are both together relieved."""
    spout, one, two, end = LINE.executors
    here = {spout: slot("s1"), one: slot("s1"), two: slot("s2"), end: slot("s2")}
    spread = Assignment({**here, one: slot("s3"), two: slot("s3")})
    needs = {spout: 930.0, one: 60.0, two: 60.0, end: 930.0}
    demand = Demand(needs, needs)
    plan = planned(decision(spread, picture(here), demand, trigger=Trigger.POLICY))
    assert plan.cause is PlanCause.LITTLE_HEADROOM
    recent = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS - 1})
    held(decision(spread, picture(here), demand, recent, trigger=Trigger.POLICY), HoldReason.COOL_DOWN)


def test_the_supervisor_that_a_plan_names_is_one_that_it_relieves() -> None:
    """Another one is fuller, and stays so."""
    spout, one, two, end = LINE.executors
    here = {spout: slot("s1"), one: slot("s1"), two: slot("s2"), end: slot("s2")}
    needs = {spout: 480.0, one: 480.0, two: 490.0, end: 500.0}
    away = Assignment({**here, one: slot("s3")})
    plan = planned(decision(away, picture(here), Demand(needs, needs), trigger=Trigger.POLICY))
    assert plan.reason.startswith("supervisor 10.77.0.11 needs 960 millicores, 950 of 1,000 may be filled; ")


def test_overload_that_only_changes_place_is_no_relief() -> None:
    here = dict(TOGETHER.slot_of)
    elsewhere = Assignment({executor: slot("s2") for executor in here})
    recent = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS - 1})
    held(decision(elsewhere, picture(here), same_demand([LINE], 350), recent), HoldReason.COOL_DOWN)


def test_executors_without_a_place_wait_for_nothing() -> None:
    here = {executor: at for executor, at in TOGETHER.slot_of.items() if executor.component != "b"}
    recent = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS})
    assert planned(decision(now=picture(here), memory=recent)).reason.startswith("1 executor without a place")


def test_executors_of_a_lost_supervisor_wait_for_nothing() -> None:
    here = {**TOGETHER.slot_of, LINE.executors[3]: slot("gone")}
    recent = DecisionMemory(changed_at_seconds={"line": NOW_SECONDS})
    plan = planned(decision(now=picture(here), memory=recent))
    assert plan.reason.startswith("1 executor without a place")
    assert plan.cause is PlanCause.WITHOUT_PLACE


def test_unmanaged_executors_need_no_demand() -> None:
    other = chain_topology("other", ("spout", 1))
    stay = placed(other, {"spout": "s2:6703"})
    both = dataclasses.replace(picture(), topologies=(LINE, other), assignment=Assignment(APART | stay))
    planned(decision(Assignment({**TOGETHER.slot_of, **stay}), both))


def test_only_topologies_that_change_are_in_the_plan() -> None:
    other = chain_topology("other", ("spout", 1))
    stay = placed(other, {"spout": "s2:6703"})
    both = dataclasses.replace(picture(), topologies=(LINE, other), assignment=Assignment(APART | stay))
    made = decide(
        both,
        same_demand([LINE, other], 100),
        Assignment({**TOGETHER.slot_of, **stay}),
        placement_settings([LINE, other]),
        DecisionMemory(),
        now_seconds=NOW_SECONDS,
        plan_id="p",
    )
    plan = planned(made)
    assert plan.topology_ids == ("line",)
    assert {e.topology_id for e in (*plan.target.slot_of, *plan.cpu_limits_millicores)} == {"line"}


OTHER = chain_topology("other", ("spout", 1), ("bolt", 1))


def beside_other(theirs: dict[Executor, WorkerSlot], scheduling: SchedulingSettings, needed: float = 100.0) -> Decision:
    """About bringing `line` together, beside `other` with a thousand times its traffic, which must not move and whose
    bolt needs so much CPU."""
    shared = snapshot(
        [LINE, OTHER],
        supervisors(3),
        APART | theirs,
        rates=even_traffic(LINE, 100) | even_traffic(OTHER, 1e5),
        periods=PERIODS,
    )
    return decide(
        shared,
        same_demand([LINE, OTHER], 100, bolt=needed),
        Assignment({**TOGETHER.slot_of, **theirs}),
        placement_settings([LINE], scheduling=scheduling),
        DecisionMemory(),
        now_seconds=NOW_SECONDS,
        plan_id="p",
    )


def test_others_heavy_traffic_does_not_hide_a_gain() -> None:
    heavy = placed(OTHER, {"spout": "s2:6703", "bolt": "s3:6703"})
    rules = dataclasses.replace(
        SchedulingSettings(minimum_periods=1),
        maximum_payback_seconds=1e9,
        weights=dataclasses.replace(SchedulingSettings().weights, supervisor_in_use=0.0),
    )
    assert "(-100%)" in planned(beside_other(heavy, rules)).reason


@pytest.mark.parametrize("needed", [100.0, 4900.0], ids=["enough CPU", "too little CPU"])
def test_neither_the_supervisors_that_others_use_nor_their_overload_hides_a_gain(needed: float) -> None:
    theirs = placed(OTHER, {"spout": "s3:6703", "bolt": "s3:6703"})
    made = beside_other(theirs, SchedulingSettings(minimum_periods=1), needed)
    assert (planned(made).gain_percent or 0.0) > 50.0


def test_the_hash_is_stable_and_tells_assignments_apart() -> None:
    assert assignment_hash(TOGETHER) == assignment_hash(Assignment(dict(reversed(list(TOGETHER.slot_of.items())))))
    assert assignment_hash(TOGETHER) != assignment_hash(Assignment(APART))
    assert assignment_hash(Assignment({})) == "e3b0c44298fc1c14"


def record(plan: Plan, state: PlanState, **known: float) -> PlanRecord:
    nothing = Outcome(None, None, None, None, None)
    return PlanRecord(plan, ApplyMethod.REBALANCE, state, nothing, started_at_seconds=NOW_SECONDS, **known)  # type: ignore[arg-type]


def test_memory_learns_from_records() -> None:
    plan = planned(decision())
    empty = DecisionMemory()
    assert empty.restart_seconds == 8.0
    assert empty.with_record(record(plan, PlanState.PROPOSED)) == empty
    memory = empty.with_record(record(plan, PlanState.APPLYING))
    assert memory.changed_at_seconds == {"line": NOW_SECONDS}
    settling = record(plan, PlanState.SETTLING, in_force_at_seconds=NOW_SECONDS + 3, seconds_to_running=5.0)
    memory = memory.with_record(settling).with_record(settling)
    assert memory.changed_at_seconds == {"line": NOW_SECONDS + 3}
    assert memory.measured_restarts == (("p-1", 5.0),)
    later = dataclasses.replace(settling, plan=dataclasses.replace(plan, id="p-2"), seconds_to_running=9.0)
    assert memory.with_record(later).restart_seconds == 7.0


def test_failures_in_a_row_are_counted_once_each_and_forgotten_once_a_plan_is_in_force() -> None:
    plan = planned(decision())
    other = dataclasses.replace(plan, id="p-2")
    once = DecisionMemory().with_failure(plan, NOW_SECONDS).with_failure(plan, NOW_SECONDS + 5)
    assert once.setback_of(["line"], NOW_SECONDS + 9.0) is not None
    assert once.setback_of(["line"], NOW_SECONDS + 10.0) is None
    assert once.setback_of(["elsewhere"], NOW_SECONDS) is None
    begun = once.with_record(record(other, PlanState.APPLYING))
    twice = begun.with_record(record(other, PlanState.FAILED)).with_failure(other, NOW_SECONDS)
    assert twice.setback_of(["line"], NOW_SECONDS + 19.0) is not None
    given_up = twice.with_record(record(other, PlanState.EXPIRED))
    assert given_up.setbacks == twice.setbacks
    settling = begun.with_record(record(other, PlanState.SETTLING, in_force_at_seconds=NOW_SECONDS))
    assert settling.setbacks == {}


@pytest.mark.slow
@given(st.data())
def test_any_decision_is_consistent_and_deciding_again_holds(data: st.DataObject) -> None:
    slots = [place for machine in supervisors(3, slots=2) for place in machine.slots]
    base = {e: data.draw(st.sampled_from(slots)) for e in LINE.executors}
    target = Assignment({e: data.draw(st.sampled_from(slots)) for e in LINE.executors})
    each = data.draw(st.sampled_from([100.0, 400.0]))
    demand = same_demand([LINE], each)
    made = decision(target, picture(base), demand)
    assert made == decision(target, picture(base), demand)
    if isinstance(made, Plan):
        target = on_fresh_slots(Assignment(base), target, supervisors(3))
        assert Assignment({**base, **{move.executor: move.target for move in made.moves}}) == target
        assert not set(made.restarted_workers) & set(made.kept_workers)
        assert set(made.restarted_workers) | set(made.kept_workers) == set(base.values()) | set(target.slot_of.values())
    fullest = max(Counter(slot.supervisor_id for slot in target.slot_of.values()).values())
    reason = HoldReason.TOO_LITTLE_CAPACITY if fullest * each > 950.0 else HoldReason.NO_CHANGE
    held(decision(target, picture(dict(target.slot_of)), demand), reason)


def test_a_topology_that_came_lately_waits_for_periods_of_its_own() -> None:
    """Others have been measured for long; its first period is that of JVMs that start."""
    others = dataclasses.replace(PERIODS[0], components={("others", "spout"): component_load(100)})
    now = dataclasses.replace(picture(), history=(*[others] * 10, *PERIODS))
    assert "1 of 3 periods" in held(decision(now=now, minimum_periods=3), HoldReason.WARMING_UP)
    planned(decision(now=dataclasses.replace(now, history=(others, *PERIODS * 3)), minimum_periods=3))

"""Did a plan help: what speaks against it, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storm_operator.core.decision import Plan, PlanCause, Prediction
from storm_operator.core.direct_plan import reverse_plan
from storm_operator.core.groups import Group
from storm_operator.core.model import Assignment
from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState
from storm_operator.core.settings import (
    ApplyMethod,
    ApprovalMode,
    ApprovalSettings,
    Mode,
    ResourceSettings,
    SchedulingSettings,
)
from storm_operator.core.verify import judge, why_no_verdict, why_not_verified
from storm_operator.core.way_back import why_it_waits, why_not_to_be_moved

MARGIN_PERCENT = 25.0
BEFORE = Outcome(800.0, 300.0, 9.0, 8.0, 20.0)


def record(
    before: Outcome = BEFORE, predicted_traffic: float = 100.0, predicted_ms: float | None = 3.0, relief: float = 0.0
) -> PlanRecord:
    empty = Assignment({})
    after = Prediction(predicted_traffic, predicted_traffic, 1.0, 1, 0.0, predicted_ms)
    plan = Plan(
        id="p-1",
        created_at_seconds=0.0,
        policy="adaptive",
        reason="",
        topology_ids=("t",),
        base=empty,
        target=empty,
        moves=(),
        restarted_workers=(),
        kept_workers=(),
        cpu_limits_millicores={},
        before=Prediction(800.0, 800.0, 1.0, 2, relief, 8.0),
        after=after,
    )
    return PlanRecord(plan, ApplyMethod.REBALANCE, PlanState.SETTLING, before, 0.0)


def measured(traffic: float | None = 100.0, p50: float | None = 3.0, acked: float | None = 300.0) -> Outcome:
    return Outcome(traffic, acked, p50, p50, p50)


def test_plan_that_keeps_its_word_is_verified() -> None:
    assert not judge(record(), measured(), MARGIN_PERCENT).worse


@pytest.mark.parametrize(
    ("outcome", "word"),
    [(measured(traffic=1200.0), "traffic 1,200"), (measured(p50=30.0), "latency 30 ms")],
)
def test_plan_that_made_a_figure_worse_is_not(outcome: Outcome, word: str) -> None:
    verdict = judge(record(), outcome, MARGIN_PERCENT)
    assert verdict.worse
    assert word in verdict.message


def test_worse_than_promised_but_no_worse_than_before_is_kept() -> None:
    assert not judge(record(), measured(traffic=700.0, p50=7.0), MARGIN_PERCENT).worse


@pytest.mark.parametrize(
    ("predicted_ms", "p50", "worse"),
    [((60.0, 55.0), 50.0, True), ((60.0, 100.0), 50.0, False), ((60.0, 100.0), 90.0, True), ((None, 55.0), 50.0, True)],
)
def test_the_median_may_rise_by_what_was_predicted_of_the_mean_and_not_to_the_mean(
    predicted_ms: tuple[float | None, float], p50: float, worse: bool
) -> None:
    told = record(Outcome(800.0, 300.0, 60.0, 10.0, 300.0), predicted_ms=predicted_ms[1])
    told = replace(told, plan=replace(told.plan, before=replace(told.plan.before, complete_latency_ms=predicted_ms[0])))
    assert judge(told, Outcome(100.0, 300.0, 200.0, p50, 900.0), MARGIN_PERCENT).worse is worse


@pytest.mark.parametrize(
    ("predicted_ms", "acked", "why"),
    [
        (
            9.5,
            300.0,
            "; up to 18.3 ms of that latency are let pass: 1.5 ms more were predicted, and 25% and 2 ms beyond",
        ),
        (9.5, 600.0, "; with more load that latency is not held against it; acked tuples changed by +100% meanwhile"),
    ],
)
def test_why_a_median_that_is_worse_by_more_than_the_margin_was_let_pass_is_told(
    predicted_ms: float, acked: float, why: str
) -> None:
    told = record(Outcome(800.0, 300.0, 15.4, 11.5, 20.0), predicted_ms=predicted_ms)
    verdict = judge(told, Outcome(100.0, acked, 16.5, 18.2, 30.0), MARGIN_PERCENT)
    assert not verdict.worse
    assert f"; median complete latency 11.5 -> 18.2 ms{why}" in verdict.message


@pytest.mark.parametrize(
    ("p50", "why"), [(1.25, ""), (3.0, "; up to 3.3 ms of that latency are let pass: 25% and 2 ms")]
)
def test_of_a_median_within_the_margin_no_more_is_said_and_noise_is_no_rise(p50: float, why: str) -> None:
    quick = record(replace(BEFORE, complete_latency_p50_ms=1.0))
    message = judge(quick, measured(p50=p50), MARGIN_PERCENT).message
    assert message.partition(" ms")[2] == (f"{why} beyond" if why else "")


def test_plan_that_relieves_an_overload_is_not_taken_back_for_the_backlog_that_it_works_off() -> None:
    before = Outcome(0.0, 300.0, 1.0, 1.0, 2.0)
    backlog = measured(traffic=1735.0, p50=12_000.0)
    assert not judge(record(before, predicted_traffic=500.0, relief=400.0), backlog, MARGIN_PERCENT).worse
    assert judge(record(before, predicted_traffic=500.0), backlog, MARGIN_PERCENT).worse


@pytest.mark.parametrize(
    ("cause", "is_kept"),
    [
        (PlanCause.OVERLOAD, True),
        (PlanCause.LITTLE_HEADROOM, True),
        (PlanCause.COMING_OVERLOAD, True),
        (PlanCause.SAVINGS, False),
    ],
)
def test_what_relieves_is_told_by_its_cause(cause: PlanCause, is_kept: bool) -> None:
    for relief in (0.0, 400.0):
        told = record(relief=relief)
        told = replace(told, plan=replace(told.plan, cause=cause))
        assert judge(told, measured(traffic=5000.0, p50=900.0), MARGIN_PERCENT).worse is not is_kept


@pytest.mark.parametrize(("p50", "is_kept"), [(8.0, True), (900.0, False)])
def test_what_executors_send_that_had_no_place_is_not_blamed_on_the_plan_that_gave_them_one(
    p50: float, is_kept: bool
) -> None:
    """Nobody counted or predicted it; latency was measured before as after."""
    told = record(replace(BEFORE, inter_supervisor_tuples_per_second=100.0))
    told = replace(told, plan=replace(told.plan, cause=PlanCause.WITHOUT_PLACE))
    assert judge(told, measured(traffic=500.0, p50=p50), MARGIN_PERCENT).worse is not is_kept


def test_load_that_grew_meanwhile_is_not_blamed_on_the_plan() -> None:
    assert not judge(record(), measured(traffic=1500.0, p50=30.0, acked=600.0), MARGIN_PERCENT).worse


@pytest.mark.parametrize(
    ("acked", "cause", "told"),
    [
        (25.0, PlanCause.SAVINGS, "; acked tuples changed by -92% meanwhile, "),
        (25.0, PlanCause.OVERLOAD, "; acked tuples changed by -92% meanwhile, "),
        (600.0, PlanCause.SAVINGS, "; acked tuples changed by +100% meanwhile, "),
        (600.0, PlanCause.OVERLOAD, ""),
        (600.0, PlanCause.WITHOUT_PLACE, ""),
        (25.0, PlanCause.WITHOUT_PLACE, "; acked tuples changed by -92% meanwhile, "),
        (310.0, PlanCause.SAVINGS, ""),
        (None, PlanCause.SAVINGS, ""),
    ],
)
def test_another_load_than_before_is_told_but_where_it_may_be_what_the_plan_brought(
    acked: float | None, cause: PlanCause, told: str
) -> None:
    of = record()
    message = judge(replace(of, plan=replace(of.plan, cause=cause)), measured(acked=acked), MARGIN_PERCENT).message
    assert told in message
    assert ("meanwhile" in message) is bool(told)


@pytest.mark.parametrize("outcome", [measured(traffic=None, p50=None), measured(acked=None, traffic=9999.0, p50=999.0)])
def test_unknown_speaks_for_nobody(outcome: Outcome) -> None:
    assert not judge(record(), outcome, MARGIN_PERCENT).worse


@pytest.mark.parametrize("figure", ["inter_supervisor_tuples_per_second", "complete_latency_p50_ms", "waiting_ms"])
def test_what_was_unknown_before_speaks_for_nobody_either(figure: str) -> None:
    """One executor without a place leaves the traffic unknown, though the throughput is known."""
    before = replace(BEFORE, waiting_ms=0.0)
    worse = replace(before, **{figure: 99_999.0})
    assert judge(record(before), worse, MARGIN_PERCENT).worse
    assert not judge(record(replace(before, **{figure: None})), worse, MARGIN_PERCENT).worse


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (measured(traffic=None), "figures are unknown"),
        (measured(acked=None), "figures are unknown"),
        (measured(traffic=0.0, p50=None, acked=0.0), "no tuple is acked any more, 300 a second were before"),
        (measured(traffic=10.0, p50=None, acked=15.0), "latency is unknown, and was known before"),
    ],
)
def test_topology_that_stopped_or_is_not_seen_gives_no_verdict(outcome: Outcome, word: str) -> None:
    assert word in why_no_verdict(record(), outcome)


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        (record(), measured()),
        (record(), measured(acked=15.0)),
        (record(before=Outcome(800.0, 0.0, None, None, None)), measured(p50=None, acked=0.0)),
        (record(before=Outcome(800.0, None, None, None, None)), measured(p50=None, acked=0.0)),
        (record(before=Outcome(800.0, 300.0, None, None, None)), measured(p50=None)),
        (record(relief=400.0), measured(p50=None)),
        (record(before=Outcome(None, 300.0, 9.0, 8.0, 20.0)), measured(traffic=None)),
        (record(before=Outcome(100.0, None, None, None, None, 900.0)), Outcome(90.0, None, None, None, None, 900.0)),
        (replace(record(), rollback_of="p-0"), measured(p50=None, acked=0.0)),
    ],
    ids=[
        "all known",
        "less",
        "idle before",
        "unknown before",
        "no latency before",
        "relief",
        "no traffic before",
        "only emitted before",
        "way back",
    ],
)
def test_all_else_gives_one(told: PlanRecord, outcome: Outcome) -> None:
    assert why_no_verdict(told, outcome) == ""


@pytest.mark.parametrize("now", [measured(traffic=None), measured(acked=None)])
def test_where_no_load_was_known_before_all_figures_are_waited_for(now: Outcome) -> None:
    assert why_no_verdict(record(Outcome(None, None, None, None, None)), now) == "its figures are unknown"


def test_verdict_tells_throughput() -> None:
    assert "throughput 300 -> 15 tuples/s" in judge(record(), measured(acked=15.0), MARGIN_PERCENT).message


def test_noise_of_small_figures_is_no_reason() -> None:
    quiet = record(before=Outcome(0.0, 300.0, 1.0, 1.0, 2.0), predicted_traffic=0.0, predicted_ms=1.0)
    assert not judge(quiet, measured(traffic=15.0, p50=2.9), MARGIN_PERCENT).worse


def group(*topology_ids: str, mode: Mode = Mode.ENFORCE, approval: ApprovalMode = ApprovalMode.AUTO) -> Group:
    return Group(SchedulingSettings(mode=mode, approval=ApprovalSettings(approval)), ResourceSettings(), topology_ids)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ((group("a", "b", "c"),), ""),
        ((group("a"), group("b", mode=Mode.RECOMMEND)), ""),
        ((group("a"), group("c")), "b is managed by nobody by now"),
        ((), "a, b is managed by nobody by now"),
        ((group("a"), group("b", mode=Mode.OBSERVE)), "mode of b is Observe by now"),
        ((group("b", mode=Mode.OBSERVE), group("a")), "mode of b is Observe by now"),
        ((group("a", "b"), group("c", mode=Mode.OBSERVE)), ""),
    ],
)
def test_plan_is_taken_back_where_all_that_it_moved_may_be_moved(groups: tuple[Group, ...], words: str) -> None:
    assert why_not_to_be_moved(of_two(), groups) == words


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ((group("a", "b"), group("c", mode=Mode.RECOMMEND)), ""),
        ((group("a"), group("b", mode=Mode.RECOMMEND)), "mode is Recommend: plans are carried out when approved"),
        (
            (group("a", approval=ApprovalMode.MANUAL), group("b")),
            "approval is Manual: plans are carried out when approved",
        ),
    ],
)
def test_plan_is_taken_back_by_itself_where_none_of_its_topologies_waits_for_a_person(
    groups: tuple[Group, ...], words: str
) -> None:
    assert why_it_waits(of_two(), groups) == words


def test_of_many_topologies_that_may_not_be_moved_the_first_are_named() -> None:
    many = tuple(f"t{number}" for number in range(8))
    plan = replace(record().plan, topology_ids=many)
    assert why_not_to_be_moved(plan, ()) == "t0, t1, t2, t3, t4 and 3 more is managed by nobody by now"
    watched = (group(*many, mode=Mode.OBSERVE),)
    assert why_not_to_be_moved(plan, watched) == "mode of t0, t1, t2, t3, t4 and 3 more is Observe by now"


def of_two() -> Plan:
    return replace(record().plan, topology_ids=("a", "b"))


def test_way_back_leads_to_where_the_plan_began() -> None:
    plan = replace(record().plan, base=Assignment({}), target=Assignment({}))
    back = reverse_plan(plan, "p-2", 5.0)
    assert (back.base, back.target) == (plan.target, plan.base)
    assert "p-1" in back.reason
    assert back.cause is PlanCause.ROLLBACK


UNACKED = Outcome(100.0, 0.0, None, None, None, emitted_per_second=1000.0, waiting_ms=20.0)
"""Of topologies that ack nothing."""


def test_several_topologies_are_not_praised_while_the_latency_of_one_is_unknown() -> None:
    stopped = ("stopped-1-1",)
    why = "the complete latency of stopped is unknown, and was known before"
    assert why_not_verified(record(), measured(), stopped, MARGIN_PERCENT) == why
    assert why_not_verified(record(), measured(), (), MARGIN_PERCENT) == ""
    assert why_not_verified(record(), measured(p50=999.0), stopped, MARGIN_PERCENT) == "", "it is worse all the same"
    back = replace(record(), rollback_of="p-0")
    relief = replace(record(), plan=replace(record().plan, cause=PlanCause.OVERLOAD))
    assert {why_not_verified(one, measured(), stopped, MARGIN_PERCENT) for one in (back, relief)} == {""}


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (replace(UNACKED, inter_supervisor_tuples_per_second=900.0), "traffic 900 tuples/s, at most 100 expected"),
        (replace(UNACKED, waiting_ms=9000.0), "tuples wait 9.0 s in queues, 0.0 s before"),
        (replace(UNACKED, emitted_per_second=100.0, waiting_ms=90_000.0), "tuples wait 90.0 s in queues"),
    ],
    ids=["traffic", "waiting", "held back by full queues"],
)
def test_topology_that_acks_nothing_is_judged_by_what_is_emitted(outcome: Outcome, word: str) -> None:
    told = record(UNACKED)
    assert why_no_verdict(told, outcome) == ""
    verdict = judge(told, outcome, MARGIN_PERCENT)
    assert verdict.worse
    assert word in verdict.message


@pytest.mark.parametrize(
    "outcome",
    [
        UNACKED,
        replace(UNACKED, inter_supervisor_tuples_per_second=190.0, emitted_per_second=2000.0, waiting_ms=9000.0),
        replace(UNACKED, waiting_ms=900.0),
        replace(UNACKED, waiting_ms=None),
    ],
    ids=["the same", "more is emitted", "noise", "queues unknown"],
)
def test_topology_that_acks_nothing_is_not_taken_back_without_a_figure_that_tells(outcome: Outcome) -> None:
    verdict = judge(record(UNACKED), outcome, MARGIN_PERCENT)
    assert not verdict.worse
    assert "nothing is acked, emitted 1,000 -> " in verdict.message


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (replace(UNACKED, emitted_per_second=0.0), "no tuple is emitted any more, 1,000 a second were before"),
        (replace(UNACKED, emitted_per_second=None), "figures are unknown"),
        (replace(UNACKED, acked_per_second=None), "figures are unknown"),
        (replace(UNACKED, waiting_ms=None), "wait in queues is unknown, and was known before"),
    ],
)
def test_topology_that_acks_nothing_and_stopped_gives_no_verdict(outcome: Outcome, word: str) -> None:
    assert word in why_no_verdict(record(UNACKED), outcome)


def test_more_emitted_by_the_topology_that_does_not_ack_is_not_blamed_on_a_plan_for_it_and_one_that_does() -> None:
    both = replace(BEFORE, emitted_per_second=1000.0)
    more = replace(measured(traffic=1500.0, p50=8.0), emitted_per_second=2000.0)
    assert not judge(record(both), more, MARGIN_PERCENT).worse
    assert judge(record(both), replace(more, emitted_per_second=1000.0), MARGIN_PERCENT).worse


def test_of_a_topology_that_was_idle_the_verdict_says_that_nothing_tells() -> None:
    idle = Outcome(0.0, 0.0, None, None, None, emitted_per_second=0.0)
    words = judge(record(idle), measured(), MARGIN_PERCENT).message
    assert words.startswith("nothing tells what it brought, since nothing was acked or emitted before; ")


def test_figures_that_were_unknown_before_are_not_told_as_nothing() -> None:
    of_the_dead = record(Outcome(None, None, None, None, None))  # their supervisor had died, and nobody measured them
    words = judge(of_the_dead, measured(), MARGIN_PERCENT).message
    assert words.startswith("nothing tells what it brought, since what was acked before is unknown; ")

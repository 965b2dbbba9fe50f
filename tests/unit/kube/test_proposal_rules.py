"""Plans that wait: which still stand, which need no person, and how they are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import slot
from kube_builders import SPREAD, TOPOLOGY_ID, WORDS, plan, plan_record
from storm_operator.core.decision import NOTHING_BETTER, Hold, HoldReason, PlanCause
from storm_operator.core.model import Assignment
from storm_operator.core.plan_record import PlanRecord
from storm_operator.core.proposals import (
    AT_LEISURE,
    OUTDATING,
    PASSING,
    STANDS_SECONDS,
    Proposals,
    is_same_proposal,
    kept_if_as_good,
    moved_away,
    outdated,
    why_a_person_must_approve,
)
from storm_operator.core.settings import ApprovalMode, ApprovalSettings, AutoApproval, Mode, SchedulingSettings

KNOWN = plan_record()
ELSEWHERE = SPREAD.with_moves({WORDS.executors[0]: slot("s3")})
BYSTANDER = replace(WORDS.executors[0], topology_id="other-1-1")


def approving(**conditions: float) -> SchedulingSettings:
    return SchedulingSettings(approval=ApprovalSettings(ApprovalMode.AUTO, AutoApproval(**conditions)))  # type: ignore[arg-type]


class TestOutdated:
    def test_same_plan_made_again_still_stands(self) -> None:
        assert outdated(KNOWN, plan("p-again")) is None

    def test_other_target_supersedes(self) -> None:
        other = plan("p-other", target=plan().target.with_moves({WORDS.executors[2]: slot("s1:6701")}))
        assert outdated(KNOWN, other) == "superseded by plan p-other"

    @pytest.mark.parametrize("reason", sorted(OUTDATING))
    def test_reason_by_which_it_would_not_be_proposed(self, reason: HoldReason) -> None:
        assert outdated(KNOWN, Hold(reason, "because")) == "it would not be proposed now: because"

    @pytest.mark.parametrize("reason", sorted(OUTDATING))
    def test_what_comes_and_goes_with_the_load_is_waited_out_and_nothing_else(self, reason: HoldReason) -> None:
        stands = outdated(KNOWN, Hold(reason, "because"), proposed_lately=True) is None
        assert stands is (reason in PASSING)

    def test_that_cpu_is_short_at_a_crest_is_waited_out_as_any_other_gain_that_has_gone(self) -> None:
        short = Hold(HoldReason.TOO_LITTLE_CAPACITY, "4 supervisors lack CPU; adaptive proposes nothing better")
        assert outdated(KNOWN, short, proposed_lately=True) is None
        assert outdated(KNOWN, short) is not None

    @pytest.mark.parametrize("reason", sorted(set(HoldReason) - OUTDATING))
    def test_reason_that_only_says_not_now(self, reason: HoldReason) -> None:
        assert outdated(KNOWN, Hold(reason, "because")) is None


class TestMovedAway:
    def test_executor_that_moved(self) -> None:
        assert moved_away(KNOWN, ELSEWHERE) == "executors are no longer where the plan would move them from"

    def test_executor_that_lost_its_place(self) -> None:
        lost = Assignment({e: place for e, place in SPREAD.slot_of.items() if e != WORDS.executors[0]})
        assert moved_away(KNOWN, lost)

    def test_executor_of_another_topology_that_moved_is_no_matter(self) -> None:
        assert not moved_away(KNOWN, SPREAD.with_moves({BYSTANDER: slot("s1")}))


class TestKeptIfAsGood:
    TEN_PERCENT = SchedulingSettings(minimum_gain_percent=10.0)

    @pytest.mark.parametrize(("gain_percent", "supersedes"), [(49.0, False), (59.9, False), (60.0, True)])
    def test_it_gives_way_to_what_gains_noticeably_more(self, gain_percent: float, supersedes: bool) -> None:
        again, other = plan("p-again", gain_percent=50.0), plan("p-other", gain_percent=gain_percent)
        assert kept_if_as_good(other, again, self.TEN_PERCENT) is (other if supersedes else again)

    @pytest.mark.parametrize("reason", sorted(HoldReason))
    def test_that_nothing_is_found_at_this_moment_matters_less_than_that_it_is_worth_it(
        self, reason: HoldReason
    ) -> None:
        again, held = plan("p-again"), Hold(reason, "because")
        assert kept_if_as_good(held, again, self.TEN_PERCENT) is (again if reason in NOTHING_BETTER else held)

    @pytest.mark.parametrize("cause", sorted(PlanCause))
    def test_what_cannot_wait_is_not_held_up_by_it_whatever_it_gains(self, cause: PlanCause) -> None:
        again = plan("p-again", gain_percent=50.0, cause=PlanCause.SAVINGS)
        other = plan("p-other", gain_percent=-5.0, cause=cause)
        assert kept_if_as_good(other, again, self.TEN_PERCENT) is (again if cause in AT_LEISURE else other)

    def test_what_cannot_wait_of_another_topology_is_not_held_up_by_what_cannot_either(self) -> None:
        again = plan("p-again", gain_percent=50.0, cause=PlanCause.WITHOUT_PLACE)
        same = plan("p-same", gain_percent=-5.0, cause=PlanCause.WITHOUT_PLACE)
        other = plan("p-other", gain_percent=-5.0, cause=PlanCause.WITHOUT_PLACE, topology_ids=("other-1-1",))
        assert kept_if_as_good(same, again, self.TEN_PERCENT) is again
        assert kept_if_as_good(other, again, self.TEN_PERCENT) is other

    def test_what_needs_no_person_is_not_held_up_by_what_waits_for_one(self) -> None:
        scheduling = approving(maximum_payback_seconds=60.0)
        again, other = plan("p-again", payback_seconds=300.0), plan("p-other", payback_seconds=30.0)
        assert kept_if_as_good(other, again, scheduling) is other
        assert kept_if_as_good(again, other, scheduling) is other
        assert kept_if_as_good(plan("p-third", payback_seconds=90.0), again, scheduling) is again

    def test_what_is_no_longer_worth_it_is_not_proposed(self) -> None:
        other = plan("p-other")
        assert kept_if_as_good(other, Hold(HoldReason.KNOWN_BAD, "because"), self.TEN_PERCENT) is other


def test_it_waits_on_for_a_while_after_it_was_last_what_would_be_proposed() -> None:
    waiting = Proposals().having(KNOWN).proposed_again(KNOWN.plan.id, 1000.0)
    assert waiting.was_proposed_lately(KNOWN.plan.id, 1000.0 + STANDS_SECONDS - 1.0)
    assert not waiting.was_proposed_lately(KNOWN.plan.id, 1000.0 + STANDS_SECONDS)
    assert not Proposals().having(KNOWN).was_proposed_lately(KNOWN.plan.id, 1000.0)


def test_of_those_that_wait_no_more_nothing_is_kept() -> None:
    waiting = Proposals().having(KNOWN).proposed_again(KNOWN.plan.id, 1000.0)
    gone = waiting.without(KNOWN.plan.id).proposed_again("p-other", 1010.0)
    assert gone.proposed_at_seconds == {"p-other": 1010.0}


def test_ways_back_come_first_and_then_what_else_was_approved() -> None:
    def waits(topology_id: str, approved_by: str = "", rollback_of: str = "") -> PlanRecord:
        of = plan(f"p-{topology_id}", topology_ids=(topology_id,))
        return plan_record(of=of, approved_by=approved_by, rollback_of=rollback_of)

    way_back = waits("c", "auto", rollback_of="p-bad")
    waiting = Proposals()
    for record in (waits("a"), waits("b", "somebody"), way_back, waits("not-asked-for")):
        waiting = waiting.having(record)
    assert [record.plan.id for record in waiting.of(("a", "b", "c"))] == ["p-c", "p-b", "p-a"]


def test_same_target_from_another_start_is_another_proposal() -> None:
    assert is_same_proposal(KNOWN, plan("p-again"))
    assert not is_same_proposal(KNOWN, plan("p-again", base=ELSEWHERE))


class TestApproval:
    def test_is_not_needed_by_default(self) -> None:
        assert why_a_person_must_approve(plan(), SchedulingSettings()) == ""

    def test_is_needed_in_mode_recommend_whatever_the_conditions(self) -> None:
        easy = replace(approving(minimum_gain_percent=0.0), mode=Mode.RECOMMEND)
        assert "mode is Recommend" in why_a_person_must_approve(plan(), easy)

    def test_is_needed_when_a_person_wants_to_say_yes(self) -> None:
        manual = SchedulingSettings(approval=ApprovalSettings(ApprovalMode.MANUAL))
        assert "approval is Manual" in why_a_person_must_approve(plan(), manual)

    @pytest.mark.parametrize(
        "met",
        [
            approving(minimum_gain_percent=62.5),
            approving(maximum_restarted_workers=1),
            approving(maximum_payback_seconds=71.5),
            approving(minimum_gain_percent=10.0, maximum_restarted_workers=5, maximum_payback_seconds=100.0),
        ],
    )
    def test_is_not_needed_when_all_conditions_are_met(self, met: SchedulingSettings) -> None:
        assert why_a_person_must_approve(plan(), met) == ""

    @pytest.mark.parametrize(
        ("missed", "why"),
        [
            (approving(minimum_gain_percent=63.5), "its gain of 62.5% is below the 63.5% that need no approval"),
            (approving(maximum_restarted_workers=0), "workers restarted: 1; up to 0 need no approval"),
            (approving(maximum_payback_seconds=60.0), "it pays back in 71.2 s; up to 60 s need no approval"),
            (approving(minimum_gain_percent=10.0, maximum_restarted_workers=0), "workers restarted: 1; up to 0 need"),
        ],
    )
    def test_is_needed_when_one_condition_is_missed(self, missed: SchedulingSettings, why: str) -> None:
        assert why in why_a_person_must_approve(plan(), missed)

    def test_plan_that_nobody_weighed_has_no_gain_to_go_by(self) -> None:
        free = plan(gain_percent=None)
        assert "its gain of unknown%" in why_a_person_must_approve(free, approving(minimum_gain_percent=0.0))

    def test_plan_that_never_pays_back_does_not_do_so_in_time(self) -> None:
        never = plan(payback_seconds=None)
        why = why_a_person_must_approve(never, approving(maximum_payback_seconds=600.0))
        assert why == "it never pays back; up to 600 s need no approval"


class TestProposals:
    def test_are_found_by_topology_and_by_id(self) -> None:
        kept = Proposals().having(KNOWN)
        assert kept.of(["other", TOPOLOGY_ID]) == (KNOWN,)
        assert kept.named(KNOWN.plan.id) == KNOWN
        assert kept.of(["other"]) == ()
        assert kept.named("p-other") is None

    def test_new_one_takes_the_place_of_what_concerned_its_topologies(self) -> None:
        newer = plan_record(of=plan("p-newer"))
        assert Proposals().having(KNOWN).having(newer).waiting == (newer,)

    def test_of_other_topologies_stand_side_by_side(self) -> None:
        other = plan_record(of=plan("p-other", topology_ids=("other-1-1",)))
        assert Proposals().having(KNOWN).having(other).waiting == (KNOWN, other)

    def test_one_is_taken_out_by_its_id(self) -> None:
        kept = Proposals().having(KNOWN)
        assert kept.without(KNOWN.plan.id).waiting == ()
        assert kept.without("p-other") == kept

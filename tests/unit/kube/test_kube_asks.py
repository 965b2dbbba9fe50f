"""What people ask of plans by annotation: carried out once, answered, and kept over a restart of the operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from fake_cluster import FakeCluster
from kube_builders import NIMBUS, FakeKinds, managed, plan, plan_record, rebalance, registry_of
from loop_scene import Scene as Loop
from loop_scene import scene as loop_scene
from loop_scene import with_mode
from storm_operator.adapters.kube.errors import Conflict, KubernetesError, NoAnswer, NotFound
from storm_operator.core.backoff import FIRST_RETRY_SECONDS
from storm_operator.core.decision import Hold, HoldReason, Plan, PlanCause
from storm_operator.core.plan_record import AUTO, PlanState
from storm_operator.core.settings import Mode
from storm_operator.kube.asks import FOREIGN, close_lost, follow_asks, seed_proposals
from storm_operator.kube.concerns import Concerns
from storm_operator.kube.handlers import on_rebalance_end
from storm_operator.kube.kept_rebalance import as_kept
from storm_operator.kube.managed import Registry
from storm_operator.kube.rebalances import ASK_ANNOTATION, asked, plan_of
from storm_operator.kube.shown_plans import ShownPlans
from storm_operator.plan_in_hand import STANDS

RECOMMEND = with_mode(Mode.RECOMMEND)


def shown_from(registry: Registry) -> ShownPlans:
    """Where `words` is the topology of streams/words."""
    return ShownPlans(registry, {"words": managed()}.get)


class Scene:
    """A loop that has proposed a plan, and the StormRebalance that shows it."""

    def __init__(self, ask: str | None = None, state: str = "Proposed") -> None:
        self.loop: Loop = loop_scene()
        made = self.loop.run(RECOMMEND)
        assert isinstance(made, Plan)
        self.plan = made
        self.registry: Registry = registry_of(rebalance(state, of=made, ask=ask))
        self.shown = shown_from(self.registry)
        self.kinds = FakeKinds()
        self.said: list[str] = []
        self.now = 0.0
        self.concerns = Concerns(lambda: self.now, self.said.append)

    @property
    def cluster(self) -> FakeCluster:
        return self.loop.cluster

    def follow(self, nimbus: str = NIMBUS) -> dict[str, Any]:
        """The status that was written, if any."""
        self.kinds.calls.clear()
        follow_asks(self.shown, self.kinds, self.loop.loop, nimbus, self.said.append, self.concerns)
        return (self.kinds.statuses() or [{}])[-1]

    def approved_by(self) -> str:
        (waiting,) = self.loop.loop.memory.proposals.waiting
        return waiting.approved_by

    def waiting(self) -> list[str]:
        return [record.plan.id for record in self.loop.loop.memory.proposals.waiting]

    def states(self) -> list[PlanState]:
        return [record.state for record in self.loop.audience.records if record.plan.id == self.plan.id]


class TestAsk:
    def test_annotation_is_removed_before_anything_else_is_done(self) -> None:
        played = Scene("approve")
        played.follow()
        verb, name, what = played.kinds.calls[0]
        assert (verb, name, what) == ("annotate", f"streams/{played.plan.id}", {ASK_ANNOTATION: None})
        assert played.kinds.verbs() == ["annotate", "status"]

    def test_is_not_carried_out_while_the_annotation_cannot_be_removed(self) -> None:
        played = Scene("approve")
        played.kinds.error = KubernetesError("annotate: down")
        played.follow()
        assert played.approved_by() == ""
        assert played.said == ["AskNotRemoved: annotate: down"]

    def test_annotation_that_cannot_be_removed_is_tried_again_slowly(self) -> None:
        played = Scene("approve")
        played.kinds.error = KubernetesError("annotate: down")
        played.follow()
        played.kinds.error = None
        assert played.follow() == {}
        played.now += FIRST_RETRY_SECONDS
        assert played.follow()["state"] == "Approved"

    def test_that_went_with_an_answer_that_was_lost_is_said_to_have_come_to_nothing(self) -> None:
        """It is not carried out: perhaps somebody took it back."""
        played = Scene("approve")
        (body,) = played.registry.rebalances()
        played.kinds.error = NoAnswer("annotate stormrebalances streams/p: no answer")
        played.follow()
        played.registry.put_rebalance({**body, "metadata": {**body["metadata"], "annotations": {}}})
        played.follow()
        assert played.said[-1].endswith("what became of an ask could not be shown: " + str(played.kinds.error))
        played.kinds.error = None
        words = "what was asked was not carried out: its annotation is gone, and not by an answer"
        assert played.follow()["message"].startswith(words)
        assert played.approved_by() == ""
        assert played.follow() == {}

    def test_is_carried_out_once_though_the_watch_lags_behind(self) -> None:
        played = Scene("rollback", state="Verified")
        played.follow()
        assert played.follow() == {}
        (body,) = played.registry.rebalances()
        assert asked(body) is None
        assert body["metadata"]["annotations"] == {"other": "stays"}

    def test_that_was_replaced_by_another_is_left_until_the_watch_tells_of_that(self) -> None:
        """What is removed is what was read: `reject` came after it, and would have gone with it."""
        played = Scene("approve")
        played.kinds.error = Conflict("annotate: the object has been modified")
        assert played.follow() == {}
        played.kinds.error = None
        (body,) = played.registry.rebalances()
        annotations = {**body["metadata"]["annotations"], ASK_ANNOTATION: "reject"}
        played.registry.put_rebalance({**body, "metadata": {**body["metadata"], "annotations": annotations}})
        assert played.follow()["message"] == "rejected; its target is not proposed again"
        assert len(played.said) == 1, "nothing was said, nor done, about what was replaced"

    def test_of_one_that_was_deleted_since_is_not_carried_out(self) -> None:
        """To delete a plan that waits is to have it made anew: nobody would see that this one begins."""
        played = Scene("approve")
        played.kinds.error = NotFound("annotate: not found")
        assert played.follow() == {}
        assert (played.approved_by(), played.said) == ("", [])

    def test_is_not_remembered_as_it_was_before_what_the_watch_told_meanwhile(self) -> None:
        played = Scene("approve")
        (body,) = played.registry.rebalances()
        newer = {**body, "metadata": {**body["metadata"], "resourceVersion": "1001", "annotations": {}}}

        def told_meanwhile(*_: object) -> None:
            played.registry.put_rebalance(newer)

        played.kinds.annotate = told_meanwhile  # type: ignore[method-assign, assignment]
        played.follow()
        assert played.registry.rebalances() == (newer,)

    def test_of_another_cluster_is_left_to_its_loop(self) -> None:
        played = Scene("approve")
        assert played.follow("other:6627") == {}
        assert played.kinds.calls == []

    def test_of_this_cluster_by_another_name_is_carried_out(self) -> None:
        played = Scene("approve")
        (body,) = played.registry.rebalances()
        long_name = NIMBUS.replace(":", ".svc.cluster.local:")
        played.registry.put_rebalance({**body, "spec": {**body["spec"], "clusterNimbus": long_name}})
        assert played.follow()["state"] == "Approved"

    def test_plan_that_nobody_asks_about_is_left_alone(self) -> None:
        assert Scene().follow() == {}

    def test_that_is_not_understood_is_answered_with_the_words_that_are(self) -> None:
        played = Scene("Approve")
        message = played.follow()["message"]
        assert message == f"{ASK_ANNOTATION}: 'Approve' is not understood; it may be approve, reject, refresh, rollback"
        assert played.approved_by() == ""

    def test_however_long_it_is_it_is_answered_and_said_in_brief(self) -> None:
        played = Scene("approve " * 10_000)
        message = played.follow()["message"]
        assert message.startswith(f"{ASK_ANNOTATION}: 'approve approve ")
        assert message.endswith("is not understood; it may be approve, reject, refresh, rollback")
        assert len(message) < 300, "the CRD has no longer ones than 32,768 characters"
        assert played.said == [f"{played.plan.id}: {message}"]

    def test_answer_is_said_too(self) -> None:
        played = Scene("approve")
        played.follow()
        assert played.said == [f"{played.plan.id}: approve: approved; it begins with the next pass"]


class TestApprove:
    def test_makes_the_next_pass_carry_out_the_plan(self) -> None:
        played = Scene("approve")
        assert played.follow() == {
            "state": "Approved",
            "reason": "Approved",
            "message": "approved; it begins with the next pass",
        }
        played.loop.run(RECOMMEND)
        assert played.cluster.plans["words"] == played.plan

    def test_of_a_plan_that_no_longer_stands_closes_it(self) -> None:
        played = Scene("approve")
        played.loop.loop.desk.withdraw(played.plan.id, "gone")
        status = played.follow()
        assert status["state"] == "Expired"
        assert "no longer stands" in status["message"]

    @pytest.mark.parametrize(("ask", "ends"), [("reject", PlanState.REJECTED), ("refresh", PlanState.EXPIRED)])
    def test_can_be_taken_back_until_the_plan_begins(self, ask: str, ends: PlanState) -> None:
        """It may wait for the end of an excluded window."""
        played = Scene("approve")
        played.follow()
        (body,) = played.registry.rebalances()
        annotations = {ASK_ANNOTATION: ask}
        metadata = {**body["metadata"], "annotations": annotations}
        played.registry.put_rebalance({**body, "metadata": metadata, "status": {"state": "Approved"}})
        played.follow()
        assert played.states()[-1] is ends
        played.loop.run(RECOMMEND)
        assert "words" not in played.cluster.plans

    def test_can_not_be_taken_back_once_the_plan_has_begun(self) -> None:
        played = Scene("reject", state="Approved")
        played.loop.loop.desk.release(played.plan)
        assert played.follow() == {"message": "it is Approved: only a Proposed plan can be asked to reject"}

    @pytest.mark.parametrize("state", ["Applying", "Verified", "Rejected"])
    def test_of_a_plan_that_waits_no_more_changes_nothing(self, state: str) -> None:
        status = Scene("approve", state).follow()
        assert status == {"message": f"it is {state}: only a Proposed plan can be asked to approve"}


class TestReject:
    def test_forgets_the_plan_and_its_target(self) -> None:
        played = Scene("reject")
        assert played.follow()["message"] == "rejected; its target is not proposed again"
        assert played.states()[-1] is PlanState.REJECTED
        held = played.loop.run(RECOMMEND)
        assert isinstance(held, Hold)
        assert held.reason is HoldReason.KNOWN_BAD

    def test_of_a_plan_that_the_loop_does_not_know_promises_nothing(self) -> None:
        played = Scene("reject")
        played.loop.loop.desk.withdraw(played.plan.id, "gone")
        assert "no longer stands" in played.follow()["message"]


def test_refresh_makes_the_next_pass_propose_anew() -> None:
    played = Scene("refresh")
    assert played.follow()["message"] == "withdrawn; the next pass proposes anew"
    assert played.states()[-1] is PlanState.EXPIRED
    again = played.loop.run(RECOMMEND)
    assert isinstance(again, Plan)
    assert again.id != played.plan.id


@pytest.mark.parametrize("ask", ["refresh", None])
def test_way_back_from_what_did_harm_is_made_anew_when_that_is_asked_for_or_its_resource_is_deleted(
    ask: str | None,
) -> None:
    played = Scene(ask)
    (waiting,) = played.loop.loop.memory.proposals.waiting
    played.loop.loop.memory.proposals = played.loop.loop.memory.proposals.having(replace(waiting, rollback_of="p-harm"))
    if ask is None:
        on_rebalance_end(played.registry, played.registry.rebalances()[0])
    played.cluster.clock.seconds += 1.0
    answer = played.follow()
    (again,) = played.waiting()
    assert again != played.plan.id
    assert answer == ({} if ask is None else {"message": f"withdrawn; plan {again} waits in its place"})


@pytest.mark.parametrize("state", ["Proposed", "Approved"])
def test_proposal_whose_resource_was_deleted_is_withdrawn_and_the_next_pass_proposes_anew(state: str) -> None:
    """It would wait for ever: nobody could approve it, and as long as it waits no other is shown."""
    played = Scene(state=state)
    (shown,) = played.registry.rebalances()
    on_rebalance_end(played.registry, shown)
    played.follow()
    assert played.waiting() == []
    assert played.loop.audience.records[-1].message.startswith("its StormRebalance was deleted")
    anew = played.loop.run(RECOMMEND)
    assert isinstance(anew, Plan)
    assert anew.id != played.plan.id
    played.follow()
    assert played.waiting() == [anew.id], "the watch has not told of its resource yet"


def test_deletion_of_a_plan_of_another_cluster_is_left_to_its_loop() -> None:
    played = Scene()
    on_rebalance_end(played.registry, played.registry.rebalances()[0])
    played.follow("other.storm:6627")
    assert played.waiting() == [played.plan.id]
    played.follow()
    assert played.waiting() == []


GARBAGE = {"topologies": ["words"], "planHash": "0", "baseHash": "0", "plan": "{}"}


def decoy(of: Plan, ask: str | None = None, state: str = "Proposed", **spec: Any) -> dict[str, Any]:
    """A StormRebalance of that name which somebody made in a namespace of their own."""
    body = rebalance(state, of=of, ask=ask)
    return {**body, "metadata": {**body["metadata"], "namespace": "team-b"}, "spec": {**body["spec"], **spec}}


@pytest.mark.parametrize("spec", [GARBAGE, {}], ids=["garbage", "a copy"])
class TestNameInAnotherNamespace:
    """Who may write StormRebalances in one namespace has no say in the plans that are shown in another."""

    @pytest.mark.parametrize("ask", ["approve", "reject", "refresh"])
    def test_what_is_asked_of_it_is_not_asked_of_the_plan(self, spec: dict[str, Any], ask: str) -> None:
        played = Scene()
        played.registry.put_rebalance(decoy(played.plan, ask, **spec))
        assert played.follow() == {"message": FOREIGN}
        assert [name for _, name, _ in played.kinds.calls] == [f"team-b/{played.plan.id}"] * 2
        assert (played.waiting(), played.approved_by()) == ([played.plan.id], "")
        played.loop.run(RECOMMEND)
        assert "words" not in played.cluster.plans

    def test_the_plan_is_still_asked_where_it_is_shown(self, spec: dict[str, Any]) -> None:
        played = Scene("approve")
        played.registry.put_rebalance(decoy(played.plan, **spec))
        assert played.follow()["state"] == "Approved"

    def test_its_deletion_withdraws_nothing(self, spec: dict[str, Any]) -> None:
        played = Scene()
        on_rebalance_end(played.registry, decoy(played.plan, **spec))
        played.follow()
        assert played.waiting() == [played.plan.id]

    def test_no_plan_is_rolled_back_by_it(self, spec: dict[str, Any]) -> None:
        played = Scene(state="Verified")
        played.registry.put_rebalance(decoy(played.plan, "rollback", "Verified", **spec))
        assert "the operator did not write it" in played.follow()["message"]
        assert [record.plan for record in played.loop.audience.records] == [played.plan]

    @pytest.mark.parametrize("state", ["Proposed", "Approved", "Rejected"])
    def test_the_next_life_of_the_operator_takes_up_none(self, spec: dict[str, Any], state: str) -> None:
        after, made = loop_scene(), Scene().plan
        seed_proposals(shown_from(registry_of(decoy(made, state=state, **spec))), after.loop, NIMBUS)
        assert after.loop.memory.proposals.waiting == ()
        assert after.loop.memory.decisions.known_bad == ()


def test_another_plan_under_the_name_of_one_that_waits_is_not_it() -> None:
    played = Scene()
    (shown,) = played.registry.rebalances()
    played.registry.put_rebalance(
        {**rebalance(of=played.plan, ask="approve"), "spec": {**shown["spec"], "planHash": "another"}}
    )
    assert played.follow() == {"message": FOREIGN}
    assert played.approved_by() == ""


class TestRollback:
    def test_proposes_the_way_back_and_approves_it(self) -> None:
        played = Scene("rollback", state="Verified")
        message = played.follow()["message"]
        back = played.loop.audience.records[-1]
        assert message == f"plan {back.plan.id} goes back to where its executors were"
        assert (back.plan.base, back.plan.target) == (played.plan.target, played.plan.base)
        assert back.approved_by == "annotation"

    @pytest.mark.parametrize("state", ["Proposed", "Settling", "RolledBack"])
    def test_of_a_plan_that_is_not_verified_is_refused(self, state: str) -> None:
        played = Scene("rollback", state)
        assert played.follow()["message"] == f"it is {state}: only a Verified plan can be rolled back"
        assert played.loop.audience.records[-1].plan == played.plan

    def test_of_a_plan_that_is_not_understood_is_refused(self) -> None:
        played = Scene("rollback", state="Verified")
        (body,) = played.registry.rebalances()
        played.registry.put_rebalance({**body, "spec": {**body["spec"], "plan": "{}"}})
        assert "can be rolled back" in played.follow()["message"]


class TestRestart:
    @staticmethod
    def reborn(state: str, **status: Any) -> tuple[Loop, Plan]:
        """Another life of the operator that finds what `Scene` has proposed in this state."""
        before = Scene()
        registry = registry_of(rebalance(state, of=before.plan, **status))
        after = loop_scene()
        after.cluster.clock.seconds += 100.0
        seed_proposals(shown_from(registry), after.loop, NIMBUS)
        return after, before.plan

    def test_proposal_waits_on(self) -> None:
        after, known = self.reborn("Proposed", message="approval is Manual")
        assert after.run(RECOMMEND) == known
        (record,) = after.loop.memory.proposals.waiting
        assert record.message == "approval is Manual"
        assert after.audience.records == []

    @pytest.mark.parametrize("older", ["Proposed", "Approved"])
    def test_older_proposal_that_was_not_told_so_is_superseded(self, older: str) -> None:
        made, after = Scene().plan, loop_scene()
        first, second = replace(made, id="20270115-080000-a"), replace(made, id="20270115-090000-b")
        registry = registry_of(rebalance(older, of=first), rebalance("Proposed", of=second))
        seed_proposals(shown_from(registry), after.loop, NIMBUS)
        assert [record.plan.id for record in after.loop.memory.proposals.waiting] == [second.id]
        (told,) = after.audience.records
        assert (told.plan.id, told.state) == (first.id, PlanState.EXPIRED)
        assert told.message == f"superseded by plan {second.id}"

    def test_approved_plan_begins_now(self) -> None:
        after, known = self.reborn("Approved")
        after.run(RECOMMEND)
        assert after.cluster.plans["words"] == known

    @pytest.mark.parametrize("state", ["Rejected", "RolledBack"])
    def test_target_that_was_found_bad_is_not_proposed_again(self, state: str) -> None:
        after, _ = self.reborn(state)
        held = after.run(RECOMMEND)
        assert isinstance(held, Hold)
        assert held.reason is HoldReason.KNOWN_BAD

    @pytest.mark.parametrize(("state", "is_forgotten"), [("Rejected", False), ("RolledBack", True)])
    def test_what_was_measured_days_ago_is_forgotten_and_what_a_person_said_is_not(
        self, state: str, is_forgotten: bool
    ) -> None:
        after, known = self.reborn(state)
        in_two_days = after.cluster.clock.seconds + 2.0 * 86_400.0
        found = after.loop.memory.decisions.known_bad_like(known.target, in_two_days, exactly=True)
        assert (found is None) is is_forgotten

    @pytest.mark.parametrize(("asked_for", "is_forgotten"), [(True, False), (False, True)])
    @pytest.mark.parametrize("state", ["Verified", "Approved"])
    def test_what_a_person_asked_back_stands_however_long_ago_its_plan_was_made(
        self, state: str, asked_for: bool, is_forgotten: bool
    ) -> None:
        before, after = Scene(), loop_scene()
        back = before.loop.loop.desk.propose_way_back(before.plan, "annotation")
        back = back if asked_for else replace(back, cause=PlanCause.ROLLBACK)
        undone = rebalance("RolledBack", of=before.plan, rolledBackBy=back.id)
        way_back = rebalance(state, of=back, rollbackOf=before.plan.id)
        seed_proposals(shown_from(registry_of(as_kept(undone), as_kept(way_back))), after.loop, NIMBUS)
        in_two_days = back.created_at_seconds + 2.0 * 86_400.0
        found = after.loop.memory.decisions.known_bad_like(before.plan.target, in_two_days, exactly=True)
        assert (found is None) is is_forgotten

    def test_finished_plan_waits_no_more(self) -> None:
        after, _ = self.reborn("Expired")
        assert after.loop.memory.proposals.waiting == ()

    @pytest.mark.parametrize("text", ["[" * 1_000_000, "{}", "gzip+base64:H4sI"], ids=["deep", "another", "broken"])
    @pytest.mark.parametrize("state", ["Proposed", "Rejected", "RolledBack"])
    def test_plan_that_nobody_understands_stops_no_start(self, state: str, text: str) -> None:
        body, after = rebalance(state, of=Scene().plan), loop_scene()
        body["spec"]["plan"] = text
        seed_proposals(shown_from(registry_of(body)), after.loop, NIMBUS)
        assert after.loop.memory.proposals.waiting == ()
        assert after.loop.memory.decisions.known_bad == ()

    @pytest.mark.parametrize("state", ["Verified", "Failed", "Expired", "Applying"])
    def test_plan_that_neither_waits_nor_is_unwanted_is_not_even_unpacked(
        self, state: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        unpack = Mock(side_effect=MemoryError)
        monkeypatch.setattr("storm_operator.kube.rebalances.plan_from_json", unpack)
        seed_proposals(shown_from(registry_of(rebalance(state, of=Scene().plan))), loop_scene().loop, NIMBUS)
        unpack.assert_not_called()

    def test_plan_is_answered_where_it_was_shown_though_its_topology_is_another_resource_s_by_now(self) -> None:
        before, after = Scene(), loop_scene()
        played = shown_from(before.registry)
        seed_proposals(played, after.loop, NIMBUS)
        played.holder_of = {"words": managed("words", namespace="elsewhere")}.get
        on_rebalance_end(before.registry, before.registry.rebalances()[0])
        follow_asks(played, before.kinds, after.loop, NIMBUS, before.said.append, before.concerns)
        assert after.loop.memory.proposals.waiting == ()

    def test_plans_of_other_clusters_are_left_to_their_loops(self) -> None:
        elsewhere = managed("other", spec={"adopt": {}, "nimbus": "other:6627"})
        after = loop_scene()
        seed_proposals(shown_from(registry_of(rebalance(owner=elsewhere))), after.loop, NIMBUS)
        assert after.loop.memory.proposals.waiting == ()

    def test_way_back_that_waited_is_still_one(self) -> None:
        after, known = self.reborn("Approved", rollbackOf="p-1")
        after.run(RECOMMEND)
        (record,) = after.loop.memory.records
        assert (record.plan, record.rollback_of) == (known, "p-1")

    def test_what_a_way_back_undoes_is_remembered_in_the_journal_too(self) -> None:
        after, known = self.reborn("Approved", rollbackOf="p-1")
        assert after.loop.memory.decisions.known_bad_like(known.base, after.cluster.clock.seconds, exactly=True)
        after.run(RECOMMEND)
        assert after.journal.kept is not None
        assert after.journal.kept.plan.base == known.base

    def test_plan_that_is_being_carried_out_is_not_begun_again_though_its_resource_lags_behind(self) -> None:
        before = Scene()
        before.loop.loop.desk.approve(before.plan.id, "somebody")
        before.loop.run(RECOMMEND)
        after = loop_scene()
        after.journal.kept = before.loop.journal.kept
        after.loop.recover()
        seed_proposals(shown_from(registry_of(rebalance("Approved", of=before.plan))), after.loop, NIMBUS)
        assert after.loop.memory.proposals.waiting == ()

    @pytest.mark.parametrize("state", ["Applying", "InForce", "Settling"])
    def test_plan_under_way_that_no_journal_knows_is_closed(self, state: str) -> None:
        kinds, after = FakeKinds(), loop_scene()
        close_lost(registry_of(rebalance(state)), kinds, after.loop, NIMBUS)
        (status,) = kinds.statuses()
        assert status["state"] == "Expired"
        assert state in status["message"]

    def test_plan_whose_way_back_the_journal_has_is_closed_as_rolled_back(self) -> None:
        before, kinds, after = Scene(), FakeKinds(), loop_scene()
        before.loop.loop.desk.approve(before.plan.id, "somebody")
        before.loop.run(RECOMMEND)
        before.loop.observer.latency_ms = 40.0
        while before.loop.journal.kept is not None and not before.loop.journal.kept.rollback_of:
            before.loop.run()
        after.journal.kept = before.loop.journal.kept
        after.loop.recover()
        close_lost(registry_of(rebalance("Settling", of=before.plan)), kinds, after.loop, NIMBUS)
        (status,) = kinds.statuses()
        (back,) = after.loop.memory.records
        assert (status["state"], status["message"]) == ("RolledBack", f"plan {back.plan.id} takes it back")

    def test_plan_whose_way_back_failed_is_closed_as_in_force_all_the_same(self) -> None:
        before, kinds, after = Scene(), FakeKinds(), loop_scene()
        back = replace(before.plan, id="p-back")
        after.journal.kept = plan_record(PlanState.FAILED, back, rollback_of=before.plan.id, approved_by=AUTO)
        after.loop.recover()
        close_lost(registry_of(rebalance("Settling", of=before.plan)), kinds, after.loop, NIMBUS)
        (status,) = kinds.statuses()
        assert (status["state"], status["message"]) == ("Expired", STANDS.format("p-back"))

    @pytest.mark.parametrize("state", ["Proposed", "Approved", "Verified", "RolledBack"])
    def test_plan_that_is_not_under_way_is_left(self, state: str) -> None:
        kinds = FakeKinds()
        close_lost(registry_of(rebalance(state)), kinds, loop_scene().loop, NIMBUS)
        assert kinds.calls == []

    def test_plan_that_the_loop_goes_on_with_is_left(self) -> None:
        before, kinds, after = Scene(), FakeKinds(), loop_scene()
        before.loop.loop.desk.approve(before.plan.id, "somebody")
        before.loop.run(RECOMMEND)
        after.journal.kept = before.loop.journal.kept
        after.loop.recover()
        close_lost(registry_of(rebalance("Settling", of=before.plan)), kinds, after.loop, NIMBUS)
        assert kinds.calls == []


def test_plan_of_these_tests_is_one_that_is_read_back() -> None:
    assert plan_of(rebalance(of=Scene().plan)) is not None
    assert plan_of(rebalance(of=plan())) == plan()

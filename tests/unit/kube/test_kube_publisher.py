"""What users are told: statuses and StormRebalances when they say something new, events, and a short history."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import pytest

from builders import snapshot
from kube_builders import (
    HOSTS,
    NOW_SECONDS,
    TOPOLOGY_ID,
    WORDS,
    FakeEvents,
    FakeKinds,
    managed,
    plan,
    plan_record,
    rebalance,
    registry_of,
    topology_body,
)
from storm_operator.adapters.kube.errors import KubernetesError, NoAnswer
from storm_operator.control_loop import PassReport
from storm_operator.core.backoff import FIRST_RETRY_SECONDS
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.model import Topology
from storm_operator.core.plan_record import AUTO, PlanState
from storm_operator.kube import publisher as publisher_module
from storm_operator.kube.managed import Body, Managed
from storm_operator.kube.publisher import (
    MOST_UNSHOWN,
    SILENCE_SECONDS,
    WATCH_PATIENCE_SECONDS,
    Publisher,
    decision_for,
)
from storm_operator.kube.rebalance_status import rebalance_status
from storm_operator.kube.rebalances import surplus
from storm_operator.kube.shown_plans import ShownPlans
from storm_operator.kube.status_news import FIGURES_SECONDS, LONGEST_MESSAGE
from storm_operator.kube.topology_views import view_of
from storm_operator.lifecycle_progress import Progress, Stage

NAME = f"streams/{plan().id}"
VERIFIED = plan_record(PlanState.VERIFIED, approved_by=AUTO, in_force_at_seconds=NOW_SECONDS)
HOLD = Hold(HoldReason.NO_CHANGE, "as it should be")


class Scene:
    def __init__(self, *bodies: dict[str, Any]) -> None:
        self.kinds, self.events, self.said = FakeKinds(), FakeEvents(), list[str]()
        self.registry = registry_of(topology_body(), *bodies)
        self.owners: dict[str, Managed] = {TOPOLOGY_ID: managed()}
        self.now = 1000.0
        self.shown = ShownPlans(self.registry, self.owners.get)
        self.publisher = Publisher(
            self.kinds,
            self.events,
            self.registry,
            self.owners.get,
            lambda: HOSTS,
            self.said.append,
            self.shown,
            clock=lambda: self.now,
        )


def throughput(tuples_per_second: float) -> dict[str, Any]:
    return {"throughputTuplesPerSecond": tuples_per_second}


def elsewhere(state: str, **fields: Any) -> dict[str, Any]:
    """A StormRebalance beside no StormTopology of the topologies that it names."""
    body = rebalance(state, **fields)
    return {**body, "metadata": {**body["metadata"], "namespace": "elsewhere"}}


class TestStatus:
    def test_is_written_when_it_is_news(self) -> None:
        played = Scene()
        played.publisher.write_status(managed(), {"phase": "Running"})
        assert played.kinds.calls == [("status", "streams/words", {"phase": "Running"})]

    def test_that_the_resource_has_already_is_not_written(self) -> None:
        played = Scene()
        played.publisher.write_status(managed(status={"phase": "Running"}), {"phase": "Running"})
        assert played.kinds.calls == []

    def test_is_not_written_twice_though_the_watch_lags_behind(self) -> None:
        played = Scene()
        played.publisher.write_status(managed(), {"phase": "Running"})
        played.publisher.write_status(managed(), {"phase": "Running"})
        assert len(played.kinds.calls) == 1

    def test_that_somebody_else_wrote_over_is_written_again_once_the_watch_must_have_told(self) -> None:
        played = Scene()
        played.publisher.write_status(managed(), {"phase": "Running"})
        played.now += WATCH_PATIENCE_SECONDS
        played.publisher.write_status(managed(status={"phase": "Pending"}), {"phase": "Running"})
        assert played.kinds.statuses() == [{"phase": "Running"}, {"phase": "Running"}]

    def test_is_known_before_the_watch_tells_of_it(self) -> None:
        played = Scene()
        played.publisher.write_status(managed(status={"message": "as before"}), {"phase": "Running"})
        known = played.publisher.as_known(managed(status={"message": "as before"}))
        assert known.body["status"] == {"message": "as before", "phase": "Running"}
        assert known.key == managed().key

    def test_of_a_resource_that_was_deleted_is_none_of_the_one_in_its_place(self) -> None:
        played = Scene()
        played.publisher.write_status(managed(), {"phase": "Running", "lastPlan": {"id": "p-1"}})
        anew = managed(uid="uid-anew", status={"phase": "Pending"})
        played.registry.put_topology(anew.body)
        assert played.publisher.as_known(anew).body["status"] == {"phase": "Pending"}
        played.publisher.write_status(managed(), {"phase": "Deleting"})
        assert [status["phase"] for status in played.kinds.statuses()] == ["Running"]

    def test_slow_drift_of_a_figure_is_told_when_it_has_added_up(self) -> None:
        played = Scene()
        for rate in (100.0, 106.0, 112.0, 118.0):
            played.publisher.write_status(managed(status=(played.kinds.statuses() or [{}])[-1]), throughput(rate))
            played.now += FIGURES_SECONDS
        written = [status["throughputTuplesPerSecond"] for status in played.kinds.statuses()]
        assert written == [100.0, 112.0]

    def test_noisy_figures_of_a_steady_topology_are_written_once_a_minute_at_most(self) -> None:
        played, noise, known = Scene(), random.Random(7), dict[str, Any]()
        for _ in range(120):  # twenty minutes of passes
            latency = {"p50Milliseconds": noise.lognormvariate(2.0, 0.4), "p99Milliseconds": noise.uniform(20.0, 90.0)}
            status = {"phase": "Running", "latency": latency, **throughput(noise.gauss(300.0, 60.0))}
            played.publisher.write_status(managed(status=known), status)
            known = {**known, **(played.kinds.statuses() or [{}])[-1]}
            played.now += 10.0
        assert len(played.kinds.calls) == 20

    def test_something_else_is_written_at_once_and_the_figures_with_it(self) -> None:
        played = Scene()
        before = {"phase": "Running", **throughput(100.0)}
        played.publisher.write_status(managed(), before)
        after = {"phase": "Rebalancing", **throughput(200.0)}
        played.publisher.write_status(managed(status=before), after)
        assert played.kinds.statuses() == [before, after]

    def test_sentence_with_another_number_each_pass_is_written_once_a_minute_at_most(self) -> None:
        played, known = Scene(), dict[str, Any]()
        for seconds in range(0, 600, 10):
            status = {"phase": "Running", "message": f"its worker has written no snapshot for {seconds + 0.5} s"}
            played.publisher.write_status(managed(status=known), status)
            known = {**known, **(played.kinds.statuses() or [{}])[-1]}
            played.now += 10.0
        assert len(played.kinds.calls) == 10

    def test_first_figures_are_written_at_once(self) -> None:
        played = Scene()
        played.publisher.write_status(managed(), {"phase": "Running", "latency": None})
        played.publisher.write_status(managed(status={"phase": "Running"}), {"phase": "Running", **throughput(5.0)})
        assert len(played.kinds.calls) == 2

    def test_that_is_refused_is_an_event_and_tried_again_ever_more_slowly(self) -> None:
        played = Scene()
        played.kinds.error = KubernetesError("status: not valid")
        tried = []
        for _ in range(200):
            attempts = played.kinds.attempts
            played.publisher.write_status(managed(), {"phase": "Running"})
            if played.kinds.attempts > attempts:
                tried.append(played.now)
            played.now += 10.0
        assert [later - earlier for earlier, later in pairwise(tried)][:7] == [10, 20, 40, 80, 160, 300, 300]
        assert set(played.events.posted) == {("StatusRefused", "status: not valid", True)}
        assert played.said == ["StatusRefused: status: not valid"]

    def test_that_hangs_is_not_waited_for_once_more_for_each_resource_but_soon_for_another(self) -> None:
        played = Scene(topology_body("other"))
        played.kinds.error = NoAnswer("the Kubernetes API does not answer")
        tried = []
        for _ in range(2):
            tried += [played.publisher.write_status(managed(name), {"phase": "Running"}) for name in ("words", "other")]
        assert (played.kinds.attempts, tried) == (1, [True] * 4)
        played.now += SILENCE_SECONDS
        played.kinds.error = None
        played.publisher.write_status(managed("other"), {"phase": "Running"})
        assert played.kinds.calls == [("status", "streams/other", {"phase": "Running"})]

    def test_that_could_not_be_written_is_said_and_tried_again(self) -> None:
        played = Scene()
        played.kinds.error = KubernetesError("status of stormtopologies streams/words: down")
        played.publisher.write_status(managed(), {"phase": "Running"})
        assert played.said == ["StatusRefused: status of stormtopologies streams/words: down"]
        played.kinds.error = None
        played.now += FIRST_RETRY_SECONDS
        played.publisher.write_status(managed(), {"phase": "Running"})
        assert played.kinds.verbs() == ["status"]


class TestLongMessages:
    """The API server refuses a status of which one message is too long, all of it."""

    @staticmethod
    def lengths(written: Any) -> set[int]:
        if isinstance(written, dict):
            own = {len(text) for name, text in written.items() if name in {"message", "reason"}}
            return own.union(*map(TestLongMessages.lengths, written.values()))
        return set().union(*map(TestLongMessages.lengths, written)) if isinstance(written, list) else set()

    def test_of_a_status_are_cut_and_written_once(self) -> None:
        played, long = Scene(), "an agent is silent; " * 2000
        condition = {"type": "Ready", "status": "False", "reason": "MetricsIncomplete", "message": long}
        status = {"message": long, "conditions": [condition], "lastHold": {"message": long}}
        for _ in range(2):
            played.publisher.write_status(managed(), status)
        (written,) = played.kinds.statuses()
        assert self.lengths(written) == {LONGEST_MESSAGE, len("MetricsIncomplete")}
        assert written["message"].startswith("an agent is silent; ")
        played.publisher.write_status(managed(status=written), status)
        assert len(played.kinds.calls) == 1

    def test_of_a_plan_are_cut(self) -> None:
        played, long = Scene(), "an executor moves; " * 2000
        played.publisher.on_record(plan_record(PlanState.FAILED, of=plan(reason=long), message=long))
        assert max(map(max, (self.lengths(what) for _, _, what in played.kinds.calls))) == LONGEST_MESSAGE


class TestRecord:
    def test_new_plan_becomes_a_resource_beside_its_owner(self) -> None:
        played = Scene()
        played.publisher.on_record(plan_record(message="approval is Manual"))
        (create, name, body), (status, _, written) = played.kinds.calls
        assert (create, status, name) == ("create", "status", NAME)
        assert body["metadata"]["ownerReferences"][0]["uid"] == "uid-words"
        assert (written["state"], written["message"]) == ("Proposed", "approval is Manual")

    def test_each_step_is_said(self) -> None:
        played = Scene()
        played.publisher.on_record(plan_record(message="approval is Manual"))
        played.publisher.on_record(plan_record(PlanState.APPLYING))
        name = plan().id
        assert played.said == [f"plan {name}: Proposed: approval is Manual", f"plan {name}: Applying: closer"]

    def test_each_step_is_written_to_the_same_resource(self) -> None:
        played = Scene()
        for state in (PlanState.PROPOSED, PlanState.APPLYING, PlanState.SETTLING, PlanState.VERIFIED):
            played.publisher.on_record(plan_record(state))
        assert played.kinds.verbs() == ["create", "status", "status", "status", "status"]
        assert {name for _, name, _ in played.kinds.calls} == {NAME}

    def test_step_that_says_nothing_new_is_not_written(self) -> None:
        played = Scene()
        played.publisher.on_record(plan_record())
        played.publisher.on_record(plan_record())
        assert played.kinds.verbs() == ["create", "status"]

    def test_resource_of_an_earlier_life_is_gone_on_with(self) -> None:
        played = Scene(rebalance("Applying", times={"proposed": "2027-01-15T08:00:00Z", "applying": "then"}))
        played.publisher.on_record(plan_record(PlanState.SETTLING))
        assert played.kinds.verbs() == ["status"]
        assert played.kinds.statuses()[0]["times"]["applying"] == "then"

    def test_resource_of_its_name_in_another_namespace_is_none_of_its(self) -> None:
        played = Scene(elsewhere("Applying"))
        played.publisher.on_record(plan_record(PlanState.SETTLING))
        assert [call[:2] for call in played.kinds.calls] == [("create", NAME), ("status", NAME)]

    def test_plan_for_topologies_without_a_resource_is_not_shown(self) -> None:
        played = Scene()
        played.owners.clear()
        played.publisher.on_record(plan_record())
        assert (played.kinds.calls, played.events.posted) == ([], [])

    def test_plan_whose_resource_goes_meanwhile_is_written_to_its_end(self) -> None:
        played = Scene()
        played.publisher.on_record(plan_record(PlanState.APPLYING))
        played.owners.clear()
        played.publisher.on_record(plan_record(PlanState.FAILED))
        assert played.kinds.statuses()[-1]["state"] == "Failed"

    def test_is_remembered_for_the_status_of_each_of_its_topologies(self) -> None:
        played = Scene()
        two = plan_record(of=plan(topology_ids=(TOPOLOGY_ID, "other-1-1")))
        played.publisher.on_record(two)
        assert played.publisher.last_record == {TOPOLOGY_ID: two, "other-1-1": two}

    def test_api_that_does_not_answer_does_not_stop_the_plan(self) -> None:
        played = Scene()
        played.kinds.error = KubernetesError("create stormrebalances: down")
        played.publisher.on_record(plan_record(PlanState.APPLYING))
        assert played.said[-1] == "PlanNotShown: create stormrebalances: down"
        assert played.events.posted == [("PlanNotShown", "create stormrebalances: down", True)]
        assert played.publisher.last_record[TOPOLOGY_ID].state is PlanState.APPLYING

    def test_step_that_could_not_be_shown_is_shown_by_the_next_pass(self) -> None:
        played = Scene()
        played.publisher.on_record(plan_record(PlanState.SETTLING))
        played.kinds.error = KubernetesError("down")
        played.publisher.on_record(plan_record(PlanState.VERIFIED))
        attempts = played.kinds.attempts
        played.publisher.on_pass(PassReport(NOW_SECONDS, None, None, ()))
        assert played.kinds.attempts == attempts
        played.kinds.error = None
        played.now += FIRST_RETRY_SECONDS
        for _ in range(2):
            played.publisher.on_pass(PassReport(NOW_SECONDS, None, None, ()))
        assert [status["state"] for status in played.kinds.statuses()] == ["Settling", "Verified"]

    def test_step_is_not_waited_for_while_the_api_server_hangs(self) -> None:
        """Spouts may be paused meanwhile."""
        played = Scene()
        played.kinds.error = NoAnswer("the Kubernetes API does not answer")
        for state in (PlanState.APPLYING, PlanState.SETTLING):
            played.publisher.on_record(plan_record(state))
        played.publisher.on_record(plan_record(PlanState.APPLYING, of=plan("p-2")))
        assert played.kinds.attempts == 1
        played.kinds.error = None
        played.now += max(SILENCE_SECONDS, FIRST_RETRY_SECONDS)
        played.publisher.on_pass(PassReport(NOW_SECONDS, None, None, ()))
        assert [status["state"] for status in played.kinds.statuses()] == ["Settling", "Applying"]

    def test_resource_that_could_not_be_made_is_made_at_the_next_step(self) -> None:
        played = Scene()
        played.kinds.error = KubernetesError("down")
        played.publisher.on_record(plan_record(PlanState.APPLYING))
        played.kinds.error = None
        played.publisher.on_record(plan_record(PlanState.SETTLING))
        assert played.kinds.verbs() == ["create", "status"]

    def test_proposal_whose_resource_an_earlier_life_made_and_somebody_deleted_gets_no_other(self) -> None:
        played = Scene()
        played.publisher.on_record(plan_record(PlanState.EXPIRED, message="its StormRebalance was deleted"))
        assert played.kinds.calls == []
        assert played.events.posted == [("PlanExpired", f"plan {plan().id}: its StormRebalance was deleted", False)]

    def test_way_back_that_is_verified_marks_what_it_undid(self) -> None:
        played = Scene()
        played.publisher.on_record(plan_record(PlanState.SETTLING, rollback_of="p-bad"))
        assert "rolledBackBy" not in played.kinds.statuses()[-1]
        played.publisher.on_record(plan_record(PlanState.VERIFIED, rollback_of="p-bad"))
        verb, name, written = played.kinds.calls[-1]
        assert (verb, name) == ("status", "streams/p-bad")
        assert (written["rolledBackBy"], written["state"], written["reason"]) == (plan().id, "RolledBack", "RolledBack")

    def test_what_it_undid_is_marked_where_it_is(self) -> None:
        """Of a plan for topologies of two namespaces the way back may concern those of one alone."""
        other = managed("other", namespace="elsewhere")
        played = Scene(rebalance("Verified", of=plan("p-bad", topology_ids=("other-1-1", TOPOLOGY_ID)), owner=other))
        played.owners["other-1-1"] = other
        played.publisher.on_record(plan_record(PlanState.VERIFIED, rollback_of="p-bad"))
        assert played.kinds.calls[-1][:2] == ("status", "elsewhere/p-bad")

    def test_what_has_the_name_of_what_it_undid_in_another_namespace_is_not_marked(self) -> None:
        played = Scene(elsewhere("Verified", of=plan("p-bad")), rebalance("Verified", of=plan("p-bad")))
        played.publisher.on_record(plan_record(PlanState.VERIFIED, rollback_of="p-bad"))
        assert played.kinds.calls[-1][:2] == ("status", "streams/p-bad")

    def test_way_back_leaves_the_other_conditions_of_what_it_undid(self) -> None:
        conditions = rebalance_status(VERIFIED, {}, NOW_SECONDS)["conditions"]
        played = Scene(rebalance("Verified", of=plan("p-bad"), conditions=conditions))
        played.publisher.on_record(plan_record(PlanState.VERIFIED, rollback_of="p-bad"))
        written = {c["type"]: c["status"] for c in played.kinds.statuses()[-1]["conditions"]}
        assert written == {"Approved": "True", "Enforced": "False", "Verified": "False"}

    @pytest.mark.parametrize(
        ("state", "warning"), [(PlanState.VERIFIED, False), (PlanState.FAILED, True), (PlanState.ROLLED_BACK, True)]
    )
    def test_is_an_event_of_its_owner(self, state: PlanState, warning: bool) -> None:
        played = Scene()
        played.publisher.on_record(plan_record(state, message="as it went"))
        assert played.events.posted == [(f"Plan{state.value}", f"plan {plan().id}: as it went", warning)]

    def test_is_an_event_of_each_of_its_topologies(self) -> None:
        played = Scene()
        played.owners["other-1-1"] = managed("other")
        of = plan(topology_ids=("nobodys-1-1", "other-1-1", TOPOLOGY_ID))
        played.publisher.on_record(plan_record(PlanState.APPLYING, of=of))
        assert played.events.about == ["other", "words"]
        assert set(played.events.posted) == {("PlanApplying", f"plan {of.id}: closer", False)}


class TestHistory:
    def test_oldest_finished_plans_go(self) -> None:
        played = Scene(*(rebalance("Verified", of=plan(f"p-{at}")) for at in range(4)))
        played.publisher.trim_history(managed(), 2)
        assert [name for verb, name, _ in played.kinds.calls if verb == "delete"] == ["streams/p-0", "streams/p-1"]

    def test_they_are_not_deleted_twice_though_the_watch_lags_behind(self) -> None:
        played = Scene(*(rebalance("Verified", of=plan(f"p-{at}")) for at in range(4)))
        played.publisher.trim_history(managed(), 2)
        played.publisher.trim_history(managed(), 2)
        assert played.kinds.verbs() == ["delete", "delete"]

    def test_of_one_resource_is_trimmed_without_a_look_at_the_plans_of_all_others(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        owners = [managed(f"words-{number}") for number in range(100)]
        names = [f"p-20270115-08000{minute}" for minute in range(3)]
        played = Scene(*(rebalance("Verified", of=plan(f"{n}-{o.key[1]}"), owner=o) for o in owners for n in names))
        looked_at: list[str] = []
        monkeypatch.setattr(publisher_module, "surplus", lambda bodies, *rest: surplus(counted(bodies), *rest))

        def counted(bodies: tuple[Body, ...]) -> tuple[Body, ...]:
            looked_at.extend(body["metadata"]["name"] for body in bodies)
            return bodies

        for owner in owners:
            played.publisher.trim_history(owner, 2)
        assert len(looked_at) == 300
        assert [name for _, name, _ in played.kinds.calls] == [f"streams/{names[0]}-{o.key[1]}" for o in owners]

    def test_that_cannot_be_trimmed_ends_no_pass_and_is_tried_again_slowly(self) -> None:
        played = Scene(*(rebalance("Verified", of=plan(f"p-{at}")) for at in range(4)))
        played.kinds.error = KubernetesError("delete: forbidden")
        for _ in range(3):
            played.publisher.trim_history(managed(), 2)
        assert played.kinds.attempts == 1
        assert played.events.posted == [("HistoryKept", "delete: forbidden", True)]
        played.kinds.error = None
        played.now += FIRST_RETRY_SECONDS
        played.publisher.trim_history(managed(), 2)
        assert played.kinds.verbs() == ["delete", "delete"]

    def test_that_hangs_is_not_waited_for_once_more_for_each_resource(self) -> None:
        played = Scene(rebalance("Verified"), topology_body("other"))
        other = rebalance("Verified", owner=managed("other"))
        played.registry.put_rebalance({**other, "metadata": {**other["metadata"], "name": "p-other"}})
        played.kinds.error = NoAnswer("the Kubernetes API does not answer")
        for name in ("words", "other"):
            played.publisher.trim_history(managed(name), 0)
        assert played.kinds.attempts == 1


class TestMemory:
    """What comes and goes for months must not be kept."""

    @staticmethod
    def end_pass(played: Scene, *running: Topology) -> None:
        played.publisher.on_pass(PassReport(NOW_SECONDS, snapshot(running, ()), None, ()))

    def test_last_plan_is_kept_while_its_topology_runs(self) -> None:
        played = Scene()
        played.publisher.on_record(plan_record(of=plan(topology_ids=(TOPOLOGY_ID, "other-1-1"))))
        self.end_pass(played, WORDS)
        assert list(played.publisher.last_record) == [TOPOLOGY_ID]

    def test_pass_that_saw_nothing_ends_no_topology(self) -> None:
        played = Scene()
        played.publisher.on_record(plan_record())
        played.publisher.on_pass(PassReport(NOW_SECONDS, None, None, ()))
        assert list(played.publisher.last_record) == [TOPOLOGY_ID]

    def test_statuses_of_deleted_resources_go(self) -> None:
        played = Scene(topology_body("other"))
        for name in ("words", "other"):
            played.publisher.write_status(managed(name), {"phase": "Running", **throughput(1.0)})
        played.registry.forget_topology(("streams", "other"), "uid-other")
        self.end_pass(played, WORDS)
        assert [*played.publisher.written, *played.publisher.figures_at] == ["uid-words"] * 2

    @pytest.mark.parametrize(
        ("state", "is_there", "is_kept"),
        [
            (PlanState.VERIFIED, True, True),
            (PlanState.VERIFIED, False, False),
            (PlanState.SETTLING, False, True),  # it will be written to
        ],
    )
    def test_plan_is_kept_until_it_is_over_and_gone(self, state: PlanState, is_there: bool, is_kept: bool) -> None:
        played = Scene(*([rebalance(state.value)] if is_there else []))
        played.publisher.on_record(plan_record(state))
        self.end_pass(played, WORDS)
        assert list(played.shown.written) == [plan().id] * is_kept

    def test_of_plans_that_cannot_be_shown_the_last_are_kept(self) -> None:
        played = Scene()
        played.kinds.error = KubernetesError("create stormrebalances: an admission policy forbids it")
        for number in range(MOST_UNSHOWN + 5):
            played.publisher.on_record(plan_record(PlanState.VERIFIED, of=plan(f"p-{number}")))
            self.end_pass(played, WORDS)
        kept = [f"p-{number}" for number in range(5, MOST_UNSHOWN + 5)]
        assert list(played.publisher.unshown) == kept
        assert {about for _, about in played.publisher.concerns.troubles} == set(kept)

    def test_troubles_of_deleted_resources_go(self) -> None:
        played = Scene(topology_body("other"))
        played.kinds.error = KubernetesError("status: not valid")
        for name in ("words", "other"):
            played.publisher.write_status(managed(name), {"phase": "Running"})
        played.registry.forget_topology(("streams", "other"), "uid-other")
        self.end_pass(played, WORDS)
        assert list(played.publisher.concerns.troubles) == [("StatusRefused", "streams/words")]


class TestEndOfAPlan:
    def test_is_known_after_its_topology_has_gone(self) -> None:
        played = Scene(rebalance("Settling"))
        played.publisher.on_record(plan_record(PlanState.SETTLING))
        assert played.publisher.end_of(plan().id) is None
        played.publisher.on_record(plan_record(PlanState.EXPIRED, message="words-1 no longer runs"))
        TestMemory.end_pass(played)
        assert played.publisher.last_record == {}
        end = played.publisher.end_of(plan().id)
        assert end is not None
        assert (end["state"], end["message"]) == ("Expired", "words-1 no longer runs")
        one = managed(status={"lastPlan": {"id": plan().id, "state": "Settling"}})
        lifecycle = Mock(progress={"words": Progress(Stage.RUNNING, "", "words-2-1")}, retries={}, suspended={})
        care = Mock(obstacles=lambda _: (), counts=Mock(held={}), places=lambda *_: ())
        assert view_of("words", one, played.publisher, care, lifecycle, None, {}).plan_end == end

    def test_is_what_the_watch_tells_of_a_plan_that_was_closed_as_lost(self) -> None:
        played = Scene(rebalance("Expired", message="the journal in ZooKeeper does not know it"))
        end = played.publisher.end_of(plan().id)
        assert end is not None
        assert end["message"] == "the journal in ZooKeeper does not know it"

    def test_is_not_what_somebody_wrote_under_its_name_in_another_namespace(self) -> None:
        assert Scene(elsewhere("Expired")).publisher.end_of(plan().id) is None

    def test_is_unknown_of_one_that_nobody_knows(self) -> None:
        assert Scene().publisher.end_of(plan().id) is Scene().publisher.end_of("") is None


class TestDecisionFor:
    @staticmethod
    def report(*decisions: Any) -> PassReport:
        return PassReport(NOW_SECONDS, None, None, decisions)

    def test_is_that_of_its_group(self) -> None:
        other = Hold(HoldReason.COOL_DOWN, "40 s old")
        assert decision_for(self.report((("a", "b"), other), (("words",), HOLD)), "words") == HOLD

    def test_hold_about_all_is_about_each(self) -> None:
        unreachable = Hold(HoldReason.CLUSTER_UNREACHABLE, "no Nimbus")
        assert decision_for(self.report(((), unreachable)), "words") == unreachable

    def test_topology_of_no_group_has_none(self) -> None:
        assert decision_for(self.report((("other",), HOLD)), "words") is None

    def test_there_is_none_before_the_first_pass(self) -> None:
        assert decision_for(None, "words") is None

"""Plans as StormRebalance resources: what is shown of them, what is read back, which of them are kept."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
import tracemalloc
from dataclasses import asdict, replace
from typing import Any

import jsonschema
import pytest
import yaml

from kube_builders import (
    GATHERED,
    HOSTS,
    NIMBUS,
    NOW,
    NOW_SECONDS,
    SPREAD,
    TOPOLOGY_ID,
    WORDS,
    managed,
    plan,
    plan_record,
    rebalance,
)
from large_plan import all_moved
from storm_operator.adapters.resource_schema import crd_file
from storm_operator.core.decision import Move, Prediction
from storm_operator.core.decision_memory import assignment_hash
from storm_operator.core.direct_plan import reverse_plan
from storm_operator.core.plan_json import plan_to_json
from storm_operator.core.plan_record import AUTO, Outcome, PlanState
from storm_operator.kube.rebalance_status import rebalance_status
from storm_operator.kube.rebalances import (
    ASK_ANNOTATION,
    FINAL_STATES,
    LONGEST_UNPACKED_BYTES,
    MOST_SHOWN,
    PACKED,
    TOPOLOGY_LABEL,
    Ask,
    annotated_by,
    asked,
    plan_of,
    proposal_record,
    rebalance_body,
    state_of,
    surplus,
    timestamp,
)

LARGEST_OF_ETCD_BYTES = 1_500_000
IN_FORCE = {"approved_by": AUTO, "in_force_at_seconds": NOW_SECONDS}
MEASURED = Outcome(100.04, 300.0, 5.0, 4.0, 12.0)


def rebalance_schema() -> dict[str, Any]:
    (version,) = yaml.safe_load(crd_file("stormrebalances").read_text())["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


class TestSpec:
    def test_says_who_moves_from_where_to_where(self) -> None:
        spec = rebalance_body(plan_record(), managed(), HOSTS)["spec"]
        assert spec["moves"] == [
            {
                "topology": TOPOLOGY_ID,
                "component": "split",
                "executor": "2-2",
                "from": "supervisor-1:6700",
                "to": "supervisor-0:6700",
            }
        ]
        assert spec["restartedWorkers"] == ["supervisor-0:6700", "supervisor-1:6700"]
        assert spec["keptWorkers"] == ["supervisor-1:6701"]
        assert (spec["moveCount"], spec["restartCount"]) == (1, 1)

    def test_executor_without_a_place_comes_from_nowhere(self) -> None:
        (move,) = plan().moves
        lost = plan(moves=(Move(move.executor, None, move.target),))
        (shown,) = rebalance_body(plan_record(of=lost), managed(), HOSTS)["spec"]["moves"]
        assert "from" not in shown

    def test_supervisor_without_a_known_host_is_shown_by_its_id(self) -> None:
        (shown,) = rebalance_body(plan_record(), managed(), {})["spec"]["moves"]
        assert (shown["from"], shown["to"]) == ("s2:6700", "s1:6700")

    def test_says_what_is_won_and_when_it_has_paid(self) -> None:
        spec = rebalance_body(plan_record(), managed(), HOSTS)["spec"]
        assert spec["gainPercent"] == 62.5
        assert spec["paybackSeconds"] == 71.23
        assert spec["prediction"]["before"]["interSupervisorTuplesPerSecond"] == 300.0
        assert spec["prediction"]["after"]["completeLatencyMilliseconds"] == 4.0
        assert spec["cpuLimitsMillicores"] == {f"{TOPOLOGY_ID}/2-2": 200.0}

    def test_unknown_figures_are_absent(self) -> None:
        silent = replace(plan().after, complete_latency_ms=None)
        spec = rebalance_body(plan_record(of=plan(payback_seconds=None, after=silent)), managed(), HOSTS)["spec"]
        assert "paybackSeconds" not in spec
        assert "completeLatencyMilliseconds" not in spec["prediction"]["after"]

    def test_nobody_predicts_what_a_rollback_does(self) -> None:
        back = plan_record(of=reverse_plan(plan(), "p-2", NOW_SECONDS), rollback_of="p-1")
        assert "prediction" not in rebalance_body(back, managed(), HOSTS)["spec"]

    @pytest.mark.slow
    def test_plan_of_ten_thousand_executors_fits_into_etcd_and_comes_back_whole(self) -> None:
        large = all_moved(10_000)
        body = rebalance_body(large, managed(), HOSTS)
        assert len(json.dumps(body)) < LARGEST_OF_ETCD_BYTES
        assert body["spec"]["moveCount"] == 10_000
        assert len(body["spec"]["moves"]) == len(body["spec"]["cpuLimitsMillicores"]) == MOST_SHOWN
        assert plan_of(body) == large.plan
        packed = base64.b64decode(body["spec"]["plan"].removeprefix(PACKED))
        assert 3 * len(gzip.decompress(packed)) < LONGEST_UNPACKED_BYTES

    def test_plan_of_few_executors_is_plain_json(self) -> None:
        body = rebalance_body(plan_record(), managed(), HOSTS)
        assert json.loads(body["spec"]["plan"])["id"] == plan().id

    @pytest.mark.parametrize("text", [f"{PACKED}!", f"{PACKED}H4sI", "{", {"id": "p-1"}])
    def test_plan_that_cannot_be_read_is_none(self, text: object) -> None:
        body = rebalance_body(plan_record(), managed(), HOSTS)
        body["spec"]["plan"] = text
        assert plan_of(body) is None

    def test_hashes_are_those_of_base_and_target(self) -> None:
        spec = rebalance_body(plan_record(), managed(), HOSTS)["spec"]
        assert spec["baseHash"] == assignment_hash(SPREAD)
        assert spec["planHash"] == assignment_hash(GATHERED)

    def test_belongs_to_the_cluster_and_the_resource_of_its_owner(self) -> None:
        body = rebalance_body(plan_record(), managed(), HOSTS)
        assert body["spec"]["clusterNimbus"] == NIMBUS
        assert body["metadata"]["namespace"] == "streams"
        (owner,) = body["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("StormTopology", "words", "uid-words")

    @pytest.mark.parametrize("name", ["words", "w" * 62 + "-words", "w" * 80])
    def test_label_is_one_that_kubernetes_takes(self, name: str) -> None:
        body = rebalance_body(plan_record(), managed(name, spec={"adopt": {}, "topologyName": "words"}), HOSTS)
        label = body["metadata"]["labels"][TOPOLOGY_LABEL]
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", label)
        assert name.startswith(label)

    def test_is_valid_by_the_crd(self) -> None:
        schema = rebalance_schema()
        done = plan_record(PlanState.VERIFIED, measured=MEASURED, before=MEASURED, in_force_at_seconds=NOW_SECONDS)
        body = rebalance_body(done, managed(), HOSTS)
        body["status"] = rebalance_status(done, {}, NOW_SECONDS)
        jsonschema.validate(body, schema)
        assert set(body["spec"]) <= set(schema["properties"]["spec"]["properties"])
        assert set(body["status"]) <= set(schema["properties"]["status"]["properties"])

    def test_is_valid_by_the_crd_however_a_component_is_called(self) -> None:
        (move,) = plan().moves
        endless = replace(move.executor, component="split" * 1000)
        body = rebalance_body(plan_record(of=plan(moves=(replace(move, executor=endless),))), managed(), HOSTS)
        jsonschema.validate(body, rebalance_schema())
        (shown,) = body["spec"]["moves"]
        assert shown["component"].startswith("splitsplit")


class TestPlan:
    def test_is_read_back_exactly(self) -> None:
        assert plan_of(rebalance()) == plan()

    @pytest.mark.parametrize("text", ["", "{}", "[1]", "null", '{"id": "p-1"}', "not JSON"])
    def test_that_is_not_understood_is_none(self, text: str) -> None:
        body = rebalance()
        assert plan_of({**body, "spec": {**body["spec"], "plan": text}}) is None

    @pytest.mark.parametrize("packed", [False, True])
    def test_that_is_lists_in_lists_without_end_is_none(self, packed: bool) -> None:
        text = "[" * 1_000_000
        body = rebalance()
        body["spec"]["plan"] = PACKED + base64.b64encode(gzip.compress(text.encode())).decode() if packed else text
        assert plan_of(body) is None

    @pytest.mark.slow
    def test_that_would_fill_the_memory_when_unpacked_is_none(self) -> None:
        bomb = gzip.compress(b"[" + b" " * 10 * LONGEST_UNPACKED_BYTES)
        body = rebalance()
        body["spec"]["plan"] = PACKED + base64.b64encode(bomb).decode()
        tracemalloc.start()
        assert plan_of(body) is None
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 3 * LONGEST_UNPACKED_BYTES

    @pytest.mark.parametrize(
        "changes",
        [
            {"id": "p-another"},
            {"target": SPREAD},
            {"base": GATHERED},
            {"topology_ids": ("another-1-1",)},
        ],
        ids=lambda changes: str(*changes),
    )
    def test_that_is_not_what_the_resource_says_is_none(self, changes: dict[str, Any]) -> None:
        body, other = rebalance(), rebalance(of=replace(plan(), **changes))
        body["spec"]["plan"] = other["spec"]["plan"]
        assert plan_of(body) is None

    def test_that_moves_topologies_which_it_does_not_name_is_none(self) -> None:
        assert plan_of(rebalance(of=plan(topology_ids=("another-1-1",)))) is None

    @pytest.mark.parametrize(
        "changes",
        [
            {"created_at_seconds": "soon"},
            {"created_at_seconds": True},
            {"created_at_seconds": math.nan},
            {"created_at_seconds": 1e300},
            {"reason": 5},
            {"gain_percent": "much"},
            {"payback_seconds": [1.0]},
            {"cpu_limits_millicores": {WORDS.executors[1]: "200"}},
            {"before": Prediction(**{**asdict(plan().before), "network_usage": None})},
            {"after": Prediction(**{**asdict(plan().after), "complete_latency_ms": "4"})},
        ],
        ids=lambda changes: "-".join(map(str, *changes.items()))[:40],
    )
    def test_that_nobody_could_reckon_with_is_none(self, changes: dict[str, Any]) -> None:
        """As a proposal that waits it would make each pass fail."""
        body = rebalance()
        body["spec"]["plan"] = json.dumps(plan_to_json(plan(**changes)))
        assert plan_of(body) is None

    @pytest.mark.parametrize("number", ["port", "task_start", "task_end"])
    def test_that_writes_its_numbers_as_texts_is_none(self, number: str) -> None:
        """Their hash is the same."""
        body = rebalance()
        body["spec"]["plan"] = re.sub(rf'"{number}":(\d+)', rf'"{number}":"\1"', body["spec"]["plan"])
        assert plan_of(body) is None

    def test_that_is_absent_is_none(self) -> None:
        assert plan_of({"metadata": {}, "spec": {}}) is None


class TestStatus:
    def test_of_a_proposal_says_what_it_waits_for(self) -> None:
        status = rebalance_status(plan_record(message="approval is Manual"), {}, NOW_SECONDS)
        assert (status["state"], status["message"]) == ("Proposed", "approval is Manual")
        assert status["times"] == {"proposed": NOW}

    def test_times_add_up_over_a_plans_life(self) -> None:
        applying = rebalance_status(plan_record(PlanState.APPLYING), {}, NOW_SECONDS + 1)
        settling = plan_record(PlanState.SETTLING, in_force_at_seconds=NOW_SECONDS + 3, seconds_to_running=4.0)
        settled = rebalance_status(settling, applying, NOW_SECONDS + 8)
        verified = replace(settling, state=PlanState.VERIFIED)
        assert rebalance_status(verified, settled, NOW_SECONDS + 30)["times"] == {
            "proposed": NOW,
            "applying": timestamp(NOW_SECONDS + 1),
            "inForce": timestamp(NOW_SECONDS + 3),
            "running": timestamp(NOW_SECONDS + 7),
            "finished": timestamp(NOW_SECONDS + 30),
        }

    def test_times_that_are_told_stay(self) -> None:
        before = {"times": {"applying": NOW}}
        assert rebalance_status(plan_record(PlanState.APPLYING), before, NOW_SECONDS + 99)["times"]["applying"] == NOW

    def test_measured_figures_are_rounded_and_unknown_ones_absent(self) -> None:
        done = plan_record(PlanState.VERIFIED, measured=replace(MEASURED, complete_latency_p99_ms=None))
        measured = rebalance_status(done, {}, NOW_SECONDS)["measured"]
        assert measured["before"] == {}
        assert measured["after"]["interSupervisorTuplesPerSecond"] == 100.04
        assert "completeLatencyP99Milliseconds" not in measured["after"]

    def test_way_back_points_to_what_it_undoes(self) -> None:
        assert rebalance_status(plan_record(rollback_of="p-1"), {}, NOW_SECONDS)["rollbackOf"] == "p-1"
        assert "rollbackOf" not in rebalance_status(plan_record(), {}, NOW_SECONDS)

    def test_says_who_approved_it_and_when(self) -> None:
        waiting = rebalance_status(plan_record(), {}, NOW_SECONDS)
        assert "approvedBy" not in waiting
        approved = plan_record(approved_by="annotation (kubectl-annotate)", approved_at_seconds=NOW_SECONDS + 2)
        status = rebalance_status(approved, waiting, NOW_SECONDS + 3)
        assert (status["state"], status["approvedBy"]) == ("Approved", "annotation (kubectl-annotate)")
        assert status["times"] == {"proposed": NOW, "approved": timestamp(NOW_SECONDS + 2)}

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"state": PlanState.PROPOSED}, ("False", "False", "Unknown")),
            ({"state": PlanState.PROPOSED, "approved_by": "annotation"}, ("True", "False", "Unknown")),
            ({"state": PlanState.REJECTED}, ("False", "False", "Unknown")),
            ({"state": PlanState.APPLYING, "approved_by": AUTO}, ("True", "False", "Unknown")),
            (
                {"state": PlanState.SETTLING, **IN_FORCE},
                ("True", "True", "Unknown"),
            ),
            ({"state": PlanState.VERIFIED, **IN_FORCE}, ("True", "True", "True")),
            (
                {"state": PlanState.ROLLED_BACK, **IN_FORCE},
                ("True", "False", "False"),
            ),
            (
                {"state": PlanState.FAILED, **IN_FORCE},
                ("True", "False", "Unknown"),
            ),
            (
                {"state": PlanState.EXPIRED, **IN_FORCE},
                ("True", "True", "Unknown"),
            ),
        ],
    )
    def test_conditions_say_how_far_it_has_come(self, fields: dict[str, Any], expected: tuple[str, ...]) -> None:
        conditions = rebalance_status(plan_record(**fields), {}, NOW_SECONDS)["conditions"]
        assert [c["type"] for c in conditions] == ["Approved", "Enforced", "Verified"]
        assert tuple(c["status"] for c in conditions) == expected

    def test_time_of_a_condition_is_that_of_its_last_change(self) -> None:
        first = rebalance_status(plan_record(), {}, NOW_SECONDS)
        again = rebalance_status(plan_record(PlanState.APPLYING, approved_by=AUTO), first, NOW_SECONDS + 9)
        times = {c["type"]: c["lastTransitionTime"] for c in again["conditions"]}
        assert times == {"Approved": timestamp(NOW_SECONDS + 9), "Enforced": NOW, "Verified": NOW}

    def test_plan_that_nimbus_shows_is_in_force(self) -> None:
        shown = plan_record(PlanState.APPLYING, in_force_at_seconds=NOW_SECONDS)
        assert rebalance_status(shown, {}, NOW_SECONDS)["state"] == "InForce"

    def test_resource_without_a_status_is_proposed(self) -> None:
        assert state_of({"metadata": {}, "spec": {}}) == "Proposed"

    def test_final_states_are_those_of_plans(self) -> None:
        assert {"Verified", "RolledBack", "Failed", "Expired", "Rejected"} == FINAL_STATES


class TestAsk:
    @pytest.mark.parametrize("word", list(Ask))
    def test_is_read_from_the_annotation(self, word: Ask) -> None:
        assert asked(rebalance(ask=word.value)) is word

    def test_that_is_not_understood_is_given_as_it_is(self) -> None:
        word = asked(rebalance(ask="Approve"))
        assert word == "Approve"
        assert not isinstance(word, Ask)

    def test_is_none_without_the_annotation(self) -> None:
        assert asked(rebalance()) is None


class TestWhoAsks:
    @staticmethod
    def of(*managers: tuple[str, str]) -> str:
        body = rebalance(ask="approve")
        body["metadata"]["managedFields"] = [
            {"manager": manager, "fieldsV1": {"f:metadata": {"f:annotations": {".": {}, f"f:{annotation}": {}}}}}
            for manager, annotation in managers
        ]
        return annotated_by(body)

    def test_is_the_manager_of_the_annotation(self) -> None:
        assert self.of(("argocd", "other"), ("kubectl-annotate", ASK_ANNOTATION)) == "annotation (kubectl-annotate)"

    def test_is_not_known_where_nobody_manages_it(self) -> None:
        assert self.of(("argocd", "other")) == "annotation"
        assert annotated_by(rebalance(ask="approve")) == "annotation"

    def test_entries_of_another_form_are_passed_over(self) -> None:
        body = rebalance(ask="approve")
        body["metadata"]["managedFields"] = [{"manager": "x"}, {"manager": "y", "fieldsV1": {"f:metadata": None}}]
        assert annotated_by(body) == "annotation"


class TestProposalOfAnEarlierLife:
    @pytest.mark.parametrize("state", ["Proposed", "Approved"])
    def test_waits_on(self, state: str) -> None:
        record = proposal_record(rebalance(state, message="approval is Manual"))
        assert record is not None
        assert (record.plan, record.state, record.message) == (plan(), PlanState.PROPOSED, "approval is Manual")

    @pytest.mark.parametrize("state", ["Applying", "Settling", *sorted(FINAL_STATES)])
    def test_that_waits_no_more_is_none(self, state: str) -> None:
        assert proposal_record(rebalance(state)) is None

    def test_that_was_approved_still_is(self) -> None:
        approved: dict[str, Any] = {
            "approvedBy": "annotation (kubectl-annotate)",
            "times": {"approved": timestamp(NOW_SECONDS + 2)},
        }
        record = proposal_record(rebalance("Approved", **approved))
        assert record is not None
        assert (record.approved_by, record.approved_at_seconds) == (approved["approvedBy"], NOW_SECONDS + 2)
        proposed = proposal_record(rebalance("Proposed"))
        assert proposed is not None
        assert proposed.approved_by == ""

    def test_way_back_is_still_known_for_one(self) -> None:
        record = proposal_record(rebalance(rollbackOf="p-1"))
        assert record is not None
        assert record.rollback_of == "p-1"


class TestSurplus:
    @staticmethod
    def names(limit: int, *states: str) -> list[str]:
        bodies = tuple(rebalance(state, of=plan(f"p-{at}")) for at, state in enumerate(states))
        return [str(body["metadata"]["name"]) for body in surplus(bodies, managed(), limit, NOW_SECONDS)]

    def test_is_the_oldest_beyond_the_limit(self) -> None:
        assert self.names(2, "Verified", "Failed", "Expired", "Rejected") == ["p-0", "p-1"]
        assert self.names(4, "Verified", "Failed", "Expired", "Rejected") == []

    def test_is_all_finished_ones_where_none_is_kept(self) -> None:
        assert self.names(0, "Verified", "Proposed", "Failed") == ["p-0", "p-2"]

    def test_never_has_one_that_is_not_finished(self) -> None:
        assert self.names(0, "Proposed", "Approved", "Applying", "Settling") == []

    def test_leaves_those_of_other_topologies_alone(self) -> None:
        others = tuple(rebalance("Verified", of=plan(f"p-{at}"), owner=managed("other")) for at in range(3))
        assert surplus(others, managed(), 0, NOW_SECONDS) == ()

    def test_is_what_was_made_before_the_clock_was_set_back_before_what_was_made_since(self) -> None:
        """Names begin with the time of the plan: each new one would else go as soon as it is over."""
        since = rebalance("Verified", of=plan("p-1", created_at_seconds=NOW_SECONDS - 86_400.0))
        before = [rebalance("Verified", of=plan(name)) for name in ("p-2", "p-3")]
        (gone,) = surplus((since, *before), managed(), 2, NOW_SECONDS - 86_000.0)
        assert gone["metadata"]["name"] == "p-2"


def test_split_is_what_the_plan_of_these_tests_moves() -> None:
    assert [move.executor for move in plan().moves] == list(WORDS.executors_of("split"))

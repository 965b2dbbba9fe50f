"""Approval with the caller's own token: what is asked of Kubernetes in their name, and what they are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

import pytest

from kube_builders import NIMBUS, TOPOLOGY_ID, plan, rebalance, registry_of, topology_body
from loop_scene import Scene, with_mode
from loop_scene import scene as loop_scene
from storm_operator.adapters.kube.errors import Forbidden, KubernetesError, NotFound
from storm_operator.console.approval import Verdict
from storm_operator.console.messages import Request
from storm_operator.core.decision import Plan
from storm_operator.core.refusal import Refusal
from storm_operator.core.settings import Mode
from storm_operator.core.topology_spec import PAUSED_ANNOTATION
from storm_operator.kube.connecting import RunnerSettings
from storm_operator.kube.managed import Registry
from storm_operator.kube.managed_cluster import ManagedCluster
from storm_operator.kube.page import WAITS_TO_LEAD, CallersApi, KubePage, TokenApprover
from storm_operator.kube.runner import ClusterRunner
from storm_operator.kube.runners import Runners
from storm_operator.kube.submission import JobSettings

PLAN = plan().id


@dataclass
class Caller(CallersApi):
    """Whoever the token belongs to; remembers what was asked in their name."""

    refusal: str = ""
    error: Exception | None = None
    obstacle: Exception | None = None
    """In the way of the annotation."""
    asked: list[tuple[str, str, Verdict]] = field(default_factory=list)

    def objection(self, namespace: str, name: str) -> str:
        if self.error is not None:
            raise self.error
        return self.refusal

    def ask(self, namespace: str, name: str, verdict: Verdict) -> None:
        if self.obstacle is not None:
            raise self.obstacle
        self.asked.append((namespace, name, verdict))


def answered(caller: Caller, state: str = "Proposed", token: str = "t", plan_id: str = PLAN) -> tuple[int, str]:
    shown = rebalance(state, of=plan())
    tokens: list[str] = []

    def as_caller(given: str) -> CallersApi:
        tokens.append(given)
        return caller

    answer = TokenApprover({PLAN: shown}.get, as_caller).take(plan_id, Verdict.APPROVE, token)
    assert set(tokens) <= {token}
    return int(answer.status), answer.message


def test_a_caller_who_may_sets_the_annotation_in_their_own_name() -> None:
    caller = Caller()
    assert answered(caller) == (202, "approved; it begins with the next pass")
    assert caller.asked == [("streams", PLAN, Verdict.APPROVE)]


@pytest.mark.parametrize(
    ("caller", "status", "words"),
    [
        (Caller(refusal="jane may not patch"), 403, "jane may not patch"),
        (Caller(error=Forbidden("forbidden")), 403, "forbidden"),
        (Caller(error=KubernetesError("ask: 401 Unauthorized")), 401, "Kubernetes does not accept this token"),
        (Caller(error=KubernetesError("ask: it does not answer")), 502, "it does not answer"),
        (Caller(obstacle=NotFound("gone")), 409, "does not wait for a person"),
    ],
)
def test_a_caller_who_may_not_is_told_why(caller: Caller, status: int, words: str) -> None:
    got, message = answered(caller)
    assert got == status
    assert words in message
    assert caller.asked == []


def test_without_a_token_nobody_is_asked() -> None:
    caller = Caller()
    assert answered(caller, token="")[0] == 401
    assert caller.asked == []


@pytest.mark.parametrize("state", ["Approved", "Applying", "Verified", "Rejected", "Expired"])
def test_only_what_waits_can_be_approved(state: str) -> None:
    assert answered(Caller(), state=state)[0] == 409
    assert answered(Caller(), plan_id="p-none")[0] == 409


def test_the_right_is_asked_for_where_the_plan_is_shown_whoever_has_one_of_its_name_elsewhere() -> None:
    loop, caller = loop_scene(), Caller()
    made = loop.run(with_mode(Mode.RECOMMEND))
    assert isinstance(made, Plan)
    shown = rebalance(of=made)
    decoy = {**shown, "metadata": {**shown["metadata"], "namespace": "a-team"}}
    runners = running_loop(loop, registry_of(topology_body(), decoy, shown))
    approver = TokenApprover(runners.proposal, lambda _: caller)
    assert approver.take("p-none", Verdict.APPROVE, "t").status == 409
    assert approver.take(made.id, Verdict.APPROVE, "t").status == 202
    assert caller.asked == [("streams", made.id, Verdict.APPROVE)]
    loop.loop.desk.approve(made.id, "somebody")
    assert approver.take(made.id, Verdict.REJECT, "t").status == 409


def running_loop(loop: Scene, registry: Registry) -> Runners:
    """The loop as that of the cluster that the resources in `registry` name."""
    settings = RunnerSettings(JobSettings("storm"), 9464)
    cluster = ManagedCluster(NIMBUS, registry, Mock(), settings, Mock(), set())
    cluster.owners.look()
    cluster.assembly = Mock(loop=loop.loop)
    runners = Runners(registry, Mock())
    runners.running[NIMBUS] = Mock(runner=ClusterRunner(cluster))
    return runners


def test_a_replica_that_does_not_lead_says_so_and_one_that_does_shows_its_loops() -> None:
    page = KubePage()
    api = page.api(lambda: {NIMBUS: object(), "other:6627": object()}, None)
    assert WAITS_TO_LEAD.encode() in api.answer(Request("GET", "/api/v1/view")).body
    page.leads = True
    watcher = page.watcher_of(NIMBUS)
    assert page.watcher_of(NIMBUS) is watcher  # a loop that is started anew goes on with what was seen
    assert f'"name":"{NIMBUS}"'.encode() in api.answer(Request("GET", "/api/v1/clusters")).body
    assert b"other" not in api.answer(Request("GET", "/api/v1/clusters")).body


def test_what_is_not_carried_out_is_told_by_who_manages_the_cluster_now() -> None:
    refused = topology_body(
        spec={"adopt": {}, "scheduling": {"mode": "Perhaps"}}, status={"topologyId": TOPOLOGY_ID, "nimbus": NIMBUS}
    )
    cluster = ManagedCluster(
        NIMBUS, registry_of(refused), Mock(), RunnerSettings(JobSettings("storm"), 9464), Mock(), set()
    )
    cluster.owners.look()
    cluster.lifecycle = Mock(not_as_described=lambda: (Refusal("shop: it is being submitted", "shop"),))
    assert [one.topology for one in cluster.not_as_described()] == ["words", "shop"]
    cluster.close()
    assert [one.topology for one in cluster.not_as_described()] == ["words"]


def test_one_that_is_paused_is_told_as_such_until_it_is_deleted() -> None:
    paused: dict[str, Any] = {"annotations": {PAUSED_ANNOTATION: "true"}}
    registry = registry_of(
        topology_body("words", **paused), topology_body("gone", deletionTimestamp="2026-01-01T12:00:01Z", **paused)
    )
    cluster = ManagedCluster(NIMBUS, registry, Mock(), RunnerSettings(JobSettings("storm"), 9464), Mock(), set())
    cluster.owners.look()
    words = "StormTopology streams/words: paused by annotation: left as it is"
    assert cluster.not_as_described() == (Refusal(words, "words", is_pause=True),)

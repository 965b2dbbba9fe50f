"""Approval on the page against a real API server: who may, who may not, and what Kubernetes keeps of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from http import HTTPStatus

import pytest
from kubernetes import config

from kube_builders import managed, plan, plan_record
from kube_cluster import KubeCluster
from storm_operator.console.approval import APPROVED, REJECTED, Answer, Verdict
from storm_operator.kube.page import TokenApprover, in_name_of
from storm_operator.kube.rebalances import ASK_ANNOTATION, annotated_by, asked, rebalance_body
from storm_operator.local.paths import repository_root

pytestmark = pytest.mark.functional

NAMESPACE = f"page-{os.getpid()}"
PLAN = plan().id
VERDICTS = pytest.mark.parametrize("verdict", list(Verdict))


@pytest.fixture(scope="module")
def kube(kube_api: KubeCluster) -> Iterator[KubeCluster]:
    """A plan that waits; `approver` may patch it, `reader` may only look."""
    root = repository_root()
    assert root is not None
    kube_api.install_crds(root / "crds")
    kube_api.kubectl("create", "namespace", NAMESPACE)
    for who, verbs in (("approver", "get,patch"), ("reader", "get")):
        kube_api.kubectl("create", "serviceaccount", who, "-n", NAMESPACE)
        kube_api.kubectl("create", "role", who, f"--verb={verbs}", "--resource=stormrebalances", "-n", NAMESPACE)
        account = f"--serviceaccount={NAMESPACE}:{who}"
        kube_api.kubectl("create", "rolebinding", who, f"--role={who}", account, "-n", NAMESPACE)
    body = rebalance_body(plan_record(), managed(), {})
    body["metadata"] = {"name": PLAN, "namespace": NAMESPACE}
    kube_api.kubectl("create", "-f", "-", input=json.dumps(body))
    yield kube_api
    kube_api.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.fixture
def approver(kube: KubeCluster) -> TokenApprover:
    """Of the operator, which itself is the administrator here: its rights must not be the caller's."""
    config.load_kube_config(str(kube.kubeconfig))  # type: ignore[no-untyped-call]
    return TokenApprover({PLAN: shown(kube)}.get, in_name_of)


def shown(kube: KubeCluster) -> dict[str, object]:
    text = kube.kubectl("get", "stormrebalance", PLAN, "-n", NAMESPACE, "-o", "json", "--show-managed-fields")
    return dict(json.loads(text))


def said_by(who: str, verdict: Verdict, kube: KubeCluster, approver: TokenApprover) -> Answer:
    token = kube.kubectl("create", "token", who, "-n", NAMESPACE).strip()
    return approver.take(PLAN, verdict, token)


@VERDICTS
def test_who_may_only_look_decides_nothing(kube: KubeCluster, approver: TokenApprover, verdict: Verdict) -> None:
    answer = said_by("reader", verdict, kube, approver)
    assert answer.status == 403
    assert f"system:serviceaccount:{NAMESPACE}:reader may not patch stormrebalances" in answer.message
    assert asked(shown(kube)) is None


@VERDICTS
def test_a_token_that_is_none_is_refused(kube: KubeCluster, approver: TokenApprover, verdict: Verdict) -> None:
    answer = approver.take(PLAN, verdict, "no-token")
    assert (answer.status, answer.message) == (401, "Kubernetes does not accept this token")
    assert asked(shown(kube)) is None


@pytest.mark.parametrize(("verdict", "words"), [(Verdict.APPROVE, APPROVED), (Verdict.REJECT, REJECTED)])
def test_who_may_patch_plans_decides_as_with_kubectl_and_is_named(
    kube: KubeCluster, approver: TokenApprover, verdict: Verdict, words: str
) -> None:
    assert said_by("approver", verdict, kube, approver) == Answer(HTTPStatus.ACCEPTED, words)
    body = shown(kube)
    assert asked(body) == verdict.value
    assert annotated_by(body) == f"annotation (page of system:serviceaccount:{NAMESPACE}:approver)"
    kube.kubectl("annotate", "stormrebalance", PLAN, f"{ASK_ANNOTATION}-", "-n", NAMESPACE)

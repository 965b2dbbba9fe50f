"""The operator's page in Kubernetes: what the loops feed it, and approval with the caller's own token.

The operator asks the API server in the caller's name: first whether the caller may, then to set the annotation that
`kubectl annotate` would set. It needs no right of its own for that, nobody can do on the page what they could not do
without it, and the audit log names them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from kubernetes.client import ApiClient, AuthenticationV1Api, AuthorizationV1Api, Configuration

from storm_operator.adapters.kube.errors import Forbidden, KubernetesError, NotFound, api_errors
from storm_operator.adapters.kube.resources import GROUP, REBALANCES, TIMEOUT_SECONDS, OwnKinds
from storm_operator.console.api import Api
from storm_operator.console.approval import APPROVED, REJECTED, Answer, Verdict, not_waiting
from storm_operator.console.watcher import Watcher
from storm_operator.core.plan_record import PlanState
from storm_operator.kube.managed import Body, key_of
from storm_operator.kube.rebalances import ASK_ANNOTATION, state_of

WAITS_TO_LEAD = "this replica waits to lead: ask the one that holds the Lease"


@dataclass(slots=True)
class KubePage:
    """The watchers of the clusters that this replica leads, by Nimbus; one is made for each loop that asks."""

    leads: bool = False
    watchers: dict[str, Watcher] = field(default_factory=dict)

    def watcher_of(self, nimbus: str) -> Watcher:
        return self.watchers.setdefault(nimbus, Watcher())

    def forget(self, nimbus: str) -> None:
        """Its loop has ended: what it measured is not kept."""
        self.watchers.pop(nimbus, None)

    def api(self, clusters: Callable[[], Mapping[str, object]], approver: TokenApprover | None) -> Api:
        """`clusters`: the loops that run, by Nimbus."""

        def shown() -> Mapping[str, Watcher]:
            known = dict(self.watchers)
            return {nimbus: known[nimbus] for nimbus in sorted(clusters()) if nimbus in known}

        return Api(shown, approver, lambda: "" if self.leads else WAITS_TO_LEAD)


@dataclass(frozen=True, slots=True)
class TokenApprover:
    """Verdicts as annotations on StormRebalances, set with the caller's token.

    `proposal` gives the operator's own StormRebalance of a plan that waits: another may bear its name elsewhere.
    """

    proposal: Callable[[str], Body | None]
    as_caller: Callable[[str], CallersApi]
    needs_token: bool = True

    def take(self, plan_id: str, verdict: Verdict, token: str) -> Answer:
        if not token:
            return Answer(HTTPStatus.UNAUTHORIZED, "give a Kubernetes token that may patch stormrebalances")
        body = self.proposal(plan_id)
        if body is None or state_of(body) != PlanState.PROPOSED.value:
            return not_waiting(plan_id)
        try:
            return self._carried_out(body, verdict, self.as_caller(token))
        except Forbidden as error:
            return Answer(HTTPStatus.FORBIDDEN, str(error))
        except NotFound:
            return not_waiting(plan_id)
        except KubernetesError as error:
            refused = "Unauthorized" in str(error)
            status = HTTPStatus.UNAUTHORIZED if refused else HTTPStatus.BAD_GATEWAY
            return Answer(status, "Kubernetes does not accept this token" if refused else str(error))

    def _carried_out(self, body: Body, verdict: Verdict, caller: CallersApi) -> Answer:
        namespace, name = key_of(body)
        objection = caller.objection(namespace, name)
        if objection:
            return Answer(HTTPStatus.FORBIDDEN, objection)
        caller.ask(namespace, name, verdict)
        words = APPROVED if verdict is Verdict.APPROVE else REJECTED
        return Answer(HTTPStatus.ACCEPTED, words)


class CallersApi:
    """The API server, asked in the name of whom a token belongs to. All methods raise `KubernetesError`."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def objection(self, namespace: str, name: str) -> str:
        """Why the caller may not patch that StormRebalance; empty when they may."""
        attributes = {"group": GROUP, "resource": REBALANCES, "verb": "patch", "namespace": namespace, "name": name}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        authorization: Any = AuthorizationV1Api(self._api)
        with api_errors("ask what the token may do"):
            status = authorization.create_self_subject_access_review(body, _request_timeout=TIMEOUT_SECONDS).status
        if status.allowed:
            return ""
        return f"{self.user()} may not patch {REBALANCES}.{GROUP} in namespace {namespace}"

    def user(self) -> str:
        """Whose token it is."""
        authentication: Any = AuthenticationV1Api(self._api)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        with api_errors("ask whose the token is"):
            review = authentication.create_self_subject_review(body, _request_timeout=TIMEOUT_SECONDS)
        return str(review.status.user_info.username)

    def ask(self, namespace: str, name: str, verdict: Verdict) -> None:
        """Set the annotation that asks for it. Kubernetes keeps the client's name as that of the field's manager."""
        # Up to the first slash, in printable ASCII: so much of it Kubernetes makes the manager's name.
        who = "".join(c for c in self.user() if c.isascii() and c.isprintable() and c != "/")
        self._api.user_agent = f"page of {who}"[:120]
        OwnKinds(self._api).annotate(REBALANCES, namespace, name, {ASK_ANNOTATION: verdict.value})


def in_name_of(token: str) -> CallersApi:
    """With `token` and with nothing that the operator itself may do: neither its own token nor its certificate."""
    configuration = copy.copy(Configuration.get_default_copy())
    configuration.api_key = {"authorization": token}
    configuration.api_key_prefix = {"authorization": "Bearer"}
    configuration.refresh_api_key_hook = None
    configuration.cert_file = configuration.key_file = None
    configuration.username = configuration.password = ""
    return CallersApi(ApiClient(configuration))

"""Resources, plans and API clients for tests of the Kubernetes parts: real shapes, no API server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kubernetes.client.exceptions import ApiException

from builders import chain_topology, placed
from storm_operator.adapters.kube.events import Events
from storm_operator.adapters.kube.resources import API_VERSION, OwnKinds
from storm_operator.core.decision import Plan, Prediction
from storm_operator.core.direct_plan import direct_plan
from storm_operator.core.model import Assignment
from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState
from storm_operator.core.settings import ApplyMethod
from storm_operator.kube.kept_rebalance import as_kept
from storm_operator.kube.managed import Managed, Registry, managed_from
from storm_operator.kube.rebalance_status import rebalance_status
from storm_operator.kube.rebalances import rebalance_body

NIMBUS = "nimbus.storm:6627"
NOW_SECONDS = 1_800_000_000.0
NOW = "2027-01-15T08:00:00Z"
TOPOLOGY_ID = "words-1-1767268800"
WORDS = chain_topology(TOPOLOGY_ID, ("spout", 1), ("split", 1), ("count", 1), stateful=("count",))
SPREAD = Assignment(placed(WORDS, {"spout": "s1", "split": "s2", "count": "s2:6701"}))
GATHERED = Assignment(placed(WORDS, {"spout": "s1", "split": "s1", "count": "s2:6701"}))
HOSTS = {"s1": "supervisor-0", "s2": "supervisor-1"}
UNKNOWN = Outcome(None, None, None, None, None)


def topology_body(
    name: str = "words",
    namespace: str = "streams",
    *,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """A StormTopology as the API server gives it; adopting unless `spec` says otherwise."""
    return {
        "apiVersion": API_VERSION,
        "kind": "StormTopology",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "generation": 1,
            "creationTimestamp": "2026-01-01T12:00:00Z",
            "resourceVersion": "7",
            **metadata,
        },
        "spec": dict(spec) if spec is not None else {"adopt": {}},
        **({"status": dict(status)} if status is not None else {}),
    }


def managed(name: str = "words", **fields: Any) -> Managed:
    return managed_from(topology_body(name, **fields), NIMBUS)


def registry_of(*bodies: Mapping[str, Any]) -> Registry:
    """A registry that has seen these StormTopologies and StormRebalances."""
    registry = Registry(NIMBUS)
    for body in bodies:
        if body["kind"] == "StormTopology":
            registry.put_topology(body)
        else:
            registry.put_rebalance(as_kept(body))
    return registry


def plan(plan_id: str = "p-20270115-080000-0001", **changes: Any) -> Plan:
    """Moves `split` from s2 to s1; the worker of `count` is kept."""
    made = direct_plan(SPREAD, GATHERED, plan_id, NOW_SECONDS, "closer", {WORDS.executors[1]: 200.0}, policy="adaptive")
    before, after = Prediction(300.0, 0.0, 1200.0, 2, 0.0, 8.0), Prediction(100.0, 0.0, 300.0, 2, 0.0, 4.0)
    return replace(
        made, **{"before": before, "after": after, "payback_seconds": 71.234, "gain_percent": 62.5, **changes}
    )


def plan_record(state: PlanState = PlanState.PROPOSED, of: Plan | None = None, **fields: Any) -> PlanRecord:
    given = {"before": UNKNOWN, "started_at_seconds": NOW_SECONDS, **fields}
    return PlanRecord(of or plan(), ApplyMethod.REBALANCE, state, **given)


def rebalance(
    state: str = "Proposed", of: Plan | None = None, ask: str | None = None, owner: Managed | None = None, **status: Any
) -> dict[str, Any]:
    """A StormRebalance as the API server gives it."""
    record = plan_record(of=of)
    body = rebalance_body(record, owner or managed(), HOSTS)
    if ask is not None:
        body["metadata"]["annotations"] = {"storm-operator.dev/rebalance": ask, "other": "stays"}
    return {**body, "status": {**rebalance_status(record, {}, NOW_SECONDS), "state": state, **status}}


class FakeKinds(OwnKinds):
    """Remembers what was asked for, in order; fails with `error` while there is one."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Any]] = []
        """(verb, name, what)"""
        self.error: Exception | None = None
        self.attempts = 0

    def create(self, plural: str, namespace: str, body: Mapping[str, Any]) -> bool:
        self._call("create", f"{namespace}/{body['metadata']['name']}", body)
        return True

    def patch_status(self, plural: str, namespace: str, name: str, status: Mapping[str, Any]) -> None:
        self._call("status", f"{namespace}/{name}", dict(status))

    def annotate(
        self, plural: str, namespace: str, name: str, annotations: Mapping[str, str | None], version: str = ""
    ) -> None:
        self._call("annotate", f"{namespace}/{name}", dict(annotations))

    def delete(self, plural: str, namespace: str, name: str) -> None:
        self._call("delete", f"{namespace}/{name}", None)

    def verbs(self) -> list[str]:
        return [verb for verb, _, _ in self.calls]

    def statuses(self) -> list[dict[str, Any]]:
        return [what for verb, _, what in self.calls if verb == "status"]

    def _call(self, verb: str, name: str, what: Any) -> None:
        self.attempts += 1
        if self.error is not None:
            raise self.error
        self.calls.append((verb, name, what))


class FakeEvents(Events):
    """Remembers (reason, message, warning), and the names of the objects that each was about."""

    def __init__(self) -> None:
        self.about: list[str] = []
        self.posted: list[tuple[str, str, bool]] = []

    def post(self, about: Mapping[str, Any], reason: str, message: str, warning: bool = False) -> None:
        self.about.append(about["metadata"]["name"])
        self.posted.append((reason, message, warning))


def api_refusal(status: int, message: str = "refused") -> ApiException:
    """What the client raises when the API server answers with `status`."""
    error = ApiException(status=status, reason="Reason")
    error.body = f'{{"message": "{message}"}}'
    return error

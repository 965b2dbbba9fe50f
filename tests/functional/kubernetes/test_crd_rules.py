"""The CRDs' rules and fields as a real API server enforces them: each with a good and a bad value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from crd_cases import RULES, Case, adopt, document, jar
from crd_field_cases import FIELDS, REQUIRED
from kube_cluster import KubeCluster, KubeClusterError

pytestmark = pytest.mark.functional

ROOT = Path(__file__).parents[3]
NAMESPACE = "crd-rules"
CASES = (*RULES, *FIELDS, *REQUIRED)
NOT_FOR_A_SERVER = "spec.flux.path"
"""The one field that no API server accepts at all."""

MOVE = {"topology": "words-1-1", "component": "count", "executor": "3-4", "from": "a:6700", "to": "b:6700"}
OPAQUE: dict[str, Any] = {"id": "p-1", "target": [{"port": 6700, "executors": []}]}
PLAN: dict[str, Any] = {
    "planId": "p-1",
    "planHash": "aa",
    "baseHash": "bb",
    "topologies": ["words-1-1"],
    "moveCount": 2,
    "restartCount": 1,
    "gainPercent": 61.5,
    "moves": [MOVE],
    "plan": OPAQUE,
}


@pytest.fixture(scope="module")
def api(kube_api: KubeCluster) -> Iterator[KubeCluster]:
    """With the CRDs and a namespace of these tests' own."""
    kube_api.install_crds(ROOT / "crds")
    kube_api.kubectl("create", "namespace", NAMESPACE)
    yield kube_api
    kube_api.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def send(api: KubeCluster, body: Mapping[str, Any], *options: str, verb: str = "create") -> dict[str, Any]:
    """The object as the server keeps it. Raises KubeClusterError with its objection."""
    arguments = (verb, "-n", NAMESPACE, "--validate=strict", "-o", "json", *options, "-f", "-")
    answer: dict[str, Any] = json.loads(api.kubectl(*arguments, input=yaml.safe_dump(dict(body))))
    return answer


def tried(api: KubeCluster, body: Mapping[str, Any], verb: str = "create") -> dict[str, Any]:
    """What `send` would give, with nothing kept."""
    return send(api, body, "--dry-run=server", verb=verb)


def refusal(api: KubeCluster, body: Mapping[str, Any], verb: str = "create") -> str:
    """Why the server refuses; paths of map entries are written with dots, as everywhere else."""
    with pytest.raises(KubeClusterError) as caught:
        tried(api, body, verb)
    return re.sub(r"\[([a-z]+)\]", r".\1", str(caught.value))


@pytest.fixture
def kept(api: KubeCluster) -> Iterator[dict[str, Any]]:
    """A StormTopology that the server has."""
    send(api, document(jar(), "kept"))
    yield document(jar(), "kept")
    api.kubectl("delete", "stormtopology", "kept", "-n", NAMESPACE)


@pytest.fixture
def plan(api: KubeCluster) -> Iterator[dict[str, Any]]:
    """A StormRebalance that the server has."""
    body = rebalance(PLAN)
    send(api, body)
    yield deepcopy(body)
    api.kubectl("delete", "stormrebalance", "p-1", "-n", NAMESPACE)


def rebalance(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "storm-operator.dev/v1alpha1",
        "kind": "StormRebalance",
        "metadata": {"name": "p-1"},
        "spec": dict(spec),
    }


def with_status(api: KubeCluster, kind: str, name: str, status: Mapping[str, Any]) -> None:
    patch = json.dumps({"status": status})
    api.kubectl("patch", kind, name, "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p", patch)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_good_value_is_kept_and_bad_value_is_refused_by_name(api: KubeCluster, case: Case) -> None:
    if case.field != NOT_FOR_A_SERVER:
        tried(api, document(case.good, case.name))
    objection = refusal(api, document(case.bad, case.name))
    assert case.field in objection
    assert case.words in objection


def test_a_field_that_is_unknown_is_refused(api: KubeCluster) -> None:
    assert 'unknown field "spec.scheduling.perriodSeconds"' in refusal(
        api, document(adopt(scheduling={"perriodSeconds": 1}))
    )


def test_a_component_named_twice_in_a_list_is_refused(api: KubeCluster) -> None:
    assert "Duplicate value" in refusal(api, document(adopt(stateful={"stateful": ["count", "count"]})))


def test_defaults_are_written_into_what_is_kept(api: KubeCluster) -> None:
    spec = tried(api, document(adopt(scheduling={"excludedWindows": [{"cron": "0 8 * * *", "durationSeconds": 60}]})))
    scheduling = spec["spec"]["scheduling"]
    assert (scheduling["policy"], scheduling["mode"], scheduling["coolDownSeconds"]) == ("adaptive", "Enforce", 60)
    assert scheduling["approval"] == {"mode": "Auto"}
    assert scheduling["excludedWindows"][0]["timeZone"] == "UTC"
    assert spec["spec"]["resources"]["ceilingMillicores"] == 1000
    assert spec["spec"]["parallelism"] == {"mode": "Fixed"}
    assert "deletionPolicy" not in spec["spec"]


@pytest.mark.parametrize("name", [{"topologyName": "kept"}, {}])
def test_the_name_in_storm_can_be_written_out_but_not_changed(
    api: KubeCluster, kept: dict[str, Any], name: dict[str, str]
) -> None:
    kept["spec"] |= name
    tried(api, kept, "apply")
    kept["spec"]["topologyName"] = "other"
    objection = refusal(api, kept, "apply")
    assert "spec.topologyName: Forbidden: the topology's name in Storm cannot change" in objection


def test_nimbus_cannot_change_while_the_topology_runs(api: KubeCluster, kept: dict[str, Any]) -> None:
    kept["spec"]["nimbus"] = "other.storm:6627"
    tried(api, kept, "apply")
    with_status(api, "stormtopology", "kept", {"topologyId": "kept-1-1767268800"})
    objection = refusal(api, kept, "apply")
    assert "spec.nimbus: Forbidden: a topology that runs (see status.topologyId) cannot change" in objection
    del kept["spec"]["nimbus"]
    kept["spec"]["suspend"] = True
    tried(api, kept, "apply")


@pytest.mark.parametrize(
    "change",
    [
        {"reason": "another"},
        {"gainPercent": 61.6},
        {"moves": []},
        {"moves": [{**MOVE, "to": "b:6701"}]},
        {"plan": {**OPAQUE, "id": "p-2"}},
        {"plan": {"id": "p-1", "target": [{"port": 6701, "executors": []}]}},
        {"plan": {"id": "p-1"}},
        {"plan": {**OPAQUE, "more": 1}},
        {"plan": {"id": "p-1", "goal": [{"port": 6700, "executors": []}]}},
        {"plan": "{}"},
    ],
)
def test_a_plan_never_changes(api: KubeCluster, plan: dict[str, Any], change: dict[str, Any]) -> None:
    plan["metadata"]["annotations"] = {"storm-operator.dev/rebalance": "approve"}
    tried(api, plan, "replace")
    plan["spec"] |= change
    assert "spec: Forbidden: a plan never changes" in refusal(api, plan, "replace")


@pytest.mark.parametrize("name", ["planId", "planHash", "baseHash", "topologies", "plan"])
def test_a_plan_is_complete(api: KubeCluster, name: str) -> None:
    incomplete = {key: value for key, value in PLAN.items() if key != name}
    assert f"spec.{name}: Required value" in refusal(api, rebalance(incomplete))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("moves[0].executor", {"moves": [{**MOVE, "executor": "3"}]}),
        ("moves[0].to", {"moves": [{**MOVE, "to": "host"}]}),
        ("topologies", {"topologies": []}),
        ("moveCount", {"moveCount": -1}),
        ("cpuLimitsMillicores", {"cpuLimitsMillicores": {"words-1-1/3-4": "200m"}}),
    ],
)
def test_a_plan_is_well_formed(api: KubeCluster, field: str, value: dict[str, Any]) -> None:
    assert f"spec.{field}" in refusal(api, rebalance({**PLAN, **value}))


def test_a_plan_without_a_status_is_proposed_and_states_are_checked(api: KubeCluster, plan: dict[str, Any]) -> None:
    assert api.kubectl("get", "storeb", "p-1", "-n", NAMESPACE, "-o", "jsonpath={.status.state}") == "Proposed"
    with_status(api, "stormrebalance", "p-1", {"state": "Verified", "message": "as predicted"})
    with pytest.raises(KubeClusterError, match='Unsupported value: "Done"'):
        with_status(api, "stormrebalance", "p-1", {"state": "Done"})
    listed = api.kubectl("get", "storeb", "-n", NAMESPACE, "--field-selector=status.state=Verified", "-o", "name")
    assert listed == "stormrebalance.storm-operator.dev/p-1\n"


def columns(table: str) -> dict[str, str]:
    """The one row of a table of kubectl by its headers."""
    header, row = (re.split(r"\s{2,}", line.strip()) for line in table.strip().splitlines())
    return dict(zip(header, row, strict=True))


def test_kubectl_get_tells_the_story_of_a_topology(api: KubeCluster, kept: dict[str, Any]) -> None:
    status = {
        "observedGeneration": 1,
        "phase": "Running",
        "message": "nothing to do",
        "topologyId": "kept-1-1767268800",
        "latency": {"p50Milliseconds": 5.1, "p99Milliseconds": 24.2},
        "throughputTuplesPerSecond": 170.0,
        "interSupervisorTuplesPerSecond": 0.0,
        "supervisorsUsed": 2,
        "workersUsed": 3,
        "percentOfBest": 98.5,
        "lastPlan": {"id": "p-1", "rebalance": "p-1", "state": "Verified", "time": "2024-05-01T08:00:00Z"},
        "lastHold": {"reason": "GainTooSmall", "message": "3% of 10%", "since": "2024-05-01T08:00:00Z"},
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Running",
                "message": "it runs, is measured and managed",
                "lastTransitionTime": "2024-05-01T08:00:00Z",
                "observedGeneration": 1,
            }
        ],
    }
    with_status(api, "stormtopology", "kept", status)
    get = ("get", "stopo", "kept", "-n", NAMESPACE)
    row = columns(api.kubectl(*get, "-o", "wide"))
    assert {name: row[name] for name in list(row)[:8]} == {
        "NAME": "kept",
        "PHASE": "Running",
        "READY": "True",
        "MODE": "Enforce",
        "LATENCY P50": "5.1",
        "INTER-SUP TUPLES/S": "0",
        "SUPERVISORS": "2",
        "LAST PLAN": "Verified",
    }
    assert (row["% OF BEST"], row["HOLD"], row["TOPOLOGY ID"]) == ("98.5", "GainTooSmall", "kept-1-1767268800")
    stored = json.loads(api.kubectl(*get, "-o", "json"))["status"]
    assert stored == status
    api.kubectl("wait", "stopo/kept", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=5s")


def test_kubectl_get_tells_the_story_of_a_plan(api: KubeCluster, plan: dict[str, Any]) -> None:
    row = columns(api.kubectl("get", "storeb", "p-1", "-n", NAMESPACE))
    del row["AGE"]
    assert row == {
        "NAME": "p-1",
        "STATE": "Proposed",
        "TOPOLOGIES": '["words-1-1"]',
        "MOVES": "2",
        "RESTARTS": "1",
        "GAIN %": "61.5",
    }


def test_both_kinds_are_listed_by_their_category(api: KubeCluster, kept: dict[str, Any], plan: dict[str, Any]) -> None:
    listed = api.kubectl("get", "storm", "-n", NAMESPACE, "-o", "name").split()
    assert listed == ["stormrebalance.storm-operator.dev/p-1", "stormtopology.storm-operator.dev/kept"]


@pytest.mark.parametrize(
    "field",
    ["stormtopology.spec.jar.url", "stormtopology.status.lastHold.reason", "stormrebalance.spec.moves.executor"],
)
def test_kubectl_explains_fields(api: KubeCluster, field: str) -> None:
    assert re.search(r"DESCRIPTION:\n\s+\w", api.kubectl("explain", field))


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda file: file.name)
def test_the_examples_are_accepted(api: KubeCluster, file: Path) -> None:
    api.kubectl("apply", "-n", NAMESPACE, "--dry-run=server", "--validate=strict", "-f", str(file))

"""What the charts render, as a real API server judges it. No node: nothing runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
import yaml
from eventually import eventually

from functional.charts.chart_objects import CHARTS, NAMESPACE, Helm, Object
from functional.charts.test_charts_render import EACH_RENDERING
from kube_cluster import KubeCluster, KubeClusterError

FOREIGN_KINDS = {"PodMonitor", "PrometheusRule"}
"""Their definitions come with the Prometheus operator, which the test cluster does not have."""


@pytest.fixture(scope="module")
def api(chart_api: KubeCluster) -> KubeCluster:
    for namespace in (NAMESPACE, "one", "two", "restricted", "privileged"):
        chart_api.kubectl("create", "namespace", namespace)
    for level in ("restricted", "privileged"):
        chart_api.kubectl("label", "namespace", level, f"pod-security.kubernetes.io/enforce={level}")
    # Pods are refused whose account is not there, also in a dry run.
    for namespace in (NAMESPACE, "restricted", "privileged"):
        for account in ("storm-storm", "storm-storm-operator"):
            chart_api.kubectl("create", "serviceaccount", account, f"--namespace={namespace}")
    return chart_api


def as_yaml(objects: Iterable[Object]) -> str:
    return yaml.safe_dump_all([dict(item) for item in objects])


@pytest.mark.parametrize(("chart", "values"), EACH_RENDERING)
def test_every_object_is_valid(api: KubeCluster, helm: Helm, chart: str, values: tuple[str, ...]) -> None:
    objects = [item for item in helm.template(chart, *values).objects if item["kind"] not in FOREIGN_KINDS]
    placed = [item if item["kind"].startswith("Cluster") else _placed(item) for item in objects]
    command = ("apply", "--dry-run=server", "--validate=strict", "--filename=-")
    said = api.kubectl(*command, input=as_yaml(placed))
    assert said.count("(server dry run)") == len(objects)


def _placed(item: Object) -> Object:
    """Where helm would put what names no namespace."""
    return {**item, "metadata": {"namespace": NAMESPACE, **item["metadata"]}}


def admit(api: KubeCluster, namespace: str, specs: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Raises KubeClusterError unless the namespace takes pods of all the specs. They are not kept."""
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{number}"}, "spec": _without_claims(spec)}
        for number, (_, spec) in enumerate(specs)
    ]
    assert pods
    api.kubectl("create", "--dry-run=server", f"--namespace={namespace}", "--filename=-", input=as_yaml(pods))


def _without_claims(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Volumes that a StatefulSet would add are not there, and so are not mounted."""
    volumes = {volume["name"] for volume in spec.get("volumes", ())}

    def trimmed(container: Mapping[str, Any]) -> dict[str, Any]:
        mounts = [mount for mount in container.get("volumeMounts", ()) if mount["name"] in volumes]
        return dict(container) | {"volumeMounts": mounts}

    kinds = [kind for kind in ("initContainers", "containers") if kind in spec]
    return dict(spec) | {kind: [trimmed(container) for container in spec[kind]] for kind in kinds}


@pytest.mark.parametrize(("chart", "values"), EACH_RENDERING)
def test_a_restricted_namespace_admits_all_pods_but_the_enforcing_agents(
    api: KubeCluster, helm: Helm, chart: str, values: tuple[str, ...]
) -> None:
    specs = list(helm.template(chart, *values).pod_specs())
    if "agent.enforceExecutors=true" in values:
        enforcing = [item for item in specs if item[0] == "StatefulSet/storm-supervisor"]
        with pytest.raises(KubeClusterError, match='violates PodSecurity "restricted'):
            admit(api, "restricted", enforcing)
        admit(api, "privileged", enforcing)
        specs = [item for item in specs if item not in enforcing]
    admit(api, "restricted", specs)


def test_an_upgrade_leaves_the_number_of_supervisors_to_whoever_scales_them(api: KubeCluster) -> None:
    def replicas() -> int:
        found = json.loads(api.kubectl("get", "statefulset", "scaled-supervisor", "-n", NAMESPACE, "-o", "json"))
        return int(found["spec"]["replicas"])

    command = ("upgrade", "--install", "scaled", str(CHARTS / "storm"), f"--namespace={NAMESPACE}")
    scaled = ("--set", "supervisor.scaling.enabled=true")
    api.helm(*command, *scaled)
    assert replicas() == 2
    api.kubectl("scale", "statefulset", "scaled-supervisor", f"--namespace={NAMESPACE}", "--replicas=5")
    api.helm(*command, *scaled, "--set", "supervisor.slots=2")
    assert replicas() == 5
    api.helm(*command, "--reset-values")
    assert replicas() == 2
    api.helm("uninstall", "scaled", f"--namespace={NAMESPACE}")


@pytest.mark.parametrize(("values", "after_a_rollback"), [("", 2), ("supervisor.scaling.omitReplicas=true", 5)])
def test_a_rollback_leaves_the_number_of_supervisors_where_no_release_had_one(
    api: KubeCluster, values: str, after_a_rollback: int
) -> None:
    """Helm applies what it had rendered then, and looks at nothing."""
    where = f"--namespace={NAMESPACE}"
    command = ("upgrade", "--install", "back", str(CHARTS / "storm"), where)
    scaled = ("--set", "supervisor.scaling.enabled=true", "--set", values)
    api.helm(*command, *scaled)
    api.kubectl("scale", "statefulset/back-supervisor", where, "--replicas=5")
    api.helm(*command, *scaled, "--set", "supervisor.slots=2")
    api.helm("rollback", "back", "1", where)
    replicas = api.kubectl("get", "statefulset/back-supervisor", where, "--output=jsonpath={.spec.replicas}")
    api.helm("uninstall", "back", where)
    assert int(replicas) == after_a_rollback


@pytest.mark.parametrize("server_side", [(), ("--server-side",)])
def test_what_is_rendered_without_the_number_of_supervisors_leaves_it_to_whoever_scales_them(
    api: KubeCluster, helm: Helm, server_side: tuple[str, ...]
) -> None:
    where = f"--namespace={NAMESPACE}"

    def replicas() -> int:
        return int(api.kubectl("get", "statefulset/storm-supervisor", where, "--output=jsonpath={.spec.replicas}"))

    def apply(*values: str) -> None:
        scaling = ("supervisor.scaling.enabled=true", "supervisor.scaling.omitReplicas=true")
        found = helm.template("storm", *scaling, *values).one("StatefulSet", "storm-supervisor")
        api.kubectl("apply", *server_side, "--filename=-", where, input=as_yaml([found]))

    apply()
    assert replicas() == 1
    api.kubectl("scale", "statefulset/storm-supervisor", where, "--replicas=5")
    apply("supervisor.drainSeconds=30")
    assert replicas() == 5
    api.kubectl("delete", "statefulset/storm-supervisor", where)


def test_the_longest_name_that_a_release_may_have_leaves_room_for_its_pods(api: KubeCluster) -> None:
    release = "a" * 41
    api.helm("install", release, str(CHARTS / "storm"), f"--namespace={NAMESPACE}")
    selector = f"--selector=app.kubernetes.io/instance={release}"

    def pods() -> str:
        return api.kubectl("get", "pods", f"--namespace={NAMESPACE}", selector, "--output=name")

    wanted = ("zookeeper-0", "nimbus-0", "supervisor-0", "supervisor-1")
    eventually(lambda: all(f"{release}-{pod}" in pods() for pod in wanted), "each StatefulSet has made its pods")
    api.helm("uninstall", release, f"--namespace={NAMESPACE}")


@pytest.mark.parametrize(
    ("values", "forgetful"),
    [
        ((), {"kept-zookeeper", "kept-nimbus"}),
        (("zookeeper.persistence.enabled=true",), {"kept-nimbus"}),
        (("nimbus.persistence.enabled=true",), {"kept-zookeeper"}),
    ],
)
def test_what_the_notes_say_gives_a_release_that_is_there_its_volumes(
    api: KubeCluster, values: tuple[str, ...], forgetful: set[str]
) -> None:
    given = [part for value in values for part in ("--set", value)]
    api.helm("install", "kept", str(CHARTS / "storm"), f"--namespace={NAMESPACE}", *given)
    notes = api.helm("get", "notes", "kept", f"--namespace={NAMESPACE}").partition("WARNING")[2]
    commands = [line.split() for line in notes.splitlines() if line.startswith("  ")]
    assert [command[0] for command in commands] == ["kubectl", "helm", "kubectl"]
    assert forgetful == {word for word in commands[0] if word.startswith("kept-")}
    assert {f"{name}-0" for name in forgetful} == {word for word in commands[2] if word.startswith("kept-")}
    api.kubectl(*commands[0][1:])
    api.helm(*(str(CHARTS / "storm") if word == "charts/storm" else word for word in commands[1][1:]))
    for name in ("kept-zookeeper", "kept-nimbus"):
        found = json.loads(api.kubectl("get", "statefulset", name, f"--namespace={NAMESPACE}", "--output=json"))
        assert [claim["metadata"]["name"] for claim in found["spec"]["volumeClaimTemplates"]] == ["data"]
    api.helm("uninstall", "kept", f"--namespace={NAMESPACE}")


def test_releases_of_one_name_in_two_namespaces_may_publish_to_a_third(api: KubeCluster) -> None:
    values = "pipeline.enabled=true,history.existingClaim=history"
    for namespace in ("one", "two"):
        own = f"pipeline.publishTo={NAMESPACE}/learned-by-{namespace}"
        api.helm(
            "install", "learner", str(CHARTS / "storm-operator"), f"--namespace={namespace}", f"--set={values},{own}"
        )
    for namespace in ("one", "two"):
        account = f"--as=system:serviceaccount:{namespace}:learner-storm-operator-pipeline"
        of_it = f"configmaps/learned-by-{namespace}"
        assert api.kubectl("auth", "can-i", "patch", of_it, f"--namespace={NAMESPACE}", account).strip() == "yes"
        api.helm("uninstall", "learner", f"--namespace={namespace}")


def test_the_operators_kinds_come_with_its_chart_and_outlive_it(api: KubeCluster) -> None:
    api.helm("install", "blue", str(CHARTS / "storm-operator"), f"--namespace={NAMESPACE}")
    ours = [f"crd/{path.stem}" for path in (CHARTS / "storm-operator" / "crds").glob("*.yaml")]
    assert ours
    api.kubectl("wait", "--for=condition=Established", "--timeout=60s", *ours)
    api.helm("uninstall", "blue", f"--namespace={NAMESPACE}", "--wait")
    api.kubectl("get", *ours)
    left = api.kubectl(
        *("get", "all,serviceaccounts,configmaps,roles,rolebindings,clusterroles,clusterrolebindings"),
        *("--all-namespaces", "--selector=app.kubernetes.io/instance=blue", "--output=name"),
    )
    assert left == ""

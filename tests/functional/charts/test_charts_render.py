"""Both charts: helm's own checks, values that are wrong, pod security, and what the notes say."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from functional.charts.chart_objects import CHARTS, NAMESPACE, ROOT, Helm, HelmRefused, Rendered, containers
from functional.charts.pod_security import violations
from rule_files import rule_files

TEXTS = {".md", ".yaml", ".txt"}
CHART_VALUES = {
    "storm": (
        (),
        ("agent.enforceExecutors=true",),
        ("zookeeper.enabled=false", "externalZookeeper.servers={zk-0.example,zk-1.example}"),
        ("networkPolicy.enabled=true", "podMonitor.enabled=true", "nimbus.replicas=3"),
        ("networkPolicy.enabled=true", "networkPolicy.operatorNamespace=storm-operator"),
        (
            "nimbus.persistence.enabled=true",
            "zookeeper.persistence.enabled=true",
            "supervisor.persistence.enabled=true",
        ),
        ("supervisor.scaling.enabled=true", "supervisor.scaling.omitReplicas=true"),
        ("supervisor.scaling.enabled=true", "podDisruptionBudget.enabled=false", "test.submit=false"),
    ),
    "storm-operator": (
        (),
        ("replicas=2", "nimbus=storm-nimbus.streams:6627", "prometheus=http://prometheus:9090"),
        ("watchNamespaces={one,two}",),
        ("networkPolicy.enabled=true", "podMonitor.enabled=true"),
        ("rules.enabled=true", "rules.labels.release=prometheus"),
        ("serviceAccount.create=false", "rbac.create=false"),
        ("pipeline.enabled=true", "history.existingClaim=history", "networkPolicy.enabled=true"),
    ),
}
EACH_RENDERING = [(chart, values) for chart, several in CHART_VALUES.items() for values in several]

WRONG_VALUES = [
    ("storm", "supervisor.replica=3", ("/supervisor", "'replica' not allowed")),
    ("storm", "nimbus.replicas=0", ("/nimbus/replicas", "got 0, want 1")),
    ("storm", "supervisor.slots=many", ("/supervisor/slots", "want integer")),
    ("storm", "supervisor.resources.limits.cpu=fast", ("/supervisor/resources/limits/cpu", "'fast' does not match")),
    ("storm", "supervisor.resources.limits.cpu=null", ("/supervisor/resources/limits", "missing property 'cpu'")),
    ("storm", "supervisor.resources.limits.cpu=0m", ("supervisor.resources.limits.cpu: 0m is less than",)),
    ("storm", "supervisor.resources.limits.memory=3GB", ("/supervisor/resources/limits/memory", "'3GB'")),
    ("storm", "supervisor.resources.requests.cpu=2", ("supervisor.resources.requests.cpu: 2 is more than", ", 1")),
    ("storm", "supervisor.scaling.omitReplicas=true", ("supervisor.scaling.omitReplicas: true", "enabled is false")),
    ("storm", "supervisor.drainSeconds=-1", ("/supervisor/drainSeconds", "want 0")),
    ("storm", "supervisor.keepLogsDays=week", ("/supervisor/keepLogsDays", "want integer")),
    ("storm", "nimbus.persistence.enabled=true,nimbus.persistence.size=null", ("/nimbus/persistence", "'size'")),
    ("storm", "networkPolicy.enabled=true,networkPolicy.operator=null", ("/networkPolicy", "'operator'")),
    (
        "storm",
        "zookeeper.enabled=false,externalZookeeper.servers={zk.example},externalZookeeper.port=null",
        ("/externalZookeeper", "'port'"),
    ),
    ("storm", "supervisor.workerJvmOptions={-Dgreeting=good day}", ("/supervisor/workerJvmOptions/0", "good day")),
    ("storm", "supervisor.pod.containers=x", ("/supervisor/pod", "'containers' not allowed")),
    ("storm", "zookeeper.enabled=false", ("externalZookeeper.servers: empty", "for example [zk-0.example")),
    ("storm", "externalZookeeper.servers={zk-0,zk-1}", ("servers: zk-0, zk-1, and", "Set zookeeper.enabled: false")),
    ("storm", "externalZookeeper.servers={zk:2181}", ("/externalZookeeper/servers/0", "'zk:2181'")),
    ("storm", "networkPolicy.operatorNamespace=a/b", ("/networkPolicy/operatorNamespace", "'a/b'")),
    ("storm", "zookeeperRoot=storm", ("/zookeeperRoot", "'storm'")),
    ("storm", "fallbackScheduler=evenly", ("/fallbackScheduler", "'evenly'")),
    ("storm", "image.pullPolicy=Sometimes", ("/image/pullPolicy", "'Always', 'IfNotPresent', 'Never'")),
    ("storm-operator", "nimbus=storm-nimbus:0", ("/nimbus", "'storm-nimbus:0'")),
    ("storm-operator", "nimbus=storm-nimbus:65536", ("/nimbus", "'storm-nimbus:65536'")),
    ("storm-operator", "replicas=0", ("/replicas", "want 1")),
    ("storm-operator", "watchNamespaces={One}", ("/watchNamespaces/0", "'One'")),
    ("storm-operator", "prometheus=prometheus:9090", ("/prometheus", "'prometheus:9090'")),
    ("storm-operator", "rules.repository=git.example/storm", ("/rules/repository", "'git.example/storm'")),
    ("storm-operator", "submission.serviceAccount=", ("/submission/serviceAccount", "minLength")),
    ("storm-operator", "dashboards.labels=yes", ("/dashboards/labels", "want object")),
]


@pytest.mark.parametrize(("chart", "values"), EACH_RENDERING)
def test_lint_has_nothing_to_say(helm: Helm, chart: str, values: tuple[str, ...]) -> None:
    said = helm.lint(chart, values)
    assert "0 chart(s) failed" in said
    assert "[WARNING]" not in said


@pytest.mark.parametrize(("chart", "value", "said"), WRONG_VALUES, ids=[value for _, value, _ in WRONG_VALUES])
def test_a_wrong_value_is_refused_by_name(helm: Helm, chart: str, value: str, said: tuple[str, ...]) -> None:
    with pytest.raises(HelmRefused) as refusal:
        helm.template(chart, value)
    missing = [part for part in said if part not in str(refusal.value)]
    assert not missing, f"{missing} not in: {refusal.value}"


@pytest.mark.parametrize("chart", ["storm", "storm-operator"])
def test_a_default_that_is_taken_away_is_missed_by_name_or_not_needed(helm: Helm, chart: str) -> None:
    """`value=null` takes it away. What is rendered all the same has no nothing in the place of a text or a number."""
    for name in _names(yaml.safe_load((CHARTS / chart / "values.yaml").read_text())):
        rendered, refusal = _rendered_or_refused(helm, chart, f"{name}=null")
        words = [word for word in _leaves(rendered) if isinstance(word, str)]
        assert f"missing property '{name.rpartition('.')[2]}'" in refusal or rendered, name
        assert not [word for word in words if re.search(r"^--.*=$|nil|-Xmx0m", word)], name


@pytest.mark.parametrize(
    ("chart", "value"),
    [
        ("storm", "podMonitor.labels"),
        ("storm", "networkPolicy.operator"),
        ("storm", "nimbus.persistence.size"),
        ("storm", "externalZookeeper.port"),
        ("storm-operator", "rules.labels"),
        ("storm-operator", "dashboards.labels"),
        ("storm-operator", "podMonitor.labels"),
        ("storm-operator", "pipeline"),
    ],
)
def test_what_is_not_needed_may_be_null(helm: Helm, chart: str, value: str) -> None:
    assert helm.template(chart, f"{value}=null").objects == helm.template(chart).objects


@pytest.mark.parametrize(
    ("chart", "name"), [("storm", "podMonitor"), ("storm-operator", "podMonitor"), ("storm-operator", "rules")]
)
def test_labels_that_are_null_are_none(helm: Helm, chart: str, name: str) -> None:
    on = f"{name}.enabled=true"
    assert helm.template(chart, on, f"{name}.labels=null").objects == helm.template(chart, on).objects


def _rendered_or_refused(helm: Helm, chart: str, value: str) -> tuple[Sequence[Any], str]:
    try:
        return helm.template(chart, value).objects, ""
    except HelmRefused as refusal:
        return (), str(refusal)


def _names(values: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in values.items():
        yield f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _names(value, f"{above}{key}.")


@pytest.mark.parametrize("release", ["a" * 42, "2nd", "blue.storm"])
def test_a_release_whose_name_pods_or_services_cannot_bear_is_refused(helm: Helm, release: str) -> None:
    with pytest.raises(HelmRefused, match=f"the release's name: {release} has .*up to 41 small letters"):
        helm.template("storm", release=release)


@pytest.mark.parametrize("release", ["2nd", "blue.operator"])
def test_a_release_of_the_operator_whose_name_its_service_cannot_bear_is_refused(helm: Helm, release: str) -> None:
    with pytest.raises(HelmRefused, match=f"the release's name: {release} is none that a Service can have"):
        helm.template("storm-operator", release=release)


@pytest.mark.parametrize(
    ("chart", "values", "texts"),
    [
        (
            "storm",
            ("networkPolicy.enabled=true", "podMonitor.enabled=true", "supervisor.persistence.enabled=true"),
            ("supervisor.persistence.storageClass=4202", "networkPolicy.operatorNamespace=4203"),
        ),
        (
            "storm-operator",
            ("networkPolicy.enabled=true", "podMonitor.enabled=true", "rules.enabled=true", "pipeline.enabled=true"),
            (
                *("watchNamespaces[0]=4202", "leaseName=4203", "serviceAccount.name=4204"),
                *("history.existingClaim=4205", "pipeline.publishTo=4206/4207", "pipeline.metrics.existingClaim=4208"),
                *("pipeline.serviceAccount=4209", "pipeline.namespace=4210"),
            ),
        ),
    ],
)
def test_names_are_text_though_yaml_would_take_them_for_something_else(
    helm: Helm, chart: str, values: tuple[str, ...], texts: tuple[str, ...]
) -> None:
    objects = helm.template(chart, *values, release="on", namespace="4201", texts=texts).objects
    assert not [leaf for leaf in _leaves(objects) if isinstance(leaf, int) and 4201 <= leaf <= 4210]
    labels = [item["metadata"]["labels"] for item in objects]
    assert {found["app.kubernetes.io/instance"] for found in labels if "app.kubernetes.io/instance" in found} == {"on"}


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            yield from _leaves(one)
    else:
        yield value


@pytest.mark.parametrize(("chart", "values"), EACH_RENDERING)
def test_names_are_unique_and_namespaced_objects_are_where_they_belong(
    helm: Helm, chart: str, values: tuple[str, ...]
) -> None:
    objects = helm.template(chart, *values).objects
    names = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in objects]
    assert len(names) == len(set(names))
    assert all(item["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm" for item in objects)


@pytest.mark.parametrize(("chart", "values"), EACH_RENDERING)
def test_pods_are_restricted_except_the_agent_that_enforces(helm: Helm, chart: str, values: tuple[str, ...]) -> None:
    enforces = "agent.enforceExecutors=true" in values
    for name, spec in helm.template(chart, *values).pod_specs():
        found = violations(spec)
        if enforces and name == "StatefulSet/storm-supervisor":
            assert found
            assert all(problem.startswith("agent: ") or problem == "volume cgroups is a hostPath" for problem in found)
        else:
            assert found == [], name


@pytest.mark.parametrize("chart", ["storm", "storm-operator"])
def test_every_container_has_requests_a_memory_limit_and_a_root_that_cannot_be_written(helm: Helm, chart: str) -> None:
    for name, spec in helm.template(chart, "test.submit=true" if chart == "storm" else "replicas=1").pod_specs():
        for container in containers(spec):
            where = f"{name} {container['name']}"
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys(), where
            assert "memory" in container["resources"]["limits"], where
            assert container["securityContext"]["readOnlyRootFilesystem"] is True, where


@pytest.mark.parametrize("chart", ["storm", "storm-operator"])
def test_every_long_running_container_has_probes(helm: Helm, chart: str) -> None:
    for name, spec in helm.template(chart).pod_specs():
        sidecars = [item for item in spec.get("initContainers", ()) if item.get("restartPolicy") == "Always"]
        for container in [*sidecars, *spec["containers"]] if not name.startswith("Pod/") else ():
            assert {"readinessProbe", "livenessProbe"} <= container.keys(), f"{name} {container['name']}"


@pytest.mark.parametrize("chart", ["storm", "storm-operator"])
def test_a_new_chart_version_alone_restarts_no_pod(helm: Helm, chart: str, tmp_path: Path) -> None:
    newer = tmp_path / chart
    shutil.copytree(CHARTS / chart, newer)
    text = (newer / "Chart.yaml").read_text()
    (newer / "Chart.yaml").write_text(re.sub("^version: .*", "version: 9.9.9", text, flags=re.MULTILINE))
    now, later = _pod_templates(helm.template(chart)), _pod_templates(helm.template(chart, chart_folder=newer))
    assert now
    assert later == now


def _pod_templates(rendered: Rendered) -> dict[str, object]:
    with_pods = (item for item in rendered.objects if "template" in item.get("spec", {}))
    return {item["metadata"]["name"]: item["spec"]["template"] for item in with_pods}


@pytest.mark.parametrize(
    ("chart", "values", "said"),
    [
        ("storm", (), ("helm --namespace streams test storm", "WARNING: ZooKeeper and Nimbus keep data in the pod")),
        ("storm", (), ("--set nimbus=storm-nimbus.streams.svc.cluster.local:6627",)),
        (
            "storm",
            ("image.repository=registry.example/storm", "image.tag=v7"),
            (
                "--set image.repository=OPERATOR-IMAGE,image.tag=TAG ",
                "--set submission.image.repository=registry.example/storm,submission.image.tag=v7 ",
            ),
        ),
        ("storm", ("agent.enforceExecutors=true",), ("pod-security.kubernetes.io/enforce=privileged",)),
        ("storm-operator", (), ("watches all namespaces", "at storm-nimbus.streams:6627", "test storm")),
        ("storm-operator", (), ("Recommend makes plans and applies those alone that you approve",)),
        ("storm-operator", ("nimbus=",), ("must name its spec.nimbus",)),
        ("storm-operator", ("watchNamespaces={one,two}",), ("watches the namespaces one, two",)),
        (
            "storm-operator",
            ("watchNamespaces={one,two}",),
            ("kubectl apply --namespace one --filename ", "kubectl get stormtopologies --namespace one --watch"),
        ),
    ],
)
def test_notes_tell_the_next_command(
    helm: Helm, tmp_path: Path, chart: str, values: tuple[str, ...], said: tuple[str, ...]
) -> None:
    notes = helm.notes(chart, tmp_path, *values)
    missing = [part for part in said if part not in notes]
    assert not missing, notes


def test_commands_of_storms_notes_are_of_the_namespace_that_it_is_in(helm: Helm, tmp_path: Path) -> None:
    notes = helm.notes("storm", tmp_path, "agent.enforceExecutors=true")
    of_pods = re.findall(r"kubectl (?!label)[^\n`]*", notes)
    assert len(of_pods) == 5
    assert all(command.startswith(f"kubectl --namespace {NAMESPACE} ") for command in of_pods), of_pods


@pytest.mark.parametrize(
    ("values", "deleted"),
    [
        ((), ["storm-zookeeper-0 storm-nimbus-0"]),
        (("zookeeper.persistence.enabled=true",), ["storm-nimbus-0"]),
        (("nimbus.persistence.enabled=true",), ["storm-zookeeper-0"]),
        # At once where ZooKeeper forgets with them; else one by one, so that each can copy from the others.
        (("nimbus.replicas=2",), ["storm-zookeeper-0 storm-nimbus-0 storm-nimbus-1"]),
        (("nimbus.replicas=2", "zookeeper.persistence.enabled=true"), ["storm-nimbus-0", "storm-nimbus-1"]),
    ],
)
def test_notes_delete_the_pods_that_would_never_get_the_volumes(
    helm: Helm, tmp_path: Path, values: tuple[str, ...], deleted: list[str]
) -> None:
    notes = helm.notes("storm", tmp_path, *values)
    commands = [line for line in notes.partition("WARNING")[2].splitlines() if line.startswith("  ")]
    assert [line.partition(" delete pod ")[2] for line in commands[2:]] == deleted
    assert ("submitted anew" in notes) is (len(deleted) == 1)


@pytest.mark.parametrize(
    ("chart", "pod", "name"),
    [("storm", "nimbus.pod", "storm-storm-test"), ("storm-operator", "pod", "storm-storm-operator-test")],
)
def test_pods_of_helms_own_tests_may_go_where_those_that_they_test_go(
    helm: Helm, chart: str, pod: str, name: str
) -> None:
    """Where all nodes have taints they would wait until their time is up; but they keep away from no pod."""
    values = (
        f"{pod}.nodeSelector.pool=storm",
        f"{pod}.tolerations[0].key=storm",
        f"{pod}.affinity.podAntiAffinity.x=y",
    )
    spec = helm.template(chart, *values).one("Pod", name)["spec"]
    assert (spec["nodeSelector"], spec["tolerations"]) == ({"pool": "storm"}, [{"key": "storm"}])
    assert "affinity" not in spec


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((), ""),
        (("supervisor.workerHeapMb=500",), ""),
        (
            ("supervisor.workerHeapMb=1024",),
            "4 workers of 1024 MB heap need some 5092 MiB with all that is beside their heaps, and "
            "supervisor.resources.limits.memory is 3Gi",
        ),
        (("supervisor.workerHeapMb=1024", "supervisor.resources.limits.memory=5Gi"), ""),
        (("supervisor.slots=8",), "8 workers of 256 MB heap need some 3844 MiB"),
    ],
)
def test_notes_tell_of_workers_that_the_pod_has_no_memory_for(
    helm: Helm, tmp_path: Path, values: tuple[str, ...], said: str
) -> None:
    """Else nobody knows before all slots are used, and the kernel ends a container with all of its workers."""
    notes = helm.notes("storm", tmp_path, *values)
    assert said in notes
    assert ("beside their heaps" in notes) is bool(said), notes


def test_whoever_is_told_to_watch_is_told_of_one_kind_as_kubectl_wants_it() -> None:
    folders = (ROOT / "docs", ROOT / "examples", CHARTS)
    texts = [path.read_text() for folder in folders for path in folder.rglob("*.*") if path.suffix in TEXTS]
    watches = [line for text in texts for line in re.findall(r"kubectl get .*--watch", text)]
    assert watches
    assert [line for line in watches if "," in line.split()[2]] == []


def test_notes_warn_of_nothing_when_data_outlives_pods(helm: Helm, tmp_path: Path) -> None:
    notes = helm.notes("storm", tmp_path, "nimbus.persistence.enabled=true", "zookeeper.persistence.enabled=true")
    assert "WARNING" not in notes


def test_rules_are_those_of_the_repository_with_addresses_of_their_runbooks(helm: Helm) -> None:
    values = ("rules.enabled=true", "rules.labels.release=prometheus", "rules.repository=https://git.example/storm/")
    shipped = helm.template("storm-operator", *values).of_kind("PrometheusRule")
    assert all(item["metadata"]["labels"]["release"] == "prometheus" for item in shipped)
    names = [item["metadata"]["name"] for item in shipped]
    assert names == [f"storm-storm-operator-{file.stem}" for file in rule_files()]
    for item, file in zip(shipped, rule_files(), strict=True):
        source = file.read_text().replace("docs/runbooks/", "https://git.example/storm/docs/runbooks/")
        assert item["spec"] == yaml.safe_load(source)

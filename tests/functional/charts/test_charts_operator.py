"""Chart `storm-operator`: the operator is started as it can be started, and may do what it must, and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import pytest

from functional.charts.chart_objects import CHARTS, NAMESPACE, Helm, HelmRefused, Rendered, container, options_of
from storm_operator.adapters.nimbus.connection import NimbusAddress
from storm_operator.cli import COMMANDS, PROGRAM
from storm_operator.kube.submission_pod import parse_submission_pod
from storm_operator.lazy_commands import load_available

Right = tuple[str, str, str]
"""API group, resource, verb."""

OWN = "storm-operator.dev"
# That each of these is used, and no other needed, is what functional/kubernetes/test_rbac.py proves.
IN_WATCHED_NAMESPACES = {
    (OWN, "stormtopologies"): "list watch patch",
    (OWN, "stormrebalances"): "list watch create patch delete",
    (OWN, "stormtopologies/status"): "patch",
    (OWN, "stormrebalances/status"): "patch",
    ("batch", "jobs"): "get list create delete",
    ("", "pods"): "list",
    ("", "pods/log"): "get",
    ("", "pods/resize"): "patch",
    ("apps", "statefulsets"): "get",
    ("apps", "statefulsets/scale"): "get patch",
    ("", "configmaps"): "get",
    ("", "events"): "create",
}
IN_ITS_OWN_NAMESPACE = {("coordination.k8s.io", "leases"): "get update create"}


def rights(table: Mapping[tuple[str, str], str]) -> set[Right]:
    return {(group, resource, verb) for (group, resource), verbs in table.items() for verb in verbs.split()}


def granted(roles: Iterable[Mapping[str, Any]]) -> set[Right]:
    rules = [rule for role in roles for rule in role["rules"]]
    return {right for rule in rules for right in product(rule["apiGroups"], rule["resources"], rule["verbs"])}


def arguments(rendered: Rendered) -> list[str]:
    pod = rendered.one("Deployment", "storm-storm-operator")["spec"]["template"]["spec"]
    return list(container(pod, "operator")["args"])


@pytest.mark.parametrize(
    ("value", "option"),
    [
        ("watchLookSeconds", "--watch-look-seconds"),
        ("history.keepDays", "--history-days"),
        ("history.keepGigabytes", "--history-gigabytes"),
    ],
)
def test_no_number_is_taken_that_the_operator_would_not_start_with(value: str, option: str) -> None:
    schema = json.loads((CHARTS / "storm-operator" / "values.schema.json").read_text())
    for name in value.split("."):
        schema = schema["properties"][name]
    least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1e-9)
    load_available(PROGRAM, "run", COMMANDS["run"]).make_context("run", [f"{option}={least}"])


def test_watching_all_namespaces_grants_what_is_needed_and_no_more(helm: Helm) -> None:
    rendered = helm.template("storm-operator")
    assert granted(rendered.of_kind("ClusterRole")) == rights(IN_WATCHED_NAMESPACES)
    assert granted(rendered.of_kind("Role")) == rights(IN_ITS_OWN_NAMESPACE)


def test_watching_some_namespaces_grants_nothing_elsewhere(helm: Helm) -> None:
    rendered = helm.template("storm-operator", "watchNamespaces={one,two}")
    assert rendered.of_kind("ClusterRole") == rendered.of_kind("ClusterRoleBinding") == ()
    roles = {(role["metadata"]["namespace"], role["metadata"]["name"]): role for role in rendered.of_kind("Role")}
    for namespace in ("one", "two"):
        assert granted([roles[namespace, "streams.storm-storm-operator"]]) == rights(IN_WATCHED_NAMESPACES)
    assert {namespace for namespace, _ in roles} == {"one", "two", "streams"}


@pytest.mark.parametrize("values", [(), ("watchNamespaces={one,two}",)])
def test_every_role_is_bound_to_the_operators_account_and_nobody_else(helm: Helm, values: tuple[str, ...]) -> None:
    rendered = helm.template("storm-operator", *values)
    for kind in ("ClusterRole", "Role"):
        roles = {(role["metadata"].get("namespace"), role["metadata"]["name"]) for role in rendered.of_kind(kind)}
        bindings = rendered.of_kind(f"{kind}Binding")
        assert {(item["metadata"].get("namespace"), item["roleRef"]["name"]) for item in bindings} == roles
        assert {item["roleRef"]["kind"] for item in bindings} <= {kind}
        for binding in bindings:
            account = {"kind": "ServiceAccount", "name": "storm-storm-operator", "namespace": "streams"}
            assert binding["subjects"] == [account]


def test_only_its_own_lease_may_be_changed_and_it_goes_with_the_release(helm: Helm) -> None:
    rendered = helm.template("storm-operator", "leaseName=blue")
    role = rendered.one("Role", "storm-storm-operator-lease")
    assert [(rule.get("resourceNames"), rule["verbs"]) for rule in role["rules"]] == [
        (["blue"], ["get", "update"]),
        (None, ["create"]),
    ]
    assert "spec" not in rendered.one("Lease", "blue")


def test_each_rule_gives_its_reason() -> None:
    lines = (CHARTS / "storm-operator" / "templates" / "rbac.yaml").read_text().splitlines()
    rules = [number for number, line in enumerate(lines) if line.lstrip().startswith("- apiGroups:")]
    assert len(rules) > 10
    assert [lines[number + 1] for number in rules if not lines[number - 1].lstrip().startswith("#")] == []


def test_every_flag_of_run_can_be_set_and_no_other(helm: Helm) -> None:
    values = (
        "nimbus=n:6627",
        "prometheus=http://p:9090",
        'match=cluster="blue"',
        "watchNamespaces={one}",
        "page.approval=true",
    )
    optional = ("history.path=s3://bucket/history", "learnedProfile=profile", "submission.nodeSelector.disk=ssd")
    everything = helm.template("storm-operator", *values, *optional)
    command, *flags = arguments(everything)
    assert command == "run"
    names = [flag.partition("=")[0] for flag in flags]
    assert len(names) == len(set(names))
    # In a pod the kubeconfig is the ServiceAccount's.
    assert set(names) | {"--kubeconfig"} == options_of("run")


@pytest.mark.parametrize("given", ["[fd00::1]:6627", "[fd00::1]", "storm-nimbus.streams", "10.0.0.7:6630"])
def test_nimbus_is_written_as_in_a_resource(helm: Helm, given: str) -> None:
    assert f"--nimbus={given}" in arguments(helm.template("storm-operator", f"nimbus={given}"))
    assert NimbusAddress.parse(given).port in (6627, 6630)


@pytest.mark.parametrize("given", ["fd00::1", "n:0", "n:65536", "[fd00::1:6627"])
def test_nimbus_that_no_operator_would_start_with_is_refused(helm: Helm, given: str) -> None:
    with pytest.raises(HelmRefused, match="nimbus"):
        helm.template("storm-operator", f"nimbus={given}")


def test_history_is_taken_only_where_the_operator_can_write_it(helm: Helm) -> None:
    with pytest.raises(HelmRefused, match=r"history\.path is /data/history, where the operator cannot write"):
        helm.template("storm-operator", "history.path=/data/history", "history.existingClaim=claim")
    with pytest.raises(HelmRefused, match="where the operator cannot write"):
        helm.template("storm-operator", "history.path=/history/blue")
    below = ("history.path=/history/blue", "history.existingClaim=claim")
    assert "--history=/history/blue" in arguments(helm.template("storm-operator", *below))


def test_what_would_do_nothing_is_refused(helm: Helm) -> None:
    with pytest.raises(HelmRefused, match='match: cluster="blue" narrows what a Prometheus is asked for'):
        helm.template("storm-operator", 'match=cluster="blue"')
    with pytest.raises(HelmRefused, match=r"page\.approval: true, and page\.enabled is false"):
        helm.template("storm-operator", "page.approval=true", "page.enabled=false")


def test_values_become_flags(helm: Helm) -> None:
    rendered = helm.template(
        "storm-operator",
        "nimbus=storm-nimbus.streams:6627",
        "watchNamespaces={one,two}",
        "submission.image.repository=registry.example/storm",
        "submission.image.tag=1.2",
        "submission.image.pullPolicy=Never",
        "submission.serviceAccount=submitter",
        "agentPort=9999",
        "leaseName=blue",
        "deletionPatienceSeconds=30",
        "prometheus=http://prometheus.monitoring:9090",
        'match=cluster="blue"',
    )
    assert {
        "--nimbus=storm-nimbus.streams:6627",
        "--watch-namespace=one",
        "--watch-namespace=two",
        "--storm-image=registry.example/storm:1.2",
        "--storm-image-pull-policy=Never",
        "--submitter-service-account=submitter",
        "--agent-port=9999",
        "--lease-namespace=$(POD_NAMESPACE)",
        "--lease-name=blue",
        "--deletion-patience-seconds=30",
        "--prometheus=http://prometheus.monitoring:9090",
        '--match=cluster="blue"',
    } <= set(arguments(rendered))


def test_what_is_not_set_is_not_said(helm: Helm) -> None:
    said = {argument.partition("=")[0] for argument in arguments(helm.template("storm-operator", "nimbus="))}
    assert said.isdisjoint({"--nimbus", "--watch-namespace", "--prometheus", "--match"})


def test_pods_of_submissions_are_as_the_values_say(helm: Helm) -> None:
    rendered = helm.template(
        "storm-operator",
        "submission.resources.requests.memory=300Mi",
        "submission.resources.limits.cpu=1",
        "submission.nodeSelector.disk=ssd: $(HOME) # fast",
        "submission.tolerations[0].key=storm",
        "submission.tolerations[0].operator=Exists",
        "submission.imagePullSecrets[0].name=registry",
        "submission.deadlineSeconds=1000000",
    )
    (given,) = [argument for argument in arguments(rendered) if argument.startswith("--submission-pod=")]
    pod = parse_submission_pod(given.removeprefix("--submission-pod="))
    assert pod.container_fields() == {"resources": {"requests": {"memory": "300Mi"}, "limits": {"cpu": 1}}}
    assert pod.pod_fields() == {
        "nodeSelector": {"disk": "ssd: $(HOME) # fast"},
        "tolerations": [{"key": "storm", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "registry"}],
    }
    assert pod.deadline_seconds == 1_000_000


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ("submission.nodeSelector.disk=1", "disk"),
        ("submission.deadlineSeconds=0", "deadlineSeconds"),
        ("submission.imagePullSecrets[0].nam=registry", "imagePullSecrets"),
        ("submission.resources.request.cpu=1", "request"),
        ("submission.affinity.x=1", "affinity"),
    ],
)
def test_what_pods_of_submissions_cannot_have_is_refused_by_name(helm: Helm, bad: str, named: str) -> None:
    with pytest.raises(HelmRefused, match=named):
        helm.template("storm-operator", bad)


def test_the_storm_chart_beside_it_is_the_cluster_that_it_goes_by(helm: Helm) -> None:
    services = {item["metadata"]["name"] for item in helm.template("storm").of_kind("Service")}
    (nimbus,) = (a for a in arguments(helm.template("storm-operator")) if a.startswith("--nimbus="))
    host, _, port = nimbus.removeprefix("--nimbus=").partition(":")
    service, _, namespace = host.partition(".")
    assert service in services
    assert (namespace, port) == (NAMESPACE, "6627")


def test_probes_and_helm_test_ask_the_health_port_that_it_is_given(helm: Helm) -> None:
    rendered = helm.template("storm-operator")
    pod = rendered.one("Deployment", "storm-storm-operator")["spec"]["template"]["spec"]
    operator = container(pod, "operator")
    ports = {port["name"]: port["containerPort"] for port in operator["ports"]}
    assert {f"--health-port={ports['health']}", f"--metrics-port={ports['metrics']}"} <= set(operator["args"])
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert operator[probe]["httpGet"] == {"path": "/healthz", "port": "health"}
    service = rendered.one("Service", "storm-storm-operator")
    labels = rendered.one("Deployment", "storm-storm-operator")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels
    script = rendered.one("Pod", "storm-storm-operator-test")["spec"]["containers"][0]["args"][0]
    assert f"http://{service['metadata']['name']}.streams:{ports['health']}/healthz" in script
    compile(script, "helm-test", "exec")


def test_the_test_pod_is_not_taken_for_an_operator(helm: Helm) -> None:
    rendered = helm.template("storm-operator")
    selector = rendered.one("Service", "storm-storm-operator")["spec"]["selector"]
    labels = rendered.one("Pod", "storm-storm-operator-test")["metadata"]["labels"]
    assert not labels.items() >= selector.items()


def test_a_budget_only_where_there_is_a_choice(helm: Helm) -> None:
    assert helm.template("storm-operator").of_kind("PodDisruptionBudget") == ()
    assert len(helm.template("storm-operator", "replicas=2").of_kind("PodDisruptionBudget")) == 1


def test_pods_are_replaced_as_the_values_say(helm: Helm) -> None:
    def strategy_with(*values: str) -> object:
        (deployment,) = helm.template("storm-operator", *values).of_kind("Deployment")
        return deployment["spec"].get("strategy")

    assert strategy_with() is None
    assert strategy_with("strategy.type=Recreate") == {"type": "Recreate"}


def test_scraping_keeps_the_namespaces_of_topologies(helm: Helm) -> None:
    monitor = helm.template("storm-operator", "podMonitor.enabled=true").one("PodMonitor", "storm-storm-operator")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True, "dashboards choose by the label `namespace`"


@pytest.mark.parametrize(
    ("nimbus", "cluster"),
    [
        ("storm-nimbus.streams:6627", "storm"),
        ("my-storm-nimbus.streams.svc.cluster.local:6627", "my-storm"),
        ("blue-nimbus-0.blue-nimbus.streams:6627", "blue"),
        ("blue-nimbus.team-nimbus.svc.k8s.example:6627", "blue"),
        ("blue-nimbus-0.blue-nimbus.team-nimbus.svc.k8s.example:6627", "blue"),
        ("10.0.0.7:6627", None),
        ("", None),
    ],
)
def test_series_about_a_storm_cluster_are_labelled_as_its_agents_are(
    helm: Helm, nimbus: str, cluster: str | None
) -> None:
    monitor = helm.template("storm-operator", "podMonitor.enabled=true").one("PodMonitor", "storm-storm-operator")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    (rule,) = endpoint["metricRelabelings"]
    assert (rule["sourceLabels"], rule["targetLabel"]) == (["nimbus"], "cluster")
    found = re.fullmatch(rule["regex"], nimbus)  # Prometheus anchors it, and takes the first group
    assert (found and found[1]) == cluster


def test_one_can_name_the_cluster_oneself(helm: Helm) -> None:
    rendered = helm.template("storm-operator", "podMonitor.enabled=true", "podMonitor.cluster=blue")
    (endpoint,) = rendered.one("PodMonitor", "storm-storm-operator")["spec"]["podMetricsEndpoints"]
    assert endpoint["relabelings"] == [{"targetLabel": "cluster", "replacement": "blue"}]
    assert "metricRelabelings" not in endpoint


def test_each_dashboard_goes_into_a_config_map_as_it_is(helm: Helm) -> None:
    files = sorted((CHARTS / "storm-operator" / "dashboards").glob("*.json"))
    assert files, "the chart ships the dashboards"
    found = helm.template("storm-operator", "dashboards.enabled=true")
    for file in files:
        config_map = found.one("ConfigMap", f"storm-storm-operator-dashboard-{file.stem.removeprefix('storm-')}")
        assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert config_map["metadata"]["annotations"] == {"grafana_folder": "Storm"}
        assert config_map["data"] == {file.name: file.read_text()}, "legends with {{label}} are left alone"
        # `kubectl apply` keeps a copy of it all in an annotation, and annotations together may have 256 KiB.
        assert len(json.dumps(config_map).encode()) < 200 * 1024


def test_an_account_of_ones_own_gets_the_rights(helm: Helm) -> None:
    rendered = helm.template("storm-operator", "serviceAccount.create=false", "serviceAccount.name=mine")
    assert rendered.of_kind("ServiceAccount") == ()
    pod = rendered.one("Deployment", "storm-storm-operator")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "mine"
    assert {item["subjects"][0]["name"] for item in rendered.of_kind("ClusterRoleBinding")} == {"mine"}


def test_rights_are_never_bound_to_the_account_of_all_pods(helm: Helm) -> None:
    with pytest.raises(HelmRefused, match=r"serviceAccount\.name: empty, and serviceAccount\.create is false"):
        helm.template("storm-operator", "serviceAccount.create=false")


def test_the_page_is_served_where_the_service_points_and_is_off_by_a_value(helm: Helm) -> None:
    rendered = helm.template("storm-operator")
    assert "--page-port=8088" in arguments(rendered)
    assert "--page-approval" not in arguments(rendered)
    ports = {port["name"]: port["port"] for port in rendered.one("Service", "storm-storm-operator")["spec"]["ports"]}
    assert ports["page"] == 8088
    off = helm.template("storm-operator", "page.enabled=false")
    assert "--page-port=0" in arguments(off)
    assert "page" not in {port["name"] for port in off.one("Service", "storm-storm-operator")["spec"]["ports"]}


def test_approval_on_the_page_is_asked_for_and_needs_no_right(helm: Helm) -> None:
    rendered = helm.template("storm-operator", "page.approval=true")
    assert "--page-approval" in arguments(rendered)
    assert granted(rendered.of_kind("ClusterRole")) == rights(IN_WATCHED_NAMESPACES)


def test_only_its_readers_reach_the_page_through_a_network_policy(helm: Helm) -> None:
    def ports(*values: str) -> set[str]:
        policy = helm.template("storm-operator", "networkPolicy.enabled=true", *values).one(
            "NetworkPolicy", "storm-storm-operator"
        )
        return {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}

    reader = "networkPolicy.pageReaders[0].podSelector.matchLabels.app=ingress"
    assert "page" not in ports()
    assert "page" in ports(reader)
    assert "page" not in ports(reader, "page.enabled=false")

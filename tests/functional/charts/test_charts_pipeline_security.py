"""Chart `storm-operator`, value `pipeline`: what its account may do, and who is heard by its pods."""

from __future__ import annotations

import pytest

from functional.charts.chart_objects import NAMESPACE, Helm, HelmRefused, Rendered, selects
from functional.charts.test_charts_pipeline import NAME, ON, driver, executor_of, script_of

EACH_KIND = ("ServiceAccount", "Role", "RoleBinding", "ConfigMap", "CronJob")


def spark_settings(rendered: Rendered) -> dict[str, str]:
    lines = rendered.one("ConfigMap", NAME)["data"]["spark-defaults.conf"].splitlines()
    return dict(line.split(maxsplit=1) for line in lines)


def names_of(rendered: Rendered, kind: str) -> set[str]:
    return {item["metadata"]["name"] for item in rendered.of_kind(kind)}


def test_driver_and_executors_know_each_other_and_encrypt_what_they_say(helm: Helm) -> None:
    settings = spark_settings(helm.template("storm-operator", *ON))
    assert settings["spark.authenticate"] == settings["spark.network.crypto.enabled"] == "true"
    assert "spark.authenticate.secret" not in settings, "one for all runs, for everybody who may read a ConfigMap"


def test_the_pipeline_can_delete_no_claim_and_does_not_try(helm: Helm) -> None:
    rendered = helm.template("storm-operator", *ON)
    granted = {resource for rule in rendered.one("Role", NAME)["rules"] for resource in rule["resources"]}
    assert granted == {"pods", "services", "configmaps"}
    assert spark_settings(rendered)["spark.kubernetes.driver.ownPersistentVolumeClaim"] == "false"


def test_only_driver_and_executors_of_the_release_reach_each_other_through_a_network_policy(helm: Helm) -> None:
    rendered = helm.template("storm-operator", *ON, "networkPolicy.enabled=true")
    spec = rendered.one("NetworkPolicy", NAME)["spec"]
    assert spec["policyTypes"] == ["Ingress"]
    assert spec["ingress"] == [{"from": [{"podSelector": spec["podSelector"]}]}]
    cron_job = rendered.one("CronJob", NAME)["spec"]["jobTemplate"]["spec"]["template"]
    for pod in (cron_job, executor_of(rendered)):
        assert selects(spec["podSelector"], pod["metadata"]["labels"])
    operator = rendered.one("Deployment", "storm-storm-operator")["spec"]["template"]
    of_helm_test = rendered.one("Pod", "storm-storm-operator-test")
    another = helm.template("storm-operator", *ON, release="other")
    of_another_release = executor_of(another, "other-storm-operator-pipeline")
    for pod in (operator, of_helm_test, of_another_release):
        assert not selects(spec["podSelector"], pod["metadata"]["labels"])


def test_the_pipelines_pods_do_not_reach_the_operator_through_its_network_policy(helm: Helm) -> None:
    rendered = helm.template("storm-operator", *ON, "networkPolicy.enabled=true")
    (health,) = rendered.one("NetworkPolicy", "storm-storm-operator")["spec"]["ingress"]
    (peer,) = health["from"]
    assert selects(peer["podSelector"], rendered.one("Pod", "storm-storm-operator-test")["metadata"]["labels"])
    assert not selects(peer["podSelector"], executor_of(rendered)["metadata"]["labels"])


def test_publishing_grants_one_config_map_where_it_is(helm: Helm) -> None:
    rendered = helm.template("storm-operator", *ON, "pipeline.publishTo=storm/learned")
    role = rendered.one("Role", f"{NAMESPACE}.{NAME}-publishes")
    assert role["metadata"]["namespace"] == "storm"
    assert [rule["verbs"] for rule in role["rules"]] == [["create"], ["patch"]]
    assert role["rules"][1]["resourceNames"] == ["learned"]
    assert "--config-map 'storm/learned'" in script_of(rendered)


def test_an_account_of_ones_own_drives_it_and_gets_the_rights(helm: Helm) -> None:
    values = ("pipeline.serviceAccount=mine", "pipeline.publishTo=storm/learned")
    rendered = helm.template("storm-operator", *ON, *values)
    assert driver(rendered)["serviceAccountName"] == "mine"
    assert names_of(rendered, "ServiceAccount") == {"storm-storm-operator"}, "the operator's alone"
    for binding in (NAME, f"{NAMESPACE}.{NAME}-publishes"):
        (subject,) = rendered.one("RoleBinding", binding)["subjects"]
        assert subject == {"kind": "ServiceAccount", "name": "mine", "namespace": NAMESPACE}


def test_in_a_namespace_of_its_own_it_may_make_no_pod_beside_the_operator(helm: Helm) -> None:
    values = ("pipeline.namespace=learning", "pipeline.publishTo=storm/learned", "networkPolicy.enabled=true")
    rendered = helm.template("storm-operator", *ON, *values)
    own = [item for item in rendered.objects if item["metadata"]["name"] == NAME]
    assert {item["kind"] for item in own} == {*EACH_KIND, "NetworkPolicy"}
    assert {item["metadata"]["namespace"] for item in own} == {"learning"}
    assert spark_settings(rendered)["spark.kubernetes.namespace"] == "learning"
    for binding in (NAME, f"{NAMESPACE}.{NAME}-publishes"):
        (subject,) = rendered.one("RoleBinding", binding)["subjects"]
        assert (subject["name"], subject["namespace"]) == (NAME, "learning")


def test_without_one_it_is_beside_the_operator(helm: Helm) -> None:
    rendered = helm.template("storm-operator", *ON)
    assert {rendered.one(kind, NAME)["metadata"]["namespace"] for kind in EACH_KIND} == {NAMESPACE}
    assert spark_settings(rendered)["spark.kubernetes.namespace"] == NAMESPACE


def test_no_account_and_no_right_is_made_where_none_is_wanted(helm: Helm) -> None:
    none = ("rbac.create=false", "serviceAccount.create=false", "pipeline.publishTo=storm/learned")
    rendered = helm.template("storm-operator", *ON, *none, "pipeline.serviceAccount=mine")
    for kind in ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"):
        assert names_of(rendered, kind) == set()
    with pytest.raises(HelmRefused, match=r"pipeline\.serviceAccount: empty, and serviceAccount\.create is false"):
        helm.template("storm-operator", *ON, *none)

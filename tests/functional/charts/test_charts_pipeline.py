"""Chart `storm-operator`, value `pipeline`: a CronJob that can run, executors that may start, and no right too many."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from functional.charts.chart_objects import Helm, HelmRefused, Rendered, container

NAME = "storm-storm-operator-pipeline"
ON = ("pipeline.enabled=true", "history.existingClaim=history")


def driver(rendered: Rendered) -> dict[str, Any]:
    return dict(rendered.one("CronJob", NAME)["spec"]["jobTemplate"]["spec"]["template"]["spec"])


def test_there_is_none_unless_asked_for(helm: Helm) -> None:
    assert helm.template("storm-operator").of_kind("CronJob") == ()


def test_jobs_run_in_order_on_the_claim(helm: Helm) -> None:
    rendered = helm.template("storm-operator", *ON, "pipeline.jobs={ingest,report}")
    script = container(driver(rendered), "driver")["args"][0]
    assert "for job in ingest report; do" in script
    assert 'ingest) set -- --history "/history" ;;' in script
    assert '"$job" "/history/lake" "$@"' in script
    assert "--config-map" not in script


def test_executors_have_image_claim_and_no_token(helm: Helm) -> None:
    rendered = helm.template(
        "storm-operator", *ON, "pipeline.image.repository=registry.example/learn", "pipeline.image.tag=v7"
    )
    files = rendered.one("ConfigMap", NAME)["data"]
    assert "spark.kubernetes.container.image registry.example/learn:v7\n" in files["spark-defaults.conf"]
    executor = yaml.safe_load(files["executor.yaml"])["spec"]
    assert executor["automountServiceAccountToken"] is False
    assert {"name": "history", "mountPath": "/history"} in executor["containers"][0]["volumeMounts"]
    assert executor["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True


def test_publishing_grants_one_config_map_where_it_is(helm: Helm) -> None:
    rendered = helm.template("storm-operator", *ON, "pipeline.publishTo=storm/learned")
    role = rendered.one("Role", f"{NAME}-publishes")
    assert role["metadata"]["namespace"] == "storm"
    assert [rule["verbs"] for rule in role["rules"]] == [["create"], ["patch"]]
    assert role["rules"][1]["resourceNames"] == ["learned"]
    assert '--config-map "storm/learned"' in container(driver(rendered), "driver")["args"][0]


def test_without_history_it_says_what_is_missing(helm: Helm) -> None:
    with pytest.raises(HelmRefused, match=r"pipeline\.enabled needs recorded history"):
        helm.template("storm-operator", "pipeline.enabled=true")


@pytest.mark.parametrize("wrong", ["pipeline.jobs={mine}", "pipeline.schedule=never", "pipeline.publishTo=learned"])
def test_wrong_values_are_refused(helm: Helm, wrong: str) -> None:
    with pytest.raises(HelmRefused):
        helm.template("storm-operator", *ON, wrong)

"""What `examples/pipeline` says is what the chart `storm-operator` makes: images, accounts, claims, folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

import pytest
import yaml

from functional.charts.chart_objects import ROOT, Helm, Object, Rendered, container
from functional.charts.pod_security import violations
from storm_operator.lazy_commands import load_available
from storm_pipeline.cli import JOBS, PROGRAM
from storm_pipeline.metrics import FOLDER_VARIABLE

EXAMPLES = ROOT / "examples" / "pipeline"
RELEASE, CLAIM = "storm-operator", "history"
"""As the how-to has them."""
LAKE = "/history/lake"
SPARK = "spark-application.yaml"
EXPORTER = "metrics-exporter.yaml"
SHARED_SETTINGS = {
    "spark.executor.extraClassPath",
    "spark.kubernetes.driver.ownPersistentVolumeClaim",
    "spark.authenticate",
    "spark.network.crypto.enabled",
    "spark.network.crypto.authEngineVersion",
}


@pytest.fixture(scope="module")
def rendered(helm: Helm) -> Rendered:
    values = ("pipeline.enabled=true", f"history.existingClaim={CLAIM}", f"pipeline.metrics.existingClaim={CLAIM}")
    return helm.template("storm-operator", *values, release=RELEASE)


@pytest.fixture(scope="module")
def driver(rendered: Rendered) -> Mapping[str, Any]:
    template = rendered.one("CronJob", f"{RELEASE}-pipeline")["spec"]["jobTemplate"]["spec"]["template"]
    return dict(template["spec"])


@pytest.fixture(scope="module")
def application() -> Mapping[str, Any]:
    (found,) = objects_of(SPARK)
    return dict(found["spec"])


def objects_of(example: str) -> list[Object]:
    return list(yaml.safe_load_all((EXAMPLES / example).read_text()))


def claims(pod: Mapping[str, Any], mounts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Where claims are mounted."""
    by_volume = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in pod["volumes"]
        if "persistentVolumeClaim" in volume
    }
    return {by_volume[mount["name"]]: mount["mountPath"] for mount in mounts if mount["name"] in by_volume}


def test_each_example_is_looked_at() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == {SPARK, EXPORTER}


def test_the_application_runs_a_job_with_arguments_that_it_takes(application: Mapping[str, Any]) -> None:
    job, lake, *options = application["arguments"]
    assert lake == LAKE
    load_available(PROGRAM, job, JOBS[job]).make_context(job, [lake, *options])


def test_the_application_starts_what_the_image_has(application: Mapping[str, Any]) -> None:
    (main,) = re.findall("STORM_PIPELINE_MAIN=([^ ]+)", (ROOT / "Dockerfile").read_text())
    assert application["mainApplicationFile"] == f"local://{main}"
    assert application["sparkVersion"] == version("pyspark")


def test_the_application_has_image_account_and_claim_of_the_cron_job(
    rendered: Rendered, driver: Mapping[str, Any], application: Mapping[str, Any]
) -> None:
    assert application["image"] == container(driver, "driver")["image"]
    assert application["imagePullPolicy"] == container(driver, "driver")["imagePullPolicy"]
    assert application["driver"]["serviceAccount"] == driver["serviceAccountName"]
    rendered.one("ServiceAccount", application["driver"]["serviceAccount"])
    there = claims(driver, container(driver, "driver")["volumeMounts"])
    for part in ("driver", "executor"):
        assert claims(application, application[part]["volumeMounts"]) == there


def test_the_applications_executors_are_those_of_the_chart(rendered: Rendered, application: Mapping[str, Any]) -> None:
    text = rendered.one("ConfigMap", f"{RELEASE}-pipeline")["data"]["spark-defaults.conf"]
    settings = dict(line.split(maxsplit=1) for line in text.splitlines())
    executor = application["executor"]
    assert str(executor["instances"]) == settings["spark.executor.instances"]
    assert str(executor["cores"]) == settings["spark.executor.cores"]
    assert executor["memory"] == settings["spark.executor.memory"]
    assert application["driver"]["memory"] == settings["spark.driver.memory"]
    # The entry point says it, where the chart starts the driver.
    own = {"spark.driver.extraClassPath": settings["spark.executor.extraClassPath"]}
    assert application["sparkConf"] == own | {key: settings[key] for key in SHARED_SETTINGS}


def test_the_exporter_reads_where_jobs_write_and_needs_no_right(driver: Mapping[str, Any]) -> None:
    deployment, monitor = objects_of(EXPORTER)
    pod = deployment["spec"]["template"]["spec"]
    assert violations(pod) == []
    exporter = container(pod, "node-exporter")
    written = next(item["value"] for item in container(driver, "driver")["env"] if item["name"] == FOLDER_VARIABLE)
    assert f"--collector.textfile.directory={written}" in exporter["args"]
    assert claims(pod, exporter["volumeMounts"]) == claims(driver, container(driver, "driver")["volumeMounts"])
    assert [mount["readOnly"] for mount in exporter["volumeMounts"]] == [True]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"] == deployment["spec"]["selector"]["matchLabels"] == labels
    ports = {port["name"] for port in exporter["ports"]}
    assert {end["port"] for end in monitor["spec"]["podMetricsEndpoints"]} == ports

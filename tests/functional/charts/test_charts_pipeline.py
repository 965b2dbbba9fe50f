"""Chart `storm-operator`, value `pipeline`: a CronJob that can run, and executors that may start."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from functional.charts.chart_objects import CHARTS, Helm, HelmRefused, Rendered, container
from storm_operator.lazy_commands import load_available
from storm_pipeline.cli import JOBS, PROGRAM
from storm_pipeline.metrics import FOLDER_VARIABLE

NAME = "storm-storm-operator-pipeline"
ON = ("pipeline.enabled=true", "history.existingClaim=history")


def driver(rendered: Rendered) -> dict[str, Any]:
    return dict(rendered.one("CronJob", NAME)["spec"]["jobTemplate"]["spec"]["template"]["spec"])


def script_of(rendered: Rendered) -> str:
    return str(container(driver(rendered), "driver")["args"][0])


def ended(rendered: Rendered, folder: Path, program: str) -> int:
    """The exit code of the real script, whose jobs are all this shell `program`."""
    entrypoint = folder / "entrypoint.sh"
    entrypoint.write_text(f"#!/bin/sh\n{program}\n")
    entrypoint.chmod(0o755)
    script = script_of(rendered).replace("/opt/entrypoint.sh", str(entrypoint))
    pod = {"POD_IP": "10.0.0.1", "POD_NAME": "driver", "STORM_PIPELINE_MAIN": "main.py"}
    return subprocess.run(["sh", "-euc", script], check=False, env=os.environ | pod).returncode


def all_told(rendered: Rendered, folder: Path) -> list[list[str]]:
    """What each job is told, its name and the lake first, by the real script with a program that writes it down."""
    said = folder / "said"
    assert ended(rendered, folder, f"printf '%s\\n' \"$@\" . >>{said}") == 0
    runs = [run.splitlines() for run in said.read_text().removesuffix(".\n").split("\n.\n")]
    return [words[words.index("main.py") + 1 :] for words in runs]


def told(rendered: Rendered, folder: Path) -> dict[str, list[str]]:
    """What each job is told after its name and the lake."""
    return {words[0]: words[2:] for words in all_told(rendered, folder)}


def test_driver_and_executors_go_to_the_nodes_that_are_named(helm: Helm) -> None:
    rendered = helm.template(
        "storm-operator", *ON, "pipeline.pod.nodeSelector.pool=batch", "pipeline.pod.tolerations[0].key=batch"
    )
    for spec in (driver(rendered), executor_of(rendered)["spec"]):
        assert (spec["nodeSelector"], spec["tolerations"]) == ({"pool": "batch"}, [{"key": "batch"}])
    plain = helm.template("storm-operator", *ON)
    assert all("nodeSelector" not in spec for spec in (driver(plain), executor_of(plain)["spec"]))


def executor_of(rendered: Rendered, name: str = NAME) -> dict[str, Any]:
    """The pod that each executor is."""
    return dict(yaml.safe_load(rendered.one("ConfigMap", name)["data"]["executor.yaml"]))


def environment(rendered: Rendered) -> dict[str, str]:
    return {item["name"]: item.get("value", "") for item in container(driver(rendered), "driver")["env"]}


def test_there_is_none_unless_asked_for(helm: Helm) -> None:
    assert helm.template("storm-operator").of_kind("CronJob") == ()


@pytest.mark.parametrize("release", ["streams-of-the-payments-department", 50 * "x"])
def test_a_long_release_name_leaves_a_cron_jobs_name_that_kubernetes_takes(helm: Helm, release: str) -> None:
    (cron_job,) = helm.template("storm-operator", *ON, release=release).of_kind("CronJob")
    assert len(cron_job["metadata"]["name"]) <= 52
    assert cron_job["metadata"]["name"].endswith("-pipeline")


def test_jobs_run_in_order_on_the_claim(helm: Helm) -> None:
    rendered = helm.template("storm-operator", *ON, "pipeline.jobs={ingest,report}")
    script = script_of(rendered)
    assert "for job in ingest report; do" in script
    assert "ingest) set -- --history '/history' ;;" in script
    assert '"$job" \'/history/lake\' "$@"' in script
    assert "--config-map" not in script


def test_what_cannot_be_is_not_tried_again(helm: Helm, tmp_path: Path) -> None:
    rendered = helm.template("storm-operator", *ON, "pipeline.jobs={ingest,traffic}")
    log = tmp_path / "log"
    code = ended(rendered, tmp_path, f"echo job >>{log}; exit {typer.BadParameter.exit_code}")
    (rule,) = rendered.one("CronJob", NAME)["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert log.read_text() == "job\n"
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"] == {"containerName": "driver", "operator": "In", "values": [code]}
    assert driver(rendered)["restartPolicy"] == "Never"


def test_executors_have_image_claim_and_no_token(helm: Helm) -> None:
    rendered = helm.template(
        "storm-operator", *ON, "pipeline.image.repository=registry.example/learn", "pipeline.image.tag=v7"
    )
    files = rendered.one("ConfigMap", NAME)["data"]
    assert "spark.kubernetes.container.image registry.example/learn:v7\n" in files["spark-defaults.conf"]
    executor = executor_of(rendered)["spec"]
    assert executor["automountServiceAccountToken"] is False
    assert {"name": "history", "mountPath": "/history"} in executor["containers"][0]["volumeMounts"]
    assert executor["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True


def test_who_mounts_the_claim_may_write_to_a_volume_that_was_just_made(helm: Helm) -> None:
    rendered = helm.template("storm-operator", *ON)
    operator = rendered.one("Deployment", "storm-storm-operator")["spec"]["template"]["spec"]
    executor = executor_of(rendered)["spec"]
    for pod in (operator, driver(rendered), executor):
        assert [volume for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
        context = pod["securityContext"]
        assert context["fsGroup"] == context["runAsGroup"] == 10001
        assert context["fsGroupChangePolicy"] == "OnRootMismatch", "years of history are not gone through at each start"


def test_each_job_is_told_its_own_arguments_after_the_charts(helm: Helm, tmp_path: Path) -> None:
    rendered = helm.template(
        "storm-operator",
        *ON,
        "pipeline.jobs={ingest,traffic,forecast,tune}",
        "pipeline.publishTo=storm/learned",
        "pipeline.arguments.ingest={--late-after-hours=6}",
        "pipeline.arguments.forecast={--days=28,--cluster=storm-nimbus.storm:6627,--theta=50}",
        "pipeline.arguments.tune={--set,coolDownSeconds=30}",
    )
    said = told(rendered, tmp_path)
    assert said == {
        "ingest": ["--history", "/history", "--late-after-hours=6"],
        "traffic": [],
        "forecast": [
            *("--config-map", "storm/learned"),
            *("--days=28", "--cluster=storm-nimbus.storm:6627", "--theta=50"),
        ],
        "tune": ["--set", "coolDownSeconds=30"],
    }
    for job, words in said.items():
        load_available(PROGRAM, job, JOBS[job]).make_context(job, ["/history/lake", *words])


def test_no_argument_is_a_shells_business(helm: Helm, tmp_path: Path) -> None:
    odd = 'it\'s $HOME; `id` "x" *'
    rendered = helm.template("storm-operator", *ON, "pipeline.jobs={report}", f"pipeline.arguments.report={{{odd}}}")
    assert told(rendered, tmp_path)["report"] == ["--output", "/history/lake/report", odd]


def test_no_place_is_a_shells_business(helm: Helm, tmp_path: Path) -> None:
    lake, history = '/history/it\'s $HOME `id` "x" *', "/history/$(id) 'y' # z"
    rendered = helm.template(
        "storm-operator", *ON, "pipeline.jobs={ingest,report}", f"pipeline.lake={lake}", f"history.path={history}"
    )
    assert all_told(rendered, tmp_path) == [
        ["ingest", lake, "--history", history],
        ["report", lake, "--output", f"{lake}/report"],
    ]
    operator = rendered.one("Deployment", "storm-storm-operator")["spec"]["template"]["spec"]
    assert f"--history={history}" in container(operator, "operator")["args"]


def test_spark_is_told_more_settings(helm: Helm) -> None:
    rendered = helm.template(
        "storm-operator", *ON, r"pipeline.sparkConf.spark\.hadoop\.fs\.s3a\.path\.style\.access=true"
    )
    settings = rendered.one("ConfigMap", NAME)["data"]["spark-defaults.conf"].splitlines()
    assert settings[-1] == "spark.hadoop.fs.s3a.path.style.access true"
    assert all(len(line.split(maxsplit=1)) == 2 for line in settings)


def test_numbers_of_a_values_file_reach_spark_as_they_stand_there(helm: Helm, tmp_path: Path) -> None:
    chart = tmp_path / "storm-operator"
    shutil.copytree(CHARTS / "storm-operator", chart)
    values, given = chart / "values.yaml", "{spark.sql.files.maxPartitionBytes: 134217728, spark.memory.fraction: 0.6}"
    values.write_text(values.read_text().replace("sparkConf: {}", f"sparkConf: {given}"))
    rendered = helm.template("storm-operator", *ON, chart_folder=chart)
    settings = rendered.one("ConfigMap", NAME)["data"]["spark-defaults.conf"].splitlines()
    assert settings[-2:] == ["spark.memory.fraction 0.6", "spark.sql.files.maxPartitionBytes 134217728"]


def test_driver_and_executors_have_the_same_more_of_environment(helm: Helm) -> None:
    key = ("pipeline.extraEnv[0].name=AWS_ACCESS_KEY_ID", "pipeline.extraEnv[0].value=key")
    rendered = helm.template("storm-operator", *ON, *key)
    executor = executor_of(rendered)["spec"]["containers"][0]
    assert executor["env"] == [{"name": "AWS_ACCESS_KEY_ID", "value": "key"}]
    assert executor["env"][0] in container(driver(rendered), "driver")["env"]


def test_tables_and_history_may_be_in_an_object_store_without_any_claim(helm: Helm, tmp_path: Path) -> None:
    store = ("pipeline.enabled=true", "history.path=s3://bucket/recorded", "pipeline.lake=s3://bucket/lake")
    rendered = helm.template("storm-operator", *store, "pipeline.jobs={ingest,report}")
    assert '"$job" \'s3://bucket/lake\' "$@"' in script_of(rendered)
    said = told(rendered, tmp_path)
    assert said == {"ingest": ["--history", "s3://bucket/recorded"], "report": ["--output", "s3://bucket/lake/report"]}
    executor = executor_of(rendered)["spec"]
    for pod in (driver(rendered), executor):
        assert not [volume for volume in pod["volumes"] if "persistentVolumeClaim" in volume]


@pytest.mark.parametrize("folder", ["/tmp/lake", "/history-of-tables", "/history/../data", "file:///data"])
def test_a_folder_for_tables_that_pods_do_not_share_is_refused(helm: Helm, folder: str) -> None:
    said = rf"pipeline\.lake is {re.escape(folder)}, where the pipeline's pods cannot write: /history"
    with pytest.raises(HelmRefused, match=said):
        helm.template("storm-operator", *ON, f"pipeline.lake={folder}")


def test_a_folder_for_tables_below_history_needs_the_claim(helm: Helm) -> None:
    below = "pipeline.lake=/history/tables"
    assert '"$job" \'/history/tables\' "$@"' in script_of(helm.template("storm-operator", *ON, below))
    with pytest.raises(HelmRefused, match=r"pipeline\.lake is /history/tables, where .* with history\.existingClaim"):
        helm.template("storm-operator", "pipeline.enabled=true", "history.path=s3://bucket/recorded", below)


@pytest.mark.parametrize(
    ("claim", "folder", "claims"),
    [
        ("", None, {"history": "/history"}),
        ("history", "/history/pipeline-metrics", {"history": "/history"}),
        ("figures", "/metrics/pipeline-metrics", {"history": "/history", "figures": "/metrics"}),
    ],
)
def test_figures_of_jobs_are_left_on_a_claim_when_one_is_named(
    helm: Helm, claim: str, folder: str | None, claims: dict[str, str]
) -> None:
    rendered = helm.template("storm-operator", *ON, f"pipeline.metrics.existingClaim={claim}")
    assert environment(rendered).get(FOLDER_VARIABLE) == folder
    pod = driver(rendered)
    mounted_at = {mount["name"]: mount["mountPath"] for mount in container(pod, "driver")["volumeMounts"]}
    volumes = [volume for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
    found = {volume["persistentVolumeClaim"]["claimName"]: mounted_at[volume["name"]] for volume in volumes}
    assert found == claims


def test_without_history_it_says_what_is_missing(helm: Helm) -> None:
    with pytest.raises(HelmRefused, match=r"pipeline\.enabled needs recorded history"):
        helm.template("storm-operator", "pipeline.enabled=true")


@pytest.mark.parametrize(
    "wrong",
    [
        "pipeline.jobs={mine}",
        "pipeline.publishTo=learned",
        "pipeline.namespace=Learning",
        "pipeline.serviceAccount=team/mine",
        "pipeline.arguments.mine={--days=28}",
        "pipeline.arguments.forecast=--days=28",
        "pipeline.arguments.forecast={28}",
        "pipeline.metrics.existingClaim=/metrics",
        "pipeline.sparkConf.driver=x",
    ],
)
def test_wrong_values_are_refused(helm: Helm, wrong: str) -> None:
    with pytest.raises(HelmRefused):
        helm.template("storm-operator", *ON, wrong)

"""Every rendering of both charts through kubeconform, strictly, by the schemas of a live API server."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from functional.charts.chart_objects import CHARTS, KUBERNETES_VERSION, ROOT, Helm
from functional.charts.openapi_schemas import LOCATION, kind_schemas
from functional.charts.test_charts_render import EACH_RENDERING
from kube_cluster import KubeCluster
from kube_cluster.binaries import ensure_programs, program_path

pytestmark = pytest.mark.functional

FOREIGN_KINDS = ("PodMonitor", "PrometheusRule")
"""Their definitions come with the Prometheus operator, which the test cluster does not have."""

EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.yaml"))


@dataclass(frozen=True, slots=True)
class Judgement:
    """What kubeconform makes of some YAML: how many objects are valid, and what is wrong with which."""

    valid: int
    skipped: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kubeconform:
    schemas: Path

    def judge(self, text: str) -> Judgement:
        command = [str(program_path("kubeconform")), "-strict", "-summary", "-output=json"]
        command += [f"-skip={','.join(FOREIGN_KINDS)}"]
        command += [f"-schema-location={self.schemas / LOCATION}", f"-kubernetes-version={KUBERNETES_VERSION}"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert done.stdout, done.stderr
        answer = json.loads(done.stdout)
        problems = tuple(f"{item['kind']}/{item['name']}: {item['msg']}" for item in answer["resources"])
        assert bool(problems) == bool(done.returncode), done.stdout
        return Judgement(answer["summary"]["valid"], answer["summary"]["skipped"], problems)


@pytest.fixture(scope="module")
def kubeconform(chart_api: KubeCluster, tmp_path_factory: pytest.TempPathFactory) -> Kubeconform:
    ensure_programs(("kubeconform",))
    chart_api.install_crds(CHARTS / "storm-operator" / "crds")
    folder = tmp_path_factory.mktemp("schemas")
    index = json.loads(chart_api.kubectl("get", "--raw", "/openapi/v3"))
    for path, entry in index["paths"].items():
        if path.startswith(("api/", "apis/")):
            document = json.loads(chart_api.kubectl("get", "--raw", entry["serverRelativeURL"]))
            for name, schema in kind_schemas(document):
                (folder / name).write_text(json.dumps(schema))
    return Kubeconform(folder)


@pytest.mark.parametrize(("chart", "values"), EACH_RENDERING)
def test_rendering_conforms(kubeconform: Kubeconform, helm: Helm, chart: str, values: tuple[str, ...]) -> None:
    text = helm.template_text(chart, *values, crds=True)
    judgement = kubeconform.judge(text)
    assert judgement.problems == ()
    assert judgement.valid + judgement.skipped == len(re.findall("^kind:", text, flags=re.MULTILINE))
    assert judgement.skipped == sum(text.count(f"kind: {kind}") for kind in FOREIGN_KINDS)


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_conforms(kubeconform: Kubeconform, example: str) -> None:
    judgement = kubeconform.judge((ROOT / "examples" / example).read_text())
    assert judgement.problems == ()
    assert judgement.valid >= 1


def change(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("chart", "old", "new", "said"),
    [
        ("storm-operator", "livenessProbe:", "livelinessProbe:", "additional properties 'livelinessProbe'"),
        ("storm-operator", "replicas: 1", "replicas: one", "got string, want integer"),
        ("storm", "resizePolicy:", "resizePolicies:", "additional properties 'resizePolicies'"),
        ("storm", "podManagementPolicy: Parallel", "podManagement: Parallel", "additional properties 'podManagement'"),
        ("storm", "podManagementPolicy:", "replicas: 2\n  podManagementPolicy:", "already set in map"),
        ("storm", "kind: StatefulSet", "kind: StatefulSets", "could not find schema for StatefulSets"),
    ],
)
def test_what_the_api_does_not_know_is_found(
    kubeconform: Kubeconform, helm: Helm, chart: str, old: str, new: str, said: str
) -> None:
    (problem,) = kubeconform.judge(change(helm.template_text(chart), old, new)).problems
    assert said in problem


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("mainClass:", "mainclass:", "additional properties 'mainclass'"),
        ("kind: StormTopology", "kind: StormTopology\nspecs: {}", "additional properties 'specs'"),
        ("resources:", "resources:\n    enforcement: Pods", "value must be one of"),
    ],
)
def test_what_our_own_kinds_do_not_know_is_found(kubeconform: Kubeconform, old: str, new: str, said: str) -> None:
    text = (ROOT / "examples" / "wordcount.yaml").read_text()
    (problem,) = kubeconform.judge(change(text, old, new)).problems
    assert said in problem

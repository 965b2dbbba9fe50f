"""From the release before this one (previous/*.tgz) to the charts as they are, on a real API server."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from eventually import eventually

from functional.charts.chart_objects import CHARTS, ROOT
from kube_cluster import KubeCluster, KubeClusterError
from operator_scene import OperatorProcess

pytestmark = pytest.mark.functional

NAMESPACE = "upgraded"
PREVIOUS = Path(__file__).parent / "previous"
RELEASES = ("storm", "storm-operator")
CRDS = CHARTS / "storm-operator" / "crds"
OURS = tuple(f"crd/{path.stem}" for path in sorted(CRDS.glob("*.yaml")))
CRD_STEP = ("apply", "--server-side", "--force-conflicts", "-f")
"""What users do before `helm upgrade`: helm does not touch the CRDs that it once installed."""
REUSE = "--reset-then-reuse-values"
"""The values that were given once stay given; defaults are the new chart's."""

OWN_KINDS = (
    "deployments,statefulsets,services,configmaps,serviceaccounts,poddisruptionbudgets,networkpolicies,leases,roles,"
    "rolebindings,clusterroles,clusterrolebindings"
)
Body = dict[str, Any]


@pytest.fixture
def previous(chart_api: KubeCluster) -> Iterator[KubeCluster]:
    """Both charts' previous releases, with the examples' resources and a plan."""
    remove_all(chart_api)  # what a first try has left
    chart_api.kubectl("delete", "--ignore-not-found", *OURS)
    chart_api.kubectl("create", "namespace", NAMESPACE)
    for release in RELEASES:
        chart_api.helm("install", release, str(package_of(release)), f"--namespace={NAMESPACE}")
    chart_api.kubectl("wait", "--for=condition=Established", "--timeout=240s", *OURS)
    for body in resources():
        create(chart_api, body)
    yield chart_api
    remove_all(chart_api)


def remove_all(kube: KubeCluster) -> None:
    """Whatever is there of the releases and their namespace."""
    for release in RELEASES:
        kube.helm("uninstall", release, f"--namespace={NAMESPACE}", "--ignore-not-found", "--wait")
    if kube.kubectl("get", "--ignore-not-found", "-o", "name", *OURS):
        release_finalizers(kube)
    kube.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")


def package_of(chart: str) -> Path:
    """The one package of a release that is older than the chart's version now."""
    (package,) = PREVIOUS.glob(f"{chart}-[0-9]*.tgz")
    assert package.name != f"{chart}-{yaml.safe_load((CHARTS / chart / 'Chart.yaml').read_text())['version']}.tgz"
    return package


def resources() -> list[Body]:
    """What users have: each example, and a plan that was verified."""
    texts = [path.read_text() for path in sorted((ROOT / "examples").glob("*.yaml"))]
    found = [body for text in texts for body in yaml.safe_load_all(text) if body]
    spec = {"planId": "p-1", "planHash": "a", "baseHash": "b", "topologies": ["wordcount-1-1"], "plan": "{}"}
    plan = {
        "apiVersion": "storm-operator.dev/v1alpha1",
        "kind": "StormRebalance",
        "metadata": {"name": "p-1"},
        "spec": spec,
        "status": {"state": "Verified", "message": "as predicted"},
    }
    return [*found, plan]


def create(kube: KubeCluster, body: Body) -> None:
    eventually(lambda: accepts(kube, body), f"{body['metadata']['name']} is accepted")
    if "status" in body:
        patch = json.dumps({"status": body["status"]})
        command = ("patch", body["kind"], body["metadata"]["name"], "-n", NAMESPACE, "--subresource=status")
        kube.kubectl(*command, "--type=merge", f"--patch={patch}")


def accepts(kube: KubeCluster, body: Body) -> bool:
    """Right after its CRD was made a kind may not be served yet."""
    try:
        kube.kubectl("create", "-n", NAMESPACE, "-f", "-", input=json.dumps(body))
    except KubeClusterError as refusal:
        if "no matches for kind" in str(refusal) or "initializing" in str(refusal):
            return False
        raise
    return True


def own_resources(kube: KubeCluster) -> dict[str, Body]:
    """All StormTopologies and StormRebalances by kind and name, without what the server counts."""
    answer = json.loads(kube.kubectl("get", "stormtopologies,stormrebalances", "-n", NAMESPACE, "-o", "json"))
    return {
        f"{item['kind']}/{item['metadata']['name']}": {
            "uid": item["metadata"]["uid"],
            "generation": item["metadata"]["generation"],
            "spec": item["spec"],
            "status": item.get("status"),
        }
        for item in answer["items"]
    }


def without_new_fields(now: Any, before: Any) -> Any:
    """`now` without the fields that `before` does not have: later releases bring fields of their own, with defaults."""
    if isinstance(now, dict) and isinstance(before, dict):
        return {name: without_new_fields(value, before[name]) for name, value in now.items() if name in before}
    return now


def in_manifests(kube: KubeCluster, release: str) -> set[str]:
    """What helm takes for the release's, as `kind/name`."""
    text = kube.helm("get", "manifest", release, f"--namespace={NAMESPACE}")
    return {f"{item['kind']}/{item['metadata']['name']}" for item in yaml.safe_load_all(text) if item}


def in_cluster(kube: KubeCluster, release: str) -> set[str]:
    """What is there with the release's label, whoever still knows of it; hooks and what controllers make apart."""
    selector = f"--selector=app.kubernetes.io/instance={release},app.kubernetes.io/managed-by=Helm"
    answer = json.loads(kube.kubectl("get", OWN_KINDS, "-n", NAMESPACE, selector, "-o", "json"))
    return {f"{item['kind']}/{item['metadata']['name']}" for item in answer["items"]}


def upgrade(kube: KubeCluster, operator_chart: Path = CHARTS / "storm-operator") -> None:
    """As the documentation has it: CRDs, then both charts."""
    kube.kubectl(*CRD_STEP, str(operator_chart / "crds"))
    for release, chart in (("storm", CHARTS / "storm"), ("storm-operator", operator_chart)):
        kube.helm("upgrade", release, str(chart), f"--namespace={NAMESPACE}", REUSE)


def release_finalizers(kube: KubeCluster) -> None:
    """There is no operator any more that would."""
    for name in kube.kubectl("get", "stormtopologies", "-n", NAMESPACE, "-o", "name").split():
        kube.kubectl("patch", name, "-n", NAMESPACE, "--type=merge", '--patch={"metadata":{"finalizers":null}}')


def test_the_step_is_documented() -> None:
    said = (ROOT / "docs" / "how-to" / "operate-on-kubernetes.md").read_text()
    assert f"kubectl {' '.join(CRD_STEP)} charts/storm-operator/crds/" in said
    images = {"storm": ("image.tag",), "storm-operator": ("image.tag", "submission.image.tag")}
    for release in RELEASES:
        step = rf"^helm upgrade {release} charts/{release} -n \S+ {REUSE} (.*)$"
        found = re.search(step, said.replace("\\\n", ""), re.MULTILINE)
        assert found, release
        assert [value for value in images[release] if f"--set {value}=NEW" not in found[1]] == []
    notes = (CHARTS / "storm-operator" / "templates" / "NOTES.txt").read_text()
    assert "kubectl apply --server-side --force-conflicts" in notes


def test_resources_survive_and_nothing_is_orphaned(previous: KubeCluster) -> None:
    before = own_resources(previous)
    assert len(before) == sum(body["kind"].startswith("Storm") for body in resources())
    assert before["StormRebalance/p-1"]["status"]["state"] == "Verified"
    upgrade(previous)

    assert without_new_fields(own_resources(previous), before) == before
    # No difference is an exit code of 0: anything else raises.
    previous.kubectl("diff", "--server-side", "--force-conflicts", "-f", str(CRDS))
    text = previous.kubectl("get", "stormtopologies,stormrebalances", "-n", NAMESPACE, "-o", "json")
    said = previous.kubectl("replace", "--dry-run=server", "--validate=strict", "-f", "-", input=text)
    assert said.count("(server dry run)") == len(before)
    for release in RELEASES:
        expected = in_manifests(previous, release)
        assert in_cluster(previous, release) == expected
        previous.helm("uninstall", release, f"--namespace={NAMESPACE}", "--wait")
        assert in_cluster(previous, release) == set()
    assert without_new_fields(own_resources(previous), before) == before


def test_the_operator_goes_on_with_what_it_finds(previous: KubeCluster, tmp_path: Path) -> None:
    upgrade(previous)
    adopted = {"nimbus": "127.0.0.1:1", "adopt": {}}
    before = own_resources(previous)
    body = {"apiVersion": "storm-operator.dev/v1alpha1", "kind": "StormTopology", "metadata": {"name": "later"}}
    create(previous, {**body, "spec": adopted})
    kubeconfig = previous.service_account_kubeconfig(NAMESPACE, "storm-operator")
    with OperatorProcess(previous, NAMESPACE, tmp_path / "operator.log", kubeconfig):

        def all_seen() -> bool:
            found = own_resources(previous).items()
            return all((one["status"] or {}).get("phase") for name, one in found if name.startswith("StormTopology"))

        eventually(all_seen, "each has a status")
    after = own_resources(previous)
    assert {name: one["spec"] for name, one in after.items() if name in before} == {
        name: one["spec"] for name, one in before.items()
    }


def test_helm_alone_leaves_the_kinds_as_they_were(previous: KubeCluster, tmp_path: Path) -> None:
    next_chart = chart_with_another_field(tmp_path)
    before = own_resources(previous)
    previous.helm("upgrade", "storm-operator", str(next_chart), f"--namespace={NAMESPACE}")
    with pytest.raises(KubeClusterError, match='field "flavour" does not exist'):
        previous.kubectl("explain", "stormtopology.spec.flavour")
    with pytest.raises(KubeClusterError, match='conflict with "helm"'):
        previous.kubectl("apply", "--server-side", "-f", str(next_chart / "crds"))
    upgrade(previous, next_chart)
    eventually(lambda: explains(previous, "stormtopology.spec.flavour"), "the new field is served")
    assert without_new_fields(own_resources(previous), before) == before


def chart_with_another_field(folder: Path) -> Path:
    """The operator's chart as a later release may have it: one more field, and other words."""
    chart = folder / "storm-operator"
    shutil.copytree(CHARTS / "storm-operator", chart)
    (file,) = (chart / "crds").glob("stormtopologies*")
    crd = yaml.safe_load(file.read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["description"] = "Described anew."
    schema["properties"]["spec"]["properties"]["flavour"] = {"type": "string", "description": "Only for a test."}
    file.write_text(yaml.safe_dump(crd))
    return chart


def explains(kube: KubeCluster, field: str) -> bool:
    try:
        return "Only for a test." in kube.kubectl("explain", field)
    except KubeClusterError:
        return False

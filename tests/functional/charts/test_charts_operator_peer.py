"""Chart `storm`'s network policies know the operator of chart `storm-operator`, and take nothing else for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from functional.charts.chart_objects import Helm, Rendered, selects
from functional.charts.test_charts_pipeline import NAME, ON, executor_of

POLICIES = ("storm-zookeeper", "storm-nimbus", "storm-supervisor")
NAMESPACE_NAME = "kubernetes.io/metadata.name"
OPERATORS = "storm-operator"
"""The namespace that the operator is in."""


@pytest.fixture(scope="module")
def labels_of(helm: Helm) -> Mapping[str, Mapping[str, str]]:
    """Labels of each kind of pod of the operator's chart."""
    rendered = helm.template("storm-operator", *ON)
    cron_job = rendered.one("CronJob", NAME)["spec"]["jobTemplate"]
    return {
        "operator": rendered.one("Deployment", "storm-storm-operator")["spec"]["template"]["metadata"]["labels"],
        "test": rendered.one("Pod", "storm-storm-operator-test")["metadata"]["labels"],
        "driver": cron_job["spec"]["template"]["metadata"]["labels"],
        "executor": executor_of(rendered)["metadata"]["labels"],
    }


def storm(helm: Helm, *values: str) -> Rendered:
    return helm.template("storm", "networkPolicy.enabled=true", *values)


def lets_in(rendered: Rendered, policy: str, pod: Mapping[str, str], namespace: str) -> bool:
    """Whether a pod of another namespace than Storm's gets through."""
    return bool(ports_for(rendered, policy, pod, namespace))


def ports_for(rendered: Rendered, policy: str, pod: Mapping[str, str], namespace: str) -> set[int]:
    """The (first) ports that a pod of another namespace than Storm's gets through to."""
    rules: list[Mapping[str, Any]] = rendered.one("NetworkPolicy", policy)["spec"]["ingress"]
    return {port["port"] for rule in rules for port in rule["ports"] if any(is_let_in(rule, pod, namespace))}


def is_let_in(rule: Mapping[str, Any], pod: Mapping[str, str], namespace: str) -> Iterator[bool]:
    """By each of the rule's peers that may be of another namespace."""
    for peer in rule["from"]:
        if "namespaceSelector" in peer:
            of_namespace = selects(peer["namespaceSelector"], {NAMESPACE_NAME: namespace})
            yield of_namespace and selects(peer["podSelector"], pod)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("values", [(), (f"networkPolicy.operatorNamespace={OPERATORS}",)])
def test_the_operator_is_let_in_and_no_other_pod_of_its_chart(
    helm: Helm, labels_of: Mapping[str, Mapping[str, str]], policy: str, values: tuple[str, ...]
) -> None:
    rendered = storm(helm, *values)
    let_in = {kind for kind, labels in labels_of.items() if lets_in(rendered, policy, labels, OPERATORS)}
    assert let_in == {"operator"}


@pytest.mark.parametrize(
    ("policy", "ports"),
    [("storm-zookeeper", {2181}), ("storm-nimbus", {6627}), ("storm-supervisor", {6628, 9464})],
)
def test_the_operator_gets_to_all_that_it_asks_and_not_to_workers(
    helm: Helm, labels_of: Mapping[str, Mapping[str, str]], policy: str, ports: set[int]
) -> None:
    """It tells supervisors (6628) of a plan: else workers send for ten seconds to where executors were."""
    assert ports_for(storm(helm), policy, labels_of["operator"], OPERATORS) == ports


@pytest.mark.parametrize("policy", POLICIES)
def test_labels_of_the_operator_are_of_no_use_elsewhere_once_its_namespace_is_named(
    helm: Helm, labels_of: Mapping[str, Mapping[str, str]], policy: str
) -> None:
    assert lets_in(storm(helm), policy, labels_of["operator"], "elsewhere")
    named = storm(helm, f"networkPolicy.operatorNamespace={OPERATORS}")
    assert not lets_in(named, policy, labels_of["operator"], "elsewhere")

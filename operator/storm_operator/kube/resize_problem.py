"""Why a pod has not got the CPU that was asked for, in the words of the kubelet or the API server. Pure."""

from __future__ import annotations

import re

from storm_operator.adapters.kube.pods import CAPACITY_ANNOTATION, SupervisorPod

PodKey = tuple[str, str]
"""(namespace, name)"""

RETRY_SECONDS = 300.0
"""After which what could not be had is asked for again."""
INFEASIBLE = "Infeasible"
KUBELETS_REASONS = frozenset({"Deferred", INFEASIBLE, "Error"})
"""Why the kubelet has not done a resize that the API server accepted."""

MORE_THAN_THE_NODE = re.compile(r"\bcpu, requested: \d+, capacity: (\d+)")
"""In the kubelet's words; millicores."""


def key_of(pod: SupervisorPod) -> PodKey:
    return pod.namespace, pod.name


def problem_reason(problem: str) -> str:
    """One word for why a pod's limit is not what it should be, from the sentence in `PodLimits.problems`."""
    word = problem.partition(":")[0]
    if word in KUBELETS_REASONS:
        return word
    return "Invalid" if problem.startswith(CAPACITY_ANNOTATION) else "Refused"


def node_millicores(problem: str) -> float | None:
    """What the pod's node has in all, where the kubelet says so because the pod requests more; None elsewhere."""
    found = MORE_THAN_THE_NODE.search(problem)
    return float(found[1]) if found is not None else None

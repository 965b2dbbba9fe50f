"""Why a pod has not got the CPU that was asked for, and whether asking for an amount would be in vain. Pure."""

from __future__ import annotations

import re

from storm_operator.adapters.kube.pods import CAPACITY_ANNOTATION, SupervisorPod
from storm_operator.kube.pod_need import SMALLEST_CHANGE_FRACTION

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


def is_held_up(pod: SupervisorPod, wanted_millicores: float, reserve_millicores: float | None = None) -> bool:
    """Whether that much is at least what the kubelet has not been able to give the pod, or to reserve for it.

    `reserve_millicores` None: nothing more is to be reserved.
    """
    if problem_reason(pod.resize_problem) not in KUBELETS_REASONS or pod.wanted_millicores is None:
        return False
    is_more = _is_more(wanted_millicores, pod.limit_millicores) or _is_more(reserve_millicores, pod.reserved_millicores)
    less_than_asked = pod.wanted_millicores - wanted_millicores > SMALLEST_CHANGE_FRACTION * pod.wanted_millicores
    return is_more and not less_than_asked


def _is_more(wanted_millicores: float | None, had_millicores: float | None) -> bool:
    return wanted_millicores is not None and had_millicores is not None and wanted_millicores > had_millicores

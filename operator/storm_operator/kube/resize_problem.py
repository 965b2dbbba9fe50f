"""Why a pod has not got the CPU that was asked for, and whether asking for an amount would be in vain. Pure."""

from __future__ import annotations

from storm_operator.adapters.kube.pods import CAPACITY_ANNOTATION, SupervisorPod
from storm_operator.kube.pod_need import SMALLEST_CHANGE_FRACTION

PodKey = tuple[str, str]
"""(namespace, name)"""

RETRY_SECONDS = 300.0
"""After which what could not be had is asked for again."""
INFEASIBLE = "Infeasible"
KUBELETS_REASONS = frozenset({"Deferred", INFEASIBLE, "Error"})
"""Why the kubelet has not done a resize that the API server accepted."""


def key_of(pod: SupervisorPod) -> PodKey:
    return pod.namespace, pod.name


def problem_reason(problem: str) -> str:
    """One word for why a pod's limit is not what it should be, from the sentence in `PodLimits.problems`."""
    word = problem.partition(":")[0]
    if word in KUBELETS_REASONS:
        return word
    return "Invalid" if problem.startswith(CAPACITY_ANNOTATION) else "Refused"


def is_held_up(pod: SupervisorPod, wanted_millicores: float) -> bool:
    """Whether `wanted_millicores` is at least what the kubelet has not been able to give the pod."""
    if problem_reason(pod.resize_problem) not in KUBELETS_REASONS or pod.wanted_millicores is None:
        return False
    more_than_it_has = pod.limit_millicores is not None and wanted_millicores > pod.limit_millicores
    less_than_asked = pod.wanted_millicores - wanted_millicores > SMALLEST_CHANGE_FRACTION * pod.wanted_millicores
    return more_than_it_has and not less_than_asked

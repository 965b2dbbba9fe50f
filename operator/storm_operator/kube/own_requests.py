"""What CPU supervisor pods were made to request, before the operator reserved what executors need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from storm_operator.adapters.kube.errors import KubernetesError
from storm_operator.adapters.kube.pods import Pods, SupervisorPod
from storm_operator.kube.resize_problem import RETRY_SECONDS


@dataclass(frozen=True, slots=True)
class OwnRequest:
    read_at_seconds: float
    millicores: float | None


@dataclass(slots=True)
class OwnRequests:
    """By what StatefulSets say, which are read once in some minutes."""

    known: dict[tuple[str, str], OwnRequest] = field(default_factory=dict)
    """By namespace and name of the StatefulSet."""

    def taken_from(
        self, pod: SupervisorPod, pods: Pods, now_seconds: float, say: Callable[[str], None]
    ) -> float | None:
        """Millicores that the pod is to request again; None where it does, nobody knows, or its limit decides."""
        if not pod.is_reserved or pod.is_guaranteed or not pod.stateful_set:
            return None
        key = (pod.namespace, pod.stateful_set)
        known = self.known.get(key)
        if known is None or now_seconds - known.read_at_seconds >= RETRY_SECONDS:
            try:
                millicores = pods.cpu_request(*key)
            except KubernetesError as error:
                say(str(error))
                millicores = None
            known = self.known[key] = OwnRequest(now_seconds, millicores)
        if known.millicores is None:
            return None
        own = min(known.millicores, pod.capacity_millicores or known.millicores)
        return own if own != pod.requested_millicores else None

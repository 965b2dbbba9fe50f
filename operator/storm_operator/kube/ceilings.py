"""How much CPU supervisor pods can be planned with that could not have more."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.kube.pods import SupervisorPod
from storm_operator.kube.reservations import Withheld
from storm_operator.kube.resize_problem import RETRY_SECONDS, PodKey, is_held_up, key_of, node_millicores


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a pod was left with when it could not have more."""

    at_seconds: float
    millicores: float


@dataclass(slots=True)
class Ceilings:
    """`withheld` is what could not be reserved for pods: what their limits have risen by since is not planned with."""

    by_pod: dict[PodKey, Ceiling] = field(default_factory=dict)

    def see(self, pods: Collection[SupervisorPod], withheld: Mapping[PodKey, Withheld], now_seconds: float) -> None:
        """The pods as they are now."""
        present = {key_of(pod) for pod in pods}
        self.by_pod = {
            key: ceiling
            for key, ceiling in self.by_pod.items()
            if key in present and now_seconds - ceiling.at_seconds < RETRY_SECONDS
        }
        for pod in pods:
            self._note(pod, withheld, now_seconds)

    def of(self, pod: SupervisorPod, now_seconds: float) -> float | None:
        """Millicores; None for a pod that can have all, or is to be tried again."""
        ceiling = self.by_pod.get(key_of(pod))
        is_current = ceiling is not None and now_seconds - ceiling.at_seconds < RETRY_SECONDS
        return ceiling.millicores if ceiling is not None and is_current else None

    def cap(
        self, pod: SupervisorPod, millicores: float, withheld: Mapping[PodKey, Withheld], now_seconds: float
    ) -> None:
        """The pod is not to be planned with more than that, or than it had when a reservation was first refused."""
        refused = withheld.get(key_of(pod))
        if refused is not None:
            millicores = min(millicores, max(refused.had_millicores, pod.reserved_millicores or 0.0))
        self.by_pod[key_of(pod)] = Ceiling(now_seconds, millicores)

    def forget(self, pod: SupervisorPod) -> None:
        """The pod is to have all again."""
        self.by_pod.pop(key_of(pod), None)

    def _note(self, pod: SupervisorPod, withheld: Mapping[PodKey, Withheld], now_seconds: float) -> None:
        """While the kubelet cannot give it more a pod has a ceiling, and nothing of a limit is beyond its node; with
        what it has got since that rises."""
        key, limit = key_of(pod), pod.limit_millicores
        known, node = self.by_pod.get(key), node_millicores(pod.resize_problem) or math.inf
        if limit is None:
            self.by_pod.pop(key, None)
        elif is_held_up(pod, pod.wanted_millicores or 0.0) or key in withheld:
            self.cap(pod, min(limit, node), withheld, now_seconds)
        elif node < (pod.capacity_millicores or 0.0):
            self.cap(pod, node, withheld, now_seconds)
        elif known is not None and limit > known.millicores:
            self.by_pod[key] = Ceiling(known.at_seconds, limit)

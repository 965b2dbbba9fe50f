"""CPU that nodes, or quotas, do not reserve for supervisor pods.

The kubelet judges a resize by its request alone, and grants limit and request together or neither. A limit needs no
room: where the reservation is not to be had, it is to be asked for without, and the reservation again after a while.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from storm_operator.adapters.kube.pods import SupervisorPod
from storm_operator.kube.pod_need import SMALLEST_CHANGE_FRACTION, is_worth_a_resize
from storm_operator.kube.resize_problem import RETRY_SECONDS, PodKey, key_of, node_millicores


def is_withheld(pod: SupervisorPod) -> bool:
    """Whether the kubelet withholds the pod's resize although with the request that it has granted it would not."""
    if not pod.resize_problem or pod.is_guaranteed:
        return False
    requested, reserved = pod.requested_millicores, pod.reserved_millicores
    return requested is not None and reserved is not None and requested > reserved


def is_clearly_more_than_kept(pod: SupervisorPod, millicores: float) -> bool:
    """Whether reserving that much is more than what the pod's node keeps free, by enough to ask for it."""
    kept = pod.kept_free_millicores or 0.0
    return millicores > kept and is_worth_a_resize(kept, millicores)


@dataclass(frozen=True, slots=True)
class Withheld:
    """A request that was refused, and why; `at_seconds`: when it was last asked for; `had_millicores`: the limit that
    the pod had when it was first refused, as far as its node has so much."""

    at_seconds: float
    millicores: float
    why: str
    had_millicores: float


def _still_stands(one: Withheld, pod: SupervisorPod, now_seconds: float) -> bool:
    return now_seconds - one.at_seconds < 2 * RETRY_SECONDS and is_clearly_more_than_kept(pod, one.millicores)


@dataclass(slots=True)
class Reservations:
    """What could not be reserved, by pod, until it is reserved, is needed no more, or was not asked for again."""

    withheld: dict[PodKey, Withheld] = field(default_factory=dict)

    def see(self, pods: Collection[SupervisorPod], now_seconds: float) -> None:
        """The pods as they are now."""
        by_key = {key_of(pod): pod for pod in pods}
        self.withheld = {
            key: one
            for key, one in self.withheld.items()
            if key in by_key and (is_withheld(by_key[key]) or _still_stands(one, by_key[key], now_seconds))
        }
        for pod in pods:
            if is_withheld(pod):
                self.note(pod, pod.requested_millicores or 0.0, pod.resize_problem, now_seconds)

    def note(self, pod: SupervisorPod, millicores: float, why: str, now_seconds: float) -> None:
        """That so much is not reserved for the pod."""
        known = self.withheld.get(key_of(pod))
        if known is None:
            had = pod.limit_millicores if pod.limit_millicores is not None else math.inf
            known = Withheld(now_seconds, millicores, why, had)
        had = min(known.had_millicores, node_millicores(why) or math.inf)
        self.withheld[key_of(pod)] = replace(known, millicores=millicores, why=why, had_millicores=had)

    def forget(self, pod: SupervisorPod) -> None:
        """Nothing is to be reserved for the pod any more."""
        self.withheld.pop(key_of(pod), None)

    def is_to_be_tried(self, pod: SupervisorPod, wanted_millicores: float, now_seconds: float) -> bool:
        """Whether to ask for `wanted_millicores` as a reservation: if so, that is taken to be done now."""
        key = key_of(pod)
        known = self.withheld.get(key)
        if known is None:
            return True
        if wanted_millicores <= (pod.kept_free_millicores or 0.0):
            del self.withheld[key]
            return True
        if wanted_millicores < (1.0 - SMALLEST_CHANGE_FRACTION) * known.millicores:
            return True
        if now_seconds - known.at_seconds < RETRY_SECONDS:
            return False
        self.withheld[key] = replace(known, at_seconds=now_seconds)
        return True

"""What is known of a supervisor pod's CPU: what it has, what it could not have and why, and what to plan with.

The kubelet judges a resize by its request alone, and grants limit and request together or neither. A limit needs no
room: where the reservation is not to be had, it is to be asked for without, and the reservation again after a while.
Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from storm_operator.adapters.kube.pods import SupervisorPod
from storm_operator.core.backoff import FIRST_RETRY_SECONDS
from storm_operator.kube.resize_problem import KUBELETS_REASONS, RETRY_SECONDS, node_millicores, problem_reason

SMALLEST_CHANGE_FRACTION = 0.1


def is_worth_a_resize(
    now_millicores: float | None, wanted_millicores: float, more_than_fraction: float = SMALLEST_CHANGE_FRACTION
) -> bool:
    """Whether the change is large enough to ask the kubelet for it."""
    if now_millicores is None:
        return True
    return abs(wanted_millicores - now_millicores) > more_than_fraction * now_millicores


def is_clearly_less(millicores: float, than_millicores: float) -> bool:
    """Whether it is less by so much that it is worth a resize."""
    return millicores < than_millicores and is_worth_a_resize(than_millicores, millicores)


@dataclass(frozen=True, slots=True)
class Resize:
    """A limit, and what the pod's node is to keep free for it (None: what it does). Millicores."""

    limit: int
    reserve: float | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Of a resize that the API server would not have, or failed to do; a problem of the pod until it is asked for
    again, after a pause."""

    at_seconds: float
    why: str
    pause_seconds: float = RETRY_SECONDS


@dataclass(frozen=True, slots=True)
class Withheld:
    """A request that was refused, and why; `at_seconds`: when it was last asked for; `had_millicores`: the limit that
    the pod had when it was first refused, as far as its node has so much."""

    at_seconds: float
    millicores: float
    why: str
    had_millicores: float


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a pod was left with when it could not have more."""

    at_seconds: float
    millicores: float


@dataclass(frozen=True, slots=True)
class PodCpu:
    """`pod` is as it was last read: what it is asked to have, and what it has."""

    pod: SupervisorPod
    asked_at_seconds: float | None = None
    """When its last resize was asked for, or first seen not to be done."""
    is_unanswered: bool = False
    """The API server did not answer for it when it was last asked."""
    refused: Mapping[Resize, Refusal] = field(default_factory=dict)
    withheld: Withheld | None = None
    """What could not be reserved for it, until it is reserved, is needed no more, or was not asked for again."""
    ceiling: Ceiling | None = None
    """What it is planned with, for some minutes after it could not have more."""

    @property
    def problem(self) -> str:
        """Why it has not what it should have; empty where it has."""
        return self.pod.resize_problem or (self.withheld.why if self.withheld is not None else "")

    @property
    def kept_free_millicores(self) -> float:
        """What its node is known to keep free for it."""
        return self.pod.kept_free_millicores or 0.0

    def keeps_about(self, millicores: float) -> bool:
        """Whether its node keeps so much free for it, or nearly, and not much more: no other reservation is needed."""
        return not is_worth_a_resize(self.pod.kept_free_millicores, millicores)

    def is_asked_for(self, resize: Resize, tolerance_fraction: float) -> bool:
        """Whether its spec says that already, or nearly. To one without a request a reservation is no reason to ask."""
        pod, reserve = self.pod, resize.reserve
        if is_worth_a_resize(pod.wanted_millicores, resize.limit, tolerance_fraction):
            return False
        requested = pod.requested_millicores
        return reserve is None or requested is None or not is_worth_a_resize(requested, reserve, tolerance_fraction)

    @property
    def awaits_reservation(self) -> bool:
        """Whether the kubelet withholds the pod's resize although with the request that it has granted it would not."""
        pod = self.pod
        if not pod.resize_problem or pod.is_guaranteed:
            return False
        requested, reserved = pod.requested_millicores, pod.reserved_millicores
        return requested is not None and reserved is not None and requested > reserved

    def is_held_up(self, limit_millicores: float, reserve_millicores: float | None = None) -> bool:
        """Whether that much is at least what the kubelet has not been able to give the pod, or to reserve for it.

        `reserve_millicores` None: nothing more is to be reserved.
        """
        pod = self.pod
        if problem_reason(pod.resize_problem) not in KUBELETS_REASONS or pod.wanted_millicores is None:
            return False
        is_more_limit = _is_more(limit_millicores, pod.limit_millicores)
        is_more = is_more_limit or _is_more(reserve_millicores, pod.reserved_millicores)
        return is_more and not is_clearly_less(limit_millicores, pod.wanted_millicores)

    def refusal_of(self, resize: Resize, now_seconds: float) -> Refusal | None:
        """Why it is not to be asked for again yet."""
        refusal = self.refused.get(resize)
        is_in_pause = refusal is not None and now_seconds - refusal.at_seconds < refusal.pause_seconds
        return refusal if is_in_pause else None

    def most_millicores(self, now_seconds: float) -> float | None:
        """That it can be planned with: its annotation's; what it has, for some minutes after it could not be given
        more. None: its limit is not ours to set."""
        capacity, ceiling = self.pod.capacity_millicores, self.ceiling
        if capacity is None or ceiling is None or now_seconds - ceiling.at_seconds >= RETRY_SECONDS:
            return capacity
        return min(capacity, ceiling.millicores)

    def most_unreserved_millicores(self, now_seconds: float) -> float | None:
        """A limit that is not reserved needs no room: what the node has not free is in nobody's way."""
        return self.pod.capacity_millicores if self.withheld is not None else self.most_millicores(now_seconds)


def _is_more(wanted_millicores: float | None, had_millicores: float | None) -> bool:
    return wanted_millicores is not None and had_millicores is not None and wanted_millicores > had_millicores


def as_seen(known: PodCpu, pod: SupervisorPod, now_seconds: float) -> PodCpu:
    """Known of the pod from now on, as it is now."""
    cpu = replace(known, pod=pod, refused=_recent(known.refused, now_seconds))
    if cpu.awaits_reservation:
        cpu = _with_withheld(cpu, pod.requested_millicores or 0.0, pod.resize_problem, now_seconds)
    elif cpu.withheld is not None and not _still_stands(cpu, cpu.withheld, now_seconds):
        cpu = replace(cpu, withheld=None)
    return _with_ceiling_as_seen(cpu, now_seconds)


def as_gone(known: PodCpu, now_seconds: float) -> PodCpu:
    """There is no such pod now: one of its name may come, of which the API server thinks no better."""
    return PodCpu(known.pod, refused=_recent(known.refused, now_seconds))


def as_accepted(cpu: PodCpu, resize: Resize) -> PodCpu:
    """The API server has taken it, whatever the kubelet will do."""
    return replace(cpu, refused={tried: refusal for tried, refusal in cpu.refused.items() if tried != resize})


def as_failed(cpu: PodCpu, resize: Resize, why: str, now_seconds: float) -> PodCpu:
    """It may be accepted next time: nothing is moved because of that, and it is asked for again soon."""
    before = cpu.refused.get(resize)
    pause = min(2 * before.pause_seconds, RETRY_SECONDS) if before is not None else FIRST_RETRY_SECONDS
    return replace(cpu, refused={**cpu.refused, resize: Refusal(now_seconds, why, pause)})


def as_refused(cpu: PodCpu, resize: Resize, why: str, now_seconds: float) -> PodCpu:
    """The API server will not have it: the pod is planned with what it has."""
    pod, reserve = cpu.pod, resize.reserve
    cpu = replace(cpu, refused={**cpu.refused, resize: Refusal(now_seconds, why)})
    if reserve is not None and not pod.is_guaranteed and reserve > (pod.requested_millicores or math.inf):
        cpu = _with_withheld(cpu, reserve, why, now_seconds)  # as with a quota: it may have the limit
    if pod.limit_millicores is not None and resize.limit > pod.limit_millicores:
        cpu = _with_ceiling(cpu, pod.limit_millicores, now_seconds)
    return cpu


def _recent(refused: Mapping[Resize, Refusal], now_seconds: float) -> Mapping[Resize, Refusal]:
    return {tried: one for tried, one in refused.items() if one.at_seconds > now_seconds - RETRY_SECONDS}


def _with_withheld(cpu: PodCpu, millicores: float, why: str, now_seconds: float) -> PodCpu:
    """So much is not reserved for the pod."""
    limit = cpu.pod.limit_millicores
    known = cpu.withheld or Withheld(now_seconds, millicores, why, limit if limit is not None else math.inf)
    had = min(known.had_millicores, node_millicores(why) or math.inf)
    return replace(cpu, withheld=replace(known, millicores=millicores, why=why, had_millicores=had))


def _with_ceiling(cpu: PodCpu, millicores: float, now_seconds: float) -> PodCpu:
    """The pod is not to be planned with more than that, or than it had when a reservation was first refused."""
    if cpu.withheld is not None:
        millicores = min(millicores, max(cpu.withheld.had_millicores, cpu.pod.reserved_millicores or 0.0))
    return replace(cpu, ceiling=Ceiling(now_seconds, millicores))


def _still_stands(cpu: PodCpu, one: Withheld, now_seconds: float) -> bool:
    is_recent = now_seconds - one.at_seconds < 2 * RETRY_SECONDS
    return is_recent and one.millicores > cpu.kept_free_millicores and not cpu.keeps_about(one.millicores)


def _with_ceiling_as_seen(cpu: PodCpu, now_seconds: float) -> PodCpu:
    """While the kubelet cannot give it more a pod has a ceiling, and nothing of a limit is beyond its node; with what
    it has got since that rises."""
    pod, ceiling, node = cpu.pod, cpu.ceiling, node_millicores(cpu.pod.resize_problem) or math.inf
    limit = pod.limit_millicores
    if limit is None:
        return replace(cpu, ceiling=None)
    if cpu.is_held_up(pod.wanted_millicores or 0.0) or cpu.withheld is not None:
        return _with_ceiling(cpu, min(limit, node), now_seconds)
    if node < (pod.capacity_millicores or 0.0):
        return _with_ceiling(cpu, node, now_seconds)
    if ceiling is None or now_seconds - ceiling.at_seconds >= RETRY_SECONDS:
        return replace(cpu, ceiling=None)
    return replace(cpu, ceiling=replace(ceiling, millicores=max(ceiling.millicores, limit)))

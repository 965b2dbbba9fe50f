"""What to ask for next for a supervisor pod, by what is known of its CPU.

What its executors need is its limit, and is reserved as well (the pod's request); what it is opened by is not, or the
node would have to have it free. Pure: each function gives what is known of the pod from then on, and what to ask for.
"""

from __future__ import annotations

import math
from dataclasses import replace

from storm_operator.kube.pod_cpu import SMALLEST_CHANGE_FRACTION, PodCpu, Resize, is_clearly_less, is_worth_a_resize
from storm_operator.kube.resize_problem import INFEASIBLE, RETRY_SECONDS, problem_reason

STEP_MILLICORES = 10

Step = tuple[PodCpu, Resize | None]
"""None: nothing is to be asked for now."""


def to_open(cpu: PodCpu, millicores: float, now_seconds: float) -> Step:
    """The pod is to have all that it can have."""
    return _toward(cpu, Resize(math.floor(millicores)), now_seconds)


def to_hold(cpu: PodCpu, needed_millicores: float, capacity_millicores: float, now_seconds: float) -> Step:
    """The pod is to have what its executors need."""
    steps = math.ceil(needed_millicores / STEP_MILLICORES)
    limit = min(steps * STEP_MILLICORES, math.floor(capacity_millicores))
    if not cpu.pod.ready:
        # It may have been made anew, and is to find a node with the request that it was made with; or it is not ready
        # because its limit holds it back: that in force, whatever was asked for.
        has = min(cpu.pod.wanted_millicores or math.inf, cpu.pod.limit_millicores or math.inf)
        return _toward(cpu, Resize(limit), now_seconds) if limit > has else (cpu, None)
    if cpu.keeps_about(limit):  # if more were refused, the limit would wait for that
        return _toward(replace(cpu, withheld=None), Resize(limit), now_seconds)
    cpu, reserve = _reserving(cpu, limit, now_seconds)
    return _toward(cpu, Resize(limit, reserve), now_seconds)


def lacks_its_own(cpu: PodCpu, own_request_millicores: float | None) -> bool:
    """Whether a pod that was held has not all that it can have again; `own_request_millicores`: see `to_give_back`."""
    pod, capacity = cpu.pod, cpu.pod.capacity_millicores
    is_limit_withheld = cpu.awaits_reservation and pod.limit_millicores != capacity
    return pod.wanted_millicores != capacity or own_request_millicores is not None or is_limit_withheld


def to_give_back(cpu: PodCpu, own_request_millicores: float | None, now_seconds: float) -> Step:
    """The pod is to have all again, to the last millicore: what it lacks then it lacks for good.

    And `own_request_millicores` as its request, None: the one that it has. One that its node may not have free is given
    back after the limit, which needs no room.
    """
    most = math.floor(cpu.most_unreserved_millicores(now_seconds) or 0.0)
    has_most, reserve = cpu.pod.limit_millicores in (None, most), own_request_millicores
    if not has_most:  # what it was refused while it was held says nothing about what it has from now on
        cpu = replace(cpu, withheld=None, ceiling=None)
    if reserve is not None and not has_most and reserve > cpu.kept_free_millicores:
        reserve = None
    if reserve is not None:
        cpu, reserve = _reserving(cpu, reserve, now_seconds)
    return _toward(cpu, Resize(most, reserve), now_seconds, tolerance_fraction=0.0)


def _reserving(cpu: PodCpu, millicores: float, now_seconds: float) -> tuple[PodCpu, float | None]:
    """What to ask for as a reservation: None where so much was refused a short while ago. Else that is taken to be done
    now."""
    withheld = cpu.withheld
    if withheld is None or millicores <= cpu.kept_free_millicores:
        return replace(cpu, withheld=None), millicores
    if is_clearly_less(millicores, withheld.millicores):
        return cpu, millicores
    if now_seconds - withheld.at_seconds < RETRY_SECONDS:
        return cpu, None
    return replace(cpu, withheld=replace(withheld, at_seconds=now_seconds)), millicores


def _toward(
    cpu: PodCpu, resize: Resize, now_seconds: float, tolerance_fraction: float = SMALLEST_CHANGE_FRACTION
) -> Step:
    """Whether to ask for `resize`: not where that was done, is being done, or would be in vain."""
    pod, is_asked_for = cpu.pod, cpu.is_asked_for(resize, tolerance_fraction)
    reserves_more = resize.reserve is not None and resize.reserve > cpu.kept_free_millicores
    if cpu.awaits_reservation and not reserves_more:  # what is in the way of the limit is taken back with it
        is_too_much = (pod.requested_millicores or 0.0) > resize.limit
        is_missing = is_worth_a_resize(pod.limit_millicores, resize.limit, tolerance_fraction)
        return cpu, resize if is_too_much or is_missing or not is_asked_for else None
    if cpu.is_held_up(resize.limit, resize.reserve):
        return _again(cpu, resize, is_asked_for, now_seconds)
    return cpu, None if is_asked_for else resize


def _again(cpu: PodCpu, resize: Resize, is_asked_for: bool, now_seconds: float) -> Step:
    """Once in a while. The kubelet looks again by itself, but never at what it found infeasible: unless it changes.

    That is why the same is asked for with a step less.
    """
    if cpu.asked_at_seconds is None:
        return replace(cpu, asked_at_seconds=now_seconds), None
    if now_seconds - cpu.asked_at_seconds < RETRY_SECONDS:
        return cpu, None
    if problem_reason(cpu.pod.resize_problem) != INFEASIBLE:
        return cpu, None if is_asked_for else resize
    is_the_same = resize.limit == cpu.pod.wanted_millicores
    return cpu, replace(resize, limit=resize.limit - STEP_MILLICORES) if is_the_same else resize

"""How many supervisor pods a Storm cluster needs, between the limits that its users gave. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TypeGuard

from storm_operator.adapters.kube.pods import SupervisorPod
from storm_operator.core.decision import Decision, Hold, HoldReason, Plan
from storm_operator.core.topology_spec import ScaleLimits
from storm_operator.core.wording import counted, first_of

CALM_PASSES = 6
"""So many passes in a row must agree before a pod is taken away; one that is missing is added at once."""


PATIENT_PASSES = 60
"""After so many passes without a plan that empties them, pods that were to go are used again."""

NOT_NOW = frozenset({HoldReason.EXCLUDED_WINDOW, HoldReason.COOL_DOWN})
"""A pass in which nothing else is said tells nothing of whether a plan would empty them: these pass by themselves."""


@dataclass(frozen=True, slots=True)
class ScaleState:
    """What was wanted in the passes so far: `passes` in a row asked for `replicas`.

    `leaving` are the ordinals that are being emptied; `given_up` are the used ordinals that could not be brought
    together on fewer pods: not tried again while they are the same, and only pods behind the last of them may go.
    """

    replicas: int = 0
    passes: int = 0
    leaving: frozenset[int] = frozenset()
    given_up: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class ScaleStep:
    """Change a StatefulSet to `replicas`, and why."""

    namespace: str
    stateful_set: str
    replicas: int
    reason: str


def merged_limits(limits: Iterable[ScaleLimits | None]) -> ScaleLimits | None:
    """What all users of a cluster together allow: the lowest maximum, the highest minimum up to that.

    None: do not touch it.
    """
    given = [one for one in limits if one is not None]
    if not given:
        return None
    maximum = min(one.maximum for one in given)
    minimum = min(maximum, max(one.minimum for one in given))
    names = sorted({one.stateful_set for one in given if one.stateful_set is not None})
    return ScaleLimits(minimum, maximum, names[0] if names else None)


def wanted_replicas(
    limits: ScaleLimits, replicas: int, used_ordinals: Collection[int], decisions: Collection[Decision]
) -> tuple[int, str]:
    """How many pods there should be, and why: as many as host executors, as far as the limits allow.

    While CPU is short, one of them may host none.
    """
    if replicas < limits.minimum:
        return limits.minimum, f"spec.supervisors.minimum is {limits.minimum}"
    why_more = _why_one_more(replicas, used_ordinals, decisions)
    if why_more is not None:
        return max(replicas, min(limits.maximum, replicas + 1)), why_more
    if any(isinstance(decision, Plan) for decision in decisions):
        return replicas, ""  # a plan may be about to use the pods that nobody uses now
    # It was added for that, and may still be starting, or wait for a policy to look again.
    spare = 1 if any(isinstance(decision, Hold) and decision.short_topologies for decision in decisions) else 0
    target = max(limits.minimum, len(set(used_ordinals)) + spare)
    if target < replicas:
        return target, f"all executors are on {counted(len(set(used_ordinals)), 'pod')}"
    return replicas, ""


def _why_one_more(replicas: int, used_ordinals: Collection[int], decisions: Collection[Decision]) -> str | None:
    """Why one pod more would help; None where it would not."""
    for decision in decisions:
        if _is_infeasible(decision):
            return f"no placement fits: {decision.message}"
        if _is_short(decision) and len(set(used_ordinals)) >= replicas:  # one that nobody uses does not help either
            return decision.message
        if _overloads(decision):
            return "even the best placement overloads a supervisor"
    return None


def why_none_is_added(
    limits: ScaleLimits,
    pods: tuple[SupervisorPod, ...],
    replicas: int,
    used_ordinals: Collection[int],
    decisions: Collection[Decision],
) -> str:
    """What is in the way of a pod that would help; empty where nothing is, or `beyond_maximum` says it."""
    if replicas < limits.minimum or _why_one_more(replicas, used_ordinals, decisions) is None:
        return ""
    if replicas >= limits.maximum:
        is_said = beyond_maximum(limits, replicas, used_ordinals)
        return "" if is_said else f"spec.supervisors.maximum is {limits.maximum}"
    return _still_to_come(pods, replicas)


def _still_to_come(pods: Collection[SupervisorPod], replicas: int) -> str:
    """Which of the pods that there are to be are not ready; empty where all are."""
    if sum(pod.ready for pod in pods) >= replicas:
        return ""
    names = sorted(pod.name for pod in pods if not pod.ready)
    if names:
        return f"{first_of(names)} is not ready"
    return f"only {len(pods)} of {counted(replicas, 'pod')} are seen"


def beyond_maximum(limits: ScaleLimits, replicas: int, used_ordinals: Collection[int]) -> str:
    """Why there are more pods than the maximum, and stay; empty where there are not, or where those beyond it will go.

    Nobody can tell before whether what runs on them fits on fewer: a plan that brings it there may overload these, and
    the next would bring it back.
    """
    used = len(set(used_ordinals))
    if min(replicas, used) <= limits.maximum:
        return ""
    return (
        f"spec.supervisors.maximum is {limits.maximum}, and executors are on {used} of {counted(replicas, 'pod')}: none"
        " is added, and none that is used is taken away; raise it, have fewer executors, or scale the set by hand"
    )


def scale_step(
    limits: ScaleLimits | None,
    pods: tuple[SupervisorPod, ...],
    replicas: int,
    used_ordinals: Collection[int],
    decisions: Collection[Decision],
    state: ScaleState,
    first_ordinal: int = 0,
) -> tuple[ScaleStep | None, ScaleState]:
    """The one step to take now, if any; and what to remember. `first_ordinal` is where the StatefulSet's begin.

    A StatefulSet removes its highest ordinals. Where these host executors they are emptied first (`leaving`), and the
    set shrinks once they host none: nothing is ever cut off with executors on it.
    """
    owned = [pod for pod in pods if pod.stateful_set and limits and limits.stateful_set in (None, pod.stateful_set)]
    if limits is None or len({(pod.namespace, pod.stateful_set) for pod in owned}) != 1:
        return None, ScaleState()  # none to be seen, or several: which of them is meant nobody said
    used = frozenset(used_ordinals)
    if state.leaving and any(_is_infeasible(one) or _is_short(one) or _overloads(one) for one in decisions):
        return None, ScaleState(given_up=used)  # they are needed after all
    if state.leaving and any(isinstance(decision, Plan) for decision in decisions):
        return None, state  # the very plan that empties them
    wanted, reason = wanted_replicas(limits, replicas, used, decisions)
    keep = ScaleState(given_up=state.given_up if state.given_up == used else None)
    if wanted < replicas and state.given_up == used:
        wanted = max(wanted, min(replicas, max(used, default=-1) + 1 - first_ordinal))
        reason = f"all executors are on the first {counted(wanted, 'pod')}"
    if wanted == replicas:
        return None, keep
    if limits.minimum < wanted == replicas + 1 and _still_to_come(owned, replicas):
        return None, keep  # one that was asked for before is still on its way, and may be enough
    step = ScaleStep(owned[0].namespace, owned[0].stateful_set, wanted, reason)
    if wanted > replicas:
        return step, keep
    passes = state.passes + 1 if state.replicas == wanted else 1
    agreed = replace(keep, replicas=wanted, passes=passes, leaving=state.leaving)
    if passes < CALM_PASSES:
        return None, agreed
    going = range(first_ordinal + wanted, first_ordinal + replicas)
    if max(used, default=-1) < going.start:
        return step, keep
    return None, _emptied(agreed, going, used, decisions)


def _emptied(agreed: ScaleState, going: range, used: frozenset[int], decisions: Collection[Decision]) -> ScaleState:
    """The state in which the pods `going` are to host nobody, as long as it may be that a plan brings that about."""
    if agreed.leaving and decisions and all(map(_says_not_now, decisions)):
        return replace(agreed, passes=agreed.passes - 1)
    if agreed.passes > PATIENT_PASSES:
        return ScaleState(given_up=used)  # no plan empties them, whatever the reason
    return replace(agreed, leaving=frozenset(going))


def _overloads(decision: Decision) -> TypeGuard[Plan]:
    return isinstance(decision, Plan) and decision.overloads_supervisors


def _is_infeasible(decision: Decision) -> TypeGuard[Hold]:
    return isinstance(decision, Hold) and decision.reason is HoldReason.INFEASIBLE


def _says_not_now(decision: Decision) -> bool:
    return isinstance(decision, Hold) and decision.reason in NOT_NOW


def _is_short(decision: Decision) -> TypeGuard[Hold]:
    return isinstance(decision, Hold) and decision.reason is HoldReason.TOO_LITTLE_CAPACITY

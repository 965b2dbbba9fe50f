"""Whether executors are held to their CPU: by what supervisors' pods and agents do, not by what is asked. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from storm_operator.adapters.kube.pods import CAPACITY_ANNOTATION
from storm_operator.core.agent_enforcement import AgentEnforcement
from storm_operator.core.model import Executor
from storm_operator.core.settings import Enforcement
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.wording import counted, first_of
from storm_operator.kube.pod_limits import PodLimits
from storm_operator.kube.resize_problem import problem_reason

NAMED = 3
FOLLOWS = "CPU limits of pods follow demand"


@dataclass(frozen=True, slots=True)
class EnforcedPlace:
    """One supervisor that hosts executors of a topology.

    `pod` is empty where none of the pods seen is its, `agent` None where that said nothing. `problem` is why the
    pod does not have the limit that it should have, and empty when it does. `is_left_open`: it is not
    held to what executors need, since some of them are of topologies that want no pod resized.
    """

    host: str
    pod: str
    has_capacity: bool
    problem: str
    agent: AgentEnforcement | None
    is_left_open: bool = False


Verdict = tuple[bool | None, str, str]
"""Status (None: unknown), reason and message of the condition."""


def places_of(
    topology_id: str,
    snapshot: ClusterSnapshot,
    limits: PodLimits,
    agents: Mapping[str, AgentEnforcement],
    left_open: Collection[str] = (),
) -> tuple[EnforcedPlace, ...]:
    """The supervisors that host executors of the topology, sorted by host; `left_open` are ids of supervisors."""
    used = {slot.supervisor_id for slot in snapshot.assignment.restricted_to([topology_id]).slot_of.values()}
    found = []
    for supervisor in sorted(snapshot.all_supervisors, key=lambda one: one.host):
        if supervisor.id not in used:
            continue
        host = supervisor.host
        pod = limits.of_host(host)
        name = pod.name if pod is not None else ""
        has_capacity = pod is not None and pod.capacity_millicores is not None
        problem = limits.problems.get((pod.namespace, pod.name), "") if pod is not None else ""
        is_left_open = supervisor.id in left_open
        found.append(EnforcedPlace(host, name, has_capacity, problem, agents.get(host), is_left_open))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class LimitsInForce:
    """How many of a topology's placed executors have a CPU limit. Of one of which nobody knows what it needs, as before
    its first tuple, there is none."""

    limited: int
    executors: int


NO_LIMITS = LimitsInForce(0, 0)


def limits_in_force(topology_id: str, snapshot: ClusterSnapshot, limits: Mapping[Executor, float]) -> LimitsInForce:
    """`limits` are those that are kept for the agents, of all topologies."""
    placed = snapshot.assignment.restricted_to([topology_id]).slot_of
    return LimitsInForce(sum(executor in limits for executor in placed), len(placed))


def verdict(enforcement: Enforcement, places: tuple[EnforcedPlace, ...], limits: LimitsInForce) -> Verdict:
    """Whether what `enforcement` (Pod or Executor) asks for is so at all `places`."""
    if not places:
        return None, "Unknown", "where its executors run is not known yet"
    refused = [place for place in places if place.problem]
    if refused:
        return False, "ResizeRefused", "; ".join(f"{p.pod}: {steady(p.problem)}" for p in refused[:NAMED])
    held = _held_by_agents(places)
    pods = _of_pods(places)
    if pods is not None:
        only_agents = "executors are held by agents alone: " + pods[2]
        are_held = held is True and limits.limited > 0 and enforcement is Enforcement.EXECUTOR
        return (True, "ExecutorOnly", only_agents) if are_held else pods
    if enforcement is Enforcement.POD:
        return True, enforcement.value, FOLLOWS
    if held is True:
        return _one_by_one(limits)
    if held is None:
        silent = _named(place.host for place in places if place.agent is None)
        return None, "AgentsUnknown", f"{FOLLOWS}; whether executors are held one by one is not known: {silent}"
    return True, "PodOnly", f"{FOLLOWS}, executors are not held one by one: {_why_not(places)}"


def _one_by_one(limits: LimitsInForce) -> Verdict:
    """Where all agents hold executors to whatever limits there are."""
    if not limits.limited:
        return False, "NoLimits", "its executors have no CPU limits yet: what they need is not known"
    free = limits.executors - limits.limited
    but = f", but for {counted(free, 'executor')} without a limit: what they need is not known" if free > 0 else ""
    return True, Enforcement.EXECUTOR.value, f"{FOLLOWS}, and agents hold each executor to its own{but}"


def steady(problem: str) -> str:
    """Without the node's use of the moment, that the kubelet tells with what is deferred: a status says it once."""
    return "Deferred: its node has no room now" if problem_reason(problem) == "Deferred" else problem


def _of_pods(places: tuple[EnforcedPlace, ...]) -> Verdict | None:
    """What is wrong with the pods, of which none has a refused resize; None: nothing."""
    unseen = [place.host for place in places if not place.pod]
    if unseen:
        return False, "NoPod", f"no supervisor pod is seen for {_named(unseen)}"
    bare = [place.pod for place in places if not place.has_capacity]
    if bare:
        return (
            False,
            "NoCapacity",
            f"no annotation {CAPACITY_ANNOTATION} on {_named(bare)}: their limits are left alone",
        )
    shared = [place.pod for place in places if place.is_left_open]
    if shared:
        return False, "Shared", f"{_named(shared)} host executors, too, of topologies that are not to be held"
    return None


def _held_by_agents(places: tuple[EnforcedPlace, ...]) -> bool | None:
    """None: no agent declines, but of some it is not known."""
    known = [place.agent.enforces for place in places if place.agent is not None]
    if not all(known):
        return False
    return True if len(known) == len(places) else None


def _why_not(places: tuple[EnforcedPlace, ...]) -> str:
    reasons: dict[str, list[str]] = {}
    for place in places:
        if place.agent is not None and not place.agent.enforces:
            reasons.setdefault(place.agent.why_not or place.agent.mode, []).append(place.host)
    return "; ".join(f"agent of {_named(hosts)}: {why}" for why, hosts in sorted(reasons.items()))


def _named(names: Iterable[str]) -> str:
    return first_of(sorted(names), most=NAMED)

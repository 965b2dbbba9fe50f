"""CPU limits of supervisor pods: wide open while executors move, else what the executors on them need.

The kubelet changes a limit in place, without a restart. What is infeasible is not asked for again at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.kube.errors import KubernetesError
from storm_operator.adapters.kube.pods import CAPACITY_ANNOTATION, Pods, SupervisorPod
from storm_operator.core.model import Assignment, Demand, Supervisor

SUPERVISOR_OWN_MILLICORES = 200.0
"""For the supervisor itself, garbage collection and network threads, which no executor's thread accounts for."""

SMALLEST_CHANGE_FRACTION = 0.1
RETRY_SECONDS = 300.0
KUBELETS_REASONS = frozenset({"Deferred", "Infeasible", "Error"})
"""Why the kubelet has not done a resize that the API server accepted."""


def needed_millicores(
    supervisor: Supervisor, assignment: Assignment, demand: Demand, headroom_fraction: float
) -> float | None:
    """Pure: what a pod must be given for the executors on it; None when the demand of any is unknown."""
    executors = [e for e, slot in assignment.slot_of.items() if slot.supervisor_id == supervisor.id]
    known = [demand.millicores.get(executor) for executor in executors]
    if any(millicores is None for millicores in known):
        return None
    total = math.fsum(millicores for millicores in known if millicores is not None)
    return SUPERVISOR_OWN_MILLICORES + total / headroom_fraction


def is_worth_a_resize(now_millicores: float | None, wanted_millicores: float) -> bool:
    """Pure: whether the change is large enough to ask the kubelet for it."""
    if now_millicores is None:
        return True
    return abs(wanted_millicores - now_millicores) > SMALLEST_CHANGE_FRACTION * now_millicores


def problem_reason(problem: str) -> str:
    """Pure: one word for why a pod's limit is not what it should be, from the sentence in `PodLimits.problems`."""
    word = problem.partition(":")[0]
    if word in KUBELETS_REASONS:
        return word
    return "Invalid" if problem.startswith(CAPACITY_ANNOTATION) else "Refused"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A resize that the API server would not have; it is a problem of the pod until it is asked for again."""

    at_seconds: float
    why: str


@dataclass(slots=True)
class PodLimits:
    """Sets pods' limits. `capacity_of` is the most that a pod may get; None for pods whose limit is not ours to set."""

    pods: Pods
    say: Callable[[str], None]
    now: Callable[[], float]
    asked: Callable[[bool], None] = lambda _: None
    """Told of each resize that was asked for, and whether the API server accepted it."""
    present: tuple[SupervisorPod, ...] = ()
    refused: dict[tuple[str, str, int], Refusal] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    """By pod: why its last resize is not done."""

    def see(self, namespaces: tuple[str, ...]) -> None:
        """Read the pods. Raises `KubernetesError`."""
        self.present = self.pods.supervisors(namespaces)
        self.problems = {pod.name: pod.resize_problem for pod in self.present if pod.resize_problem}

    def capacities(self, hosts: Collection[str]) -> Mapping[str, float]:
        """By host: the most CPU that the pod of a supervisor can be given, where that is known."""
        found = {}
        for host in hosts:
            pod = self.of_host(host)
            if pod is not None and pod.capacity_millicores is not None:
                found[host] = pod.capacity_millicores
        return found

    def of_host(self, host: str) -> SupervisorPod | None:
        return next((pod for pod in self.present if pod.matches(host)), None)

    def open_up(self, hosts: Collection[str]) -> None:
        """Before a move: give the pods all that they can have."""
        for host in sorted(hosts):
            pod = self.of_host(host)
            if pod is not None and pod.capacity_millicores is not None:
                self._resize(pod, pod.capacity_millicores, pod.capacity_millicores)

    def follow(
        self, supervisors: tuple[Supervisor, ...], assignment: Assignment, demand: Demand, headroom_fraction: float
    ) -> None:
        """Between plans: give each pod what its executors need; one with an unknown demand keeps what it has."""
        for supervisor in supervisors:
            pod = self.of_host(supervisor.host)
            if pod is None or pod.capacity_millicores is None:
                continue
            needed = needed_millicores(supervisor, assignment, demand, headroom_fraction)
            if needed is not None:
                self._resize(pod, needed, pod.capacity_millicores)

    def _resize(self, pod: SupervisorPod, millicores: float, capacity_millicores: float) -> None:
        wanted = min(math.ceil(millicores / 10.0) * 10, math.floor(capacity_millicores))
        if not is_worth_a_resize(pod.wanted_millicores, wanted):
            return
        tried = (pod.namespace, pod.name, wanted)
        refusal = self.refused.get(tried)
        if refusal is not None and self.now() - refusal.at_seconds < RETRY_SECONDS:
            self.problems.setdefault(pod.name, refusal.why)
            return
        try:
            self.pods.resize_cpu(pod, wanted)
            self.asked(True)
            self.refused.pop(tried, None)
        except KubernetesError as error:
            self.asked(False)
            self.refused[tried] = Refusal(self.now(), str(error))
            self.problems[pod.name] = str(error)
            self.say(str(error))

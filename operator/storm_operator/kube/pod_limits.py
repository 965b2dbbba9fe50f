"""CPU limits of supervisor pods: wide open while executors move or start, else what the executors on them need.

The kubelet changes a limit in place, without a restart. What executors need is reserved as well (the pod's request);
what a pod is opened by is not, or the node would have to have it free. What is infeasible is not asked for again at
once, and until then nobody plans with more than the pod has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.kube.errors import Forbidden, KubernetesError, NoAnswer, NotFound, Refused
from storm_operator.adapters.kube.pods import Pods, SupervisorPod
from storm_operator.core.backoff import FIRST_RETRY_SECONDS
from storm_operator.core.model import Assignment, Demand, Supervisor
from storm_operator.kube.ceilings import Ceilings
from storm_operator.kube.own_requests import OwnRequests
from storm_operator.kube.pod_need import KnownUse, is_worth_a_resize, needed_millicores, with_use_in_mind
from storm_operator.kube.reservations import Reservations, is_withheld
from storm_operator.kube.resize_problem import (
    INFEASIBLE,
    RETRY_SECONDS,
    PodKey,
    is_held_up,
    key_of,
    problem_reason,
)

STEP_MILLICORES = 10
SLOW_ANSWER_SECONDS = 2.0
"""A refusal that took so long, as of a webhook that hangs, may take as long for each other pod."""


def is_worth_reserving(pod: SupervisorPod, millicores: float | None) -> bool:
    """Pure: whether the node keeps clearly more or less free for the pod than that; None: it keeps what it does."""
    requested = pod.requested_millicores
    return requested is not None and millicores is not None and is_worth_a_resize(requested, millicores)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A resize that the API server would not have, or did not answer; a problem of the pod until it is asked for again,
    after a pause."""

    at_seconds: float
    why: str
    pause_seconds: float = RETRY_SECONDS


@dataclass(slots=True)
class PodLimits:
    """Sets pods' limits. `capacity_of` is the most that a pod may get; None for pods whose limit is not ours to set."""

    pods: Pods
    say: Callable[[str], None]
    now: Callable[[], float]
    asked: Callable[[bool], None] = lambda _: None
    """Told of each resize that was asked for, and whether the API server accepted it."""
    present: tuple[SupervisorPod, ...] = ()
    refused: dict[tuple[PodKey, int, float | None], Refusal] = field(default_factory=dict)
    """By pod, limit, and what was to be reserved."""
    problems: dict[PodKey, str] = field(default_factory=dict)
    """By pod: why its last resize is not done."""
    ceilings: Ceilings = field(default_factory=Ceilings)
    asked_at: dict[PodKey, float] = field(default_factory=dict)
    """When the last resize of a pod was asked for, or first seen not to be done."""
    held: frozenset[PodKey] = frozenset()
    """Pods that have what executors were found to need, and not yet all that they can have again."""
    silence: str = ""
    """How the API server failed to answer since the pods were read: each that is still asked for would wait as long."""
    unanswered: frozenset[PodKey] = frozenset()
    """Pods that it did not answer for when it was last asked: they come last, or they might be in the way of all."""
    any_demand_was_known: bool = False
    """Before that this operator has only just begun to look, and an unknown demand says nothing about an executor."""
    own_requests: OwnRequests = field(default_factory=OwnRequests)
    reservations: Reservations = field(default_factory=Reservations)
    use: KnownUse = field(default_factory=KnownUse)

    def see(self, namespaces: tuple[str, ...]) -> None:
        """Read the pods. Raises `KubernetesError`."""
        self.present = self.pods.supervisors(namespaces)
        self.silence = ""
        self.reservations.see(self.present, self.now())
        withheld = self.reservations.withheld
        why = {key: one.why for key, one in withheld.items()}
        self.problems = why | {key_of(pod): pod.resize_problem for pod in self.present if pod.resize_problem}
        present = {key_of(pod) for pod in self.present}
        self.asked_at = {key: at for key, at in self.asked_at.items() if key in present}
        self.held &= present
        self.unanswered &= present
        self.ceilings.see(self.present, withheld, self.now())
        old = self.now() - RETRY_SECONDS
        self.refused = {tried: refusal for tried, refusal in self.refused.items() if refusal.at_seconds > old}

    def capacities(self, hosts: Collection[str]) -> Mapping[str, float]:
        """By host: the most CPU that the pod of a supervisor can be given now, where that is known."""
        found = {}
        for host in hosts:
            pod = self.of_host(host)
            capacity = self.capacity_of(pod) if pod is not None else None
            if capacity is not None:
                found[host] = capacity
        return found

    def capacity_of(self, pod: SupervisorPod) -> float | None:
        """Millicores: its annotation's; what it has, for some minutes after it could not be given more."""
        ceiling = self.ceilings.of(pod, self.now())
        if pod.capacity_millicores is None or ceiling is None:
            return pod.capacity_millicores
        return min(pod.capacity_millicores, ceiling)

    def of_host(self, host: str) -> SupervisorPod | None:
        return next((pod for pod in self.present if pod.matches(host)), None)

    def problems_of(self, hosts: Collection[str]) -> Mapping[PodKey, str]:
        """The problems of pods that supervisors `hosts` run in: other Storm clusters may have theirs beside them."""
        own = {key_of(pod) for pod in map(self.of_host, hosts) if pod is not None}
        return {key: problem for key, problem in self.problems.items() if key in own}

    def open_up(self, hosts: Collection[str]) -> None:
        """Before a move: give the pods all that they can have."""
        found = (self.of_host(host) for host in sorted(hosts))
        self._open_all(pod for pod in found if pod is not None)

    def release(self, hosts: Collection[str]) -> None:
        """Nobody holds executors to their CPU any more: give the pods that were held all that they can have.

        Those of `hosts` also if an earlier life of the operator held them. To be called again and again: what could not
        be done is tried once more.
        """
        self._note_resized(hosts)
        self._give_back(self.present)

    def forget_refusals(self) -> None:
        """What was refused, and what pods were left with: it is to be asked for once more, now."""
        self.refused, self.ceilings = {}, Ceilings()

    def leave_open(self, hosts: Collection[str]) -> None:
        """As `release`, for the pods of `hosts` alone, while others are held."""
        self._give_back(self._note_resized(hosts))

    def follow(
        self,
        supervisors: tuple[Supervisor, ...],
        assignment: Assignment,
        demand: Demand,
        headroom_fraction: float,
        used_millicores: Mapping[str, float],
    ) -> None:
        """Between plans: give each pod what its executors need, and all that it can have where that is unknown.

        `used_millicores` is what supervisors use, by id: where that nears the limit, the limit rises. Of those that
        are not in it, it is unknown: they go by what they were last seen to use.

        What nobody has measured yet is starting. Storm may have put it on a pod that had next to nothing to do, whose
        limit a JVM does not start with in the time that Storm gives it.
        """
        self.any_demand_was_known |= bool(demand.millicores)
        self.use.see(used_millicores, self.now())
        found = [(self.of_host(supervisor.host), supervisor) for supervisor in supervisors]
        for pod, supervisor in sorted(found, key=lambda one: self._comes_last(one[0])):
            if pod is None or pod.capacity_millicores is None:
                continue
            needed = needed_millicores(supervisor, assignment, demand, headroom_fraction)
            if needed is not None:
                wanted = with_use_in_mind(needed, self.use.of(supervisor.id), pod.wanted_millicores)
                self._hold(pod, wanted, pod.capacity_millicores)
            elif self.any_demand_was_known:
                self._open(pod, pod.capacity_millicores)

    def _note_resized(self, hosts: Collection[str]) -> tuple[SupervisorPod, ...]:
        """The pods of `hosts`; those that an earlier life of the operator held are known as held from now on."""
        own = tuple(pod for pod in map(self.of_host, hosts) if pod is not None)
        self.held |= {key_of(pod) for pod in own if pod.is_resized}
        return own

    def _give_back(self, pods: Collection[SupervisorPod]) -> None:
        """To the last millicore: what a pod lacks then it lacks for good.

        A request that its node may not have free is given back after the limit, which needs no room.
        """
        held = [pod for pod in pods if key_of(pod) in self.held and pod.capacity_millicores is not None]
        own_requests = {key_of(pod): self.own_requests.taken_from(pod, self.pods, self.now(), self.say) for pod in held}
        lacking = [
            pod
            for pod in held
            if pod.wanted_millicores != pod.capacity_millicores
            or own_requests[key_of(pod)] is not None
            or (is_withheld(pod) and pod.limit_millicores != pod.capacity_millicores)
        ]
        self.held = self.held.difference(map(key_of, pods)).union(map(key_of, lacking))
        for pod in sorted(lacking, key=self._comes_last):
            own_request, most = own_requests[key_of(pod)], math.floor(self._most_without_reserving(pod) or 0.0)
            has_most = pod.limit_millicores in (None, most)
            if not has_most:  # what it was refused while it was held says nothing about what it has from now on
                self.reservations.forget(pod)
                self.ceilings.forget(pod)
            if own_request is not None and not self._is_to_be_given_back(pod, own_request, has_most):
                own_request = None
            self._resize(pod, most, own_request, exactly=True)

    def _is_to_be_given_back(self, pod: SupervisorPod, own_request: float, has_most: bool) -> bool:
        if own_request > (pod.kept_free_millicores or 0.0) and not has_most:
            return False
        return self.reservations.is_to_be_tried(pod, own_request, self.now())

    def _open_all(self, pods: Iterable[SupervisorPod]) -> None:
        for pod in sorted(pods, key=self._comes_last):
            capacity = self._most_without_reserving(pod)
            if capacity is not None:
                self._open(pod, capacity)

    def _most_without_reserving(self, pod: SupervisorPod) -> float | None:
        """A limit that is not reserved needs no room: what the node has not free is in nobody's way."""
        is_unreserved = key_of(pod) in self.reservations.withheld
        return pod.capacity_millicores if is_unreserved else self.capacity_of(pod)

    def _comes_last(self, pod: SupervisorPod | None) -> bool:
        return pod is not None and key_of(pod) in self.unanswered

    def _open(self, pod: SupervisorPod, capacity_millicores: float) -> None:
        self._resize(pod, math.floor(capacity_millicores), None)

    def _hold(self, pod: SupervisorPod, millicores: float, capacity_millicores: float) -> None:
        wanted = min(math.ceil(millicores / STEP_MILLICORES) * STEP_MILLICORES, math.floor(capacity_millicores))
        self.held |= {key_of(pod)}
        if not pod.ready:
            # It may have been made anew, and is to find a node with the request that it was made with; or it is not
            # ready because its limit holds it back: that in force, whatever was asked for.
            has = min(pod.wanted_millicores or math.inf, pod.limit_millicores or math.inf)
            if wanted > has:
                self._resize(pod, wanted, None)
            return
        self._resize(pod, wanted, self._worth_reserving(pod, wanted))

    def _worth_reserving(self, pod: SupervisorPod, wanted: int) -> float | None:
        """None where what is kept free is near enough: if more were refused, the limit would wait for that."""
        if not is_worth_a_resize(pod.kept_free_millicores, wanted):
            self.reservations.forget(pod)
            return None
        return wanted if self.reservations.is_to_be_tried(pod, wanted, self.now()) else None

    def _resize(self, pod: SupervisorPod, wanted: int, reserve: float | None, *, exactly: bool = False) -> None:
        """`reserve`: what its node is to keep free for it; None: what it does. `exactly`: however small the change."""
        if exactly:
            is_worth = wanted != pod.wanted_millicores or reserve not in (None, pod.requested_millicores)
        else:
            is_worth = is_worth_a_resize(pod.wanted_millicores, wanted) or is_worth_reserving(pod, reserve)
        if is_withheld(pod) and (reserve is None or reserve <= (pod.kept_free_millicores or 0.0)):
            is_too_much = (pod.requested_millicores or 0.0) > wanted
            if is_too_much or is_worth or is_worth_a_resize(pod.limit_millicores, wanted):
                self._ask(pod, wanted, reserve)
        elif is_held_up(pod, wanted, reserve):
            self._ask_again(pod, wanted, is_worth, reserve)
        elif is_worth:
            self._ask(pod, wanted, reserve)

    def _ask_again(self, pod: SupervisorPod, wanted: int, is_worth: bool, reserve: float | None) -> None:
        """Once in a while. The kubelet looks again by itself, but never at what it found infeasible: unless it changes.

        That is why the same is asked for with a step less.
        """
        if self.now() - self.asked_at.setdefault(key_of(pod), self.now()) < RETRY_SECONDS:
            return
        if problem_reason(pod.resize_problem) == INFEASIBLE:
            self._ask(pod, wanted if wanted != pod.wanted_millicores else wanted - STEP_MILLICORES, reserve)
        elif is_worth:
            self._ask(pod, wanted, reserve)

    def _ask(self, pod: SupervisorPod, wanted: int, reserve: float | None) -> None:
        tried = (key_of(pod), wanted, reserve)
        refusal = self.refused.get(tried)
        if refusal is not None and self.now() - refusal.at_seconds < refusal.pause_seconds:
            self.problems.setdefault(key_of(pod), refusal.why)
            return
        if self.silence:
            self.problems.setdefault(key_of(pod), f"not resized to {wanted}m CPU, as another was not: {self.silence}")
            return
        began = self.asked_at[key_of(pod)] = self.now()
        self.unanswered -= {key_of(pod)}
        try:
            self.pods.resize_cpu(pod, wanted, reserve_millicores=reserve)
            self.asked(True)
            self.refused.pop(tried, None)
        except KubernetesError as error:
            self.asked(False)
            self.problems[key_of(pod)] = str(error)
            self.say(str(error))
            limit = pod.limit_millicores
            if not isinstance(error, Refused | Forbidden | NotFound):
                # It may be accepted next time: nothing is moved because of that, and it is asked for again soon.
                pause = min(2 * refusal.pause_seconds, RETRY_SECONDS) if refusal is not None else FIRST_RETRY_SECONDS
                self.refused[tried] = Refusal(self.now(), str(error), pause)
                if isinstance(error, NoAnswer) or self.now() - began >= SLOW_ANSWER_SECONDS:
                    self.silence, self.unanswered = str(error), self.unanswered | {key_of(pod)}
                return
            self.refused[tried] = Refusal(self.now(), str(error))
            if reserve is not None and not pod.is_guaranteed and reserve > (pod.requested_millicores or math.inf):
                self.reservations.note(pod, reserve, str(error), self.now())  # as with a quota: it may have the limit
            if limit is not None and wanted > limit:
                self.ceilings.cap(pod, limit, self.reservations.withheld, self.now())

"""CPU limits of supervisor pods: wide open while executors move or start, else what the executors on them need.

The kubelet changes a limit in place, without a restart. What is known of a pod is in `pod_cpu`, what is asked for next
is decided in `next_resize`; here pods are read, the API server is asked, and what it answers is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from storm_operator.adapters.kube.errors import Forbidden, KubernetesError, NoAnswer, NotFound, Refused
from storm_operator.adapters.kube.pods import Pods, SupervisorPod
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Supervisor
from storm_operator.kube.next_resize import Step, lacks_its_own, to_give_back, to_hold, to_open
from storm_operator.kube.own_requests import OwnRequests
from storm_operator.kube.pod_cpu import PodCpu, Resize, as_accepted, as_failed, as_gone, as_refused, as_seen
from storm_operator.kube.pod_need import KnownUse, needed_millicores, with_use_in_mind
from storm_operator.kube.resize_problem import PodKey, key_of

SLOW_ANSWER_SECONDS = 2.0
"""A refusal that took so long, as of a webhook that hangs, may take as long for each other pod."""


@dataclass(slots=True)
class PodLimits:
    """Reads pods, and asks for what they are to have next. The limit of a pod without a capacity is not ours to set."""

    pods: Pods
    say: Callable[[str], None]
    now: Callable[[], float]
    asked: Callable[[bool], None] = lambda _: None
    """Told of each resize that was asked for, and whether the API server accepted it."""
    present: tuple[SupervisorPod, ...] = ()
    """Those that stay, as far as anybody knows."""
    going: tuple[SupervisorPod, ...] = ()
    """Those that are being deleted."""
    problems: dict[PodKey, str] = field(default_factory=dict)
    """By pod: why its last resize is not done."""
    cpus: dict[PodKey, PodCpu] = field(default_factory=dict)
    """What is known of each pod; of one that is gone, what was refused a short while ago."""
    held: frozenset[PodKey] = frozenset()
    """Pods that have what executors were found to need, and not yet all that they can have again."""
    silence: str = ""
    """How the API server failed to answer since the pods were read: each that is still asked for would wait as long."""
    any_demand_was_known: bool = False
    """Before that this operator has only just begun to look, and an unknown demand says nothing about an executor."""
    own_requests: OwnRequests = field(default_factory=OwnRequests)
    use: KnownUse = field(default_factory=KnownUse)

    def see(self, namespaces: tuple[str, ...]) -> None:
        """Read the pods. Raises `KubernetesError`."""
        self.going = ()  # of pods that cannot be listed nobody knows that they go, or that others came for them
        listed = self.pods.supervisors(namespaces)
        self.present = tuple(pod for pod in listed if not pod.is_being_deleted)
        self.going = tuple(pod for pod in listed if pod.is_being_deleted)
        self.silence = ""
        known, now = self.cpus, self.now()
        seen = {key_of(pod): as_seen(known.get(key_of(pod), PodCpu(pod)), pod, now) for pod in self.present}
        gone = {key: as_gone(cpu, now) for key, cpu in known.items() if key not in seen}
        self.cpus = seen | {key: cpu for key, cpu in gone.items() if cpu.refused}
        self.problems = {key: cpu.problem for key, cpu in seen.items() if cpu.problem}
        self.held &= seen.keys()

    def capacities(self, hosts: Collection[str]) -> Mapping[str, float]:
        """By host: the most CPU that the pod of a supervisor can be given now, where that is known."""
        found = {}
        for host in hosts:
            pod = self.of_host(host)
            capacity = self.cpus[key_of(pod)].most_millicores(self.now()) if pod is not None else None
            if capacity is not None:
                found[host] = capacity
        return found

    def of_host(self, host: str) -> SupervisorPod | None:
        """None, too, where several are of that name, in namespaces of their own: all but one, nobody can tell which,
        are other Storm clusters'."""
        return _only_of_host(host, self.present)

    def is_going(self, host: str) -> bool:
        """Whether the pod of that supervisor is being deleted; not where several are of its name, as in `of_host`."""
        pod = _only_of_host(host, (*self.present, *self.going)) if self.going else None
        return pod is not None and pod.is_being_deleted

    def problems_of(self, hosts: Collection[str]) -> Mapping[PodKey, str]:
        """The problems of pods that supervisors `hosts` run in: other Storm clusters may have theirs beside them."""
        own = {key_of(pod) for pod in map(self.of_host, hosts) if pod is not None}
        return {key: problem for key, problem in self.problems.items() if key in own}

    def open_up(self, hosts: Collection[str]) -> None:
        """Before a move: give the pods all that they can have."""
        found = [pod for pod in map(self.of_host, sorted(hosts)) if pod is not None]
        for pod in sorted(found, key=self._comes_last):
            cpu = self.cpus[key_of(pod)]
            most = cpu.most_unreserved_millicores(self.now())
            if most is not None:
                self._take(to_open(cpu, most, self.now()))

    def release(self, hosts: Collection[str]) -> None:
        """Nobody holds executors to their CPU any more: give the pods that were held all that they can have.

        Those of `hosts` also if an earlier life of the operator held them. To be called again and again: what could not
        be done is tried once more.
        """
        self._note_resized(hosts)
        self._give_back(self.present)

    def forget_refusals(self) -> None:
        """What was refused, and what pods were left with: it is to be asked for once more, now."""
        self.cpus = {key: replace(cpu, refused={}, ceiling=None) for key, cpu in self.cpus.items()}

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
            cpu, capacity = self.cpus[key_of(pod)], pod.capacity_millicores
            if needed is not None:
                self.held |= {key_of(pod)}
                needed = with_use_in_mind(needed, self.use.of(supervisor.id), pod.wanted_millicores)
                self._take(to_hold(cpu, needed, capacity, self.now()))
            elif self.any_demand_was_known:
                self._take(to_open(cpu, capacity, self.now()))

    def _note_resized(self, hosts: Collection[str]) -> tuple[SupervisorPod, ...]:
        """The pods of `hosts`; those that an earlier life of the operator held are known as held from now on."""
        own = tuple(pod for pod in map(self.of_host, hosts) if pod is not None)
        self.held |= {key_of(pod) for pod in own if pod.is_resized}
        return own

    def _give_back(self, pods: Collection[SupervisorPod]) -> None:
        held = [pod for pod in pods if key_of(pod) in self.held and pod.capacity_millicores is not None]
        own_requests = {key_of(pod): self.own_requests.taken_from(pod, self.pods, self.now(), self.say) for pod in held}
        lacking = [pod for pod in held if lacks_its_own(self.cpus[key_of(pod)], own_requests[key_of(pod)])]
        self.held = self.held.difference(map(key_of, pods)).union(map(key_of, lacking))
        for pod in sorted(lacking, key=self._comes_last):
            self._take(to_give_back(self.cpus[key_of(pod)], own_requests[key_of(pod)], self.now()))

    def _comes_last(self, pod: SupervisorPod | None) -> bool:
        """Those that were not answered for might be in the way of all."""
        return pod is not None and self.cpus[key_of(pod)].is_unanswered

    def _take(self, step: Step) -> None:
        cpu, resize = step
        self.cpus[key_of(cpu.pod)] = cpu
        if resize is not None:
            self._ask(cpu, resize)

    def _ask(self, cpu: PodCpu, resize: Resize) -> None:
        key = key_of(cpu.pod)
        refusal = cpu.refusal_of(resize, self.now())
        if refusal is not None:
            self.problems.setdefault(key, refusal.why)
            return
        if self.silence:
            self.problems.setdefault(key, f"not resized to {resize.limit}m CPU, as another was not: {self.silence}")
            return
        began = self.now()
        self.cpus[key] = cpu = replace(cpu, asked_at_seconds=began, is_unanswered=False)
        try:
            self.pods.resize_cpu(cpu.pod, resize.limit, reserve_millicores=resize.reserve)
        except (Refused, Forbidden, NotFound) as error:
            self._note_failure(key, error)
            self.cpus[key] = as_refused(cpu, resize, str(error), self.now())
        except KubernetesError as error:
            self._note_failure(key, error)
            is_slow = isinstance(error, NoAnswer) or self.now() - began >= SLOW_ANSWER_SECONDS
            if is_slow:
                self.silence = str(error)
            self.cpus[key] = as_failed(replace(cpu, is_unanswered=is_slow), resize, str(error), self.now())
        else:
            self.asked(True)
            self.cpus[key] = as_accepted(cpu, resize)

    def _note_failure(self, key: PodKey, error: KubernetesError) -> None:
        self.asked(False)
        self.problems[key] = str(error)
        self.say(str(error))


def _only_of_host(host: str, pods: Collection[SupervisorPod]) -> SupervisorPod | None:
    name = host.partition(".")[0]  # quicker than to look at all of it
    found = [pod for pod in pods if pod.name == name and pod.matches(host)]
    return found[0] if len(found) == 1 else None

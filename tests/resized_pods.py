"""Supervisor pods that are resized, as `PodLimits` sees them: of a willing kubelet, and of one whose node is full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from builders import chain_topology, placed, same_demand
from kube_builders import api_refusal
from storm_operator.adapters.kube.errors import KubernetesError
from storm_operator.adapters.kube.pods import Pods, SupervisorPod
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Supervisor
from storm_operator.kube.pod_limits import PodLimits
from storm_operator.kube.pod_need import SUPERVISOR_OWN_MILLICORES

WORDS = chain_topology("words", ("spout", 1), ("split", 2))
BOTH_ON_S1 = Assignment(placed(WORDS, {"spout": "s1", "split": ["s1", "s2"]}))
DEMAND = same_demand((WORDS,), 180.0)
S1 = Supervisor("s1", "sup-0.sup.storm.svc.cluster.local", (6700,))
S2 = Supervisor("s2", "sup-1.sup.storm.svc.cluster.local", (6700,))
NEEDED_BY_S1 = SUPERVISOR_OWN_MILLICORES + 2 * 180.0 / 0.9


def pod(
    ordinal: int = 0, wanted: float | None = 2000.0, capacity: float | None = 2000.0, problem: str = ""
) -> SupervisorPod:
    return SupervisorPod("storm", f"sup-{ordinal}", "sup", "sup", True, wanted, wanted, capacity, problem)


class FakePods(Pods):
    """Pods that take every new limit at once, unless they are told to refuse."""

    def __init__(self, pods: Sequence[SupervisorPod]) -> None:
        self.pods = {pod.name: pod for pod in pods}
        self.resizes: list[tuple[str, int]] = []
        self.reserved: list[bool] = []
        self.refusal: KubernetesError | None = None
        self.refused_pod = ""
        """The only one, where one is named."""
        self.before_refusal: Callable[[], None] = lambda: None
        self.own_request: float | KubernetesError | None = None

    def supervisors(self, namespaces: tuple[str, ...]) -> tuple[SupervisorPod, ...]:
        return tuple(pod for pod in self.pods.values() if pod.namespace in namespaces)

    def resize_cpu(self, pod: SupervisorPod, millicores: int, *, reserve_millicores: float | None) -> None:
        self.resizes.append((pod.name, millicores))
        self.reserved.append(reserve_millicores is not None)
        if self.refusal is not None and self.refused_pod in ("", pod.name):
            self.before_refusal()
            raise self.refusal
        requested = reserve_millicores if reserve_millicores is not None else pod.requested_millicores
        self.pods[pod.name] = replace(
            pod,
            wanted_millicores=float(millicores),
            requested_millicores=requested,
            is_resized=True,
            is_reserved=pod.is_reserved or reserve_millicores is not None,
        )

    def cpu_request(self, namespace: str, stateful_set: str) -> float | None:
        if isinstance(self.own_request, KubernetesError):
            raise self.own_request
        return self.own_request


@dataclass
class Scene:
    pods: FakePods
    said: list[str] = field(default_factory=list)
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.limits = PodLimits(self.pods, self.said.append, lambda: self.now)
        self.limits.see(("storm",))

    def follow(self, demand: Demand = DEMAND, seconds: float = 10.0, **used: float) -> list[tuple[str, int]]:
        """One pass later; the resizes that it asked for. `used` are millicores by supervisor."""
        self.now += seconds
        self.limits.see(("storm",))
        before = len(self.pods.resizes)
        self.limits.follow((S1, S2), BOTH_ON_S1, demand, 0.9, used)
        return self.pods.resizes[before:]


def scene(*pods: SupervisorPod) -> Scene:
    return Scene(FakePods(pods))


class FullNode(FakePods):
    """Whose kubelet, and whose namespace's quota, judge what is asked for by its request, and have it as a whole."""

    def __init__(self, room: float, quota: float = 9000.0, limit: float = 1000.0, cores: float = 9000.0) -> None:
        super().__init__([replace(pod(0, wanted=limit, capacity=limit), requested_millicores=100.0)])
        self.room, self.quota, self.cores = room, quota, cores
        self.requests: list[float | None] = []
        self.granted = (limit, 100.0)
        self.is_ready = True
        self._core = self

    def supervisors(self, namespaces: tuple[str, ...]) -> tuple[SupervisorPod, ...]:
        (asking,) = self.pods.values()
        wanted, requested = asking.wanted_millicores or 0.0, asking.requested_millicores or 0.0
        fits = requested <= self.room
        self.granted = (wanted, requested) if fits else self.granted
        limit, reserved = self.granted
        problem = "" if fits else "Deferred: Node didn't have enough resource: cpu"
        if requested > self.cores:
            of = f"requested: {requested:.0f}, capacity: {self.cores:.0f}"
            problem = f"Infeasible: Node didn't have enough capacity: cpu, {of}"
        asking = replace(
            asking,
            limit_millicores=limit,
            reserved_millicores=reserved,
            resize_problem=problem,
            ready=self.is_ready,
        )
        self.pods = {asking.name: asking}
        return (asking,)

    def resize_cpu(self, pod: SupervisorPod, millicores: int, *, reserve_millicores: float | None) -> None:
        Pods.resize_cpu(self, pod, millicores, reserve_millicores=reserve_millicores)

    def patch_namespaced_pod_resize(self, name: str, namespace: str, body: dict[str, Any], **_: Any) -> None:
        cpu = body["spec"]["containers"][0]["resources"]
        limit = float(cpu["limits"]["cpu"].removesuffix("m"))
        self.resizes.append((name, int(limit)))
        asking = self.pods[name]
        requested = asking.requested_millicores
        if "requests" in cpu:
            requested = float(cpu["requests"]["cpu"].removesuffix("m"))
        self.requests.append(requested)
        if requested is not None and requested > self.quota:
            raise api_refusal(403, "exceeded quota: requests.cpu")
        self.pods[name] = replace(asking, wanted_millicores=limit, requested_millicores=requested)

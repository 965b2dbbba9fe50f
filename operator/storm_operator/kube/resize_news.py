"""Events for pods that have not got the CPU limit that they should have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.kube.pods import SupervisorPod
from storm_operator.core.settings import Enforcement, Mode
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.kube.pod_limits import PodLimits
from storm_operator.kube.resize_problem import PodKey, key_of, problem_reason

REASON = "ResizeRefused"
REPEATED_AFTER_SECONDS = 3600.0
"""What the kubelet says of a pod names the node's use of the moment: the same problem in other words is no news."""


@dataclass(slots=True)
class ResizeNews:
    """`tell(topology, reason, message, warning)` posts an event."""

    limits: PodLimits
    tell: Callable[[str, str, str, bool], None]
    now: Callable[[], float]
    told: dict[tuple[PodKey, str], float] = field(default_factory=dict)
    """When, by pod and by the one word for its problem."""

    def tell_of(self, specs: Mapping[str, TopologySpec], snapshot: ClusterSnapshot) -> None:
        """Tell the topologies with executors on a pod; where there are none, all whose spec has pods resized."""
        now = self.now()
        self.told = {key: at for key, at in self.told.items() if now - at < REPEATED_AFTER_SECONDS}
        wanting = {name for name, spec in specs.items() if resizes_pods(spec)}
        for pod_key, problem in sorted(self.limits.problems_of([s.host for s in snapshot.all_supervisors]).items()):
            key = (pod_key, problem_reason(problem))
            if key in self.told:
                continue
            self.told[key] = now
            pod = next((pod for pod in self.limits.present if key_of(pod) == pod_key), None)
            words = sentence(pod_key[1], pod, problem)
            for topology in sorted(self._on(pod, snapshot) & wanting or wanting):
                self.tell(topology, REASON, words, True)

    def _on(self, pod: SupervisorPod | None, snapshot: ClusterSnapshot) -> set[str]:
        """Names of the topologies with executors on the pod."""
        there = {s.id for s in snapshot.all_supervisors if pod is not None and pod.matches(s.host)}
        ids = {e.topology_id for e, slot in snapshot.assignment.slot_of.items() if slot.supervisor_id in there}
        return {topology.name for topology in snapshot.topologies if topology.id in ids}


def resizes_pods(spec: TopologySpec) -> bool:
    """Pure: whether pods are resized for the topology."""
    return spec.scheduling.mode is Mode.ENFORCE and spec.resources.enforcement is not Enforcement.NONE


def sentence(name: str, pod: SupervisorPod | None, problem: str) -> str:
    """Pure: what pod it is, what CPU it has, and why that is not what was asked for."""
    if pod is None or pod.limit_millicores is None:
        return f"supervisor pod {name}: {problem}"
    return f"supervisor pod {name} has {pod.limit_millicores:.0f} millicores: {problem}"

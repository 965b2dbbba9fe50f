"""The operator's watch canary and pod limits, between an API server that can be made to fail them and its exporter."""

from __future__ import annotations

from dataclasses import dataclass, field

from builders import chain_topology, placed, same_demand
from kube_builders import topology_body
from storm_operator.adapters.kube.errors import Refused
from storm_operator.adapters.kube.pods import Pods, SupervisorPod
from storm_operator.core.model import Assignment, Supervisor
from storm_operator.kube.canary import LOOK_SECONDS, WatchCanary
from storm_operator.kube.pod_limits import PodLimits
from storm_operator.kube.resize_problem import problem_reason
from storm_operator.operator_metrics import OperatorMetrics, RunMode

NAMESPACE, NIMBUS = "streams", "storm-nimbus.streams:6627"
WORDS = chain_topology("words", ("spout", 1), ("split", 2))
ON_S1 = Assignment(placed(WORDS, {"spout": "s1", "split": "s1"}))
S1 = Supervisor("s1", "sup-0.sup.streams.svc.cluster.local", (6700,))
POD = SupervisorPod(NAMESPACE, "sup-0", "sup", "sup", True, 2000.0, 2000.0, 2000.0)


class FullNode(Pods):
    """One supervisor pod; no limit of it can be changed."""

    def __init__(self) -> None:
        """Without a client: nothing is asked of an API server."""

    def supervisors(self, namespaces: tuple[str, ...]) -> tuple[SupervisorPod, ...]:
        return (POD,)

    def resize_cpu(self, pod: SupervisorPod, millicores: int, *, reserve_millicores: float | None) -> None:
        raise Refused(f"resize pod {pod.namespace}/{pod.name} to {millicores}m CPU: exceeded quota")


@dataclass
class PlayedKubernetes:
    """All is well until it is told otherwise. Seconds pass when it is told so."""

    seconds: float = 1000.0
    listed_version: str = "1"
    metrics: OperatorMetrics = field(init=False)

    def __post_init__(self) -> None:
        watched = [topology_body(resourceVersion="1")]
        self.canary = WatchCanary(
            "StormTopologies",
            lambda: [topology_body(resourceVersion=self.listed_version)],
            lambda: watched,
            lambda _: None,
            clock=lambda: self.seconds,
        )
        self.canary.look()
        # One that leads and is gone would be an alert of its own.
        self.metrics = OperatorMetrics(
            RunMode.KUBERNETES, leads=False, watch_ages=lambda: {self.canary.kind: self.canary.age_seconds() or 0.0}
        )
        self.told = self.metrics.cluster(NIMBUS, resizes_pods=True)
        self.limits = PodLimits(FullNode(), lambda _: None, lambda: self.seconds, self.told.resize_asked)

    def freeze_watch(self, for_seconds: float) -> None:
        """Something changes that the watch does not deliver."""
        self.listed_version = "2"
        end = self.seconds + for_seconds
        while self.seconds < end:
            self.seconds += LOOK_SECONDS
            self.canary.look()

    def refuse_resizes(self) -> None:
        """Passes of a loop that wants to give the pod what its executors need."""
        for _ in range(2):
            self.limits.see((NAMESPACE,))
            self.limits.follow((S1,), ON_S1, same_demand((WORDS,), 180.0), 0.9, {})
            self.told.resize_problems(map(problem_reason, self.limits.problems.values()))

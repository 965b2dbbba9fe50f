"""What the operator does for one Storm cluster besides plans: pods' CPU, number of pods, number of executors."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.kube.errors import Forbidden, KubernetesError
from storm_operator.adapters.kube.pods import Pods, SupervisorPod
from storm_operator.adapters.storm_cluster import StormCluster
from storm_operator.assembly import Assembly
from storm_operator.control_loop import ControlLoop, PassReport
from storm_operator.core.agent_enforcement import AgentEnforcement
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, name_of_topology
from storm_operator.core.plan_progress import supervisors_of
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.executor_counts import REFUSED, ExecutorCounts
from storm_operator.kube.assignment_drift import AssignmentDrift
from storm_operator.kube.concerns import Concern, Concerns
from storm_operator.kube.enforced import EnforcedPlace, places_of
from storm_operator.kube.managed import Managed
from storm_operator.kube.pod_limits import PodLimits
from storm_operator.kube.resize_news import ResizeNews, resizes_pods
from storm_operator.kube.scaled_set import ScaledSet, scaled_set
from storm_operator.kube.scaling import ScaleState, beyond_maximum, merged_limits, scale_step, why_none_is_added

Specs = Mapping[str, TopologySpec]

PODS_NOT_LISTED = "PodsNotListed"
NO_SCALE_TARGET = "NoScaleTarget"
SCALE_REFUSED = "ScaleRefused"
MAXIMUM_EXCEEDED = "MaximumExceeded"
"""Reasons that condition `Degraded`, and events, have for what care could not do."""


@dataclass(slots=True)
class ClusterCare:
    """`hosts` gives the supervisors' hosts by id; `tell(topology, reason, message, warning)` posts an event."""

    nimbus: str
    pods: Pods
    hosts: Callable[[], Mapping[str, str]]
    tell: Callable[[str, str, str, bool], None]
    say: Callable[[str], None]
    resize_asked: Callable[[bool], None] = lambda _: None
    namespace_of: Callable[[str], str] = lambda _: ""
    """By topology name."""
    resizes: Callable[[], bool] = lambda: True
    """Whether any topology wants its executors held to their CPU by pods' limits."""
    awaited: Callable[[], Collection[str]] = tuple
    """Names of topologies that are to get into Storm, which knows nothing of them meanwhile."""
    left_alone: Callable[[], Collection[str]] = tuple
    """Names of topologies that are not managed although StormTopologies name them: paused, for instance."""
    limits: PodLimits = field(init=False)
    concerns: Concerns = field(init=False)
    news: ResizeNews = field(init=False)
    namespaces: tuple[str, ...] = ()
    left_open: frozenset[str] = frozenset()
    """Ids of the supervisors whose pods are not held: executors there are of a topology that is not to be held."""
    sees_pods: bool = False
    """Whether `limits.present` is of this pass: else pods may be there that it does not know."""
    scale: ScaleState = ScaleState()
    scaled: ScaledSet | None = None
    """The StatefulSet that `scale` is about, as of the last pass."""
    drift: AssignmentDrift = field(default_factory=AssignmentDrift)
    counts: ExecutorCounts = field(init=False)

    def __post_init__(self) -> None:
        self.counts = ExecutorCounts(self._tell_of_counts, self.drift.expect_resize)
        # Not the time of day: set back, it would hold for hours what is to be tried again after minutes.
        self.limits = PodLimits(self.pods, self.say, time.monotonic, self.resize_asked)
        self.concerns = Concerns(time.monotonic, self.say)
        self.news = ResizeNews(self.limits, self.tell, time.monotonic)

    def see(self, managed: tuple[Managed, ...]) -> None:
        """Read the supervisor pods: beside the resources, and in the namespace of the Nimbus service, if it is one.

        A Nimbus outside Kubernetes has a host name too; where its second part is no namespace of ours there is nothing.
        """
        host = self.nimbus.rpartition(":")[0].split(".")
        beside = tuple(sorted({one.key[0] for one in managed}))
        of_nimbus = {host[1]} if len(host) > 1 and not host[1].isdigit() else set()
        names = frozenset(one.spec.name for one in managed if one.spec is not None)
        concern = Concern(PODS_NOT_LISTED, "", names)
        self.sees_pods = self.concerns.attempt(concern, lambda: self._list(beside, of_nimbus), self._tell_each(names))

    def _list(self, beside: tuple[str, ...], of_nimbus: Collection[str]) -> None:
        try:
            self.namespaces = tuple(sorted({*beside, *of_nimbus}))
            self.limits.see(self.namespaces)
        except Forbidden:
            self.namespaces = beside
            self.limits.see(beside)

    def places(
        self, topology_id: str, snapshot: ClusterSnapshot, agents: Mapping[str, AgentEnforcement]
    ) -> tuple[EnforcedPlace, ...]:
        """The supervisors that the topology's executors run on, and whether CPU limits are in force there."""
        return places_of(topology_id, snapshot, self.limits, agents, self.left_open)

    def obstacles(self, topology: str) -> tuple[tuple[str, str], ...]:
        """Reason and message of what could not be done for the topology of that name."""
        troubles = tuple((trouble.concern.reason, trouble.message) for trouble in self.concerns.of(topology))
        return tuple(sorted(troubles + self.counts.obstacles(topology)))

    def open_up(self, supervisor_ids: Collection[str]) -> None:
        """See `apply.MachineLimits`. Where nobody wants pods resized, their limits are not ours to change."""
        if not self.resizes():
            return
        hosts = self.hosts()
        self._look_again()
        self.limits.open_up([hosts[i] for i in supervisor_ids if i in hosts])

    def release(self) -> None:
        """Pods get back what they were held to less than, once no topology wants that any more."""
        if not self.resizes():
            self.limits.release(self.hosts().values())

    def release_what_is_seen(self) -> bool:
        """As `release`, by the pods as they are now; whether they were seen, and none lacks anything."""
        is_seen = self._look_again()
        self.release()
        return is_seen and not self.limits.held

    def _look_again(self) -> bool:
        try:
            self.limits.see(self.namespaces)
        except KubernetesError as error:
            self.say(str(error))
            return False
        return True

    def capacities(self) -> Mapping[str, float]:
        """See `assembly.Machines`."""
        hosts = self.hosts()
        by_host = self.limits.capacities(hosts.values())
        return {i: by_host[host] for i, host in hosts.items() if host in by_host}

    def leaving(self) -> frozenset[str]:
        """See `assembly.Machines`."""
        emptied = [pod for pod in self.limits.present if pod.ordinal in self.scale.leaving and self._is_scaled(pod)]
        return frozenset(
            i for i, host in self.hosts().items() if self.is_going(host) or any(pod.matches(host) for pod in emptied)
        )

    def is_going(self, host: str) -> bool:
        """See `assembly.Machines`."""
        return self.limits.is_going(host)

    def _is_scaled(self, pod: SupervisorPod) -> bool:
        of = self.scaled
        return of is not None and (pod.namespace, pod.stateful_set) == (of.namespace, of.name)

    def follow(self, specs: Specs, report: PassReport, assembly: Assembly) -> None:
        """After a pass: bring everything that needs no plan to what the pass found."""
        if all(spec.supervisors is None for spec in specs.values()):
            self._empty_nothing()
        if report.snapshot is None or report.demand is None:
            return
        if not assembly.loop.has_pending_plan:
            resized = self.counts.follow(specs, report, assembly.loop, assembly.change_counts)
            self._follow_limits(specs, report.snapshot, report.demand)
            if not resized:  # else Storm is about to place executors anew, nobody knows where
                self._scale_if_possible(specs, report, report.snapshot, assembly.storm)
        else:  # what was not answered before the move is asked for again
            moving = supervisors_of(assembly.loop.memory.records[-1].plan)
            self.open_up(moving)
            self._follow_limits(specs, report.snapshot, report.demand, moving)
        self.news.tell_of(specs, report.snapshot)

    def tell_of_moves(self, report: PassReport, loop: ControlLoop) -> None:
        """Executors that are elsewhere than in the last pass although none of the loop's plans moved them."""
        if report.snapshot is None:
            return
        for topology_id, words in self.drift.look_beside(loop.memory.records, report.snapshot).items():
            # Storm makes an id of the name, a counter and the time.
            self.tell(name_of_topology(topology_id), "Drift", words, True)

    def _tell_of_counts(self, topology: str, reason: str, message: str, warning: bool) -> None:
        if reason == REFUSED:
            self.say(f"{topology}: {reason}: {message}")
        self.tell(topology, reason, message, warning)

    def _follow_limits(
        self, specs: Specs, snapshot: ClusterSnapshot, demand: Demand, moving: Collection[str] = ()
    ) -> None:
        """`moving` are ids of the supervisors that a plan in hand is about: their pods stay open."""
        enforcing = [spec for spec in specs.values() if resizes_pods(spec)]
        self.left_open = frozenset()
        if enforcing:
            headroom = min(spec.scheduling.headroom_fraction for spec in enforcing)
            used = snapshot.supervisor_cpu_millicores
            self.left_open = _hosting_those_not_to_be_held(specs, snapshot, self.left_alone())
            held = tuple(one for one in snapshot.all_supervisors if one.id not in self.left_open.union(moving))
            self.limits.follow(held, snapshot.assignment, demand, headroom, used)
            self.limits.leave_open([one.host for one in snapshot.all_supervisors if one.id in self.left_open])

    def _scale_if_possible(
        self, specs: Specs, report: PassReport, snapshot: ClusterSnapshot, storm: StormCluster
    ) -> None:
        """Find the one StatefulSet that is meant; that there is none is told those who asked for one.

        Not by pods as they once were: executors on one that has come since would be on none.
        """
        asking = {name: spec.supervisors for name, spec in specs.items() if spec.supervisors is not None}
        for reason in (NO_SCALE_TARGET, SCALE_REFUSED, MAXIMUM_EXCEEDED):
            self.concerns.keep(reason, ("",) if asking else ())
        if not asking or not self.sees_pods:
            return
        names = frozenset(asking)
        unclear = Concern(NO_SCALE_TARGET, "", names)
        named = {(self.namespace_of(name), one.stateful_set) for name, one in asking.items() if one.stateful_set}
        found = scaled_set(named, self.limits.present, self.hosts().values(), self.scaled)
        if isinstance(found, str):
            self.concerns.fail(unclear, found, self._tell_each(names))
            self._empty_nothing()
            return
        self.concerns.settle(unclear)
        self.scaled, agreed = found, self.scale
        done = self.concerns.attempt(
            Concern(SCALE_REFUSED, "", names),
            lambda: self._follow_scale(specs, report, snapshot, found, storm),
            self._tell_each(names),
            f"{found.namespace}/{found.name} {merged_limits(asking.values())}",
        )
        if not done:
            self.scale = agreed  # the step is still to be made

    def _empty_nothing(self) -> None:
        """Which set is to shrink nobody says: executors may stay on pods, and come to them, as on all others."""
        self.scale, self.scaled = ScaleState(), None

    def _tell_each(self, names: Collection[str]) -> Callable[[str, str], None]:
        def tell(reason: str, message: str) -> None:
            for name in sorted(names):
                self.tell(name, reason, message, True)

        return tell

    def _follow_scale(
        self, specs: Specs, report: PassReport, snapshot: ClusterSnapshot, of: ScaledSet, storm: StormCluster
    ) -> None:
        limits = merged_limits(spec.supervisors for spec in specs.values())
        pods = of.pods
        if limits is None:
            return
        replicas = self.pods.replicas(pods[0].namespace, pods[0].stateful_set)
        # The set's own word, not the lowest pod's that is seen: the first may be missing for a moment.
        is_from_zero = any(pod.ordinal == 0 for pod in pods)
        first = 0 if is_from_zero else self.pods.first_ordinal(pods[0].namespace, pods[0].stateful_set)
        decisions = [decision for _, decision in report.decisions]
        before, used = self.scale.leaving, self._used_ordinals(of, snapshot.assignment)
        self._tell_of_maximum(beyond_maximum(limits, replicas, used), specs)
        obstacle = why_none_is_added(limits, pods, replicas, used, decisions)
        if obstacle:
            self._tell_all(specs, "ScaleHeld", f"StatefulSet {pods[0].stateful_set} gets no pod more: {obstacle}")
        step, self.scale = scale_step(limits, pods, replicas, used, decisions, self.scale, first)
        shrinks = step is not None and step.replicas < replicas
        if (shrinks or self.scale.leaving) and self._waits_for_topologies(specs, pods[0].stateful_set):
            return
        if self.scale.leaving and self.scale.leaving != before:
            ordinals = ", ".join(map(str, sorted(self.scale.leaving)))
            self._tell_all(specs, "Emptying", f"pods {ordinals} of StatefulSet {pods[0].stateful_set} are emptied")
        if step is not None and step.replicas < replicas:
            obstacle = self._obstacle(of, first + step.replicas, storm, snapshot.assignment)
            if obstacle:
                self._tell_held(specs, step.stateful_set, obstacle)
                return  # the passes that agreed no longer count: `scale_step` begins anew
        if step is not None:
            self.pods.scale(step.namespace, step.stateful_set, step.replicas)
            words = f"StatefulSet {step.stateful_set} from {replicas} to {step.replicas} pods: {step.reason}"
            self.say(words)
            self._tell_all(specs, "Scaled", words)

    def _waits_for_topologies(self, specs: Specs, stateful_set: str) -> bool:
        """Whether any is yet to come, as between the versions of one: how many pods it needs nobody knows, so none is
        emptied or goes, and passes that agree count from then on."""
        awaited = self.awaited()
        if awaited:
            self.scale = ScaleState(given_up=self.scale.given_up)
            self._tell_held(specs, stateful_set, f"{', '.join(awaited)} is yet to get into Storm")
        return bool(awaited)

    def _tell_of_maximum(self, words: str, specs: Specs) -> None:
        names = frozenset(name for name, spec in specs.items() if spec.supervisors is not None)
        exceeded = Concern(MAXIMUM_EXCEEDED, "", names)
        if words:
            self.concerns.fail(exceeded, words, self._tell_each(names))
        else:
            self.concerns.settle(exceeded)

    def _tell_held(self, specs: Specs, stateful_set: str, obstacle: str) -> None:
        self._tell_all(specs, "ScaleHeld", f"StatefulSet {stateful_set} keeps its pods: {obstacle}")

    def _tell_all(self, specs: Specs, reason: str, words: str) -> None:
        for name in specs:
            self.tell(name, reason, words, False)

    def _obstacle(self, of: ScaledSet, lowest_to_go: int, storm: StormCluster, as_of_pass: Assignment) -> str:
        """Why the pods from that ordinal on must not go now; empty when they may.

        The pass' snapshot is of the past, and a topology may have been submitted since: Storm is asked again. Of a
        supervisor that is away for a moment Storm knows no executors, and the pass does.
        """
        topologies = storm.running()
        assignment = storm.read_assignment([topology.id for topology in topologies])
        hosts = self.hosts()
        unseen = sorted({*as_of_pass.used_supervisors(), *assignment.used_supervisors()} - hosts.keys())
        if unseen:
            return f"supervisors {', '.join(unseen)} host executors, and which pods they are is not known now"
        still = sorted(ordinal for ordinal in self._used_ordinals(of, assignment) if ordinal >= lowest_to_go)
        if still:
            return f"pods {', '.join(map(str, still))} host executors since the last look"
        placed = {executor.topology_id for executor in assignment.slot_of}
        homeless = [one.name for one in topologies if one.id not in placed and not one.is_leaving]
        return f"{', '.join(homeless)} has no place yet" if homeless else ""

    def _used_ordinals(self, of: ScaledSet, assignment: Assignment) -> frozenset[int]:
        """The ordinals of the pods whose supervisors host executors, also of those that are being emptied."""
        used = assignment.used_supervisors()
        ordinals = (of.ordinal_of(host) for supervisor_id, host in self.hosts().items() if supervisor_id in used)
        return frozenset(ordinal for ordinal in ordinals if ordinal is not None)


def _hosting_those_not_to_be_held(
    specs: Specs, snapshot: ClusterSnapshot, left_alone: Collection[str]
) -> frozenset[str]:
    """Ids of the supervisors with executors of a topology that is only planned for, only measured, or left alone."""
    names = {name for name, spec in specs.items() if not resizes_pods(spec)}.union(left_alone)
    unheld = [one.id for one in snapshot.topologies if one.name in names]
    return frozenset(snapshot.assignment.restricted_to(unheld).used_supervisors())

"""Where supervisor pods are looked for, which of them leave, and what follows a pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast
from unittest.mock import Mock

import pytest

from builders import chain_topology, placed, same_demand, snapshot, supervisors
from kube_builders import topology_body
from loop_scene import SETTINGS, SPECS, SPREAD, last_state, scene, with_mode
from storm_operator.adapters.errors import NimbusUnreachable, RebalanceRefused
from storm_operator.adapters.kube.errors import Forbidden, KubernetesError
from storm_operator.adapters.kube.pods import Pods, SupervisorPod
from storm_operator.adapters.observer import SnapshotObserver, with_supervisors_as_told
from storm_operator.assembly import ClusterConnection, assemble
from storm_operator.control_loop import PassReport
from storm_operator.core.backoff import FIRST_RETRY_SECONDS
from storm_operator.core.decision import Hold, HoldReason, Plan
from storm_operator.core.direct_plan import direct_plan
from storm_operator.core.lifecycle import RunningTopology
from storm_operator.core.model import Assignment, Executor, Topology, WorkerSlot
from storm_operator.core.plan_record import PlanState
from storm_operator.core.settings import Enforcement, Mode, ResourceSettings, SchedulingSettings
from storm_operator.core.topology_spec import (
    AdoptSource,
    ComponentParallelism,
    ParallelismSpec,
    ScaleLimits,
    TopologySpec,
)
from storm_operator.kube.cluster_care import ClusterCare
from storm_operator.kube.managed import Managed, managed_from
from storm_operator.kube.scaled_set import ScaledSet
from storm_operator.kube.scaling import CALM_PASSES


class FakePods:
    """Pods by namespace; those of other namespaces may not be listed."""

    def __init__(self, allowed: Mapping[str, tuple[SupervisorPod, ...]]) -> None:
        self.allowed = allowed
        self.asked: list[int] = []
        self.first = 0
        self.being_deleted = 0
        """So many are not listed."""
        self.resized: list[int] = []
        self.resized_pods: list[str] = []
        self.refusal: KubernetesError | None = None
        self.unreadable: KubernetesError | None = None
        self.unlistable: KubernetesError | None = None
        self.unresizable: KubernetesError | None = None

    def supervisors(self, namespaces: tuple[str, ...]) -> tuple[SupervisorPod, ...]:
        if self.unlistable is not None:
            raise self.unlistable
        for namespace in namespaces:
            if namespace not in self.allowed:
                raise Forbidden(f"pods in {namespace}")
        return tuple(pod for namespace in namespaces for pod in self.allowed[namespace])

    def resize_cpu(self, pod: SupervisorPod, millicores: int, *, reserve_millicores: float | None) -> None:
        if self.unresizable is not None:
            raise self.unresizable
        self.resized.append(millicores)
        self.resized_pods.append(pod.name)

    def first_ordinal(self, namespace: str, stateful_set: str) -> int:
        return self.first

    def replicas(self, namespace: str, stateful_set: str) -> int:
        if self.unreadable is not None:
            raise self.unreadable
        return len(self.allowed[namespace]) + self.being_deleted

    def scale(self, namespace: str, stateful_set: str, replicas: int) -> None:
        self.asked.append(replicas)
        if self.refusal is not None:
            raise self.refusal


def pod(namespace: str, ordinal: int) -> SupervisorPod:
    name = f"storm-supervisor-{ordinal}"
    return SupervisorPod(namespace, name, "storm-supervisor", "storm-supervisor", True, 500.0, 500.0, 1000.0)


def host(namespace: str, ordinal: int) -> str:
    return f"storm-supervisor-{ordinal}.storm-supervisor.{namespace}.svc.cluster.local"


def care(nimbus: str, allowed: Mapping[str, tuple[SupervisorPod, ...]], hosts: dict[str, str]) -> ClusterCare:
    return ClusterCare(nimbus, cast("Pods", FakePods(allowed)), lambda: hosts, lambda *_: None, lambda words: None)


def resource(namespace: str) -> Managed:
    body = topology_body()
    return managed_from({**body, "metadata": {**body["metadata"], "namespace": namespace}}, "n.storm:6627")


def test_pods_are_found_beside_the_resources_and_beside_nimbus() -> None:
    both = {"team": (pod("team", 0),), "storm": (pod("storm", 0), pod("storm", 1))}
    seen = care("storm-nimbus.storm:6627", both, {"a": host("storm", 1)})
    seen.see((resource("team"),))
    assert seen.namespaces == ("storm", "team")
    assert len(seen.limits.present) == 3
    assert seen.capacities() == {"a": 1000.0}


def test_nimbus_outside_kubernetes_has_no_namespace() -> None:
    seen = care("nimbus.example.com:6627", {"team": (pod("team", 0),)}, {})
    seen.see((resource("team"),))
    assert seen.namespaces == ("team",)
    address = care("10.0.0.1:6627", {"team": ()}, {})
    address.see((resource("team"),))
    assert address.namespaces == ("team",)


def test_limits_are_changed_only_while_somebody_wants_pods_resized() -> None:
    seen = care("n.storm:6627", {"storm": (pod("storm", 0),)}, {"a": host("storm", 0)})
    seen.see((resource("storm"),))
    wanted = True
    seen.resizes = lambda: wanted
    seen.release()
    assert cast("FakePods", seen.pods).resized == []
    seen.open_up(["a"])
    assert cast("FakePods", seen.pods).resized == [1000]
    wanted = False
    seen.open_up(["a"])
    assert cast("FakePods", seen.pods).resized == [1000]
    seen.limits.held = frozenset({("storm", "storm-supervisor-0")})
    seen.release()
    assert cast("FakePods", seen.pods).resized == [1000, 1000]


@pytest.mark.parametrize(
    "unheld",
    [
        {"scheduling": SchedulingSettings(mode=Mode.OBSERVE)},
        {"scheduling": SchedulingSettings(mode=Mode.RECOMMEND)},
        {"resources": ResourceSettings(enforcement=Enforcement.NONE)},
        None,
    ],
    ids=["observed", "recommended", "not enforced", "paused or invalid"],
)
def test_pods_with_executors_of_a_topology_that_wants_none_resized_are_not_held(unheld: dict[str, Any] | None) -> None:
    """Whatever the others of the cluster want: one that is only measured, or only planned for, is not throttled. Nor is
    one that is left alone, and so has no spec."""
    held, free = chain_topology("held-1-1", ("spout", 2)), chain_topology("free-1-1", ("spout", 2))
    hosts = {f"s{number + 1}": host("storm", number) for number in range(3)}
    of_s3 = replace(pod("storm", 2), is_resized=True)
    seen = care("n.storm:6627", {"storm": (pod("storm", 0), pod("storm", 1), of_s3)}, hosts)
    seen.see((resource("storm"),))
    machines = tuple(replace(machine, host=hosts[machine.id]) for machine in supervisors(3))
    where = {**placed(held, {"spout": ["s1", "s2"]}), **placed(free, {"spout": ["s2", "s3"]})}
    picture = snapshot((held, free), machines, where)
    specs = {held.name: TopologySpec("held", AdoptSource())}
    if unheld is not None:
        specs[free.name] = TopologySpec("free", AdoptSource(), **unheld)
    seen.left_alone = lambda: () if unheld is not None else (free.name,)
    seen._follow_limits(specs, picture, same_demand([held, free], 100.0))
    assert cast("FakePods", seen.pods).resized == [320, 1000], "what s1 needs; all that was once taken from s3"
    assert [place.is_left_open for place in seen.places(held.id, picture, {})] == [False, True]


def test_supervisors_of_pods_that_are_emptied_leave() -> None:
    pods = {"storm": (pod("storm", 0), pod("storm", 1))}
    seen = care("n.storm:6627", pods, {"a": host("storm", 0), "b": host("storm", 1)})
    seen.see((resource("storm"),))
    assert seen.leaving() == frozenset()
    seen.scale = replace(seen.scale, leaving=frozenset({1}))
    seen.scaled = ScaledSet("storm", "storm-supervisor", pods["storm"])
    assert seen.leaving() == {"b"}


def test_supervisors_of_pods_that_are_being_deleted_leave_and_go() -> None:
    """Also once Storm does not see them any more; their pods are nobody's to resize or scale."""
    going = replace(pod("storm", 1), is_being_deleted=True)
    hosts = {"a": host("storm", 0), "b": host("storm", 1)}
    seen = care("n.storm:6627", {"storm": (pod("storm", 0), going)}, hosts)
    seen.see((resource("storm"),))
    assert seen.limits.present == (pod("storm", 0),)
    assert seen.leaving() == {"b"}
    del hosts["b"]
    observer = assemble(ClusterConnection(("nimbus:6627",), "zookeeper:2181"), Mock(), machines=seen).loop.observer
    assert isinstance(observer, SnapshotObserver)
    assert [observer.is_going(host("storm", number)) for number in range(3)] == [False, True, False]
    assert not seen.is_going(host("other", 1))


def test_where_pods_cannot_be_listed_nobody_is_known_to_go() -> None:
    seen = care("n.storm:6627", {"storm": (replace(pod("storm", 0), is_being_deleted=True),)}, {"a": host("storm", 0)})
    seen.see((resource("storm"),))
    assert seen.leaving() == {"a"}
    cast("FakePods", seen.pods).unlistable = KubernetesError("no answer")
    seen.see((resource("storm"),))
    assert not seen.is_going(host("storm", 0))
    assert seen.leaving() == frozenset()


def test_of_pods_of_one_name_in_two_namespaces_nobody_is_known_to_go() -> None:
    """Where supervisors tell their names alone: the other may be another Storm cluster's."""
    short = "storm-supervisor-0"
    both = {"team": (pod("team", 0),), "storm": (replace(pod("storm", 0), is_being_deleted=True),)}
    seen = care("storm-nimbus.storm:6627", both, {"a": short})
    seen.see((resource("storm"),))
    assert seen.is_going(short)
    seen.see((resource("team"),))
    assert not seen.is_going(short)


WORDS = chain_topology("words-1-1", ("spout", 1), ("count", 2))
LATER = chain_topology("later-2-2", ("spout", 1))


@dataclass
class FakeStorm:
    """What Storm says at this very moment; passes have an older picture."""

    slot_of: dict[Executor, WorkerSlot]
    topologies: tuple[RunningTopology, ...] = (RunningTopology(WORDS.id, "words", "ACTIVE"),)

    def running(self) -> tuple[RunningTopology, ...]:
        return self.topologies

    def read_assignment(self, topology_ids: Collection[str]) -> Assignment:
        return Assignment(self.slot_of).restricted_to(topology_ids)

    def submit(self, topology: Topology, where: str | None, status: str = "ACTIVE") -> None:
        self.topologies += (RunningTopology(topology.id, topology.id.partition("-")[0], status),)
        if where is not None:
            self.slot_of |= placed(topology, {"spout": where})


class ScaledIn:
    """Three pods for supervisors `s1..s3`, of which the last hosts nothing for as many passes as it takes."""

    def __init__(self, first: int = 0) -> None:
        pods = tuple(pod("storm", first + number) for number in range(3))
        hosts = {f"s{number + 1}": host("storm", first + number) for number in range(3)}
        self.care = care("n.storm:6627", {"storm": pods}, hosts)
        self.pods = cast("FakePods", self.care.pods)
        self.pods.first = first
        self.told: list[tuple[str, str]] = []
        self.care.tell = lambda _, reason, words, __: self.told.append((reason, words))
        self.care.see((resource("storm"),))
        self.limits: ScaleLimits | None = ScaleLimits(minimum=1, maximum=3)
        self.parallelism = ParallelismSpec()
        self.refuse_counts: Exception | None = None
        self.settles: Plan | None = None
        self.machines = supervisors(3)
        self.demand_millicores = 200.0
        """Of each executor."""
        self.others: tuple[Topology, ...] = ()
        """Topologies beside WORDS."""
        self.unmeasured: tuple[Topology, ...] = ()
        self.decided = Hold(HoldReason.NO_CHANGE, "all is well")
        self.counts_asked = 0
        self.now = 1000.0
        self.where = placed(WORDS, {"spout": "s1", "count": ["s1", "s2"]})
        self.storm = FakeStorm(dict(self.where))
        for _ in range(CALM_PASSES - 1):
            self.run_pass()

    def run_pass(self) -> None:
        topologies = (WORDS, *self.others)
        picture = with_supervisors_as_told(snapshot(topologies, self.machines, self.where), {}, self.care.leaving())
        demand = same_demand([one for one in topologies if one not in self.unmeasured], self.demand_millicores)
        report = PassReport(1.0, picture, demand, (((WORDS.id,), self.decided),))
        pending = [Mock(plan=self.settles)] if self.settles is not None else []
        loop = Mock(has_pending_plan=bool(pending), clock=Mock(now=lambda: self.now), memory=Mock(records=pending))
        assembly: Any = Mock(storm=self.storm, loop=loop, change_counts=self.change_counts)
        spec = TopologySpec(WORDS.name, AdoptSource(), supervisors=self.limits, parallelism=self.parallelism)
        others = {one.name: TopologySpec(one.name, AdoptSource()) for one in self.others}
        self.care.follow({WORDS.name: spec, **others}, report, assembly)

    def resized_in_a_pass(self) -> list[tuple[str, int]]:
        """What which pod is resized to, where supervisors tell the names of their pods."""
        hosts, before = self.care.hosts(), len(self.pods.resized)
        self.machines = tuple(replace(one, host=hosts[one.id]) for one in self.machines)
        self.run_pass()
        return list(zip(self.pods.resized_pods[before:], self.pods.resized[before:], strict=True))

    def change_counts(self, name: str, executors: Mapping[str, int]) -> None:
        self.counts_asked += 1
        if self.refuse_counts is not None:
            raise self.refuse_counts


@pytest.fixture
def scaled() -> ScaledIn:
    return ScaledIn()


def test_pod_that_hosts_nothing_goes(scaled: ScaledIn) -> None:
    assert scaled.pods.asked == []
    scaled.run_pass()
    assert scaled.pods.asked == [2]


def test_pod_that_hosts_nothing_goes_from_a_set_that_begins_at_another_number() -> None:
    played = ScaledIn(first=5)
    played.run_pass()
    assert played.pods.asked == [2]


def test_pod_that_was_placed_on_since_stays_in_a_set_that_begins_at_another_number() -> None:
    played = ScaledIn(first=5)
    played.storm.submit(LATER, "s3")
    played.run_pass()
    assert played.pods.asked == []
    assert "pods 7 host executors since the last look" in played.told[0][1]


@pytest.mark.parametrize("status", ["ACTIVE", "KILLED"])
def test_pod_stays_that_a_topology_was_placed_on_since_the_pass_looked(scaled: ScaledIn, status: str) -> None:
    scaled.storm.submit(LATER, "s3", status)
    scaled.run_pass()
    assert scaled.pods.asked == []
    assert scaled.told == [
        ("ScaleHeld", "StatefulSet storm-supervisor keeps its pods: pods 2 host executors since the last look")
    ]
    scaled.run_pass()
    assert scaled.pods.asked == [], "the passes that agree are counted anew"


def test_pods_stay_while_a_topology_has_no_place_yet(scaled: ScaledIn) -> None:
    scaled.storm.submit(LATER, None)
    scaled.run_pass()
    assert scaled.pods.asked == []
    assert "later has no place yet" in scaled.told[0][1]


@pytest.mark.parametrize(
    ("maximum", "why"), [(4, "storm-supervisor-2 is not ready"), (3, "spec.supervisors.maximum is 3")]
)
def test_why_no_pod_is_added_although_one_would_help_is_told(scaled: ScaledIn, maximum: int, why: str) -> None:
    scaled.pods.allowed = {"storm": (pod("storm", 0), pod("storm", 1), replace(pod("storm", 2), ready=False))}
    scaled.care.see((resource("storm"),))
    scaled.limits, scaled.decided = ScaleLimits(1, maximum), Hold(HoldReason.INFEASIBLE, "no room for count")
    scaled.run_pass()
    assert scaled.pods.asked == []
    assert scaled.told == [("ScaleHeld", f"StatefulSet storm-supervisor gets no pod more: {why}")]


def test_pods_stay_while_their_supervisors_call_themselves_by_address(scaled: ScaledIn) -> None:
    scaled.care.hosts = lambda: {f"s{number + 1}": f"10.0.0.{number}" for number in range(3)}
    for _ in range(2 * CALM_PASSES):
        scaled.run_pass()
    assert scaled.pods.asked == []
    assert scaled.told[-1][0] == "NoScaleTarget"


def test_set_stays_known_while_no_supervisor_is_seen(scaled: ScaledIn) -> None:
    seen, scaled.care.hosts = scaled.care.scaled, dict
    scaled.run_pass()
    assert seen is not None
    assert (scaled.care.scaled, scaled.told) == (seen, [])


def test_pods_stay_while_executors_are_on_a_supervisor_that_is_not_seen(scaled: ScaledIn) -> None:
    """It is away for a moment, and may run in the very pod that would go."""
    seen = scaled.care.hosts()
    scaled.care.hosts = lambda: {key: value for key, value in seen.items() if key != "s2"}
    for _ in range(2 * CALM_PASSES):
        scaled.run_pass()
    assert scaled.pods.asked == []
    assert "supervisors s2 host executors, and which pods they are is not known now" in scaled.told[-1][1]


def test_pod_stays_that_is_being_deleted_and_whose_supervisor_runs_on(scaled: ScaledIn) -> None:
    """As where a node has lost the API server and neither Nimbus nor ZooKeeper: its executors go on, for hours."""
    scaled.pods.being_deleted = 1
    scaled.pods.allowed = {"storm": (pod("storm", 0), pod("storm", 2))}
    scaled.care.see((resource("storm"),))
    for _ in range(2 * CALM_PASSES):
        scaled.run_pass()
    assert set(scaled.pods.asked) == {2}


def test_pods_stay_while_the_pass_saw_executors_where_storm_sees_no_supervisor(scaled: ScaledIn) -> None:
    """Its daemon restarts: Storm knows of no executors there, and its workers run on."""
    seen = scaled.care.hosts()
    scaled.care.hosts = lambda: {key: value for key, value in seen.items() if key != "s2"}
    scaled.storm.slot_of = {one: slot for one, slot in scaled.storm.slot_of.items() if slot.supervisor_id != "s2"}
    for _ in range(2 * CALM_PASSES):
        scaled.run_pass()
    assert scaled.pods.asked == []
    assert "supervisors s2 host executors, and which pods they are is not known now" in scaled.told[-1][1]


def test_pods_stay_while_a_topology_is_replaced_or_could_not_be_submitted(scaled: ScaledIn) -> None:
    """Storm knows nothing of it meanwhile, and it is back in a minute, or once its jar is mended."""
    scaled.care.awaited = lambda: ("later",)
    for _ in range(1 + CALM_PASSES):
        scaled.run_pass()
    held = ("ScaleHeld", "StatefulSet storm-supervisor keeps its pods: later is yet to get into Storm")
    assert (scaled.pods.asked, scaled.told) == ([], [held] * 2)
    scaled.care.awaited = tuple
    for _ in range(CALM_PASSES):
        assert scaled.pods.asked == []
        scaled.run_pass()
    assert scaled.pods.asked == [2]


def test_pods_are_not_emptied_either_while_a_topology_is_replaced(scaled: ScaledIn) -> None:
    scaled.where = scaled.storm.slot_of = placed(WORDS, {"spout": "s1", "count": ["s1", "s3"]})
    scaled.care.awaited = lambda: ("later",)
    for _ in range(2 * CALM_PASSES):
        scaled.run_pass()
        assert scaled.care.leaving() == frozenset()
    assert {reason for reason, _ in scaled.told} == {"ScaleHeld"}


def test_topology_that_is_placed_on_pods_that_stay_is_no_obstacle(scaled: ScaledIn) -> None:
    scaled.storm.submit(LATER, "s1")
    scaled.run_pass()
    assert scaled.pods.asked == [2]


def test_topology_that_is_being_killed_and_has_no_place_is_no_obstacle(scaled: ScaledIn) -> None:
    scaled.storm.submit(LATER, None, "KILLED")
    scaled.run_pass()
    assert scaled.pods.asked == [2]


def test_pods_of_a_plan_that_settles_are_opened_once_the_api_server_answers(scaled: ScaledIn) -> None:
    scaled.pods.unresizable = KubernetesError("resize pod: too many requests")
    scaled.care.limits.now = lambda: scaled.now
    scaled.care.open_up(["s1", "s2"])
    assert scaled.pods.resized == []
    scaled.pods.unresizable = None
    scaled.now += FIRST_RETRY_SECONDS
    scaled.settles = direct_plan(Assignment(scaled.where), Assignment(scaled.where), "p-1", 1.0, "closer", {})
    scaled.run_pass()
    assert scaled.pods.resized == [1000, 1000]


class TestPodsThatNoPlanIsAbout:
    """`s3` hosts another topology than the one whose plan settles."""

    @staticmethod
    def resized(unmeasured: tuple[Topology, ...] = ()) -> list[tuple[str, int]]:
        """What the pod of `s3` is resized to in one pass."""
        played = ScaledIn()
        played.settles = direct_plan(Assignment(played.where), Assignment(played.where), "p-1", 1.0, "closer", {})
        played.where = played.where | placed(LATER, {"spout": "s3"})
        played.others, played.unmeasured = (LATER,), unmeasured
        return [(name, to) for name, to in played.resized_in_a_pass() if name == "storm-supervisor-2"]

    def test_follow_demand_while_it_settles(self) -> None:
        assert self.resized() == [("storm-supervisor-2", 430)]

    def test_are_opened_when_an_executor_starts_there(self) -> None:
        assert self.resized(unmeasured=(LATER,)) == [("storm-supervisor-2", 1000)]


class TestEmptiedPods:
    """The last of three pods is being emptied: nothing may come to its supervisor `s3`."""

    @staticmethod
    def scene(scaled: ScaledIn) -> ScaledIn:
        scaled.where = scaled.storm.slot_of = placed(WORDS, {"spout": "s1", "count": ["s1", "s3"]})
        for _ in range(CALM_PASSES):
            scaled.run_pass()
        assert scaled.care.leaving() == {"s3"}
        return scaled

    def test_are_used_again_when_nobody_asks_for_fewer_any_more(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.limits = None
        played.run_pass()
        assert played.care.leaving() == frozenset()

    def test_are_used_again_when_all_who_asked_are_paused(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        nobody = Hold(HoldReason.NOTHING_TO_MANAGE, "no managed topology runs on this cluster")
        played.care.follow({}, PassReport(1.0, None, None, (((), nobody),)), Mock())
        assert played.care.leaving() == frozenset()

    def test_are_used_again_when_it_is_not_clear_which_set_is_meant(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.limits = ScaleLimits(1, 3, "storm-supervisors")
        played.run_pass()
        assert played.told[-1][0] == "NoScaleTarget"
        assert played.care.leaving() == frozenset()

    def test_are_given_what_the_executors_need_that_still_run_there(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.demand_millicores = 400.0
        assert ("storm-supervisor-2", 650) in played.resized_in_a_pass()

    def test_are_places_where_executors_run(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        machines = tuple(replace(one, host=host("storm", number)) for number, one in enumerate(played.machines))
        picture = with_supervisors_as_told(snapshot((WORDS,), machines, played.where), {}, played.care.leaving())
        places = played.care.places(WORDS.id, picture, {})
        assert [place.pod for place in places] == ["storm-supervisor-0", "storm-supervisor-2"]

    def test_stay_so_in_a_pass_that_sees_nothing(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        blind = Hold(HoldReason.CLUSTER_UNREACHABLE, "away")
        spec = TopologySpec(WORDS.name, AdoptSource(), supervisors=played.limits)
        played.care.follow({WORDS.name: spec}, PassReport(1.0, None, None, (((), blind),)), Mock())
        assert played.care.leaving() == {"s3"}


class TestWhatIsRefused:
    """A pass goes on; the topologies concerned are told, and show the reason until it is done."""

    @staticmethod
    def scene(scaled: ScaledIn) -> ScaledIn:
        scaled.care.concerns.now = lambda: scaled.now
        return scaled

    def test_scaling_is_tried_again_slowly_and_without_counting_passes_anew(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.pods.refusal = Forbidden("scale StatefulSet storm/storm-supervisor to 2: forbidden")
        for _ in range(3):
            played.run_pass()
        assert played.pods.asked == [2]
        assert played.told == [("ScaleRefused", "scale StatefulSet storm/storm-supervisor to 2: forbidden")]
        assert played.care.obstacles("words-1-1") == tuple(played.told)
        played.pods.refusal = None
        played.now += FIRST_RETRY_SECONDS
        played.run_pass()
        assert played.pods.asked == [2, 2]
        assert played.care.obstacles("words-1-1") == ()

    def test_scale_that_cannot_be_read_is_a_refusal_too(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.pods.unreadable = KubernetesError("read scale: no answer")
        played.run_pass()
        assert played.told == [("ScaleRefused", "read scale: no answer")]

    def test_set_that_is_not_there_is_said(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.care.namespace_of = lambda _: "storm"
        played.limits = ScaleLimits(1, 3, "storm-supervisors")
        played.run_pass()
        reason, words = played.told[0]
        assert (reason, played.pods.asked) == ("NoScaleTarget", [])
        assert "storm/storm-supervisors is seen; those seen: storm/storm-supervisor" in words
        assert played.care.obstacles("words-1-1") == ((reason, words),)

    def test_set_of_another_namespace_is_not_the_one_meant(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.care.namespace_of = lambda _: "team"
        played.limits = ScaleLimits(1, 3, "storm-supervisor")
        played.run_pass()
        assert (played.told[0][0], played.pods.asked) == ("NoScaleTarget", [])

    def test_more_used_pods_than_the_maximum_are_shown_until_there_are_no_more(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.where = placed(WORDS, {"spout": "s1", "count": ["s2", "s3"]})
        played.limits = ScaleLimits(1, 2)
        played.run_pass()
        ((reason, words),) = played.care.obstacles("words-1-1")
        assert (reason, words) in played.told
        assert (reason, words[:55]) == ("MaximumExceeded", "spec.supervisors.maximum is 2, and executors are on 3 o")
        played.limits = ScaleLimits(1, 3)
        played.run_pass()
        assert played.care.obstacles("words-1-1") == ()

    def test_who_no_longer_asks_for_pods_is_told_no_more(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.pods.refusal = Forbidden("no")
        played.run_pass()
        played.limits = None
        played.run_pass()
        assert played.care.obstacles("words-1-1") == ()

    def test_numbers_of_executors_are_asked_for_again_slowly_and_the_rest_goes_on(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.parallelism = ParallelismSpec(components={"count": ComponentParallelism(executors=1)})
        played.refuse_counts = RebalanceRefused("Nimbus refuses the rebalance of words-1-1: no")
        for _ in range(3):
            played.run_pass()
        assert played.counts_asked == 1
        assert ("ParallelismRefused", "Nimbus refuses the rebalance of words-1-1: no") in played.told
        assert played.care.obstacles("words-1-1")[0][0] == "ParallelismRefused"
        assert played.pods.asked == [2]
        played.parallelism = ParallelismSpec()
        played.run_pass()
        assert played.care.obstacles("words-1-1") == ()

    def test_nimbus_that_is_away_ends_the_pass(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.parallelism = ParallelismSpec(components={"count": ComponentParallelism(executors=1)})
        played.refuse_counts = NimbusUnreachable("away")
        with pytest.raises(NimbusUnreachable):
            played.run_pass()

    def test_pods_that_may_not_be_listed_are_taken_as_they_were(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.pods.allowed = {}
        for _ in range(3):
            played.care.see((resource("storm"),))
        assert len(played.care.limits.present) == 3
        assert [reason for reason, _ in played.told] == ["PodsNotListed"]

    def test_nothing_is_scaled_by_pods_as_they_once_were(self, scaled: ScaledIn) -> None:
        played = self.scene(scaled)
        played.care.see((resource("storm"),))
        played.pods.allowed = {"storm": tuple(pod("storm", ordinal) for ordinal in range(4))}
        played.pods.unlistable = KubernetesError("list supervisor pods: too many requests")
        played.care.hosts = lambda: {f"s{ordinal + 1}": host("storm", ordinal) for ordinal in range(4)}
        played.where = played.storm.slot_of = placed(WORDS, {"spout": "s1", "count": ["s1", "s4"]})
        for _ in range(CALM_PASSES):
            played.care.see((resource("storm"),))
            played.run_pass()
        assert played.pods.asked == [], "the fourth pod hosts executors"


def test_leaving_ordinals_are_those_of_the_scaled_set_only() -> None:
    other = replace(pod("storm", 1), name="big-1", stateful_set="big", subdomain="big")
    pods = {"storm": (pod("storm", 0), pod("storm", 1), other)}
    seen = care("n.storm:6627", pods, {"b": host("storm", 1), "c": "big-1.big.storm.svc.cluster.local"})
    seen.see((resource("storm"),))
    seen.scale = replace(seen.scale, leaving=frozenset({1}))
    seen.scaled = ScaledSet("storm", "storm-supervisor", pods["storm"])
    assert seen.leaving() == {"b"}


class TestExecutorsMovedByHand:
    """Told whatever the loop makes of them in the same pass, and what its own plans move never is."""

    BY_HAND: ClassVar[dict[str, tuple[str, str]]] = {
        "words": ("Drift", "somebody moved 1 executor, by no plan of the operator")
    }

    class Played:
        def __init__(self) -> None:
            self.scene = scene()
            self.care = care("n.storm:6627", {}, {})
            self.told: dict[str, tuple[str, str]] = {}
            self.care.tell = lambda topology, reason, words, _: self.told.update({topology: (reason, words)})

        def run(self, specs: Mapping[str, TopologySpec] = SPECS) -> Plan | Hold:
            """A pass, and what it has told alone."""
            self.told.clear()
            decision = self.scene.run(specs)
            self.care.tell_of_moves(self.scene.audience.reports[-1], self.scene.loop)
            return decision

        def move_by_hand(self) -> None:
            cluster, to = self.scene.cluster, WorkerSlot("s3", 6703)
            moved = min(cluster.assignment.slot_of)
            cluster.assignment = cluster.assignment.with_moves({moved: to})
            cluster.pids[to] = 999

    def test_are_told_where_the_same_pass_proposes_another_plan_for_it(self) -> None:
        played, recommend = self.Played(), with_mode(Mode.RECOMMEND)
        first = played.run(recommend)
        played.move_by_hand()
        second = played.run(recommend)
        assert isinstance(first, Plan)
        assert isinstance(second, Plan)
        assert first.id != second.id
        assert played.told == self.BY_HAND
        played.run(recommend)
        assert played.told == {}

    def test_are_told_where_the_same_pass_brings_them_back(self) -> None:
        played = self.Played()
        calm = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, cool_down_seconds=0.0))}
        while not isinstance(played.run(calm), Hold) or played.scene.loop.has_pending_plan:
            assert played.told == {}
        played.move_by_hand()
        assert isinstance(played.run(calm), Plan)
        assert played.told == self.BY_HAND
        played.run(calm)
        assert played.told == {}

    def test_are_told_while_a_plan_settles(self) -> None:
        played = self.Played()
        played.run()
        played.run()
        assert last_state(played.scene) is PlanState.SETTLING
        assert played.told == {}
        played.move_by_hand()
        played.run()
        assert played.told == self.BY_HAND

    @pytest.mark.parametrize("passes_that_see_nothing", [0, 1])
    def test_are_not_those_of_a_plan_that_was_cut_short(self, passes_that_see_nothing: int) -> None:
        played = self.Played()
        played.run(with_mode(Mode.OBSERVE))
        gone = Mock(side_effect=NimbusUnreachable("gone in the midst of it"))
        rebalance, played.scene.cluster.rebalance = played.scene.cluster.rebalance, gone  # type: ignore[method-assign]
        played.run()
        assert last_state(played.scene) is PlanState.APPLYING
        for _ in range(passes_that_see_nothing):
            played.scene.observer.error = NimbusUnreachable("still gone")
            played.run()
        played.scene.cluster.rebalance = rebalance  # type: ignore[method-assign]
        played.scene.observer.error = None
        played.run()
        assert last_state(played.scene) is PlanState.SETTLING
        assert played.scene.cluster.assignment.slot_of != SPREAD
        assert played.told == {}

    def test_are_not_those_of_a_plan_that_another_manager_put_in_force_meanwhile(self) -> None:
        played, other = self.Played(), self.Played()
        played.run(with_mode(Mode.OBSERVE))
        other.run()
        played.scene.cluster.assignment = other.scene.cluster.assignment
        played.scene.journal.kept = other.scene.journal.kept
        played.run()
        assert last_state(played.scene) is PlanState.SETTLING
        assert played.told == {}

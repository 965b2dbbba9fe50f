"""Events for pods without the CPU limit that they should have: once a problem, to those whom it concerns."""

from __future__ import annotations

from dataclasses import replace

from builders import chain_topology, placed, snapshot
from kube_builders import managed
from storm_operator.adapters.kube.pods import Pods, SupervisorPod
from storm_operator.adapters.observer import with_supervisors_as_told
from storm_operator.core.model import Supervisor
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.kube.enforced import places_of
from storm_operator.kube.pod_limits import PodLimits
from storm_operator.kube.resize_news import REPEATED_AFTER_SECONDS, ResizeNews

WORDS, OTHER = chain_topology("words", ("spout", 1)), chain_topology("other", ("spout", 1))
HOSTS = tuple(Supervisor(f"s{at}", f"sup-{at}.sup.storm.svc.cluster.local", (6700,)) for at in range(3))
SEEN = snapshot((WORDS, OTHER), HOSTS, {**placed(WORDS, {"spout": "s0"}), **placed(OTHER, {"spout": "s1"})})
INFEASIBLE = "Infeasible: node has 1 CPU"


def spec(enforcement: str = "Pod", mode: str = "Enforce") -> TopologySpec:
    found = managed(spec={"adopt": {}, "resources": {"enforcement": enforcement}, "scheduling": {"mode": mode}}).spec
    assert found is not None
    return found


class NoPods(Pods):
    def __init__(self) -> None:
        """Nothing is asked of an API server."""


class Scene:
    def __init__(self, **problems: str) -> None:
        self.now, self.told = 1000.0, list[tuple[str, str, str, bool]]()
        self.limits = PodLimits(NoPods(), lambda _: None, lambda: self.now)
        pods = (SupervisorPod("storm", f"sup-{at}", "sup", "sup", True, 600.0, 2000.0, 2000.0) for at in range(3))
        self.limits.present = tuple(pods)
        self.limits.problems = {("storm", name.replace("_", "-")): problem for name, problem in problems.items()}
        self.news = ResizeNews(self.limits, lambda *news: self.told.append(news), lambda: self.now)
        self.specs = {"words": spec(), "other": spec()}

    def tell(self, after_seconds: float = 10.0) -> list[str]:
        """One pass later: whom it told."""
        self.now += after_seconds
        before = len(self.told)
        self.news.tell_of(self.specs, SEEN)
        return [name for name, *_ in self.told[before:]]


def test_topologies_with_executors_on_the_pod_are_told() -> None:
    played = Scene(sup_1=INFEASIBLE)
    assert played.tell() == ["other"]
    words = "supervisor pod sup-1 has 600 millicores: Infeasible: node has 1 CPU"
    assert played.told == [("other", "ResizeRefused", words, True)]


def test_topologies_with_executors_on_a_pod_that_is_emptied_are_told() -> None:
    played = Scene(sup_1=INFEASIBLE)
    played.news.tell_of(played.specs, with_supervisors_as_told(SEEN, {}, ("s1",)))
    assert [name for name, *_ in played.told] == ["other"]


def test_problem_of_an_empty_pod_is_told_to_all_that_could_move_there() -> None:
    assert Scene(sup_2=INFEASIBLE).tell() == ["other", "words"]


def test_problem_of_another_storm_clusters_pod_is_told_nobody() -> None:
    played = Scene(green_0=INFEASIBLE)
    green = SupervisorPod("storm", "green-0", "green", "green", True, 600.0, 2000.0, 2000.0)
    played.limits.present = (green, *played.limits.present)
    assert played.tell() == []


def test_problem_of_a_pod_of_the_same_name_in_another_namespace_is_told_nobody() -> None:
    """Chart storm names pods after its release: two of one name, in namespaces that both are looked at."""
    played = Scene()
    played.limits.present = (replace(played.limits.present[1], namespace="green"), *played.limits.present)
    played.limits.problems = {("green", "sup-1"): INFEASIBLE}
    assert played.tell() == []
    assert not any(place.problem for place in places_of("other", SEEN, played.limits, {}))
    played.limits.problems[("storm", "sup-1")] = "Deferred: node is full"
    assert played.tell() == ["other"]
    assert played.told[0][2].endswith("Deferred: node is full")


def test_those_that_have_no_pods_resized_are_not_told() -> None:
    played = Scene(sup_2=INFEASIBLE)
    played.specs = {"words": spec("None"), "other": spec(mode="Recommend")}
    assert played.tell() == []


def test_problem_in_other_words_is_told_once_an_hour() -> None:
    played = Scene(sup_1="Deferred: used: 7900, capacity: 8000")
    played.tell()
    played.limits.problems = {("storm", "sup-1"): "Deferred: used: 7950, capacity: 8000"}
    assert played.tell() == []
    assert played.tell(REPEATED_AFTER_SECONDS) == ["other"]


def test_another_problem_is_told_at_once() -> None:
    played = Scene(sup_1="Deferred: used: 7900, capacity: 8000")
    played.tell()
    played.limits.problems = {("storm", "sup-1"): INFEASIBLE}
    assert played.tell() == ["other"]


def test_pod_whose_limit_is_not_known_is_told_of_without_it() -> None:
    played = Scene(sup_1="resize pod storm/sup-1 to 600m CPU: quota")
    played.limits.present = tuple(replace(pod, limit_millicores=None) for pod in played.limits.present)
    played.tell()
    assert played.told[0][2] == "supervisor pod sup-1: resize pod storm/sup-1 to 600m CPU: quota"

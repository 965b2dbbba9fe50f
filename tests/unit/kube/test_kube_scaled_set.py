"""Which StatefulSet is scaled; where that is not clear, the words for a person."""

from __future__ import annotations

from storm_operator.adapters.kube.pods import SupervisorPod
from storm_operator.kube.scaled_set import ScaledSet, scaled_set


def pod(namespace: str, of: str, ordinal: int = 0) -> SupervisorPod:
    return SupervisorPod(namespace, f"{of}-{ordinal}", of, of, True, 500.0, 500.0, 1000.0)


def host(one: SupervisorPod) -> str:
    return f"{one.name}.{one.subdomain}.{one.namespace}.svc.cluster.local"


A0, A1, B0 = pod("storm", "sup"), pod("storm", "sup", 1), pod("storm", "big")
ELSEWHERE = pod("team", "sup")


def test_the_one_of_the_clusters_supervisors_is_found_by_its_pods() -> None:
    assert scaled_set((), (A0, A1), (host(A1),)) == ScaledSet("storm", "sup", (A0, A1))


def test_supervisors_tell_the_numbers_of_their_pods_also_of_those_that_are_not_seen() -> None:
    seen = ScaledSet("storm", "sup", (A0,))
    others = [host(one) for one in (B0, ELSEWHERE)] + ["10.0.0.7", "sup", "sup-x", "sup-big-0.sup.storm.svc"]
    assert [seen.ordinal_of(one) for one in (host(A0), host(A1), "sup-12")] == [0, 1, 12]
    assert [seen.ordinal_of(one) for one in others] == [None] * len(others)


def test_the_only_one_is_not_taken_for_that_of_a_cluster_without_supervisors() -> None:
    """It may be another cluster's, in the same namespace."""
    words = scaled_set((), (A0, A1), ())
    assert words == (
        "spec.supervisors.statefulSet: this Storm cluster has no supervisor now, and without one nobody can tell which"
        " set is its own; name the one that is to be scaled; those seen: storm/sup"
    )
    assert scaled_set({("storm", "sup")}, (A0, A1), ()) == ScaledSet("storm", "sup", (A0, A1))


def test_the_one_that_was_known_stays_while_the_cluster_has_no_supervisor() -> None:
    known = ScaledSet("storm", "sup", (A0,))
    assert scaled_set((), (A0, A1, B0), (), known) == ScaledSet("storm", "sup", (A0, A1))
    assert scaled_set((), (A0, B0), (host(B0),), known) == ScaledSet("storm", "big", (B0,))
    words = scaled_set((), (B0,), (), known)
    assert words == (
        "spec.supervisors.statefulSet: no supervisor pod of StatefulSet storm/sup is seen; those seen: storm/big"
    )


def test_that_of_another_storm_cluster_is_no_other_choice() -> None:
    assert scaled_set((), (A0, A1, B0, ELSEWHERE), (host(A0),)) == ScaledSet("storm", "sup", (A0, A1))


def test_two_of_one_cluster_must_be_told_apart_by_a_person() -> None:
    words = scaled_set((), (A0, B0), (host(A0), host(B0)))
    assert (
        words
        == "spec.supervisors.statefulSet: supervisors belong to storm/big, storm/sup; name the one that is to be scaled"
    )


def test_named_one_is_taken_of_two() -> None:
    assert scaled_set({("storm", "big")}, (A0, B0), (host(A0), host(B0))) == ScaledSet("storm", "big", (B0,))


def test_name_that_no_pod_has_is_said_with_those_there_are() -> None:
    words = scaled_set({("storm", "supp")}, (A0, A1), (host(A0),))
    assert words == (
        "spec.supervisors.statefulSet: no supervisor pod of StatefulSet storm/supp is seen; those seen: storm/sup"
    )


def test_name_is_looked_for_in_the_resources_own_namespace_only() -> None:
    assert scaled_set({("team", "sup")}, (A0, A1, ELSEWHERE), ()) == ScaledSet("team", "sup", (ELSEWHERE,))
    assert isinstance(scaled_set({("team", "sup")}, (A0, A1), (host(A0),)), str)


def test_that_of_another_storm_cluster_is_none_at_all() -> None:
    """As where supervisors call themselves by address: of no pod is it known then whether executors are on it."""
    words = scaled_set((), (A0, A1), ("10.0.0.2", "10.0.0.1"))
    assert words == (
        "spec.supervisors.statefulSet: no supervisor pod that is seen is one of this Storm cluster's supervisors, "
        "which call themselves 10.0.0.1, 10.0.0.2; pods are told by their names (storm.local.hostname)"
    )
    assert scaled_set({("storm", "sup")}, (A0, A1), ("10.0.0.2", "10.0.0.1")) == words


def test_named_one_of_another_storm_cluster_is_not_taken() -> None:
    words = scaled_set({("storm", "big")}, (A0, B0), (host(A0),))
    assert words == (
        "spec.supervisors.statefulSet: no supervisor of this Storm cluster runs in a pod of StatefulSet storm/big"
    )


def test_two_names_for_one_cluster_are_one_too_many() -> None:
    words = scaled_set({("storm", "sup"), ("storm", "big")}, (A0, B0), ())
    assert isinstance(words, str)
    assert "storm/big, storm/sup are named for one Storm cluster" in words


def test_pods_of_no_set_cannot_be_scaled() -> None:
    words = scaled_set((), (SupervisorPod("storm", "lone", "", "", True, None, None, None),), ())
    assert isinstance(words, str)
    assert "nothing to be scaled" in words

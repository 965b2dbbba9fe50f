"""Which StatefulSet the operator scales, or why none. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from storm_operator.adapters.kube.pods import SupervisorPod

FIELD = "spec.supervisors.statefulSet"

NAMED_HOSTS = 3
"""So many are named in a sentence."""

SetKey = tuple[str, str]
"""(namespace, name)"""


@dataclass(frozen=True, slots=True)
class ScaledSet:
    """One StatefulSet and the supervisor pods of it that are seen."""

    namespace: str
    name: str
    pods: tuple[SupervisorPod, ...]

    def ordinal_of(self, host: str) -> int | None:
        """Of the pod, seen or not, that a supervisor runs in which calls itself `host`; None where it is none of these.

        One that is being deleted is not seen, and its supervisor may run on, as on a node that lost the API server.
        """
        pod = host.partition(".")[0]
        stateful_set, _, ordinal = pod.rpartition("-")
        is_own = stateful_set == self.name and ordinal.isdecimal() and replace(self.pods[0], name=pod).matches(host)
        return int(ordinal) if is_own else None


def scaled_set(
    named: Collection[SetKey],
    pods: Collection[SupervisorPod],
    hosts: Collection[str],
    known: ScaledSet | None = None,
) -> ScaledSet | str:
    """The one that resources name, each in its own namespace; else that of the pods that the cluster's `hosts` are.

    While it has none, the one that was `known` from the last pass: any other may be another cluster's. While it has
    `hosts`, one at least is a pod of the set: else that may be another cluster's, too, or nobody can tell which of its
    pods executors are on. A str says why there is none: what a person would have to change.
    """
    owned = [pod for pod in pods if pod.stateful_set]
    own = [pod for pod in owned if any(pod.matches(host) for host in hosts)]
    if hosts and owned and not own:
        return (
            f"{FIELD}: no supervisor pod that is seen is one of this Storm cluster's supervisors, which call "
            f"themselves {', '.join(sorted(hosts)[:NAMED_HOSTS])}; pods are told by their names (storm.local.hostname)"
        )
    wanted = sorted(set(named)) or sorted({_set_of(pod) for pod in own})
    if not wanted and not hosts and known is not None:
        wanted = [(known.namespace, known.name)]
    if len(wanted) > 1 and named:
        return f"{FIELD}: {_listed(wanted)} are named for one Storm cluster; name one of them everywhere"
    if len(wanted) > 1:
        return f"{FIELD}: supervisors belong to {_listed(wanted)}; name the one that is to be scaled"
    found = tuple(pod for pod in owned if wanted and _set_of(pod) == wanted[0])
    if found and hosts and not any(_set_of(pod) == wanted[0] for pod in own):
        return f"{FIELD}: no supervisor of this Storm cluster runs in a pod of StatefulSet {_listed(wanted)}"
    if found:
        return ScaledSet(*wanted[0], found)
    others = _listed(sorted({_set_of(pod) for pod in owned})) or "none"
    if not wanted and owned:
        return (
            f"{FIELD}: this Storm cluster has no supervisor now, and without one nobody can tell which set is its own;"
            f" name the one that is to be scaled; those seen: {others}"
        )
    if not wanted:
        return "spec.supervisors: no supervisor pod of any StatefulSet is seen: there is nothing to be scaled"
    return f"{FIELD}: no supervisor pod of StatefulSet {_listed(wanted)} is seen; those seen: {others}"


def _set_of(pod: SupervisorPod) -> SetKey:
    return pod.namespace, pod.stateful_set


def _listed(sets: Collection[SetKey]) -> str:
    return ", ".join("/".join(key) for key in sets)

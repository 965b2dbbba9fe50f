"""The API's own documents: what wraps views. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storm_operator.console.explain import HeldResizeView
from storm_operator.console.plan_view import PlanView
from storm_operator.console.watcher import PassLoads, PassPoint


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """One Storm cluster: what of it is new can be told by `passes` (the number of the newest) and `plan_changes`, which
    counts what changes between passes: plans, and what is said of StormTopologies that are not carried out.

    They begin anew with each `life`: when the operator restarts, and when the cluster is managed again after nobody had
    named it for a while.
    `pass_age_seconds` is how long ago the newest pass was told. To who asks by a tag that is news once a minute.
    `held_resizes`, by topology id: other numbers of executors that the load asks for and that are not given now.
    """

    name: str
    life: str
    passes: int
    plan_changes: int
    at_seconds: float | None
    pass_age_seconds: float | None
    period_seconds: float
    topologies: int
    executors: int
    held_resizes: Mapping[str, HeldResizeView]


@dataclass(frozen=True, slots=True)
class Clusters:
    """`instance` changes when the operator restarts. `approval`: `off`, `open` (whoever reaches this), or `token` (the
    caller's Kubernetes token). `trouble` says why there is nothing to be seen here, if so."""

    instance: str
    version: str
    approval: str
    trouble: str
    clusters: tuple[ClusterEntry, ...]


@dataclass(frozen=True, slots=True)
class HistoryDocument:
    """Oldest first; older ones are thinned out."""

    passes: tuple[PassPoint, ...]


@dataclass(frozen=True, slots=True)
class ForecastDocument:
    """Oldest first; older ones are thinned out."""

    passes: tuple[PassLoads, ...]


@dataclass(frozen=True, slots=True)
class Plans:
    """Newest first."""

    plans: tuple[PlanView, ...]


@dataclass(frozen=True, slots=True)
class ApprovalForm:
    """`verdict` is `approve` or `reject`."""

    verdict: str


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What became of it."""

    message: str


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong with the request, and what would be right."""

    message: str

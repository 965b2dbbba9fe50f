"""From what should run and what does run to what must be done: submit, resubmit, suspend, resume. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from storm_operator.core.topology_spec import AdoptSource, TopologySpec

WORKERS_KEY = "topology.workers"
FINGERPRINT_KEY = "storm_operator.source.fingerprint"
"""Conf key under which a submitted topology carries the fingerprint of what it was submitted from."""

SUBMITTED_BY_OTHERS = (
    "somebody else submitted it, so it is managed and not replaced: spec.jar, spec.flux and spec.config take effect"
    " once it was killed; where spec.deletionPolicy is absent it is left running when this StormTopology is deleted"
)


@dataclass(frozen=True, slots=True)
class RunningTopology:
    """A topology as Nimbus shows it; `fingerprint` is None when it was not submitted by this operator, or nobody can
    tell: `unreadable` then says why, in words of why it is not managed."""

    id: str
    name: str
    status: str
    fingerprint: str | None = None
    unreadable: str = ""

    @property
    def is_inactive(self) -> bool:
        return self.status == "INACTIVE"

    @property
    def is_being_rebalanced(self) -> bool:
        """Then Nimbus neither activates nor deactivates it, and does not say which of the two it is."""
        return self.status == "REBALANCING"

    @property
    def is_leaving(self) -> bool:
        return self.status == "KILLED"


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit `spec`; `fingerprint` goes into its conf."""

    spec: TopologySpec
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill `name`, because what it should be has changed; it is submitted anew once it is gone."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Suspend:
    name: str


@dataclass(frozen=True, slots=True)
class Resume:
    name: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be done now for `name`; `reason` says what is waited for."""

    name: str
    reason: str


Action = Submit | Kill | Suspend | Resume | Wait


def fingerprint(spec: TopologySpec, jar_sha256: str) -> str:
    """Identity of what a topology is made from: source, conf and the jar's content. Settings take no part."""
    source = {name: value for name, value in asdict(spec.source).items() if value is not None}
    parts = {"source": source, "config": dict(spec.config), "jar": jar_sha256}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def submission_conf(spec: TopologySpec, wanted_fingerprint: str) -> dict[str, object]:
    """The Storm conf that a submission of `spec` lays over that of the cluster."""
    workers = {} if spec.parallelism.workers is None else {WORKERS_KEY: spec.parallelism.workers}
    return {**workers, **spec.config, FINGERPRINT_KEY: wanted_fingerprint}


def next_action(
    spec: TopologySpec, running: RunningTopology | None, wanted_fingerprint: str, suspended_by_us: bool = False
) -> Action | None:
    """The one next step for `spec`, or None when all is as it should be.

    An adopted topology that its owner deactivated is left so: only what was suspended here is resumed here. A running
    topology without a fingerprint is someone else's, even if a jar is named: it is managed, not replaced.
    """
    adopted = isinstance(spec.source, AdoptSource)
    if running is None:
        if adopted:
            return Wait(spec.name, f"no topology {spec.name!r} runs; spec.adopt waits until someone submits it")
        return None if spec.suspend else Submit(spec, wanted_fingerprint)
    if running.is_leaving:
        return Wait(spec.name, "the old topology of that name is being killed")
    if not adopted and running.fingerprint is not None and running.fingerprint != wanted_fingerprint:
        return Kill(spec.name, "its jar, main class, arguments or config have changed")
    if running.is_being_rebalanced:
        return None
    if spec.suspend and not running.is_inactive:
        return Suspend(spec.name)
    if not spec.suspend and running.is_inactive and (suspended_by_us or not adopted):
        return Resume(spec.name)
    return None


def is_of_others(spec: TopologySpec, running: RunningTopology) -> bool:
    """Whether somebody else submitted what runs in the place of what `spec` would have submitted."""
    return running.fingerprint is None and not running.unreadable and not isinstance(spec.source, AdoptSource)


def by_name(topologies: tuple[RunningTopology, ...]) -> Mapping[str, RunningTopology]:
    return {topology.name: topology for topology in topologies}

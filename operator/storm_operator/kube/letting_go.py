"""What becomes of the topologies whose StormTopology is being deleted: killed, or left running, as their spec says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from storm_operator.assembly import Assembly
from storm_operator.core.lifecycle import RunningTopology
from storm_operator.core.model import name_of_topology
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.kube.calling_off import CallingOff
from storm_operator.kube.concerns import Concern, Concerns
from storm_operator.kube.managed import Managed
from storm_operator.kube.submission import JobSubmitter

LET_GO = "LetGo"
"""Reason of an event: the resource goes, and what runs for it may run on."""
KILL_REFUSED = "KillRefused"
"""Reason of condition `Degraded`, and of an event."""


@dataclass(frozen=True, slots=True)
class LettingGo:
    """`gone` collects the uids of resources whose topology no longer needs us; `tell` posts an event for a topology."""

    gone: set[str]
    submissions: CallingOff
    concerns: Concerns
    tell: Callable[[str, str, str, bool], None]
    say: Callable[[str], None]

    def follow(self, owners: Sequence[Managed], assembly: Assembly, submitter: JobSubmitter | None) -> bool:
        """See to those of `owners` that are being deleted; whether there is none left to see to."""
        deleted = [one for one in owners if one.is_being_deleted and one.uid not in self.gone]
        self.concerns.keep(KILL_REFUSED, {one.uid for one in deleted})
        leaving = [one for one in deleted if self.submissions.is_called_off(one, submitter)]
        if leaving:
            running = {topology.name: topology for topology in assembly.storm.running()}
            for one in leaving:
                self._let_go(one, running.get(one.spec.name) if one.spec is not None else None, assembly)
        return all(one.uid in self.gone for one in deleted)

    def _let_go(self, one: Managed, present: RunningTopology | None, assembly: Assembly) -> None:
        spec = one.spec
        if spec is None or present is None or not dies(spec, present):
            if present is not None and present.id in assembly.loop.being_moved:
                return  # its spouts may be paused: the next pass goes on with the plan, and nobody else would
            if present is not None:
                assembly.loop.applier.limits.lift(present.id)
                self._tell_what_nobody_can_tell(one, present)
            elif spec is not None:
                _forget_all_of(spec.name, assembly)
            self.gone.add(one.uid)
        elif not present.is_leaving:
            refused = Concern(KILL_REFUSED, one.uid, frozenset({spec.name}))
            killed = self.concerns.attempt(
                refused,
                lambda: self._kill(spec, assembly),
                lambda reason, message: self.tell(spec.name, reason, message, True),
            )
            if killed:
                # Its plan holds it until it has finished: without that, Nimbus' other scheduler would move its workers.
                assembly.loop.applier.limits.lift(present.id)

    def _tell_what_nobody_can_tell(self, one: Managed, present: RunningTopology) -> None:
        if present.unreadable and one.spec is not None and one.spec.dies_with_resource:
            why = f"{present.unreadable}, and nobody can tell whether the operator submitted it"
            self.tell(one.spec.name, LET_GO, f"{present.id} runs on: {why}; `storm kill` ends it", True)

    def _kill(self, spec: TopologySpec, assembly: Assembly) -> None:
        self.say(f"{spec.name}: its StormTopology is deleted; killed after {spec.kill_wait_seconds} s")
        assembly.storm.kill(spec.name, spec.kill_wait_seconds)


def _forget_all_of(name: str, assembly: Assembly) -> None:
    """Delete what is kept for topologies of that name, none of which runs: there may be no later pass that would."""
    for topology_id in assembly.store.planned_topologies():
        if name_of_topology(topology_id) == name:
            assembly.store.delete_plan(topology_id)


def dies(spec: TopologySpec, present: RunningTopology) -> bool:
    """Pure: whether `present` is killed with its resource: what others submitted, only where that is asked for."""
    is_of_others = present.fingerprint is None and not present.is_leaving
    return spec.dies_with_resource and not (is_of_others and spec.deletion_policy is None)

"""How much CPU each executor may use, for the agents to enforce: risen before a move, with demand between plans."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from storm_operator.adapters.errors import MalformedDocument
from storm_operator.apply_ports import PlanDocuments
from storm_operator.core.decision import Plan
from storm_operator.core.model import Executor

WARM_UP_FACTOR = 2.0

BETWEEN_PLANS = ""
"""Stands for the plan id in CPU limits that follow demand while no plan is applied."""


@dataclass(frozen=True, slots=True)
class CpuLimits:
    """The limits in force, one document for each topology."""

    documents: PlanDocuments

    def hold(self, topology_id: str) -> bool:
        """Whether executors of the topology are, or may be, held to limits."""
        try:
            return bool(self.documents.read_cpu_limits(topology_id))
        except MalformedDocument:
            return True

    def in_force(self, topology_id: str) -> Mapping[Executor, float]:
        """None where they cannot be read: they are written anew as a whole, and nothing else must wait for them."""
        try:
            return self.documents.read_cpu_limits(topology_id)
        except MalformedDocument:
            return {}

    def follow(
        self, topology_id: str, limits: Mapping[Executor, float], running: Collection[Executor]
    ) -> Mapping[Executor, float]:
        """Between plans: write `limits` where they differ from those in force. Those in force then.

        Of those `running`, one that `limits` does not name (its demand is unknown) keeps the limit that it has. One
        that has ended keeps none: it may come back with other tuples, as where numbers of executors fall and rise.
        """
        in_force = self.in_force(topology_id)
        own = {executor: limit for executor, limit in limits.items() if executor.topology_id == topology_id}
        wanted = {**{executor: limit for executor, limit in in_force.items() if executor in running}, **own}
        if wanted != dict(in_force):
            self.documents.write_cpu_limits(topology_id, BETWEEN_PLANS, wanted)
        return wanted

    def rise(
        self, topology_id: str, limits: Mapping[Executor, float], held: Collection[Executor] = ()
    ) -> Mapping[Executor, float]:
        """While a plan settles its limits stand, but whoever needs more has it at once. Those in force then.

        Those who are `held` for the sake of higher priorities have what `limits` says, also while their code is slow.
        """
        in_force = self.in_force(topology_id)
        wanted = {
            executor: limits[executor] if executor in held else max(limit, limits.get(executor, 0.0))
            for executor, limit in in_force.items()
        }
        if wanted != dict(in_force):
            self.documents.write_cpu_limits(topology_id, BETWEEN_PLANS, wanted)
        return wanted

    def lift(self, topology_id: str) -> None:
        """Nobody is to be held to a limit any more."""
        if self.hold(topology_id):
            self.documents.write_cpu_limits(topology_id, BETWEEN_PLANS, {})

    def raise_for(self, plan: Plan) -> None:
        """Limits rise before a move: nobody may starve while both old and new place need CPU."""
        for topology_id in plan.topology_ids:
            old = self.in_force(topology_id)
            new = _limits_of(plan, topology_id)
            # An executor without a limit so far is not given one by a move that is not finished.
            raised = {executor: max(millicores, new.get(executor, 0.0)) for executor, millicores in old.items()}
            self.documents.write_cpu_limits(topology_id, plan.id, raised)

    def settle_after(self, plan: Plan) -> None:
        """Limits fall after a move; in restarted workers not yet to the plan's: code that is not compiled costs more.

        Once the plan is verified the limits follow demand (`follow`).
        """
        settling = _settling_limits(plan)
        for topology_id in plan.topology_ids:
            limits = {executor: settling[executor] for executor in _limits_of(plan, topology_id)}
            self.documents.write_cpu_limits(topology_id, plan.id, limits)


def _settling_limits(plan: Plan) -> dict[Executor, float]:
    """The limits with which the plan begins to settle: none beyond the ceiling. Pure."""
    restarted = frozenset(plan.restarted_workers)
    ceiling = math.inf if plan.cpu_ceiling_millicores is None else plan.cpu_ceiling_millicores
    return {
        executor: min(ceiling, WARM_UP_FACTOR * limit) if plan.target.slot_of.get(executor) in restarted else limit
        for executor, limit in plan.cpu_limits_millicores.items()
    }


def _limits_of(plan: Plan, topology_id: str) -> dict[Executor, float]:
    return {e: limit for e, limit in plan.cpu_limits_millicores.items() if e.topology_id == topology_id}

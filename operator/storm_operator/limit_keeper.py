"""Which topologies' executors are held to CPU limits, period after period: between plans, and while one settles."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from storm_operator.apply_ports import PlanDocuments
from storm_operator.core.groups import Group
from storm_operator.core.model import Executor
from storm_operator.core.plan_record import PlanRecord
from storm_operator.core.served_first import Served
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.cpu_limits import CpuLimits
from storm_operator.loop_ports import LoopMemory


@dataclass(frozen=True, slots=True)
class LimitKeeper:
    """A view of the loop's memory, which knows whose executors are held: it keeps nothing itself."""

    memory: LoopMemory
    limits: CpuLimits
    documents: PlanDocuments

    def take_over(self) -> None:
        """The limits that an earlier life of the operator left are ours from now on, to follow or to lift."""
        self.memory.limited |= frozenset(filter(self.limits.hold, self.documents.planned_topologies()))

    def lift_others(self, managed: AbstractSet[str]) -> None:
        """Nobody asks any more that those who are not `managed` be held."""
        for topology_id in sorted(self.memory.limited - managed):
            self.limits.lift(topology_id)
        self.memory.limited = frozenset(self.memory.limited & managed)

    def follow(
        self,
        snapshot: ClusterSnapshot,
        groups: tuple[Group, ...],
        served: Served,
        unmeasured: AbstractSet[str],
        pending: PlanRecord | None,
    ) -> Mapping[Executor, float]:
        """Limits follow demand in every period, plan or no plan: they cost no restart. Of `unmeasured` topologies they
        stay: demand is unknown, and of the plan that is `pending` they do not fall, but for those who are held to less
        than they need. Those in force then."""
        in_force: dict[Executor, float] = {}
        running = frozenset(executor for topology in snapshot.topologies for executor in topology.executors)
        unsettled = frozenset(pending.plan.topology_ids) if pending is not None else frozenset()
        if pending is not None and pending.enforce_cpu:
            self.memory.limited |= unsettled
        for group in groups:
            for topology_id in group.topology_ids:
                settles = topology_id in unsettled  # its limits are those of the plan, or more
                if not group.are_held:
                    self.limits.lift(topology_id)
                    self.memory.limited -= {topology_id}
                    continue
                if not settles:
                    self.memory.limited |= {topology_id}
                if topology_id in unmeasured:
                    in_force |= self.limits.in_force(topology_id)
                elif settles:
                    in_force |= self.limits.rise(topology_id, served.limits, served.needs_of_held)
                else:
                    in_force |= self.limits.follow(topology_id, served.limits, running)
        return in_force

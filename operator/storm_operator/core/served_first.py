"""Where a supervisor cannot carry what is on it: whose executors are held to less than they need. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.groups import Group
from storm_operator.core.lasting_demand import BARELY_WAITING_FRACTION, waited_fraction
from storm_operator.core.model import Assignment, Executor, read_only
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.worker_overhead import worker_overhead

STEP_MILLICORES = 10.0
"""Limits below the need are whole steps: they are not written anew for every little change. None is below one step: a
limit of nothing is none that anybody could enforce."""


@dataclass(frozen=True, slots=True)
class Served:
    """CPU limits in millicores. `needs_of_held` is what executors that are held to less than they need needed when
    nobody held them: while they are held, what they wait for is never offered, and need does not show it."""

    limits: Mapping[Executor, float] = field(default_factory=dict)
    needs_of_held: Mapping[Executor, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", read_only(self.limits))
        object.__setattr__(self, "needs_of_held", read_only(self.needs_of_held))

    def remembering(self, before: Served, snapshot: ClusterSnapshot) -> Served:
        """With what `before` has of executors that were held and whose demand nobody knows now, as after any plan."""
        there = {executor for topology in snapshot.topologies for executor in topology.executors}
        needs = {e: need for e, need in before.needs_of_held.items() if e in there and e not in self.limits}
        return Served({**{e: before.limits[e] for e in needs}, **self.limits}, {**needs, **self.needs_of_held})


NOBODY_SERVED = Served()


def serve_by_priority(
    snapshot: ClusterSnapshot,
    demand: Demand,
    groups: Sequence[Group],
    priority: Mapping[str, int],
    assignment: Assignment | None = None,
) -> Served:
    """Limits are what `demand` gives, but less for lower priorities on supervisors that are too small.

    There executors are served in the order of their topology's `priority` (by topology id); those that what is left
    does not suffice for share it by need, and none is given less than its topology's floor, or than a step. The highest
    priority on a supervisor is never held back, nor is a topology that nobody manages. `demand` has what `hidden_needs`
    tells. Who is beside whom is as in `assignment`, to which a plan brings them; None: as in the snapshot.
    """
    if len(set(priority.values())) < 2:
        return Served(demand.millicores)
    floors = {i: group.resources.floor_millicores for group in groups for i in group.topology_ids}
    headroom = {i: group.scheduling.headroom_fraction for group in groups for i in group.topology_ids}
    overhead = worker_overhead(snapshot)
    # Who is not measured for a while still runs: what it leaves to others is what it needed lately leaves to them.
    needs = {**demand.peak_millicores, **demand.of_now().room_millicores}
    limits = dict(demand.millicores)
    needs_of_held: dict[Executor, float] = {}
    residents = (snapshot.assignment if assignment is None else assignment).residents()
    for supervisor in snapshot.supervisors:
        if supervisor.cpu_capacity_millicores is not None:
            known = [executor for executor in residents.get(supervisor.id, ()) if executor in needs]
            # Of those who live there: what others ask for elsewhere leaves no CPU of this supervisor unused.
            filled = min((headroom[e.topology_id] for e in known if e.topology_id in headroom), default=1.0)
            budget = filled / overhead * supervisor.cpu_capacity_millicores
            scarce = _where_too_little(known, needs, priority, budget)
            for executor, share in scarce.items():
                if executor not in limits:
                    continue
                limits[executor] = min(limits[executor], max(floors[executor.topology_id], share, STEP_MILLICORES))
                needs_of_held[executor] = needs[executor]
    return Served(limits, needs_of_held)


def hidden_needs(before: Served, snapshot: ClusterSnapshot, groups: Sequence[Group]) -> Mapping[Executor, float]:
    """Millicores that executors need whose load does not show it: they still wait for the limits that `before` has.

    It is what they needed when nobody held them. Executors of one topology wait for each other: that one of them has
    CPU to spare says nothing; nor does it that nobody measured any of them.
    """
    resources_of = {i: group.resources for group in groups for i in group.topology_ids}
    held = {e: need for e, need in before.needs_of_held.items() if e.topology_id in resources_of}
    measured = {e.topology_id for e, load in snapshot.loads.items() if load.cpu_millicores is not None and e in held}
    waiting = {
        e.topology_id
        for e in held
        if waited_fraction(e, before.limits[e], snapshot, resources_of[e.topology_id]) >= BARELY_WAITING_FRACTION
    }
    return {e: need for e, need in held.items() if e.topology_id in waiting or e.topology_id not in measured}


def _where_too_little(
    executors: Iterable[Executor], needs: Mapping[Executor, float], priority: Mapping[str, int], budget: float
) -> Mapping[Executor, float]:
    """The share of each executor that `budget` does not suffice for, once those of higher priority are served."""
    tiers: dict[int, list[Executor]] = {}
    for executor in executors:
        if executor.topology_id in priority:
            tiers.setdefault(priority[executor.topology_id], []).append(executor)
        else:
            budget -= needs[executor]
    shares: dict[Executor, float] = {}
    for place, tier in enumerate(sorted(tiers, reverse=True)):
        wanted = math.fsum(needs[executor] for executor in tiers[tier])
        left = max(0.0, budget)
        if place > 0 and wanted > left:
            shares |= {e: STEP_MILLICORES * (needs[e] * left / wanted // STEP_MILLICORES) for e in tiers[tier]}
        budget -= wanted
    return shares

"""Where a supervisor cannot carry what is on it: whose executors are held to less than they need. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from storm_operator.core.groups import Group
from storm_operator.core.model import Demand, Executor
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.worker_overhead import worker_overhead

STEP_MILLICORES = 10.0
"""Limits below the need are whole steps: they are not written anew for every little change."""


def limits_by_priority(
    snapshot: ClusterSnapshot, demand: Demand, groups: Sequence[Group], priority: Mapping[str, int]
) -> Mapping[Executor, float]:
    """CPU limits in millicores: what `demand` gives, but less for lower priorities on supervisors that are too small.

    There executors are served in the order of their topology's `priority` (by topology id); those that what is left
    does not suffice for share it by need, and none is given less than its topology's floor. The highest priority on a
    supervisor is never held back, nor is a topology that nobody manages.
    """
    if len(set(priority.values())) < 2:
        return demand.millicores
    floors = {i: group.resources.floor_millicores for group in groups for i in group.topology_ids}
    filled_share = min(group.scheduling.headroom_fraction for group in groups) / worker_overhead(snapshot)
    needs = demand.of_now().room_millicores
    limits = dict(demand.millicores)
    residents = snapshot.assignment.residents()
    for supervisor in snapshot.supervisors:
        if supervisor.cpu_capacity_millicores is not None:
            budget = filled_share * supervisor.cpu_capacity_millicores
            known = [executor for executor in residents.get(supervisor.id, ()) if executor in limits]
            scarce = _where_too_little(known, needs, priority, budget)
            for executor, share in scarce.items():
                limits[executor] = min(limits[executor], max(floors[executor.topology_id], share))
    return limits


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

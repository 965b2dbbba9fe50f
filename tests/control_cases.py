"""Ten executors of 90 millicores on supervisors of 1000, at a time when controllers adjust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from builders import NOW_SECONDS, chain_topology, placement_settings, same_demand, snapshot, supervisors
from placement_cases import Case
from storm_operator.core.model import Assignment, ExecutorLoad
from storm_operator.core.placement.signature import PlacementPolicy
from storm_operator.core.snapshot import LoadPeriod

TOPOLOGY = chain_topology("t", ("spout", 2), ("bolt", 8))
EACH = 90.0
DUE = 1020.0


def crowded(
    *,
    other: Mapping[str, float] | None = None,
    past: Mapping[str, Sequence[float]] | None = None,
    now_seconds: float = DUE,
    count: int = 3,
    **parameters: float,
) -> Case:
    """All executors in s1's first slot. `other` is CPU that is not Storm's, `past` the CPU of periods before this."""
    machines = supervisors(count)
    slot_of = dict.fromkeys(TOPOLOGY.executors, machines[0].slots[0])
    loads = dict.fromkeys(TOPOLOGY.executors, ExecutorLoad(cpu_millicores=EACH))
    picture = snapshot((TOPOLOGY,), machines, slot_of, loads=loads)
    picture = replace(picture, taken_at_seconds=now_seconds, period_seconds=10.0)
    case = Case(picture, same_demand((TOPOLOGY,), EACH), placement_settings((TOPOLOGY,)))
    case = case.under(parameters=tuple(sorted(parameters.items())))
    return measured(case, other or {}, past or {})


def cpu_of(assignment: Assignment, other: Mapping[str, float], supervisor_id: str) -> float:
    inside = sum(slot.supervisor_id == supervisor_id for slot in assignment.slot_of.values())
    return EACH * inside + other.get(supervisor_id, 0.0)


def measured(case: Case, other: Mapping[str, float], past: Mapping[str, Sequence[float]]) -> Case:
    """The case with what agents would measure; in the past the same as now where nothing is given."""
    now = {m.id: cpu_of(case.snapshot.assignment, other, m.id) for m in case.snapshot.supervisors}
    length = max((len(series) for series in past.values()), default=0)
    before = tuple(
        LoadPeriod(case.snapshot.taken_at_seconds - 10.0 * (length - at), 10.0, {}, {n: s[at] for n, s in past.items()})
        for at in range(length)
    )
    history = (*before, LoadPeriod(case.snapshot.taken_at_seconds, 10.0, {}, now))
    return replace(case, snapshot=replace(case.snapshot, supervisor_cpu_millicores=now, history=history))


def after_adjustments(policy: PlacementPolicy, case: Case, rounds: int, other: Mapping[str, float]) -> Case:
    """What is in force after so many adjustments, each measured for a while before the next."""
    for number in range(rounds):
        placed = policy(case.snapshot, case.demand, case.settings)
        assert isinstance(placed, Assignment), placed
        later = replace(case.snapshot, assignment=placed, taken_at_seconds=NOW_SECONDS + 20.0 + 30.0 * number)
        case = measured(replace(case, snapshot=later), other, {})
    return case

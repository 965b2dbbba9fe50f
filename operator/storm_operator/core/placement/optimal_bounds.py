"""What can be told about every assignment without solving anything."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from storm_operator.core.placement.optimal_model import ExactModel

UNIT_MILLICORES = 1e-3
"""CPU as whole numbers, for reachable sums and for CP-SAT. Finer units made CP-SAT's presolve lose the optimum."""

TOO_MANY_SUMS = 50_000


def overload_caps(model: ExactModel, ceiling: float) -> tuple[float, ...]:
    """Millicores beyond its room that each supervisor can have in an assignment that costs at most `ceiling`.

    Its overload cannot cost more than the ceiling leaves; and when no set of executors fills a supervisor just that
    little beyond its room, it has none. Then its capacity is a plain limit, which solvers reason about much better.
    """
    spare = max(0.0, ceiling - least_cost(model)) * (1.0 + 1e-9)
    most = spare / model.overload_price if model.overload_price > 0.0 else inf
    sums = _reachable_sums(model.demand)
    return tuple(_cap(room, most, sum(model.demand), sums) for room in model.room)


def least_cost(model: ExactModel) -> float:
    """What every assignment costs at least: nobody overloaded, every pair and every worker as cheap as can be."""
    return (
        model.constant
        + sum(min(min(row) for row in pair.cost) for pair in model.pairs)
        + sum(min(row) for row in model.place_cost)
        + (0.0 if any(model.in_use_anyway) or not model.executors else model.supervisor_price)
        - sum(worker.restart_price for worker in model.keepable)
    )


def _cap(room: float, most: float, everything: float, sums: Sequence[float] | None) -> float:
    cap = max(0.0, min(most, everything - room))
    if cap == 0.0 or sums is None or room < 0.0:
        return cap
    slip = UNIT_MILLICORES / 10.0
    return cap if any(room + slip < total <= room + cap + slip for total in sums) else 0.0


def _reachable_sums(demand: Sequence[float]) -> list[float] | None:
    """The sums of all subsets, or None when there are too many to list."""
    sums = {0}
    for each in demand:
        units = round(each / UNIT_MILLICORES)
        sums |= {total + units for total in sums}
        if len(sums) > TOO_MANY_SUMS:
            return None
    return [total * UNIT_MILLICORES for total in sorted(sums)]

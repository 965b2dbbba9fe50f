"""Memory that a topology declares beyond what supervisors have, and the plans of those beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from builders import (
    NOW_SECONDS,
    chain_topology,
    component_load,
    even_traffic,
    history,
    placed,
    placement_settings,
    same_demand,
    snapshot,
    supervisors,
)
from storm_operator.core.decide import decide
from storm_operator.core.decision import Decision, Hold, HoldReason, Plan
from storm_operator.core.decision_memory import DecisionMemory
from storm_operator.core.model import Assignment, Topology
from storm_operator.core.settings import SchedulingSettings

LINE, OTHER = (chain_topology(name, ("spout", 1), ("bolt", 1)) for name in ("line", "other"))
APART = placed(LINE, {"spout": "s1:6700", "bolt": "s2:6700"})
TOGETHER = placed(LINE, {"spout": "s1:6700", "bolt": "s1:6700"})
ELSEWHERE = placed(OTHER, {"spout": "s3:6701", "bolt": "s3:6701"})


def decided(
    others_mb: float, line_mb: float | None = None, per_second: float = 2000.0, movable: Sequence[Topology] = (LINE,)
) -> Decision:
    """Of a proposal to bring the two of `line` together, who use the network, on supervisors of 4,096 MB."""
    line, other = (
        replace(one, components=tuple(replace(c, declared_memory_mb=megabytes) for c in one.components))
        for one, megabytes in ((LINE, line_mb), (OTHER, others_mb))
    )
    loads = {component.name: [component_load(per_second)] for component in LINE.components}
    seen = snapshot(
        (line, other),
        tuple(replace(machine, memory_mb=4096.0) for machine in supervisors(3)),
        APART | ELSEWHERE,
        rates=even_traffic(LINE, per_second) | even_traffic(OTHER, per_second),
        periods=history("line", loads),
    )
    return decide(
        seen,
        same_demand([LINE, OTHER], 100.0),
        Assignment(TOGETHER | ELSEWHERE),
        placement_settings(movable, scheduling=SchedulingSettings(minimum_periods=1)),
        DecisionMemory(),
        now_seconds=NOW_SECONDS,
        plan_id="p",
    )


@pytest.mark.parametrize("megabytes", [1000.0, 5000.0, 1e6])
@pytest.mark.parametrize("movable", [(LINE,), (LINE, OTHER)], ids=["others stay", "all may move"])
def test_however_much_is_declared_that_finds_no_room_anywhere_a_gain_is_one(
    megabytes: float, movable: Sequence[Topology]
) -> None:
    assert planned(megabytes, movable).gain_percent == pytest.approx(planned(0.0, movable).gain_percent)


def planned(others_mb: float, movable: Sequence[Topology]) -> Plan:
    plan = decided(others_mb, movable=movable)
    assert isinstance(plan, Plan)
    return plan


def test_its_own_that_finds_no_room_with_the_plan_still_counts() -> None:
    hold = decided(0.0, line_mb=3000.0)
    assert isinstance(hold, Hold)
    assert hold.reason is HoldReason.GAIN_TOO_SMALL

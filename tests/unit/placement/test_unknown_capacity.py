"""Supervisors whose CPU nobody has measured, or that were measured to have none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import chain_topology, placed, placement_settings, same_demand, snapshot, supervisors
from placement_cases import Case, placed_or_fail
from storm_operator.core.model import Assignment
from storm_operator.core.placement.aniello_online import place_aniello_online
from storm_operator.core.placement.bearable import is_busy
from storm_operator.core.placement.capacity import cpu_capacities
from storm_operator.core.placement.etw_wtn import place_etw_wtn
from storm_operator.core.placement.signature import PlacementPolicy

AT_A_CHECK = 1050.0
"""When `etw-wtn` looks; `aniello-online` waits for nothing as long as somebody has no place."""
CHAIN = replace(chain_topology("chain", ("spout", 2), ("bolt", 2)), num_workers=2)
SPOUT_1, SPOUT_2, BOLT_1, BOLT_2 = CHAIN.executors
STREAMS = {(SPOUT_1, BOLT_2): 100.0, (SPOUT_2, BOLT_1): 90.0, (SPOUT_1, BOLT_1): 1.0}
"""The two workers exchange tuples, too: without a bound they go to one supervisor."""
TWO_PHASES = pytest.mark.parametrize("policy", [place_aniello_online, place_etw_wtn])


def case_with(*capacities: float | None) -> Case:
    machines = tuple(
        replace(machine, cpu_capacity_millicores=capacity)
        for machine, capacity in zip(supervisors(len(capacities)), capacities, strict=True)
    )
    only_one = {SPOUT_1: placed(CHAIN, {"spout": ["s1", "s2"], "bolt": ["s1", "s2"]})[SPOUT_1]}
    picture = replace(snapshot((CHAIN,), machines, only_one, rates=STREAMS), taken_at_seconds=AT_A_CHECK)
    return Case(picture, same_demand((CHAIN,), 400.0), placement_settings((CHAIN,)))


@TWO_PHASES
def test_an_unmeasured_supervisor_takes_as_much_as_the_smallest_measured_one(policy: PlacementPolicy) -> None:
    def place(*capacities: float | None) -> Assignment:
        case = case_with(*capacities)
        return placed_or_fail(policy(case.snapshot, case.demand, case.settings))

    assert place(None, 1000.0, 1200.0) == place(1000.0, 1000.0, 1200.0)
    assert len(place(None, 1000.0, 1200.0).used_supervisors()) == 2


@TWO_PHASES
def test_where_nobody_was_measured_nothing_bounds_a_supervisor(policy: PlacementPolicy) -> None:
    case = case_with(None, None)
    placement = placed_or_fail(policy(case.snapshot, case.demand, case.settings))
    assert len(placement.used_supervisors()) == 1


def test_a_supervisor_that_was_measured_to_have_nothing_counts_with_next_to_nothing() -> None:
    capacities = cpu_capacities(case_with(0.0, 2398.0, None).snapshot)
    assert 0.0 < capacities["s1"] <= 1.0
    assert capacities["s2"] == 2398.0
    assert capacities["s3"] == capacities["s1"], "the smallest that was measured"


@pytest.mark.parametrize(("used", "is_so"), [(0.0, False), (0.5, False), (1.0, True), (400.0, True)])
def test_a_supervisor_that_has_nothing_is_busy_as_soon_as_anything_runs_there(used: float, is_so: bool) -> None:
    seen = replace(case_with(0.0, 1000.0, None).snapshot, supervisor_cpu_millicores={"s1": used})
    assert is_busy(seen.supervisors[0], seen) is is_so

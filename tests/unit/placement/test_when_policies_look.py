"""When a policy looks for something better, told from outside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders import PERIOD_SECONDS, chain_topology, placed, placement_settings, snapshot, supervisors
from storm_operator.core.model import Executor, WorkerSlot
from storm_operator.core.placement.registry import seconds_until_it_looks
from storm_operator.core.settings import SchedulingSettings
from storm_operator.core.snapshot import LoadPeriod

LINE = chain_topology("line", ("spout", 1), ("bolt", 1))
HOME = placed(LINE, {"spout": "s1", "bolt": "s2"})


def looks_in(
    policy: str, at_seconds: float, used: float = 0.0, where: Mapping[Executor, WorkerSlot] = HOME
) -> float | None:
    """Of a cluster whose first supervisor of 1,000 millicores has used that much for the last six periods."""
    periods = tuple(
        LoadPeriod(at_seconds - back * PERIOD_SECONDS, PERIOD_SECONDS, {}, {"s1": used}) for back in reversed(range(6))
    )
    seen = replace(snapshot((LINE,), supervisors(2), where, periods=periods), taken_at_seconds=at_seconds)
    scheduling = SchedulingSettings(policy=policy)
    return seconds_until_it_looks(seen, replace(placement_settings((LINE,)), scheduling=scheduling))


@pytest.mark.parametrize("policy", ["adaptive", "even", "liu"])
def test_policies_without_a_period_look_in_each_pass(policy: str) -> None:
    assert looks_in(policy, 617.0) is None


@pytest.mark.parametrize(("policy", "until"), [("genetic", 43.0), ("fuzzy", 13.0), ("t-storm", 283.0)])
def test_the_others_look_when_their_period_has_passed(policy: str, until: float) -> None:
    assert looks_in(policy, 617.0) == until
    assert looks_in(policy, 605.0) is None


def test_dqos_looks_whenever_the_loop_of_one_of_its_supervisors_is_due() -> None:
    """That of the second of two begins 15 s after the first one's."""
    assert looks_in("dqos", 627.0) == 3.0
    assert looks_in("dqos", 635.0) is None, "the first one's at 630"
    assert looks_in("dqos", 642.0) == 3.0
    assert looks_in("dqos", 617.0) is None, "the second one's at 615"


def test_two_look_at_once_where_a_supervisor_is_overloaded() -> None:
    for policy in ("t-storm", "aniello-online"):
        assert looks_in(policy, 617.0, used=950.0) is None
    assert looks_in("etw-wtn", 617.0, used=950.0) == 33.0, "its monitors look at the interval"


@pytest.mark.parametrize(("policy", "until"), [("t-storm", 283.0), ("aniello-online", 23.0)])
def test_they_do_not_where_it_runs_nothing_that_they_may_move(policy: str, until: float) -> None:
    elsewhere = placed(LINE, {"spout": "s2", "bolt": "s2"})
    assert looks_in(policy, 617.0, used=950.0, where=elsewhere) == until


def test_all_look_where_an_executor_has_no_place() -> None:
    lost = {e: at for e, at in HOME.items() if e.component == "spout"}
    assert looks_in("genetic", 617.0, where=lost) is None

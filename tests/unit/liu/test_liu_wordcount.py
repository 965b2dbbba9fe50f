"""Forecast, demand, Liu's placement and decide in a closed loop: the paper's WordCount, regular load (section V-B).

Three supervisors of six cores, four executors a component, a load that rises and falls within five minutes each, up to
what R-Storm needs two supervisors for. The paper used 2.6 workers and 1.6 supervisors on average.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from statistics import fmean

import pytest

from builders import NOW_SECONDS, PERIOD_SECONDS, chain_topology, placement_settings, snapshot, supervisors
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decide import DecisionMemory, decide
from storm_operator.core.decision import Plan
from storm_operator.core.demand import estimate_demand
from storm_operator.core.model import Assignment, Executor
from storm_operator.core.placement.liu import place_liu
from storm_operator.core.settings import ResourceSettings
from storm_operator.core.snapshot import ComponentLoad, LoadPeriod

WORDS = chain_topology("words", ("spout", 4), ("split", 4), ("count", 4), stateful=("count",))
TUPLES_FOR_EACH_LINE = {"spout": 1.0, "split": 1.0, "count": 6.0}
MILLICORES_FOR_EACH = {"spout": 0.6, "split": 0.9, "count": 0.18}
PEAK_LINES_PER_SECOND = 2400.0
PERIODS = 120


@dataclasses.dataclass(frozen=True)
class Step:
    """One period: what every executor needed, what it had been given for it, and where everything is."""

    needed: Mapping[Executor, float]
    given: Demand | None
    assignment: Assignment
    plan: Plan | None


def lines_per_second(period: int) -> float:
    """Up for 30 periods, down for 30."""
    return PEAK_LINES_PER_SECOND * (1 + min(period % 60, 60 - period % 60)) / 31.0


def measured(period: int) -> LoadPeriod:
    lines = lines_per_second(period)
    loads = {}
    for name, tuples in TUPLES_FOR_EACH_LINE.items():
        rate = lines * tuples
        emitted = 6.0 * rate if name == "split" else rate
        loads["words", name] = ComponentLoad(rate, rate, emitted, 0.0, MILLICORES_FOR_EACH[name] * rate)
    return LoadPeriod(NOW_SECONDS + period * PERIOD_SECONDS, PERIOD_SECONDS, loads, {})


def traffic(lines: float) -> dict[tuple[Executor, Executor], float]:
    return {
        (source, target): lines * TUPLES_FOR_EACH_LINE[edge.target] / 16
        for edge in WORDS.edges
        for source in WORDS.executors_of(edge.source)
        for target in WORDS.executors_of(edge.target)
    }


def closed_loop() -> Iterator[Step]:
    rules = placement_settings([WORDS])
    past: tuple[LoadPeriod, ...] = ()
    demand: Demand | None = None
    here = Assignment({})
    memory = DecisionMemory()
    for period in range(PERIODS):
        now = measured(period)
        past = (*past, now)[-5:]
        needed = {e: now.components["words", e.component].cpu_millicores / 4 for e in WORDS.executors}
        given = demand
        picture = snapshot(
            [WORDS], supervisors(3, 6000, slots=6), here.slot_of, rates=traffic(lines_per_second(period)), periods=past
        )
        demand = estimate_demand(picture, demand, ResourceSettings(floor_millicores=0), 5)
        made = decide(
            picture,
            demand,
            place_liu(picture, demand, rules),
            rules,
            memory,
            now_seconds=now.ended_at_seconds,
            plan_id=f"p-{period}",
        )
        plan = made if isinstance(made, Plan) else None
        if plan is not None:
            here = here.with_moves(plan.target.slot_of)
            memory = dataclasses.replace(memory, changed_at_seconds={"words": now.ended_at_seconds})
        yield Step(needed, given, here, plan)


@pytest.mark.slow
def test_wordcount_under_regular_load() -> None:
    steps = list(closed_loop())
    assert fmean(len(step.assignment.workers()) for step in steps) <= 2.6 + 1e-9
    assert fmean(len(step.assignment.used_supervisors()) for step in steps) <= 1.6 + 1e-9
    assert max(len(step.assignment.used_supervisors()) for step in steps) == 2
    assert len(steps[-1].assignment.used_supervisors()) == 1
    # One to start; then each of the two waves goes out at once and in at once.
    assert sum(step.plan is not None for step in steps) == 5


@pytest.mark.slow
def test_nobody_is_given_less_than_it_turns_out_to_need_except_at_the_very_start() -> None:
    for step in list(closed_loop())[2:]:
        assert step.given is not None
        for executor, millicores in step.needed.items():
            assert step.given.millicores[executor] >= millicores

"""The whole loop on simulated days: recorded as it runs, learned from, then run on with what was learned, and without.

With Liu's regression demand is Liu's too, and the learned profile is laid over that. The damped trend, our default,
comes with a demand that remembers peaks: it is short of less and has more to spare.
"""

from __future__ import annotations

import copy
import copyreg
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from profile_gain.learning import Arrivals, learn, profile_of

from storm_operator.core.distances import Distances
from storm_operator.core.learned_profile import LearnedProfile, ProfileReading
from storm_operator.core.settings import Forecast, ResourceSettings, SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_cluster import EPOCH_SECONDS
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulator.daily_load import DailyLoad
from storm_operator.simulator.model import ClusterModel, SimulatedSupervisor
from storm_operator.simulator.workloads import word_count

PERIOD_SECONDS = 10.0
BASE_PER_SECOND = 600.0
CPU_MS = {"split": 0.6, "count": 0.2}
EXECUTORS = {"split": 4, "count": 6}
"""So many that none needs more than a core in a spike: what a thread cannot use no forecast can give it, and it would
count as short."""
NAME = "words"
CLUSTER = "simulated"
LINE, TREND, LEARNED = "Liu's regression", "damped trend", "learned profile"

# Of a read-only mapping Python knows no copy by itself.
copyreg.pickle(MappingProxyType, lambda mapping: (MappingProxyType, (dict(mapping),)))

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Days:
    """How long a day is, what its load is like (as `DailyLoad` has it), and how it is learned and simulated."""

    seconds: float
    spikes: int
    unknown_spikes: int
    spike_seconds: tuple[float, float]
    late_seconds: float
    bin_seconds: float
    step_seconds: float

    def load(self, seed: int) -> DailyLoad:
        return DailyLoad(
            BASE_PER_SECOND,
            seed,
            self.seconds,
            self.spikes,
            self.unknown_spikes,
            self.spike_seconds,
            self.late_seconds,
        )


COMPRESSED = Days(1800.0, 6, 1, (1440.0, 5760.0), 480.0, 10.0, 1.0)
"""A day in half an hour, 180 periods; spikes of three to twelve periods, up to one late."""
WHOLE = Days(86_400.0, 8, 2, (120.0, 600.0), 30.0, 30.0, 2.0)
"""Days as the demand path has them, at a coarser step."""


@dataclass(frozen=True, slots=True)
class LoopCase:
    """One load."""

    seed: int
    learned_days: int
    judged_days: int
    days: Days = COMPRESSED

    @property
    def part(self) -> str:
        return "whole loop, compressed days" if self.days == COMPRESSED else "whole loop, whole days"


@dataclass(frozen=True, slots=True)
class Given:
    """A profile, or none yet."""

    readings: Mapping[str, ProfileReading]
    cluster: str = CLUSTER

    def read(self, specs: Mapping[str, TopologySpec]) -> Mapping[str, ProfileReading]:
        return self.readings


def play_loop(case: LoopCase) -> list[Row]:
    """One load on the whole loop, by each way to forecast.

    What is learned from are the days that ran by Liu's regression; a profile is there from the first judged day on.
    The damped trend is played on compressed days alone.
    """
    past = Arrivals(NAME)
    stage = stage_of(case, past)
    run_days(stage, case, Forecast.LINE, case.learned_days)
    learned_stage, seen = twin_of(stage, past)
    learned_stage.loop.profiles = Given({NAME: _profile(case, past)})
    run_days(stage, case, Forecast.LINE, case.judged_days)
    run_days(learned_stage, case, Forecast.LINE, case.judged_days)
    if "Seasonal" not in seen.forecasters:
        raise RuntimeError(f"the loop did not go by the profile, only by {sorted(seen.forecasters)}")
    found = [(LINE, stage), (LEARNED, learned_stage)]
    if case.days == COMPRESSED:
        trend_stage = stage_of(case, Arrivals(NAME))
        run_days(trend_stage, case, Forecast.DAMPED_TREND, case.learned_days + case.judged_days)
        found.insert(1, (TREND, trend_stage))
    return [{"part": case.part, "seed": case.seed, "forecast": name, **_row(one, case)} for name, one in found]


def twin_of(stage: SimulatedStage, audience: Arrivals) -> tuple[SimulatedStage, Arrivals]:
    """The same at this moment; what either does from now on the other does not see."""
    return copy.deepcopy((stage, audience))


def stage_of(case: LoopCase, audience: Arrivals) -> SimulatedStage:
    topology = word_count(case.days.load(case.seed), EXECUTORS, CPU_MS, num_workers=6, name=NAME)
    machines = tuple(SimulatedSupervisor(f"s{n}", f"host-{n}", (6700, 6701, 6702, 6703), 4000.0) for n in range(1, 7))
    scenario = Scenario(
        NAME,
        ClusterModel(machines, (topology,), Distances({}, default_ms=2.0)),
        (case.learned_days + case.judged_days) * case.days.seconds,
        period_seconds=PERIOD_SECONDS,
        warm_up_seconds=case.learned_days * case.days.seconds,
        seed=case.seed,
        step_seconds=case.days.step_seconds,
    )
    return SimulatedStage(scenario, audience)


def _scheduling(method: Forecast) -> SchedulingSettings:
    """Nobody is moved: what plans cost would hide what limits, which follow the forecast, are short of."""
    return replace(SchedulingSettings(), forecast=method, policy="even")


def run_days(stage: SimulatedStage, case: LoopCase, method: Forecast, days: int) -> None:
    specs = {NAME: TopologySpec(NAME, AdoptSource(), scheduling=_scheduling(method))}
    for _ in range(round(days * case.days.seconds / PERIOD_SECONDS)):
        stage.run_period(specs)


def _profile(case: LoopCase, past: Arrivals) -> LearnedProfile:
    series = past.series(PERIOD_SECONDS, until=EPOCH_SECONDS + case.learned_days * case.days.seconds)
    theta = ResourceSettings().theta_millicores
    step = {name: theta * EXECUTORS.get(name, 1) / CPU_MS.get(name, 1.0) for name in series}
    made_at = max(float(one.times[-1]) for one in series.values())
    return profile_of(learn(series, case.days.seconds, case.days.bin_seconds, step), NAME, CLUSTER, made_at)


def _row(stage: SimulatedStage, case: LoopCase) -> Row:
    report = stage.report("even")
    late = [plan for plan in report.plans if plan.at_seconds > case.learned_days * case.days.seconds]
    return {
        "under": report.sums.under_provided_core_seconds,
        "over": report.sums.over_provided_core_seconds,
        "plans": len(late),
        "failed_tuples": report.sums.unsuccessful,
        "latency_p50_ms": report.median_latency_ms(),
    }

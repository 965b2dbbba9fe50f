"""The whole loop on simulated, compressed days: recorded as it runs, learned from, then run with what was learned.

With Liu's regression demand is Liu's too, and the learned profile is laid over that. The damped trend, our default,
comes with a demand that remembers peaks: it is short of less and has more to spare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from profile_gain.learning import Arrivals, learn, profile_of

from storm_operator.core.learned_profile import ProfileReading
from storm_operator.core.settings import Forecast, ResourceSettings, SchedulingSettings
from storm_operator.core.snapshot import Distances
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.loop_ports import ProfileSource
from storm_operator.simulated_cluster import EPOCH_SECONDS
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulator.daily_load import DailyLoad
from storm_operator.simulator.model import ClusterModel, SimulatedSupervisor
from storm_operator.simulator.workloads import word_count

DAY_SECONDS = 1800.0
"""A day in half an hour: 180 periods."""
SPIKE_SECONDS = (1440.0, 5760.0)
"""Of a real day; three to twelve periods here."""
LATE_SECONDS = 480.0
"""Likewise; a period here."""
PERIOD_SECONDS = 10.0
STEP_SECONDS = 1.0
BASE_PER_SECOND = 600.0
CPU_MS = {"split": 0.6, "count": 0.4}
EXECUTORS = {"split": 4, "count": 6}
NAME = "words"
CLUSTER = "simulated"
LINE, TREND, LEARNED = "Liu's regression", "damped trend", "learned profile"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Given:
    """A profile, or none yet."""

    readings: Mapping[str, ProfileReading]
    cluster: str = CLUSTER

    def read(self, specs: Mapping[str, TopologySpec]) -> Mapping[str, ProfileReading]:
        return self.readings


def play_loop(case: tuple[int, int, int]) -> list[Row]:
    """One load on the whole loop, by each way to forecast.

    What is learned from are the days that ran by Liu's regression; a profile is there from the first judged day on.
    """
    seed, learned_days, judged_days = case
    whole = learned_days + judged_days
    past = Arrivals(NAME)
    line = _play(seed, Forecast.LINE, whole, learned_days, past)
    series = past.series(PERIOD_SECONDS, until=EPOCH_SECONDS + learned_days * DAY_SECONDS)
    theta = ResourceSettings().theta_millicores
    step = {name: theta * EXECUTORS.get(name, 1) / CPU_MS.get(name, 1.0) for name in series}
    made_at = max(float(one.times[-1]) for one in series.values())
    profile = profile_of(learn(series, DAY_SECONDS, PERIOD_SECONDS, step), NAME, CLUSTER, made_at)
    seen = Arrivals(NAME)
    learned = _play(seed, Forecast.LINE, whole, learned_days, seen, Given({NAME: profile}))
    trend = _play(seed, Forecast.DAMPED_TREND, whole, learned_days, Arrivals(NAME))
    if "Seasonal" not in seen.forecasters:
        raise RuntimeError(f"the loop did not go by the profile, only by {sorted(seen.forecasters)}")
    found = ((LINE, line), (TREND, trend), (LEARNED, learned))
    return [{"part": "whole loop", "seed": seed, "forecast": name, **row} for name, row in found]


def _play(
    seed: int, method: Forecast, days: int, learned_days: int, audience: Arrivals, profiles: ProfileSource | None = None
) -> Row:
    load = DailyLoad(BASE_PER_SECOND, seed, DAY_SECONDS, 6, 1, SPIKE_SECONDS, LATE_SECONDS)
    topology = word_count(load, EXECUTORS, CPU_MS, num_workers=6, name=NAME)
    machines = tuple(SimulatedSupervisor(f"s{n}", f"host-{n}", (6700, 6701, 6702, 6703), 4000.0) for n in range(1, 7))
    scenario = Scenario(
        NAME,
        ClusterModel(machines, (topology,), Distances({}, default_ms=2.0)),
        days * DAY_SECONDS,
        period_seconds=PERIOD_SECONDS,
        warm_up_seconds=learned_days * DAY_SECONDS,
        seed=seed,
        step_seconds=STEP_SECONDS,
    )
    # Nobody is moved: what plans cost would hide what limits, which follow the forecast, are short of.
    scheduling = replace(SchedulingSettings(), forecast=method, policy="even")
    specs = {NAME: TopologySpec(NAME, AdoptSource(), scheduling=scheduling)}
    stage = SimulatedStage(scenario, audience)
    for number in range(round(days * DAY_SECONDS / PERIOD_SECONDS)):
        if profiles is not None and number == round(learned_days * DAY_SECONDS / PERIOD_SECONDS):
            stage.loop.profiles = profiles
        stage.run_period(specs)
    report = stage.report(scheduling.policy)
    late = [plan for plan in report.plans if plan.at_seconds > learned_days * DAY_SECONDS]
    return {
        "under": report.sums.under_provided_core_seconds,
        "over": report.sums.over_provided_core_seconds,
        "plans": len(late),
        "failed_tuples": report.sums.failed,
        "latency_p50_ms": report.median_latency_ms(),
    }

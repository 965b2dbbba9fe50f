"""One setting on one stretch of history: the operator's own loop on the simulator, and a score."""

from __future__ import annotations

import math
from dataclasses import dataclass

from storm_operator.core.settings import SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_loop import Scenario, even_start, simulate
from storm_pipeline.tuning.candidates import Overrides, settings_of
from storm_pipeline.tuning.recording import InvalidRecording, Recording

STEP_SECONDS = 2.0
"""Of simulated time: coarser than usual, and the same for all settings."""
DRAWN_TREES = 8
WARM_UP_SHARE = 0.2
"""The beginning of a stretch, in which every setting leaves the same start, does not count: so much at least."""
FIRST_MOVE_PERIODS, FIRST_MOVE_SECONDS = 5, 40.0
"""From the first plan that there can be until its restarts tell no more: workers take seconds to start, and what they
used then is measured, and held in readiness, for some periods more. Both at least."""
COUNTED_PERIODS = 16
"""Of control after the warm-up, at least."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What a score is made of, all in CPU-seconds: too much CPU reserved costs one each."""

    under: float = 10.0
    failed_tuple: float = 0.01
    restart: float = 10.0


@dataclass(frozen=True, slots=True)
class Try:
    """A candidate (by number) on the stretch of history from `start_seconds` on."""

    rung: int
    candidate: int
    overrides: Overrides
    start_seconds: float
    seconds: float
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a try; per hour of counted history, so that stretches of any length compare. Less is better.

    `plans` alone is no rate: all that were made in the stretch, its beginning included.
    """

    tried: Try
    score: float
    under_core_seconds: float
    over_core_seconds: float
    failed_tuples: float
    restarts: float
    plans: int


def warm_up_seconds(scheduling: SchedulingSettings, stretch_seconds: float) -> float:
    """Of a stretch of history, what does not count: every setting has left the start that it shares with all others.

    Whoever leaves it does so once, and would be billed as if it did so in each such stretch.
    """
    first_plan = scheduling.minimum_periods * scheduling.period_seconds
    first_move = max(FIRST_MOVE_PERIODS * scheduling.period_seconds, FIRST_MOVE_SECONDS)
    return max(WARM_UP_SHARE * stretch_seconds, first_plan + first_move)


def least_seconds(scheduling: SchedulingSettings) -> float:
    """How long the shortest stretch is in which settings tell, with this control period."""
    return warm_up_seconds(scheduling, 0.0) + COUNTED_PERIODS * scheduling.period_seconds


def insist_on_playable(recording: Recording, scheduling: SchedulingSettings) -> None:
    """`InvalidRecording` where no replay could begin: Spark would tell of it in its executors' words.

    Also where it is over before settings could tell.
    """
    least = least_seconds(scheduling)
    if recording.seconds < least:
        raise InvalidRecording(
            f"the history of {recording.cluster} that is replayed has {recording.seconds:,.0f} s, and settings with a "
            f"control period of {scheduling.period_seconds:,g} s tell in {least:,.0f} s or more, of which "
            f"{warm_up_seconds(scheduling, least):,.0f} s pass until each has moved for the first time: "
            f"replay {math.ceil(least / 36.0) / 100.0:g} hours or more (--hours), and record as many"
        )
    try:
        even_start(recording.model())
    except InvalidRecording:
        raise
    except ValueError as error:
        raise InvalidRecording(f"the history of {recording.cluster} cannot be replayed: {error}") from error


def replay(recording: Recording, tried: Try, prices: Prices) -> Outcome:
    """Play it, on a stretch of `least_seconds` or more."""
    stretch = recording.part(tried.start_seconds, tried.seconds)
    model = stretch.model()
    settings = settings_of(tried.overrides)
    warm_up = warm_up_seconds(settings.scheduling, stretch.seconds)
    scenario = Scenario(
        stretch.cluster,
        model,
        stretch.seconds,
        period_seconds=settings.scheduling.period_seconds,
        warm_up_seconds=warm_up,
        seed=tried.seed,
        step_seconds=STEP_SECONDS,
        drawn_trees=DRAWN_TREES,
    )
    specs = {
        topology.name: TopologySpec(
            topology.name, AdoptSource(), scheduling=settings.scheduling, resources=settings.resources
        )
        for topology in model.topologies
    }
    report = simulate(scenario, specs)
    sums, hourly = report.sums, 3600.0 / max(1.0, scenario.end_seconds - warm_up)
    under, over = sums.under_provided_core_seconds * hourly, sums.over_provided_core_seconds * hourly
    failed, restarts = sums.unsuccessful * hourly, sums.worker_restarts * hourly
    score = prices.under * under + over + prices.failed_tuple * failed + prices.restart * restarts
    return Outcome(tried, score, under, over, failed, restarts, len(report.plans))

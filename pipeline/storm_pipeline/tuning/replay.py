"""One setting on one stretch of history: the operator's own loop on the simulator, and a score."""

from __future__ import annotations

from dataclasses import dataclass

from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_loop import Scenario, even_start, simulate
from storm_pipeline.tuning.candidates import Overrides, settings_of
from storm_pipeline.tuning.recording import InvalidRecording, Recording

STEP_SECONDS = 2.0
"""Of simulated time: coarser than usual, and the same for all settings."""
DRAWN_TREES = 8
WARM_UP_SHARE = 0.2
"""The beginning of a stretch, in which every setting leaves the same start, does not count."""
LEAST_PERIODS = 12
"""Of control in a stretch: nothing is decided in the first, so that all settings look alike in two or three."""


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


def insist_on_playable(recording: Recording, period_seconds: float) -> None:
    """`InvalidRecording` where no replay could begin: Spark would tell of it in its executors' words.

    Also where it is over before what the first control period brought could be seen.
    """
    if recording.seconds < 2.0 * period_seconds:
        raise InvalidRecording(
            f"the history of {recording.cluster} that is replayed has {recording.seconds:,.0f} s, in which no settings "
            f"tell with a control period of {period_seconds:,g} s: two of them or more are right"
        )
    try:
        even_start(recording.model())
    except InvalidRecording:
        raise
    except ValueError as error:
        raise InvalidRecording(f"the history of {recording.cluster} cannot be replayed: {error}") from error


def replay(recording: Recording, tried: Try, prices: Prices) -> Outcome:
    """Play it."""
    stretch = recording.part(tried.start_seconds, tried.seconds)
    model = stretch.model()
    settings = settings_of(tried.overrides)
    warm_up = WARM_UP_SHARE * stretch.seconds
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

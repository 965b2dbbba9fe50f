"""From recorded days to a learned profile, by the very functions that the pipeline's jobs call."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from storm_operator.core.learned_profile import ComponentProfile, LearnedProfile
from storm_pipeline.models.backtest import Backtest, Series, judge

VALID_SECONDS = 14 * 86_400.0


def learn(
    series: Mapping[str, Series], cycle_seconds: float, bin_seconds: float, step: Mapping[str, float]
) -> Mapping[str, Backtest]:
    """A backtest for each component, with the season of its arrivals; `step` as `error_of` has it."""
    return {name: judge(one, cycle_seconds, bin_seconds, step[name]) for name, one in series.items()}


def profile_of(
    backtests: Mapping[str, Backtest], topology: str, cluster: str, made_at_seconds: float
) -> LearnedProfile:
    """What the operator would be given."""
    components = {
        name: ComponentProfile(found.forecaster, found.season, found.errors) for name, found in backtests.items()
    }
    return LearnedProfile(cluster, made_at_seconds, made_at_seconds + VALID_SECONDS, {topology: components})


def series_of(times: list[float], values: list[float], period_seconds: float) -> Series:
    return Series(np.array(times), np.array(values), period_seconds)

"""Small learned profiles for tests."""

from __future__ import annotations

from collections.abc import Sequence

from storm_operator.core.learned_profile import SEASONAL, ComponentProfile, ForecastError, LearnedProfile, Robust
from storm_operator.core.seasonal import Season

CLUSTER = "nimbus:6627"
DAY_SECONDS = 86_400.0


def season(*expected: float, bin_seconds: float = 10.0, level_weight: float = 0.5) -> Season:
    """A cycle of as many bins as there are values; ready is what is expected."""
    return Season(bin_seconds * len(expected), bin_seconds, expected, expected, level_weight)


def component(shape: Season | None, forecaster: str = SEASONAL) -> ComponentProfile:
    errors = {"Line": ForecastError(6.0, 3.0, 3.0), SEASONAL: ForecastError(4.0, 2.0, 2.0)}
    return ComponentProfile(forecaster, shape, errors, Robust(0.2, 0.01, 700), Robust(2.0, 0.1, 700))


def profile(
    topology: str,
    components: Sequence[str],
    shape: Season,
    made_at_seconds: float = 0.0,
    cluster: str = CLUSTER,
) -> LearnedProfile:
    """Valid for a week; all components have the same season."""
    own = {name: component(shape) for name in components}
    return LearnedProfile(cluster, made_at_seconds, made_at_seconds + 7 * DAY_SECONDS, {topology: own})

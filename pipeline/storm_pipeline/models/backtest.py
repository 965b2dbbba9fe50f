"""Rolling-origin backtests: forecasters are judged on periods that they have not seen, cycle after cycle.

For each of the last cycles of a history a season is learned from the cycles before it alone; the operator's other
forecasters need no more than the last few periods. Forecasts are those of the operator's own functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from storm_operator.core.damped_trend import damped_trend
from storm_operator.core.demand import ROUNDING_NOISE, held_share
from storm_operator.core.forecast import forecast_series
from storm_operator.core.learned_profile import SEASONAL, ForecastError
from storm_operator.core.seasonal import Season, seasonal_forecast
from storm_operator.core.settings import Forecast, SchedulingSettings
from storm_pipeline.models.season import FEWEST_CYCLES, Floats, SeasonShape, learn_season, whole_cycles, with_readiness

Window = Sequence[tuple[float, float]]
Forecaster = Callable[[Window, float, float], float | None]
"""From (end of period, load) points, the end of the period to forecast and a period's length."""

PHI = 5
JUDGED_CYCLES = 3
"""So many of the last whole cycles are forecast; each costs as much as all before it are long."""
USUAL_STEP = 0.2
"""Of the mean load: one theta's worth, where nobody knows better."""
CLEARLY = 0.9
"""A season must leave less short than this share of what the best of the others leaves."""
FULLY = 0.7
"""A season that leaves no more than this share of it short does what it is there for."""
LEAST_SAVING, MOST_SAVING = 0.03, 0.1
"""A season should ask for so much less CPU than Liu's line does, as shares of what that has over: what is judged is not
what will come. One that saves less is still gone by where it leaves less short and asks for no more."""
SHARE_OF_SAVING = 0.8
"""Between the two it is this share of what seasons can save that do what they are there for: to insist on more would
take the one that saves most, whatever it leaves short."""
READINESS = (0.94, 0.97, 1.0, 1.03, 1.06, 1.1)
"""What a season says to be ready for is multiplied by."""
READY_QUANTILES = (0.7, 0.8, 0.9, 0.95)
LEVEL_WEIGHTS = (0.3, 0.5)


def line(points: Window, at_seconds: float, period_seconds: float) -> float | None:
    """Liu's least-squares line, as the operator has it."""
    return forecast_series(points, at_seconds)


OPERATORS: Mapping[str, Forecaster] = {Forecast.LINE.value: line, Forecast.DAMPED_TREND.value: damped_trend}
"""The operator's forecasters that need nothing learned."""
USUAL = SchedulingSettings().forecast.value
"""The one that the operator goes by, unless told otherwise, where a season says nothing."""


@dataclass(frozen=True, slots=True)
class Series:
    """One component's arrivals: ends of periods, ascending, and tuples per second in each.

    `period_seconds` is how long all periods were, or each.
    """

    times: Floats
    values: Floats
    period_seconds: float | Floats

    @property
    def lengths(self) -> Floats:
        """Of each period, in seconds."""
        return np.broadcast_to(np.asarray(self.period_seconds, dtype=np.float64), self.times.shape)

    def before(self, seconds: float) -> Series:
        """The periods that ended by then."""
        end = int(np.searchsorted(self.times, seconds, side="right"))
        return Series(self.times[:end], self.values[:end], self.lengths[:end])


@dataclass(frozen=True, slots=True)
class Backtest:
    """The judged forecasters' errors by name, the best of the operator's own, and the season if it can be learned."""

    errors: Mapping[str, ForecastError]
    forecaster: str
    season: Season | None
    shape: SeasonShape | None


def forecasts(series: Series, forecaster: Forecaster, first: int, last: int, phi: int = PHI) -> Floats:
    """What `forecaster` says of periods `first..last-1`, each from the `phi` before it; NaN where it says nothing."""
    times, values, lengths = series.times.tolist(), series.values.tolist(), series.lengths.tolist()
    found = np.full(last - first, np.nan)
    for index in range(first, last):
        start = index
        while start > 0 and index - start < phi and times[index] - times[start - 1] < (phi + 0.5) * lengths[index]:
            start -= 1
        points = list(zip(times[start:index], values[start:index], strict=True))
        told = forecaster(points, times[index], lengths[index]) if points else None
        if told is not None:
            found[index - first] = told
    return found


def error_of(forecast: Floats, actual: Floats, step: float | None = None) -> ForecastError | None:
    """Shares of the mean load; None where nothing was forecast or nothing came.

    `step` is the load that one theta of CPU for each executor carries: what is short and what is over is judged by what
    would have been allocated.
    """
    known = ~np.isnan(forecast)
    mean = float(actual[known].mean()) if known.any() else 0.0
    if mean <= 0.0:
        return None
    load = actual[known]
    spare = allocated(forecast[known], USUAL_STEP * mean if step is None else step) - load
    means = (
        float(each.mean()) for each in (np.abs(forecast[known] - load), np.maximum(0.0, -spare), np.maximum(0.0, spare))
    )
    return ForecastError(*(100.0 * each / mean for each in means))


def allocated(forecast: Floats, step: float) -> Floats:
    """The load that CPU is allocated for: half a step to spare, whole steps, up at once and down late."""
    shares = np.empty_like(forecast)
    held: float | None = None
    for index, need in enumerate(forecast.tolist()):
        held = held_share(need, held, step)
        shares[index] = held
    return np.asarray(np.ceil((shares + step / 2.0) / step - ROUNDING_NOISE) * step)


def target_over(seasons: Sequence[ForecastError], plain: Mapping[str, ForecastError]) -> float:
    """What a season may have over at most, in percent of the mean load: Liu's line's, less what is to be saved."""
    by_line = plain[Forecast.LINE.value].over_percent
    short = min(error.short_percent for error in plain.values())
    least = min((one.over_percent for one in seasons if one.short_percent <= FULLY * short), default=by_line)
    possible = SHARE_OF_SAVING * (by_line - least)
    return by_line - min(MOST_SAVING * by_line, max(LEAST_SAVING * by_line, possible))


def rank(error: ForecastError, target_over_percent: float) -> tuple[float, float, float]:
    """What seasons are ranked by, less is better: first that they have no more over than they may, then what is short,
    then what is over."""
    return max(0.0, error.over_percent - target_over_percent), error.short_percent, error.over_percent


def best_of(errors: Mapping[str, ForecastError], has_season: bool) -> str:
    """The forecaster to go by: the season where it clearly leaves less short than the others do."""
    plain = {name: errors[name] for name in OPERATORS if name in errors}
    if not plain:
        return Forecast.DAMPED_TREND.value
    by_line = errors[Forecast.LINE.value]
    # The line itself saves nothing of itself: it stands as it is. Where whole steps of CPU hide every difference, the
    # error decides.
    best = min(
        sorted(plain),
        key=lambda name: (plain[name].short_percent, plain[name].over_percent, plain[name].error_percent),
    )
    if not has_season or errors[SEASONAL].over_percent > by_line.over_percent:
        return best
    return SEASONAL if errors[SEASONAL].short_percent < CLEARLY * plain[best].short_percent else best


def judge(
    series: Series,
    cycle_seconds: float,
    bin_seconds: float,
    step: float | None = None,
    others: Mapping[str, Callable[[Series, int, int], Floats]] | None = None,
    phi: int = PHI,
) -> Backtest:
    """Backtest the operator's forecasters, with the season in each of its shapes, and the yardsticks `others`.

    `step` is that of `error_of`.

    Of a season's shapes the best counts that asks for less CPU than Liu's line, as far as that can be had.
    """
    whole = whole_cycles(series.times, series.lengths, cycle_seconds, bin_seconds)
    origins = whole[FEWEST_CYCLES:][-JUDGED_CYCLES:]
    first = int(np.searchsorted(series.times, origins[0], side="right")) if origins else min(phi, len(series.times))
    last = len(series.times)
    actual = series.values[first:last]
    told = {name: forecasts(series, forecaster, first, last, phi) for name, forecaster in OPERATORS.items()}
    errors = {name: error for name, found in told.items() if (error := error_of(found, actual, step)) is not None}
    season, shape = None, None
    if origins and Forecast.LINE.value in errors:
        best = _best_season(series, origins, first, (cycle_seconds, bin_seconds), errors, told[USUAL], step, phi)
        if best is not None:
            errors[SEASONAL], shape, factor = best
            learned = learn_season(series.times, series.values, series.lengths, shape)
            season = None if learned is None else with_readiness(learned, factor)
    forecaster = best_of(errors, season is not None)
    for name, yardstick in (others or {}).items():
        error = error_of(yardstick(series, first, last), actual, step)
        if error is not None:
            errors[name] = error
    return Backtest(errors, forecaster, season, shape)


def _best_season(
    series: Series,
    origins: Sequence[float],
    first: int,
    cycle: tuple[float, float],
    plain: Mapping[str, ForecastError],
    otherwise: Floats,
    step: float | None,
    phi: int,
) -> tuple[ForecastError, SeasonShape, float] | None:
    """The shape that is short by least of those that have no more over than `target_over`, and its readiness.

    `otherwise` is what the operator goes by where a season says nothing, as after a time without any load: how a load
    begins is judged, too.
    """
    actual = series.values[first:]
    found: list[tuple[ForecastError, SeasonShape, float]] = []
    for quantile in READY_QUANTILES:
        for weight in LEVEL_WEIGHTS:
            shape = SeasonShape(*cycle, quantile, weight)
            told = _seasonal(series, origins, first, shape, phi)
            if np.isnan(told).all():
                continue
            for factor in READINESS:
                error = error_of(np.where(np.isnan(told), otherwise, factor * told), actual, step)
                if error is not None:
                    found.append((error, shape, factor))
    if not found:
        return None
    # Of equals the first: the lowest quantile, then the lowest weight, then the lowest factor.
    target = target_over([error for error, _, _ in found], plain)
    return min(found, key=lambda one: rank(one[0], target))


def _seasonal(series: Series, origins: Sequence[float], first: int, shape: SeasonShape, phi: int) -> Floats:
    """Forecasts from `first` on, each cycle's by the season of the cycles before it."""
    starts = [max(first, int(np.searchsorted(series.times, origin, side="right"))) for origin in origins]
    ends = [*starts[1:], len(series.times)]  # a cycle's last period may end after the cycle
    parts = []
    for origin, start, end in zip(origins, starts, ends, strict=True):
        known = series.before(origin)
        season = learn_season(known.times, known.values, known.lengths, shape)
        if season is None:
            parts.append(np.full(end - start, np.nan))
        else:
            parts.append(forecasts(series, by_season(season), start, end, phi))
    return np.concatenate(parts)


def by_season(season: Season) -> Forecaster:
    """The operator's forecaster for a component with that season."""

    def told(points: Window, at_seconds: float, period_seconds: float) -> float | None:
        return seasonal_forecast(season, points, at_seconds, period_seconds)

    return told

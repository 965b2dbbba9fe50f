"""Backtests of forecasters on each component's arrivals: grouped pandas, one component's history at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from storm_operator.core.learned_profile import SYSTEM_PREFIX, ForecastError
from storm_operator.core.settings import Forecast, ResourceSettings
from storm_pipeline.models.backtest import Series, judge
from storm_pipeline.models.yardsticks import yardsticks
from storm_pipeline.schemas import schema_of
from storm_pipeline.transforms.components import COST_PER_TUPLE

KEY = ("cluster", "topology_name", "component")
JUDGED = schema_of(
    "cluster text, topology_name text, component text, forecaster text, error_percent number, short_percent number, "
    "over_percent number, is_winner truth, periods whole, winner text, season text, newest_period time, "
    "topology_id text"
)
SERIES = ("topology_id", "arrived_per_second", "period_seconds", "executors")
INPUT = ("period_end", "at_seconds", *SERIES, "cpu_per_tuple")


@dataclass(frozen=True, slots=True)
class Cycle:
    """How long a season is, its bins, the operator's phi and theta, and whether the yardsticks are judged, too."""

    cycle_seconds: float = 86_400.0
    bin_seconds: float = 30.0
    phi: int = 5
    theta_millicores: float = ResourceSettings().theta_millicores
    with_yardsticks: bool = True


def judged_components(periods: DataFrame, cycle: Cycle) -> DataFrame:
    """From component periods: a row per component and forecaster, the season in each of them.

    One on which no forecaster could be judged, as without any load, has one row, whose `forecaster` is null.
    """
    costs = periods.groupBy(*KEY).agg(f.expr(COST_PER_TUPLE).alias("cpu_per_tuple"))
    arrivals = (
        periods.where(~f.col("component").startswith(SYSTEM_PREFIX))
        # A topology that was submitted anew has another id, and is the same component all the same.
        .groupBy(*KEY, "period_end")
        .agg(*(f.max(name).alias(name) for name in SERIES))
        .join(costs, list(KEY), "left")
        .withColumn("at_seconds", f.unix_micros("period_end") / 1e6)
        .select(*KEY, *INPUT)
    )
    return arrivals.groupBy(*KEY).applyInPandas(_judge_by(cycle), JUDGED)


def seasons(judged: DataFrame, executors: DataFrame) -> DataFrame:
    """From `judged_components`: a row for each component that `executors` has, with when it was last there.

    Left out, one that was never measured whole would cost its topology the profile.
    """
    last = f.max(f.struct("period_end", "topology_id")).alias("last")
    there = executors.where(~f.col("component").startswith(SYSTEM_PREFIX)).groupBy(*KEY).agg(last)
    learned = judged.dropDuplicates(list(KEY)).select(*KEY, "winner", "season", "newest_period")
    return there.join(learned, list(KEY), "left").select(
        *KEY,
        f.coalesce("winner", f.lit(Forecast.DAMPED_TREND.value)).alias("forecaster"),
        "season",
        "newest_period",
        f.col("last.period_end").alias("last_seen"),
        f.col("last.topology_id").alias("topology_id"),
    )


def _judge_by(cycle: Cycle) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def judge_component(rows: pd.DataFrame) -> pd.DataFrame:
        return judge_frame(rows, cycle)

    return judge_component


def judge_frame(rows: pd.DataFrame, cycle: Cycle) -> pd.DataFrame:
    """One component's history, in any order, to its rows of `JUDGED`."""
    rows = rows.sort_values("at_seconds", kind="stable")
    # The operator's period may have been changed; passes that came late change nothing.
    usual = rows["period_seconds"].groupby(rows["at_seconds"] // cycle.cycle_seconds).transform("median")
    times, arrivals = (rows[name].to_numpy(np.float64) for name in ("at_seconds", "arrived_per_second"))
    series = Series(times, arrivals, usual.to_numpy(np.float64))
    kappa = float(rows["cpu_per_tuple"].iloc[0])
    step = cycle.theta_millicores * float(rows["executors"].iloc[-1]) / kappa if kappa > 0.0 else None
    others = yardsticks(cycle.cycle_seconds) if cycle.with_yardsticks else {}
    found = judge(series, cycle.cycle_seconds, cycle.bin_seconds, step, others, cycle.phi)
    season = None if found.season is None else json.dumps(asdict(found.season))
    # Left out, a component would cost its topology the profile: the operator takes none that does not know them all.
    errors: list[tuple[str | None, ForecastError | None]] = [*sorted(found.errors.items())] or [(None, None)]
    table = [
        {
            **{name: rows[name].iloc[0] for name in KEY},
            "forecaster": name,
            **({} if error is None else asdict(error)),
            "is_winner": name == found.forecaster,
            "periods": len(rows),
            "winner": found.forecaster,
            "season": season,
            "newest_period": rows["period_end"].iloc[-1],
            "topology_id": rows["topology_id"].iloc[-1],
        }
        for name, error in errors
    ]
    return pd.DataFrame(table, columns=[field.name for field in JUDGED.fields])

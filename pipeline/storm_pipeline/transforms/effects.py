"""What plans brought: figures before and after each, against what the forecast let expect, with an interval.

A figure after a plan is compared with what was to be expected without it. Throughput was to follow the load: it is
scaled by what the spouts were forecast to emit. Latency was to stay. Intervals are from resampling the periods before
and after (bootstrap, 90%); periods between the beginning of the execution and all executors running are neither, nor
are those in which another plan of the topology was carried out or in force: what that one brought is its own. So is
what one did that failed: some workers may have moved before. A plan that waits for a person changes nothing meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from storm_operator.core.plan_record import RUNNING_TIMEOUT_SECONDS, PlanState
from storm_operator.core.settings import ApplyMethod
from storm_operator.draining import DRAIN_TIMEOUT_SECONDS
from storm_operator.plan_waits import IN_FORCE_TIMEOUT_SECONDS
from storm_pipeline.schemas import schema_of
from storm_pipeline.transforms.profiles import topology_ids

Floats = npt.NDArray[np.float64]
RESAMPLES = 500
FOLLOWS_LOAD = {"acked_per_second": True, "latency_p50_ms": False, "latency_p99_ms": False}
UNDISTURBED = ("undisturbed_since", "undisturbed_until")
"""After all plans of the same topology before, and until the next one; null where there is none."""
EFFECTS = schema_of(
    "cluster text, plan_id text, policy text, state text, topology_id text, figure text, created_at time, "
    "before number, expected number, after number, effect number, effect_low number, effect_high number, periods whole"
)


@dataclass(frozen=True, slots=True)
class Around:
    """How much time before and after a plan is compared."""

    seconds: float = 300.0
    fewest_periods: int = 3


def plan_effects(plans: DataFrame, topologies: DataFrame, expected: DataFrame, around: Around) -> DataFrame:
    """From one row per plan, topologies' periods and `expected_load`: a row per plan, topology and figure."""
    each = by_topology(plans).select(
        "cluster", "plan_id", "policy", "state", "topology_id", "created_at", "begun", "running", *UNDISTURBED
    )
    periods = topologies.withColumn("ended", f.unix_micros("period_end") / 1e6).select(
        "cluster", "topology_id", "period_end", "ended", "period_seconds", *FOLLOWS_LOAD
    )
    began = f.col("ended") - f.col("period_seconds")
    seen = each.join(periods, ["cluster", "topology_id"]).where(
        f.col("ended").between(f.col("begun") - around.seconds, f.col("running") + around.seconds)
        & (f.col("undisturbed_since").isNull() | (began >= f.col("undisturbed_since")))
        & (f.col("undisturbed_until").isNull() | (f.col("ended") <= f.col("undisturbed_until")))
    )
    known = seen.join(expected, ["cluster", "topology_id", "period_end"], "left")
    return known.groupBy("cluster", "plan_id", "topology_id").applyInPandas(_effects_by(around), EFFECTS)


def by_topology(plans: DataFrame) -> DataFrame:
    """A row for each topology of each plan that came into force: when its execution began, and when all ran again.

    With `UNDISTURBED`. Executors that were not seen to run in the time that they were given count as not running for
    all of it; of a plan that failed before nobody knows how far it came: it disturbs for as long as it may have taken.
    """
    came, failed = f.col("in_force_at").isNotNull(), f.col("state") == PlanState.FAILED.value
    in_force = f.unix_micros("in_force_at") / 1e6
    created = f.unix_micros("created_at") / 1e6
    tried = f.unix_micros("period_end") / 1e6  # when the pass that carried it out saw the cluster
    # Of a plan that waited for nobody it is the decision's very time, which a difference misses by rounding.
    begun = f.greatest(created, in_force - f.col("seconds_to_in_force"))
    given = in_force + f.coalesce(
        "seconds_to_running", f.lit(RUNNING_TIMEOUT_SECONDS)
    )  # as told before `running_at` was
    running = f.coalesce(f.unix_micros("running_at") / 1e6, given)
    drained = f.when(f.col("method") == ApplyMethod.DRAIN.value, DRAIN_TIMEOUT_SECONDS).otherwise(0.0)
    given_up = tried + drained + IN_FORCE_TIMEOUT_SECONDS + RUNNING_TIMEOUT_SECONDS
    neighbours = Window.partitionBy("cluster", "topology_id").orderBy("begun", "plan_id")
    before = neighbours.rowsBetween(Window.unboundedPreceding, -1)  # what failed may last longer than the next one
    return (
        plans.where(came | failed)
        .withColumn("topology_id", f.explode(topology_ids()))
        .withColumn("begun", f.when(came, begun).otherwise(tried))
        .withColumn("running", f.when(came, running).otherwise(given_up))
        .withColumn("undisturbed_since", f.max("running").over(before))
        .withColumn("undisturbed_until", f.lead("begun").over(neighbours))
        .where(came)
    )


def expected_load(forecasts: DataFrame, executors: DataFrame, topologies: DataFrame) -> DataFrame:
    """What the spouts of a topology were forecast to emit in each of its periods that a forecast was made of.

    Of periods for which not all of them were forecast, as after one was moved, nobody knows the sum.
    """
    spouts = executors.where("component_kind = 'spout'").select("cluster", "topology_id", "component").distinct()
    of_topology = Window.partitionBy("cluster", "topology_id")
    spouts = spouts.withColumn("spouts", f.count(f.lit(1)).over(of_topology))
    made_at = forecasts.withColumnRenamed("period_end", "made_at").drop("period_seconds")
    return (
        made_at.join(spouts, ["cluster", "topology_id", "component"])
        .join(_following(topologies), ["cluster", "topology_id", "made_at"])
        .groupBy("cluster", "topology_id", "period_end")
        .agg(
            f.sum("arrivals_per_second").alias("expected_load"),
            (f.count(f.lit(1)) == f.max("spouts")).alias("of_all_spouts"),
        )
        .where("of_all_spouts")
        .drop("of_all_spouts")
    )


def _following(topologies: DataFrame) -> DataFrame:
    """By `made_at`, when a forecast was made: the period that it is of, which begins there, as far as one was recorded.

    No pass comes to the microsecond when it is due, so that the next period is looked for, not a time. After a gap the
    next one is another than the one forecast.
    """
    in_time = Window.partitionBy("cluster", "topology_id").orderBy("period_end")
    late = (f.unix_micros("period_end") - f.unix_micros("made_at")) / 1e6 - f.col("period_seconds")
    return (
        topologies.withColumn("made_at", f.lag("period_end").over(in_time))
        .where(late <= f.col("period_seconds") / 2.0)
        .select("cluster", "topology_id", "made_at", "period_end")
    )


def _effects_by(around: Around) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def effects(rows: pd.DataFrame) -> pd.DataFrame:
        return effects_of_plan(rows, around)

    return effects


def effects_of_plan(rows: pd.DataFrame, around: Around) -> pd.DataFrame:
    """The periods around one plan, of one topology, to its rows of `EFFECTS`."""
    rows = rows.sort_values("ended", kind="stable")
    plan = rows.iloc[0]
    before = rows[rows["ended"] <= plan["begun"]]
    after = rows[rows["ended"] - rows["period_seconds"] >= plan["running"]]
    ratio = _load_ratio(before, after)
    found = []
    for figure, follows in FOLLOWS_LOAD.items():
        first, second = _known(before, figure), _known(after, figure)
        if min(len(first), len(second)) < around.fewest_periods or (follows and ratio is None):
            continue
        scale = ratio if follows and ratio is not None else 1.0
        low, high = _interval(scale * first, second)
        expected, measured = scale * float(np.median(first)), float(np.median(second))
        found.append(
            {
                **{name: plan[name] for name in ("cluster", "plan_id", "policy", "state", "topology_id", "created_at")},
                "figure": figure,
                "before": float(np.median(first)),
                "expected": expected,
                "after": measured,
                "effect": measured - expected,
                "effect_low": low,
                "effect_high": high,
                "periods": len(first) + len(second),
            }
        )
    return pd.DataFrame(found, columns=[field.name for field in EFFECTS.fields])


def _load_ratio(before: pd.DataFrame, after: pd.DataFrame) -> float | None:
    first, second = _known(before, "expected_load"), _known(after, "expected_load")
    if not len(first) or not len(second) or np.median(first) <= 0.0:
        return None
    return float(np.median(second) / np.median(first))


def _known(rows: pd.DataFrame, column: str) -> Floats:
    return np.asarray(rows[column].dropna(), dtype=np.float64)


def _interval(before: Floats, after: Floats) -> tuple[float, float]:
    random = np.random.default_rng(0)
    first = np.median(random.choice(before, (RESAMPLES, len(before))), axis=1)
    second = np.median(random.choice(after, (RESAMPLES, len(after))), axis=1)
    low, high = np.quantile(second - first, (0.05, 0.95))
    return float(low), float(high)

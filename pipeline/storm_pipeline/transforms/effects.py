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
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from storm_operator.apply import DRAIN_TIMEOUT_SECONDS
from storm_operator.core.plan_record import RUNNING_TIMEOUT_SECONDS, PlanState
from storm_operator.core.settings import ApplyMethod
from storm_operator.plan_waits import IN_FORCE_TIMEOUT_SECONDS
from storm_pipeline.schemas import schema_of
from storm_pipeline.transforms.profiles import around_seconds, topology_ids

Floats = npt.NDArray[np.float64]
RESAMPLES = 500
MICROSECONDS = 6
"""Digits of a second: times are recorded to them, and differences of finer ones are rounding."""
FOLLOWS_LOAD = {"acked_per_second": True, "latency_p50_ms": False, "latency_p99_ms": False}
UNDISTURBED = ("undisturbed_since", "undisturbed_until")
"""Between the plans of the same topology before and after; null where there is none."""
ONE_OF_PLAN = ["cluster", "plan_id", "topology_id"]
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
    each = _by_topology(plans).select(
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


def _by_topology(plans: DataFrame) -> DataFrame:
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
    return (
        plans.where(came | failed)
        .withColumn("topology_id", f.explode(topology_ids()))
        .withColumn("begun", f.when(came, begun).otherwise(tried))
        .withColumn("running", f.when(came, running).otherwise(given_up))
        .withColumn("undisturbed_since", f.lag("running").over(neighbours))
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


def restart_costs(plans: DataFrame, executors: DataFrame, topologies: DataFrame, expected: DataFrame) -> DataFrame:
    """Trees not completed while a plan was put in force, against the rate before it scaled by the forecast.

    Of periods whose throughput nobody knows nothing is missing and nothing was completed: they are `unknown_seconds`,
    as is time that no period was recorded of, and `missing_trees` is of the others, null where there is none. Where a
    plan covers several topologies, which of its workers are whose is told by where their executors were before and
    after it; null where that was not seen.
    """
    began = f.col("ended") - f.col("period_seconds")
    is_undisturbed = f.col("undisturbed_since").isNull() | (began >= f.col("undisturbed_since"))
    each = _with_own_workers(_by_topology(plans).where("restarted_workers > 0"), executors)
    periods = topologies.withColumn("ended", f.unix_micros("period_end") / 1e6)
    seen = (
        each.select(*ONE_OF_PLAN, "restarted_workers", "failed_tuples", "begun", "running", "undisturbed_since")
        .join(
            periods.select("cluster", "topology_id", "period_end", "ended", "period_seconds", "acked_per_second"),
            ["cluster", "topology_id"],
        )
        .join(expected, ["cluster", "topology_id", "period_end"], "left")
        .where(
            f.col("ended").between(f.col("begun") - around_seconds(), f.col("running") + f.col("period_seconds"))
            & ((f.col("ended") > f.col("begun")) | is_undisturbed)
        )
    )
    overlap = f.least("ended", "running") - f.greatest(began, f.col("begun"))
    calm, is_known = f.col("ended") <= f.col("begun"), f.col("acked_per_second").isNotNull()
    sums = seen.groupBy(*ONE_OF_PLAN).agg(
        f.max("restarted_workers").alias("restarted_workers"),
        f.max(f.col("running") - f.col("begun")).alias("seconds"),
        f.max("failed_tuples").alias("failed_tuples"),
        f.expr("percentile(CASE WHEN ended <= begun THEN acked_per_second END, 0.5)").alias("rate_before"),
        f.avg(f.when(calm, f.col("expected_load"))).alias("load_before"),
        f.avg(f.when(~calm, f.col("expected_load"))).alias("load_meanwhile"),
        f.sum(f.when(~calm, f.col("acked_per_second") * f.col("period_seconds"))).alias("acked"),
        f.sum(f.when(~calm & is_known, f.col("period_seconds"))).alias("known_seconds"),
        f.sum(f.when(~calm & ~is_known, f.col("period_seconds")).otherwise(0.0)).alias("unmeasured_seconds"),
        f.sum(f.greatest(f.lit(0.0), overlap)).alias("recorded_seconds"),
    )
    unrecorded = f.greatest(f.lit(0.0), f.col("seconds") - f.col("recorded_seconds"))
    ratio = f.coalesce(f.col("load_meanwhile") / f.nullif("load_before", f.lit(0.0)), f.lit(1.0))
    short = f.col("rate_before") * ratio * f.col("known_seconds") - f.col("acked")
    missing = f.when(short.isNotNull(), f.greatest(f.lit(0.0), short))  # `greatest` passes over nulls
    return (
        sums.withColumn("unknown_seconds", f.round(f.col("unmeasured_seconds") + unrecorded, MICROSECONDS))
        .withColumn("missing_trees", missing)
        .withColumn("missing_trees_per_worker", f.col("missing_trees") / f.nullif("restarted_workers", f.lit(0)))
    )


def _with_own_workers(each: DataFrame, executors: DataFrame) -> DataFrame:
    """Rows of `_by_topology` whose `restarted_workers` are the topology's own, not all of the plan."""
    places = executors.where("supervisor_id IS NOT NULL").select(
        "cluster",
        "topology_id",
        "task_start",
        (f.unix_micros("period_end") / 1e6).alias("ended"),
        "period_seconds",
        f.concat_ws(":", "supervisor_id", "port").alias("place"),
    )
    near = f.col("ended").between(f.col("begun") - around_seconds(), f.col("running") + around_seconds())
    came_or_left = f.when(~f.col("was_at").eqNullSafe(f.col("is_at")), f.array("was_at", "is_at"))
    started = f.array_intersect(f.collect_set("is_at"), f.flatten(f.collect_set(came_or_left)))
    own = (
        each.select(*ONE_OF_PLAN, "begun", "running")
        .join(places, ["cluster", "topology_id"])
        .where(near)
        .groupBy(*ONE_OF_PLAN, "task_start")
        .agg(
            f.expr("max_by(place, ended) FILTER (WHERE ended <= begun)").alias("was_at"),
            f.expr("min_by(place, ended) FILTER (WHERE ended >= running)").alias("is_at"),
        )
        .groupBy(*ONE_OF_PLAN)
        .agg(f.when(f.count("was_at") * f.count("is_at") > 0, f.size(started)).cast("bigint").alias("own_workers"))
    )
    is_alone = f.size(topology_ids()) == 1
    workers = f.when(is_alone, f.col("restarted_workers")).otherwise(f.col("own_workers"))
    return each.join(own, ONE_OF_PLAN, "left").withColumn("restarted_workers", workers)


PREDICTED = {
    "inter_supervisor_tuples_per_second": (
        "predicted_after_inter_supervisor_tuples_per_second",
        "measured_after_inter_supervisor_tuples_per_second",
    ),
    "latency_mean_ms": ("predicted_after_latency_ms", "measured_after_latency_mean_ms"),
}
LEAST_MEASURED = 1e-3
"""Errors in percent of less than this say nothing."""


def prediction_errors(plans: DataFrame) -> DataFrame:
    """From one row per plan: how far predictions were from what was measured after, by policy and figure."""
    figures = [
        plans.where((f.col(measured) > LEAST_MEASURED) & f.col(predicted).isNotNull()).select(
            "cluster",
            "policy",
            f.lit(figure).alias("figure"),
            (100.0 * (f.col(predicted) - f.col(measured)) / f.nullif(measured, f.lit(0.0))).alias("off"),
        )
        for figure, (predicted, measured) in PREDICTED.items()
    ]
    together = figures[0]
    for other in figures[1:]:
        together = together.unionByName(other)
    return together.groupBy("cluster", "policy", "figure").agg(
        f.count(f.lit(1)).alias("plans"),
        f.expr("percentile(abs(off), 0.5)").alias("median_error_percent"),
        f.expr("percentile(off, 0.5)").alias("bias_percent"),
        f.expr("percentile(abs(off), 0.9)").alias("p90_error_percent"),
    )


def league(plans: DataFrame) -> DataFrame:
    """From one row per plan: policies by what their plans brought, as measured before and after.

    Moves, restarts and failed tuples are those of plans that came into force: of others nothing happened.
    """

    def change(figure: str) -> str:
        before, after = f"measured_before_{figure}", f"measured_after_{figure}"
        return f"percentile(CASE WHEN {before} > 0 THEN 100 * ({after} - {before}) / {before} END, 0.5)"

    def count(state: str) -> object:
        return f.count(f.when(f.col("state") == state, 1))

    def of_those_in_force(column: str) -> Column:
        return f.when(f.col("in_force_at").isNotNull(), f.col(column))

    def counted(column: str) -> Column:
        return f.coalesce(f.sum(of_those_in_force(column)), f.lit(0)).alias(column)

    return (
        plans.where(f.col("rollback_of").isNull() | (f.col("rollback_of") == ""))
        .groupBy("cluster", "policy")
        .agg(
            f.count(f.lit(1)).alias("plans"),
            count("Verified").alias("verified"),  # type: ignore[attr-defined]
            count("RolledBack").alias("rolled_back"),  # type: ignore[attr-defined]
            count("Failed").alias("failed"),  # type: ignore[attr-defined]
            f.expr(change("latency_mean_ms")).alias("latency_change_percent"),
            f.expr(change("inter_supervisor_tuples_per_second")).alias("traffic_change_percent"),
            counted("moves"),
            counted("restarted_workers"),
            f.sum(of_those_in_force("failed_tuples")).alias("failed_tuples"),
            f.count(of_those_in_force("failed_tuples")).alias("failed_tuples_plans"),
        )
    )

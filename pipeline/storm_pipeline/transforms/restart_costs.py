"""What it cost to put plans in force: tuple trees that were not completed meanwhile, against the rate before."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from storm_pipeline.transforms.effects import by_topology
from storm_pipeline.transforms.profiles import around_seconds, topology_ids

MICROSECONDS = 6
"""Digits of a second: times are recorded to them, and differences of finer ones are rounding."""
ONE_OF_PLAN = ["cluster", "plan_id", "topology_id"]


def restart_costs(plans: DataFrame, executors: DataFrame, topologies: DataFrame, expected: DataFrame) -> DataFrame:
    """Trees not completed while a plan was put in force, against the rate before it scaled by the forecast.

    Of periods whose throughput nobody knows nothing is missing and nothing was completed: they are `unknown_seconds`,
    as is time that no period was recorded of, and `missing_trees` is of the others, null where there is none. Where a
    plan covers several topologies, which of its workers are whose is told by where their executors were before and
    after it; null where that was not seen.
    """
    began = f.col("ended") - f.col("period_seconds")
    is_undisturbed = f.col("undisturbed_since").isNull() | (began >= f.col("undisturbed_since"))
    each = _with_own_workers(by_topology(plans).where("restarted_workers > 0"), executors)
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
    """Rows of `by_topology` whose `restarted_workers` are the topology's own, not all of the plan."""
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

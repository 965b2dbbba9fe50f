"""What a tuple costs in each component, how many it makes, how queues grow, and how long restarts take; robustly.

Medians, and 1.4826 times the median absolute deviation, which is the standard deviation of a normal variable: an hour
with a mishap changes neither.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from storm_operator.core.plan_record import PlanState

KEY = ("cluster", "topology_name", "component")
IDLE_FRACTION = 0.05
"""A period that executed less than this share of the usual rate says nothing about the cost of a tuple."""
USUAL_RATE = "percentile(executed_per_second, 0.5, bigint(ceil(executed_per_second * period_seconds)))"
"""Half of all tuples were executed in periods at least so busy: neither a burst nor long idling changes it much."""
LEAST_PER_SECOND = 1e-6
NORMAL_MAD = 1.4826
AROUND_SECONDS = 120.0
"""Before and after a plan, in which its executors are looked for; where periods are long, the time of two of them."""
ALL_HOURS = -1
"""Null cannot be joined on."""
FIGURES = ("cpu_per_tuple", "selectivity", "queue_growth")


def component_profile(periods: DataFrame) -> DataFrame:
    """From component periods: a row for each component and hour of the week, and one (hour null) over all hours."""
    usual = periods.groupBy(*KEY).agg(f.expr(USUAL_RATE).alias("usual_rate"))
    busy = f.col("executed_per_second") >= f.greatest(IDLE_FRACTION * f.col("usual_rate"), f.lit(LEAST_PER_SECOND))
    hour = (f.dayofweek("period_end") + 5) % 7 * 24 + f.hour("period_end")
    each = (
        periods.join(usual, list(KEY))
        .withColumn("cpu_per_tuple", f.when(busy, f.col("cpu_millicores") / f.col("executed_per_second")))
        .withColumn("selectivity", f.when(busy, f.col("emitted_per_second") / f.col("executed_per_second")))
        .withColumn("queue_growth", f.col("queue_growth_per_second"))
        .withColumn("used_each", f.col("cpu_millicores") / f.col("executors"))
        # Every row twice: in its own hour, and in all of them together.
        .withColumn("hour_of_week", f.explode(f.array(hour.cast("bigint"), f.lit(ALL_HOURS).cast("bigint"))))
    )
    group = [*KEY, "hour_of_week"]
    medians = each.groupBy(*group).agg(
        f.first("component_kind").alias("component_kind"),
        f.count(f.lit(1)).alias("periods"),
        *(_median(figure).alias(figure) for figure in FIGURES),
        *(f.count(figure).alias(f"{figure}_periods") for figure in FIGURES),
        _median("used_each").alias("used_millicores"),
        f.expr("percentile(used_each, 0.95)").alias("used_millicores_p95"),
        # What a topology was submitted with before is nothing to compare with.
        f.max(f.struct("period_end", "topology_id", "executors", "declared_millicores")).alias("newest"),
    )
    middles = medians.select(*group, *(f.col(figure).alias(f"{figure}_middle") for figure in FIGURES))
    deviations = (
        each.join(middles, group)
        .select(*group, *(f.abs(f.col(figure) - f.col(f"{figure}_middle")).alias(figure) for figure in FIGURES))
        .groupBy(*group)
        .agg(*((NORMAL_MAD * _median(figure)).alias(f"{figure}_spread") for figure in FIGURES))
    )
    share = f.col("used_millicores_p95") / f.col("declared_millicores")
    return (
        medians.join(deviations, group)
        .withColumns({name: f.col(f"newest.{name}") for name in ("executors", "declared_millicores")})
        .withColumn("used_share_of_declared", f.when(f.col("declared_millicores") > 0.0, share))
        .withColumn("hour_of_week", f.when(f.col("hour_of_week") != ALL_HOURS, f.col("hour_of_week")))
        .withColumns({"newest_period": f.col("newest.period_end"), "topology_id": f.col("newest.topology_id")})
        .drop("newest")
    )


def newest_states(plans: DataFrame) -> DataFrame:
    """One row per plan: that of its newest state, which says all that is known of it."""
    in_order = f.array(*(f.lit(state.value) for state in PlanState))
    newest = f.struct("period_end", f.array_position(in_order, f.col("state")).alias("how_far"), "state")
    best = plans.groupBy("cluster", "plan_id").agg(f.max(newest).alias("newest"))
    picked = best.select("cluster", "plan_id", "newest.period_end", "newest.state")
    return plans.join(picked, ["cluster", "plan_id", "period_end", "state"]).dropDuplicates(["cluster", "plan_id"])


def topology_ids() -> Column:
    """The topologies of a plan, out of the one text that the recorder makes of them (`history_rows.one_text`)."""
    parts = f.split("topology_ids", r"(?<!\\),")
    return f.transform(parts, lambda part: f.replace(part, f.lit("\\,"), f.lit(",")))


def restart_times(plans: DataFrame, executors: DataFrame) -> DataFrame:
    """From one row per plan: seconds to in force and to running, by method and by whether state had to move.

    `state_moved` is null where executors were not seen both before and after the plan. `running_plans` are those of
    which somebody saw all executors run again: of others nobody knows how much longer they took.
    """
    in_force = plans.where(f.col("in_force_at").isNotNull())
    moved = in_force.join(_state_moved(in_force, executors), ["cluster", "plan_id"], "left")
    times = {"in_force": "seconds_to_in_force", "running": "seconds_to_running"}
    return moved.groupBy("cluster", "method", "state_moved").agg(
        f.count(f.lit(1)).alias("plans"),
        *(_median(column).alias(f"{name}_median") for name, column in times.items()),
        *(f.expr(f"percentile({column}, 0.9)").alias(f"{name}_p90") for name, column in times.items()),
        f.count("seconds_to_running").alias("running_plans"),
        f.sum("restarted_workers").alias("restarted_workers"),
        f.sum("failed_tuples").alias("failed_tuples"),
        f.count("failed_tuples").alias("failed_tuples_plans"),
    )


def around_seconds() -> Column:
    """How long before and after a plan a period, of a column `period_seconds`, may end to tell of it."""
    return f.greatest(f.lit(AROUND_SECONDS), 2.0 * f.col("period_seconds"))


def _state_moved(plans: DataFrame, executors: DataFrame) -> DataFrame:
    """Whether any stateful executor of a plan's topologies lived elsewhere right after it than right before it.

    Later it may live where the next plan has put it.
    """
    each = plans.select(
        "cluster", "plan_id", "created_at", "in_force_at", f.explode(topology_ids()).alias("topology_id")
    )
    places = executors.where("stateful AND supervisor_id IS NOT NULL").select(
        "cluster",
        "topology_id",
        "task_start",
        "period_end",
        "period_seconds",
        f.concat_ws(":", "supervisor_id", "port").alias("place"),
    )
    created, in_force, ended = (f.unix_micros(name) / 1e6 for name in ("created_at", "in_force_at", "period_end"))
    near = ended.between(created - around_seconds(), in_force + around_seconds())
    seen = each.join(places, ["cluster", "topology_id"]).where(near)
    return (
        seen.groupBy("cluster", "plan_id", "topology_id", "task_start")
        .agg(
            f.expr("max_by(place, period_end) FILTER (WHERE period_end <= created_at)").alias("before"),
            f.expr("min_by(place, period_end) FILTER (WHERE period_end > in_force_at)").alias("after"),
        )
        .groupBy("cluster", "plan_id")
        .agg(f.max(f.col("before") != f.col("after")).alias("state_moved"))
    )


def _median(column: str) -> Column:
    return f.expr(f"percentile({column}, 0.5)")

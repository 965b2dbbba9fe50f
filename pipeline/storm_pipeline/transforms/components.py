"""Executors' periods summed up to their components', as the operator's forecast sees them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from storm_operator.core.model import HARDLY_WAITING

SPOUT = "spout"
COMPONENT = ("cluster", "topology_id", "topology_name", "component")
MEASURED = (
    "arrived_per_second",
    "executed_per_second",
    "emitted_per_second",
    "queue_growth_per_second",
    "cpu_millicores",
)
COST_PER_TUPLE = (
    "percentile(cpu_millicores / nullif(executed_per_second, 0), 0.5, "
    "bigint(ceil(executed_per_second * period_seconds)))"
)
"""Millicores for a tuple per second: half of all tuples cost no more. Of periods, where most are idle, the median would
say what idling costs, not what a tuple does."""


def component_periods(executors: DataFrame) -> DataFrame:
    """One row per component and period that was measured whole; a missing executor would look like a fall of the load.

    What a spout emits is taken for what arrived at it and what it executed, as the operator does. `busy_executors` are
    those that ever got a tuple; the others use no CPU.
    """
    is_spout = f.col("component_kind") == SPOUT
    complete = f.count(f.when(_known(), 1)) == f.count(f.lit(1))
    return (
        executors.withColumn("own_millicores", f.col("cpu_millicores"))
        .withColumn("cpu_millicores", f.when(_never_busy(), 0.0).otherwise(f.col("own_millicores")))
        .groupBy(*COMPONENT, "period_end", "period_seconds")
        .agg(
            f.first("component_kind").alias("component_kind"),
            f.count(f.lit(1)).alias("executors"),
            f.count("own_millicores").alias("busy_executors"),
            complete.alias("complete"),
            *(f.sum(name).alias(name) for name in MEASURED),
            f.max("declared_cpu_millicores").alias("declared_millicores"),
        )
        .where("complete AND period_seconds > 0")
        .drop("complete")
        .withColumn("arrived_per_second", f.when(is_spout, f.col("emitted_per_second")).otherwise(f.col(MEASURED[0])))
        .withColumn("executed_per_second", f.when(is_spout, f.col("emitted_per_second")).otherwise(f.col(MEASURED[1])))
    )


def _never_busy() -> Column:
    """As `ExecutorLoad.never_busy`: nobody knows its thread since no tuple has come; for one of which some wait, it has
    not come up."""
    does_nothing = (f.col("executed_per_second") == 0.0) & (f.col("emitted_per_second") == 0.0)
    return f.col("cpu_millicores").isNull() & does_nothing & (f.col("queue_length") <= HARDLY_WAITING)


def _known() -> Column:
    known = f.lit(True)
    for name in MEASURED:
        known = known & f.col(name).isNotNull()
    return known

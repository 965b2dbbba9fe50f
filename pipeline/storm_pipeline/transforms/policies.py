"""Policies by what their plans brought and by how good their predictions were, as the operator itself measured them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

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

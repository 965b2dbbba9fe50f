"""What the report reads of a lake: tables that stay small as they are, of those that grow an overview."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from storm_pipeline import gold
from storm_pipeline.lake import Lake, exists, read
from storm_pipeline.made import Sources
from storm_pipeline.reporting.section import Found
from storm_pipeline.schemas import (
    CLUSTER,
    DATE,
    GAPS,
    HEAVIEST_PAIRS,
    KEY_SKEW,
    QUALITY,
    QUARANTINE,
    TRAFFIC,
    TRAFFIC_SHARE,
    DerivedTable,
)
from storm_pipeline.transforms.overview import (
    Overview,
    component_traffic,
    dearest_restarts,
    heaviest_of_all,
    longest_gaps,
    newest_effects,
    reach_of_topologies,
    reach_over_time,
    rows_by_reason,
    rows_by_table,
    skew_over_time,
    skewed_edges,
)

WHOLE: tuple[DerivedTable, ...] = (
    gold.COMPONENT_PROFILE,
    gold.RESTARTS,
    gold.FORECAST_ERRORS,
    gold.SEASONS,
    gold.LEAGUE,
    gold.PREDICTION_ERRORS,
    gold.TUNING_ADVICE,
)
"""They have rows for each component or policy: a longer history makes them no longer."""
OVERVIEWS: Mapping[str, tuple[DerivedTable, Callable[[DataFrame], Overview]]] = {
    "reach_over_time": (TRAFFIC_SHARE, reach_over_time),
    "reach_of_topologies": (TRAFFIC_SHARE, reach_of_topologies),
    "component_traffic": (TRAFFIC["component"], component_traffic),
    "heaviest_pairs": (HEAVIEST_PAIRS, heaviest_of_all),
    "skewed_edges": (KEY_SKEW, skewed_edges),
    "skew_over_time": (KEY_SKEW, skew_over_time),
    "plan_effects": (gold.PLAN_EFFECTS, newest_effects),
    "restart_costs": (gold.RESTART_COSTS, dearest_restarts),
    "rows_by_table": (QUALITY, rows_by_table),
    "rows_by_reason": (QUARANTINE, rows_by_reason),
    "gaps": (GAPS, longest_gaps),
}
TABLES: tuple[DerivedTable, ...] = (*WHOLE, *{table.name: table for table, _ in OVERVIEWS.values()}.values())
OF_INGEST = (QUALITY, QUARANTINE)
"""What ingest tells of itself lies beside what it made."""


def read_known(spark: SparkSession, lake: Lake, cluster: str) -> dict[str, Found]:
    """All that the sections are made of: whole tables by their name, overviews by theirs."""
    known = {table.name: _whole(spark, path_of(lake, table), table, cluster) for table in WHOLE}
    for name, (table, overview) in OVERVIEWS.items():
        known[name] = _overview(spark, path_of(lake, table), table, cluster, overview)
    return known


def sources(lake: Lake, cluster: str | None) -> Sources:
    """The rows that the report goes through, for `made.figures_of`."""
    return lambda spark: [(table.name, chosen_rows(spark, path_of(lake, table), table, cluster)) for table in TABLES]


def path_of(lake: Lake, table: DerivedTable) -> str:
    """Where the table is."""
    return lake.silver(table.name) if table in OF_INGEST else lake.gold(table.name)


def chosen_rows(spark: SparkSession, path: str, table: DerivedTable, cluster: str | None) -> DataFrame:
    """Of the table at `path` those of the cluster; None: of all clusters."""
    rows = read(spark, path, table)
    return rows.where(f.col(CLUSTER) == cluster) if cluster is not None and CLUSTER in rows.columns else rows


def _whole(spark: SparkSession, path: str, table: DerivedTable, cluster: str) -> Found:
    """A cluster's rows, sorted, without the columns that are the same in all of them."""
    rows = chosen_rows(spark, path, table, cluster)
    kept = [name for name in rows.columns if name not in (CLUSTER, DATE)]
    frame: pd.DataFrame = rows.select(*kept).orderBy(*kept).toPandas()
    return Found(frame, len(frame), exists(spark, path))


def _overview(
    spark: SparkSession, path: str, table: DerivedTable, cluster: str, make: Callable[[DataFrame], Overview]
) -> Found:
    overview = make(chosen_rows(spark, path, table, cluster))
    return Found(overview.rows.toPandas(), overview.count.collect()[0]["total"], exists(spark, path))

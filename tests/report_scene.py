"""Traffic and data quality as the jobs leave them, a few rows of each table: what the report is tested with."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from storm_pipeline.lake import Lake, frame_of, replace_all
from storm_pipeline.reporting.reading import path_of
from storm_pipeline.schemas import (
    GAPS,
    HEAVIEST_PAIRS,
    KEY_SKEW,
    QUALITY,
    QUARANTINE,
    TRAFFIC,
    TRAFFIC_SHARE,
    DerivedTable,
)

CLUSTER = "blue"
START = datetime(2026, 1, 1, tzinfo=UTC)
USUAL: dict[str, Any] = {
    "cluster": CLUSTER,
    "date": date(2026, 1, 1),
    "window": "1 day",
    "window_start": START,
    "topology_id": "t-1",
    "source": "spout",
    "target": "bolt",
}
MINUTE = {"window": "1 minute"}
PAIR = {"source_task": 1, "target_task": 2}
EVEN = {"receivers": 2, "heaviest_share": 0.5, "imbalance": 1.0, "gini": 0.0}
UNEVEN = {"receivers": 2, "heaviest_share": 0.75, "imbalance": 1.5, "gini": 0.25}
RECORDED = {"first_period": START - timedelta(hours=1), "last_period": START + timedelta(hours=5)}
COUNTS = {"table": "pairs", "rows_read": 10, "rows_kept": 7, "duplicates": 1, "quarantined": 2, **RECORDED}
TABLES: dict[DerivedTable, tuple[dict[str, Any], ...]] = {
    TRAFFIC_SHARE: tuple(
        {**window, "reach": reach, "tuples": tuples}
        for window in (MINUTE, {})
        for reach, tuples in (("worker", 60.0), ("supervisor", 30.0), ("network", 10.0))
    ),
    TRAFFIC["component"]: ({"tuples": 75.0}, {"source": "bolt", "target": "__acker", "tuples": 25.0}),
    HEAVIEST_PAIRS: ({**PAIR, "tuples": 40.0, "share": 0.4}, {**PAIR, "target_task": 3, "tuples": 35.0, "share": 0.35}),
    KEY_SKEW: ({**EVEN, **MINUTE, "tuples": 5.0}, {**UNEVEN, "tuples": 75.0}),
    QUALITY: ({**COUNTS, "batch": 0}, {**COUNTS, "batch": 1}),
    QUARANTINE: ({"table": "pairs", "reason": "too late"}, {"table": "pairs", "reason": "too late"}),
    GAPS: ({"gap_start": START, "gap_end": START + timedelta(minutes=3), "reason": "the recorder was restarted"},),
}


def rows_of(spark: SparkSession, table: DerivedTable, *rows: dict[str, Any]) -> DataFrame:
    """Rows of a table by what is special of each; the rest is usual, or null."""
    full = [{**USUAL, **row} for row in rows]
    return frame_of(spark, [tuple(row.get(name) for name in table.schema.names) for row in full], table.schema)


def fill(spark: SparkSession, lake: Lake) -> None:
    """Write `TABLES` into a lake."""
    for table, rows in TABLES.items():
        replace_all(rows_of(spark, table, *rows), path_of(lake, table), table)

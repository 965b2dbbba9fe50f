"""All tables of the pipeline: bronze as recorded, silver cleaned, gold computed. Spark's types for each.

Bronze is described in `storm_operator.core.history_tables`, shared with the recorder. A silver table has the columns
of its bronze one and is partitioned by cluster and date; a gold one says its own. Where each lies: `lake.Lake`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import types as t

from storm_operator.core.history_tables import TABLES, Column, Kind, Table

CLUSTER, DATE = "cluster", "date"
PARTITIONS = (CLUSTER, DATE)

_TYPES: dict[Kind, t.DataType] = {
    Kind.TEXT: t.StringType(),
    Kind.TEXTS: t.ArrayType(t.StringType()),
    Kind.WHOLE: t.LongType(),
    Kind.NUMBER: t.DoubleType(),
    Kind.TRUTH: t.BooleanType(),
    Kind.TIME: t.TimestampType(),
}
BRONZE: dict[str, Table] = {table.name: table for table in TABLES}


def fields(columns: tuple[Column, ...]) -> list[t.StructField]:
    """Spark's fields, all nullable: files can lack what they should have, and that is found out, not assumed."""
    return [t.StructField(column.name, _TYPES[column.kind]) for column in columns]


def bronze_schema(table: Table) -> t.StructType:
    """As its Parquet files and folders (cluster=C/date=D) are read."""
    partitions = [t.StructField(CLUSTER, t.StringType()), t.StructField(DATE, t.DateType())]
    return t.StructType([*fields(table.columns), *partitions])


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A table that a job computes."""

    name: str
    meaning: str
    schema: t.StructType
    partitions: tuple[str, ...] = PARTITIONS


BRONZE_ONLY = ("schema_version", "run_id", "rows_in_period")
"""Columns that bronze has so that ingest can tell whole periods; silver goes without."""


def silver_table(table: Table) -> DerivedTable:
    """The clean form of a bronze table: same columns but `BRONZE_ONLY`."""
    kept = [field for field in bronze_schema(table).fields if field.name not in BRONZE_ONLY]
    return DerivedTable(table.name, table.meaning, t.StructType(kept))


SILVER: dict[str, DerivedTable] = {table.name: silver_table(table) for table in TABLES}


_WORDS: dict[str, t.DataType] = {
    **{kind.value: data_type for kind, data_type in _TYPES.items()},
    "date": t.DateType(),
    "counts": t.MapType(t.StringType(), t.LongType()),
}


def schema_of(text: str) -> t.StructType:
    """`name type, ...` with the words of `Kind`, `date` and `counts` (text to whole) for types.

    Spark's own notation cannot be read before there is a session.
    """
    pairs = [part.split() for part in text.split(",")]
    return t.StructType([t.StructField(name, _WORDS[word]) for name, word in pairs])


QUARANTINE = DerivedTable(
    "quarantine",
    "Rows that were not taken in, whole and with the reason; `row` is JSON",
    schema_of("table text, reason text, run_id text, period_end time, row text, cluster text, date date"),
)
QUALITY = DerivedTable(
    "quality",
    "What one batch of ingest did with one table of one cluster: rows read, kept, set aside by reason; its files, and "
    "the stream that it is of: without its checkpoint another begins, and counts its batches anew",
    schema_of(
        "table text, batch whole, rows_read whole, rows_kept whole, duplicates whole, quarantined whole, "
        "reasons counts, first_period time, last_period time, files texts, stream text, cluster text"
    ),
    (CLUSTER,),
)
GAPS = DerivedTable(
    "gaps",
    "Time in which nothing was recorded of a cluster, and why as far as is known",
    schema_of(
        "gap_start time, gap_end time, missing_periods whole, dropped whole, reason text, cluster text, date date"
    ),
)

TRAFFIC_KEYS: dict[str, tuple[str, ...]] = {
    "executor": (
        "topology_id",
        *("source", "source_task", "source_supervisor", "source_port"),
        *("target", "target_task", "target_supervisor", "target_port"),
    ),
    "component": ("topology_id", "source", "target"),
    "worker": ("topology_id", "source_supervisor", "source_port", "target_supervisor", "target_port"),
    "supervisor": ("topology_id", "source_supervisor", "target_supervisor"),
}
"""What names a row of each level, beside the window; `source` and `target` are components."""
WINDOWS: dict[str, int] = {"1 minute": 60, "10 minutes": 600, "1 hour": 3600, "1 day": 86400}
"""Seconds by name."""


def _word_of(key: str) -> str:
    return "whole" if key.endswith(("_task", "_port")) else "text"


TRAFFIC: dict[str, DerivedTable] = {
    level: DerivedTable(
        f"traffic_{level}",
        f"Tuples from {level} to {level} in a window; window is one of {', '.join(WINDOWS)}",
        schema_of(
            f"window_start time, {', '.join(f'{key} {_word_of(key)}' for key in keys)}, "
            "tuples number, measured_seconds number, cluster text, date date, window text"
        ),
        (CLUSTER, DATE, "window"),
    )
    for level, keys in TRAFFIC_KEYS.items()
}
TRAFFIC_SHARE = DerivedTable(
    "traffic_share",
    "Tuples of a topology in a window, by how far they go: worker, supervisor, network, or unplaced",
    schema_of(
        "window_start time, topology_id text, reach text, tuples number, share number, "
        "cluster text, date date, window text"
    ),
    (CLUSTER, DATE, "window"),
)
HEAVIEST_PAIRS = DerivedTable(
    "heaviest_pairs",
    "The pairs of executors of a topology with most tuples in a window, and their share of all",
    schema_of(
        "window_start time, topology_id text, rank whole, source text, source_task whole, target text, "
        "target_task whole, tuples number, share number, cluster text, date date, window text"
    ),
    (CLUSTER, DATE, "window"),
)
KEY_SKEW = DerivedTable(
    "key_skew",
    "How unevenly a fields grouping spreads tuples over the executors that receive them",
    schema_of(
        "window_start time, topology_id text, source text, target text, receivers whole, tuples number, "
        "heaviest_share number, imbalance number, gini number, cluster text, date date, window text"
    ),
    (CLUSTER, DATE, "window"),
)

"""Recorded files for tests, laid by hand; and what ingest should make of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from storm_operator.core.history_tables import PAIRS, Table
from storm_operator.history.arrow import arrow_schema
from storm_pipeline.ingestion import Tally
from storm_pipeline.jobs.ingest import Intake
from storm_pipeline.lake import Lake, read
from storm_pipeline.schemas import BRONZE_ONLY, SILVER

CLUSTER = "blue:6627"
FOLDER = "cluster=blue%3A6627/date=2026-01-01"
COMPRESSED = bytes.fromhex("28b52ffd")
"""What compressed pages begin with."""


def bronze(recorded: Path, table: Table) -> list[dict[str, Any]]:
    """All rows of a recorded table."""
    rows: list[dict[str, Any]] = []
    for path in sorted((recorded / table.name).rglob("*.parquet")):
        rows += pq.read_table(path).to_pylist()
    return rows


def lay(root: Path, rows: list[dict[str, Any]], name: str, table: Table = PAIRS) -> Path:
    """A recorded file of `rows`."""
    folder = root / "bronze" / table.name / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(table)), path)
    return path


def break_page(path: Path, column: str) -> None:
    """Spoil a recorded file's last rows in one column; its footer and all other rows stay sound."""
    rows = pq.read_table(path)
    pq.write_table(rows, path, compression="zstd", row_group_size=rows.num_rows // 3)
    groups = pq.ParquetFile(path).metadata
    chunk = groups.row_group(groups.num_row_groups - 1).column(rows.column_names.index(column))
    content = path.read_bytes()
    page = content.index(COMPRESSED, chunk.data_page_offset)
    path.write_bytes(content[:page] + bytes(len(COMPRESSED)) + content[page + len(COMPRESSED) :])


def change_type(path: Path, column: str) -> None:
    """Make a column of a recorded file one of text."""
    rows = pq.read_table(path)
    place = rows.column_names.index(column)
    pq.write_table(rows.set_column(place, column, rows[column].cast(pa.string())), path)


def run(spark: SparkSession, root: Path, tables: Iterable[Table] = (PAIRS,), **more: Any) -> dict[str, Tally]:
    """Ingest what is there; what became of the rows, by table."""
    told: dict[str, Tally] = {}
    Intake(Lake(str(root)), **more).run(
        spark, lambda table, _, tallies: told.update({table: tallies[CLUSTER]}), tuple(tables)
    )
    return told


def silver(spark: SparkSession, root: Path, table: Table = PAIRS) -> list[tuple[Any, ...]]:
    """All rows of a silver table of the lake in a folder, sorted."""
    return silver_of(spark, Lake(str(root)), table)


def silver_of(spark: SparkSession, lake: Lake, table: Table) -> list[tuple[Any, ...]]:
    """All rows of a silver table, sorted."""
    rows = read(spark, lake.silver(table.name), SILVER[table.name]).drop("cluster", "date").collect()
    return sorted(tuple(row) for row in rows)


def wanted(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The silver rows of bronze rows without fault."""
    return sorted(tuple(naive(value) for key, value in row.items() if key not in BRONZE_ONLY) for row in rows)


def naive(value: Any) -> Any:
    """Times as Spark gives them to Python: without their zone, which is UTC."""
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value

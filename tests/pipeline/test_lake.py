"""Tables are made once, grown when a column is new, and written so that a repetition changes nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from storm_pipeline.lake import Day, append_once, days_of, frame_of, read, replace_day
from storm_pipeline.schemas import DerivedTable, schema_of

TABLE = DerivedTable("things", "", schema_of("thing text, value number, cluster text, date date"))
MONDAY, TUESDAY = date(2026, 1, 5), date(2026, 1, 6)


def frame(spark: SparkSession, *rows: tuple[str, float | None, str, date]) -> DataFrame:
    return frame_of(spark, list(rows), TABLE.schema)


def contents(spark: SparkSession, path: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in read(spark, path, TABLE).collect())


def test_a_batch_is_appended_once(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "things")
    rows = frame(spark, ("a", 1.0, "blue", MONDAY))
    append_once(rows, path, TABLE, "writer", 0)
    append_once(rows, path, TABLE, "writer", 0)
    append_once(rows, path, TABLE, "other", 0)
    append_once(rows, path, TABLE, "writer", 1)
    assert len(contents(spark, path)) == 3


def test_a_day_is_replaced_and_the_others_stay(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "things")
    both = frame(spark, ("a", 1.0, "it's", MONDAY), ("b", 2.0, "it's", TUESDAY))
    append_once(both, path, TABLE, "writer", 0)
    for _ in range(2):
        replace_day(frame(spark, ("c", 3.0, "it's", MONDAY)), path, TABLE, Day("it's", MONDAY))
    assert contents(spark, path) == [("b", 2.0, "it's", TUESDAY), ("c", 3.0, "it's", MONDAY)]
    assert days_of(spark, path) == (Day("it's", MONDAY), Day("it's", TUESDAY))


def test_an_older_table_gets_the_column_that_is_new(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "things")
    append_once(frame(spark, ("a", 1.0, "blue", MONDAY)), path, TABLE, "writer", 0)
    newer = replace(TABLE, schema=t.StructType([*TABLE.schema.fields, t.StructField("colour", t.StringType())]))
    assert [row["colour"] for row in read(spark, path, newer).collect()] == [None]
    append_once(frame_of(spark, [("b", 1.0, "blue", MONDAY, "red")], newer.schema), path, newer, "writer", 1)
    assert {row["thing"]: row["colour"] for row in read(spark, path, newer).collect()} == {"a": None, "b": "red"}


def test_a_table_that_is_not_there_is_empty(spark: SparkSession, tmp_path: Path) -> None:
    assert read(spark, str(tmp_path / "nothing"), TABLE).count() == 0

"""A recorded real run of Storm gives the same tables as ever."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from golden_tables import RECORDED, Rows, golden, made_of_recorded


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Rows]:
    return made_of_recorded(spark, tmp_path_factory.mktemp("lake"))


@pytest.mark.parametrize("table", sorted(golden()))
def test_the_recorded_run_gives_the_kept_table(made: Mapping[str, Rows], table: str) -> None:
    assert made[table] == golden()[table], "`make golden` makes it anew: read the change before you keep it"


def test_every_table_is_kept_and_tells_of_something(made: Mapping[str, Rows]) -> None:
    assert set(made) == set(golden())
    empty = {name for name, rows in made.items() if not rows}
    assert empty <= {"gaps"}, "a run without a plan or traffic proves little"


def test_tuples_between_components_are_those_recorded(made: Mapping[str, Rows]) -> None:
    """By arithmetic of its own: rate times length of period, summed over all files."""
    recorded = 0.0
    for path in RECORDED.glob("pairs/*/*/*.parquet"):
        rows = pq.read_table(path)
        recorded += sum(
            rate * seconds
            for rate, seconds in zip(
                rows["tuples_per_second"].to_pylist(), rows["period_seconds"].to_pylist(), strict=True
            )
        )
    for window in ("1 minute", "10 minutes"):
        told = sum(row["tuples"] for row in made["traffic_component"] if row["window"] == window)
        assert told == pytest.approx(recorded, rel=1e-5)

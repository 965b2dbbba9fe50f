"""Into how many parts Spark shuffles, by the master it is given."""

from __future__ import annotations

import pytest

from storm_pipeline.spark import SparkSettings, _tuning


@pytest.mark.parametrize(("master", "parts"), [("local[2]", "16"), ("local", "8"), ("local[3,2]", "24")])
def test_eight_for_each_core_of_this_machine(master: str, parts: str) -> None:
    assert _tuning(SparkSettings(master)) == {"spark.sql.shuffle.partitions": parts}


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "spark://127.0.0.1:7077", "k8s://https://api:6443"])
def test_elsewhere_spark_decides(master: str) -> None:
    assert _tuning(SparkSettings(master)) == {}

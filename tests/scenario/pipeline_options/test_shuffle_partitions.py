"""Into how many parts Spark shuffles, by the master it is given."""

from __future__ import annotations

import pytest

from storm_pipeline.spark import GATEWAY_OF_SPARK_SUBMIT, SparkSettings, _tuning


@pytest.mark.parametrize(("master", "parts"), [("local[2]", "16"), ("local", "8"), ("local[3,2]", "24")])
def test_eight_for_each_core_of_this_machine(master: str, parts: str) -> None:
    assert _tuning(SparkSettings(master)) == {"spark.sql.shuffle.partitions": parts}


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "spark://127.0.0.1:7077", "k8s://https://api:6443"])
def test_elsewhere_spark_decides(master: str) -> None:
    assert _tuning(SparkSettings(master)) == {}


def test_under_spark_submit_the_master_is_not_ours_and_spark_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GATEWAY_OF_SPARK_SUBMIT, "40000")
    assert _tuning(SparkSettings()) == {}
    assert _tuning(SparkSettings(shuffle_partitions=3)) == {"spark.sql.shuffle.partitions": "3"}


def test_how_often_a_task_may_fail_changes_nothing() -> None:
    assert _tuning(SparkSettings("local[*,4]")) == _tuning(SparkSettings("local[*]"))

"""Old days go by Delta's own statements, as docs/explanation/pipeline.md has them; ingest does not bring them back."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import SparkSession

from bronze_files import CLUSTER, run, silver
from history_scene import record

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "pipeline.md"


def statements(lake: Path) -> list[str]:
    """Those of the page, on this lake."""
    (block,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [text.strip().replace("LAKE", str(lake)) for text in block.split(";") if text.strip()]


def test_what_was_deleted_is_not_taken_in_again(spark: SparkSession, tmp_path: Path) -> None:
    record(tmp_path / "bronze", periods=3, cluster=CLUSTER)
    assert run(spark, tmp_path)["pairs"].rows_kept == len(silver(spark, tmp_path)) > 0
    for statement in statements(tmp_path):
        spark.sql(statement)
    assert silver(spark, tmp_path) == []
    assert run(spark, tmp_path) == {}
    assert silver(spark, tmp_path) == []

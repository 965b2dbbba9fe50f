"""Several jobs in one Spark session, as the command line runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from history_scene import record
from storm_pipeline.cli import app
from storm_pipeline.gold import COMPONENT_PROFILE
from storm_pipeline.lake import Lake, exists, read
from storm_pipeline.progress import DONE
from storm_pipeline.schemas import TRAFFIC

PERIODS = 4


def invoked(lake: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["run", str(lake), *words])


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    record(tmp_path / "bronze", periods=PERIODS)
    return tmp_path


def test_each_job_goes_by_what_the_one_before_has_made_by_its_own_options_in_the_session_that_stays_open(
    spark: SparkSession, lake: Path
) -> None:
    done = invoked(lake, "ingest", "traffic --heaviest-pairs 3", "profile")
    assert done.exit_code == 0, done.output
    titles = [line.split()[1] for line in done.output.splitlines() if line.startswith("storm-pipeline ")]
    assert titles == ["ingest", "traffic", "profile"]
    made = Lake(str(lake))
    assert read(spark, made.gold("traffic_executor"), TRAFFIC["executor"]).count() > 0
    assert read(spark, made.gold(COMPONENT_PROFILE.name), COMPONENT_PROFILE).count() > 0
    assert [row["source"].split()[-1] for row in read(spark, made.gold(DONE.name), DONE).collect()] == [
        "heaviest_pairs:3"
    ]


def test_a_cluster_that_there_is_no_history_of_is_said_by_each_job(spark: SparkSession, lake: Path) -> None:
    assert invoked(lake, "ingest").exit_code == 0
    for job in ("traffic", "profile", "forecast", "evaluate", "tune", f"report -f {lake}/report"):
        done = invoked(lake, f"{job} --cluster '[green]'")
        assert done.exit_code == 2, job
        assert done.stderr == f"--cluster: '[green]' is not in {lake}; there is blue\n"


def test_the_first_job_that_fails_ends_the_run(spark: SparkSession, lake: Path) -> None:
    done = invoked(lake, "profile", "ingest")
    assert done.exit_code == 2
    assert "run `storm-pipeline ingest` first" in done.output
    assert not exists(spark, Lake(str(lake)).silver("pairs"))


def test_nothing_is_done_when_a_later_job_is_called_wrongly(spark: SparkSession, lake: Path) -> None:
    done = invoked(lake, "ingest", "traffic --heaviest-pairs none")
    assert done.exit_code == 2
    assert "--heaviest-pairs" in done.output
    assert not exists(spark, Lake(str(lake)).silver("pairs"))

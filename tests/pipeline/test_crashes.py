"""Each job cut short in each of its writes, and run again: its tables are those of a run that nothing disturbed.

So is what it publishes, which is whole at any time.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from rich.table import Table

import learned_profiles
from crashes import Job, contents, crashes_of, gone_on_from
from learning_scene import CLUSTER, CYCLE_SECONDS, lake_of
from storm_operator.core.learned_profile_json import dump_profile, load_profile
from storm_pipeline.jobs import evaluate, forecast, profile, traffic, tune
from storm_pipeline.jobs.traffic import TrafficJob
from storm_pipeline.lake import Day, Lake
from storm_pipeline.reporting.page import write_report
from storm_pipeline.reporting.section import Section
from storm_pipeline.tuning.halving import Ladder, climb
from storm_pipeline.tuning.replay import Outcome

PUBLISHED = "profile.json"
AT_ONCE = 2
"""Spark plans small jobs on one core."""
JOBS: Mapping[str, Job] = {
    "traffic": lambda lake: traffic.traffic(str(lake)),
    "profile": lambda lake: profile.profile(str(lake), publish_file=lake / PUBLISHED),
    "forecast": lambda lake: forecast.forecast(
        str(lake), cycle=CYCLE_SECONDS, bins=10.0, phi=3, yardsticks=False, publish_file=lake / PUBLISHED
    ),
    "evaluate": lambda lake: evaluate.evaluate(str(lake), around=120.0),
    "tune": lambda lake: tune.tune(str(lake), hours=0.07, settings=2, replays=2, publish_file=lake / PUBLISHED),
}
WRITES = {"traffic": 8, "profile": 3, "forecast": 3, "evaluate": 4, "tune": 3}
"""Of tables, the ledger and the profile."""
AN_EARLIER_PROFILE = dump_profile(learned_profiles.profile("wordcount", ["split"], learned_profiles.season(1.0, 2.0)))


@pytest.fixture(scope="module")
def jobs(spark: SparkSession) -> Iterator[Mapping[str, Job]]:
    """Commands in this session, which tell a person nothing and compute no more than it takes to write all tables."""

    @contextmanager
    def this_session(*_: object, **__: object) -> Iterator[SparkSession]:
        yield spark

    with pytest.MonkeyPatch.context() as patch:
        for job in (evaluate, forecast, profile, traffic, tune):
            patch.setattr(job, "spark_job", this_session)
        for told in (evaluate, forecast, profile):
            patch.setattr(told, "summary", lambda *_: Table())
        patch.setattr(tune, "climb", remembered_climb())
        patch.setattr(traffic, "TrafficJob", partial(TrafficJob, windows=("1 minute", "1 hour")))
        yield JOBS


def remembered_climb() -> Callable[..., list[Outcome]]:
    """By far the most of what `tune` does, and none of it writes."""
    known: dict[float, list[Outcome]] = {}

    def climbed(chosen: Any, ladder: Ladder, seed: int, play_all: Any) -> list[Outcome]:
        if ladder.seconds not in known:
            known[ladder.seconds] = climb(chosen, ladder, seed, play_all)
        return known[ladder.seconds]

    return climbed


@pytest.fixture(scope="module")
def cleaned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with cleaned history, whose day was once made from other data, and an earlier profile."""
    folder = tmp_path_factory.mktemp("lake")
    lake = lake_of(spark, folder)
    shutil.rmtree(folder / "bronze")
    TrafficJob(spark, lake).ledger().done(Day(CLUSTER, date(2026, 1, 1)), "other data")
    (folder / PUBLISHED).write_text(AN_EARLIER_PROFILE)
    return folder


@pytest.mark.timeout(3600)  # CI gives it what CPU others leave
@pytest.mark.parametrize("name", JOBS)
def test_a_job_cut_short_in_any_write(
    name: str, spark: SparkSession, jobs: Mapping[str, Job], cleaned: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(cleaned, lake)
    if name == "tune":  # advice alone is not published
        profile.run(spark, Lake(str(lake)), CLUSTER)
    with crashes_of(lake, tmp_path / "crashes") as crashes:
        jobs[name](lake)
    assert len(crashes) == WRITES[name]
    assert {(crash / PUBLISHED).read_text() for crash in crashes} == {AN_EARLIER_PROFILE}
    undisturbed = contents(lake)
    load_profile(str(undisturbed[PUBLISHED]))
    assert gone_on_from(crashes, jobs[name], AT_ONCE) == {crash.name: undisturbed for crash in crashes}


def test_a_report_cut_short_in_any_write_is_made_of_whole_files(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    write_report(CLUSTER, [section(1), section(2)], "Earlier.", str(folder))
    earlier = contents(folder)
    with crashes_of(folder, tmp_path / "crashes") as crashes:
        write_report(CLUSTER, [section(3), section(4)], "Later.", str(folder))
    later = contents(folder)
    assert len(crashes) == len(later)
    for crash in crashes:
        for name, text in contents(crash).items():
            assert text in (earlier.get(name), later[name])
        write_report(CLUSTER, [section(3), section(4)], "Later.", str(crash))
        assert contents(crash) == later


def section(number: int) -> Section:
    """Two of the same name have the same file."""
    return Section(f"section-{number % 2}", f"Section {number}", "", (), pd.DataFrame({"number": [number]}), "")

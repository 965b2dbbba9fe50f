"""A lake without history is said in one line, before Spark takes its time to start."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from storm_pipeline.cli import app
from storm_pipeline.options import recorded_lake

LEARNING = ("traffic", "profile", "forecast", "evaluate", "tune", "report")


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("storm_pipeline.options.open_session", None)
    monkeypatch.chdir(tmp_path)


def said(*words: str) -> str:
    """On stderr, by a command that is refused and says nothing else."""
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (2, "")
    return done.stderr


@pytest.mark.parametrize("lake", ["empty", "nowhere"])
def test_each_job_says_what_has_to_be_done_before_it(lake: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for job in LEARNING:
        assert said(job, lake) == f"no cleaned history in {tmp_path / lake}: run `storm-pipeline ingest` first\n"
    assert said("ingest", lake) == (
        f"no recorded history in {tmp_path / lake}/bronze: record with --history, or say where it is with --history\n"
    )


@pytest.mark.parametrize("name", ["lake[1]", "lake{a}", "lake*"])
def test_a_folder_whose_name_spark_takes_for_a_pattern_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name / "bronze" / "pairs").mkdir(parents=True)
    wrong = r"Spark takes [ ] { } * ? \ in a folder's name for a pattern; rename it"
    assert said("ingest", name) == f"{tmp_path / name}/bronze cannot be read: {wrong}\n"
    assert said("ingest", "lake", "--history", name) == f"{tmp_path / name} cannot be read: {wrong}\n"


def test_a_folder_that_may_not_even_be_looked_at_has_none() -> None:
    """Too long here: as root nobody is denied anything."""
    lake = f"/{'x' * 300}"
    assert said("traffic", lake) == f"no cleaned history in {lake}: run `storm-pipeline ingest` first\n"
    assert said("ingest", lake).startswith(f"no recorded history in {lake}/bronze: ")


def test_history_of_which_nothing_is_published_is_none_yet(tmp_path: Path) -> None:
    (tmp_path / "history" / "_open").mkdir(parents=True)
    assert said("ingest", "lake", "--history", "history") == (
        f"no recorded history in {tmp_path}/history yet: a recorder publishes what it has written every ten minutes\n"
    )
    assert recorded_lake("lake", "history", is_awaited=True).history == f"{tmp_path}/history"

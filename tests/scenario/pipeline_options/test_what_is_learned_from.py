"""Which clusters the learning jobs go through, what they refuse to publish, and where."""

from __future__ import annotations

import os
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest
import typer
from typer.testing import CliRunner

from storm_pipeline.cli import app
from storm_pipeline.dates import ALL_DATES, Dates
from storm_pipeline.jobs import learning
from storm_pipeline.jobs.learning import bounds_of, clusters_of, insist_on_one, publication_of
from storm_pipeline.lake import Day, Lake
from storm_pipeline.tuning.recording import InvalidRecording

SPARK = cast("Any", None)
LAKE = Lake("lake")
DAYS = (Day("blue", date(2025, 1, 4)), Day("red", date(2026, 3, 1)), Day("red", date(2026, 3, 2)))


@pytest.fixture(autouse=True)
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "days_of", lambda *_: DAYS)


def test_without_dates_all_clusters_are_gone_through() -> None:
    assert bounds_of(SPARK, LAKE, None, ALL_DATES) == {"blue": (None, None), "red": (None, None)}
    assert clusters_of(SPARK, LAKE, "red") == ("red",)


def test_a_cluster_without_such_dates_keeps_what_was_learned_of_it() -> None:
    dates = Dates(first=date(2026, 3, 1))
    assert bounds_of(SPARK, LAKE, None, dates) == {"red": (date(2026, 3, 1), None)}


@pytest.mark.parametrize("dates", [Dates(last=date(2024, 3, 1), days=28), Dates(first=date(2027, 1, 1))])
def test_dates_that_choose_nothing_of_any_cluster_are_refused(dates: Dates, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        bounds_of(SPARK, LAKE, None, dates)
    assert ended.value.exit_code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert said == "there is no cleaned history of such dates in lake: its newest is of 2026-03-02"


def test_a_cluster_that_is_not_there_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        bounds_of(SPARK, LAKE, "green", ALL_DATES)
    assert " ".join(capsys.readouterr().err.split()) == "--cluster: 'green' is not in lake; there is blue, red"


def test_a_profile_of_several_clusters_is_refused_and_none_is_not() -> None:
    wanted, unwanted = publication_of(Path("profile.json"), None, 14.0), publication_of(None, None, 14.0)
    with pytest.raises(typer.BadParameter, match="--publish: there are clusters blue, red; name one with --cluster"):
        insist_on_one(("blue", "red"), wanted)
    with pytest.raises(typer.BadParameter, match="--config-map: there are clusters"):
        insist_on_one(("blue", "red"), publication_of(None, "storm/profile", 14.0))
    insist_on_one(("blue", "red"), unwanted)
    insist_on_one(("red",), wanted)


@pytest.mark.parametrize("name", ["storm", "storm/", "/profile", "/", "a/b/c"])
def test_a_config_map_has_a_namespace_and_a_name(name: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"--config-map: .* must look like storm/learned-profile"):
        publication_of(None, name, 14.0)


@pytest.mark.parametrize("url", ["s3://bucket/profile.json", "file:///tmp/profile.json"])
def test_a_profile_is_not_published_into_a_folder_named_as_a_scheme(url: str) -> None:
    with pytest.raises(typer.BadParameter, match="is no file of this machine"):
        publication_of(Path(url), None, 14.0)


def test_a_profile_for_a_folder_that_may_not_be_looked_into_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, look = tmp_path / "locked", Path.stat
    locked.mkdir()

    def denied(path: Path, **how: bool) -> os.stat_result:
        if locked in path.parents:
            raise PermissionError(13, "Permission denied")
        return look(path, **how)

    monkeypatch.setattr(Path, "stat", denied)
    monkeypatch.setattr(os, "access", lambda path, _: path != locked)
    with pytest.raises(typer.BadParameter, match=f"--publish: nothing can be written to {locked}"):
        publication_of(locked / "deeper" / "profile.json", None, 14.0)


@pytest.mark.parametrize("options", [[], ["--publish", "profile.json", "--cluster", "blue"]])
def test_a_cluster_that_cannot_be_replayed_keeps_no_other_from_being_tuned(
    options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake" / "silver").mkdir(parents=True)
    tuned: list[str] = []

    def replayed(_: object, __: object, cluster: str, ___: float) -> str:
        if cluster == "blue":
            raise InvalidRecording("the history has 15 s")
        return cluster

    played = {
        "spark_job": lambda *_, **__: nullcontext(),
        "read_recording": replayed,
        "tell_assumptions": lambda *_: None,
        "insist_on_playable": lambda *_: None,
        "ladder_of": lambda *_: None,
        "play_on": lambda *_: None,
        "climb": lambda *_: [],
        "standings": lambda *_: [],
        "write": lambda _, __, recording, *___: tuned.append(recording),
        "summary": lambda *_: "",
        "verdict": lambda *_: "",
        "publish": lambda *_: pytest.fail("of what was not replayed nothing is published"),
    }
    for name, stand_in in played.items():
        monkeypatch.setattr(f"storm_pipeline.jobs.tune.{name}", stand_in)
    ended = CliRunner().invoke(app, ["tune", "lake", *options])
    assert (ended.exit_code, tuned) == (1, [] if options else ["red"])
    assert "blue: the history has 15 s" in ended.output


def test_backfill_wants_a_name_for_the_cluster(tmp_path: Path) -> None:
    times = ["--from", "2026-01-01T00:00:00", "--to", "2026-01-01T01:00:00"]
    arguments = ["backfill", str(tmp_path), "--prometheus", "http://127.0.0.1:1", "--cluster", "", *times]
    refused = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert refused.exit_code == 2
    assert "--cluster: it is empty" in refused.output
    assert list(tmp_path.iterdir()) == []

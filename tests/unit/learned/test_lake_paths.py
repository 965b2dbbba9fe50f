"""How a command line names a lake: Delta's tables take absolute paths only, object stores keep theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from storm_pipeline.cli import app
from storm_pipeline.lake import lake_at


def test_a_relative_folder_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert lake_at("lake/", "old").silver("pairs") == f"{tmp_path}/lake/silver/pairs"
    assert lake_at("lake", "old").bronze("pairs") == f"{tmp_path}/old/pairs"


def test_an_object_store_is_left_as_named() -> None:
    assert lake_at("s3a://bucket/lake/").gold("gaps") == "s3a://bucket/lake/gold/gaps"


def test_the_recorders_name_of_an_object_store_is_understood() -> None:
    lake = lake_at("lake", "s3://bucket/recorded/")
    assert lake.bronze("pairs") == "s3a://bucket/recorded/pairs"
    assert lake.is_in_object_store
    assert not lake_at("lake", "recorded").is_in_object_store


@pytest.mark.parametrize(("job", "lacks"), [("ingest", "recorded"), ("traffic", "cleaned"), ("report", "cleaned")])
def test_a_lake_that_is_not_there_is_said(job: str, lacks: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [job, str(tmp_path / "nowhere")])
    assert done.exit_code == 2
    assert f"no {lacks} history in {tmp_path}/nowhere" in done.output

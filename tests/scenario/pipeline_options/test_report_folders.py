"""Where `storm-pipeline report` writes the page of each of several clusters."""

from __future__ import annotations

import posixpath
from pathlib import Path

import pytest
from typer.testing import CliRunner

from storm_pipeline.cli import app
from storm_pipeline.jobs.report import folder_of


def test_no_two_clusters_share_a_folder() -> None:
    names = ("a/b", "a-b", "a b", "a%2Fb", "a+b", "a", "b", ".", "..")
    folders = {posixpath.normpath(folder_of(name, "report/")) for name in names}
    assert len(folders) == len(names)
    assert {folder.rpartition("/")[0] for folder in folders} == {"report"}


@pytest.mark.parametrize(("cluster", "folder"), [("blue:6627", "blue:6627"), ("a/b", "a%2Fb")])
def test_a_usual_name_is_the_folder_s_own(cluster: str, folder: str) -> None:
    assert folder_of(cluster, "s3://bucket/report") == f"s3://bucket/report/{folder}"


@pytest.mark.parametrize("folder", ["file/report", "nowhere://bucket/report"])
def test_a_folder_that_cannot_be_written_to_is_told_before_spark_starts(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "lake" / "silver").mkdir(parents=True)
    done = CliRunner().invoke(app, ["report", "lake", "-f", folder])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"--output {folder}: nothing can be written there: ")

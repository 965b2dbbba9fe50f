"""What `storm-pipeline run` takes for a job."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest
import typer
from typer.testing import CliRunner

from storm_operator.lazy_commands import LazyCommand
from storm_pipeline.cli import JOBS, app
from storm_pipeline.jobs import run as jobs_run
from storm_pipeline.jobs.run import USUAL, parse_job


def test_a_name_alone_has_the_options_that_the_job_has_by_itself() -> None:
    _, context = parse_job("traffic", "lake")
    assert context.params["lake"] == "lake"
    assert (context.params["heaviest_pairs"], context.params["again"]) == (20, False)


def test_options_come_behind_the_name_as_a_shell_would_read_them() -> None:
    _, context = parse_job("ingest --history 'my history' --files-in-batch 3", "lake")
    assert (context.params["history"], context.params["files_in_batch"]) == ("my history", 3)


def test_all_usual_jobs_can_be_called() -> None:
    assert [parse_job(name, "lake")[1].params["lake"] for name in USUAL] == ["lake"] * len(USUAL)


def test_the_help_says_which_jobs_are_run_when_none_is_named() -> None:
    said = CliRunner().invoke(app, ["run", "--help"], terminal_width=200).output
    assert f"Without any: {' '.join(USUAL)}." in " ".join(said.replace("│", " ").split())


@pytest.mark.parametrize("text", ["ingst", "", "run", "jars", "backfill --from 2026-01-01"])
def test_what_is_no_job_with_a_session_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"JOB: {text!r} must be one of ingest, traffic,"):
        parse_job(text, "lake")


def test_a_job_that_is_not_installed_whole_is_refused_before_any_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(JOBS, "report", LazyCommand("storm_pipeline.no_such_module:report", "One page."))
    with pytest.raises(typer.BadParameter, match="report is not available in this installation: No module named"):
        parse_job("report --output page", "lake")


def test_a_quotation_that_does_not_end_is_told_with_its_job() -> None:
    with pytest.raises(typer.BadParameter, match="No closing quotation"):
        parse_job("ingest --history 'my history", "lake")


@pytest.mark.parametrize(("history", "is_away"), [("s3://bucket/recorded", True), ("recorded", False)])
def test_spark_is_started_so_that_it_reaches_recorded_history(
    history: str, is_away: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_for = Mock(side_effect=typer.Exit(3))
    monkeypatch.setattr(jobs_run, "session_for", session_for)
    assert CliRunner().invoke(app, ["run", str(tmp_path), f"ingest --history {history}"]).exit_code == 3
    lake = session_for.call_args.args[2]
    assert lake.is_in_object_store == is_away


@pytest.mark.parametrize("option", ["--master local[1]", "--heap 1g", "--off-heap 1g", "--conf spark.a=b"])
def test_what_is_the_run_s_own_is_no_option_of_one_of_its_jobs(option: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"has {option.split()[0]}, but its session is the run's"):
        parse_job(f"traffic {option}", "lake")


def test_a_master_of_the_environment_is_the_run_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_MASTER", "local[1]")
    assert parse_job("traffic", "lake")[1].params["master"] == "local[1]"


@pytest.mark.parametrize("text", ["traffic --agein", "traffic --heaviest-pairs 0", "traffic --heaviest-pairs 100001"])
def test_options_are_read_before_spark_starts(text: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", str(tmp_path), "ingest", text])
    assert done.exit_code == 2
    assert text.split()[1] in done.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("traffic --from 2026-13-01", "--from: '2026-13-01' must be a date like 2026-01-31"),
        ("profile --from 2026-02-01 --to 2026-01-31", "--to: 2026-01-31 is before --from 2026-02-01"),
        ("evaluate --from 2026-02-01 --days 7", "--days: it says where to begin, and so does --from"),
        ("ingest --every often", "--every: 'often' must be an interval"),
        ("forecast --bin 7", "--bin: bins of 7 s do not fill a cycle of 86400 s exactly"),
        ("profile --config-map nowhere", "--config-map: 'nowhere' must look like storm/learned-profile"),
        ("tune --set nonsense=1", "nonsense"),
    ],
)
def test_what_a_job_would_refuse_when_it_begins_is_told_before_spark_starts(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_run, "session_for", Mock(side_effect=AssertionError("Spark was started")))
    done = CliRunner().invoke(app, ["run", str(tmp_path), "ingest", text], env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("file/profile.json", "--publish: nothing can be written to {}/file"),
        ("folder", "--publish: {0}/folder is a folder; name a file in it, like {0}/folder/profile.json"),
    ],
)
def test_a_profile_that_cannot_be_written_is_told_before_spark_starts(
    file: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_run, "session_for", Mock(side_effect=AssertionError("Spark was started")))
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    arguments = ["run", str(tmp_path), f"profile --publish {tmp_path}/{file}"]
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "400"})
    assert done.exit_code == 2
    assert said.format(tmp_path) in done.output


def test_a_report_s_folder_that_cannot_be_written_to_is_told_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_run, "session_for", Mock(side_effect=AssertionError("Spark was started")))
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(app, ["run", str(tmp_path), "ingest", f"report -f {tmp_path}/file/report"])
    assert done.exit_code == 2
    assert "--output" in done.output

"""What a pipeline job leaves behind for Prometheus."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dashboards.all_of_them import documents
from dashboards.frame import Uid
from storm_pipeline.metrics import (
    FOLDER_VARIABLE,
    LAST_SUCCESS,
    METRICS,
    JobFigures,
    Labelled,
    told,
    write,
)


def values(path: Path) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(path.read_text())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def figures(succeeded: bool, ended_at: float) -> JobFigures:
    return JobFigures(
        name="ingest",
        started_at_seconds=ended_at - 20,
        ended_at_seconds=ended_at,
        succeeded=succeeded,
        rows={("traffic", "read"): 10.0, ("traffic", "written"): 9.0},
        quarantined={("traffic", "negative_count"): 1.0},
    )


def test_figures_are_written_with_the_jobs_name(tmp_path: Path) -> None:
    path = write(tmp_path / "metrics", figures(True, 1_000.0))
    found = values(path)
    name = ("name", "ingest")
    assert found["storm_pipeline_job_duration_seconds", (name,)] == 20.0
    assert found["storm_pipeline_job_rows", (("kind", "read"), name, ("table", "traffic"))] == 10.0
    assert found[LAST_SUCCESS.name, (name,)] == 1_000.0
    assert not any(metric == "storm_pipeline_table_bytes" for metric, _ in found), "unknown is absent"


def test_a_failed_run_keeps_the_time_of_the_last_success(tmp_path: Path) -> None:
    write(tmp_path, figures(True, 1_000.0))
    write(tmp_path, figures(False, 2_000.0))
    found = values(write(tmp_path, figures(False, 3_000.0)))
    assert found[LAST_SUCCESS.name, (("name", "ingest"),)] == 1_000.0
    assert found["storm_pipeline_job_succeeded", (("name", "ingest"),)] == 0.0


def test_a_failed_run_keeps_what_is_known_of_tables_and_profiles(tmp_path: Path) -> None:
    """An alert on old rows would else end with the run that fails."""
    before = replace(
        figures(True, 1_000.0),
        newest_row_at={("traffic",): 900.0, ("executors",): 800.0},
        table_bytes={("traffic",): 7.0},
        profiles_learned_until={("blue", "words"): 700.0},
    )
    write(tmp_path, before)
    found = values(write(tmp_path, replace(figures(False, 2_000.0), newest_row_at={("traffic",): 1_900.0})))
    name = ("name", "ingest")
    newest = "storm_pipeline_table_newest_row_timestamp_seconds"
    assert found[newest, (name, ("table", "traffic"))] == 1_900.0
    assert found[newest, (name, ("table", "executors"))] == 800.0
    assert found["storm_pipeline_table_bytes", (name, ("table", "traffic"))] == 7.0
    learned = (name, ("storm_cluster", "blue"), ("topology", "words"))
    assert found["storm_pipeline_profile_timestamp_seconds", learned] == 700.0


def test_a_run_that_ended_well_keeps_nothing_of_the_one_before(tmp_path: Path) -> None:
    """A topology that is gone has no profile any more."""
    write(tmp_path, replace(figures(True, 1_000.0), profiles_learned_until={("blue", "words"): 700.0}))
    found = values(write(tmp_path, figures(True, 2_000.0)))
    assert not any(metric == "storm_pipeline_profile_timestamp_seconds" for metric, _ in found)


def test_a_job_that_never_succeeded_says_nothing_of_success(tmp_path: Path) -> None:
    found = values(write(tmp_path, figures(False, 1_000.0)))
    assert not any(metric == LAST_SUCCESS.name for metric, _ in found)


def test_a_job_tells_how_it_ended_where_a_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with told("profile"):
        pass
    assert list(tmp_path.iterdir()) == [], "nobody asked for it"
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(RuntimeError), told("profile", lambda: {"rows": {("profiles", "read"): 3.0}}):
        raise RuntimeError
    found = values(tmp_path / "storm_pipeline_profile.prom")
    name = ("name", "profile")
    assert found["storm_pipeline_job_succeeded", (name,)] == 0.0
    assert found["storm_pipeline_job_rows", (("kind", "read"), name, ("table", "profiles"))] == 3.0


def test_the_share_in_quarantine_is_of_what_ingest_read() -> None:
    """Other jobs read what is clean, and would dilute it."""
    panels = documents()[str(Uid.PIPELINE)]["panels"]
    (panel,) = [panel for panel in panels if panel["title"] == "Share of rows in quarantine"]
    selectors = re.findall(r"\{(.*?)\}", panel["targets"][0]["expr"])
    assert set(selectors) == {'name="ingest",kind="quarantined"', 'name="ingest",kind="read"'}


def test_names_follow_prometheus_conventions() -> None:
    assert all(metric.name.startswith("storm_pipeline_") and metric.meaning.endswith(".") for metric in METRICS)
    assert all("job" not in metric.labels for metric in METRICS), "Prometheus would rename it"


@pytest.mark.parametrize("spoil", ["the folder", "the figures of the run before"])
def test_a_run_that_cannot_be_told_of_has_ended_well_all_the_same(
    spoil: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "metrics"
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    if spoil == "the folder":
        folder.write_text("in the way")
    else:
        (folder / "storm_pipeline_profile.prom").mkdir(parents=True)
    with told("profile"):
        pass
    assert f"profile: its figures are not in {folder}:" in capsys.readouterr().err


@pytest.mark.parametrize(
    "broken", ["\0" * 60, f"# TYPE {LAST_SUCCESS.name} gauge\n", f'{LAST_SUCCESS.name}{{name="prof', "caf\udce9 1\n"]
)
def test_broken_figures_of_the_run_before_hide_no_failure(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    path = tmp_path / "storm_pipeline_profile.prom"
    path.write_bytes(broken.encode(errors="surrogateescape"))
    with pytest.raises(RuntimeError, match="the job's own"), told("profile"):
        raise RuntimeError("the job's own")
    found = values(path)
    assert found["storm_pipeline_job_succeeded", (("name", "profile"),)] == 0.0
    assert not any(metric == LAST_SUCCESS.name for metric, _ in found), "nobody knows any more"


def test_topologies_of_one_name_on_two_clusters_have_series_of_their_own(tmp_path: Path) -> None:
    """`cluster` would be renamed where the jobs' own target has that label."""
    learned: Labelled = {("blue", "words"): 1_000.0, ("green", "words"): 2_000.0}
    path = write(tmp_path, JobFigures("profile", 0.0, 1.0, True, profiles_learned_until=learned))
    found = {
        labels: value for (name, labels), value in values(path).items() if name.endswith("profile_timestamp_seconds")
    }
    assert found == {
        (("name", "profile"), ("storm_cluster", cluster), ("topology", topology)): at
        for (cluster, topology), at in learned.items()
    }
    assert all("cluster" not in metric.labels for metric in METRICS)

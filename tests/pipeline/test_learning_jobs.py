"""The learning jobs on a small recorded history: what they find, that a re-run changes nothing, what they publish."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f
from rich.console import Console
from rich.table import Table

from learning_scene import CLUSTER, CYCLE_SECONDS, lake_of
from page_stage import PATIENCE_MS, chromium
from report_scene import fill
from storm_operator.core.learned_profile_json import load_profile
from storm_pipeline import gold
from storm_pipeline.jobs import evaluate, forecast, profile, report, tune
from storm_pipeline.jobs.learning import sources
from storm_pipeline.lake import Lake, read, replace_all, replace_cluster
from storm_pipeline.made import figures_of, rows_read, rows_written
from storm_pipeline.publishing import CannotPublish, compose_profile, publish_to_file, read_findings
from storm_pipeline.reporting.reading import chosen_rows
from storm_pipeline.schemas import SILVER, DerivedTable
from storm_pipeline.transforms.effects import Around
from storm_pipeline.transforms.forecasts import Cycle
from storm_pipeline.tuning.candidates import candidates
from storm_pipeline.tuning.halving import Ladder, climb, standings
from storm_pipeline.tuning.reading import read_recording, recorded
from storm_pipeline.tuning.replay import Prices

COUNTS_ROWS = "spark.databricks.delta.stats.collect"
REPLAYED_HOURS = 0.07
"""What is replayed takes most of the time here; the least in which settings tell says as much as an hour."""
CYCLE = Cycle(CYCLE_SECONDS, 10.0, phi=3, with_yardsticks=False)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    found = lake_of(spark, tmp_path_factory.mktemp("lake"))
    profile.run(spark, found, CLUSTER)
    forecast.run(spark, found, CLUSTER, CYCLE)
    return found


def rows(spark: SparkSession, lake: Lake, table: DerivedTable) -> list[Row]:
    return sorted(read(spark, lake.gold(table.name), table).collect(), key=str)


def test_costs_and_selectivity_are_those_of_the_workload(spark: SparkSession, lake: Lake) -> None:
    found = {row["component"]: row for row in rows(spark, lake, gold.COMPONENT_PROFILE) if row["hour_of_week"] is None}
    assert found["split"]["selectivity"] == pytest.approx(5.0, rel=0.01)
    assert found["split"]["selectivity_spread"] < 0.1
    assert found["count"]["cpu_per_tuple"] > 0.0
    hours = [row for row in rows(spark, lake, gold.COMPONENT_PROFILE) if row["hour_of_week"] is not None]
    assert {row["hour_of_week"] for row in hours} == {72}  # simulations begin on a Thursday at midnight
    times = rows(spark, lake, gold.RESTARTS)
    assert times
    assert all(0.0 < row["running_median"] <= row["running_p90"] for row in times)


def test_forecasters_are_judged_and_a_season_is_found(spark: SparkSession, lake: Lake) -> None:
    errors = rows(spark, lake, gold.FORECAST_ERRORS)
    of_split = {row["forecaster"]: row for row in errors if row["component"] == "split"}
    assert {"Line", "DampedTrend", "Seasonal"} <= set(of_split)
    assert of_split["Seasonal"]["short_percent"] <= of_split["Line"]["short_percent"]
    assert sum(row["is_winner"] for row in of_split.values()) == 1


def test_what_jobs_made_is_asked_of_their_tables(spark: SparkSession, lake: Lake) -> None:
    forecasts = figures_of(spark, lake, "forecast", since_seconds=0.0)
    assert all(size > 0.0 for size in forecasts["table_bytes"].values())
    of_split = [row for row in rows(spark, lake, gold.FORECAST_ERRORS) if row["forecaster"] == "Line"]
    mean = sum(row["error_percent"] for row in of_split) / len(of_split)
    assert forecasts["forecast_errors"][CLUSTER, "wordcount", "Line"] == pytest.approx(mean / 100.0)
    assert not any(kind == "read" for _, kind in forecasts["rows"]), "it was not said what was read"
    read_rows = sources(lake, profile.SOURCES, {CLUSTER: (None, None)})
    profiles = figures_of(spark, lake, "profile", time.time(), read_rows)
    for table in profile.SOURCES:
        assert profiles["rows"][table, "read"] == read(spark, lake.silver(table), SILVER[table]).count() > 0
    assert rows_read(sources(lake, ("executors",), {"red": (None, None)})(spark)) == {("executors", "read"): 0.0}
    _, within = recorded(spark, lake, CLUSTER, hours=1.0)
    assert rows_read([("executors", within("executors"))])["executors", "read"] == profiles["rows"]["executors", "read"]
    errors_at = lake.gold(gold.FORECAST_ERRORS.name)
    assert chosen_rows(spark, errors_at, gold.FORECAST_ERRORS, "red").count() == 0
    assert chosen_rows(spark, errors_at, gold.FORECAST_ERRORS, None).count() > 0
    assert profiles["rows"]["component_profile", "written"] == 0.0, "all was written before this run"
    executors = read(spark, lake.silver("executors"), SILVER["executors"])
    last = max(row["period_end"] for row in executors.collect())
    assert profiles["profiles_learned_until"] == {(CLUSTER, "wordcount"): pytest.approx(last.timestamp())}
    assert figures_of(spark, lake, "ingest", 0.0)["newest_row_at"][("executors",)] == pytest.approx(last.timestamp())


def test_rows_of_a_run_are_counted_by_the_tables_history(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table, path = gold.FORECAST_ERRORS, str(tmp_path / "table")
    found = read(spark, lake.gold(table.name), table)
    spark.conf.set(COUNTS_ROWS, "true")
    try:
        replace_all(found, path, table)
        replace_all(found.limit(2), path, table)
    finally:
        spark.conf.set(COUNTS_ROWS, "false")
    assert rows_written(spark, path, 0.0) == found.count() + 2
    replace_cluster(found, path, table, CLUSTER)
    assert rows_written(spark, path, 0.0) is None, "Delta was told to count nothing, and unknown is never zero"


def test_a_second_run_changes_nothing(spark: SparkSession, lake: Lake) -> None:
    tables = (gold.COMPONENT_PROFILE, gold.RESTARTS, gold.FORECAST_ERRORS, gold.SEASONS)
    before = [rows(spark, lake, table) for table in tables]
    profile.run(spark, lake, CLUSTER)
    forecast.run(spark, lake, CLUSTER, CYCLE)
    assert [rows(spark, lake, table) for table in tables] == before


def two_days_of(spark: SparkSession, lake: Lake, folder: Path) -> Lake:
    """What `lake` has of one day, and the same a day later."""
    made = Lake(str(folder))
    for name in profile.SOURCES:
        day = read(spark, lake.silver(name), SILVER[name])
        later = {"period_end": f.col("period_end") + f.expr("INTERVAL 1 DAY"), "date": f.date_add("date", 1)}
        replace_all(day.union(day.withColumns(later)), made.silver(name), SILVER[name])
    return made


@pytest.mark.parametrize(
    ("chosen", "hours"),
    [({}, {None, 72, 96}), ({"days": 1}, {None, 96}), ({"days": 1, "last": "2026-01-01"}, {None, 72})],
)
def test_a_job_learns_from_the_last_days_alone_when_it_is_told_so(
    spark: SparkSession,
    lake: Lake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    chosen: dict[str, Any],
    hours: set[int | None],
) -> None:
    @contextmanager
    def in_this_session(*_: object, **__: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(profile, "spark_job", in_this_session)
    two_days = two_days_of(spark, lake, tmp_path)
    profile.profile(two_days.root, **chosen)
    assert profile.MEANING in capsys.readouterr().out
    assert {row["hour_of_week"] for row in rows(spark, two_days, gold.COMPONENT_PROFILE)} == hours


def test_a_profile_is_published_as_the_operator_reads_it(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    made = compose_profile(read_findings(spark, lake, CLUSTER), 60.0)
    path = tmp_path / "profiles" / "profile.json"
    publish_to_file(made, path)
    read_back = load_profile(path.read_text())
    assert read_back.cluster == CLUSTER
    newest = max(row["period_end"] for row in read(spark, lake.silver("executors"), SILVER["executors"]).collect())
    assert read_back.made_at_seconds == newest.timestamp()
    assert read_back.valid_until_seconds == newest.timestamp() + 60.0
    split = read_back.topologies["wordcount"]["split"]
    assert split.season is not None
    assert split.season.cycle_seconds == CYCLE_SECONDS
    assert split.selectivity is not None
    assert split.selectivity.median == pytest.approx(5.0, rel=0.01)
    assert [name.name for name in path.parent.iterdir()] == ["profile.json"]


def test_a_component_that_nothing_comes_to_does_not_cost_its_topology_what_was_forecast(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    silent = Lake(str(tmp_path))
    executors = read(spark, lake.silver("executors"), SILVER["executors"])
    arrived = f.when(f.col("component") != "count", f.col("arrived_per_second")).otherwise(0.0)
    changed = executors.withColumn("arrived_per_second", arrived)
    replace_all(changed, silent.silver("executors"), SILVER["executors"])
    forecast.run(spark, silent, CLUSTER, CYCLE)
    made = compose_profile(read_findings(spark, silent, CLUSTER), 60.0)
    assert set(made.topologies["wordcount"]) == {"sentences", "split", "count"}
    assert "count" not in {row["component"] for row in rows(spark, silent, gold.FORECAST_ERRORS)}


def test_a_component_that_was_never_measured_whole_is_told_of_and_costs_its_topology_nothing(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    hidden = Lake(str(tmp_path))
    executors = read(spark, lake.silver("executors"), SILVER["executors"])
    used = f.when(f.col("component") != "count", f.col("cpu_millicores"))
    replace_all(executors.withColumn("cpu_millicores", used), hidden.silver("executors"), SILVER["executors"])
    forecast.run(spark, hidden, CLUSTER, CYCLE)
    (row,) = (row for row in rows(spark, hidden, gold.SEASONS) if row["component"] == "count")
    assert (row["forecaster"], row["season"], row["newest_period"]) == ("DampedTrend", None, None)
    made = compose_profile(read_findings(spark, hidden, CLUSTER), 60.0)
    assert set(made.topologies["wordcount"]) == {"sentences", "split", "count"}
    assert made.topologies["wordcount"]["split"].season is not None
    told = forecast.seasons_found(spark, hidden, CLUSTER, CYCLE)
    assert told.endswith("In no period were all executors measured, so that nothing was learned: wordcount/count")


def test_of_an_unknown_cluster_nothing_is_published(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(CannotPublish, match="nothing was learned of cluster 'red'"):
        compose_profile(read_findings(spark, lake, "red"), 1.0)


def test_plans_are_evaluated(spark: SparkSession, lake: Lake) -> None:
    evaluate.run(spark, lake, CLUSTER, Around(120.0, 2))
    (policy,) = rows(spark, lake, gold.LEAGUE)
    assert policy["policy"] == "liu"
    assert policy["plans"] >= 1
    effects = rows(spark, lake, gold.PLAN_EFFECTS)
    assert {row["figure"] for row in effects} == {"acked_per_second", "latency_p50_ms", "latency_p99_ms"}
    assert all(row["effect_low"] <= row["effect_high"] for row in effects)
    assert all(row["effect"] == pytest.approx(row["after"] - row["expected"]) for row in effects)
    costs = rows(spark, lake, gold.RESTART_COSTS)
    assert costs
    assert all(row["seconds"] > 0.0 for row in costs)
    for row in costs:
        measured = row["missing_trees"] is not None
        assert row["missing_trees"] >= 0.0 if measured else row["unknown_seconds"] > 0.0


def test_history_is_replayed_and_settings_are_recommended(spark: SparkSession, lake: Lake) -> None:
    recording = read_recording(spark, lake, CLUSTER, REPLAYED_HOURS)
    assert recording.seconds == pytest.approx(3600.0 * REPLAYED_HOURS)
    (topology,) = recording.topologies
    assert {component.name for component in topology.components} == {"sentences", "split", "count"}
    (to_count,) = [edge for edge in topology.edges if edge.target == "count"]
    assert to_count.tuples_per_tuple == pytest.approx(5.0, rel=0.02)
    ladder = Ladder(recording.seconds, rungs=2, keep=3, finalists=2, choosing=2, replays=2, least_seconds=240.0)
    chosen = candidates(4, 0)
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True)
    outcomes = climb(chosen, ladder, 0, tune.play_on(spark, recording, Prices(), lambda _: None, terminal))
    assert f"{len(chosen)} of {len(chosen)} replays done" in shown.getvalue()
    tune.write(spark, lake, recording, outcomes, standings(outcomes, ladder))
    advice = sorted(rows(spark, lake, gold.TUNING_ADVICE), key=lambda row: row["rank"])
    assert [row["rank"] for row in advice] == list(range(1, len(advice) + 1))
    assert advice[0]["change_percent"] <= 0.0
    assert "" in {row["overrides"] for row in advice}
    assert {row["newest_period"].timestamp() for row in advice} == {recording.ended_at_seconds}


def told(table: Table) -> str:
    """As a terminal of 80 columns shows it."""
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_what_was_found_is_told_in_a_terminal_s_width(spark: SparkSession, lake: Lake) -> None:
    costs = told(profile.summary(spark, lake, CLUSTER)).splitlines()
    (split,) = [line.split() for line in costs if line.split()[1:2] == ["split"]]
    assert split[0] == "wordcount", "names are not cut"
    assert "5" in split
    best = told(forecast.summary(spark, lake, CLUSTER)).splitlines()
    (split,) = [line.split() for line in best if line.split()[1:2] == ["split"]]
    assert split[2] in {"Seasonal", "DampedTrend", "Line"}
    assert len(split) == 7


@pytest.fixture(scope="module")
def report_page(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    fill(spark, lake)
    return Path(report.run(spark, lake, CLUSTER, str(tmp_path_factory.mktemp("report"))))


def test_the_report_is_one_page_that_needs_nothing_else(report_page: Path) -> None:
    text = report_page.read_text()
    assert "What components cost" in text
    assert "Loads that come again" in text
    assert "How far tuples go" in text
    assert "Quality of the data" in text
    assert "<script src=" not in text
    assert (report_page.parent / "component-profile.csv").read_text().startswith("topology_name,component,")


def test_a_browser_draws_the_report_and_has_nothing_to_complain_of(report_page: Path) -> None:
    complaints: list[str] = []
    asked_for: list[str] = []
    with chromium() as browser:
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked_for.append(request.url))
        page.goto(report_page.as_uri(), timeout=PATIENCE_MS)
        page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=PATIENCE_MS)
        drawn, plots = page.locator(".js-plotly-plot").count(), page.locator(".plotly-graph-div").count()
    assert complaints == []
    assert asked_for == [report_page.as_uri()]
    assert drawn == plots > 0

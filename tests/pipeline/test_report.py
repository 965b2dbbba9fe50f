"""The report over traffic and data quality: its figures are those of the tables, and of nothing it says why."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from report_scene import CLUSTER, TABLES, fill
from storm_pipeline.jobs import report
from storm_pipeline.lake import Lake
from storm_pipeline.made import rows_read
from storm_pipeline.reporting.reading import read_known, sources
from storm_pipeline.reporting.section import Known, Section
from storm_pipeline.reporting.sections import sections

TRAFFIC_SECTIONS = (
    "traffic-share",
    "traffic-topologies",
    "traffic-components",
    "heaviest-pairs",
    "key-skew",
    "key-skew-over-time",
)
INTAKE_SECTIONS = ("quality", "quarantine", "gaps")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = Lake(str(tmp_path_factory.mktemp("lake")))
    fill(spark, made)
    return made


@pytest.fixture(scope="module")
def page(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(report.run(spark, lake, CLUSTER, str(tmp_path_factory.mktemp("report"))))


def table(page: Path, section: str) -> list[dict[str, str]]:
    with (page.parent / f"{section}.csv").open() as file:
        return list(csv.DictReader(file))


def told(page: Path, section: str) -> str:
    """What the page has of a section, plots included."""
    found = re.search(rf'<section id="{section}">(.*?)</section>', page.read_text(), re.DOTALL)
    assert found, f"there is no section {section}"
    return found.group(1)


@pytest.fixture(scope="module")
def known(spark: SparkSession, lake: Lake) -> Known:
    return read_known(spark, lake, CLUSTER)


@pytest.fixture(scope="module")
def of_another(spark: SparkSession, lake: Lake) -> Known:
    """What there is of a cluster that no table has a row of."""
    return read_known(spark, lake, "red")


def by_name(known: Known) -> dict[str, Section]:
    return {section.name: section for section in sections(known)}


@pytest.mark.parametrize("section", [*TRAFFIC_SECTIONS, *INTAKE_SECTIONS])
def test_each_has_a_plot_a_table_and_a_link(page: Path, section: str) -> None:
    assert "plotly-graph-div" in told(page, section)
    assert "<td>" in told(page, section)
    assert f'<a href="#{section}">' in page.read_text()
    assert table(page, section)


def test_shares_are_those_of_the_table(page: Path) -> None:
    (minute,) = table(page, "traffic-share")
    parts = ("within_worker", "between_workers", "between_supervisors", "place_unknown")
    assert [float(minute[part]) for part in parts] == [0.6, 0.3, 0.1, 0.0]
    assert (minute["window"], float(minute["tuples"])) == ("1 minute", 100.0)
    (topology,) = table(page, "traffic-topologies")
    assert [float(topology[part]) for part in parts] == [0.6, 0.3, 0.1, 0.0]


def test_tuples_between_components_and_executors_are_those_of_the_tables(page: Path) -> None:
    edges = table(page, "traffic-components")
    assert [(row["source"], row["target"], float(row["tuples"]), float(row["share"])) for row in edges] == [
        ("spout", "bolt", 75.0, 0.75),
        ("bolt", "__acker", 25.0, 0.25),
    ]
    pairs = table(page, "heaviest-pairs")
    assert [(row["source_task"], row["target_task"], float(row["share"])) for row in pairs] == [
        ("1", "2", 0.4),
        ("1", "3", 0.35),
    ]


def test_skew_is_that_of_the_longest_windows_and_of_each(page: Path) -> None:
    (edge,) = table(page, "key-skew")
    assert [float(edge[name]) for name in ("tuples", "heaviest_share", "imbalance", "gini")] == [75.0, 0.75, 1.5, 0.25]
    (minute,) = table(page, "key-skew-over-time")
    assert (minute["window"], float(minute["imbalance"])) == ("1 minute", 1.0)


def test_what_became_of_rows_and_when_none_were_recorded(page: Path) -> None:
    (pairs,) = table(page, "quality")
    counts = ("batches", "rows_read", "rows_kept", "duplicates", "quarantined")
    assert [int(pairs[name]) for name in counts] == [2, 20, 14, 2, 4]
    (late,) = table(page, "quarantine")
    assert (late["table"], late["reason"], late["rows"]) == ("pairs", "too late", "2")
    (gap,) = table(page, "gaps")
    assert (float(gap["seconds"]), gap["reason"]) == (180.0, "the recorder was restarted")
    assert "Those of the table are 0.05 hours together" in told(page, "gaps")


def test_plots_show_what_the_tables_have(known: Known) -> None:
    found = by_name(known)
    parts, tuples = found["traffic-share"].plots
    assert {bar.name: bar.y[0] for bar in parts.data} == pytest.approx(
        {"within a worker": 60.0, "between workers of a supervisor": 30.0, "between supervisors": 10.0}
    )
    assert sum(bar.y[0] for bar in tuples.data) == pytest.approx(100.0)
    (matrix,) = found["traffic-components"].plots
    heat = matrix.data[0]
    assert list(heat.x) == list(heat.y) == ["spout", "bolt", "__acker"]
    assert [list(row) for row in heat.z] == [[None, 75.0, None], [None, None, 25.0], [None, None, None]]
    (pairs,) = found["heaviest-pairs"].plots
    assert dict(zip(pairs.data[0].y, pairs.data[0].x, strict=True)) == {
        "spout 1 to bolt 2": 40.0,
        "spout 1 to bolt 3": 35.0,
    }
    (skew,) = found["key-skew"].plots
    assert (list(skew.data[0].y), list(skew.data[0].x)) == (["spout to bolt"], [1.5])
    (rows,) = found["quality"].plots
    assert {bar.name: bar.y[0] for bar in rows.data} == {"kept": 14, "duplicates": 2, "set aside": 4}
    low, high = rows.layout.yaxis.range
    assert 10.0**low < 1.0 < 14.0 < 10.0**high, "one row alone is to be seen"
    (gaps,) = found["gaps"].plots
    assert list(gaps.data[0].y) == [180.0]
    hours = [moment.hour for moment in gaps.layout.xaxis.autorangeoptions.include]
    assert hours == [23, 5], "all of the recorded time is there"


def test_a_season_is_a_table_bin_by_bin_as_it_is_plotted(known: Known) -> None:
    bins = {"expected_per_second": [10.0, 40.0], "ready_per_second": [12.0, 44.0]}
    season = json.dumps({"cycle_seconds": 3600.0, "bin_seconds": 1800.0, **bins})
    names = {"topology_name": ["words"] * 2, "component": ["count", "split"], "forecaster": ["season", "line"]}
    frame = pd.DataFrame({**names, "season": [season, None]})
    section = by_name({**known, "seasons": replace(known["seasons"], frame=frame, total=2)})["seasons"]
    columns = ["component", "hour_of_cycle", "expected_per_second", "ready_per_second"]
    assert section.frame[columns].to_numpy().tolist() == [
        ["count", 0.0, 10.0, 12.0],
        ["count", 0.5, 40.0, 44.0],
    ]
    (plot,) = section.plots
    assert plot.layout.title.text == "words/count"
    assert {line.name: list(line.y) for line in plot.data} == {"ready for": [12.0, 44.0], "expected": [10.0, 40.0]}


def test_of_an_empty_lake_each_section_names_the_job_that_has_not_run(spark: SparkSession, tmp_path: Path) -> None:
    page = Path(report.run(spark, Lake(str(tmp_path / "lake")), CLUSTER, str(tmp_path / "report")))
    for names, job in ((TRAFFIC_SECTIONS, "traffic"), (INTAKE_SECTIONS, "ingest"), (("tuning-advice",), "tune")):
        for name in names:
            assert f"storm-pipeline {job} makes this table, and has not run" in told(page, name), name
            assert "plotly-graph-div" not in told(page, name)
            assert table(page, name) == [], "one of an earlier report must not stay"


def test_of_a_cluster_without_rows_each_section_says_what_may_be_the_reason(of_another: Known) -> None:
    found = by_name(of_another)
    assert all(section.frame.empty and not section.plots for section in found.values())
    assert "no tuples between its executors were measured, or storm-pipeline traffic" in found["traffic-share"].nothing
    assert "it has no fields grouping" in found["key-skew"].nothing
    assert "its recording has no gap" in found["gaps"].nothing


def test_where_all_rows_were_good_nothing_was_set_aside(known: Known, of_another: Known) -> None:
    section = by_name({**known, "rows_by_reason": of_another["rows_by_reason"]})["quarantine"]
    assert section.nothing.startswith("Nothing: every row that was read has been taken in")


def test_what_is_left_out_is_said(known: Known) -> None:
    pairs, components = known["heaviest_pairs"], known["component_traffic"]
    many = {"heaviest_pairs": replace(pairs, total=1234), "component_traffic": replace(components, total=25)}
    found = by_name({**known, **many})
    assert "These are the 2 heaviest of 1,234 pairs" in found["heaviest-pairs"].words
    assert "The 5 components with least tuples are one, (other)" in found["traffic-components"].words
    whole = by_name(known)
    assert "left out" not in whole["heaviest-pairs"].words
    assert "(other)" not in whole["traffic-components"].words


def test_all_rows_that_it_goes_through_are_counted(spark: SparkSession, lake: Lake) -> None:
    counted = rows_read(sources(lake, CLUSTER)(spark))
    assert {table.name: counted[table.name, "read"] for table in TABLES} == {
        table.name: len(rows) for table, rows in TABLES.items()
    }

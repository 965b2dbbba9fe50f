"""What a page shows of long tables: sums by hand, and never more rows than it has room for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from report_scene import START, rows_of
from storm_pipeline.schemas import (
    GAPS,
    HEAVIEST_PAIRS,
    KEY_SKEW,
    QUALITY,
    QUARANTINE,
    TRAFFIC,
    TRAFFIC_SHARE,
)
from storm_pipeline.transforms import overview
from storm_pipeline.transforms.overview import (
    MOST_COMPONENTS,
    OTHER,
    UNRECORDED,
    Overview,
    component_traffic,
    finest,
    heaviest_of_all,
    longest_gaps,
    reach_of_topologies,
    reach_over_time,
    rows_by_reason,
    rows_by_table,
    skew_over_time,
    skewed_edges,
)


def found(made: Overview) -> tuple[list[Row], int]:
    return made.rows.collect(), made.count.collect()[0]["total"]


def minute(number: int) -> dict[str, Any]:
    return {"window": "1 minute", "window_start": START + timedelta(minutes=number)}


@pytest.mark.parametrize(("most", "window"), [(3, "1 minute"), (2, "1 hour"), (0, "1 day")])
def test_windows_are_as_short_as_there_is_room_for(spark: SparkSession, most: int, window: str) -> None:
    of_hour = {"window": "1 hour", "window_start": START}
    rows = rows_of(spark, TRAFFIC_SHARE, minute(0), minute(0), minute(1), minute(2), of_hour, {})
    assert {row["window"] for row in finest(rows, most).collect()} == {window}


def test_how_far_tuples_go_is_told_by_window_and_by_topology(spark: SparkSession) -> None:
    shares = [("t-1", "worker", 60.0), ("t-1", "supervisor", 20.0), ("t-2", "network", 15.0), ("t-2", "unplaced", 5.0)]
    in_minute = [{**minute(1), "topology_id": one, "reach": reach, "tuples": n} for one, reach, n in shares]
    in_day = [{"topology_id": one, "reach": reach, "tuples": n} for one, reach, n in shares]
    nothing = {**minute(0), "reach": "worker", "tuples": 0.0}
    rows = rows_of(spark, TRAFFIC_SHARE, *in_minute, *in_day, nothing)
    (newest, idle), total = found(reach_over_time(rows))
    assert (total, newest["window"], newest["window_start"].minute) == (2, "1 minute", 1)
    assert newest[2:] == (100.0, 0.6, 0.2, 0.15, 0.05)
    assert idle[2:] == (0.0, None, None, None, None), "of nothing there is no part"
    topologies, total = found(reach_of_topologies(rows))
    assert [tuple(row) for row in topologies] == [
        ("t-1", 80.0, 0.75, 0.25, 0.0, 0.0),
        ("t-2", 20.0, 0.0, 0.0, 0.75, 0.25),
    ]
    assert total == 2


def test_only_the_newest_windows_are_kept(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MOST_WINDOWS", 2)
    days = [{"window_start": START + timedelta(days=n), "reach": "worker", "tuples": 1.0} for n in range(3)]
    kept, total = found(reach_over_time(rows_of(spark, TRAFFIC_SHARE, *days)))
    assert ([row["window_start"].day for row in kept], total) == ([3, 2], 3)


def test_tuples_between_components_are_summed_over_the_longest_windows(spark: SparkSession) -> None:
    next_day = {"window_start": START + timedelta(days=1)}
    rows = rows_of(
        spark,
        TRAFFIC["component"],
        {"tuples": 30.0},
        {**next_day, "tuples": 40.0},
        {"tuples": 30.0, **minute(0)},
        {"source": "bolt", "target": None, "tuples": 30.0},
    )
    edges, components = found(component_traffic(rows))
    assert [tuple(row) for row in edges] == [
        ("t-1", "spout", "bolt", 70.0, 0.7),
        ("t-1", "bolt", UNRECORDED, 30.0, 0.3),
    ]
    assert components == 3


def test_components_that_there_is_no_room_for_are_one(spark: SparkSession) -> None:
    many = [
        {"source": "hub", "target": f"leaf-{n:03}", "tuples": 1000.0 - n, "topology_id": "t-1"}
        for n in range(3 * MOST_COMPONENTS)
    ]
    apart = {"source": "lone", "target": "lonely", "tuples": 1.0, "topology_id": "t-2"}
    edges, components = found(component_traffic(rows_of(spark, TRAFFIC["component"], *many, apart)))
    tuples = {(row["topology_id"], row["source"], row["target"]): row["tuples"] for row in edges}
    shown = MOST_COMPONENTS - 1
    assert len(tuples) == len(edges) == shown + 2
    assert tuples["t-1", "hub", "leaf-000"] == 1000.0
    assert tuples["t-1", "hub", OTHER] == sum(1000.0 - n for n in range(shown, 3 * MOST_COMPONENTS))
    assert tuples[OTHER, OTHER, OTHER] == 1.0
    assert sum(row["share"] for row in edges) == pytest.approx(1.0)
    assert components == 3 * MOST_COMPONENTS + 3


def test_a_pair_is_as_heavy_as_in_its_heaviest_window(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MOST_PAIRS", 2)
    next_day = {"window_start": START + timedelta(days=1)}
    tasks = {"source_task": 1, "target_task": 2}
    rows = rows_of(
        spark,
        HEAVIEST_PAIRS,
        {**tasks, "tuples": 5.0, "share": 0.5},
        {**tasks, **next_day, "tuples": 9.0, "share": 0.3},
        {**tasks, **minute(0), "tuples": 99.0, "share": 0.9},
        {**tasks, "source": None, "tuples": 7.0, "share": 0.7},
        {**tasks, "topology_id": "t-2", "tuples": 1.0, "share": 1.0},
    )
    (first, second), total = found(heaviest_of_all(rows))
    assert (first["tuples"], first["share"], first["window_start"].day, first["windows"]) == (9.0, 0.3, 2, 2)
    assert (second["source"], second["tuples"], second["windows"]) == (None, 7.0, 1)
    assert total == 3


def skew(tuples: float, heaviest: float, **more: Any) -> dict[str, Any]:
    """Of two receivers."""
    shown = {"imbalance": heaviest * 2, "gini": heaviest - 0.5}
    return {"tuples": tuples, "receivers": 2, "heaviest_share": heaviest, **shown, **more}


def test_skew_is_weighted_by_tuples_and_chance_comes_last(spark: SparkSession) -> None:
    next_day = {"window_start": START + timedelta(days=1)}
    rows = rows_of(
        spark,
        KEY_SKEW,
        skew(100.0, 0.5),
        skew(300.0, 0.7, **next_day),
        skew(4.0, 1.0, target="rare"),
        skew(100.0, 0.9, **minute(3)),
    )
    (often, rare), total = found(skewed_edges(rows))
    assert (often["target"], rare["target"], total) == ("bolt", "rare", 2)
    assert often["tuples_beyond_even"] == pytest.approx(300.0 * 0.2)
    assert (often["tuples"], often["receivers"]) == (400.0, 2)
    figures = [often[name] for name in ("heaviest_share", "imbalance", "gini")]
    assert figures == pytest.approx([0.65, 1.3, 0.15])
    minutes, total = found(skew_over_time(rows))
    assert [(row["window"], row["target"], row["imbalance"]) for row in minutes] == [("1 minute", "bolt", 1.8)]
    assert total == 1


def test_over_time_only_the_most_uneven_edges_are_told(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MOST_LINES", 2)
    edges = [skew(100.0, 0.5 + n / 100.0, target=f"bolt-{n}") for n in range(4)]
    rows, _ = found(skew_over_time(rows_of(spark, KEY_SKEW, *edges)))
    assert [row["target"] for row in rows] == ["bolt-2", "bolt-3"]


def test_batches_are_summed_by_table(spark: SparkSession) -> None:
    counts = {"rows_read": 10, "rows_kept": 7, "duplicates": 1, "quarantined": 2}
    later = {"first_period": START + timedelta(hours=1), "last_period": START + timedelta(hours=2)}
    rows = rows_of(
        spark,
        QUALITY,
        {"table": "pairs", "batch": 0, **counts, "first_period": START, "last_period": START},
        {"table": "pairs", "batch": 1, **counts, **later},
        {"table": "edges", "batch": 0, **dict.fromkeys(counts, 0)},
    )
    (edges, pairs), total = found(rows_by_table(rows))
    assert tuple(edges)[:6] == ("edges", 1, 0, 0, 0, 0)
    assert tuple(pairs)[:6] == ("pairs", 2, 20, 14, 2, 4)
    assert (pairs["first_period"].hour, pairs["last_period"].hour, total) == (0, 2, 2)


def test_what_was_set_aside_is_counted_by_reason(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    late = {"table": "pairs", "reason": "too late"}
    rows = rows_of(
        spark,
        QUARANTINE,
        {**late, "period_end": START + timedelta(hours=1)},
        {**late, "period_end": START},
        {"table": "edges", "reason": "too late", "period_end": datetime(2500, 1, 1, tzinfo=UTC)},
    )
    (first, second), total = found(rows_by_reason(rows))
    assert (first["table"], first["rows"], first["first_period"].hour, first["last_period"].hour) == ("pairs", 2, 0, 1)
    assert (second["table"], second["rows"], second["first_period"], total) == ("edges", 1, None, 2)
    monkeypatch.setattr(overview, "MOST_REASONS", 1)
    rest, total = found(rows_by_reason(rows))
    assert (len(rest), total) == (1, 2)


def test_the_longest_gaps_come_first(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MOST_GAPS", 2)
    gaps = [
        {"gap_start": START, "gap_end": START + timedelta(seconds=seconds), "reason": "why"}
        for seconds in (1.5, 60.0, 30.0)
    ]
    kept, total = found(longest_gaps(rows_of(spark, GAPS, *gaps)))
    assert ([row["seconds"] for row in kept], total) == ([60.0, 30.0], 3)

"""Traffic matrices: sums are conserved at every level and window, whatever the history."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from chispa import assert_df_equality
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from history_scene import record
from learning_scene import CLUSTER, lake_of
from storm_operator.core.history_tables import EDGES, EXECUTORS, PAIRS
from storm_operator.core.view_from_metrics import UNKNOWN_GROUPING
from storm_pipeline.dates import ALL_DATES, Dates
from storm_pipeline.jobs.ingest import Intake
from storm_pipeline.jobs.traffic import TrafficJob, days_with_pairs
from storm_pipeline.lake import Day, Lake, frame_of, read
from storm_pipeline.schemas import SILVER, TRAFFIC, TRAFFIC_KEYS, TRAFFIC_SHARE, WINDOWS
from storm_pipeline.transforms.spans import MINUTE, SPAN, at_level, by_span, in_each_window, lives, named, residents
from storm_pipeline.transforms.traffic import heaviest, key_skew, shares

DAY = date(2026, 1, 1)
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
COMPONENT_OF = {1: "spout", 2: "bolt", 3: "bolt"}
Pair = tuple[int, int, int, str, str, float]
"""(period, source task, target task, supervisor of each, tuples per second)."""


def pairs_frame(spark: SparkSession, pairs: list[Pair]) -> DataFrame:
    rows = [
        (MIDNIGHT + timedelta(seconds=10 * n), 10.0, "t-1", a, b, at_a, 6700, at_b, 6700, rate, "blue", DAY)
        for n, a, b, at_a, at_b, rate in pairs
    ]
    return frame_of(spark, rows, SILVER["pairs"].schema)


def executors_frame(spark: SparkSession) -> DataFrame:
    return residents(lived(spark, *[(0, task, at) for task in COMPONENT_OF for at in ("a", "b")]))


def lived(spark: SparkSession, *seen: tuple[int, int, str]) -> DataFrame:
    """Lives from silver executors: (period, task, supervisor)."""
    names = [field.name for field in SILVER["executors"].schema.fields]
    rows = []
    for n, task, supervisor in seen:
        component, end = COMPONENT_OF.get(task, "bolt"), MIDNIGHT + timedelta(seconds=10 * n)
        known = {"topology_id": "t-1", "task_start": task, "component": component, "supervisor_id": supervisor}
        row: dict[str, Any] = {**dict.fromkeys(names), **known, "port": 6700, "cluster": "blue", "date": DAY}
        rows.append(tuple({**row, "period_end": end}[name] for name in names))
    return lives(frame_of(spark, rows, SILVER["executors"].schema))


def spans_of(spark: SparkSession, pairs: list[Pair]) -> DataFrame:
    """The executor level."""
    return named(by_span(pairs_frame(spark, pairs)), executors_frame(spark))


def level_of(spans: DataFrame, level: str, *windows: str) -> DataFrame:
    keys = TRAFFIC_KEYS[level]
    return in_each_window(at_level(spans, *keys), keys, windows or list(WINDOWS))


def test_a_minute_sums_tuples_not_rates(spark: SparkSession) -> None:
    spans = spans_of(spark, [(0, 1, 2, "a", "b", 5.0), (5, 1, 2, "a", "b", 7.0), (6, 1, 2, "a", "b", 1.0)])
    rows = level_of(spans, "executor", MINUTE).collect()
    found = sorted((row["window_start"].minute, row["tuples"], row["measured_seconds"]) for row in rows)
    assert found == [(0, 120.0, 20.0), (1, 10.0, 10.0)]
    assert {(row["source"], row["target"], row["target_supervisor"], row["target_port"]) for row in rows} == {
        ("spout", "bolt", "b", 6700)
    }


def test_an_executor_that_nobody_recorded_is_of_an_unknown_component(spark: SparkSession) -> None:
    rows = level_of(spans_of(spark, [(0, 1, 9, "a", "z", 5.0)]), "executor", MINUTE).collect()
    assert [(row["source"], row["target"], row["target_supervisor"], row["tuples"]) for row in rows] == [
        ("spout", None, None, 50.0)
    ]


PAIRS_GIVEN = st.lists(
    st.tuples(
        st.integers(0, 8000),
        st.sampled_from([1, 2, 3]),
        st.sampled_from([2, 3, 9]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, 1000).map(float),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=3)
@given(given_pairs=PAIRS_GIVEN, seed=st.randoms(use_true_random=False))
def test_sums_are_conserved_and_order_does_not_matter(spark: SparkSession, given_pairs: list[Pair], seed: Any) -> None:
    spans = spans_of(spark, given_pairs).cache()
    expected = 10.0 * sum(pair[-1] for pair in given_pairs)
    for level in TRAFFIC_KEYS:
        sums = level_of(spans, level).groupBy("window").agg(f.sum("tuples").alias("tuples")).collect()
        assert {row["window"]: row["tuples"] for row in sums} == pytest.approx(dict.fromkeys(WINDOWS, expected)), level
    shuffled = list(given_pairs)
    seed.shuffle(shuffled)
    assert_df_equality(spans_of(spark, shuffled), spans, ignore_row_order=True, ignore_nullable=True)
    spans.unpersist()


def test_windows_are_where_their_periods_end(spark: SparkSession) -> None:
    """At 00:00:00, 00:09:50, 00:10:00, 01:00:00: each is the first or last of its windows."""
    spans = spans_of(spark, [(n, 1, 2, "a", "b", 1.0) for n in (0, 59, 60, 360)])
    rows = level_of(spans, "component").collect()
    found: dict[str, list[tuple[datetime, float]]] = {}
    for row in sorted(rows, key=lambda row: row["window_start"]):
        found.setdefault(row["window"], []).append((row["window_start"], row["tuples"]))
    midnight = MIDNIGHT.replace(tzinfo=None)

    def at(minutes: int, tuples: float) -> tuple[datetime, float]:
        return midnight + timedelta(minutes=minutes), tuples

    assert found[MINUTE] == [at(0, 10.0), at(9, 10.0), at(10, 10.0), at(60, 10.0)]
    assert found[SPAN] == [at(0, 20.0), at(10, 10.0), at(60, 10.0)]
    assert (found["1 hour"], found["1 day"]) == ([at(0, 30.0), at(60, 10.0)], [at(0, 40.0)])


def test_a_pair_that_moved_was_seen_as_long_as_one_that_stayed(spark: SparkSession) -> None:
    """100 a second all the time: half an hour from a to b, then, after a move, inside b, there to another worker."""
    spans = spans_of(spark, [(n, 1, 2, "a" if n < 180 else "b", "b", 100.0) for n in range(360)])
    workers = at_level(spans, *TRAFFIC_KEYS["worker"])
    for level, finer in (("component", spans), ("supervisor", workers)):
        found = level_of(finer, level)
        hour = found.where("window = '1 hour'").groupBy().sum("tuples", "measured_seconds").collect()[0]
        assert tuple(hour) == (360_000.0, 3600.0), level
        assert {row["window"] for row in found.collect()} == set(WINDOWS)


def test_pairs_beside_each_other_were_seen_no_longer_than_each(spark: SparkSession) -> None:
    spans = spans_of(spark, [(0, 1, 2, "a", "b", 1.0), (0, 1, 3, "a", "b", 1.0), (1, 1, 3, "a", "b", 1.0)])
    rows = level_of(spans, "component", MINUTE, SPAN).collect()
    assert [(row["tuples"], row["measured_seconds"]) for row in rows] == [(30.0, 20.0)] * 2


def test_shares_say_how_far_tuples_go(spark: SparkSession) -> None:
    spans = spans_of(spark, [(0, 1, 2, "a", "a", 1.0), (0, 1, 3, "a", "b", 3.0)])
    rows = shares(at_level(spans, *TRAFFIC_KEYS["worker"]), list(WINDOWS)).collect()
    assert {(row["window"], row["reach"]): row["share"] for row in rows} == {
        (window, reach): share for window in WINDOWS for reach, share in (("worker", 0.25), ("network", 0.75))
    }


def test_heaviest_pairs_are_ranked_and_ties_are_broken_by_task(spark: SparkSession) -> None:
    spans = spans_of(spark, [(0, 1, 3, "a", "a", 2.0), (0, 1, 2, "a", "a", 2.0), (0, 2, 3, "a", "a", 4.0)])
    for window in WINDOWS:
        rows = heaviest(spans, 2, [window]).orderBy("rank").collect()
        assert [(row["rank"], row["source_task"], row["target_task"], row["share"]) for row in rows] == [
            (1, 2, 3, 0.5),
            (2, 1, 2, 0.25),
        ]


def test_a_pair_that_moved_is_one_of_the_heaviest_once(spark: SparkSession) -> None:
    pairs = [(0, 1, 2, "a", "a", 2.0), (1, 1, 2, "a", "b", 2.0), (0, 1, 3, "a", "a", 3.0)]
    rows = heaviest(spans_of(spark, pairs), 5, [MINUTE]).orderBy("rank").collect()
    assert [(row["target_task"], row["tuples"]) for row in rows] == [(2, 40.0), (3, 30.0)]


def edges_frame(spark: SparkSession, grouping: str, source: str = "spout", target: str = "bolt") -> DataFrame:
    names = [field.name for field in SILVER["edges"].schema.fields]
    known = {"topology_id": "t-1", "source": source, "stream": "default", "target": target, "grouping": grouping}
    return frame_of(spark, [tuple({**dict.fromkeys(names), **known}.values())], SILVER["edges"].schema)


def test_key_skew_is_that_of_fields_groupings(spark: SparkSession) -> None:
    spans = spans_of(spark, [(0, 1, 2, "a", "a", 3.0), (0, 1, 3, "a", "b", 1.0)])
    there = lived(spark, (0, 2, "a"), (0, 3, "b"))
    row = key_skew(spans, edges_frame(spark, "fields"), there, [MINUTE]).collect()[0]
    assert (row["receivers"], row["heaviest_share"], row["imbalance"], row["gini"]) == (2, 0.75, 1.5, 0.25)
    assert key_skew(spans, edges_frame(spark, "shuffle"), there, [MINUTE]).count() == 0


def test_periods_filled_in_without_groupings_do_not_hide_the_skew_of_those_that_were_recorded(
    spark: SparkSession,
) -> None:
    spans = spans_of(spark, [(0, 1, 2, "a", "a", 3.0), (0, 1, 3, "a", "b", 1.0)])
    there = lived(spark, (0, 2, "a"), (0, 3, "b"))
    filled_in = edges_frame(spark, UNKNOWN_GROUPING)
    for grouping, told in (("fields", 1), ("shuffle", 0)):
        edges = edges_frame(spark, grouping).unionByName(filled_in)
        assert key_skew(spans, edges, there, [MINUTE]).count() == told
    another_stream = filled_in.withColumn("stream", f.lit("another"))
    mixed = edges_frame(spark, "fields").unionByName(another_stream)
    assert key_skew(spans, mixed, there, [MINUTE]).count() == 0


def test_receivers_are_those_of_the_window(spark: SparkSession) -> None:
    """Two executors for an hour, then, after a rebalance, the first of them for both; one more is idle meanwhile."""
    spans = spans_of(spark, [(0, 1, 2, "a", "a", 1.0), (0, 1, 3, "a", "b", 1.0), (400, 1, 2, "a", "a", 2.0)])
    there = lived(spark, (0, 2, "a"), (0, 3, "b"), (6, 2, "a"), (6, 3, "b"), (6, 4, "b"), (400, 2, "a"))
    found = key_skew(spans, edges_frame(spark, "fields"), there, [MINUTE, "1 day"]).collect()
    told = {(row["window"], row["window_start"].hour): (row["receivers"], row["imbalance"]) for row in found}
    assert told == {(MINUTE, 0): (2, 1.0), (MINUTE, 1): (1, 1.0), ("1 day", 0): (3, 2.25)}
    unrecorded = key_skew(spans, edges_frame(spark, "fields"), lived(spark, (0, 2, "a")), [MINUTE]).collect()
    assert {(row["window_start"].hour, row["receivers"]) for row in unrecorded if row["window"] == MINUTE} == {
        (0, 2),
        (1, 1),
    }


def test_of_edges_to_ackers_no_skew_is_told(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMPONENT_OF, 9, "__acker")
    spans = named(
        by_span(pairs_frame(spark, [(0, 1, 9, "a", "a", 3.0)])), residents(lived(spark, (0, 1, "a"), (0, 9, "a")))
    )
    assert [row["target"] for row in spans.collect()] == ["__acker"]
    to_acker = edges_frame(spark, "fields", target="__acker")
    assert key_skew(spans, to_acker, lived(spark, (0, 9, "a")), [MINUTE]).count() == 0


def test_days_are_made_anew_when_other_pairs_are_to_be_kept(spark: SparkSession, tmp_path: Path) -> None:
    lake, day = Lake(str(tmp_path)), Day("blue", DAY)
    few, many = (TrafficJob(spark, lake, heaviest_pairs).ledger() for heaviest_pairs in (3, 20))
    few.done(day, few.version_of(day))
    assert not few.is_due(day)
    assert many.is_due(day)


def test_dates_that_were_not_ingested_are_not_taken_for_dates_without_tuples(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = lake_of(spark, tmp_path, periods=2, tables=(EXECUTORS,))
    assert days_with_pairs(spark, lake, CLUSTER, ALL_DATES) == ()
    with pytest.raises(typer.Exit):
        days_with_pairs(spark, lake, CLUSTER, Dates(first=DAY + timedelta(days=1)))
    assert f"its newest is of {DAY}" in " ".join(capsys.readouterr().err.split())


@pytest.mark.timeout(900)
def test_from_the_recording_to_gold_and_again(spark: SparkSession, tmp_path: Path) -> None:
    record(tmp_path / "bronze", periods=8)
    lake, day = Lake(str(tmp_path)), Day("blue", DAY)
    Intake(lake).run(spark, lambda *_: None, (PAIRS, EXECUTORS, EDGES))
    job = TrafficJob(spark, lake, windows=("1 minute", "1 hour"))
    ledger = job.ledger()
    assert ledger.is_due(day)
    version = ledger.version_of(day)
    job.do_day(day, lambda _: None)
    ledger.done(day, version)
    assert not ledger.is_due(day)
    bronze = read(spark, lake.silver("pairs"), SILVER["pairs"]).agg(f.sum(f.expr("tuples_per_second * period_seconds")))
    expected = bronze.collect()[0][0]
    gold = {level: read(spark, lake.gold(table.name), table) for level, table in TRAFFIC.items()}
    for frame in gold.values():
        sums = frame.groupBy("window").agg(f.sum("tuples").alias("tuples")).collect()
        assert [row["tuples"] for row in sums] == pytest.approx([expected] * len(job.windows))
    before = gold["component"].orderBy("window", "window_start", "source", "target").collect()
    job.do_day(day, lambda _: None)
    again = read(spark, lake.gold("traffic_component"), TRAFFIC["component"])
    assert again.orderBy("window", "window_start", "source", "target").collect() == before
    share = read(spark, lake.gold("traffic_share"), TRAFFIC_SHARE)
    for row in share.groupBy("window", "window_start", "topology_id").agg(f.sum("share").alias("s")).collect():
        assert row["s"] == pytest.approx(1.0)

"""The learning transforms on tiny frames: figures that can be checked by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from storm_operator.core.history_rows import one_text
from storm_operator.core.plan_record import RUNNING_TIMEOUT_SECONDS
from storm_pipeline.jobs import evaluate
from storm_pipeline.lake import Lake
from storm_pipeline.made import learned_until
from storm_pipeline.schemas import DerivedTable, schema_of
from storm_pipeline.transforms.components import component_periods
from storm_pipeline.transforms.effects import Around, effects_of_plan, expected_load, plan_effects
from storm_pipeline.transforms.forecasts import Cycle, judge_frame, judged_components
from storm_pipeline.transforms.policies import league, prediction_errors
from storm_pipeline.transforms.profiles import component_profile, newest_states, restart_times
from storm_pipeline.transforms.restart_costs import restart_costs

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
EXECUTORS = schema_of(
    "cluster text, topology_id text, topology_name text, component text, component_kind text, period_end time, "
    "period_seconds number, arrived_per_second number, executed_per_second number, emitted_per_second number, "
    "queue_growth_per_second number, queue_length number, cpu_millicores number, declared_cpu_millicores number"
)
PLANS = schema_of(
    "cluster text, plan_id text, period_end time, state text, policy text, method text, topology_ids text, "
    "created_at time, in_force_at time, seconds_to_in_force number, seconds_to_running number, running_at time, "
    "moves whole, restarted_workers whole, failed_tuples number, rollback_of text, "
    "predicted_after_inter_supervisor_tuples_per_second number, "
    "measured_after_inter_supervisor_tuples_per_second number, "
    "predicted_after_latency_ms number, measured_before_latency_mean_ms number, measured_after_latency_mean_ms number, "
    "measured_before_inter_supervisor_tuples_per_second number"
)

TOPOLOGIES = schema_of(
    "cluster text, topology_id text, period_end time, period_seconds number, acked_per_second number, "
    "latency_p50_ms number, latency_p99_ms number"
)
PLACES = schema_of(
    "cluster text, topology_id text, task_start whole, period_end time, period_seconds number, supervisor_id text, "
    "port whole, stateful truth"
)
EXPECTED = schema_of("cluster text, topology_id text, period_end time, expected_load number")


def executor(hour: int, cpu: float | None, executed: float = 100.0, kind: str = "bolt") -> tuple[Any, ...]:
    at = MONDAY + timedelta(hours=hour)
    return ("blue", "w-1", "w", "split", kind, at, 10.0, 90.0, executed, 500.0, 0.0, 0.0, cpu, 50.0)


def shuffled(spark: SparkSession, rows: list[tuple[Any, ...]], seed: int = 0) -> DataFrame:
    mixed = list(rows)
    random.Random(seed).shuffle(mixed)
    return spark.createDataFrame(mixed, EXECUTORS)


def test_components_are_sums_of_executors_that_are_all_known(spark: SparkSession) -> None:
    rows = [executor(0, 10.0), executor(0, 20.0), executor(1, 10.0), executor(1, None)]
    (found,) = component_periods(shuffled(spark, rows)).collect()
    assert found["period_end"].hour == 0
    assert (found["executors"], found["cpu_millicores"], found["arrived_per_second"]) == (2, 30.0, 180.0)
    (spout,) = component_periods(shuffled(spark, [executor(0, 1.0, kind="spout")])).collect()
    assert spout["arrived_per_second"] == spout["executed_per_second"] == 500.0


def idle_executor(waiting: float) -> tuple[Any, ...]:
    """One whose thread nobody has seen at work, beside `executor(0, ...)`; so many tuples wait for it."""
    return (*executor(0, None)[:7], 0.0, 0.0, 0.0, 0.0, waiting, None, 50.0)


def test_an_executor_that_never_got_a_tuple_uses_no_cpu_and_one_for_which_tuples_wait_is_unknown(
    spark: SparkSession,
) -> None:
    (found,) = component_periods(shuffled(spark, [executor(0, 10.0), idle_executor(1.0)])).collect()
    assert (found["executors"], found["busy_executors"]) == (2, 1)
    assert (found["cpu_millicores"], found["executed_per_second"]) == (10.0, 100.0)
    assert component_periods(shuffled(spark, [executor(0, 10.0), idle_executor(500.0)])).isEmpty()


def test_costs_are_medians_with_a_robust_spread_by_hour_and_in_all(spark: SparkSession) -> None:
    # Millicores for 100 tuples per second: 10, 11, 12 on Monday at 0:00, 20, and a mishap of 900, an hour later.
    costs = {0: (10.0, 11.0, 12.0), 1: (20.0, 20.0, 900.0)}
    rows = []
    for hour, values in costs.items():
        for number, cpu in enumerate(values):
            row = executor(hour, cpu)
            rows.append((*row[:5], row[5] + timedelta(seconds=10 * number), *row[6:]))
    idle = executor(0, 11.0, executed=1.0)
    rows.append((*idle[:5], idle[5] + timedelta(seconds=50), *idle[6:]))
    found = [component_profile(component_periods(shuffled(spark, rows, seed))).collect() for seed in (1, 2)]
    by_hour = {row["hour_of_week"]: row for row in found[0]}
    assert set(by_hour) == {None, 0, 1}
    assert by_hour[0]["cpu_per_tuple"] == pytest.approx(0.11)
    assert by_hour[0]["cpu_per_tuple_spread"] == pytest.approx(1.4826 * 0.01)
    assert by_hour[0]["cpu_per_tuple_periods"] == 3  # the idle period says nothing of the cost of a tuple
    assert by_hour[1]["cpu_per_tuple"] == pytest.approx(0.2)
    assert by_hour[None]["cpu_per_tuple"] == pytest.approx(0.16)
    assert by_hour[None]["used_share_of_declared"] > 1.0
    assert sorted(map(str, found[0])) == sorted(map(str, found[1]))


def at_rates(spark: SparkSession, *runs: tuple[int, float, float]) -> Any:
    """What is learned over all hours of (periods, tuples per second, millicores per tuple and second), in turn."""
    each = [(rate, cost) for count, rate, cost in runs for _ in range(count)]
    rows = []
    for number, (rate, cost) in enumerate(each):
        row = executor(0, rate * cost, executed=rate)
        rows.append((*row[:5], row[5] + timedelta(seconds=10 * number), *row[6:]))
    found = component_profile(component_periods(shuffled(spark, rows))).where("hour_of_week IS NULL").collect()
    return found[0]


def test_one_burst_does_not_make_all_other_periods_idle(spark: SparkSession) -> None:
    found = at_rates(spark, (299, 100.0, 0.2), (1, 2500.0, 0.1))
    assert (found["cpu_per_tuple"], found["cpu_per_tuple_periods"]) == (pytest.approx(0.2), 300)


def test_a_component_that_is_idle_nearly_always_costs_what_it_costs_at_work(spark: SparkSession) -> None:
    found = at_rates(spark, (290, 0.01, 1000.0), (10, 100.0, 0.2))
    assert (found["cpu_per_tuple"], found["cpu_per_tuple_periods"]) == (pytest.approx(0.2), 10)


def test_a_component_s_newest_period_is_that_of_its_newest_topology(spark: SparkSession) -> None:
    first, second = executor(0, 10.0), executor(30, 12.0)
    rows = [first, (second[0], "w-2", *second[2:]), executor(48, None)]
    for found in (component_profile(component_periods(shuffled(spark, rows, seed))).collect() for seed in (1, 2)):
        newest = {row["hour_of_week"]: (row["newest_period"].hour, row["topology_id"]) for row in found}
        assert newest == {0: (0, "w-1"), 30: (6, "w-2"), None: (6, "w-2")}


def test_a_topology_s_profile_is_as_old_as_the_newest_period_that_it_was_learned_from(spark: SparkSession) -> None:
    later = MONDAY + timedelta(hours=1)
    rows = [("blue", "w", MONDAY), ("blue", "w", later), ("green", "w", MONDAY), ("blue", "earlier version", None)]
    profiled = spark.createDataFrame(rows, schema_of("cluster text, topology_name text, newest_period time"))
    assert learned_until(profiled) == {("blue", "w"): later.timestamp(), ("green", "w"): MONDAY.timestamp()}


def test_cpu_is_judged_by_what_a_tuple_costs_at_work_though_most_periods_are_idle(spark: SparkSession) -> None:
    # At 0.2 millicores for a tuple per second a theta carries 1000 of them; idle periods alone say 11 millicores.
    rows = []
    for number in range(40):
        row = executor(0, *((20.0, 100.0) if number % 4 == 3 else (11.0, 1.0)), kind="spout")
        rows.append((*row[:5], row[5] + timedelta(seconds=10 * number), *row[6:9], row[8], *row[10:]))
    judged = judged_components(component_periods(shuffled(spark, rows)), Cycle(100.0, 10.0, with_yardsticks=False))
    over = {row["forecaster"]: row["over_percent"] for row in judged.collect()}
    assert over["Line"] > 100.0 * (1000.0 - 100.0) / 100.0


def test_a_judged_component_s_newest_period_is_told() -> None:
    ends = [MONDAY + timedelta(seconds=10 * (number + 1)) for number in range(40)]
    rows = pd.DataFrame({"period_end": ends, "topology_id": ["w-1"] * 20 + ["w-2"] * 20})
    rows = rows.assign(
        cluster="blue", topology_name="w", component="split", at_seconds=[end.timestamp() for end in ends]
    )
    rows = rows.assign(arrived_per_second=100.0, period_seconds=10.0, executors=1, cpu_per_tuple=0.1)
    found = judge_frame(rows.sample(frac=1.0, random_state=0), Cycle(100.0, 10.0, with_yardsticks=False))
    assert set(zip(found["newest_period"], found["topology_id"], strict=True)) == {(ends[-1], "w-2")}


def test_a_component_without_any_load_is_told_of_though_no_forecaster_can_be_judged_by_it() -> None:
    ends = [MONDAY + timedelta(seconds=10 * (number + 1)) for number in range(80)]
    rows = pd.DataFrame({"period_end": ends, "at_seconds": [end.timestamp() for end in ends]})
    rows = rows.assign(cluster="blue", topology_name="w", topology_id="w-1", component="errors", period_seconds=10.0)
    rows = rows.assign(arrived_per_second=0.0, executors=1, cpu_per_tuple=np.nan)
    (found,) = judge_frame(rows, Cycle(100.0, 10.0, with_yardsticks=False)).to_dict("records")
    assert (found["component"], found["newest_period"], found["topology_id"]) == ("errors", ends[-1], "w-1")
    assert (found["forecaster"], found["winner"], found["season"]) == (None, "DampedTrend", None)


def test_cpu_is_judged_by_the_executors_that_a_component_has_now() -> None:
    # A theta of CPU for each of two executors carries 60 tuples per second; in the first two of eight cycles it had 16.
    load = [300.0 if 20 <= number % 40 < 23 else 100.0 for number in range(320)]
    ends = [MONDAY + timedelta(seconds=10 * (number + 1)) for number in range(320)]
    rows = pd.DataFrame({"period_end": ends, "arrived_per_second": load, "cpu_per_tuple": 400.0 / 60.0})
    rows = rows.assign(cluster="blue", topology_name="w", topology_id="w-1", component="split", period_seconds=10.0)
    rows = rows.assign(at_seconds=[end.timestamp() for end in ends])
    cycle = Cycle(400.0, 10.0, with_yardsticks=False)
    before, now = (judge_frame(rows.assign(executors=count), cycle) for count in ([16] * 80 + [2] * 240, 2))
    assert before.equals(now)


@pytest.mark.parametrize(("before", "now"), [(10.0, 60.0), (60.0, 10.0)])
def test_a_season_is_found_though_the_operator_s_periods_were_once_of_another_length(before: float, now: float) -> None:
    """Six hours of the one, four of the other; each hour has a spike of five minutes, twenty minutes into it."""
    lengths = [before] * round(6 * 3600 / before) + [now] * round(4 * 3600 / now)
    ends = np.cumsum(lengths)
    loads = np.where((((ends - 1.0) % 3600.0) // 300.0) == 4.0, 300.0, 100.0)
    rows = pd.DataFrame({"at_seconds": MONDAY.timestamp() + ends, "period_seconds": lengths, "executors": 2})
    rows = rows.assign(period_end=MONDAY, arrived_per_second=loads, cpu_per_tuple=6.0)
    rows = rows.assign(cluster="blue", topology_name="w", topology_id="w-1", component="split")
    found = judge_frame(rows, Cycle(3600.0, 30.0, with_yardsticks=False)).set_index("forecaster")
    assert set(found.index) == {"DampedTrend", "Line", "Seasonal"}
    assert found.loc["Seasonal", "short_percent"] == 0.0
    expected = json.loads(found["season"].iloc[0])["expected_per_second"]
    assert expected == pytest.approx([300.0 if 40 <= number < 50 else 100.0 for number in range(120)])


def plan(state: str, minutes: int = 0, **others: object) -> tuple[Any, ...]:
    known = {
        "cluster": "blue",
        "plan_id": "p-1",
        "period_end": MONDAY + timedelta(minutes=minutes),
        "state": state,
        "policy": "adaptive",
        "method": "Rebalance",
        "topology_ids": "w-1",
        "created_at": MONDAY,
        "in_force_at": MONDAY + timedelta(seconds=1),
        "seconds_to_in_force": 1.0,
        "seconds_to_running": 7.0,
        "moves": 3,
        "restarted_workers": 2,
        "failed_tuples": 0.0,
        "measured_before_latency_mean_ms": 10.0,
        "measured_after_latency_mean_ms": 5.0,
        "predicted_after_latency_ms": 6.0,
        **others,
    }
    return tuple(known.get(name) for name in PLANS.names)


def moved(
    spark: SparkSession, topology_id: str, made: datetime, seen: tuple[int, int], period_seconds: float = 10.0
) -> DataFrame:
    """A stateful executor that lives elsewhere in each of two periods, which end so many seconds after `made`."""
    rows = [("blue", topology_id, 3, made + timedelta(seconds=at), period_seconds, f"s{at}", 6700, True) for at in seen]
    return spark.createDataFrame(rows, PLACES)


def test_the_newest_state_of_a_plan_counts(spark: SparkSession) -> None:
    rows = [
        plan("Applying"),
        plan("Settling"),
        plan("Verified", 1),
        plan("Verified", 1),
        plan("Settling", plan_id="p-2"),
    ]
    newest = newest_states(spark.createDataFrame(rows, PLANS))
    assert {(row["plan_id"], row["state"]) for row in newest.collect()} == {("p-1", "Verified"), ("p-2", "Settling")}
    assert newest.count() == 2
    (times,) = restart_times(newest, moved(spark, "w-1", MONDAY, (-5, 15))).collect()
    assert (times["plans"], times["running_median"], times["state_moved"]) == (2, 7.0, True)
    (policy,) = league(newest).collect()
    assert (policy["plans"], policy["verified"], policy["latency_change_percent"]) == (2, 1, -50.0)
    (error,) = prediction_errors(newest).collect()
    assert (error["figure"], error["median_error_percent"]) == ("latency_mean_ms", pytest.approx(20.0))


def test_of_states_of_one_moment_the_one_that_comes_later_in_a_plan_s_life_counts(spark: SparkSession) -> None:
    """As after passes that were lost: the next one that is written tells all that became of plans meanwhile."""
    lives = (("Proposed", "Applying"), ("Applying", "Settling"), ("Proposed", "Rejected"), ("Settling", "RolledBack"))
    rows = [plan(state, plan_id=life[-1]) for life in lives for state in life]
    newest = newest_states(spark.createDataFrame(rows, PLANS)).collect()
    assert {row["plan_id"]: row["state"] for row in newest} == {life[-1]: life[-1] for life in lives}


def test_what_was_measured_as_nothing_tells_no_error_of_a_prediction(spark: SparkSession) -> None:
    plans = [plan("Verified"), plan("Verified", plan_id="p-2", measured_after_latency_mean_ms=0.0)]
    (error,) = prediction_errors(spark.createDataFrame(plans, PLANS)).collect()
    assert (error["plans"], error["median_error_percent"]) == (1, pytest.approx(20.0))


def test_a_forecast_is_of_the_next_period_however_late_that_ends_but_not_of_one_after_a_gap(
    spark: SparkSession,
) -> None:
    ends = [MONDAY + timedelta(seconds=at) for at in (10.0, 20.013, 29.997, 100.0)]
    periods = [("blue", "w-1", end, seconds) for end, seconds in zip(ends, (10.0, 10.013, 9.984, 10.0), strict=True)]
    forecasts = [(*period, component, 50.0) for period in periods for component in ("s", "other", "bolt")]
    components = [("blue", "w-1", "s", "spout"), ("blue", "w-1", "other", "spout"), ("blue", "w-1", "bolt", "bolt")]
    kind = schema_of("cluster text, topology_id text, component text, component_kind text")
    period = "cluster text, topology_id text, period_end time, period_seconds number"
    kinds, seen = spark.createDataFrame(components, kind), spark.createDataFrame(periods, schema_of(period))
    forecast = schema_of(f"{period}, component text, arrivals_per_second number")
    found = expected_load(spark.createDataFrame(forecasts, forecast), kinds, seen)
    told = {(row["period_end"].replace(tzinfo=UTC), row["expected_load"]) for row in found.collect()}
    assert told == {(ends[1], 100.0), (ends[2], 100.0)}
    # Of the two spouts one is not forecast for a period, as when its worker has just started: nobody knows the sum.
    partly = [row for row in forecasts if (row[2], row[4]) != (ends[0], "other")]
    found = expected_load(spark.createDataFrame(partly, forecast), kinds, seen)
    assert [row["period_end"].replace(tzinfo=UTC) for row in found.collect()] == [ends[2]]


def test_a_plan_that_never_came_into_force_moved_and_restarted_nothing(spark: SparkSession) -> None:
    refused = [plan(state, plan_id=state, in_force_at=None) for state in ("Proposed", "Rejected", "Expired")]
    (policy,) = league(spark.createDataFrame([*refused, plan("Verified")], PLANS)).collect()
    assert (policy["plans"], policy["moves"], policy["restarted_workers"], policy["failed_tuples"]) == (4, 3, 2, 0.0)
    (policy,) = league(spark.createDataFrame(refused, PLANS)).collect()
    assert (policy["plans"], policy["moves"], policy["restarted_workers"], policy["failed_tuples"]) == (3, 0, 0, None)


def test_of_how_many_plans_times_and_failed_tuples_are_is_told_beside_them(spark: SparkSession) -> None:
    seen = [plan("Verified", plan_id=f"p-{number}", failed_tuples=5.0) for number in range(2)]
    unseen = [
        plan("Settling", plan_id=f"u-{number}", seconds_to_running=None, failed_tuples=None) for number in range(3)
    ]
    plans = spark.createDataFrame([*seen, *unseen], PLANS)
    (times,) = restart_times(plans, spark.createDataFrame([], PLACES)).collect()
    assert (times["plans"], times["running_plans"], times["running_p90"]) == (5, 2, 7.0)
    assert (times["failed_tuples"], times["failed_tuples_plans"]) == (10.0, 2)
    (policy,) = league(plans).collect()
    assert (policy["failed_tuples"], policy["failed_tuples_plans"]) == (10.0, 2)


def around_a_plan(after: float, load_after: float = 100.0) -> pd.DataFrame:
    """Periods of 10 s: six before a plan at 60 s, six after all runs again at 80 s."""
    rows = []
    for number in range(14):
        ended = 10.0 * (number + 1)
        late = ended > 60.0
        rows.append(
            {
                "cluster": "blue",
                "plan_id": "p-1",
                "policy": "adaptive",
                "state": "Verified",
                "topology_id": "w-1",
                "created_at": MONDAY,
                "begun": 60.0,
                "running": 80.0,
                "ended": ended,
                "period_seconds": 10.0,
                "acked_per_second": load_after if late else 100.0,
                "latency_p50_ms": after if late else 10.0 + number % 2,
                "latency_p99_ms": None,
                "expected_load": load_after if late else 100.0,
            }
        )
    return pd.DataFrame(rows)


def test_an_effect_is_told_against_what_was_to_be_expected() -> None:
    found = effects_of_plan(around_a_plan(5.0, load_after=200.0), Around(300.0)).set_index("figure")
    assert set(found.index) == {"acked_per_second", "latency_p50_ms"}
    # Twice the load was forecast, and twice as much was completed: the plan did not change throughput.
    throughput = found.loc["acked_per_second"]
    assert (throughput["before"], throughput["expected"], throughput["effect"]) == (100.0, 200.0, 0.0)
    latency = found.loc["latency_p50_ms"]
    assert latency["effect"] == pytest.approx(-5.5)
    assert latency["effect_low"] <= latency["effect"] <= latency["effect_high"] < 0.0


def test_too_few_periods_say_nothing() -> None:
    few = around_a_plan(5.0)
    assert effects_of_plan(few[few["ended"] <= 100.0], Around(300.0)).empty


def periods(spark: SparkSession, acked: Sequence[float | None], latency: list[float]) -> tuple[DataFrame, DataFrame]:
    """Periods of 10 s that end from MONDAY + 10 s on, and a load that stays."""
    each = zip(acked, latency, strict=True)
    return recorded(spark, [(10 * number, 10.0, *figures) for number, figures in enumerate(each, start=1)])


def recorded(
    spark: SparkSession, seen: Sequence[tuple[int, float, float | None, float]]
) -> tuple[DataFrame, DataFrame]:
    """Periods by when they end after MONDAY, how long they are, acked per second and latency; and a load that stays."""
    rows = [
        ("blue", "w-1", MONDAY + timedelta(seconds=ended), seconds, rate, latency, None)
        for ended, seconds, rate, latency in seen
    ]
    expected = [("blue", "w-1", row[2], 100.0) for row in rows]
    return spark.createDataFrame(rows, TOPOLOGIES), spark.createDataFrame(expected, EXPECTED)


def plan_at(seconds: int, plan_id: str) -> tuple[Any, ...]:
    created = MONDAY + timedelta(seconds=seconds)
    return plan("Verified", plan_id=plan_id, created_at=created, in_force_at=created + timedelta(seconds=1))


def test_a_plan_is_not_credited_with_what_the_next_one_brought(spark: SparkSession) -> None:
    # 9 ms, from the first plan at 60 s on 6 ms, from the second at 120 s on 2 ms.
    latency = [9.0] * 6 + [6.0] * 6 + [2.0] * 6
    topologies, expected = periods(spark, [100.0] * 18, latency)
    plans = spark.createDataFrame([plan_at(60, "p-1"), plan_at(120, "p-2")], PLANS)
    found = plan_effects(plans, topologies, expected, Around(300.0)).where("figure = 'latency_p50_ms'").collect()
    told = {row["plan_id"]: (row["before"], row["after"], row["effect"]) for row in found}
    assert told == {"p-1": (9.0, 6.0, -3.0), "p-2": (6.0, 2.0, -4.0)}


def test_a_plan_is_not_credited_with_what_one_did_that_failed_halfway(spark: SparkSession) -> None:
    # 9 ms, from the plan at 60 s on 6 ms; what the one at 120 s moved before it was given up makes 2 ms of it.
    topologies, expected = periods(spark, [100.0] * 20, [9.0] * 6 + [6.0] * 6 + [2.0] * 8)
    failed = plan("Failed", 2, plan_id="p-2", created_at=MONDAY + timedelta(seconds=121), in_force_at=None)
    plans = spark.createDataFrame([plan_at(60, "p-1"), failed], PLANS)
    found = plan_effects(plans, topologies, expected, Around(300.0)).where("figure = 'latency_p50_ms'").collect()
    told = {row["plan_id"]: (row["before"], row["after"], row["effect"]) for row in found}
    assert told == {"p-1": (9.0, 6.0, -3.0)}


def test_a_plan_that_failed_disturbs_beyond_the_next_one(spark: SparkSession) -> None:
    # What the one that failed at 0 s may still do until 150 s, as 9 ms of 6 here, is not undone by the plan at 30 s.
    topologies, expected = periods(spark, [100.0] * 20, [6.0] * 6 + [9.0] * 4 + [6.0] * 10)
    failed = plan("Failed", plan_id="p-1", period_end=MONDAY, created_at=MONDAY, in_force_at=None)
    plans = spark.createDataFrame([failed, plan_at(30, "p-2"), plan_at(100, "p-3")], PLANS)
    assert plan_effects(plans, topologies, expected, Around(300.0)).collect() == []


def test_what_the_restart_before_cost_is_not_the_usual_rate(spark: SparkSession) -> None:
    """A plan at 20 s takes 40 s until all runs, and is rolled back at 80 s; each period in which they do loses all."""
    topologies, expected = periods(spark, [100.0] * 2 + [0.0] * 4 + [100.0] * 2 + [0.0, 100.0, 100.0], [1.0] * 11)
    first = plan(
        "RolledBack",
        created_at=MONDAY + timedelta(seconds=20),
        in_force_at=MONDAY + timedelta(seconds=21),
        seconds_to_running=39.0,
        restarted_workers=0,
    )
    plans = spark.createDataFrame([first, plan_at(80, "p-2")], PLANS)
    (cost,) = restart_costs(plans, spark.createDataFrame([], PLACES), topologies, expected).collect()
    assert (cost["plan_id"], cost["missing_trees"]) == ("p-2", pytest.approx(1_000.0))


def test_a_plan_does_not_count_as_one_that_moved_state_for_what_the_next_one_moves(spark: SparkSession) -> None:
    """Of two plans a minute apart, each of which all see in the two minutes around it, the later one alone does."""
    next_at = MONDAY + timedelta(seconds=60)
    later = plan("Verified", 1, plan_id="p-2", created_at=next_at, in_force_at=next_at + timedelta(seconds=1))
    ends = [MONDAY + timedelta(seconds=at) for at in range(-10, 120, 10)]
    places = [("blue", "w-1", 3, end, 10.0, "s1" if end <= next_at else "s2", 6700, True) for end in ends]
    plans = spark.createDataFrame([plan("Verified"), later], PLANS)
    found = restart_times(plans, spark.createDataFrame(places, PLACES)).collect()
    assert {row["state_moved"]: row["plans"] for row in found} == {False: 1, True: 1}


def test_long_periods_tell_where_executors_were_around_a_plan(spark: SparkSession) -> None:
    row = plan("Verified", topology_ids="w-1,w-2", created_at=MONDAY, in_force_at=MONDAY + timedelta(seconds=1))
    plans, places = spark.createDataFrame([row], PLANS), moved(spark, "w-1", MONDAY, (-150, 310), 300.0)
    (times,) = restart_times(plans, places).collect()
    assert times["state_moved"]
    ends = [MONDAY + timedelta(seconds=at) for at in (-150, 150)]
    seen = [("blue", "w-1", end, 300.0, rate, 1.0, None) for end, rate in zip(ends, (100.0, 90.0), strict=True)]
    topologies, none = spark.createDataFrame(seen, TOPOLOGIES), spark.createDataFrame([], EXPECTED)
    (cost,) = restart_costs(plans, places, topologies, none).collect()
    assert (cost["restarted_workers"], cost["missing_trees"]) == (1, pytest.approx(3_000.0))


def test_a_plan_of_the_evening_before_is_known_for_what_it_does(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At 60 s 9 ms become 6 by a plan, which one that ended at 0 s, and ran 30 s later, had made of 1 ms.
    topologies, expected = periods(spark, [100.0] * 14, [1.0] * 3 + [9.0] * 3 + [6.0] * 8)
    last = MONDAY - timedelta(seconds=1)
    earlier = plan("Expired", period_end=last, created_at=last, in_force_at=last, seconds_to_running=31.0)
    plans = spark.createDataFrame([earlier, plan_at(60, "p-2")], PLANS)
    of_tables = {"plans": plans, "topologies": topologies, "executors": spark.createDataFrame([], PLACES)}
    found: dict[str, list[Any]] = {}

    def silver(_: object, __: object, table: str, ___: object, first: date, last: date) -> DataFrame:
        dated = of_tables.get(table, topologies).withColumn("date", f.to_date("period_end"))
        return dated.where(f.col("date").between(f.lit(first), f.lit(last)))

    def replace_cluster(frame: DataFrame, _: object, table: DerivedTable, __: str) -> None:
        found[table.name] = frame.collect()

    monkeypatch.setattr(evaluate, "silver", silver)
    monkeypatch.setattr(evaluate, "expected_load", lambda *_: expected)
    monkeypatch.setattr(evaluate, "replace_cluster", replace_cluster)
    evaluate.run(spark, Lake("unused"), "blue", Around(), MONDAY.date(), MONDAY.date())
    told = [row for row in found["plan_effects"] if row["figure"] == "latency_p50_ms"]
    assert [(row["plan_id"], row["before"], row["after"]) for row in told] == [("p-2", 9.0, 6.0)]
    assert [row["plans"] for row in found["policy_league"]] == [1], "that of the evening before is none of these days'"


def test_while_a_plan_waits_for_a_person_nothing_is_its_doing(spark: SparkSession) -> None:
    # 9 ms, from the plan at 60 s on 6 ms, from that proposed at 70 s and carried out at 180 s on 2 ms; nothing is lost
    # but in the ten seconds after each, though the load falls meanwhile by a tenth.
    latency = [9.0] * 6 + [6.0] * 12 + [2.0] * 6
    acked = [100.0] * 6 + [50.0] + [100.0] * 3 + [90.0] * 8 + [40.0] + [90.0] * 5
    topologies, expected = periods(spark, acked, latency)
    proposed_at, in_force_at = MONDAY + timedelta(seconds=70), MONDAY + timedelta(seconds=181)
    waited = plan("Verified", plan_id="p-2", created_at=proposed_at, in_force_at=in_force_at)
    plans = spark.createDataFrame([plan_at(60, "p-1"), waited], PLANS)
    found = plan_effects(plans, topologies, expected, Around(100.0)).where("figure = 'latency_p50_ms'").collect()
    told = {row["plan_id"]: (row["before"], row["after"], row["effect"]) for row in found}
    assert told == {"p-1": (9.0, 6.0, -3.0), "p-2": (6.0, 2.0, -4.0)}
    costs = restart_costs(plans, spark.createDataFrame([], PLACES), topologies, expected).collect()
    lost = {cost["plan_id"]: (cost["seconds"], cost["missing_trees"]) for cost in costs}
    assert lost == {"p-1": (8.0, pytest.approx(500.0)), "p-2": (8.0, pytest.approx(500.0))}


def test_executors_that_were_not_seen_to_run_did_not_run_at_once(spark: SparkSession) -> None:
    # Nothing is completed for fifty seconds; then the operator had long given up.
    acked = [100.0] * 6 + [0.0] * 5 + [100.0] * 9
    made = MONDAY + timedelta(seconds=60)
    in_force_at = made + timedelta(seconds=1)
    row = plan("Verified", created_at=made, in_force_at=in_force_at, seconds_to_running=None)
    topologies, expected = periods(spark, acked, [9.0] * 6 + [90.0] * 8 + [6.0] * 6)
    plans, unseen = spark.createDataFrame([row], PLANS), spark.createDataFrame([], PLACES)
    (cost,) = restart_costs(plans, unseen, topologies, expected).collect()
    assert (cost["seconds"], cost["missing_trees"]) == (1.0 + RUNNING_TIMEOUT_SECONDS, pytest.approx(5_000.0))
    effects = plan_effects(plans, topologies, expected, Around(300.0)).where("figure = 'latency_p50_ms'")
    assert [row["after"] for row in effects.collect()] == [6.0]


def test_plan_that_was_interrupted_in_force_has_no_effects_before_it_was_done(spark: SparkSession) -> None:
    acked = [100.0] * 6 + [0.0] * 20 + [100.0] * 9
    made = MONDAY + timedelta(seconds=60)
    in_force_at, running_at = made + timedelta(seconds=1), made + timedelta(seconds=200)
    row = plan("Verified", created_at=made, in_force_at=in_force_at, seconds_to_running=None, running_at=running_at)
    topologies, expected = periods(spark, acked, [9.0] * 6 + [90.0] * 20 + [6.0] * 9)
    effects = plan_effects(spark.createDataFrame([row], PLANS), topologies, expected, Around(300.0))
    assert [one["after"] for one in effects.where("figure = 'latency_p50_ms'").collect()] == [6.0]


def test_of_what_nobody_measured_nothing_is_said_to_be_missing(spark: SparkSession) -> None:
    # All runs again 8 s after the plan: the periods that end at 70 s and, as it takes part in it, none after.
    half, unknown = ([100.0] * 6 + [meanwhile] + [100.0] * 3 for meanwhile in (50.0, None))
    plans, unseen = spark.createDataFrame([plan_at(60, "p-1")], PLANS), spark.createDataFrame([], PLACES)
    (known,) = restart_costs(plans, unseen, *periods(spark, half, [1.0] * 10)).collect()
    assert (known["missing_trees"], known["unknown_seconds"]) == (pytest.approx(500.0), 0.0)
    (nobody,) = restart_costs(plans, unseen, *periods(spark, unknown, [1.0] * 10)).collect()
    assert (nobody["missing_trees"], nobody["missing_trees_per_worker"]) == (None, None)
    assert nobody["unknown_seconds"] == 10.0


def test_time_that_no_period_was_recorded_of_is_unknown(spark: SparkSession) -> None:
    """All runs again a minute after the plan; from then until 105 s the operator recorded nothing."""
    in_force_at = MONDAY + timedelta(seconds=61)
    row = plan("Verified", created_at=MONDAY + timedelta(seconds=60), in_force_at=in_force_at, seconds_to_running=59.0)
    plans, unseen = spark.createDataFrame([row], PLANS), spark.createDataFrame([], PLACES)
    before = [(10 * number, 10.0, 100.0, 1.0) for number in range(1, 7)]
    after = [(120, 15.0, 40.0, 1.0), (130, 10.0, 100.0, 1.0), (140, 10.0, 100.0, 1.0)]
    (cost,) = restart_costs(plans, unseen, *recorded(spark, before + after)).collect()
    assert (cost["seconds"], cost["unknown_seconds"], cost["missing_trees"]) == (60.0, 45.0, pytest.approx(900.0))
    (blind,) = restart_costs(plans, unseen, *recorded(spark, before)).collect()
    assert (blind["unknown_seconds"], blind["missing_trees"]) == (60.0, None)


def test_each_topology_of_a_plan_is_told_its_own_restarts(spark: SparkSession) -> None:
    """A worker of w-1 goes elsewhere and one stays; of w-2 two exchange executors, a third ends, a fourth stays."""
    moves = {
        ("w-1", 1): (("a", 1), ("b", 1)),
        ("w-1", 2): (("a", 2), ("a", 2)),
        ("w-2", 1): (("a", 3), ("b", 3)),
        ("w-2", 2): (("b", 3), ("a", 3)),
        ("w-2", 3): (("c", 4), ("b", 3)),
        ("w-2", 4): (("b", 4), ("b", 4)),
    }
    places = [
        ("blue", topology_id, task, MONDAY + timedelta(seconds=seconds), 10.0, *place, False)
        for (topology_id, task), (before, after) in moves.items()
        for seconds, place in ((50, before), (60, before), (70, after), (80, after))
    ]
    acked: list[float | None] = [*[100.0] * 6, 50.0, *[100.0] * 3]
    of_both = f.explode(f.array(f.lit("w-1"), f.lit("w-2")))
    topologies, expected = (
        frame.withColumn("topology_id", of_both) for frame in periods(spark, acked, [1.0] * len(acked))
    )
    made = MONDAY + timedelta(seconds=60)
    row = plan("Verified", topology_ids="w-1,w-2", restarted_workers=3, created_at=made, in_force_at=made)
    plans = spark.createDataFrame([row], PLANS)
    costs = restart_costs(plans, spark.createDataFrame(places, PLACES), topologies, expected).collect()
    found = {cost["topology_id"]: (cost["restarted_workers"], cost["missing_trees_per_worker"]) for cost in costs}
    assert found == {"w-1": (1, pytest.approx(500.0)), "w-2": (2, pytest.approx(250.0))}
    unseen = restart_costs(plans, spark.createDataFrame([], PLACES), topologies, expected).collect()
    assert {cost["restarted_workers"] for cost in unseen} == {None}


def test_a_comma_in_a_topology_s_name_makes_no_two_of_it(spark: SparkSession) -> None:
    """Storm allows it: plans of such a topology are found where its periods are, and all restarts are its own."""
    name = "orders, eu-1-1767225600"
    made = MONDAY + timedelta(seconds=60)
    rows = [
        plan("Verified", plan_id=plan_id, topology_ids=one_text(ids), created_at=made, in_force_at=made)
        for plan_id, ids in (("p-1", (name,)), ("p-2", (name, "w-1")))
    ]
    plans = spark.createDataFrame(rows, PLANS)
    topologies, expected = (
        frame.withColumn("topology_id", f.lit(name)) for frame in periods(spark, [100.0] * 10, [1.0] * 10)
    )
    costs = restart_costs(plans, spark.createDataFrame([], PLACES), topologies, expected).collect()
    assert {(cost["plan_id"], cost["topology_id"]): cost["restarted_workers"] for cost in costs} == {
        ("p-1", name): 2,
        ("p-2", name): None,
    }
    (times,) = restart_times(plans, moved(spark, name, made, (-5, 15))).collect()
    assert times["state_moved"]


def test_cpu_used_is_compared_with_what_is_declared_now(spark: SparkSession) -> None:
    rows = [executor(0, 10.0), executor(0, 10.0), (*executor(24, 10.0)[:-1], 20.0)]
    found = component_profile(component_periods(shuffled(spark, rows))).where("hour_of_week IS NULL").collect()
    assert [(row["declared_millicores"], row["executors"]) for row in found] == [(20.0, 1)]
    assert found[0]["used_share_of_declared"] == pytest.approx(0.5)

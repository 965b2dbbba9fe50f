"""What is made of figures measured on the real cluster, and when a policy counts as settled."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
import real_cluster
from calibration_cases import MACHINE_MILLICORES, MACHINES, WORKLOADS, ExecutorFigures, Measured, Workload
from papers.contestants import NEVER, as_published
from real_figures import (
    contenders_in,
    figures_table,
    picture,
    ratios,
    ratios_table,
    summary,
    turn_order,
    with_range,
)

from storm_operator.core.decision import Decision, Hold, HoldReason
from storm_operator.core.settings import ApprovalMode, Enforcement, Trigger
from storm_operator.core.topology_spec import JarSource, TopologySpec
from storm_operator.demo.scenario import PERIOD_SECONDS
from storm_operator.loop_ports import PassReport


def case(
    contender: str, load: str, turn: int, p50_ms: float, crossing: float, acked: float, workload: str = "chain"
) -> Measured:
    executor = ExecutorFigures("spout", (1, 1), 0, 0, 10.0, acked)
    return Measured(
        workload, contender, load, turn, acked, p50_ms, p50_ms, p50_ms, 4.0, crossing, (executor,), (10.0, 0.0, 0.0)
    )


CASES = [
    case("even", "low", 0, 10.0, 400.0, 40.02),
    case("even", "low", 1, 20.0, 400.0, 40.0),
    case("even", "saturated", 0, 200.0, 4000.0, 500.0),
    case("resource-aware", "low", 0, 6.0, 0.0, 40.0),
    case("adaptive", "low", 0, 3.0, 100.0, 39.98),
    case("adaptive", "low", 1, 16.0, 200.0, 40.0),
    case("adaptive", "saturated", 0, 250.0, 3000.0, 400.0),
    case("adaptive", "low", 2, 1.0, 1.0, 40.0),
]


def ratio_of(figure: str, load: str = "low", against: str = "even") -> tuple[tuple[float, ...], bool | None]:
    (row,) = [r for r in ratios(CASES, "adaptive", against) if (r.load, r.figure) == (load, figure)]
    return row.values, row.reaches_target


def test_a_ratio_is_of_one_turn_and_a_turn_that_only_one_played_has_none() -> None:
    values, reached = ratio_of("latency_p50")
    assert values == pytest.approx((0.3, 0.8))
    assert reached is False  # the median is 0.55


def test_tuples_between_supervisors_reach_their_target_by_the_median() -> None:
    values, reached = ratio_of("inter_supervisor_tuples")
    assert values == pytest.approx((0.25, 0.5))
    assert reached is True


def test_over_no_tuples_at_all_there_is_no_ratio() -> None:
    assert ratio_of("inter_supervisor_tuples", against="resource-aware") == ((), None)
    assert "none to compare with" in ratios_table(ratios(CASES, "adaptive", "resource-aware"))


def test_at_low_load_throughput_counts_to_two_digits_and_at_saturation_it_must_be_higher() -> None:
    assert ratio_of("throughput")[1] is True  # 0.9995
    values, reached = ratio_of("throughput", "saturated")
    assert values == pytest.approx((0.8,))
    assert reached is False


def test_latency_at_saturation_has_no_target() -> None:
    assert ratio_of("latency_p50", "saturated")[1] is None


def test_the_summary_names_the_targets_missed_and_knows_only_what_was_measured() -> None:
    told = summary(CASES)
    assert told["targets_missed"] == ["chain low latency_p50 even", "chain saturated throughput even"]
    rows = told["adaptive"]
    assert isinstance(rows, list)
    assert all(not math.isnan(row["median"]) for row in rows)
    assert {(row["load"], row["against"]) for row in rows} == {
        ("low", "even"),
        ("low", "resource-aware"),
        ("saturated", "even"),
    }


def test_storms_own_come_first_in_tables() -> None:
    assert contenders_in([*CASES, case("liu", "low", 0, 1.0, 1.0, 1.0)]) == (
        *("even", "resource-aware", "adaptive"),
        "liu",
    )
    assert "| chain | low | even | 15.0 (10.0 to 20.0) | 400.0 | 40.0 | 1 |" in figures_table(CASES)


def test_a_range_is_shown_only_where_there_is_one() -> None:
    assert with_range([3.0]) == "3.0"
    assert with_range([3.0, 1.0, 2.5]) == "2.5 (1.0 to 3.0)"


def test_nobody_always_comes_first() -> None:
    assert [turn_order(("a", "b", "c"), turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]
    assert sorted(turn_order(("a", "b", "c"), 5)) == ["a", "b", "c"]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_what_is_declared_fits_and_needs_every_supervisor(workload: Workload) -> None:
    executors = len(workload.simulated("any", "low").as_topology().executors)
    percent_of_machine = MACHINE_MILLICORES / 10.0
    on_one_machine = percent_of_machine // real_cluster.declared_percent(executors)
    assert executors <= on_one_machine * MACHINES
    assert executors > on_one_machine * (MACHINES - 1)
    assert executors * real_cluster.COMPONENT_HEAP_MB <= real_cluster.WORKER_HEAP_MB


def report(*decisions: Decision) -> PassReport:
    return PassReport(0.0, None, None, tuple(((), decision) for decision in decisions))


def test_a_policy_is_calm_once_it_could_act_for_some_passes_and_did_not() -> None:
    content = report(Hold(HoldReason.GAIN_TOO_SMALL, ""))
    waiting = report(Hold(HoldReason.COOL_DOWN, ""))
    passes = real_cluster.CALM_PASSES
    assert real_cluster.is_calm([waiting, *[content] * passes])
    assert not real_cluster.is_calm([content] * (passes - 1))
    assert not real_cluster.is_calm([*[content] * (passes - 1), waiting])
    assert not real_cluster.is_calm([report()] * passes)


@pytest.mark.parametrize(
    ("policy", "period_seconds"), [("t-storm", 300.0), ("etw-wtn", 50.0), ("aniello-online", 40.0)]
)
def test_a_policy_with_a_period_of_its_own_is_calm_only_after_that(policy: str, period_seconds: float) -> None:
    content = report(Hold(HoldReason.NO_CHANGE, ""))
    passes = real_cluster.passes_until_calm(policy)
    assert PERIOD_SECONDS * passes >= period_seconds + PERIOD_SECONDS * real_cluster.CALM_PASSES
    assert not real_cluster.is_calm([content] * (passes - 1), passes)
    assert real_cluster.is_calm([content] * passes, passes)
    limit_seconds = real_cluster.longest_settling(policy, real_cluster.LIMIT_SECONDS)
    assert limit_seconds > period_seconds + PERIOD_SECONDS * passes


def test_who_may_always_act_is_calm_after_as_many_passes_as_ever() -> None:
    assert real_cluster.passes_until_calm("adaptive") == real_cluster.CALM_PASSES
    assert real_cluster.longest_settling("liu", real_cluster.LIMIT_SECONDS) == real_cluster.LIMIT_SECONDS


def test_published_policies_have_the_settings_of_their_papers() -> None:
    spec = TopologySpec("chain", JarSource("jar", "Main", ()))
    liu, t_storm, ours = (real_cluster.managed(spec, policy) for policy in ("liu", "t-storm", "adaptive"))
    published = replace(as_published("liu"), period_seconds=PERIOD_SECONDS)
    assert liu.scheduling == published
    assert (published.trigger, published.cool_down_seconds) == (Trigger.POLICY, 0.0)
    assert published.rollback_margin_percent == NEVER
    assert [spec.resources.enforcement for spec in (liu, t_storm, ours)] == [
        *(Enforcement.EXECUTOR, Enforcement.NONE),
        Enforcement.EXECUTOR,
    ]
    assert ours.scheduling.trigger is Trigger.GAIN
    by_hand = real_cluster.managed(spec, "liu", ApprovalMode.MANUAL).scheduling.approval
    assert by_hand.mode is ApprovalMode.MANUAL


def test_a_workload_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match="no nosuch; there are wordcount, chain, http"):
        real_cluster.workloads_named("chain,nosuch")


def test_what_has_a_target_is_drawn() -> None:
    texts = ["".join(element.itertext()) for element in ET.fromstring(picture(CASES)).iter() if element.text]
    assert "chain, saturated load: throughput (trees/s)" in texts
    assert "400" in texts

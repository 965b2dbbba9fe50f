"""Where a value can be good or bad, its colour says which: every panel has thresholds, or a reason to have none."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dashboards.all_of_them import documents
from dashboards.frame import Uid
from dashboards.look import GREEN, NEUTRAL, RED
from dashboards.preview.boxes import threshold_colour

AMOUNT = "as much as load and size ask for: neither good nor bad by itself"
BESIDE = "what it is to be held against is drawn beside it"
SHADES = "its colour is the amount: the darker, the more"
OUTCOMES = "bars by outcome or reason, none of them bad in itself; figures and alerts judge the bad ones"
WORDS = "words and times, no values"

NOT_JUDGED: dict[Uid, dict[str, tuple[str, ...]]] = {
    Uid.OVERVIEW: {
        AMOUNT: ("Topologies", "Completed", "Plans applied", "Completed tuples", "Traffic between supervisors"),
        BESIDE: ("CPU of supervisors",),
        OUTCOMES: ("Plans by what became of them", "Decisions to leave things as they are"),
    },
    Uid.TOPOLOGY: {
        AMOUNT: (
            "Completed",
            "Executors",
            "Supervisors",
            "Traffic by how far it goes",
            "Tuples executed",
            "Arrivals",
            "Memory of workers",
        ),
        BESIDE: ("Throughput", "CPU used and given"),
        SHADES: ("Distribution of complete latency", "CPU of the busiest executors"),
    },
    Uid.TRAFFIC: {
        AMOUNT: (
            "Between supervisors",
            "Pairs of supervisors",
            "Folded pairs of tasks",
            "Traffic by how far it goes",
            "Heaviest pairs of tasks",
            "Sent by each supervisor to others",
        ),
        SHADES: (
            "From supervisor to supervisor",
            "Round trip between supervisors",
            "Traffic between supervisors over time",
        ),
    },
    Uid.DECISIONS: {
        AMOUNT: (
            "Plans in force",
            "Verified",
            "Executors moved",
            "Workers restarted",
            "Executors moved and workers restarted",
        ),
        BESIDE: ("Traffic between supervisors: predicted and measured", "Load of components: forecast and actual"),
        OUTCOMES: ("Plans by what became of them", "Holds by reason"),
        WORDS: ("Why each topology is left as it is",),
    },
    Uid.ENFORCEMENT: {
        AMOUNT: ("Executors held to a limit", "Limits together", "Demand of components"),
        BESIDE: ("Limits and use by component", "CPU limits of pods and their use"),
        SHADES: ("Throttling over time",),
        OUTCOMES: ("CPU of pods changed in place",),
        WORDS: ("How agents enforce",),
    },
    Uid.OPERATOR: {
        AMOUNT: ("Where a pass spends its time", "Calls", "CPU of the operator", "Memory of the operator"),
        BESIDE: ("Duration of passes",),
        SHADES: ("Distribution of pass durations",),
        OUTCOMES: ("Passes",),
        WORDS: ("Which operators run",),
    },
    Uid.PIPELINE: {
        AMOUNT: ("Jobs", "Duration of jobs", "Rows written", "Duplicates removed", "Size of tables"),
        WORDS: ("Profiles",),
    },
}
"""Panels without thresholds, by reason."""

EXEMPT = {(str(uid), title) for uid, reasons in NOT_JUDGED.items() for titles in reasons.values() for title in titles}
PANELS = {
    (uid, panel["title"]): panel
    for uid, one in documents().items()
    for panel in one["panels"]
    if panel["type"] != "row"
}


def judgements(panel: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Steps of the panel's values and of its columns'."""
    overrides = [one for override in panel["fieldConfig"]["overrides"] for one in override["properties"]]
    of_columns = [one["value"] for one in overrides if one["id"] == "thresholds"]
    return [one["steps"] for one in (panel["fieldConfig"]["defaults"]["thresholds"], *of_columns)]


def tells_good_from_bad(steps: list[dict[str, Any]]) -> bool:
    return len({step["color"] for step in steps}) > 1 and any(step["color"] == GREEN for step in steps)


@pytest.mark.parametrize("name", sorted(PANELS), ids=": ".join)
def test_a_panel_says_what_is_good_and_what_is_bad(name: tuple[str, str]) -> None:
    judged = any(map(tells_good_from_bad, judgements(PANELS[name])))
    assert judged != (name in EXEMPT), "thresholds, or a reason in NOT_JUDGED: one of both"


@pytest.mark.parametrize("name", sorted(PANELS), ids=": ".join)
def test_steps_rise_and_nothing_is_green_that_nobody_judges(name: tuple[str, str]) -> None:
    for steps in judgements(PANELS[name]):
        assert steps[0]["value"] is None
        at = [step["value"] for step in steps[1:]]
        assert at == sorted(set(at))
        assert len(steps) > 1 or steps[0]["color"] == NEUTRAL


def test_each_reason_is_of_a_panel_that_is_there() -> None:
    assert EXEMPT - set(PANELS) == set()


@pytest.mark.parametrize(
    ("uid", "title", "broken", "well"),
    [
        (Uid.OPERATOR, "Leading", 0.0, 1.0),
        (Uid.OPERATOR, "Leading", 2.0, 1.0),
        (Uid.OPERATOR, "Last pass ended", 600.0, 11.0),
        (Uid.OPERATOR, "Metrics complete", 0.0, 1.0),
        (Uid.OPERATOR, "Completeness of metrics", 0.5, 1.0),
        (Uid.OVERVIEW, "Slowest p99", 30.0, 0.1),
        (Uid.OVERVIEW, "Firing alerts", 1.0, 0.0),
        (Uid.TOPOLOGY, "Latency p50", 30.0, 0.1),
        (Uid.TOPOLOGY, "Latency p95", 30.0, 0.1),
        (Uid.TOPOLOGY, "Latency p99", 30.0, 0.1),
        (Uid.ENFORCEMENT, "Machines held back", 0.9, 0.0),
    ],
)
def test_what_is_broken_is_red_and_what_is_well_is_green(uid: Uid, title: str, broken: float, well: float) -> None:
    defaults = PANELS[uid, title]["fieldConfig"]["defaults"]
    assert (threshold_colour(broken, defaults), threshold_colour(well, defaults)) == (RED, GREEN)


def asked_of_now(panel: dict[str, Any]) -> str:
    """A figure's expression, which it asks for where that has an answer at the end of the time looked at, too."""
    (target,) = panel["targets"]
    while_known = re.fullmatch(
        r"\((.+)\) and on \(\) last_over_time\(\(\1\)\[1s:1s\] @ end\(\)\) > -Inf", target["expr"]
    )
    assert while_known
    return while_known[1]


@pytest.mark.parametrize(
    "name", sorted(name for name, panel in PANELS.items() if panel["type"] == "stat"), ids=": ".join
)
def test_a_figure_is_none_of_what_has_ended(name: tuple[str, str]) -> None:
    assert asked_of_now(PANELS[name])


def test_no_alerts_are_no_good_news_where_no_rules_are_loaded() -> None:
    panel = PANELS[Uid.OVERVIEW, "Firing alerts"]
    asked = asked_of_now(panel)
    assert "vector(0)" not in asked
    assert "cluster:storm_rules:loaded" in asked
    assert asked.count("$cluster") == 2
    assert panel["fieldConfig"]["defaults"]["noValue"] == "no rules or operator"


@pytest.mark.parametrize(
    ("uid", "title", "told_by"),
    [
        (Uid.ENFORCEMENT, "Executors held to a limit", "storm_executor_cpu_seconds_total"),
        (Uid.ENFORCEMENT, "Limits together", "storm_executor_cpu_seconds_total"),
        (Uid.TRAFFIC, "Pairs of supervisors", "storm_operator_supervisor_executors"),
    ],
)
def test_there_are_none_only_where_somebody_tells_of_it(uid: Uid, title: str, told_by: str) -> None:
    _, none = asked_of_now(PANELS[uid, title]).split(" or ")
    assert told_by in none
    assert none.endswith("* 0")


def test_no_operator_at_all_is_seen_too() -> None:
    """Without the zero the panel would be empty where nothing is scraped."""
    assert asked_of_now(PANELS[Uid.OPERATOR, "Leading"]).endswith("or vector(0)")

"""monitoring/rules: everything that a rule names exists, and each has a test that promtool can play."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from rule_files import ROOT, RULE_TESTS, Rule, alerts, all_rules, metrics_in, rule_files, seconds_of, speed_up
from storm_operator.metric_contract import METRICS, Kind, Metric

CASES = sorted(RULE_TESTS.glob("*.yml"))
LONGEST_SELF_HEALING_SECONDS = 60.0


def parts(cases: Iterable[Path], what: str) -> list[Any]:
    """All of one kind that the tests in these files have."""
    return [one for case in cases for test in _read(case)["tests"] for one in test.get(what, ())]


@cache
def _read(case: Path) -> Any:
    return yaml.safe_load(case.read_text())


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_each_alert_is_made_to_fire_and_to_keep_quiet(alert: Rule) -> None:
    asked = [one for one in parts(CASES, "alert_rule_test") if one["alertname"] == alert.name]
    assert any(one.get("exp_alerts") for one in asked), "no test makes it fire"
    assert any(not one.get("exp_alerts") for one in asked), "no test keeps it quiet"


def test_each_recording_rule_has_a_test_of_its_value() -> None:
    asked = {name for one in parts(CASES, "promql_expr_test") for name in metrics_in(one["expr"])}
    assert {rule.name for rule in all_rules() if not rule.is_alert} <= asked


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_what_a_rule_asks_for_is_exported_or_recorded(rule: Rule) -> None:
    recorded = {other.name for other in all_rules() if not other.is_alert}
    exported = {name for metric in METRICS for name in exported_as(metric)}
    assert metrics_in(rule.expression) - recorded - exported == set()
    assert metrics_in(rule.expression)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_series_that_a_case_plays_are_as_they_are_exported(case: Path) -> None:
    labels = {name: {*metric.labels, "le"} for metric in METRICS for name in exported_as(metric)}
    added_by_prometheus = {"cluster", "pod", "instance", "job"}
    for series in parts([case], "input_series"):
        name, _, found = series["series"].partition("{")
        played = set(re.findall(r"(\w+)=", re.sub(r'"[^"]*"', "", found)))
        assert played <= labels[name] | added_by_prometheus, series["series"]


def exported_as(metric: Metric) -> tuple[str, ...]:
    """The names that its samples have."""
    suffixes = ("_bucket", "_sum", "_count") if metric.kind is Kind.HISTOGRAM else ("",)
    return tuple(metric.name + suffix for suffix in suffixes)


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_each_alert_says_what_it_is_and_where_to_read_on(alert: Rule) -> None:
    assert {"summary", "description", "runbook_url"} <= alert.annotations.keys()
    assert alert.body["labels"]["severity"] in ("critical", "warning", "info")
    page = ROOT / alert.annotations["runbook_url"]
    assert page == ROOT / "docs" / "runbooks" / f"{alert.name}.md"
    assert page.read_text().startswith(f"# {alert.name}\n")
    assert f"[{alert.name}]({alert.name}.md)" in (page.parent / "README.md").read_text()


def test_no_runbook_is_of_an_alert_that_is_gone() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "runbooks").glob("*.md")}
    assert pages == {alert.name for alert in alerts()} | {"README"}


def test_names_are_used_once() -> None:
    names = [(rule.name, json.dumps(rule.body.get("labels", {}))) for rule in all_rules() if not rule.is_alert]
    assert len(names) == len(set(names))
    assert len({alert.name for alert in alerts()}) == len(alerts())


def test_the_chart_ships_these_very_rules() -> None:
    shipped = ROOT / "charts" / "storm-operator" / "rules"
    assert {file.name: file.read_text() for file in shipped.iterdir()} == {
        file.name: file.read_text() for file in rule_files()
    }


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ('sum by (cluster, le) (rate(storm_a_bucket{job=~"x(y)"}[2m])) > 0.5', {"storm_a_bucket"}),
        ("a:b_c:ratio and on (x) up{job='x'} offset 5m unless y > bool 1", {"a:b_c:ratio", "up", "y"}),
        ("max_over_time(sum(z)[1h:1m]) * on (a) group_left (b) time() # comment up\n or inf", {"z"}),
        ("rate(c[$__rate_interval]) * $__interval_ms / 1000", {"c"}),
    ],
)
def test_metrics_of_an_expression_are_found(expression: str, names: set[str]) -> None:
    assert metrics_in(expression) == names


def test_a_faster_copy_differs_in_its_times_alone() -> None:
    rule = {"alert": "A", "expr": "rate(b[2m30s]) > 60 and c[1h:1m]", "for": "5m"}
    (group,) = speed_up({"groups": [{"name": "g", "interval": "15s", "rules": [rule]}]}, 15.0)["groups"]
    assert (group["name"], group["interval"]) == ("g", "1000ms")
    quick = {"alert": "A", "expr": "rate(b[10000ms]) > 60 and c[240000ms:4000ms]", "for": "20000ms"}
    assert group["rules"] == [quick]
    assert seconds_of("1h30m5s") == 5405.0

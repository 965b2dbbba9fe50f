"""Pages name only metrics that there are: somebody copies their queries in the middle of the night."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rule_files import ROOT, all_rules
from storm_operator.metric_contract import METRICS, Kind
from storm_pipeline.metrics import METRICS as PIPELINE_METRICS
from storm_pipeline.metrics import STORM_CLUSTER

PAGES = sorted(page for folder in ("runbooks", "how-to") for page in (ROOT / "docs" / folder).glob("*.md"))
NAME = re.compile(r"(?<![\w:./-])(?:[a-z_]+:)?storm_[\w:]*\w(?![\w.])")
TOPOLOGY_BY_ID = re.compile(r'topology_id=~?"([^"]*)"')
PACKAGES, LABELS = {"storm_operator", "storm_pipeline"}, {STORM_CLUSTER}


def there_are() -> set[str]:
    recorded = {rule.name for rule in all_rules() if not rule.is_alert}
    histograms = {
        f"{metric.name}_{part}"
        for metric in METRICS
        if metric.kind is Kind.HISTOGRAM
        for part in ("bucket", "sum", "count")
    }
    scalars = {metric.name for metric in METRICS if metric.kind is not Kind.HISTOGRAM}
    return recorded | histograms | scalars | {metric.name for metric in PIPELINE_METRICS}


def named_in(text: str) -> set[str]:
    return set(NAME.findall(text)) - PACKAGES - LABELS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_only_what_is_exported_or_recorded(page: Path) -> None:
    assert named_in(page.read_text()) - there_are() == set()


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name == "runbooks"], ids=lambda page: page.stem)
def test_a_runbooks_query_of_one_topology_is_of_no_other(page: Path) -> None:
    """Storm's ids are NAME-counter-time: `NAME-.*` is also every topology whose name begins like that."""
    for pattern in TOPOLOGY_BY_ID.findall(page.read_text()):
        mine = pattern.replace("NAME", "words")
        assert re.fullmatch(mine, "words-3-1767268800")
        assert not re.fullmatch(mine, "words-slow-3-1767268800")


def test_every_rule_that_records_is_explained() -> None:
    page = (ROOT / "docs/how-to/monitor.md").read_text()
    recorded = {rule.name for rule in all_rules() if not rule.is_alert}
    by_ending = {name for name in recorded if f"`{name.rpartition(':')[2]}`" in page}
    of_other_rules_alone = {"topology_le:storm_complete_latency_seconds_bucket:rate2m"}
    assert recorded - named_in(page) - by_ending == of_other_rules_alone


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("`storm_operator_leader` and rate(a:storm_b:c2m[1m])", {"storm_operator_leader", "a:storm_b:c2m"}),
        ("storm_operator.metrics.dir, -m storm_operator, `python -m storm_pipeline`", set()),
        ('storm_no_such_metric{a="b"}', {"storm_no_such_metric"}),
    ],
)
def test_names_are_found(text: str, names: set[str]) -> None:
    assert named_in(text) == names

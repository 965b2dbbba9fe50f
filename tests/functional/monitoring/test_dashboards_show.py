"""Every panel, variable, annotation and rule gets an answer that is not empty from the Prometheus of a real run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from eventually import eventually

from dashboards.all_of_them import documents
from dashboards.frame import Uid
from dashboards.preview.asking import Answer, AnsweredDashboard, ask
from dashboards.preview.choices import Looked
from dashboards.preview.page import page
from dashboards.preview.prometheus import Prometheus
from dashboards.preview.screenshots import CHROMIUM, INSTALL, take
from monitored_cluster import PLAYED, SCRAPE_SECONDS, MonitoredCluster, monitored, wait_for_a_verified_plan
from rule_files import all_rules
from storm_operator.local.cluster import LocalCluster
from storm_operator.metric_contract import BY_NAME

pytestmark = [pytest.mark.functional, pytest.mark.timeout(1500)]

LOOKED_SECONDS = 300.0
PATIENCE_SECONDS = 240.0
STANDALONE_HAS_NONE = {"namespace": "StormTopology resources have namespaces, files have none"}
MAY_BE_EMPTY: dict[str, str] = {}
"""Rules that a healthy run leaves without a value, and why. Alerts are left out: they are empty while all is well."""


@pytest.fixture(scope="module")
def cluster(
    storm_cluster: LocalCluster, workloads_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MonitoredCluster]:
    with monitored(storm_cluster, workloads_jar, tmp_path_factory.mktemp("dashboards") / "run") as running:
        wait_for_a_verified_plan(running)
        yield running


@pytest.fixture(scope="module")
def answered(cluster: MonitoredCluster) -> dict[str, AnsweredDashboard]:
    """The answers, asked again while a scrape that came too late on a busy machine leaves some of them empty."""
    prometheus = Prometheus(cluster.prometheus.url)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        now = time.time()
        looked = Looked(now - LOOKED_SECONDS, now, SCRAPE_SECONDS)
        found = {uid: ask(document, prometheus, looked) for uid, document in documents().items()}
        if time.monotonic() > deadline or all(is_whole(one) for one in found.values()):
            return found
        time.sleep(SCRAPE_SECONDS)


def is_whole(dashboard: AnsweredDashboard) -> bool:
    has_answers = not empty_answers(dashboard) and known(dashboard.plans)
    return has_answers and not dashboard.chosen.errors and empty_variables(dashboard) == set(STANDALONE_HAS_NONE)


def empty_variables(dashboard: AnsweredDashboard) -> set[str]:
    return {name for name, options in dashboard.chosen.options.items() if not options}


def empty_answers(dashboard: AnsweredDashboard) -> list[str]:
    return [
        f"{panel.title}, query {answer.ref_id}: {answer.error or 'no data'}: {answer.expression}"
        for panel in dashboard.panels
        for answer in panel.answers
        if answer.error or not known(answer)
    ]


def known(answer: Answer) -> bool:
    return any(math.isfinite(value) for series in answer.series for _, value in series.points)


@pytest.mark.parametrize("uid", list(Uid))
def test_every_panel_has_something_to_show(answered: dict[str, AnsweredDashboard], uid: Uid) -> None:
    assert empty_answers(answered[uid]) == []


@pytest.mark.parametrize("uid", list(Uid))
def test_every_variable_has_values_and_plans_are_marked(answered: dict[str, AnsweredDashboard], uid: Uid) -> None:
    one = answered[uid]
    assert one.chosen.errors == {}
    assert empty_variables(one) == set(STANDALONE_HAS_NONE)
    assert known(one.plans), one.plans.error
    assert all(one.looked.start_seconds - 600 < s.points[-1][1] / 1000 < time.time() for s in one.plans.series)


def test_every_rule_can_be_evaluated_and_every_recording_rule_records(cluster: MonitoredCluster) -> None:
    assert cluster.prometheus.broken_rules() == []
    recorded = {rule.name for rule in all_rules() if not rule.is_alert}

    def unexpectedly_empty() -> set[str]:
        return {name for name in recorded if not cluster.prometheus.query(name)} - set(MAY_BE_EMPTY)

    eventually(lambda: not unexpectedly_empty(), "every recording rule records", seen=unexpectedly_empty)


def test_the_page_shows_what_was_answered(answered: dict[str, AnsweredDashboard]) -> None:
    made = page(list(answered.values()))
    # Counted: pytest would explain where in several megabytes of script the words stand.
    assert made.count("no data") == 0
    assert made.count('class="error"') == 0


def test_the_page_looks_like_dashboards_in_a_browser(answered: dict[str, AnsweredDashboard], tmp_path: Path) -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"NOT TESTED: there is no {CHROMIUM}; to install it: {INSTALL}")
    shown = tmp_path / "index.html"
    shown.write_text(page(list(answered.values())), encoding="utf-8")
    # In a thread of its own: the page's tests, which may have run in this process, keep a browser in the main one.
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(take, shown, list(answered), tmp_path).result() == []
    for uid in answered:
        assert (tmp_path / f"{uid}.png").stat().st_size > 30_000, "an empty page is a small picture"


def test_what_is_played_is_declared_and_not_exported_by_the_run(cluster: MonitoredCluster) -> None:
    for name in PLAYED:
        assert name in BY_NAME
        real = [labels for labels, _ in cluster.prometheus.query(name) if labels["job"] != "played"]
        assert real == [], f"{name} comes from the run itself: play it no longer"

"""What is chosen at the top of a dashboard counts: every query of a panel goes by it, or there is a reason."""

from __future__ import annotations

import re

import pytest

from dashboards.all_of_them import documents
from dashboards.frame import Uid

OF_THE_PROCESS = "one operator serves all clusters: what is of its process is of none"
ALL_JOBS = "jobs read and write one store of all clusters together; only profiles and forecasts are of a topology"

NOT_CHOSEN: dict[Uid, dict[str, tuple[str, ...]]] = {
    Uid.OPERATOR: {
        OF_THE_PROCESS: (
            "Leading",
            "Age of watches",
            "Which operators run",
            "CPU of the operator",
            "Memory of the operator",
        ),
    },
    Uid.PIPELINE: {
        ALL_JOBS: (
            "Jobs",
            "Jobs whose last run failed",
            "Longest without success",
            "Share of rows in quarantine",
            "Last run of each job",
            "Duration of jobs",
            "Rows written",
            "Rows in quarantine by reason",
            "Duplicates removed",
            "Age of the newest row",
            "Size of tables",
        ),
    },
}
"""Panels that ask the same whatever is chosen, by reason."""

EXEMPT = {(str(uid), title) for uid, reasons in NOT_CHOSEN.items() for titles in reasons.values() for title in titles}
QUERIES = {
    (uid, panel["title"]): [target["expr"] for target in panel["targets"]]
    for uid, one in documents().items()
    for panel in one["panels"]
    if panel["type"] != "row"
}
CHOICES = re.compile(r"\$(?:cluster|topology|topology_id)\b")


@pytest.mark.parametrize("name", sorted(QUERIES), ids=": ".join)
def test_a_panel_goes_by_what_is_chosen(name: tuple[str, str]) -> None:
    unchosen = [query for query in QUERIES[name] if not CHOICES.search(query)]
    assert unchosen == (QUERIES[name] if name in EXEMPT else [])


def test_each_reason_is_of_a_panel_that_is_there() -> None:
    assert EXEMPT - set(QUERIES) == set()


@pytest.mark.parametrize("title", ["How agents enforce", "Machines held back", "CPU limits of pods and their use"])
def test_agents_of_other_clusters_are_left_out(title: str) -> None:
    """Agents do not know their Nimbus: the operator says which supervisors it has."""
    for query in QUERIES[Uid.ENFORCEMENT, title]:
        assert re.search(r' and on \(supervisor\) storm_operator_supervisor_executors\{nimbus=~"\$cluster"\}', query)

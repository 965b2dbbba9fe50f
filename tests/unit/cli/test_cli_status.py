"""`status` and `explain` against an operator's page that is known exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from console_scene import PageScene, page_scene
from storm_operator.cli import app
from storm_operator.console.api import Api
from storm_operator.console.site import PageAddress, open_page

RUNNER = CliRunner()


class Operator:
    """A page over HTTP."""

    def __init__(self) -> None:
        self.page: PageScene = page_scene(passes=8)
        self.clusters = {"nimbus:6627": self.page.watcher}
        self.server, where = open_page(Api(lambda: self.clusters), PageAddress(0))
        self.url = where.url

    def run(self, *arguments: str, exit_code: int = 0) -> str:
        done = RUNNER.invoke(app, [*arguments, "--url", self.url], env={"COLUMNS": "200"})
        assert done.exit_code == exit_code, done.output
        return done.output


@pytest.fixture(scope="module")
def operator() -> Iterator[Operator]:
    started = Operator()
    yield started
    started.server.shutdown()
    started.server.server_close()


def test_status_shows_topologies_decision_and_placement(operator: Operator) -> None:
    text = operator.run("status")
    assert "words" in text
    assert "hold, " in text
    assert "managed, limits held" in text
    assert "count* x2" in text
    rows = [line.split() for line in text.splitlines() if line.startswith("10.77.0.")]
    assert len([row for row in rows if "empty," in row]) == 2


def test_status_as_json_is_what_the_api_says(operator: Operator) -> None:
    document: dict[str, Any] = json.loads(operator.run("status", "-o", "json"))
    (cluster,) = document["clusters"]
    assert cluster["name"] == "nimbus:6627"
    assert cluster["view"] == operator.page.get("view")
    assert cluster["plans"] == operator.page.get("plans")["plans"]


def test_explain_says_why_in_words_and_as_json(operator: Operator) -> None:
    text = " ".join(operator.run("explain", "words").split())
    document = json.loads(operator.run("explain", "words", "-o", "json"))
    assert document["headline"] in text
    for part in document["parts"]:
        assert part["title"] in text
        assert all(sentence in text for sentence in part["sentences"])


def test_a_topology_that_is_not_there_is_answered_with_those_that_are(operator: Operator) -> None:
    assert "there is no topology 'wrods': there are words" in operator.run("explain", "wrods", exit_code=1)


def test_a_cluster_that_is_not_there_likewise(operator: Operator) -> None:
    words = "--cluster is 'other': one of nimbus:6627 is right"
    assert words in operator.run("status", "--cluster", "other", exit_code=1)


def test_one_that_runs_on_two_clusters_must_be_told_apart(operator: Operator) -> None:
    operator.clusters["other:6627"] = page_scene(passes=1).watcher
    try:
        assert "say which with --cluster" in operator.run("explain", "words", exit_code=1)
        assert "words" in operator.run("explain", "words", "--cluster", "other:6627")
        assert operator.run("status").count("Placement") == 2
    finally:
        del operator.clusters["other:6627"]


def test_nobody_there_is_one_clear_message() -> None:
    done = RUNNER.invoke(app, ["status", "--url", "http://127.0.0.1:9"])
    assert done.exit_code == 1
    assert "no operator answers at http://127.0.0.1:9" in done.output
    assert "Traceback" not in done.output

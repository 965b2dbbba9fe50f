"""The JSON API: what it answers, what it refuses, and that its document is the truth."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from console_scene import PageScene, page_scene, unseen
from storm_operator.adapters.errors import AdapterError
from storm_operator.console.api import Api
from storm_operator.console.messages import Request
from storm_operator.console.openapi import openapi_document, openapi_text
from storm_operator.console.routes import ROUTES
from storm_operator.console.server import is_own_name, static_pages
from storm_operator.console.watcher import Watcher

COMMITTED = Path(__file__).parents[3] / "docs/reference/api/openapi.json"


@pytest.fixture(scope="module")
def page() -> PageScene:
    return page_scene(passes=8)


@pytest.mark.slow
def test_the_document_is_valid_openapi_and_the_committed_one_is_it() -> None:
    from openapi_spec_validator import validate

    document = openapi_document("1")
    validate(document)
    committed = json.loads(COMMITTED.read_text(encoding="utf-8"))
    assert COMMITTED.read_text(encoding="utf-8") == openapi_text(committed["info"]["version"])


def test_every_answer_is_what_the_document_says(page: PageScene) -> None:
    document = openapi_document("1")
    plan = page.played.loop.memory.records[0].plan.id
    asked = {name: route for name, route in ROUTES.items() if route.method == "GET"}
    assert len(asked) == 7
    for route in asked.values():
        path = route.path.replace("{plan}", plan).replace("{topology}", "words").strip("/")
        schema = {"$ref": f"#/components/schemas/{route.answer.__name__}", "components": document["components"]}
        jsonschema.validate(page.get(path), schema, cls=jsonschema.Draft202012Validator)


def test_what_has_not_changed_is_not_sent_again(page: PageScene) -> None:
    for path in ("clusters", "view", "history", "forecasts", "plans"):
        first = page.ask(path)
        again = page.ask(path, tag=first.tag)
        assert (again.status, again.body) == (304, b"")
    tag = page.ask("view").tag
    page.played.run()
    assert page.ask("view", tag=tag).status == 200


def test_a_replica_that_becomes_the_leader_of_nothing_says_so_to_who_has_asked_before() -> None:
    words = ["this replica waits to lead"]
    replica = Api(dict, trouble=lambda: words[-1])
    tag = replica.answer(Request("GET", "/api/v1/clusters")).tag
    words.append("")
    answer = replica.answer(Request("GET", "/api/v1/clusters", known_tag=tag))
    assert (answer.status, json.loads(answer.body)["trouble"]) == (200, "")


def test_a_cluster_in_place_of_another_is_listed_to_who_has_asked_before() -> None:
    clusters = {"first:6627": Watcher()}
    api = Api(lambda: clusters)
    tag = api.answer(Request("GET", "/api/v1/clusters")).tag
    clusters["other:6627"] = clusters.pop("first:6627")
    answer = api.answer(Request("GET", "/api/v1/clusters", known_tag=tag))
    assert [one["name"] for one in json.loads(answer.body)["clusters"]] == ["other:6627"]


def test_a_cluster_that_is_managed_again_is_not_taken_for_what_it_was() -> None:
    """Nobody named it for a while: its passes count from one again, and those who ask go by the answers of before."""
    clusters = {"nimbus:6627": page_scene(passes=2).watcher}
    api = Api(lambda: clusters)
    paths = {"view": {}, "history": {"since": "1"}, "forecasts": {"since": "1"}, "plans": {}}
    asked = {path: Request("GET", f"/api/v1/{path}", query) for path, query in paths.items()}
    before = {path: api.answer(request).tag for path, request in asked.items()}
    life = clusters["nimbus:6627"].seen.life
    clusters["nimbus:6627"] = page_scene(passes=2).watcher
    again = {path: api.answer(replace(asked[path], known_tag=tag)).status for path, tag in before.items()}
    assert again == dict.fromkeys(paths, 200)
    (entry,) = json.loads(api.answer(Request("GET", "/api/v1/clusters")).body)["clusters"]
    assert entry["life"] not in ("", life)


def test_a_cluster_tells_how_old_its_last_pass_is_which_is_news_once_a_minute() -> None:
    now = [0.0]
    page = page_scene(passes=2, stopwatch=lambda: now[0])
    now[0] = 100.0
    assert [one["pass_age_seconds"] for one in page.get("clusters")["clusters"]] == [100.0]
    tag = page.ask("clusters").tag
    now[0] = 119.0
    assert page.ask("clusters", tag=tag).status == 304
    now[0] = 120.0
    assert page.ask("clusters", tag=tag).status == 200
    page.played.run()
    assert page.ask("clusters", tag=tag).status == 200
    assert [one["pass_age_seconds"] for one in page.get("clusters")["clusters"]] == [0.0]
    unseen = page_scene(passes=0)
    assert [one["pass_age_seconds"] for one in unseen.get("clusters")["clusters"]] == [None]


def test_only_what_is_new_can_be_asked_for(page: PageScene) -> None:
    numbers = [one["number"] for one in page.get("history")["passes"]]
    since = numbers[-3]
    assert [one["number"] for one in page.get("history", since=str(since))["passes"]] == numbers[-2:]
    assert [one["number"] for one in page.get("forecasts", since=str(since))["passes"]] == numbers[-2:]


def test_the_past_is_as_it_was(page: PageScene) -> None:
    first = page.get("history")["passes"][0]
    shown = page.get("view", at=str(first["at_seconds"] + 0.1))
    assert shown["at_seconds"] == first["at_seconds"]
    assert len({one["supervisor"] for one in shown["workers"]}) == 3
    assert len({one["supervisor"] for one in page.get("view")["workers"]}) == 1


@pytest.mark.parametrize(
    ("path", "query", "status", "words"),
    [
        ("nothing", {}, 404, "openapi.json"),
        ("view", {"at": "noon"}, 400, "at is 'noon': a number of 0 or more is right"),
        ("view", {"at": "nan"}, 400, "at is 'nan'"),
        ("history", {"since": "-1"}, 400, "since is '-1'"),
        ("view", {"cluster": "other"}, 404, "cluster is 'other': one of nimbus:6627 is right"),
        ("plans/p-9/scene", {}, 404, "there is no plan 'p-9'"),
        ("topologies/none/explanation", {}, 404, "there is no topology 'none': there are words"),
    ],
)
def test_a_wrong_question_is_told_what_would_be_right(
    page: PageScene, path: str, query: dict[str, str], status: int, words: str
) -> None:
    answer = page.ask(path, **query)
    assert answer.status == status
    assert words in json.loads(answer.body)["message"]


def test_a_path_that_only_begins_as_the_api_does_is_none_of_it(page: PageScene) -> None:
    answer = page.api.answer(Request("GET", "/api/v1clusters"))
    assert (answer.status, page.api.answer(Request("GET", "/api/v1/clusters")).status) == (404, 200)


def test_before_the_first_pass_there_is_nothing_to_see() -> None:
    page = page_scene(passes=0)
    assert page.get("clusters")["clusters"][0]["passes"] == 0
    assert page.ask("view").status == 503
    assert page.get("history")["passes"] == []
    nobody = Api(dict, trouble=lambda: "this replica waits to lead")
    answer = nobody.answer(Request("GET", "/api/v1/view"))
    assert (answer.status, json.loads(answer.body)["message"]) == (503, "this replica waits to lead")


def test_of_a_cluster_that_was_never_seen_nobody_knows_which_topologies_there_are() -> None:
    page = page_scene(passes=0)
    answer = page.ask("topologies/words/explanation")
    assert (answer.status, b"no pass has been made yet" in answer.body) == (503, True)
    unseen(page.played, AdapterError("no Nimbus answers"))
    answer = page.ask("topologies/words/explanation")
    assert answer.status == 503
    assert json.loads(answer.body)["message"] == "the cluster has not been seen yet: no Nimbus answers"
    page.played.run()
    assert page.ask("topologies/words/explanation").status == 200
    assert page.ask("topologies/none/explanation").status == 404


def test_names_in_paths_may_hold_anything() -> None:
    page = page_scene(passes=1)
    assert "there is no topology 'a/b c'" in json.loads(page.ask("topologies/a%2Fb%20c/explanation").body)["message"]


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost:8088", True),
        ("127.0.0.1:8088", True),
        ("[::1]:8088", True),
        ("10.1.2.3", True),
        ("evil.example:8088", False),
        ("localhost.evil.example", False),
        ("", False),
        ("[::1", False),
    ],
)
def test_only_names_that_no_stranger_can_point_here_are_its_own(host: str, own: bool) -> None:
    assert is_own_name(host) is own


def test_the_page_is_in_the_package_and_asks_nobody_else() -> None:
    pages = static_pages()
    assert {"/", "/index.html", "/js/main.js", "/css/base.css"} <= set(pages)
    for path, found in pages.items():
        text = found.body.decode()
        outside = [line for line in text.splitlines() if "http://" in line or "https://" in line]
        assert all("www.w3.org" in line for line in outside), path


def test_all_modules_are_asked_for_at_once() -> None:
    """One that is found only when another has been read costs the first view a round trip."""
    pages = static_pages()
    index = pages["/"].body.decode()
    modules = [path for path in pages if path.startswith("/js/")]
    assert len(modules) > 10
    assert [path for path in modules if f'href="{path[1:]}"' not in index and f'src="{path[1:]}"' not in index] == []


def schema_names(document: Any) -> set[str]:
    return set(document["components"]["schemas"])


def test_every_schema_and_route_has_words() -> None:
    document = openapi_document("1")
    assert all(schema["description"] for schema in document["components"]["schemas"].values())
    assert {"PassView", "PlanView", "Explanation"} <= schema_names(document)

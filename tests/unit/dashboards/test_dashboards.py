"""What holds for every dashboard: Grafana can read it, people can too, and it asks for nothing that nobody exports."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.all_of_them import Document, documents
from dashboards.frame import Uid
from dashboards.preview.choices import LABEL_VALUES
from rule_files import metrics_in
from storm_operator.local.paths import repository_root
from storm_operator.metric_contract import BY_NAME, Kind
from storm_pipeline.metrics import METRICS as PIPELINE_METRICS

ROOT = repository_root() or Path(__file__).parents[3]
SCHEMA = ROOT / "monitoring/dashboards/grafana_schema/dashboard.schema.json"
ALL = documents()
PANELS = [(uid, panel) for uid, one in ALL.items() for panel in one["panels"] if panel["type"] != "row"]
PANEL_NAMES = [f"{uid}: {panel['title']}" for uid, panel in PANELS]
GRID_WIDTH = 24

each_dashboard = pytest.mark.parametrize("uid", ALL)
each_panel = pytest.mark.parametrize(("uid", "panel"), PANELS, ids=PANEL_NAMES)


def recorded_names() -> set[str]:
    """What recording rules make, and Prometheus' own series of alerts."""
    names = {"ALERTS"}
    for file in (ROOT / "monitoring/rules").glob("*.yml"):
        for group in yaml.safe_load(file.read_text())["groups"]:
            names |= {rule["record"] for rule in group["rules"] if "record" in rule}
    return names


def exported_names() -> set[str]:
    names = {metric.name for metric in PIPELINE_METRICS} | recorded_names()
    for metric in BY_NAME.values():
        suffixes = ("_bucket", "_sum", "_count") if metric.kind is Kind.HISTOGRAM else ("",)
        names |= {metric.name + suffix for suffix in suffixes}
    return names


def expressions(document: Document) -> list[str]:
    of_panels = [target["expr"] for panel in document["panels"] for target in panel.get("targets", ())]
    asked = [one["query"]["query"] for one in document["templating"]["list"] if one["type"] == "query"]
    of_variables = [found["selector"] for found in map(LABEL_VALUES.fullmatch, asked) if found]
    assert len(of_variables) == len(asked)
    return [*of_panels, *of_variables, *(one["expr"] for one in document["annotations"]["list"])]


def test_there_are_the_seven_that_were_asked_for() -> None:
    assert [Uid(uid) for uid in ALL] == list(Uid)


@each_dashboard
def test_grafanas_own_schema_accepts_it(uid: str) -> None:
    jsonschema.Draft7Validator(json.loads(SCHEMA.read_text())).validate(ALL[uid])


def test_grafanas_own_schema_refuses_what_is_no_dashboard() -> None:
    validator = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text()))
    good = ALL[Uid.OVERVIEW]
    bad: list[Document] = [
        {**good, "refresh": 30},
        {**good, "panels": [{**good["panels"][1], "type": "statt"}]},
        {**good, "panels": [{**good["panels"][1], "options": {"graphMode": "curve"}}]},
        {**good, "templates": []},
    ]
    assert [validator.is_valid(one) for one in bad] == [False] * len(bad)


@each_dashboard
def test_the_sdk_reads_what_it_wrote(uid: str) -> None:
    assert Dashboard.from_json(ALL[uid]).uid == uid


@each_dashboard
def test_it_asks_only_for_what_somebody_exports(uid: str) -> None:
    asked = {name for expression in expressions(ALL[uid]) for name in metrics_in(expression)}
    assert asked
    assert asked - exported_names() == set()


@each_dashboard
def test_its_panels_stand_beside_each_other(uid: str) -> None:
    places = [panel["gridPos"] for panel in ALL[uid]["panels"]]
    assert all(place["x"] + place["w"] <= GRID_WIDTH for place in places)
    overlapping = [
        (a, b)
        for a, b in combinations(places, 2)
        if a["x"] < b["x"] + b["w"]
        and b["x"] < a["x"] + a["w"]
        and a["y"] < b["y"] + b["h"]
        and b["y"] < a["y"] + a["h"]
    ]
    assert overlapping == []


@each_dashboard
def test_it_has_the_variables_the_links_and_the_plans(uid: str) -> None:
    one = ALL[uid]
    names = [variable["name"] for variable in one["templating"]["list"]]
    assert names == ["datasource", "cluster", "namespace", "topology", "topology_id"]
    (link,) = one["links"]
    assert (link["type"], link["includeVars"], link["keepTime"]) == ("dashboards", True, True)
    assert set(link["tags"]) <= set(one["tags"])
    assert one["annotations"]["list"][0]["useValueForTime"] is True


@each_dashboard
def test_its_links_lead_somewhere(uid: str) -> None:
    linked = set(re.findall(r"/d/([\w-]+)", json.dumps(ALL[uid])))
    assert linked <= set(ALL)


def test_a_click_on_a_topology_keeps_its_cluster_and_the_namespaces() -> None:
    """Two Nimbuses may each have a topology of that name."""
    linking = [panel for _, panel in PANELS if f"/d/{Uid.TOPOLOGY}?" in json.dumps(panel)]
    assert len(linking) == 4
    for panel in linking:
        (url,) = re.findall(rf"/d/{Uid.TOPOLOGY}\?[^\"]*", json.dumps(panel))
        asked = dict(part.partition("=")[::2] for part in url.partition("?")[2].split("&"))
        assert asked["var-topology"] == "${__data.fields.Topology}"
        assert asked["var-cluster"] == "${__data.fields.Cluster}"
        assert "${namespace:queryparam}" in asked
        (shown,) = [one["options"] for one in panel["transformations"] if one["id"] == "organize"]
        assert {("topology", "Topology"), ("nimbus", "Cluster")} <= set(shown["renameByName"].items())
        assert all("nimbus" in target["expr"].partition(")")[0] for target in panel["targets"]), panel["title"]


@each_panel
def test_a_panel_says_what_it_shows(uid: str, panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert len(panel["description"]) > 20
    assert panel["description"].endswith(".")
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert panel["targets"]


@each_panel
def test_a_panels_values_have_units(uid: str, panel: dict[str, Any]) -> None:
    if panel["type"] != "table":
        assert panel["fieldConfig"]["defaults"]["unit"]


def test_titles_within_a_dashboard_differ() -> None:
    for uid, one in ALL.items():
        titles = [panel["title"] for panel in one["panels"] if panel["type"] != "row"]
        assert len(titles) == len(set(titles)), uid


def test_ids_of_panels_are_their_own() -> None:
    for one in ALL.values():
        ids = [panel["id"] for panel in one["panels"]]
        assert len(ids) == len(set(ids))

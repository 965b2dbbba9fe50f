"""The list of dashboards, and what Grafana reads of each."""

from __future__ import annotations

import json
from typing import Any

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards.decisions import decisions
from dashboards.enforcement import enforcement
from dashboards.operator_health import operator_health
from dashboards.overview import overview
from dashboards.pipeline import pipeline
from dashboards.topology import topology
from dashboards.traffic import traffic

Document = dict[str, Any]
"""A dashboard as Grafana reads it."""

DASHBOARDS = (overview, topology, traffic, decisions, enforcement, operator_health, pipeline)

PLAN_MARK = {
    "useValueForTime": True,
    "titleFormat": "Plan {{plan}}",
    "textFormat": "{{topology}}, by {{policy}}: {{reason}}",
    "tagKeys": "topology,policy",
}
"""How Grafana's Prometheus plugin words an annotation. The SDK has no words for it."""
SETTINGS_OF_INTERVALS = ("auto", "auto_count", "auto_min")
"""What the SDK says of every variable, but Grafana's schema only knows of one kind, which is not used here."""


def documents() -> dict[str, Document]:
    """Each dashboard by its uid, in the order in which people would look at them."""
    made = [document(define()) for define in DASHBOARDS]
    return {one["uid"]: one for one in made}


def document(dashboard: build.Dashboard) -> Document:
    made: Document = json.loads(json.dumps(dashboard.build(), cls=JSONEncoder))
    for variable in made["templating"]["list"]:
        for setting in SETTINGS_OF_INTERVALS:
            variable.pop(setting, None)
    for annotation in made["annotations"]["list"]:
        annotation.update(PLAN_MARK)
    for number, panel in enumerate(made["panels"], start=1):
        panel["id"] = number
    return made


def as_text(document: Document) -> str:
    """The file's text: stable, so that a difference shows what has changed."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"

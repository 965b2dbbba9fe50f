"""The paths of the JSON API: what each takes and answers. The OpenAPI document is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote

from storm_operator.console.api_documents import (
    ApprovalForm,
    Clusters,
    ForecastDocument,
    HistoryDocument,
    Plans,
    Verdicts,
)
from storm_operator.console.explain import Explanation
from storm_operator.console.messages import BadRequest, Request
from storm_operator.console.plan_view import PlanScene
from storm_operator.console.views import PassView

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One of the query, or `in_path`."""

    name: str
    kind: str
    meaning: str
    in_path: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """One path: `{name}` in it is a parameter. `answer` is the dataclass whose document is answered."""

    method: str
    path: str
    summary: str
    answer: type
    parameters: tuple[Parameter, ...] = ()
    form: type | None = None


CLUSTER = Parameter("cluster", "string", "Name of the Storm cluster, as /clusters has it; the first where absent.")
SINCE = Parameter("since", "integer", "Only passes with a higher number: what is new to the caller.")
AT = (
    "The last pass up to this time (seconds since 1970), as it was decided then. Where absent, the newest, with the "
    "plans that are being applied first among its decisions."
)
PLAN = Parameter("plan", "string", "The plan's id.", in_path=True)

ROUTES: Mapping[str, Route] = {
    "clusters": Route("GET", "/clusters", "The clusters, and how far each has come: ask this often.", Clusters),
    "view": Route(
        "GET",
        "/view",
        "One pass: supervisors, workers, executors, topologies, flows, decisions.",
        PassView,
        (CLUSTER, Parameter("at", "number", AT)),
    ),
    "history": Route("GET", "/history", "The time line: a point for each pass.", HistoryDocument, (CLUSTER, SINCE)),
    "forecasts": Route(
        "GET",
        "/forecasts",
        "Forecast against actual by component: an entry for each pass.",
        ForecastDocument,
        (CLUSTER, SINCE),
    ),
    "plans": Route("GET", "/plans", "The last plans, newest first, as far as each has come.", Plans, (CLUSTER,)),
    "scene": Route(
        "GET",
        "/plans/{plan}/scene",
        "The cluster as it was when the plan was made, and as the plan has it.",
        PlanScene,
        (PLAN, CLUSTER),
    ),
    "verdict": Route(
        "POST",
        "/plans/{plan}/verdict",
        "Approve or reject a plan that waits; only where the operator was started with it.",
        Verdicts,
        (PLAN, CLUSTER),
        ApprovalForm,
    ),
    "explanation": Route(
        "GET",
        "/topologies/{topology}/explanation",
        "Why the last decision about a topology was what it was, in sentences.",
        Explanation,
        (Parameter("topology", "string", "The topology's id or name.", in_path=True), CLUSTER),
    ),
}


def matched(request: Request) -> tuple[str, Mapping[str, str]]:
    """The route and the values of the parameters in its path."""
    given = request.path.removeprefix(f"{PREFIX}/").strip("/").split("/")
    others = []
    for name, route in ROUTES.items():
        wanted = route.path.strip("/").split("/")
        if len(wanted) != len(given):
            continue
        values = {w[1:-1]: unquote(g) for w, g in zip(wanted, given, strict=True) if w.startswith("{")}
        if all(w.startswith("{") or w == g for w, g in zip(wanted, given, strict=True)):
            if route.method == request.method:
                return name, values
            others.append(route.method)
    if others:
        raise BadRequest(f"{request.path} answers {others[0]} only", HTTPStatus.METHOD_NOT_ALLOWED)
    raise BadRequest(f"there is nothing at {request.path}: /openapi.json says what there is", HTTPStatus.NOT_FOUND)

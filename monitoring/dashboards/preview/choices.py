"""What `$cluster`, `$__rate_interval` and the like stand for: what Grafana would put in their place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dashboards.all_of_them import Document
from dashboards.preview.prometheus import Prometheus, QueryError

LABEL_VALUES = re.compile(r"label_values\((?P<selector>.+),\s*(?P<label>\w+)\)")


@dataclass(frozen=True, slots=True)
class Looked:
    """The time that is looked at, and how often the Prometheus scrapes."""

    start_seconds: float
    end_seconds: float
    scrape_seconds: float = 15.0

    @property
    def seconds(self) -> float:
        return self.end_seconds - self.start_seconds

    def step_seconds(self, panel: Document) -> float:
        """Time between the points of a panel's series: as many as it has pixels, or as it asks for."""
        points = panel.get("maxDataPoints") or 40 * panel["gridPos"]["w"]
        least = _seconds(panel["interval"]) if "interval" in panel else self.scrape_seconds
        return float(max(round(self.seconds / points), least))

    def built_in(self, step_seconds: float) -> dict[str, str]:
        rate_seconds = max(step_seconds + self.scrape_seconds, 4 * self.scrape_seconds)
        return {
            "__rate_interval": f"{rate_seconds:.0f}s",
            "__interval": f"{step_seconds:.0f}s",
            "__interval_ms": f"{1000 * step_seconds:.0f}",
            "__range": f"{self.seconds:.0f}s",
        }


@dataclass(frozen=True, slots=True)
class Chosen:
    """The variables of a dashboard as they are when it is opened, and what went wrong with any of them."""

    values: Mapping[str, str]
    options: Mapping[str, tuple[str, ...]]
    errors: Mapping[str, str]


def choose(dashboard: Document, prometheus: Prometheus, looked: Looked) -> Chosen:
    """Ask for the values of each variable, in order: later ones depend on earlier ones."""
    values: dict[str, str] = {}
    options: dict[str, tuple[str, ...]] = {}
    errors: dict[str, str] = {}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] != "query":
            continue
        name = variable["name"]
        asked = LABEL_VALUES.fullmatch(variable["query"]["query"])
        if asked is None:
            raise ValueError(f"variable {name}: {variable['query']['query']!r} is not label_values(SELECTOR, LABEL)")
        selector = substituted(asked["selector"], values)
        try:
            options[name] = prometheus.label_values(selector, asked["label"], looked.start_seconds, looked.end_seconds)
        except QueryError as error:
            options[name], errors[name] = (), str(error)
        values[name] = _chosen_of(variable, options[name])
    return Chosen(values, options, errors)


def _chosen_of(variable: Document, options: tuple[str, ...]) -> str:
    if not variable.get("includeAll"):
        return options[0] if options else ""
    every = variable.get("allValue")
    return every or "(" + "|".join(re.escape(option).replace("\\", "\\\\") for option in options) + ")"


def substituted(text: str, values: Mapping[str, str]) -> str:
    """`text` with `$name` and `${name}` replaced; a name without a value is left, and Prometheus will say so."""
    return re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda found: values.get(found[1] or found[2], found[0]), text)


def _seconds(interval: str) -> float:
    return float(interval[:-1]) * {"s": 1, "m": 60, "h": 3600}[interval[-1]]

"""The few questions to a Prometheus server that Grafana asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import requests

TIMEOUT_SECONDS = 60.0


class QueryError(Exception):
    """Prometheus refused a query, or did not answer; the message is its own."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer: (unix seconds, value) in order; an instant query gives one point."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A server by its URL. All questions raise `QueryError`."""

    url: str

    def now(self, expression: str, at_seconds: float) -> tuple[Series, ...]:
        data = self._ask("query", {"query": expression, "time": at_seconds})
        if data["resultType"] == "scalar":
            at, value = data["result"]
            return (Series({}, ((float(at), float(value)),)),)
        return tuple(Series(one["metric"], (_point(one["value"]),)) for one in data["result"])

    def over_time(
        self, expression: str, start_seconds: float, end_seconds: float, step_seconds: float
    ) -> tuple[Series, ...]:
        question: dict[str, str | float] = {
            "query": expression,
            "start": start_seconds,
            "end": end_seconds,
            "step": step_seconds,
        }
        data = self._ask("query_range", question)
        return tuple(Series(one["metric"], tuple(_point(p) for p in one["values"])) for one in data["result"])

    def label_values(self, selector: str, label: str, start_seconds: float, end_seconds: float) -> tuple[str, ...]:
        found = self._ask("series", {"match[]": selector, "start": start_seconds, "end": end_seconds})
        return tuple(sorted({one[label] for one in found if label in one}))

    def _ask(self, path: str, question: Mapping[str, str | float]) -> Any:
        try:
            answer = requests.post(f"{self.url}/api/v1/{path}", data=question, timeout=TIMEOUT_SECONDS)
            said = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise QueryError(f"{self.url} does not answer as a Prometheus does: {error}") from error
        if said.get("status") != "success":
            raise QueryError(said.get("error", answer.text))
        return said["data"]


def _point(pair: tuple[float, str]) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])

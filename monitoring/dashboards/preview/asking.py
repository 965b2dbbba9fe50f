"""Every expression of a dashboard, asked as Grafana asks it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dashboards.all_of_them import Document
from dashboards.preview.choices import Chosen, Looked, choose, substituted
from dashboards.preview.prometheus import Prometheus, QueryError, Series


@dataclass(frozen=True, slots=True)
class Answer:
    """What one query of a panel got; `error` is empty when all went well."""

    ref_id: str
    legend: str
    expression: str
    series: tuple[Series, ...]
    error: str
    seconds: float


@dataclass(frozen=True, slots=True)
class AnsweredPanel:
    """A panel as Grafana reads it, with the answers to its queries in order."""

    panel: Document
    answers: tuple[Answer, ...]

    @property
    def title(self) -> str:
        return str(self.panel["title"])

    @property
    def seconds(self) -> float:
        """Grafana asks a panel's queries one after the other, or at once: never longer than this."""
        return sum(answer.seconds for answer in self.answers)


@dataclass(frozen=True, slots=True)
class AnsweredDashboard:
    document: Document
    chosen: Chosen
    panels: tuple[AnsweredPanel, ...]
    plans: Answer
    looked: Looked


def ask(dashboard: Document, prometheus: Prometheus, looked: Looked) -> AnsweredDashboard:
    """All panels and the annotations of `dashboard`, with its variables as they are when it is opened."""
    chosen = choose(dashboard, prometheus, looked)
    panels = tuple(
        AnsweredPanel(panel, tuple(answers_of(panel, prometheus, looked, chosen))) for panel in dashboard["panels"]
    )
    annotation = dashboard["annotations"]["list"][0]
    step_seconds = max(looked.seconds / 500, looked.scrape_seconds)
    marks = substituted(annotation["expr"], {**chosen.values, **looked.built_in(step_seconds)})
    plans = _timed(
        "Plans",
        annotation["titleFormat"],
        marks,
        lambda: prometheus.over_time(marks, looked.start_seconds, looked.end_seconds, step_seconds),
    )
    return AnsweredDashboard(dashboard, chosen, panels, plans, looked)


def answers_of(panel: Document, prometheus: Prometheus, looked: Looked, chosen: Chosen) -> Iterator[Answer]:
    """The answer to each query of a panel, asked as it is needed."""
    step_seconds = looked.step_seconds(panel)
    values = {**chosen.values, **looked.built_in(step_seconds)}
    for target in panel.get("targets", ()):
        expression = substituted(target["expr"], values)
        legend = target.get("legendFormat", "")
        if target.get("instant"):
            question = _now(prometheus, expression, looked)
        else:
            question = _over_time(prometheus, expression, looked, step_seconds)
        yield _timed(target["refId"], legend, expression, question)


Question = Callable[[], tuple[Series, ...]]


def _now(prometheus: Prometheus, expression: str, looked: Looked) -> Question:
    return lambda: prometheus.now(expression, looked.end_seconds)


def _over_time(prometheus: Prometheus, expression: str, looked: Looked, step_seconds: float) -> Question:
    # Grafana aligns the range to the step, so that a refresh does not shift every point.
    start, end = (seconds // step_seconds * step_seconds for seconds in (looked.start_seconds, looked.end_seconds))
    return lambda: prometheus.over_time(expression, start, end, step_seconds)


def _timed(ref_id: str, legend: str, expression: str, question: Question) -> Answer:
    started = time.perf_counter()
    series: tuple[Series, ...] = ()
    error = ""
    try:
        series = question()
    except QueryError as raised:
        error = str(raised)
    return Answer(ref_id, legend, expression, series, error, time.perf_counter() - started)

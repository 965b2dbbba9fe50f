"""Panels that are HTML rather than curves: numbers, bars and tables."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plotly.colors import sample_colorscale

from dashboards.all_of_them import Document
from dashboards.preview.asking import AnsweredPanel
from dashboards.preview.prometheus import Series
from dashboards.preview.tables import Cell, Table, table_of
from dashboards.preview.wording import named, worded

COLOURS = {"text": "#1d2129", "green": "#2f8a3c", "yellow": "#b58900", "orange": "#d4620b", "red": "#c4162a"}
HEAT = [[0.0, "#fff7d6"], [0.5, "#f5a35c"], [1.0, "#b5122b"]]


def number_box(answered: AnsweredPanel) -> str:
    config = answered.panel["fieldConfig"]["defaults"]
    series = answered.answers[0].series[0]
    value = next((value for _, value in reversed(series.points) if value == value), None)
    colour = COLOURS[threshold_colour(value, config)]
    text = html.escape(worded(value, config.get("unit", ""), config.get("decimals")))
    return f'<p class="figure" style="color:{colour}">{text}</p>{_spark(series, colour)}'


def _spark(series: Series, colour: str) -> str:
    """The course behind a number, as Grafana draws it."""
    points = [(at, value) for at, value in series.points if value == value]
    if len(points) < 2:
        return ""
    start, end = points[0][0], points[-1][0]
    low, high = min(value for _, value in points), max(value for _, value in points)
    reach = high - low or 1.0
    path = " ".join(f"{(at - start) / (end - start) * 100:.2f},{28 - 26 * (v - low) / reach:.2f}" for at, v in points)
    return (
        '<svg class="spark" viewBox="0 0 100 30" preserveAspectRatio="none">'
        f'<polygon points="0,30 {path} 100,30" fill="{colour}" opacity="0.15"/>'
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="0.6"/></svg>'
    )


def threshold_colour(value: float | None, config: Mapping[str, Any]) -> str:
    """The colour of the highest threshold that `value` reaches."""
    colour = "text"
    for step in config.get("thresholds", {}).get("steps", ()):
        if value is not None and (step["value"] is None or value >= step["value"]):
            colour = step["color"]
    return colour


def bar_box(answered: AnsweredPanel) -> str:
    config = answered.panel["fieldConfig"]["defaults"]
    values = [(name, series.points[-1][1]) for name, series in named_series(answered)]
    longest = config.get("max") or max(value for _, value in values) or 1.0
    rows = []
    for name, value in sorted(values):
        share = min(max(value / longest, 0), 1) * 100
        colour = COLOURS[threshold_colour(value, config)]
        text = html.escape(worded(value, config.get("unit", ""), config.get("decimals")))
        rows.append(
            f'<tr><td>{html.escape(name)}</td><td class="track"><div style="width:{share:.1f}%;background:{colour}">'
            f"</div></td><td>{text}</td></tr>"
        )
    return f'<table class="bars">{"".join(rows)}</table>'


def table_box(answered: AnsweredPanel) -> str:
    table = table_of(answered)
    defaults = answered.panel["fieldConfig"]["defaults"]
    if answered.panel["transformations"][0]["id"] == "groupingToMatrix":
        return _html_table(table, lambda title, value: _heat_cell(value, table, defaults))
    settings = {
        override["matcher"]["options"]: {one["id"]: one.get("value") for one in override["properties"]}
        for override in answered.panel["fieldConfig"]["overrides"]
    }
    return _html_table(table, lambda title, value: _plain_cell(value, settings.get(title, {})))


def _html_table(table: Table, cell: Callable[[str, Cell], str]) -> str:
    head = "".join(f'<th class="{_kind_of(title, table)}">{html.escape(title)}</th>' for title in table.columns)
    body = "".join(
        "<tr>" + "".join(cell(title, row.get(title)) for title in table.columns) + "</tr>" for row in table.rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _kind_of(title: str, table: Table) -> str:
    return "number" if any(isinstance(row.get(title), float) for row in table.rows) else "text"


def _plain_cell(value: Cell, settings: Mapping[str, Any]) -> str:
    if isinstance(value, float):
        colour = COLOURS[threshold_colour(value, settings)] if "thresholds" in settings else "inherit"
        text = worded(value, settings.get("unit", ""), settings.get("decimals"))
        return f'<td class="number" style="color:{colour}">{html.escape(text)}</td>'
    text = html.escape(value or "")
    return f'<td class="link">{text}</td>' if "links" in settings else f"<td>{text}</td>"


def _heat_cell(value: Cell, table: Table, config: Document) -> str:
    if isinstance(value, str):
        return f"<th>{html.escape(value)}</th>"
    if value is None:
        return "<td></td>"
    most = max(cell for row in table.rows for cell in row.values() if isinstance(cell, float)) or 1.0
    colour = sample_colorscale(HEAT, min(max(value / most, 0), 1))[0]
    text = html.escape(worded(value, config.get("unit", ""), config.get("decimals")))
    return (
        f'<td class="number" style="background:{colour};color:{"white" if value / most > 0.6 else "black"}">{text}</td>'
    )


def named_series(answered: AnsweredPanel) -> Sequence[tuple[str, Series]]:
    return [(named(answer.legend, series.labels), series) for answer in answered.answers for series in answer.series]

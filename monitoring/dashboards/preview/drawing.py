"""A panel's answers as a picture: a plotly figure, or HTML for numbers and tables."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from dashboards.all_of_them import Document
from dashboards.preview.asking import AnsweredDashboard, AnsweredPanel
from dashboards.preview.prometheus import Series
from dashboards.preview.tables import Cell, Table, table_of
from dashboards.preview.wording import named, unit_suffix, worded

COLOURS = {"green": "#2f8a3c", "yellow": "#b58900", "orange": "#d4620b", "red": "#c4162a"}
HEAT = [[0.0, "#fff7d6"], [0.5, "#f5a35c"], [1.0, "#b5122b"]]
NOTHING = '<p class="nothing">no data</p>'
ROW_PIXELS = 38
Picture: TypeAlias = "go.Figure | str"


def drawn(answered: AnsweredPanel, dashboard: AnsweredDashboard) -> Picture:
    """The picture of any panel."""
    if not any(answer.series for answer in answered.answers):
        return NOTHING
    return _PAINTERS[answered.panel["type"]](answered, dashboard)


def _figure(answered: AnsweredPanel, dashboard: AnsweredDashboard) -> Picture:
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
    colour = "green"
    for step in config.get("thresholds", {}).get("steps", ()):
        if value is not None and (step["value"] is None or value >= step["value"]):
            colour = step["color"]
    return colour


def _lines(answered: AnsweredPanel, dashboard: AnsweredDashboard) -> Picture:
    config = answered.panel["fieldConfig"]["defaults"]
    custom = config["custom"]
    stacked = custom.get("stacking", {}).get("mode") == "normal"
    bars = custom.get("drawStyle") == "bars"
    dashed = _dashed(answered.panel)
    scale, suffix, tick = _axis(config.get("unit", ""), answered)
    figure = _blank(answered.panel)
    for number, (name, series) in enumerate(_named_series(answered)):
        x, y = _times(series), [value * scale for _, value in series.points]
        if bars:
            figure.add_bar(x=x, y=y, name=name)
            continue
        style = {"width": 1.5, "dash": "dash" if dashed(name) else "solid"}
        area = {"stackgroup": "all"} if stacked else {}
        mode = "lines" if len(x) > 1 else "markers"
        figure.add_scatter(x=x, y=y, name=name, mode=mode, line=style, legendrank=number, **area)
    figure.update_layout(barmode="stack", bargap=0)
    figure.update_yaxes(
        ticksuffix=suffix, tickformat=tick, rangemode="normal" if config.get("min") is None else "tozero"
    )
    if "max" in config:
        figure.update_yaxes(range=[0, config["max"] * scale * 1.05])
    _mark_plans(figure, dashboard)
    return figure


def _dashed(panel: Document) -> Callable[[str], bool]:
    patterns = [
        re.compile(override["matcher"]["options"])
        for override in panel["fieldConfig"]["overrides"]
        if override["matcher"]["id"] == "byRegexp"
    ]
    return lambda name: any(pattern.fullmatch(name) for pattern in patterns)


def _axis(unit: str, answered: AnsweredPanel) -> tuple[float, str, str]:
    """What to multiply values by, what to put behind ticks, and their format."""
    if unit == "percentunit":
        return 1.0, "", ".0%" if _most(answered) > 0.05 else ".2%"
    if unit == "s":
        return (1000.0, " ms", "") if _most(answered) < 1 else (1.0, " s", "")
    if unit == "bytes":
        return 1.0, "B", "~s"
    return 1.0, " req/s" if unit == "reqps" else unit_suffix(unit), ""


def _most(answered: AnsweredPanel) -> float:
    series = [one for answer in answered.answers for one in answer.series]
    return max((abs(value) for one in series for _, value in one.points if math.isfinite(value)), default=0.0)


def _mark_plans(figure: go.Figure, dashboard: AnsweredDashboard) -> None:
    looked = dashboard.looked
    for series in dashboard.plans.series:
        at = series.points[-1][1] / 1000
        if looked.start_seconds <= at <= looked.end_seconds:
            figure.add_vline(x=_time(at), line_width=1, line_dash="dot", line_color="#7d3fbf")


def _history(answered: AnsweredPanel, dashboard: AnsweredDashboard) -> Picture:
    config = answered.panel["fieldConfig"]["defaults"]
    named_series = _named_series(answered)
    times = sorted({at for _, series in named_series for at, _ in series.points})
    values = []
    for _, series in named_series:
        at = dict(series.points)
        values.append([at.get(moment) for moment in times])
    figure = _blank(answered.panel)
    bar = {"tickformat": ".0%" if config.get("unit") == "percentunit" else "", "thickness": 10, "outlinewidth": 0}
    figure.add_heatmap(
        x=[_time(at) for at in times],
        y=[name for name, _ in named_series],
        z=values,
        colorscale=HEAT,
        zmin=0,
        zmax=_most(answered) or 1,
        ygap=2,
        colorbar=bar,
    )
    figure.update_yaxes(autorange="reversed", tickfont={"size": 9}, dtick=1)
    return figure


def _buckets(answered: AnsweredPanel, dashboard: AnsweredDashboard) -> Picture:
    """Cumulative buckets, told apart from their neighbours as Grafana does."""
    named_series = sorted(_named_series(answered), key=lambda one: float(one[0]))
    times = sorted({at for _, series in named_series for at, _ in series.points})
    below = [0.0] * len(times)
    names: list[str] = []
    counts: list[list[float | None]] = []
    for name, series in named_series:
        at = dict(series.points)
        cumulative = [at.get(moment, 0.0) for moment in times]
        row = [max(now - before, 0.0) for now, before in zip(cumulative, below, strict=True)]
        below = cumulative
        names.append("∞" if name == "+Inf" else worded(float(name), "s"))
        counts.append([value if value > 0 else None for value in row])
    used = [place for place, row in enumerate(counts) if any(row)]
    first, last = (min(used), max(used) + 1) if used else (0, len(names))
    figure = _blank(answered.panel)
    figure.add_heatmap(
        x=[_time(at) for at in times],
        y=names[first:last],
        z=counts[first:last],
        colorscale="Oranges",
        showscale=False,
        xgap=1,
        ygap=1,
    )
    figure.update_yaxes(type="category", tickfont={"size": 9})
    return figure


def _bars(answered: AnsweredPanel, dashboard: AnsweredDashboard) -> Picture:
    config = answered.panel["fieldConfig"]["defaults"]
    values = [(name, series.points[-1][1]) for name, series in _named_series(answered)]
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


def _table(answered: AnsweredPanel, dashboard: AnsweredDashboard) -> Picture:
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


def _named_series(answered: AnsweredPanel) -> Sequence[tuple[str, Series]]:
    return [(named(answer.legend, series.labels), series) for answer in answered.answers for series in answer.series]


def _times(series: Series) -> list[datetime]:
    return [_time(at) for at, _ in series.points]


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _blank(panel: Document) -> go.Figure:
    place = panel["gridPos"]
    return go.Figure(
        layout={
            "template": "plotly_white",
            "height": place["h"] * ROW_PIXELS - 46,
            "margin": {"l": 8, "r": 8, "t": 6, "b": 6},
            "font": {"size": 11, "family": "DejaVu Sans, sans-serif"},
            "legend": {"orientation": "h", "yanchor": "top", "y": -0.16, "x": 0},
            "showlegend": True,
            "xaxis": {"automargin": True, "tickformat": "%H:%M", "ticklabelstandoff": 4},
            "yaxis": {"automargin": True, "ticklabelstandoff": 6},
            "colorway": [
                "#4e79a7",
                "#f28e2b",
                "#59a14f",
                "#e15759",
                "#76b7b2",
                "#b07aa1",
                "#9c755f",
                "#edc948",
                "#ff9da7",
            ],
        }
    )


_PAINTERS: Mapping[str, Callable[[AnsweredPanel, AnsweredDashboard], Picture]] = {
    "stat": _figure,
    "timeseries": _lines,
    "status-history": _history,
    "heatmap": _buckets,
    "bargauge": _bars,
    "table": _table,
}

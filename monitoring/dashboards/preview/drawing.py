"""A panel's answers as a picture: a plotly figure, or HTML for numbers and tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import plotly.graph_objects as go

from dashboards.all_of_them import Document
from dashboards.preview.asking import AnsweredDashboard, AnsweredPanel
from dashboards.preview.boxes import HEAT, bar_box, named_series, number_box, table_box
from dashboards.preview.choices import Looked
from dashboards.preview.wording import unit_suffix, worded

NOTHING = '<p class="nothing">no data</p>'
ROW_PIXELS = 38
Point = tuple[float, float]
Picture: TypeAlias = "go.Figure | str"


def drawn(answered: AnsweredPanel, dashboard: AnsweredDashboard) -> Picture:
    """The picture of any panel."""
    if not any(answer.series for answer in answered.answers):
        return NOTHING
    return _PAINTERS[answered.panel["type"]](answered, dashboard)


def _lines(answered: AnsweredPanel, dashboard: AnsweredDashboard) -> Picture:
    config = answered.panel["fieldConfig"]["defaults"]
    custom = config["custom"]
    stacked = custom.get("stacking", {}).get("mode") == "normal"
    bars = custom.get("drawStyle") == "bars"
    dashed = _dashed(answered.panel)
    scale, suffix, tick = _axis(config.get("unit", ""), answered)
    step_seconds = dashboard.looked.step_seconds(answered.panel)
    figure = _blank(answered.panel, dashboard.looked)
    for number, (name, series) in enumerate(named_series(answered)):
        points = series.points if stacked else with_gaps(series.points, step_seconds)
        x, y = [_time(at) for at, _ in points], [value * scale for _, value in points]
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


def with_gaps(points: Sequence[Point], step_seconds: float) -> list[Point]:
    """`points` with a NaN, which breaks the line, wherever one is missing: Grafana does not join what is apart."""
    joined: list[Point] = []
    for at, value in points:
        if joined and at - joined[-1][0] > 1.5 * step_seconds:
            joined.append((joined[-1][0] + step_seconds, math.nan))
        joined.append((at, value))
    return joined


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
    named_ones = named_series(answered)
    times = _moments(answered, dashboard)
    values = []
    for _, series in named_ones:
        at = dict(series.points)
        values.append([at.get(moment) for moment in times])
    figure = _blank(answered.panel, dashboard.looked)
    bar = {"tickformat": ".0%" if config.get("unit") == "percentunit" else "", "thickness": 10, "outlinewidth": 0}
    figure.add_heatmap(
        x=_edges(times, answered, dashboard),
        y=[name for name, _ in named_ones],
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
    named_ones = sorted(named_series(answered), key=lambda one: float(one[0]))
    times = _moments(answered, dashboard)
    below = [0.0] * len(times)
    names: list[str] = []
    counts: list[list[float | None]] = []
    for name, series in named_ones:
        at = dict(series.points)
        cumulative = [at.get(moment, 0.0) for moment in times]
        row = [max(now - before, 0.0) for now, before in zip(cumulative, below, strict=True)]
        below = cumulative
        names.append("∞" if name == "+Inf" else worded(float(name), "s"))
        counts.append([value if value > 0 else None for value in row])
    used = [place for place, row in enumerate(counts) if any(row)]
    first, last = (min(used), max(used) + 1) if used else (0, len(names))
    figure = _blank(answered.panel, dashboard.looked)
    figure.add_heatmap(
        x=_edges(times, answered, dashboard),
        y=names[first:last],
        z=counts[first:last],
        colorscale="Oranges",
        showscale=False,
        xgap=1,
        ygap=1,
    )
    figure.update_yaxes(type="category", tickfont={"size": 9})
    return figure


def _moments(answered: AnsweredPanel, dashboard: AnsweredDashboard) -> list[float]:
    """Those of all answers, and any between them: where nothing was measured a column stays empty."""
    step_seconds = dashboard.looked.step_seconds(answered.panel)
    seen = [at for answer in answered.answers for series in answer.series for at, _ in series.points]
    first, columns = min(seen), round((max(seen) - min(seen)) / step_seconds) + 1
    return [first + place * step_seconds for place in range(columns)]


def _edges(times: Sequence[float], answered: AnsweredPanel, dashboard: AnsweredDashboard) -> list[datetime]:
    """Where columns begin and end, so that one alone has a width too: each shows the time up to its moment."""
    return [_time(times[0] - dashboard.looked.step_seconds(answered.panel)), *map(_time, times)]


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _blank(panel: Document, looked: Looked) -> go.Figure:
    place = panel["gridPos"]
    times = [_time(looked.start_seconds), _time(looked.end_seconds)]
    return go.Figure(
        layout={
            "template": "plotly_white",
            "height": place["h"] * ROW_PIXELS - 46,
            "margin": {"l": 8, "r": 8, "t": 6, "b": 6},
            "font": {"size": 11, "family": "DejaVu Sans, sans-serif"},
            "legend": {"orientation": "h", "yanchor": "top", "y": -0.16, "x": 0},
            "showlegend": True,
            "xaxis": {"automargin": True, "range": times, "tickformat": "%H:%M", "ticklabelstandoff": 4},
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
    "stat": lambda answered, _: number_box(answered),
    "timeseries": _lines,
    "status-history": _history,
    "heatmap": _buckets,
    "bargauge": lambda answered, _: bar_box(answered),
    "table": lambda answered, _: table_box(answered),
}

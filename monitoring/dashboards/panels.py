"""The kinds of picture that dashboards are made of: from title, description, unit and queries to the SDK's builders.

All look the same wherever they stand: that is decided here, in look.py and table_panels.py, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from grafana_foundation_sdk.builders import bargauge, common, heatmap, prometheus, stat, statushistory, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common as styles
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import heatmap as heatmap_model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.look import DATASOURCE, GREEN, Look, Thresholds, dressed

LAST_VALUE = ("lastNotNull",)
P = TypeVar("P", stat.Panel, timeseries.Panel, statushistory.Panel, bargauge.Panel)


@dataclass(frozen=True, slots=True)
class Query:
    """One expression. `legend` names its series, `{{label}}` standing for a label's value."""

    expression: str
    legend: str = ""


def figure(
    title: str,
    description: str,
    unit: str,
    expression: str,
    *,
    thresholds: Thresholds = (),
    base: str = GREEN,
    width: int = 4,
    decimals: int | None = None,
    without: str = "",
) -> stat.Panel:
    """One number of now, with its course behind it; its colour says whether it is well.

    `expression` makes a single series without labels.
    `without`: the words that stand there when the query finds nothing.
    """
    panel = (
        stat.Panel()
        .graph_mode(styles.BigValueGraphMode.AREA)
        .color_mode(styles.BigValueColorMode.VALUE)
        .justify_mode(styles.BigValueJustifyMode.CENTER)
        .reduce_options(common.ReduceDataOptions().calcs(list(LAST_VALUE)))
        .max_data_points(60)
    )
    if without:
        panel = panel.no_value(without)
    look = Look(unit, width, 4, thresholds, base, decimals)
    return dressed(_asking(panel, (Query(_while_known(expression)),)), title, description, look)


def _while_known(expression: str) -> str:
    """The same, but nothing at all where nothing is known at the end of the time looked at.

    Grafana goes back to the last value in sight, however old it is: what has ended meanwhile would look alive and well.
    """
    return f"({expression}) and on () last_over_time(({expression})[1s:1s] @ end()) > -Inf"


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    height: int = 8,
    thresholds: Thresholds = (),
    base: str = GREEN,
    stacked: bool = False,
    maximum: float | None = None,
    dashed: str = "",
    signed: bool = False,
    points: int = 0,
) -> timeseries.Panel:
    """Series over time. `dashed`: a pattern of series that are limits or forecasts, drawn dashed.

    `points`: at most so many of each series, where Prometheus would have to work hard for one at every pixel.
    """
    panel = (
        timeseries.Panel()
        .line_width(1.5)
        .fill_opacity(35 if stacked else 4)
        .show_points(styles.VisibilityMode.NEVER)
        .span_nulls(False)
        .legend(_legend_below())
        .tooltip(common.VizTooltipOptions().mode(styles.TooltipDisplayMode.MULTI).sort(styles.SortOrder.DESCENDING))
        .color_scheme(build.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
    )
    if not signed:
        panel = panel.min(0)
    if points:
        panel = panel.max_data_points(points)
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(styles.StackingMode.NORMAL))
    if thresholds:
        panel = panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(styles.GraphThresholdsStyleMode.DASHED))
    if dashed:
        dash = {"fill": "dash", "dash": [8, 6]}
        panel = panel.override_by_regexp(dashed, [model.DynamicConfigValue(id_val="custom.lineStyle", value=dash)])
    look = Look(unit, width, height, thresholds, base, maximum=maximum)
    return dressed(_asking(panel, queries), title, description, look)


def counts(
    title: str, description: str, *queries: Query, width: int = 12, height: int = 8, unit: str = "short"
) -> timeseries.Panel:
    """How often something happened in each interval, as stacked bars. Ask for `counted`."""
    panel = (
        timeseries.Panel()
        .draw_style(styles.GraphDrawStyle.BARS)
        .fill_opacity(80)
        .line_width(0)
        .stacking(common.StackingConfig().mode(styles.StackingMode.NORMAL))
        .legend(_legend_below())
        .tooltip(common.VizTooltipOptions().mode(styles.TooltipDisplayMode.MULTI).hide_zeros(True))
        .color_scheme(build.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
        .min(0)
        .interval("2m")  # three scrapes and more, so that the windows of `counted` share one scrape, not several
        .max_data_points(100)
    )
    return dressed(_asking(panel, queries), title, description, Look(unit, width, height))


def counted(by: str, counter: str) -> str:
    """How often `counter` counted in each of a panel's intervals, by the label `by`; empty: all together.

    A window as long as the interval would miss what was counted between the last scrape of one window and the first of
    the next. Grafana's window for rates is a scrape longer; the rate is made a count of the interval again. Rounded,
    since Prometheus guesses at the edges of windows: one event is one.
    """
    summed = f"sum by ({by})" if by else "sum"
    return f"round({summed} (rate({counter}[$__rate_interval])) * $__interval_ms / 1000)"


def rows_over_time(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *,
    width: int = 24,
    height: int = 9,
    maximum: float | None = None,
) -> statushistory.Panel:
    """A heat map: a row for each series, the darker the more. At most as many rows as can be read: use `heaviest`."""
    panel = (
        statushistory.Panel()
        .show_value(styles.VisibilityMode.NEVER)
        .row_height(0.9)
        .col_width(1)
        .line_width(0)
        .fill_opacity(90)
        .legend(
            common.VizLegendOptions()
            .show_legend(False)
            .display_mode(styles.LegendDisplayMode.LIST)
            .placement(styles.LegendPlacement.BOTTOM)
            .calcs([])
        )
        .color_scheme(build.FieldColor().mode(model.FieldColorModeId.CONTINUOUS_YL_RD))
        .min(0)
        .max_data_points(60)
    )
    return dressed(_asking(panel, (query,)), title, description, Look(unit, width, height, maximum=maximum))


def buckets(
    title: str, description: str, unit: str, expression: str, *, width: int = 12, height: int = 8
) -> heatmap.Panel:
    """A histogram over time: the darker, the more fell into the bucket. `expression` is a sum by `le`."""
    panel = (
        heatmap.Panel()
        .calculate(False)
        .color(heatmap.HeatmapColorOptions().mode(heatmap_model.HeatmapColorMode.SCHEME).scheme("Oranges").steps(64))
        .y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(styles.AxisPlacement.LEFT))
        .cell_gap(1)
        .hide_legend()
        .max_data_points(60)
    )
    query = prometheus.Dataquery().expr(expression).format(PromQueryFormat.HEATMAP).legend_format("{{le}}")
    panel = panel.with_target(query.range().ref_id("A").datasource(DATASOURCE))
    return dressed(panel, title, description, Look("short", width, height))


def bars(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    height: int = 8,
    thresholds: Thresholds = (),
    maximum: float | None = None,
) -> bargauge.Panel:
    """A bar for each series, of now."""
    panel = (
        bargauge.Panel()
        .display_mode(styles.BarGaugeDisplayMode.BASIC)
        .orientation(styles.VizOrientation.HORIZONTAL)
        .reduce_options(common.ReduceDataOptions().calcs(list(LAST_VALUE)))
        .show_unfilled(True)
        .min(0)
    )
    look = Look(unit, width, height, thresholds, maximum=maximum)
    return dressed(_asking(panel, queries, instant=True), title, description, look)


def _asking(panel: P, queries: Sequence[Query], instant: bool = False) -> P:
    for place, query in enumerate(queries):
        target = prometheus.Dataquery().expr(query.expression).ref_id(chr(ord("A") + place)).datasource(DATASOURCE)
        target = target.legend_format(query.legend or "__auto").format(PromQueryFormat.TIME_SERIES)
        panel = panel.with_target(target.instant() if instant else target.range())
    return panel


def _legend_below() -> common.VizLegendOptions:
    return (
        common.VizLegendOptions()
        .display_mode(styles.LegendDisplayMode.LIST)
        .placement(styles.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs([])
    )

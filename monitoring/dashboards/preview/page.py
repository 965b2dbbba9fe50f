"""All dashboards on one page, each panel where Grafana would put it. Needs no internet: plotly is inside."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from dashboards.preview.asking import AnsweredDashboard, AnsweredPanel
from dashboards.preview.drawing import ROW_PIXELS, drawn

STYLE = f"""
body {{ font: 13px "DejaVu Sans", sans-serif; margin: 0; background: #eef0f3; color: #1d2129; }}
nav {{ padding: 10px 16px; background: white; border-bottom: 1px solid #d5d9e0; }}
nav a {{ margin-right: 14px; }}
section {{ width: 1480px; padding: 12px 16px; background: #eef0f3; }}
h1 {{ font-size: 20px; margin: 0; }}
.about {{ margin: 4px 0 6px; color: #555e6d; }}
.chosen span {{ display: inline-block; margin: 0 8px 8px 0; padding: 3px 8px; background: white; }}
.grid {{ display: grid; grid-template-columns: repeat(24, 1fr); column-gap: 6px; }}
.grid {{ grid-auto-rows: {ROW_PIXELS}px; }}
.row {{ font-weight: bold; padding: 12px 0 0; }}
.panel {{ background: white; border: 1px solid #d5d9e0; margin: 3px 0; position: relative; }}
.panel {{ overflow: hidden; min-width: 0; }}
.panel h2 {{ font-size: 12px; margin: 0; padding: 6px 8px 4px; white-space: nowrap; overflow: hidden; }}
.figure {{ font-size: 24px; text-align: center; margin: 14px 0 0; position: relative; white-space: nowrap; }}
.spark {{ position: absolute; bottom: 0; left: 0; width: 100%; height: 45%; }}
.nothing, .error {{ text-align: center; color: #8a93a3; margin-top: 20px; }}
.error {{ color: #c4162a; }}
.scroll {{ overflow: hidden; }}
table {{ border-collapse: collapse; width: 100%; font-size: 12px; }}
td, th {{ padding: 4px 8px; border-bottom: 1px solid #e7eaef; text-align: left; white-space: nowrap; }}
th {{ font-weight: bold; color: #555e6d; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
td.link {{ color: #1a5fb4; }}
.bars td {{ border: 0; }} .track {{ width: 60%; }} .track div {{ height: 16px; min-width: 2px; }}
"""


def page(dashboards: Sequence[AnsweredDashboard]) -> str:
    """The whole page as HTML."""
    links = "".join(f'<a href="#{one.document["uid"]}">{_text(one.document["title"])}</a>' for one in dashboards)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>storm-operator: dashboards</title>'
        f"<style>{STYLE}</style><script>{get_plotlyjs()}</script></head><body><nav>{links}</nav>"
        + "".join(_section(one) for one in dashboards)
        + "</body></html>"
    )


def _section(dashboard: AnsweredDashboard) -> str:
    document = dashboard.document
    chosen = "".join(
        f"<span>{_text(variable['label'])}: {_text(_choice(dashboard, variable['name']))}</span>"
        for variable in document["templating"]["list"]
        if variable.get("label") and variable["type"] == "query"
    )
    panels = "".join(_panel(panel, dashboard) for panel in dashboard.panels)
    return (
        f'<section id="{document["uid"]}"><h1>{_text(document["title"])}</h1>'
        f'<p class="about">{_text(document["description"])}</p><p class="chosen">{chosen}</p>'
        f'<div class="grid">{panels}</div></section>'
    )


def _choice(dashboard: AnsweredDashboard, name: str) -> str:
    variable = next(one for one in dashboard.document["templating"]["list"] if one["name"] == name)
    return "All" if variable.get("includeAll") else dashboard.chosen.values[name]


def _panel(answered: AnsweredPanel, dashboard: AnsweredDashboard) -> str:
    place = answered.panel["gridPos"]
    at = f"grid-column:{place['x'] + 1}/span {place['w']};grid-row:{place['y'] + 1}/span {place['h']}"
    if answered.panel["type"] == "row":
        return f'<div class="row" style="{at}">{_text(answered.title)}</div>'
    about, title = _text(answered.panel["description"]), _text(answered.title)
    return f'<div class="panel" style="{at}" title="{about}"><h2>{title}</h2>{_body(answered, dashboard)}</div>'


def _body(answered: AnsweredPanel, dashboard: AnsweredDashboard) -> str:
    errors = [answer.error for answer in answered.answers if answer.error]
    if errors:
        return f'<p class="error">{_text(errors[0])}</p>'
    picture = drawn(answered, dashboard)
    if isinstance(picture, go.Figure):
        made: str = picture.to_html(full_html=False, include_plotlyjs=False, config={"displayModeBar": False})
        return made
    return picture


def _text(text: str) -> str:
    return html.escape(text)

"""Sections as one HTML page that needs nothing but itself, and as CSV files beside it."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment
from plotly.offline import get_plotlyjs

from storm_operator.history.files import Files
from storm_pipeline.reporting.section import Section
from storm_pipeline.reporting.texts import cells, heads

PAGE_NAME = "report.html"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ title }}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; font-size: 13px } td, th { padding: .2rem .6rem; border-bottom: 1px solid #ddd }
th { text-align: left } td { font-variant-numeric: tabular-nums } nav a { margin-right: 1rem }
.wide { overflow-x: auto }
</style>
<script>{{ plotly }}</script></head><body>
<h1>{{ title }}</h1><p>{{ words }}</p>
<nav>{% for section in sections %}<a href="#{{ section.name }}">{{ section.title }}</a>{% endfor %}</nav>
{% for section in sections %}<section id="{{ section.name }}"><h2>{{ section.title }}</h2>
{% if section.total %}<p>{{ section.words }}</p>
{% for plot in section.plots %}<div>{{ plot }}</div>{% endfor %}
<details{{ ' open' if not section.plots else '' }}>
<summary>{{ section.rows|length }} of {{ section.total }} rows</summary>
<div class="wide"><table><thead><tr>{% for name in section.columns %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>{% for row in section.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}</tbody>
</table></div></details>{% else %}<p>{{ section.nothing }}</p>{% endif %}</section>
{% endfor %}
</body></html>
"""


def page(cluster: str, found: Sequence[Section], words: str) -> str:
    """The whole page as text; what comes from tables is escaped."""
    from markupsafe import Markup

    template = Environment(autoescape=True).from_string(PAGE)
    shown = [
        {
            "name": section.name,
            "title": section.title,
            "words": section.words,
            "nothing": section.nothing,
            "plots": [Markup(plot.to_html(full_html=False, include_plotlyjs=False)) for plot in section.plots],  # noqa: S704 - plotly's own
            "columns": heads(section.frame),
            "rows": cells(section.frame),
            "total": len(section.frame),
        }
        for section in found
    ]
    script = Markup(get_plotlyjs())  # noqa: S704 - likewise
    return template.render(title=f"What was learned of {cluster}", words=words, sections=shown, plotly=script)


def write_report(cluster: str, found: Sequence[Section], words: str, folder: str) -> str:
    """The page as report.html in `folder`, each section's table beside it as CSV; the page's path.

    `folder` may be one of an object store (s3://bucket/prefix). OSError or ValueError when it cannot be written to.
    """
    files = Files.at(folder)
    texts = {f"{section.name}.csv": section.frame.to_csv(index=False) for section in found}
    for name, text in {**texts, PAGE_NAME: page(cluster, found, words)}.items():
        _write(files, name, text.encode())
    return f"{folder.rstrip('/')}/{PAGE_NAME}"


def _write(files: Files, name: str, data: bytes) -> None:
    files.write_whole(name, lambda sink: sink.write(data))

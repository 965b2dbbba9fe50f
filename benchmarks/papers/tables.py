"""The experiments as tables: ours and the published figures side by side, and each contestant against the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bars import figure

Document = Mapping[str, Any]
"""A case as it is in results.json: `paper`, `case`, `headline`, `published`, `results` by contestant and figure."""


def below_first_percent(document: Document, contestant: str) -> float | None:
    """By how many percent a contestant's median of the headline lies below the first one's; None: one is unknown."""
    results, headline = document["results"], document["headline"]
    first = next(iter(results.values())).get(headline)
    own = results[contestant].get(headline)
    if first is None or own is None or first["median"] <= 0.0:
        return None
    return 100.0 * float(1.0 - own["median"] / first["median"])


def table_of(document: Document) -> str:
    """Markdown: a row for each contestant, a column for each figure; published values in the last column."""
    results = document["results"]
    columns = list(dict.fromkeys(figure for figures in results.values() for figure in figures))
    compared = f"{_words(document['headline'])} below {next(iter(results))}"
    lines = [
        f"**{document['case']}**",
        "",
        f"| scheduler | {' | '.join(map(_words, columns))} | {compared} | published |",
        f"|---|{'---:|' * (len(columns) + 1)}---|",
    ]
    for name, figures in results.items():
        cells = [_cell(figures.get(column)) for column in columns]
        percent = below_first_percent(document, name)
        cells.append(_below(percent))
        lines.append(f"| {name} | {' | '.join(cells)} | {_published(document['published'].get(name, {}))} |")
    return "\n".join(lines)


def page_of(documents: Sequence[Document]) -> str:
    """All tables, by paper."""
    parts: list[str] = []
    for document in documents:
        heading = f"### {document['paper']}"
        if heading not in parts:
            parts.append(heading)
        parts.append(table_of(document))
    return "\n\n".join(parts) + "\n"


def _below(percent: float | None) -> str:
    if percent is None:
        return "-"
    # Beyond twice the first one's value a percentage is harder to read than a factor.
    return f"{percent:.1f}%" if percent >= -100.0 else f"{figure(1.0 - percent / 100.0)} times"


def _cell(spread: Mapping[str, float] | None) -> str:
    if spread is None:
        return "-"
    median, lowest, highest = (figure(spread[one]) for one in ("median", "lowest", "highest"))
    return median if lowest == highest else f"{median} ({lowest}–{highest})"


def _published(figures: Mapping[str, float]) -> str:
    return "; ".join(f"{_words(figure)} {value:,g}" for figure, value in figures.items()) or "-"


def _words(figure: str) -> str:
    return figure.replace("_percent", " (%)").replace("_ms", " (ms)").replace("_", " ")

"""An experiment's headline as one SVG: a panel for each case, a bar for each scheduler, its range over the seeds."""

from __future__ import annotations

import html
from collections.abc import Sequence

from papers.tables import Document, number

WIDTH, NAME_WIDTH, ROW, TITLE, PAD = 720.0, 170.0, 22.0, 34.0, 12.0
RANGE = ("lowest", "median", "highest")
OURS, OTHERS, INK = "#1f6feb", "#8b949e", "#24292f"


def picture_of(documents: Sequence[Document]) -> str:
    """Bars are medians of each case's headline on a scale of its own; the line on a bar is its range."""
    parts: list[str] = []
    top = 0.0
    for document in documents:
        parts += _panel(document, top)
        top += TITLE + ROW * len(document["results"]) + PAD
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {top:g}" font-family="sans-serif" '
        f'font-size="12" fill="{INK}"><rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def _panel(document: Document, top: float) -> list[str]:
    headline = document["headline"]
    title = f"{document['case']}: {headline.replace('_', ' ')}"
    parts = [f'<text x="{PAD:g}" y="{top + 22:.1f}" font-weight="bold">{html.escape(title)}</text>']
    known = {name: row[headline] for name, row in document["results"].items() if headline in row}
    longest = max((spread["highest"] for spread in known.values()), default=1.0) or 1.0
    room = WIDTH - NAME_WIDTH - 8 * PAD
    for at, name in enumerate(document["results"]):
        y = top + TITLE + at * ROW
        parts.append(f'<text x="{NAME_WIDTH - 8:g}" y="{y + 13:.1f}" text-anchor="end">{html.escape(name)}</text>')
        if name not in known:
            continue
        lowest, median, highest = (NAME_WIDTH + room * known[name][one] / longest for one in RANGE)
        colour = OURS if name == "adaptive" else OTHERS
        parts += [
            f'<rect x="{NAME_WIDTH:g}" y="{y + 2:.1f}" width="{median - NAME_WIDTH:.1f}" height="15" fill="{colour}"/>',
            f'<line x1="{lowest:.1f}" y1="{y + 9.5:.1f}" x2="{highest:.1f}" y2="{y + 9.5:.1f}" stroke="{INK}"/>',
            f'<text x="{highest + 6:.1f}" y="{y + 13:.1f}">{number(known[name]["median"])}</text>',
        ]
    return parts

"""Results as bars, one SVG: a panel for each case, a bar for each contestant, its range, and what was published."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH, NAME_WIDTH, ROW, TITLE, PAD = 760.0, 190.0, 22.0, 34.0, 12.0
ROOM = WIDTH - NAME_WIDTH - 9 * PAD
"""For the longest bar; its figure stands behind it."""
MOST_ON_A_LINEAR_SCALE = 50.0
"""Times the smallest figure: of what lies further apart, the small ones would not be seen."""
OURS, OTHERS, INK, PUBLISHED = "#1f6feb", "#8b949e", "#24292f", "#bf8700"


@dataclass(frozen=True, slots=True)
class Bar:
    """The median and its range; a median of None is not known. `published` is on the same scale."""

    name: str
    median: float | None
    lowest: float = 0.0
    highest: float = 0.0
    published: float | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """Bars that share a scale."""

    title: str
    bars: tuple[Bar, ...]


def bars_of(panels: Sequence[Panel]) -> str:
    """The SVG. Each panel has a scale of its own; the line on a bar is its range, a frame what was published."""
    parts: list[str] = []
    top = 0.0
    for panel in panels:
        parts += _panel(panel, top)
        top += TITLE + ROW * len(panel.bars) + PAD
    if any(bar.published is not None for panel in panels for bar in panel.bars):
        parts.append(f'<text x="{PAD:g}" y="{top + 14:.1f}" fill="{PUBLISHED}">framed: as published</text>')
        top += ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {top:g}" font-family="sans-serif" '
        f'font-size="12" fill="{INK}"><rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def figure(value: float) -> str:
    """Three or so significant digits, enough to tell contestants apart."""
    if value == 0.0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"


def _panel(panel: Panel, top: float) -> list[str]:
    figures = [one for bar in panel.bars for one in (bar.median, bar.highest, bar.published) if one]
    is_wide = bool(figures) and max(figures) > MOST_ON_A_LINEAR_SCALE * min(figures)
    name = html.escape(panel.title) + (" (logarithmic)" if is_wide else "")
    parts = [f'<text x="{PAD:g}" y="{top + 22:.1f}" font-weight="bold">{name}</text>']
    pixels = _logarithmic(figures) if is_wide else _linear(figures)
    for at, bar in enumerate(panel.bars):
        parts += _bar(bar, top + TITLE + at * ROW, pixels)
    return parts


def _linear(figures: Sequence[float]) -> Callable[[float], float]:
    longest = max(figures, default=1.0)
    return lambda value: ROOM * value / longest


def _logarithmic(figures: Sequence[float]) -> Callable[[float], float]:
    """From half of the smallest figure on; 0 and whatever is smaller has no length."""
    origin = min(figures) / 2.0
    whole = math.log(max(figures) / origin)
    return lambda value: ROOM * math.log(max(value, origin) / origin) / whole


def _bar(bar: Bar, y: float, pixels: Callable[[float], float]) -> list[str]:
    parts = [f'<text x="{NAME_WIDTH - 8:g}" y="{y + 13:.1f}" text-anchor="end">{html.escape(bar.name)}</text>']
    end = NAME_WIDTH
    if bar.median is not None:
        lowest, median, highest = (NAME_WIDTH + pixels(one) for one in (bar.lowest, bar.median, bar.highest))
        colour = OURS if bar.name.startswith("adaptive") else OTHERS
        end = highest
        parts += [
            f'<rect x="{NAME_WIDTH:g}" y="{y + 2:.1f}" width="{median - NAME_WIDTH:.1f}" height="15" fill="{colour}"/>',
            f'<line x1="{lowest:.1f}" y1="{y + 9.5:.1f}" x2="{highest:.1f}" y2="{y + 9.5:.1f}" stroke="{INK}"/>',
        ]
    if bar.published is not None:
        width = pixels(bar.published)
        end = max(end, NAME_WIDTH + width)
        parts.append(
            f'<rect x="{NAME_WIDTH:g}" y="{y + 1:.1f}" width="{width:.1f}" height="17" fill="none" '
            f'stroke="{PUBLISHED}" stroke-width="2"/>'
        )
    known = [] if bar.median is None else [figure(bar.median)]
    told = [] if bar.published is None else [f'<tspan fill="{PUBLISHED}">{figure(bar.published)}</tspan>']
    parts.append(f'<text x="{end + 6:.1f}" y="{y + 13:.1f}">{" ".join(known + told)}</text>')
    return parts

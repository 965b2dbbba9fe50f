"""Seconds and shares over the number of executors, as one SVG with two panels."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plan.contest import Report, overfills


@dataclass(frozen=True, slots=True)
class Point:
    """Hollow: the partition overloads supervisors, and is no plan."""

    x: float
    y: float
    is_hollow: bool


LINES = {
    "adaptive": ("share", "plan_seconds", "#1f6feb"),
    "adaptive, replan": ("", "replan_seconds", "#79b8ff"),
    "KaHIP eco": ("kahip_eco_share", "kahip_eco_seconds", "#d1242f"),
    "KaHIP, all": ("kahip_eco_all_share", "", "#ff8182"),
    "METIS": ("metis_share", "metis_seconds", "#bf8700"),
    "ResourceAware": ("ras_share", "ras_seconds", "#1a7f37"),
    "Even": ("even_share", "", "#6e7781"),
}
"""What is drawn: share, seconds, colour."""
WIDTH, HEIGHT, MARGIN, LEGEND = 460.0, 320.0, 62.0, 30.0


@dataclass(frozen=True, slots=True)
class Axis:
    """Where a value lies between `low` and `high`, 0..1, and the values that get a mark."""

    low: float
    high: float
    marks: tuple[float, ...]
    is_logarithmic: bool

    def at(self, value: float) -> float:
        scale: Callable[[float], float] = math.log10 if self.is_logarithmic else float
        return (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))


def decades(values: Sequence[float]) -> Axis:
    """A logarithmic axis of whole decades around `values`, one at least."""
    lowest = math.floor(math.log10(min(values)))
    highest = max(lowest + 1, math.ceil(math.log10(max(values))))
    marks = tuple(10.0**power for power in range(lowest, highest + 1))
    return Axis(marks[0], marks[-1], marks, True)


def picture_of(reports: Sequence[Report]) -> str:
    """The SVG; figures that are None are left out of their line."""
    executors = decades([float(report["executors"]) for report in reports])
    seconds = {name: _points(reports, line[1]) for name, line in LINES.items()}
    shares = {name: _points(reports, line[0]) for name, line in LINES.items()}
    measured = [point.y for points in seconds.values() for point in points] or [1.0]
    whole = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), False)
    panels = _panel(0.0, "seconds to plan", seconds, executors, decades(measured))
    panels += _panel(WIDTH, "tuples between supervisors (hollow: overloads some)", shares, executors, whole)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH:g} {HEIGHT + LEGEND:g}" '
        f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#ffffff"/>'
        f"{''.join(panels)}{''.join(_legend())}</svg>\n"
    )


def _points(reports: Sequence[Report], figure: str) -> list[Point]:
    return [
        Point(float(report["executors"]), float(report[figure]), overfills(report, figure))
        for report in reports
        if figure and report.get(figure) is not None
    ]


def _panel(left: float, title: str, lines: dict[str, list[Point]], x: Axis, y: Axis) -> list[str]:
    def across(value: float) -> float:
        return left + MARGIN + x.at(value) * (WIDTH - 1.5 * MARGIN)

    def down(value: float) -> float:
        return HEIGHT - MARGIN - y.at(value) * (HEIGHT - 1.7 * MARGIN)

    parts = [_text(left + WIDTH / 2, MARGIN / 2, title, "middle", "bold")]
    for mark in x.marks:
        parts.append(_rule(across(mark), down(y.low), across(mark), down(y.high)))
        parts.append(_text(across(mark), HEIGHT - MARGIN + 18, f"{mark:,.0f}", "middle"))
    for mark in y.marks:
        parts.append(_rule(across(x.low), down(mark), across(x.high), down(mark)))
        parts.append(_text(left + MARGIN - 6, down(mark) + 4, f"{mark:g}", "end"))
    parts.append(_text(left + WIDTH / 2, HEIGHT - MARGIN + 36, "executors", "middle"))
    for name, points in lines.items():
        colour = LINES[name][2]
        path = " ".join(f"{across(point.x):.1f},{down(point.y):.1f}" for point in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [_dot(across(point.x), down(point.y), colour, point.is_hollow) for point in points]
    return parts


def _legend() -> list[str]:
    step = 2 * WIDTH / len(LINES)
    return [
        f'<circle cx="{20 + at * step:.1f}" cy="{HEIGHT:g}" r="4" fill="{colour}"/>'
        + _text(30 + at * step, HEIGHT + 4, name, "start")
        for at, (name, (_, _, colour)) in enumerate(LINES.items())
    ]


def _dot(x: float, y: float, colour: str, is_hollow: bool) -> str:
    fill = "#ffffff" if is_hollow else colour
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dde3ea"/>'


def _text(x: float, y: float, words: str, anchor: str, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="#1c2733">'
        f"{html.escape(words)}</text>"
    )

"""The demo's live view in a terminal: phase, figures with their recent course, plans, and the last decision."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from storm_operator.core.plan_record import PlanRecord
from storm_operator.core.wording import figure
from storm_operator.demo.recorder import Point, Recorder

BARS = "▁▂▃▄▅▆▇█"
COURSE_POINTS = 60
SECONDS_BETWEEN_LINES = 30.0
PICTURE_COLUMNS = 150
HALF_A_PLAN_ID = len("p-20260101-")
"""A narrow console has it in two lines: the second tells plans of one hour apart."""
COLUMNS_FOR_REASONS = 110
"""In a narrower table reasons would be columns of single words: they stand below it."""
FONT_FACES = re.compile(r"@font-face\s*{[^}]*}")


def render(recorder: Recorder, now_seconds: float, status: str) -> RenderableType:
    """The whole view, from what was recorded so far."""
    phase = recorder.phases[-1] if recorder.phases else None
    title = f"storm-operator demo: {phase.title}  {_elapsed(recorder, now_seconds)}" if phase else "storm-operator demo"
    last = recorder.points[-1] if recorder.points else None
    parts: list[RenderableType] = [Text(status, style="dim")]
    if last is not None:
        parts += [_figures(recorder.points), _supervisors(last), Text(last.decision, style="cyan")]
    if recorder.plans:
        parts.append(Plans(tuple(recorder.plans.values())))
    return Panel(Group(*parts), title=title, border_style="green")


@dataclass(slots=True)
class PlainLines:
    """For a log: a line for each status; every half minute, and where a status ends, one with the figures of now."""

    say: Callable[[str], None]
    status: str = ""
    last_at_seconds: float = 0.0
    """Of its last word."""

    def tell(self, recorder: Recorder, now_seconds: float, status: str) -> None:
        """Called at any time; says something only where it is new or due."""
        if status == self.status and now_seconds - self.last_at_seconds < SECONDS_BETWEEN_LINES:
            return
        if status != self.status:
            if recorder.points and recorder.points[-1].at_seconds > self.last_at_seconds > 0.0:
                self._tell_of_now(recorder, now_seconds, " at its end,")
            self.say(status)
        else:
            self._tell_of_now(recorder, now_seconds)
        self.status, self.last_at_seconds = status, now_seconds

    def _tell_of_now(self, recorder: Recorder, now_seconds: float, when: str = "") -> None:
        """The last period's figures, of which each phase has many."""
        figures = _in_a_line(recorder.points[-1]) if recorder.points else "nothing is measured yet"
        self.say(f"  {recorder.phases[-1].title},{when} {_elapsed(recorder, now_seconds)}: {figures}")


def _elapsed(recorder: Recorder, now_seconds: float) -> str:
    """Since the phase began."""
    return f"{now_seconds - recorder.phases[-1].started_at_seconds:.0f} s"


def _in_a_line(point: Point) -> str:
    parts = [f"{name} {figure(latency)} ms (median)" for name, latency in sorted(point.latency_p50_ms.items())]
    parts.append(f"{figure(point.inter_supervisor_per_second)} tuples/s between supervisors")
    return ", ".join([*parts, f"supervisors in use: {point.supervisors_used}"])


def _figures(points: Sequence[Point]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("figure", "now"):
        table.add_column(heading, no_wrap=True)
    table.add_column("course")
    recent = points[-COURSE_POINTS:]
    for name in sorted({name for point in recent for name in point.latency_p50_ms}):
        _row(table, f"{name}: median latency, ms", [point.latency_p50_ms.get(name) for point in recent])
        _row(table, f"{name}: throughput, tuples/s", [point.throughput_per_second.get(name) for point in recent])
    _row(table, "between supervisors, tuples/s", [point.inter_supervisor_per_second for point in recent])
    _row(table, "supervisors in use", [float(point.supervisors_used) for point in recent])
    return table


def _row(table: Table, name: str, values: Sequence[float | None]) -> None:
    now = values[-1] if values else None
    table.add_row(name, figure(now), Course(values))


@dataclass(frozen=True, slots=True)
class Course:
    """A sparkline of the newest values, as many as there is room for: the one column that may be narrow."""

    values: Sequence[float | None]

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, max(1, len(self.values))).with_maximum(options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(sparkline(self.values[-options.max_width :]), no_wrap=True)


def sparkline(values: Sequence[float | None]) -> str:
    """A bar for each value, scaled to the largest; a gap for what is unknown."""
    top = max((value for value in values if value is not None), default=0.0)
    if top <= 0.0:
        return "".join(" " if value is None else BARS[0] for value in values)
    return "".join(" " if value is None else BARS[min(int(value / top * len(BARS)), len(BARS) - 1)] for value in values)


def _supervisors(point: Point) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("supervisor")
    table.add_column("CPU, millicores", justify="right")
    for host, used in sorted(point.cpu_millicores.items()):
        table.add_row(host, f"{used:,.0f}")
    return table


@dataclass(frozen=True, slots=True)
class Plans:
    """A row for each plan; why it was made, or what became of it, at its end where there is room, else below."""

    records: Sequence[PlanRecord]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        has_room = options.max_width >= COLUMNS_FOR_REASONS
        table = Table(title="plans", title_justify="left", box=None, pad_edge=False)
        table.add_column("plan", overflow="fold", min_width=HALF_A_PLAN_ID)
        for heading in ("state", "moves", "restarts", "kept", "in force, s", *(["why"] if has_room else [])):
            table.add_column(heading)
        for record in self.records:
            table.add_row(*_of_plan(record), *([_why(record)] if has_room else []))
        yield table
        if not has_room:
            yield from (Text(f"{record.plan.id}: {_why(record)}") for record in self.records)


def _of_plan(record: PlanRecord) -> tuple[str, ...]:
    seconds = record.seconds_to_in_force
    return (
        record.plan.id,
        record.state.value,
        str(len(record.plan.moves)),
        str(len(record.plan.started_workers)),
        "" if record.workers_kept is None else str(record.workers_kept),
        "" if seconds is None else f"{seconds:.1f}",
    )


def _why(record: PlanRecord) -> str:
    return record.message or record.plan.reason


def picture(recorder: Recorder, headline: str) -> str:
    """The view as it ended, with `headline` above it, as an SVG that needs no font from elsewhere."""
    console = Console(width=PICTURE_COLUMNS, record=True, file=io.StringIO())
    console.print(render(recorder, recorder.points[-1].at_seconds if recorder.points else 0.0, headline))
    return FONT_FACES.sub("", console.export_svg(title="make demo"))

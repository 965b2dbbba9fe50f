"""The runs of one scenario as tables for a terminal: as many beside each other as there is room for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from storm_operator.simulation_comparison import SUPERVISORS_IN_USE
from storm_operator.simulation_report import SimulationReport

UNMANAGED = "as it starts"
"""As Storm's Even scheduler places it, and nobody sets a CPU limit."""

NO_BOUND = 1_000_000
Run = tuple[str, SimulationReport]
"""Under what it was played, and what was seen."""
FIGURES: Mapping[str, Callable[[SimulationReport], str]] = {
    "complete latency, mean (ms)": lambda r: _figure(r.mean_latency_ms()),
    "complete latency, p50, median period (ms)": lambda r: _figure(r.median_latency_ms()),
    "complete latency, p99, median period (ms)": lambda r: _figure(r.median_latency_ms(figure="latency_p99_ms")),
    "acked tuples": lambda r: f"{r.sums.acked:,.0f}",
    "failed tuples": lambda r: f"{r.sums.failed:,.0f}",
    "forgotten, as their spout restarted": lambda r: f"{r.sums.forgotten:,.0f}",
    "offered, but never sent": lambda r: f"{r.sums.unsent:,.0f}",
    "tuples between supervisors (per second)": lambda r: _figure(r.mean_of("inter_supervisor_tuples_per_second")),
    "supervisors in use": lambda r: SUPERVISORS_IN_USE.shown(r.mean_of("supervisors_used")),
    "CPU used (core-seconds)": lambda r: f"{r.sums.cpu_used_core_seconds:,.0f}",
    "CPU reserved in vain (core-seconds)": lambda r: f"{r.sums.over_provided_core_seconds:,.0f}",
    "CPU missing (core-seconds)": lambda r: f"{r.sums.under_provided_core_seconds:,.1f}",
    "plans put in force": lambda r: str(len(r.counted_plans)),
    "worker restarts": lambda r: str(r.sums.worker_restarts),
}
LONGEST_WORD = max(len(word) for name in FIGURES for word in name.split())


def tables(runs: Sequence[Run], console: Console) -> Iterator[Table]:
    """All of `runs`: those without room beside others, where names and figures would be cut off, below them."""
    while runs:
        beside = next((n for n in range(len(runs), 1, -1) if _has_room(_table(runs[:n]), console)), 1)
        yield _table(runs[:beside])
        runs = runs[beside:]


def _has_room(table: Table, console: Console) -> bool:
    """Whether no word has to be cut."""
    unbounded = console.options.update(width=NO_BOUND)
    return Measurement.get(console, unbounded, table).minimum <= console.width


def _table(runs: Sequence[Run]) -> Table:
    """The names of figures are broken into lines where room is short, and nothing else is."""
    columns = {_heading(name): [shown(report) for shown in FIGURES.values()] for name, report in runs}
    table = Table(title=_title(runs[0][1]), title_justify="left", box=None)
    table.add_column("figure", overflow="fold", min_width=LONGEST_WORD)
    for heading, figures in columns.items():
        widest = max(map(len, (*heading.splitlines(), *figures)))
        table.add_column(heading, justify="right", no_wrap=True, min_width=widest)
    for name, *figures in zip(FIGURES, *columns.values(), strict=True):
        table.add_row(name, *figures)
    return table


def _title(report: SimulationReport) -> str:
    warm_up = report.warm_up_seconds
    return f"{report.scenario} (its first {warm_up:g} s do not count)" if warm_up else report.scenario


def _heading(name: str) -> str:
    """`even` is a policy, too: who manages comes first, by which policy second."""
    if name == UNMANAGED:
        return "Storm alone\n(its Even)"
    policy, _, learned = name.partition(" ")
    return f"operator,\npolicy {policy}" + ("\nwith profile" if learned else "")


def _figure(value: float | None) -> str:
    return "unknown" if value is None or math.isnan(value) else f"{value:,.1f}"

"""What a run of contenders on the real cluster comes to: ratios within each turn, and whether they reach the targets.

Pure. A contender stands in `Measured.placement`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bars import Bar, Panel, bars_of
from calibration_cases import LOADS, Measured

EVEN, RESOURCE_AWARE, ADAPTIVE = "even", "resource-aware", "adaptive"
STORMS_OWN = (EVEN, RESOURCE_AWARE)

FIGURES: Mapping[str, Callable[[Measured], float]] = {
    "latency_p50": lambda case: case.latency_p50_ms,
    "inter_supervisor_tuples": lambda case: case.inter_supervisor_tuples_per_second,
    "throughput": lambda case: case.acked_per_second,
}

UNITS = {"latency_p50": "ms", "inter_supervisor_tuples": "tuples/s", "throughput": "trees/s"}

TARGETS: Mapping[tuple[str, str], tuple[str, Callable[[float], bool]]] = {
    ("low", "latency_p50"): ("at most 0.5", lambda ratio: ratio <= 0.5),
    ("low", "inter_supervisor_tuples"): ("at most 0.4", lambda ratio: ratio <= 0.4),
    ("low", "throughput"): ("at least 1.0", lambda ratio: round(ratio, 2) >= 1.0),
    ("saturated", "throughput"): ("above 1.0", lambda ratio: ratio > 1.0),
}
"""By load and figure. At low load all contenders complete what is offered, and a ratio differs from 1 by when the
clocks were read: it counts to two digits. At saturation latency follows from throughput (a fixed number of tuples is
pending), and more tuples are sent the more are completed: neither has a target of its own there."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """One contender over another, figure by figure; `values` has one number for each turn in which it exists."""

    workload: str
    load: str
    figure: str
    ours: str
    against: str
    values: tuple[float, ...]

    @property
    def median(self) -> float | None:
        return statistics.median(self.values) if self.values else None

    @property
    def reaches_target(self) -> bool | None:
        """Whether the median does; None without a target, or without a ratio."""
        target = TARGETS.get((self.load, self.figure))
        return None if target is None or self.median is None else target[1](self.median)


def turn_order(contenders: Sequence[str], turn: int) -> tuple[str, ...]:
    """Each turn begins with another contender, so that none always comes first."""
    first = turn % len(contenders)
    return (*contenders[first:], *contenders[:first])


def ratios(cases: Sequence[Measured], ours: str, against: str) -> list[Ratio]:
    """All ratios of `ours` to `against`, only ever within one turn of one workload.

    Over nothing there is no ratio: a turn in which the other sent no tuple between supervisors has none.
    """
    found = {(case.workload, case.load, case.placement, case.turn): case for case in cases}
    rows = []
    for workload in sorted({case.workload for case in cases}):
        turns = sorted({case.turn for case in cases if case.workload == workload})
        for load in LOADS:
            pairs = [
                (found[workload, load, ours, turn], found[workload, load, against, turn])
                for turn in turns
                if (workload, load, ours, turn) in found and (workload, load, against, turn) in found
            ]
            for name, figure in FIGURES.items():
                values = tuple(figure(mine) / figure(other) for mine, other in pairs if figure(other) > 0.0)
                rows.append(Ratio(workload, load, name, ours, against, values))
    return rows


def contenders_in(cases: Sequence[Measured]) -> tuple[str, ...]:
    """Storm's own schedulers first, then adaptive, then the others by name."""
    first = (*STORMS_OWN, ADAPTIVE)
    there = {case.placement for case in cases}
    return (*(name for name in first if name in there), *sorted(there.difference(first)))


def figures_table(cases: Sequence[Measured]) -> str:
    """What each contender did, as a table for docs: median over the turns, and the range."""
    lines = [
        "| workload | load | scheduler | p50 ms | inter-supervisor tuples/s | trees/s | supervisors |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for workload in sorted({case.workload for case in cases}):
        for load in LOADS:
            for name in contenders_in(cases):
                key = workload, name, load
                turns = [case for case in cases if (case.workload, case.placement, case.load) == key]
                if turns:
                    shown = [with_range([figure(case) for case in turns]) for figure in FIGURES.values()]
                    used = with_range([float(len({e.machine for e in case.executors})) for case in turns], digits=0)
                    lines.append(f"| {' | '.join([workload, load, name, *shown, used])} |")
    return "\n".join(lines)


DRAWN = (("low", "latency_p50"), ("low", "inter_supervisor_tuples"), ("saturated", "throughput"))


def picture(cases: Sequence[Measured]) -> str:
    """What has a target, for each workload: median over the turns, and the range."""
    panels = []
    for workload in sorted({case.workload for case in cases}):
        for load, name in DRAWN:
            own = [case for case in cases if (case.workload, case.load) == (workload, load)]
            bars = tuple(_bar(contender, own, FIGURES[name]) for contender in contenders_in(own))
            panels.append(Panel(f"{workload}, {load} load: {name.replace('_', ' ')} ({UNITS[name]})", bars))
    return bars_of(panels)


def _bar(contender: str, cases: Sequence[Measured], figure: Callable[[Measured], float]) -> Bar:
    values = [figure(case) for case in cases if case.placement == contender]
    return Bar(contender, statistics.median(values), min(values), max(values))


def ratios_table(rows: Sequence[Ratio]) -> str:
    """Ratios as a table for docs: median over the turns, the range, and whether a target is reached."""
    lines = ["| workload | load | figure | against | ratio | target | reached |", "|---|---|---|---|---:|---|---|"]
    for row in rows:
        target = TARGETS.get((row.load, row.figure), ("", None))[0]
        reached = {None: "", True: "yes", False: "no"}[row.reaches_target]
        shown = with_range(row.values, digits=2) if row.values else "none to compare with"
        figure = row.figure.replace("_", " ")
        lines.append(f"| {' | '.join([row.workload, row.load, figure, row.against, shown, target, reached])} |")
    return "\n".join(lines)


def with_range(values: Sequence[float], digits: int = 1) -> str:
    """E.g. `3.2 (3.0 to 3.9)`; a single value stands alone."""
    middle = f"{statistics.median(values):.{digits}f}"
    lowest, highest = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return middle if lowest == highest else f"{middle} ({lowest} to {highest})"


def summary(cases: Sequence[Measured]) -> dict[str, object]:
    """What the last line says: adaptive, and any other policy, over each of Storm's own."""
    told: dict[str, object] = {"turns": len({case.turn for case in cases})}
    missed: list[str] = []
    for ours in contenders_in(cases):
        if ours in STORMS_OWN:
            continue
        rows = [row for other in STORMS_OWN for row in ratios(cases, ours, other) if row.values]
        told[ours] = [
            {
                "workload": row.workload,
                "load": row.load,
                "figure": row.figure,
                "against": row.against,
                "median": _rounded(row.median),
                "lowest": _rounded(min(row.values)),
                "highest": _rounded(max(row.values)),
                "reaches_target": row.reaches_target,
            }
            for row in rows
        ]
        if ours == ADAPTIVE:
            missed = [f"{r.workload} {r.load} {r.figure} {r.against}" for r in rows if r.reaches_target is False]
    return told | {"targets_missed": missed}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)

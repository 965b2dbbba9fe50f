"""Two runs of one scenario in a sentence: what of one is better, and what is worse."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from storm_operator.simulation_report import SimulationReport

ALIKE_SHARE = 0.01
"""Figures that differ by less of the larger one are not worth a word."""


@dataclass(frozen=True, slots=True)
class _Figure:
    """Less of it is better, unless more is. `value` is None or NaN where it is unknown. Counts are shown as such."""

    name: str
    unit: str
    decimals: int
    value: Callable[[SimulationReport], float | None]
    is_count: bool = False
    is_more_better: bool = False

    def shown(self, value: float) -> str:
        shown = f"{value:,.{self.decimals}f}"
        return shown.rstrip("0").rstrip(".") if self.is_count and "." in shown else shown

    def told(self, one: float, other: float) -> str:
        """E.g. `mean latency 354.0 ms rather than 9.6`."""
        return f"{self.name} {self.shown(one)}{self.unit} rather than {self.shown(other)}"


SUPERVISORS_IN_USE = _Figure(
    "supervisors in use", "", 2, lambda report: report.mean_of("supervisors_used"), is_count=True
)
FIGURES = (
    _Figure("mean latency", " ms", 1, lambda report: report.mean_latency_ms()),
    _Figure("p50", " ms", 1, lambda report: report.median_latency_ms()),
    _Figure("p99", " ms", 1, lambda report: report.median_latency_ms(figure="latency_p99_ms")),
    _Figure("acked tuples", "", 0, lambda report: report.sums.acked, is_more_better=True),
    _Figure("failed or forgotten tuples", "", 0, lambda report: report.sums.unsuccessful),
    _Figure("tuples never sent", "", 0, lambda report: report.sums.unsent),
    _Figure(
        "tuples between supervisors",
        " per second",
        1,
        lambda report: report.mean_of("inter_supervisor_tuples_per_second"),
    ),
    SUPERVISORS_IN_USE,
    _Figure("worker restarts", "", 0, lambda report: report.sums.worker_restarts),
    _Figure("CPU missing", " core-seconds", 1, lambda report: report.sums.under_provided_core_seconds),
    _Figure("CPU reserved in vain", " core-seconds", 0, lambda report: report.sums.over_provided_core_seconds),
)


def compared(one: SimulationReport, other: SimulationReport) -> str:
    """What is better of `one` than of `other`, and what is worse; what is unknown of either is left out."""
    better: list[str] = []
    worse: list[str] = []
    for figure in FIGURES:
        now, before = figure.value(one), figure.value(other)
        if now is None or before is None or math.isnan(now) or math.isnan(before):
            continue
        if abs(now - before) <= ALIKE_SHARE * max(now, before):
            continue
        if figure.shown(now) == figure.shown(before):
            continue
        (better if (now < before) is not figure.is_more_better else worse).append(figure.told(now, before))
    return f"better: {_list(better)}; worse: {_list(worse)}."


def _list(told: list[str]) -> str:
    return ", ".join(told) or "nothing by more than 1%"

"""Two runs of one scenario in a sentence: what of one is better, and what is worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from storm_operator.simulation_report import SimulationReport

ALIKE_SHARE = 0.01
"""Figures that differ by less of the larger one are not worth a word."""


@dataclass(frozen=True, slots=True)
class _Figure:
    """Less of it is better. `value` is None where it is unknown."""

    name: str
    unit: str
    decimals: int
    value: Callable[[SimulationReport], float | None]

    def shown(self, value: float) -> str:
        return f"{value:,.{self.decimals}f}"

    def told(self, one: float, other: float) -> str:
        """E.g. `mean latency 354.0 ms rather than 9.6`."""
        return f"{self.name} {self.shown(one)}{self.unit} rather than {self.shown(other)}"


FIGURES = (
    _Figure("mean latency", " ms", 1, lambda report: report.mean_latency_ms()),
    _Figure("p50", " ms", 1, lambda report: report.median_latency_ms()),
    _Figure("p99", " ms", 1, lambda report: report.median_latency_ms(figure="latency_p99_ms")),
    _Figure("failed or forgotten tuples", "", 0, lambda report: report.sums.unsuccessful),
    _Figure("tuples never sent", "", 0, lambda report: report.sums.unsent),
    _Figure("CPU missing", " core-seconds", 1, lambda report: report.sums.under_provided_core_seconds),
    _Figure("CPU reserved in vain", " core-seconds", 0, lambda report: report.sums.over_provided_core_seconds),
)


def compared(one: SimulationReport, other: SimulationReport) -> str:
    """What is better of `one` than of `other`, and what is worse; what is unknown of either is left out."""
    better: list[str] = []
    worse: list[str] = []
    for figure in FIGURES:
        now, before = figure.value(one), figure.value(other)
        if now is None or before is None or abs(now - before) <= ALIKE_SHARE * max(now, before):
            continue
        if figure.shown(now) == figure.shown(before):
            continue
        (better if now < before else worse).append(figure.told(now, before))
    return f"better: {_list(better)}; worse: {_list(worse)}."


def _list(told: list[str]) -> str:
    return ", ".join(told) or "nothing by more than 1%"

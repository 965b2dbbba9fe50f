"""The runs of a scenario as tables: whatever the terminal's width, every name and figure is whole."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from storm_operator.core.placement.registry import POLICIES
from storm_operator.simulation_report import PlanSummary, SimulationReport, Sums
from storm_operator.simulation_table import UNMANAGED, Run, tables

LEAST_WIDE = 80


def run(name: str, acked: float) -> Run:
    sums = Sums(acked, acked, 0.0, 0.0, 0.0, 0.0, 839.0, 3351.0, 1.1, 2)
    return name, SimulationReport("words", name, 10.0, 0.0, (), (), sums)


def shown(runs: list[Run], columns: int) -> list[str]:
    """The lines of each table, as one text."""
    console = Console(width=columns, file=io.StringIO())
    texts = []
    for table in tables(runs, console):
        with console.capture() as captured:
            console.print(table)
        texts.append(captured.get())
    return texts


@pytest.mark.parametrize("columns", [LEAST_WIDE, 120, 200])
def test_runs_without_room_beside_others_stand_below_them(columns: int) -> None:
    runs = [run(UNMANAGED, 1000001.0), *(run(name, 1000002.0 + at) for at, name in enumerate(sorted(POLICIES)))]
    texts = shown(runs, columns)
    assert len(texts) > 1
    assert "…" not in "".join(texts)
    figures = [figure for text in texts for figure in text.split() if figure.startswith("1,000,")]
    assert figures == [f"{report.sums.acked:,.0f}" for _, report in runs]


def test_what_has_room_is_one_table() -> None:
    assert len(shown([run(UNMANAGED, 1.0), run("adaptive", 2.0)], LEAST_WIDE)) == 1
    assert len(shown([run(UNMANAGED, 1.0), *(run(name, 2.0) for name in POLICIES)], 1000)) == 1


def test_plans_are_counted_as_their_restarts_are() -> None:
    def plan(at_seconds: float, seconds_to_in_force: float | None) -> PlanSummary:
        return PlanSummary("p", at_seconds, "Verified", "", "", 1, 1, seconds_to_in_force, None)

    in_warm_up, at_its_end, later, only_proposed = (
        plan(10.0, 1.0),
        plan(299.5, 1.0),
        plan(400.0, 1.0),
        plan(500.0, None),
    )
    name, report = run("adaptive", 1.0)
    plans = (in_warm_up, at_its_end, later, only_proposed)
    (text,) = shown([(name, replace(report, warm_up_seconds=300.0, plans=plans))], LEAST_WIDE)
    assert text.startswith("words (its first 300 s do not count)")
    (line,) = [line for line in text.splitlines() if "plans put in force" in line]
    assert line.split()[-1] == "2"

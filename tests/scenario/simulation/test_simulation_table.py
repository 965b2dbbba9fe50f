"""The runs of a scenario as tables: whatever the terminal's width, every name and figure is whole."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from storm_operator.core.placement.registry import POLICIES
from storm_operator.simulation_report import SimulationReport, Sums
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

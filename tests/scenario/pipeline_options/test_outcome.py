"""What jobs say at their end."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from storm_pipeline.jobs.learning import show
from storm_pipeline.jobs.traffic import outcome


@pytest.mark.parametrize(
    ("made", "there", "said"),
    [
        (0, 0, "traffic: no tuples between executors were recorded on such dates: nothing made"),
        (2, 2, "traffic: 2 of 2 days made"),
        (1, 3, "traffic: 1 of 3 days made; 2 had not changed"),
    ],
)
def test_what_was_made_and_what_was_not(made: int, there: int, said: str) -> None:
    assert outcome(made, there) == said


@pytest.mark.parametrize(
    ("rows", "told"), [((), ["no plan was made"]), (("liu",), [" policy ", " liu    ", "Less is better."])]
)
def test_a_table_without_rows_is_not_shown_nor_what_it_would_mean(rows: tuple[str, ...], told: list[str]) -> None:
    heard, table = io.StringIO(), Table("policy", box=None)
    for row in rows:
        table.add_row(row)
    show(Console(file=heard), table, "Less is better.", "no plan was made")
    assert heard.getvalue().splitlines() == told

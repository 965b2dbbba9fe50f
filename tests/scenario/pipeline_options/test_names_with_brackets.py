"""What jobs say has names of components and clusters in it, which are anybody's: brackets in them are no markup."""

from __future__ import annotations

import pytest
from rich.table import Table

from storm_pipeline.job_console import job_console

NAME = "parse[json] of [/events]"


def test_a_name_is_said_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    console = job_console()
    table = Table(title=NAME)
    table.add_column("component")
    table.add_row(NAME)
    with console.status(f"profile of {NAME}"):
        console.print(NAME)
        console.print(table)
    assert capsys.readouterr().out.count(NAME) == 4

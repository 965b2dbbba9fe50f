"""What jobs say while they work: on a terminal a line that moves, in a log a line for each thing that begins."""

from __future__ import annotations

import io

import pytest

from storm_pipeline.job_console import JobConsole, job_console


def test_in_a_log_each_thing_that_begins_is_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    console = job_console()
    with console.status("ingest of [blue]") as status:
        status.update("ingest: pairs")
        status.update("ingest: pairs")
        console.print("12 rows")
        status.update("ingest: plans")
    assert capsys.readouterr().out == "ingest of [blue] ...\ningest: pairs ...\n12 rows\ningest: plans ...\n"


def test_on_a_terminal_it_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = io.StringIO()
    console = JobConsole(file=screen, force_terminal=True, highlight=False, markup=False)
    with console.status("ingest of [blue]") as status:
        status.update("ingest of [/red]")
    shown = screen.getvalue()
    assert "ingest of [/red]" in shown
    assert "..." not in shown


def test_a_bar_is_not_for_logs(capsys: pytest.CaptureFixture[str]) -> None:
    with job_console().status(object()):  # type: ignore[arg-type]
        pass
    assert capsys.readouterr().out == ""

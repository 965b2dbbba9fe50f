"""What is written to the log of a program that tells others' words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner

from storm_operator.agent import commands
from storm_operator.cli import app
from storm_operator.kube import run_command
from storm_operator.log_lines import INDENT, LogLines

FORGED = "2026-11-30 08:00:00,000 INFO plan p-1: approved"


def written(message: str) -> list[str]:
    record = logging.LogRecord("storm_operator", logging.INFO, __file__, 1, message, None, None)
    return LogLines().format(record).split("\n")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\v", "\u2028"])
def test_what_a_submission_said_is_no_record_of_its_own(end: str) -> None:
    first, *others = written(f"words: submission job words-submit-1 failed: exit code 1{end}{FORGED}")
    assert first.endswith(" INFO words: submission job words-submit-1 failed: exit code 1")
    assert others == [f"{INDENT}{FORGED}"]


def test_terminal_of_who_reads_it_is_told_nothing() -> None:
    (line,) = written("bolt \x1b[2Jécrit\tà\x07 \ud800")
    assert line.endswith(r"bolt \x1b[2Jécrit" + "\tà" + r"\x07 \ud800")


@pytest.fixture
def at_the_start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """To be called in a test, since pytest listens to all that is logged: as if nothing were set up yet."""
    root, level = logging.getLogger(), logging.getLogger().level
    yield lambda: monkeypatch.setattr(root, "handlers", [])
    root.setLevel(level)


def test_what_the_operator_logs(at_the_start: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    at_the_start()
    run_command._set_up_logging()
    try:
        raise ValueError(FORGED)
    except ValueError:
        logging.getLogger("storm_operator").exception("this pass failed")
    first, *others = capsys.readouterr().err.splitlines()
    assert first.endswith(" ERROR this pass failed")
    assert others[0] == f"{INDENT}Traceback (most recent call last):"
    assert all(line.startswith(INDENT) for line in others)


def test_what_the_agent_logs(at_the_start: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "run_agent", lambda _: logging.getLogger("a").info(f"cgroup of words\n{FORGED}"))
    at_the_start()
    done = CliRunner().invoke(app, ["agent", "--host", "s1", "--metrics-dir", "/nowhere", "--no-enforce"])
    first, second = done.stderr.splitlines()
    assert first.endswith(" INFO cgroup of words")
    assert second == f"{INDENT}{FORGED}"

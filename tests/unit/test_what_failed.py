"""What a run that failed says last, also when a worker of pytest could not go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from what_failed import MOST_LINES, WIDTH, last_lines

TESTS = Path(__file__).parents[1]
HOOKS = """
from what_failed import WhatFailed

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(WhatFailed())
"""


def run(folder: Path, test: str, *arguments: str) -> str:
    (folder / "conftest.py").write_text(HOOKS)
    (folder / "test_it.py").write_text(test)
    program = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        "/dev/null",
        "--rootdir",
        str(folder),
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*program, *arguments, str(folder)],
        env={"PYTHONPATH": str(TESTS), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout


@pytest.mark.slow
def test_a_worker_that_breaks_is_told_with_what_failed_before_it(tmp_path: Path) -> None:
    """The text of the second test cannot be sent: that ends its worker, and pytest with it, without a summary."""
    test = r"""
import pytest

def test_first(): assert 1 == 2
def test_second(): pytest.fail("not to be sent: \udc80")
"""
    said = run(tmp_path, test, "-n", "1", "--reruns", "1").partition("WHAT FAILED")[2].splitlines()[1:]
    assert said[:4] == [
        "test_it.py::test_first (call, then tried again)",
        "  assert 1 == 2",
        "test_it.py::test_first (call)",
        "  assert 1 == 2",
    ]
    assert "pytest itself:   execnet.gateway_base.DumpError: strings must be utf-8 encodable" in said


@pytest.mark.slow
def test_nothing_is_said_where_nothing_failed(tmp_path: Path) -> None:
    assert "WHAT FAILED" not in run(tmp_path, "def test_it(): pass")


def test_lines_are_few_and_short() -> None:
    reports = [
        pytest.TestReport(f"test_{n}", ("", 0, ""), {}, "failed", "x" * 500 + "\n" * 3 + "y\n" * 20, "call")
        for n in range(50)
    ]
    lines = last_lines(reports, [])
    assert len(lines) == MOST_LINES
    assert lines[:2] == ["test_0 (call)", f"  {'x' * WIDTH}"]


def test_what_passed_in_the_end_hides_nothing_that_did_not() -> None:
    passed_later = [pytest.TestReport(f"later_{n}", ("", 0, ""), {}, "rerun", "why", "call") for n in range(50)]  # type: ignore[arg-type]
    first_try, failed = (
        pytest.TestReport("failed", ("", 0, ""), {}, outcome, "why", "call")  # type: ignore[arg-type]
        for outcome in ("rerun", "failed")
    )
    lines = last_lines([*passed_later, first_try, failed], [])
    told = ["failed (call, then tried again)", "  why", "failed (call)", "  why", "later_0 (call, then tried again)"]
    assert lines[:5] == told

"""The last lines of a run that failed: which tests, and of what, also when pytest itself or one of its workers broke.

A CI that keeps the end of a long log keeps these; pytest prints nothing of what failed where it ended by an error of
its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

MOST_LINES = 16
MOST_LINES_OF_ONE = 4
MOST_LINES_OF_PYTEST = 6
WIDTH = 180


class WhatFailed:
    """Registered where results are gathered: not in the workers of a run in several processes."""

    def __init__(self) -> None:
        self._errors_of_pytest: list[str] = []

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._errors_of_pytest.append(f"{type(excinfo.value).__name__}: {excinfo.value}")

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        if not isinstance(terminal, pytest.TerminalReporter):
            return
        reports = [report for kind in ("rerun", "failed", "error") for report in terminal.stats.get(kind, ())]
        lines = last_lines(reports, self._errors_of_pytest)
        if lines:
            terminal.write_sep("=", "WHAT FAILED")
        for line in lines:
            terminal.write_line(line)


def last_lines(
    reports: Iterable[pytest.TestReport | pytest.CollectReport], errors_of_pytest: Sequence[str]
) -> list[str]:
    """At most `MOST_LINES`, the earliest first: the first thing that failed is most often the cause of the others.

    What passed when it was tried again stands behind what failed for good.
    """
    told = list(reports)
    for_good = {report.nodeid for report in told if str(report.outcome) != "rerun"}
    told.sort(key=lambda report: report.nodeid not in for_good)
    lines = [line for report in told for line in _lines_of(report)]
    for error in errors_of_pytest:
        # What it came to stands at the end of the text that a worker sends.
        lines += [f"pytest itself: {line}" for line in _told(error.splitlines()[-MOST_LINES_OF_PYTEST:])]
    return lines[:MOST_LINES]


def _lines_of(report: pytest.TestReport | pytest.CollectReport) -> list[str]:
    again = ", then tried again" if str(report.outcome) == "rerun" else ""
    where = f"{report.nodeid} ({report.when}{again})"
    crash = getattr(report.longrepr, "reprcrash", None)
    reason = crash.message if crash is not None else report.longreprtext
    return [where, *(f"  {line}" for line in _told(reason.splitlines()[:MOST_LINES_OF_ONE]))]


def _told(lines: Iterable[str]) -> list[str]:
    return [line[:WIDTH] for line in lines if line.strip()]

"""What holds for all tests: properties are judged by their answers, never by how busy the machine is."""

from __future__ import annotations

import gc

import pytest
from hypothesis import HealthCheck, settings

from what_failed import WhatFailed

settings.register_profile("any-machine", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

# Nothing that collecting imports becomes garbage: to look through all of it again and again is a quarter of its time.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(WhatFailed())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What failed once and was run again: a second try often fails of what the first one left, and hides its cause."""
    tried_again = terminalreporter.getreports("rerun")
    if tried_again:
        terminalreporter.write_sep("=", "FIRST TRIES")
    for report in tried_again:
        terminalreporter.write_sep("_", report.nodeid)
        terminalreporter.write_line(report.longreprtext)
        for title, text in report.sections:
            terminalreporter.write_sep("-", title)
            terminalreporter.write_line(text)

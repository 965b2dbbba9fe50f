"""What the conftest.py files of cluster tests share."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kube_cluster.binaries import ensure_programs, obstacle


def build_first(session: pytest.Session, fixture: str, programs: Sequence[str]) -> None:
    """Build before the first test if one of them uses the fixture: a build takes longer than a test may."""
    if session.config.option.collectonly or obstacle(programs):
        return
    if any(fixture in getattr(item, "fixturenames", ()) for item in session.items):
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        ensure_programs(programs, reporter.write_line if reporter else print)


def skip_unless_possible(programs: Sequence[str]) -> None:
    """Skip, with the reason and the remedy, where the programs can be neither found nor built."""
    why_not = obstacle(programs)
    if why_not:
        pytest.skip(f"NO KUBERNETES TESTS: {why_not}")

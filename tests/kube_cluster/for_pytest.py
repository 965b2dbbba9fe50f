"""What the conftest.py files of cluster tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest

from kube_cluster.binaries import obstacle
from kube_cluster.cache import Say
from storm_operator.local.prerequisites import Missing


def build_first(session: pytest.Session, fixture: str, build: Callable[[Say], object]) -> None:
    """Build before the first test if one of them uses the fixture: a build takes longer than a test may."""
    if session.config.option.collectonly:
        return
    if any(fixture in getattr(item, "fixturenames", ()) for item in session.items):
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        build(reporter.write_line if reporter else print)


def skip_unless_possible(programs: Sequence[str], missing: Iterable[Missing] = ()) -> None:
    """Skip, with the reasons and their remedies, where there can be no such cluster."""
    why_not = [*filter(None, [obstacle(programs)]), *map(str, missing)]
    if why_not:
        pytest.skip("NO KUBERNETES TESTS: " + "; ".join(why_not))

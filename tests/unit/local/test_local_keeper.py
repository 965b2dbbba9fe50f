"""What the keeper does of a daemon that does not even start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from storm_operator.local import keeper
from storm_operator.local.daemons import Daemon
from storm_operator.local.keeper import Kept


async def until(condition: Callable[[], bool]) -> None:
    """For some seconds at most: what is asserted next says what did not come."""
    for _ in range(200):
        if condition():
            return
        await asyncio.sleep(0.02)


def test_daemon_that_cannot_be_started_is_tried_again_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As where the log's disk is full for a while, or the machine has no process to spare."""
    monkeypatch.setattr(keeper, "FIRST_BACKOFF_SECONDS", 0.01)
    logs = tmp_path / "logs"
    logs.touch()
    kept = Kept(Daemon("nimbus", ("true",), logs / "nimbus.out"))

    async def play() -> None:
        kept.start()
        await until(lambda: bool(caplog.messages))
        assert (kept.starts, kept.status()["pid"]) == (0, None)
        logs.unlink()
        await until(lambda: kept.starts > 0)
        await kept.stop()

    asyncio.run(play())
    assert kept.starts >= 1
    assert "nimbus cannot be started: " in caplog.messages[0]

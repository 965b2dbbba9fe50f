from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from eventually import eventually

from agent_snapshots import executor_document, snapshot_document, write_snapshot
from storm_operator.agent.options import AgentOptions
from storm_operator.agent.service import AgentService
from storm_operator.agent.snapshot_folder import SnapshotFolder

GOOD = 'topology_id="wordcount-1-1767268800"'


@contextlib.contextmanager
def running(folder: Path) -> Iterator[tuple[str, threading.Thread]]:
    """An agent's URL, and its loop."""
    service = AgentService(AgentOptions("sup-1", folder, ("127.0.0.1", 0), enforce=False))
    url = f"http://127.0.0.1:{service.start()}"
    loop = threading.Thread(target=service.run, daemon=True)
    loop.start()
    try:
        yield url, loop
    finally:
        service.stop()
        loop.join(10)
        assert not loop.is_alive()


def page(url: str) -> str:
    answer = requests.get(f"{url}/metrics", timeout=10)
    assert answer.status_code == 200
    return answer.text


def test_an_agent_beside_bad_files_goes_on_and_tells_the_good_one(tmp_path: Path) -> None:
    write_snapshot(tmp_path, snapshot_document(pid=os.getpid(), executors=[executor_document(2)]))
    with running(tmp_path) as (url, loop):
        (tmp_path / "deep@6701.json").write_text('{"version": 1, "pid": 5, "traffic": ' + "[" * 100_000)
        os.mkfifo(tmp_path / "pipe@6702.json")
        for _ in range(3):
            assert GOOD in page(url)
        assert requests.get(f"{url}/healthz", timeout=10).text == "ok\n"
        assert loop.is_alive()


@pytest.mark.slow
def test_a_step_that_fails_is_said_once_and_the_next_one_tried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []

    def fails(_folder: SnapshotFolder) -> tuple[()]:
        steps.append(1)
        if len(steps) < 4:
            raise RuntimeError("nobody thought of this")
        return ()

    monkeypatch.setattr(SnapshotFolder, "threads", fails)
    monkeypatch.setattr("storm_operator.agent.service.STEP_SECONDS", 0.01)
    with running(tmp_path) as (_, loop):
        eventually(lambda: len(steps) > 6, "it goes on")
        assert loop.is_alive()
    failures = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.message for record in failures] == ["this step failed, the next one is tried"]
    assert "nobody thought of this" in caplog.text

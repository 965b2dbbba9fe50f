from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import requests

from agent_snapshots import executor_document, snapshot_document, write_snapshot
from storm_operator.agent.options import AgentOptions
from storm_operator.agent.service import AgentService

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

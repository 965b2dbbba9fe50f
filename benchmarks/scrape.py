"""How long a scrape of a large supervisor's agent takes, and its bytes: 200 executors, 5,000 pairs of tasks.

The agent is a real process. Its workers are processes with one real thread for each executor, whose snapshot files are
written anew every second, as workers do. Each scrape is one GET over loopback; the agent's own CPU tells what of its
time is waiting for a busy machine. The last line is JSON.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import psutil
import requests
import typer
from rich.console import Console
from rich.progress import track

BOUNDS_MS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, None)
WORKER = """
import sys, threading
stop = threading.Event()
threads = [threading.Thread(target=stop.wait, daemon=True) for _ in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
print(*(thread.native_id for thread in threads), flush=True)
sys.stdin.read()
"""


class Worker:
    """A process that has a thread for each of `executors` tasks, and what it says of itself."""

    def __init__(self, number: int, executors: int, pairs: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(executors)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._tids = [int(text) for text in self._process.stdout.readline().split()]
        self._tasks = range(number * executors + 1, (number + 1) * executors + 1)
        self._port = 6700 + number
        self._started_at_ms = round(1000 * time.time())
        dice = random.Random(number)
        targets = -(-pairs // executors)
        every = [(task, 10_000 + target, dice.paretovariate(1.2)) for task in self._tasks for target in range(targets)]
        self._flows = every[:pairs]

    def write(self, folder: Path, counted: float) -> None:
        path = folder / f"bench-1-1767268800@{self._port}.json"
        path.with_suffix(".tmp").write_text(json.dumps(self._document(counted)))
        path.with_suffix(".tmp").replace(path)

    def _document(self, counted: float) -> dict[str, Any]:
        executors = [
            {
                "task_start": task,
                "task_end": task,
                "component": f"component-{task % 5}",
                "tid": tid,
                **dict.fromkeys(("executed", "emitted", "transferred", "acked"), round(counted)),
                "failed": 0,
                "queue_length": 3,
                "queue_capacity": 32768,
                "arrival_per_second": 120.5,
            }
            for task, tid in zip(self._tasks, self._tids, strict=True)
        ]
        margins = {"stream": "default", "tuples": counted}
        latency = {"sum_ms": counted, "count": counted, "buckets": [[bound, counted] for bound in BOUNDS_MS]}
        return {
            "version": 1,
            "topology_id": "bench-1-1767268800",
            "host": "bench",
            "port": self._port,
            "pid": self._process.pid,
            "started_at_ms": self._started_at_ms,
            "written_at_ms": round(1000 * time.time()),
            "exact": False,
            "executors": executors,
            "executed_from": [{"task": task, "source_component": "source", **margins} for task in self._tasks],
            "transferred": [{"task": task, **margins} for task in self._tasks],
            "traffic": [
                {"source_task": source, "stream": "default", "target_task": target, "tuples": counted * weight}
                for source, target, weight in self._flows
            ],
            "complete_latency": [{"task": task, **latency} for task in self._tasks if task % 5 == 0],
        }

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def main(
    executors: Annotated[int, typer.Option(min=10, help="Executors on the supervisor.")] = 200,
    pairs: Annotated[int, typer.Option(min=10, help="Pairs of tasks that exchange tuples.")] = 5_000,
    pair_limit: Annotated[int, typer.Option(min=1, help="Pairs that the agent exports one by one.")] = 5_000,
    workers: Annotated[int, typer.Option(min=1, help="Workers that share the executors.")] = 10,
    scrapes: Annotated[int, typer.Option(min=2, help="Scrapes that are measured, one a second.")] = 60,
) -> None:
    """Scrape a real agent again and again."""
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        running = [Worker(number, executors // workers, pairs // workers) for number in range(workers)]
        for worker in running:
            stack.callback(worker.end)
            worker.write(folder, 1_000.0)
        process, url = stack.enter_context(_agent(folder, pair_limit))
        seconds, cpu_seconds, page = [], [], b""
        for turn in track(range(scrapes + 2), "scraping", console=console):
            for worker in running:
                worker.write(folder, 2_000.0 + 100.0 * turn)
            time.sleep(0.5)
            before, started = _cpu_seconds(process), time.perf_counter()
            page = requests.get(url, timeout=30).content
            seconds.append(time.perf_counter() - started)
            cpu_seconds.append(_cpu_seconds(process) - before)
            time.sleep(0.5)
        memory_bytes = process.memory_info().rss
    print(json.dumps(_result(page, seconds[2:], cpu_seconds[2:], memory_bytes)))


def _result(page: bytes, seconds: list[float], cpu_seconds: list[float], memory_bytes: int) -> dict[str, float]:
    milliseconds = sorted(1000 * one for one in seconds)
    lines = page.decode().splitlines()
    return {
        "scrapes": len(seconds),
        "series": sum(not line.startswith("#") for line in lines),
        "pairs": sum(line.startswith("storm_traffic_tuples_total") for line in lines),
        "megabytes": round(len(page) / 1e6, 3),
        "milliseconds_median": round(statistics.median(milliseconds), 1),
        "milliseconds_p95": round(milliseconds[int(0.95 * len(milliseconds))], 1),
        "milliseconds_worst": round(milliseconds[-1], 1),
        "agent_cpu_milliseconds_mean": round(1000 * statistics.fmean(cpu_seconds), 1),
        "agent_memory_megabytes": round(memory_bytes / 1e6, 1),
    }


@contextlib.contextmanager
def _agent(folder: Path, pair_limit: int) -> Iterator[tuple[psutil.Process, str]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "storm_operator.agent", "--host", "bench", "--metrics-dir", str(folder)]
    command += ["--listen", f"127.0.0.1:{port}", "--pair-limit", str(pair_limit)]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_it_answers(f"{url}/healthz")
            yield psutil.Process(process.pid), f"{url}/metrics"
        finally:
            process.terminate()


def _wait_until_it_answers(url: str) -> None:
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        with contextlib.suppress(requests.RequestException):
            if requests.get(url, timeout=5).ok:
                return
        time.sleep(0.2)
    raise SystemExit(f"{url}: the agent did not answer within a minute")


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    typer.run(main)

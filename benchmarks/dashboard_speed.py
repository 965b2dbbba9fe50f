"""How long the panels of the dashboards take on a Prometheus that holds a day of a large cluster.

Makes the series of `--executors` executors (played_series.py), loads them by promtool's backfill, has promtool record
what the rules make of them that panels read, starts a Prometheus on all of it and asks every panel what Grafana would
ask, over the last hour and over all there is. The last line is JSON.
With `--keep` a run that was interrupted goes on where it was, and the next one finds the series made.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import requests
import yaml
from played_series import PlayedCluster
from played_values import Played, write_openmetrics
from rich.console import Console
from rich.progress import track

from dashboards.all_of_them import documents
from dashboards.preview.asking import answers_of
from dashboards.preview.choices import Looked, choose
from dashboards.preview.prometheus import Prometheus

BLOCK_SECONDS = 7_200
"""Prometheus' own blocks are that long: promtool reads its input once for each."""
EXECUTORS_OF_A_TOPOLOGY, EXECUTORS_OF_A_SUPERVISOR = 100, 20
READY_SECONDS = 120.0
RULES = Path(__file__).parents[1] / "monitoring/rules/recording.yml"

console = Console(stderr=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executors", type=int, default=1_000)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--scrape-seconds", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=5, help="how often each panel is asked (5); the median counts")
    parser.add_argument("--keep", type=Path, help="a folder for Prometheus' data, to be found again by the next run")
    options = parser.parse_args()
    cluster = PlayedCluster(
        topologies=max(options.executors // EXECUTORS_OF_A_TOPOLOGY, 1),
        executors_each=min(options.executors, EXECUTORS_OF_A_TOPOLOGY),
        supervisors=max(options.executors // EXECUTORS_OF_A_SUPERVISOR, 2),
    )
    series = list(cluster.series())
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch) / "data"
        end = loaded_until(folder, series, options.hours, options.scrape_seconds, Path(scratch))
        record(folder, end + options.scrape_seconds, options.hours, Path(scratch))
        with prometheus_on(folder, Path(scratch)) as server:
            figures = measured(server, end, options)
    figures |= {
        "executors": options.executors,
        "series": len(series),
        "samples": len(series) * options.hours * 3600 // options.scrape_seconds,
        "hours": options.hours,
        "scrape_seconds": options.scrape_seconds,
        "rounds": options.rounds,
    }
    print(json.dumps(figures))
    return 0


def loaded_until(folder: Path, series: Sequence[Played], hours: int, scrape_seconds: int, scratch: Path) -> float:
    """Fill `folder` with the blocks that it lacks; the time (unix seconds) of the newest sample."""
    mark = folder / "loaded.json"
    if mark.is_file():
        end, done = json.loads(mark.read_text())
    else:
        end, done = time.time() // BLOCK_SECONDS * BLOCK_SECONDS, 0
    epoch = end - hours * 3600
    text = scratch / "series.txt"
    folder.mkdir(parents=True, exist_ok=True)
    starts = np.arange(epoch, end, BLOCK_SECONDS)[done:]
    for number, start in enumerate(track(starts, description=f"{len(series)} series, {hours} h", console=console)):
        times = np.arange(start, min(start + BLOCK_SECONDS, end), scrape_seconds)
        with text.open("w", encoding="utf-8") as output:
            write_openmetrics(series, times, epoch, output)
        load = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", str(text), str(folder)]
        subprocess.run(load, check=True, stdout=subprocess.DEVNULL)
        text.unlink()
        mark.write_text(json.dumps([end, done + number + 1]))
    return float(end - scrape_seconds)


def record(folder: Path, end: float, hours: int, scratch: Path) -> None:
    """Add to `folder` what the groups of recording rules that panels read would have made, once.

    Between whole blocks: promtool 2.42 makes nothing of other times, and does not say so.
    """
    mark = folder / "recorded.json"
    if mark.is_file():
        return
    shown = json.dumps(documents())
    groups = yaml.safe_load(RULES.read_text())["groups"]
    read = [group for group in groups if any(rule["record"] in shown for rule in group["rules"])]
    file = scratch / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": read}))
    with prometheus_on(folder, scratch) as server:
        command = ["promtool", "tsdb", "create-blocks-from", "rules", f"--url={server.prometheus.url}"]
        command += [f"--start={end - hours * 3600:.0f}", f"--end={end:.0f}", f"--output-dir={folder}", str(file)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    mark.write_text(json.dumps([group["name"] for group in read]))


@dataclass(frozen=True, slots=True)
class Server:
    """A Prometheus and its process."""

    prometheus: Prometheus
    process: psutil.Process

    def cpu_seconds(self) -> float:
        """What it has used since it started: other than time, it does not depend on who else is at work."""
        times = self.process.cpu_times()
        return float(times.user + times.system)


@contextmanager
def prometheus_on(folder: Path, scratch: Path) -> Iterator[Server]:
    """A server on these blocks that scrapes nothing."""
    config = scratch / "prometheus.yml"
    config.write_text("scrape_configs: []\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={folder}",
        "--storage.tsdb.retention.time=10y",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while not is_ready(f"http://{address}/-/ready"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"Prometheus did not start on {folder}: {' '.join(command)}")
            time.sleep(0.2)
        yield Server(Prometheus(f"http://{address}"), psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(60)


def is_ready(url: str) -> bool:
    try:
        return requests.get(url, timeout=1.0).status_code == 200
    except requests.RequestException:
        return False


def measured(server: Server, end: float, options: argparse.Namespace) -> dict[str, object]:
    """Figures over an hour and over all that there is."""
    figures: dict[str, object] = {"load_average": round(os.getloadavg()[0], 1)}
    for name, hours in (("hour", 1), ("all", options.hours)):
        looked = Looked(end - hours * 3600, end, options.scrape_seconds)
        wall: dict[str, list[float]] = {}
        cpu: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            for panel, wall_seconds, cpu_seconds in asked(server, looked):
                wall.setdefault(panel, []).append(wall_seconds)
                cpu.setdefault(panel, []).append(cpu_seconds)
        figures[name] = summary(name, wall, cpu)
    return figures


def asked(server: Server, looked: Looked) -> Iterator[tuple[str, float, float]]:
    """(panel, seconds until all its queries were answered, Prometheus' CPU seconds meanwhile) for each panel."""
    for document in documents().values():
        chosen = choose(document, server.prometheus, looked)
        for panel in document["panels"]:
            if panel["type"] != "row":
                before = server.cpu_seconds()
                answers = tuple(answers_of(panel, server.prometheus, looked, chosen))
                for answer in answers:
                    if answer.error:
                        raise SystemExit(f"{document['title']}: {panel['title']}: {answer.error}")
                title = f"{document['title']}: {panel['title']}"
                yield title, sum(answer.seconds for answer in answers), server.cpu_seconds() - before


def summary(name: str, wall: dict[str, list[float]], cpu: dict[str, list[float]]) -> dict[str, object]:
    """Milliseconds of the slowest panel and of the middle one; each counts with the median of its rounds."""
    medians = {panel: statistics.median(each) for panel, each in wall.items()}
    of_cpu = {panel: statistics.median(each) for panel, each in cpu.items()}
    slowest = sorted(medians, key=lambda panel: -medians[panel])
    for title in slowest[:8]:
        worst = max(wall[title]) * 1000
        console.print(
            f"{name}: {medians[title] * 1000:7.0f} ms (worst {worst:.0f}, CPU {of_cpu[title] * 1000:.0f})  {title}"
        )
    return {
        "slowest_panel": slowest[0],
        "slowest_ms": round(medians[slowest[0]] * 1000),
        "slowest_single_ms": round(max(max(each) for each in wall.values()) * 1000),
        "median_ms": round(statistics.median(medians.values()) * 1000, 1),
        "most_cpu_ms": round(max(of_cpu.values()) * 1000),
        "most_cpu_panel": max(of_cpu, key=lambda panel: of_cpu[panel]),
        "panels": len(medians),
    }


if __name__ == "__main__":
    sys.exit(main())

"""Scraped directly or asked from a real Prometheus: the same samples give the same window and the same snapshot.

Prometheus scrapes two exporters whose answers are numbered. Afterwards `ScrapeSource` is given the very same answers at
the very times that Prometheus noted for them, and both are asked for the same window.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import requests

from builders import chain_topology, placed, supervisors
from http_server import serving
from storm_operator.adapters.metrics import PrometheusSource, ScrapeSource
from storm_operator.core.metrics_window import MetricsWindow
from storm_operator.core.model import Assignment
from storm_operator.core.snapshot_builder import ClusterView, build_snapshot

PROMETHEUS = shutil.which("prometheus")
INSTALL = "apt-get install --no-install-recommends prometheus"
SCRAPES = 8
PATIENCE_SECONDS = 60.0

WORDS = chain_topology("words", ("spout", 1), ("count", 2))
MACHINES = supervisors(2)
SLOTS = placed(WORDS, {"spout": "s1", "count": "s2"})
VIEW = ClusterView(MACHINES, (WORDS,), Assignment(SLOTS))

pytestmark = [
    pytest.mark.functional,
    pytest.mark.skipif(
        PROMETHEUS is None, reason=f"NOT TESTED: there is no prometheus on this machine; to install it: {INSTALL}"
    ),
]


class Exporter:
    """One supervisor's agent. Answer n is always the same text; the exporter goes on to the next one by itself."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._served = 0
        self._lock = threading.Lock()

    def answer(self, path: str) -> tuple[int, bytes]:
        with self._lock:
            self._served += 1
            number = self._served
        return (200, self.text(number).encode()) if path == "/metrics" else (404, b"")

    def text(self, number: int) -> str:
        lines = [f'storm_test_answer{{supervisor="{self.host}"}} {number}']
        for executor, slot in SLOTS.items():
            if MACHINES[int(slot.supervisor_id[1:]) - 1].host == self.host:
                labels = (
                    f'supervisor="{self.host}",topology_id="words",component="{executor.component}",'
                    f'executor="{executor.label}",port="6700"'
                )
                task = executor.task_start
                lines += [
                    f"storm_executor_cpu_seconds_total{{{labels}}} {0.013 * number + task / 3}",
                    f"storm_executor_executed_tuples_total{{{labels}}} {70.5 * number * task}",
                    f"storm_executor_emitted_tuples_total{{{labels}}} {70.5 * number * task}",
                    f"storm_executor_acked_tuples_total{{{labels}}} {number * 3}",
                    f"storm_executor_failed_tuples_total{{{labels}}} {max(0, number - 4)}",
                    f"storm_executor_queue_length{{{labels}}} {(number * 7) % 5}",
                ]
        here = f'supervisor="{self.host}"'
        lines += [
            f"storm_supervisor_cpu_seconds_total{{{here}}} {1000 - 900 * (number >= 5) + number}",  # starts anew once
            f"storm_supervisor_cpu_capacity_cores{{{here}}} 2",
            f'storm_supervisor_coordinate_seconds{{{here},dimension="x"}} {-0.25 * number}',
            f'storm_supervisor_round_trip_seconds{{{here},peer="odd \\"name\\""}} {"NaN" if number == 6 else 0.002}',
            f'storm_worker_info{{{here},topology_id="words",port="6700",pid="4711"}} 1',
            f'storm_worker_snapshot_age_seconds{{{here},topology_id="words",port="6700"}} {0.01 * (number % 3)}',
            "python_info 1",
        ]
        if number % 2:
            lines.append(f"storm_test_every_other_total{{{here}}} {number}")
        if self.host == MACHINES[0].host:
            lines += self._spout_lines(number)
        return "\n".join(lines) + "\n"

    def _spout_lines(self, number: int) -> list[str]:
        spout = f'supervisor="{self.host}",topology_id="words",component="spout",executor="1-1"'
        traffic = f'supervisor="{self.host}",topology_id="words",source_task="1",stream="default"'
        return [
            f'storm_complete_latency_seconds_bucket{{{spout},le="0.001"}} {number}',
            f'storm_complete_latency_seconds_bucket{{{spout},le="+Inf"}} {2 * number}',
            f"storm_complete_latency_seconds_count{{{spout}}} {2 * number}",
            f"storm_complete_latency_seconds_sum{{{spout}}} {0.003 * number}",
            f'storm_traffic_tuples_total{{{traffic},target_task="2"}} {40.25 * number}',
            f'storm_traffic_tuples_total{{{traffic},target_task="3"}} {30.25 * number}',
        ]


class Replay:
    """The answers that Prometheus got, each at its time; at any other time the agent does not answer."""

    def __init__(self, exporter: Exporter, number_at: Mapping[float, int]) -> None:
        self._exporter = exporter
        self._number_at = number_at
        self.now_seconds = 0.0

    def answer(self, _: str) -> tuple[int, bytes]:
        number = self._number_at.get(self.now_seconds)
        return (503, b"") if number is None else (200, self._exporter.text(number).encode())


def until(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS:g} s in vain until {what}"
        time.sleep(0.05)


@pytest.fixture
def exporters() -> tuple[Exporter, ...]:
    return tuple(Exporter(machine.host) for machine in MACHINES)


@pytest.fixture
def prometheus(tmp_path: Path, exporters: tuple[Exporter, ...]) -> Iterator[str]:
    """A Prometheus that scrapes the exporters four times a second."""
    with serving(exporters[0].answer) as first, serving(exporters[1].answer) as second:
        targets = ", ".join(url.removeprefix("http://") for url in (first, second))
        config = tmp_path / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 250ms, scrape_timeout: 250ms}\n"
            f"scrape_configs: [{{job_name: agents, static_configs: [{{targets: [{targets}]}}]}}]\n"
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        log = tmp_path / "prometheus.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    str(PROMETHEUS),
                    f"--config.file={config}",
                    f"--storage.tsdb.path={tmp_path / 'data'}",
                    f"--web.listen-address={address}",
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            until("Prometheus is ready", lambda: process.poll() is not None or answers(f"http://{address}/-/ready"))
            assert process.poll() is None, log.read_text()
            yield f"http://{address}"
        finally:
            process.terminate()
            process.wait(30)


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=1.0).status_code == 200
    except requests.RequestException:
        return False


def answers_by_time(url: str, host: str) -> Mapping[float, int]:
    """When Prometheus got which answer of an agent."""
    query = f'storm_test_answer{{supervisor="{host}"}}[1h]'
    result = requests.get(f"{url}/api/v1/query", params={"query": query}, timeout=10.0).json()["data"]["result"]
    return {float(at): int(value) for at, value in result[0]["values"]} if result else {}


def replayed(exporters: tuple[Exporter, ...], times: tuple[Mapping[float, int], ...], seconds: float) -> MetricsWindow:
    """The window that ScrapeSource makes of the same answers."""
    moments = sorted({at for each in times for at in each})
    replays = [Replay(exporter, each) for exporter, each in zip(exporters, times, strict=True)]
    with serving(replays[0].answer) as first, serving(replays[1].answer) as second:
        source = ScrapeSource(lambda: {exporters[0].host: first, exporters[1].host: second})
        for moment in moments:
            for replay in replays:
                replay.now_seconds = moment
            window = source.read_window(moment, seconds)
    return window


def test_scrape_equals_prometheus(prometheus: str, exporters: tuple[Exporter, ...]) -> None:
    hosts = [exporter.host for exporter in exporters]
    until(
        f"each exporter was scraped {SCRAPES} times",
        lambda: all(len(answers_by_time(prometheus, host)) >= SCRAPES for host in hosts),
    )
    seen = [answers_by_time(prometheus, host) for host in hosts]
    end_seconds = max(min(sorted(each)[SCRAPES - 1] for each in seen), *(sorted(each)[1] for each in seen))
    times = tuple({at: number for at, number in each.items() if at <= end_seconds} for each in seen)
    end_seconds = max(at for each in times for at in each)
    # The window begins a millisecond after the first sample of all: that one must be left out by both.
    seconds = round(end_seconds - min(at for each in times for at in each) - 0.001, 3)

    asked = PrometheusSource(prometheus).read_window(end_seconds, seconds)
    scraped = replayed(exporters, times, seconds)

    assert asked.problems == ()
    assert set(asked.series) == set(scraped.series)
    # repr, because a NaN does not equal itself
    assert {str(key): repr(value) for key, value in asked.series.items()} == {
        str(key): repr(value) for key, value in scraped.series.items()
    }
    names = {key.name for key in asked.series}
    assert "python_info" not in names
    assert {"storm_complete_latency_seconds_bucket", "storm_test_every_other_total"} <= names
    assert min(len(each) for each in times) >= 5

    by_prometheus = build_snapshot(VIEW, asked, (), end_seconds)
    by_scrape = build_snapshot(VIEW, scraped, (), end_seconds)
    assert by_prometheus.completeness.ratio == 1.0
    assert by_prometheus.loads == by_scrape.loads
    assert list(by_prometheus.traffic.pairs()) == list(by_scrape.traffic.pairs())
    assert (by_prometheus.rates, by_prometheus.history) == (by_scrape.rates, by_scrape.history)

"""More agents than any of them probes, over real connections, up to the distances that a decision is made from."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

import pytest
from eventually import eventually

from operator_scene import free_port
from storm_operator.adapters.metrics import ScrapeSource
from storm_operator.agent.neighbours import MOST_NEIGHBOURS
from storm_operator.agent.options import AgentOptions
from storm_operator.agent.service import AgentService
from storm_operator.core.distances import Distances
from storm_operator.core.metrics_window import MetricsWindow
from storm_operator.core.model import Assignment, Supervisor
from storm_operator.core.snapshot_builder import ClusterView, build_snapshot

pytestmark = pytest.mark.functional

COUNT = 40
HOSTS = [f"127.0.77.{number}" for number in range(1, COUNT + 1)]
VIEW = ClusterView(tuple(Supervisor(f"id-{host}", host, (6700,)) for host in HOSTS), (), Assignment({}))
PATIENCE_SECONDS = 90.0  # of it two rounds of probes, ten seconds, on an idle machine


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScrapeSource]:
    """Scrapes all agents: each has a loopback address of its own, and they share a port."""
    port = free_port()
    addresses = {host: (host, port) for host in HOSTS}
    with ExitStack() as running:
        for host in HOSTS:
            peers = {peer: address for peer, address in addresses.items() if peer != host}
            run_agent(host, port, peers, tmp_path_factory.mktemp("agent"), running)
        yield ScrapeSource(lambda: {host: f"http://{host}:{port}/metrics" for host in HOSTS})


def run_agent(host: str, port: int, peers: dict[str, tuple[str, int]], folder: Path, running: ExitStack) -> None:
    service = AgentService(
        AgentOptions(
            host=host,
            metrics_dir=folder,
            listen=(host, port),
            peers=peers,
            cpu_capacity_millicores=1000.0,
            enforce=False,
        )
    )
    service.start()
    loop = threading.Thread(target=service.run, daemon=True)
    loop.start()
    running.callback(loop.join, 10)
    running.callback(service.stop)


def read(source: ScrapeSource) -> tuple[MetricsWindow, Distances]:
    now_seconds = time.time()
    window = source.read_window(now_seconds, 60.0)
    return window, build_snapshot(VIEW, window, (), now_seconds).distances


def test_each_probes_some_and_no_distance_is_unknown(source: ScrapeSource) -> None:
    def all_measured() -> tuple[MetricsWindow, Distances] | None:
        window, distances = read(source)
        return (window, distances) if len(distances.round_trip_ms) == COUNT * MOST_NEIGHBOURS else None

    settled = eventually(all_measured, "each measured its neighbours", seconds=PATIENCE_SECONDS)
    assert settled is not None
    window, distances = settled
    for supervisor in VIEW.supervisors:
        assert sum(own == supervisor.id for own, _ in distances.round_trip_ms) == MOST_NEIGHBOURS
    placed = {key.label("supervisor") for key, _ in window.named("storm_supervisor_coordinate_seconds")}
    assert placed == set(HOSTS)
    # All are at the same place here, where noise is as large as the distance: some are sure of their own, some not.
    for a, b in permutations((supervisor.id for supervisor in VIEW.supervisors), 2):
        assert 0.0 < distances.between_supervisors(a, b) == distances.between_supervisors(b, a)

"""What the exporter counts, against a topology that counts for itself what each of its tasks sends to each other."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from eventually import eventually

from storm_operator.adapters.metrics.page import fetch_text
from storm_operator.adapters.metrics.scrape import parse_metrics
from storm_operator.assembly import Assembly, assemble
from storm_operator.connection_options import connection_of
from storm_operator.core.model import ACKER_COMPONENT
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.snapshot_builder import build_snapshot
from storm_operator.core.topology_spec import JarSource, TopologySpec
from storm_operator.demo.recorder import Recorder
from storm_operator.local.cluster import LocalCluster

pytestmark = pytest.mark.functional

WINDOW_SECONDS = 90.0
ANSWER_SECONDS = 30.0
TRAFFIC = "storm_traffic_tuples_total"
STATED_ERROR = 0.03

Pairs = Mapping[tuple[int, int], float]


class Truth:
    """A TruthTopology on the cluster, idle until `load` is called."""

    def __init__(self, cluster: LocalCluster, jar: Path, folder: Path, exact: bool) -> None:
        self.name = f"truth-{'exact' if exact else 'sampled'}"
        self.cluster = cluster
        self.folder = folder
        self.rate_file = folder / "rate"
        self.set_rate(0)
        load = ("--rate", "steady:0", "--rate-file", str(self.rate_file), "--workers", "2")
        counting = ("--truth-dir", str(folder), "--conf", f"storm_operator.metrics.exact={str(exact).lower()}")
        args = ("--name", self.name, *load, *counting)
        source = JarSource(str(jar), "dev.stormoperator.workloads.TruthTopology", args)
        self.specs = {self.name: TopologySpec(self.name, source)}
        self.assembly: Assembly = assemble(connection_of(cluster), Recorder())
        self.assembly.lifecycle(lambda _: None).step(self.specs, time.time())

    def set_rate(self, tuples_per_second: int) -> None:
        fresh = self.rate_file.with_suffix(".new")
        fresh.write_text(f"steady:{tuples_per_second}")
        fresh.replace(self.rate_file)

    def load(self, tuples_per_second: int, seconds: float) -> None:
        """Run for a while, then wait until nothing is counted any more."""
        self.set_rate(tuples_per_second)
        time.sleep(seconds)  # this is the load itself, not a wait for something
        self.set_rate(0)
        counted: list[tuple[float, float]] = []

        def is_quiet() -> bool:
            counted.append((sum(self.sent().values()), sum(self.exported().values())))
            time.sleep(2.5)  # longer than the workers' period: two equal readings are two different snapshots
            return len(counted) > 2 and counted[-1] == counted[-2] == counted[-3]

        eventually(is_quiet, "the topology comes to rest")

    def sent(self) -> Pairs:
        """By (source task, target task), from the tasks' own files."""
        (self.folder / "write-now").touch()
        pairs: dict[tuple[int, int], float] = {}
        for file in self.folder.glob("*.json"):
            task = json.loads(file.read_text())
            for entry in task["sent"]:
                key = (task["task"], entry["target_task"])
                pairs[key] = pairs.get(key, 0.0) + entry["tuples"]
        return pairs

    def exported(self) -> Pairs:
        """The same from all agents."""
        pairs: dict[tuple[int, int], float] = {}
        for url in self.cluster.agent_urls.values():
            for key, value in parse_metrics(fetch_text(url, ANSWER_SECONDS)).items():
                if key.name == TRAFFIC and key.label("topology_id").startswith(f"{self.name}-"):
                    pair = (int(key.label("source_task")), int(key.label("target_task")))
                    pairs[pair] = pairs.get(pair, 0.0) + value
        return pairs

    def snapshot(self, window_seconds: float = WINDOW_SECONDS) -> ClusterSnapshot:
        """What the last `window_seconds` brought. Readings that fill less than a quarter of them count for nothing."""
        now = time.time()
        view = self.assembly.storm.read_view(self.specs)
        return build_snapshot(view, self.assembly.metrics.read_window(now, window_seconds), (), now)

    def is_complete(self) -> bool:
        found = self.snapshot().completeness
        own = [e for e in found.missing_executors if e.topology_id.startswith(f"{self.name}-")]
        # Threads that have handled no tuple yet have no CPU count: idle executors are expected to be incomplete.
        return found.expected_executors > 0 and not [p for p in found.problems if "no metrics" in p and own]


@contextmanager
def running(cluster: LocalCluster, jar: Path, folder: Path, exact: bool) -> Iterator[Truth]:
    truth = Truth(cluster, jar, folder, exact)
    try:
        eventually(truth.is_complete, "agents export the topology")
        yield truth
    finally:
        storm = truth.assembly.storm
        storm.kill(truth.name, 0)
        # Until then another try would find the name taken.
        eventually(lambda: all(each.name != truth.name for each in storm.running()), f"{truth.name} is gone")
        truth.assembly.close()


def test_exact_mode_counts_every_tuple_of_every_pair(
    storm_cluster: LocalCluster, workloads_jar: Path, tmp_path: Path
) -> None:
    with running(storm_cluster, workloads_jar, tmp_path, exact=True) as truth:
        truth.load(200, seconds=8.0)
        sent, exported = truth.sent(), truth.exported()
    assert sum(sent.values()) > 1000
    assert {pair: exported.get(pair) for pair in sent} == sent


def test_sampled_counts_fitted_to_the_margins_stay_within_the_stated_error(
    storm_cluster: LocalCluster, workloads_jar: Path, tmp_path: Path
) -> None:
    with running(storm_cluster, workloads_jar, tmp_path, exact=False) as truth:
        began = time.time()
        truth.snapshot()
        truth.load(1500, seconds=20.0)
        sent = truth.sent()
        exported = truth.exported()
        snapshot = truth.snapshot(window_seconds=time.time() - began + 1.0)
    total = sum(sent.values())
    assert sum(exported.get(pair, 0.0) for pair in sent) == pytest.approx(total, rel=STATED_ERROR)
    fitted = {
        (source.task_start, target.task_start): rate
        for source, target, rate in snapshot.traffic.pairs()
        if ACKER_COMPONENT not in (source.component, target.component)
        and source.topology_id.startswith("truth-sampled-")
    }
    scale = total / sum(fitted.values())
    error = sum(abs(fitted.get(pair, 0.0) * scale - count) for pair, count in sent.items()) / total
    assert error <= STATED_ERROR, f"weighted error {error:.2%}"

"""A WordCount on the real cluster, and the parts of the operator that put plans in force."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_bench import Bench

from storm_operator.adapters import worker_probe
from storm_operator.local.cluster import LocalCluster

PROBE_SECONDS = 15.0
"""An agent that does not answer in time is left out, and its workers look as if they had ended."""


@pytest.fixture(scope="module")
def bench(storm_cluster: LocalCluster, workloads_jar: Path) -> Iterator[Bench]:
    """A WordCount at 60 sentences a second, in two workers."""
    args = ("--rate", "steady:60", "--parallelism", "split=2,count=2", "--workers", "2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_probe, "TIMEOUT_SECONDS", PROBE_SECONDS)
        made = Bench.submit(storm_cluster, str(workloads_jar), "plan-words", args, executors=6)
        yield made
        made.close()

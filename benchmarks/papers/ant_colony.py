"""Wang, Wang (003, known from its abstract): ant colony against round robin, WordCount on four nodes.

The abstract tells three figures and no workload. Mean CPU load and its standard deviation over the nodes are in percent
of a node; "efficiency" is not explained: given here is tuples acked per core-second used.
"""

from __future__ import annotations

import numpy as np
from papers.contestants import OURS, Contestant
from papers.experiment import Case, Figures, Run

from storm_operator.simulated_loop import Scenario
from storm_operator.simulator.model import ClusterModel, SimulatedSupervisor
from storm_operator.simulator.workloads import word_count

NODE_MILLICORES = 2000.0
ROUND_ROBIN = Contestant("round-robin", policy="round-robin", acts=False)
ANT_COLONY = Contestant("ant-colony", policy="ant-colony")


def words(seed: int) -> Scenario:
    """WordCount with four executors a component, at a steady rate that keeps the nodes half busy."""
    machines = tuple(SimulatedSupervisor(f"node-{n}", f"node-{n}", (6700, 6701), NODE_MILLICORES) for n in (1, 2, 3, 4))
    topology = word_count(
        8_000.0,
        dict.fromkeys(("sentences", "split", "count"), 4),
        {"sentences": 0.03, "split": 0.09, "count": 0.012},
        ackers=4,
        num_workers=4,
    )
    return Scenario("ant colony", ClusterModel(machines, (topology,)), 300.0, warm_up_seconds=150.0, seed=seed)


def cpu_load(run: Run) -> Figures:
    percent = np.mean(np.array(run.supervisor_cores), axis=0) * 1000.0 / NODE_MILLICORES * 100.0
    acked = run.report.sums.acked / max(run.report.sums.cpu_used_core_seconds, 1e-9)
    figures = {
        "mean_cpu_percent": float(percent.mean()),
        "cpu_deviation_percent": float(percent.std()),
        "acked_per_core_second": acked,
        "nodes": run.report.mean_of("supervisors_used"),
        "plans": float(len(run.report.plans)),
    }
    mean = run.report.mean_latency_ms()
    if mean is not None:
        figures["latency_ms"] = mean
    return figures


CASES = (
    Case(
        "CPU load of four nodes",
        words,
        (ROUND_ROBIN, ANT_COLONY, *OURS),
        cpu_load,
        {
            "ant-colony": {
                "mean_cpu_percent_below_first_percent": 26.0,
                "cpu_deviation_percent_below_first_percent": 3.5,
                "acked_per_core_second_above_first_percent": 21.6,
            }
        },
    ),
)

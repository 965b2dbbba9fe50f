"""What it costs to keep stateful executors in a worker of their own, and what it saves; the last line is JSON.

One topology on one supervisor, together in one worker and apart in two, in turns. The cost is median complete latency;
the saving, that moving the stateless executors away restarts the worker with the state only where they live together.
"""

from __future__ import annotations

import json
import statistics

import typer
from cluster_bench import Bench, median_latency_ms
from rich.console import Console

from storm_operator.core.model import Assignment
from storm_operator.core.plan_diff import diff_assignments
from storm_operator.local.build import plugin_jar, workloads_jar
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.spec import LocalClusterSpec

STATEFUL = "count"


def main(turns: int = 3, seconds: float = 20.0, settle_seconds: float = 15.0) -> None:
    """Measure both ways `turns` times, each for `seconds`."""
    console = Console(stderr=True)
    spec = LocalClusterSpec(name="bench-sep", subnet="10.93.0.0/24", machines=2, plugin_jar=plugin_jar())
    medians: dict[str, list[float]] = {"together": [], "apart": []}
    with LocalCluster(spec) as cluster:
        args = ("--rate", "steady:200", "--parallelism", "split=2,count=2")
        bench = Bench.submit(cluster, str(workloads_jar()), "words", args, executors=6)
        try:
            layouts = {"together": _together(bench), "apart": bench.layout(0)}
            for turn in range(turns):
                for way, layout in layouts.items():
                    bench.apply(layout)
                    median_latency_ms(bench, settle_seconds)
                    medians[way].append(median_latency_ms(bench, seconds))
                    console.log(f"turn {turn + 1}, {way}: {medians[way][-1]:.2f} ms")
            lost = {way: _state_lost(layout, bench.layout(1)) for way, layout in layouts.items()}
        finally:
            bench.close()
    for way, values in medians.items():
        console.print(
            f"{way}: median {statistics.median(values):.2f} ms ({min(values):.2f} to {max(values):.2f}); moving the"
            f" stateless executors loses the state of {lost[way]} executors"
        )
    print(json.dumps({"median_latency_ms": medians, "stateful_executors_restarted_by_a_stateless_move": lost}))


def _together(bench: Bench) -> Assignment:
    apart = bench.layout(0)
    home = min(apart.slot_of.values())
    return Assignment(dict.fromkeys(apart.slot_of, home))


def _state_lost(base: Assignment, elsewhere: Assignment) -> int:
    """Stateful executors whose worker restarts when the stateless ones move to another supervisor."""
    free = next(slot for e, slot in elsewhere.slot_of.items() if e.component == STATEFUL)
    target = base.with_moves({e: free for e in base.slot_of if e.component != STATEFUL})
    restarted = set(diff_assignments(base, target).restarted_workers)
    return sum(1 for e, slot in base.slot_of.items() if e.component == STATEFUL and slot in restarted)


if __name__ == "__main__":
    typer.run(main)

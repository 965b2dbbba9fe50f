"""Liu's isolation experiment: two topologies on one supervisor, one turns greedy, with enforcement and without.

Both are promised what the operator finds them to need while all is quiet. Then the greedy one gets far more work. The
phases take turns; the figure is the other topology's median complete latency as a ratio of its quiet value
in the same turn. The last line is JSON.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path

import typer
from cluster_bench import OBSERVE, Bench, median_latency_ms
from rich.console import Console
from rich.table import Table

from storm_operator.core.demand import estimate_demand
from storm_operator.core.model import Executor
from storm_operator.core.settings import ResourceSettings
from storm_operator.demo.scenario import RESOURCES
from storm_operator.local.build import plugin_jar, workloads_jar
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.spec import LocalClusterSpec

QUIET, GREEDY = 5, 400
PHASES = ("quiet", "greedy, enforced", "greedy, not enforced")


def main(turns: int = 3, seconds: float = 20.0, warm_up_seconds: float = 30.0) -> None:
    """Play all phases `turns` times, each measured for `seconds`."""
    console = Console(stderr=True)
    spec = LocalClusterSpec(name="bench-iso", subnet="10.92.0.0/24", machines=2, plugin_jar=plugin_jar())
    with LocalCluster(spec) as cluster:
        rate_file = cluster.layout.data_dir / "greedy.rate"
        _set_rate(rate_file, QUIET)
        jar = str(workloads_jar())
        calm = Bench.submit(cluster, jar, "calm", ("--rate", "steady:50", "--parallelism", "split=1,count=1"), 4)
        work = ("--cpu-micros", "split=1000,count=2000", "--rate-file", str(rate_file))
        greedy = Bench.submit(cluster, jar, "greedy", ("--parallelism", "split=2,count=3", *work), 7)
        try:
            medians = _play(calm, greedy, rate_file, turns, seconds, warm_up_seconds, console)
        finally:
            greedy.close()
            calm.close()
    _print(medians, console)
    ratios = {
        phase: [median / quiet for median, quiet in zip(medians[phase], medians["quiet"], strict=True)]
        for phase in PHASES[1:]
    }
    print(json.dumps({"median_latency_ms": medians, "ratio_to_quiet": ratios}))


def _play(
    calm: Bench, greedy: Bench, rate_file: Path, turns: int, seconds: float, warm_up_seconds: float, console: Console
) -> dict[str, list[float]]:
    calm.apply(calm.layout(0, first_port=0))
    greedy.apply(greedy.layout(0, first_port=2))
    median_latency_ms(calm, warm_up_seconds)
    promised = _promised(calm)
    console.log("promised, millicores: " + ", ".join(f"{e.component} {m:.0f}" for e, m in sorted(promised.items())))
    medians: dict[str, list[float]] = {phase: [] for phase in PHASES}
    for turn in range(turns):
        for phase, rate, limits in zip(PHASES, (QUIET, GREEDY, GREEDY), (promised, promised, {}), strict=True):
            _set_rate(rate_file, rate)
            for bench in (calm, greedy):
                bench.assembly.store.write_cpu_limits(bench.topology_id, "isolation", limits)
            median_latency_ms(calm, 10.0)  # what the change stirred up settles
            medians[phase].append(median_latency_ms(calm, seconds))
            console.log(f"turn {turn + 1}, {phase}: {medians[phase][-1]:.2f} ms")
    return medians


def _promised(bench: Bench) -> Mapping[Executor, float]:
    """What the operator finds every executor on the cluster to need right now."""
    snapshot = bench.snapshot()
    settings = ResourceSettings(RESOURCES.theta_millicores, RESOURCES.floor_millicores)
    return estimate_demand(snapshot, None, settings, phi=OBSERVE.history_periods).millicores


def _set_rate(file: Path, rate: int) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(f"steady:{rate}")
    fresh.replace(file)


def _print(medians: Mapping[str, list[float]], console: Console) -> None:
    table = Table(title="the calm topology's median complete latency")
    for heading in ("phase", "median, ms", "ratio to quiet"):
        table.add_column(heading)
    for phase in PHASES:
        ratios = [a / b for a, b in zip(medians[phase], medians["quiet"], strict=True)]
        table.add_row(phase, _spread(medians[phase]), _spread(ratios))
    console.print(table)


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    typer.run(main)

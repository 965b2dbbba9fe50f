"""Liu et al. (004): WordCount with regular and random load, the HTTP monitor, two topologies side by side.

Three nodes of six cores, 12 executors in WordCount (four a component), a period of 10 s. What the paper leaves open is
the CPU that a tuple costs; its table bounds it: 70% of a core an executor carries the peak of 26,000 tuples/s, 30% does
not carry the mean of 14,100. So WordCount's dearest bolt costs 0.1 ms a sentence. "Equal" R-Storm holds each component
to the mean of what `liu` gave it in a run with the same seed. Shuffle does not prefer near tasks, as in Storm 1.1.1.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from functools import partial

from papers.contestants import ADAPTIVE_A_FIRST, DEFAULT, OURS, Contestant
from papers.experiment import Case, Figures, Run, play

from storm_operator.simulated_loop import Scenario
from storm_operator.simulator.load import Constant, LoadShape, RandomLevels, Triangle
from storm_operator.simulator.model import ClusterModel, SimulatedSupervisor, SimulatedTopology
from storm_operator.simulator.workloads import LIU_REGULAR, http_monitor, word_count

WARM_UP_SECONDS = 60.0
MEASURED_SECONDS = 600.0
"""One up and down of figure 6, where the paper has two."""
WORKERS = 3
WORD_COUNT_CPU_MS = {"sentences": 0.03, "split": 0.09, "count": 0.012}
PARALLELISM = dict.fromkeys(("sentences", "split", "count"), 4)

LIU = Contestant("liu", policy="liu")
EQUAL = "r-storm (equal)"


def r_storm(percent: int) -> Contestant:
    millicores = 10.0 * percent
    return Contestant(
        f"r-storm ({percent}%)",
        policy="r-storm",
        parameters=(("cpu_millicores", millicores),),
        acts=False,
        fixed_millicores=millicores,
    )


def _scenario(
    name: str, topologies: tuple[SimulatedTopology, ...], seed: int, cores: float = 6.0, nodes: int = 3
) -> Scenario:
    ports = (6700, 6701, 6702, 6703)
    machines = tuple(SimulatedSupervisor(f"node-{n}", f"node-{n}", ports, 1000.0 * cores) for n in range(1, nodes + 1))
    seconds = WARM_UP_SECONDS + MEASURED_SECONDS
    return Scenario(
        name,
        ClusterModel(machines, topologies),
        seconds,
        warm_up_seconds=WARM_UP_SECONDS,
        seed=seed,
        step_seconds=1.0,
        drawn_trees=16,
    )


def _words(load: LoadShape, topology_id: str = "wordcount-1", name: str = "wordcount") -> SimulatedTopology:
    return word_count(
        load,
        PARALLELISM,
        WORD_COUNT_CPU_MS,
        topology_id,
        name,
        ackers=WORKERS,
        num_workers=WORKERS,
        source_keeps_backlog=True,
        replays_failed=True,
        load_aware=False,
    )


def regular(seed: int) -> Scenario:
    """Figure 6: up for five minutes, down for five, twice."""
    return _scenario("WordCount, regular", (_words(LIU_REGULAR),), seed)


def at_random(seed: int) -> Scenario:
    """Figure 9: a random number of producers every 10 s; a throughput of 107,000 in 10 s is 820 tuples/s each."""
    return _scenario("WordCount, random", (_words(RandomLevels(820.0, seed=seed)),), seed)


def http(seed: int, peak: float = 81_000.0) -> Scenario:
    """Figure 11: 33 hours of requests by day and night; here twenty minutes between half and 1.5 times the mean."""
    load = Triangle(low=27_000.0, high=peak)
    branches = [f"{kind}{part}" for part in ("country", "isp", "prefix") for kind in ("", "stat-")]
    executors = dict.fromkeys(("requests", "retrieve", *branches, "alarm"), 4)
    cpu_ms = {"requests": 0.012, "retrieve": 0.02, **dict.fromkeys(branches, 0.014), "alarm": 0.01}
    topology = http_monitor(
        load,
        executors,
        cpu_ms,
        ackers=6,
        num_workers=WORKERS,
        source_keeps_backlog=True,
        replays_failed=True,
        load_aware=False,
    )
    return _scenario("HTTP monitor", (topology,), seed)


def side_by_side(seed: int) -> Scenario:
    """Figure 12: A at a constant rate, B's load from little to more than the machines have."""
    a = _words(Constant(6_000.0), topology_id="a-1", name="A")
    b = _words(RandomLevels(2_400.0, seed=seed), topology_id="b-1", name="B")
    return _scenario("A beside B", (a, b), seed, cores=3.0)


def on_shared_machines(seed: int) -> Scenario:
    """Figure 12 where R-Storm lets A and B share a machine: A declares what it needs, B far less than it uses."""
    a = _words(Constant(9_000.0), topology_id="a-1", name="A")
    b = _words(RandomLevels(2_400.0, seed=seed), topology_id="b-1", name="B")
    return _scenario("A and B share machines", (a, b), seed, cores=3.0, nodes=2)


def table(topology: str, run: Run) -> Figures:
    """Table II's columns: complete time (ms), throughput and failed per 10 s, workers and nodes.

    Times are means over the periods of which the operator knows one (`median_ms` and `deviation_ms` are over these
    periods, too), the others over all of the time; `cores` is the CPU that was used.
    """
    ones = [point.topologies[topology] for point in run.report.counted_points]
    latencies = [one.latency_mean_ms for one in ones if one.latency_mean_ms is not None]
    period = run.report.period_seconds
    figures = {
        "throughput": period * run.acked[topology],
        "failed": period * run.failed[topology],
        "workers": statistics.fmean(one.workers for one in ones),
        "nodes": statistics.fmean(one.supervisors for one in ones),
        "cores": run.report.mean_of("cpu_used_cores"),
        "plans": float(len(run.report.plans)),
    }
    if latencies:
        figures["complete_ms"] = statistics.fmean(latencies)
        figures["median_ms"] = statistics.median(latencies)
        figures["deviation_ms"] = statistics.pstdev(latencies)
    return figures


def both(run: Run) -> Figures:
    """A's figures, and what they cost B: whoever gives A a machine of its own takes it from B."""
    beside = table("B", run)
    figures = table("A", run)
    return figures | {f"b_{name}": beside[name] for name in ("throughput", "failed", "complete_ms") if name in beside}


def _equal_to_liu(scenario: Scenario, contestant: Contestant, seed: int) -> tuple[Scenario, Contestant]:
    if contestant.name != EQUAL:
        return scenario, contestant
    limits = [noted for noted in play(scenario, LIU).limits if noted]
    means = {name: statistics.fmean(noted[name] for noted in limits if name in noted) for name in limits[-1]}
    per_executor = statistics.fmean(means.values())
    equal = replace(
        contestant,
        parameters=(("cpu_millicores", float(math.ceil(per_executor))),),
        component_millicores=tuple(sorted(means.items())),
    )
    return scenario, equal


FIELD = (DEFAULT, r_storm(30), r_storm(70), Contestant(EQUAL, policy="r-storm", acts=False), LIU, *OURS)

DECLARED = (("a-1", 420.0), ("b-1", 25.0))
SHARED = Contestant("r-storm, shared", policy="r-storm", acts=False)
ISOLATED = Contestant("r-storm, isolated", policy="r-storm", acts=False, fixed_millicores=400.0)


def _published(*rows: tuple[str, float, float, float]) -> dict[str, dict[str, float]]:
    return {name: {"complete_ms": ms, "throughput": acked, "failed": failed} for name, ms, acked, failed in rows}


CASES = (
    Case(
        "WordCount, regular load",
        regular,
        FIELD,
        partial(table, "wordcount"),
        published=_published(
            ("r-storm (30%)", 13115.4, 93897.0, 4629.0),
            ("r-storm (70%)", 23.9, 142710.0, 0.0),
            (EQUAL, 5079.0, 143897.0, 0.0),
            ("liu", 7.6, 140995.0, 699.0),
        ),
        prepare=_equal_to_liu,
        headline="complete_ms",
    ),
    Case(
        "WordCount, random load",
        at_random,
        FIELD,
        partial(table, "wordcount"),
        published=_published(
            ("r-storm (30%)", 14263.0, 85097.0, 2830.0),
            ("r-storm (70%)", 4.8, 107120.0, 0.0),
            (EQUAL, 1857.1, 106940.0, 0.0),
            ("liu", 66.5, 97474.0, 1225.0),
        ),
        prepare=_equal_to_liu,
        headline="complete_ms",
    ),
    Case(
        "HTTP monitor",
        http,
        (DEFAULT, Contestant(EQUAL, policy="r-storm", acts=False), LIU, *OURS),
        partial(table, "http-monitor"),
        published=_published((EQUAL, 638.0, 530330.0, 0.0), ("liu", 499.0, 545530.0, 1881.0)),
        prepare=_equal_to_liu,
        headline="complete_ms",
    ),
    Case(
        "HTTP monitor, 76,000/s at the peak",
        partial(http, peak=76_000.0),
        (DEFAULT, Contestant(EQUAL, policy="r-storm", acts=False), LIU, *OURS),
        partial(table, "http-monitor"),
        prepare=_equal_to_liu,
        headline="complete_ms",
    ),
    Case(
        "A at a constant rate beside B's changing load",
        side_by_side,
        (SHARED, ISOLATED, LIU, *OURS, ADAPTIVE_A_FIRST),
        both,
        headline="complete_ms",
    ),
    Case(
        "A and B share machines, B declares too little",
        on_shared_machines,
        (
            replace(SHARED, declared=DECLARED),
            replace(ISOLATED, fixed_millicores=None, declared=DECLARED, holds_to_declared=True),
            LIU,
            *OURS,
            ADAPTIVE_A_FIRST,
        ),
        both,
        headline="complete_ms",
    ),
)

"""Aniello et al. (000) and Jayalakshmi et al. (002): the reference chain and the Grand Challenge's first query.

Eight nodes with five slots and two cores of 2.8 GHz. Eight workers: the paper's alpha of 0 to 0.2 gives 4 to 8
executors a slot for 30 executors only then. Complete latency is measured, acknowledgement included, where the papers
have the time to the last bolt. What a bolt computes is not told: next to nothing, as in the chain of the papers.
Shuffle is blind, as in the Storm of 2013, which did not prefer near tasks yet.
"""

from __future__ import annotations

from functools import partial

from papers.contestants import DEFAULT, OURS, Contestant
from papers.experiment import Case, Figures, Run

from storm_operator.core.distances import Distances
from storm_operator.simulated_loop import Scenario
from storm_operator.simulator.model import ClusterModel, SimulatedSupervisor, SimulatedTopology
from storm_operator.simulator.workloads import grand_challenge_query1, reference_chain

WORKERS = 8
HEADLINE = "latency_ms"
WARM_UP_SECONDS, MEASURED_SECONDS = 120.0, 120.0
LAN_ROUND_TRIP_MS = 0.5
CHAIN_CPU_MS = dict.fromkeys(("spout", "simple", "stateful", "ack"), 0.05)

OFFLINE = Contestant("aniello-offline", policy="aniello-offline", acts=False)
ONLINE = Contestant("aniello-online", policy="aniello-online")
ETW_WTN = Contestant("etw-wtn", policy="etw-wtn")
FIELD = (DEFAULT, OFFLINE, ONLINE, ETW_WTN, *OURS)


def _scenario(topology: SimulatedTopology, seed: int) -> Scenario:
    """Counted once everybody has found a place and workers run: the papers' curves after their first minute."""
    ports = tuple(range(6700, 6705))
    machines = tuple(SimulatedSupervisor(f"node-{n}", f"node-{n}", ports, 2000.0) for n in range(1, 9))
    model = ClusterModel(machines, (topology,), Distances({}, default_ms=LAN_ROUND_TRIP_MS))
    seconds = WARM_UP_SECONDS + MEASURED_SECONDS
    return Scenario(topology.name, model, seconds, warm_up_seconds=WARM_UP_SECONDS, seed=seed, drawn_trees=64)


def mixed_chain(seed: int) -> Scenario:
    """Figure 3: seven stages; four executors of the spout, three of each simple and two of each stateful bolt."""
    topology = reference_chain(400.0, 7, cpu_ms=CHAIN_CPU_MS, num_workers=WORKERS, ackers=3, load_aware=False)
    return _scenario(topology, seed)


def even_chain(stages: int, replication: int, rate_each: float, seed: int) -> Scenario:
    """Figures 4 to 9: every component with `replication` executors, each of the spout's at `rate_each`."""
    parallelism = dict.fromkeys(("spout", "simple", "stateful", "ack"), replication)
    topology = reference_chain(
        rate_each * replication,
        stages,
        parallelism,
        CHAIN_CPU_MS,
        num_workers=WORKERS,
        ackers=replication,
        load_aware=False,
    )
    return _scenario(topology, seed)


def query1(seed: int) -> Scenario:
    """Figure 10: 32 sensors at 200 Hz."""
    cpu_ms = {"sensor": 0.01, "speed": 0.02, "analysis": 0.03}
    return _scenario(grand_challenge_query1(cpu_ms=cpu_ms, num_workers=WORKERS, ackers=2, load_aware=False), seed)


def latency(run: Run) -> Figures:
    """Mean complete latency (ms) and tuples/s between nodes."""
    figures = {
        "inter_node": run.report.mean_of("inter_supervisor_tuples_per_second"),
        "nodes": run.report.mean_of("supervisors_used"),
        "plans": float(len(run.report.plans)),
    }
    mean = run.report.mean_latency_ms()
    if mean is not None:
        figures["latency_ms"] = mean
    return figures


def _with_alpha(alpha: float) -> tuple[Contestant, ...]:
    given = (("alpha", alpha),)
    return (
        DEFAULT,
        Contestant("aniello-offline", policy="aniello-offline", parameters=given, acts=False),
        Contestant("aniello-online", policy="aniello-online", parameters=given),
        Contestant("etw-wtn", policy="etw-wtn", parameters=given),
        *OURS,
    )


QUERY_PUBLISHED = {"aniello-online": {"least_below_default_percent": 20.0, "most_below_default_percent": 30.0}}
CHAIN_PUBLISHED = {"etw-wtn": {"least_below_default_percent": 15.0, "most_below_default_percent": 25.0}}
"""000 has curves for the chain and no figures; 002 tells one range for all of its runs."""

CASES = (
    Case("reference chain, 7 stages, 4/3/2 executors", mixed_chain, FIELD, latency, CHAIN_PUBLISHED, headline=HEADLINE),
    *(
        Case(
            f"chain, {stages} stages, {copies} executors each",
            partial(even_chain, stages, copies, 100.0),
            FIELD,
            latency,
            headline=HEADLINE,
        )
        for copies in (2, 4)
        for stages in (3, 7)
    ),
    *(
        Case(
            f"chain, 5 stages, 5 executors each, alpha {alpha}",
            partial(even_chain, 5, 5, 1000.0),
            _with_alpha(alpha),
            latency,
            headline=HEADLINE,
        )
        for alpha in (0.0, 0.2)
    ),
    Case("Grand Challenge, query 1", query1, FIELD, latency, QUERY_PUBLISHED, headline=HEADLINE),
)

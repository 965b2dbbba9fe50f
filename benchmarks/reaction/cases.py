"""What the reaction benchmark plays: the papers' workloads on one cluster, and loads that change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from papers.contestants import as_published

from storm_operator.core.distances import Distances
from storm_operator.core.placement.registry import POLICIES
from storm_operator.core.settings import Forecast, SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_loop import Scenario
from storm_operator.simulator.load import Constant, LoadShape, Noisy, RandomLevels, Sine, Spiky, Step
from storm_operator.simulator.model import ClusterModel, SimulatedSupervisor, SimulatedTopology
from storm_operator.simulator.workloads import (
    grand_challenge_query1,
    http_monitor,
    reference_chain,
    source_to_consumer,
    word_count,
)

SUPERVISORS = 6
SUPERVISOR_MILLICORES = 2000.0
ROUND_TRIP_MS = 2.0
PORTS = (6700, 6701, 6702, 6703)
WARM_UP_SECONDS = 120.0
NOISE = 0.1
"""Deviation of the load from its mean, a tenth of it."""
NOISE_HELD_SECONDS = 10.0
"""As long as a control period: shorter noise is averaged out before anybody sees it."""
STEP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Workload:
    """A topology by its load; at `base` tuples per second it needs a quarter of the cluster or less."""

    name: str
    base: float
    topology: Callable[[LoadShape], SimulatedTopology]


WORKLOADS: Mapping[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload(
            "wordcount",
            600.0,
            lambda load: word_count(
                load, {"split": 4, "count": 6}, {"split": 0.2, "count": 0.25}, num_workers=6, name="wordcount"
            ),
        ),
        Workload(
            "http-monitor",
            800.0,
            lambda load: http_monitor(
                load,
                cpu_ms={"retrieve": 0.2}
                | {name: 0.15 for part in ("country", "isp", "prefix") for name in (part, f"stat-{part}")},
                num_workers=6,
                name="http-monitor",
            ),
        ),
        Workload(
            "reference-chain",
            400.0,
            lambda load: reference_chain(
                load, cpu_ms={"simple": 0.3, "stateful": 0.3, "ack": 0.3}, num_workers=6, name="reference-chain"
            ),
        ),
        Workload(
            "grand-challenge-query1",
            3_000.0,
            lambda load: grand_challenge_query1(
                load, cpu_ms={"speed": 0.2, "analysis": 0.1}, num_workers=6, name="grand-challenge-query1"
            ),
        ),
        Workload(
            "application", 40.0, lambda load: source_to_consumer(load, cpu_ms=5.0, num_workers=6, name="application")
        ),
    )
}


def noisy_constant(rate: float, duration_seconds: float, seed: int, held_seconds: float) -> LoadShape:
    """`rate` with 10% normal noise, drawn anew after each `held_seconds`."""
    if held_seconds <= 1.0:
        return Noisy(Constant(rate), NOISE, seed)
    draws = np.random.default_rng(seed).normal(1.0, NOISE, int(duration_seconds / held_seconds) + 1)
    return Step(tuple((n * held_seconds, rate * max(0.0, float(draw))) for n, draw in enumerate(draws)))


def changing_load(kind: str, base: float, duration_seconds: float, seed: int) -> LoadShape:
    """Loads between `base` and three times as much. `seed` moves changes in time and draws noise and levels."""
    shift = float(np.random.default_rng(seed).uniform(0.0, 60.0))
    third = (duration_seconds - WARM_UP_SECONDS) / 3.0
    if kind == "step":
        up, down = WARM_UP_SECONDS + third / 2.0 + shift, WARM_UP_SECONDS + 2.0 * third + shift
        return Noisy(Step(((0.0, base), (up, 3.0 * base), (down, base))), 0.05, seed)
    if kind == "sine":
        return Noisy(Sine(base, 3.0 * base, 540.0 + shift), 0.05, seed)
    if kind == "random":
        return RandomLevels(base / 5.0, fewest=5, most=15, interval_seconds=60.0, seed=seed)
    if kind == "spike":
        at = tuple(WARM_UP_SECONDS + shift + n * 240.0 + 60.0 for n in range(int(duration_seconds / 240.0)))
        return Noisy(Spiky(Constant(base), at, 20.0, 3.0), 0.05, seed)
    if kind == "noise":
        return noisy_constant(2.0 * base, duration_seconds, seed, NOISE_HELD_SECONDS)
    raise ValueError(f"load {kind!r}: there are {', '.join(LOADS)}")


LOADS = ("step", "sine", "random", "spike", "noise")


def scenario(workload: Workload, load: LoadShape, duration_seconds: float, seed: int) -> Scenario:
    """Six supervisors of two cores, two milliseconds apart; everything where Storm's Even scheduler puts it."""
    machines = tuple(
        SimulatedSupervisor(f"s{n}", f"host-{n}", PORTS, SUPERVISOR_MILLICORES) for n in range(1, SUPERVISORS + 1)
    )
    model = ClusterModel(machines, (workload.topology(load),), Distances({}, default_ms=ROUND_TRIP_MS))
    return Scenario(
        workload.name, model, duration_seconds, warm_up_seconds=WARM_UP_SECONDS, seed=seed, step_seconds=STEP_SECONDS
    )


OURS: Mapping[str, SchedulingSettings] = {
    "adaptive": SchedulingSettings(),
    "adaptive, Line": SchedulingSettings(forecast=Forecast.LINE),
}
R_STORM = "r-storm"
"""Goes by declared CPU alone: each executor declares an equal share of `DECLARED_FRACTION`, as in bench-real."""
UNDECLARED = "r-storm, nothing declared"
"""The same with Storm's own default for every executor."""
DECLARED_FRACTION = 0.8
"""Of the cluster's CPU: what a user says who sizes for saturation without having measured."""
STORM = "storm"
"""Nobody manages: Storm's Even scheduler at the start, no CPU limits."""
CONTESTANTS = (*OURS, *(name for name in POLICIES if name not in OURS), UNDECLARED, STORM)


def specs(workload: Workload, contestant: str) -> dict[str, TopologySpec] | None:
    """`adaptive` with our defaults; the published schedulers as published, but with CPU limits for all. None: Storm."""
    if contestant == STORM:
        return None
    scheduling = OURS.get(contestant) or _published(workload, contestant)
    return {workload.name: TopologySpec(workload.name, AdoptSource(), scheduling=scheduling)}


def _published(workload: Workload, contestant: str) -> SchedulingSettings:
    if contestant == UNDECLARED:
        return as_published(R_STORM)
    declared = (("cpu_millicores", declared_millicores(workload)),)
    return as_published(contestant, declared if contestant == R_STORM else ())


def declared_millicores(workload: Workload) -> float:
    """What each executor of the workload declares to need, ackers too."""
    executors = workload.topology(Constant(workload.base)).as_topology().executors
    return DECLARED_FRACTION * SUPERVISORS * SUPERVISOR_MILLICORES / len(executors)

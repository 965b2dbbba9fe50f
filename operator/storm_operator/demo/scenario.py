"""What the demo plays: two topologies, the phases, the load in each, and the settings under which they are managed."""

from __future__ import annotations

from dataclasses import dataclass

from storm_operator.core.settings import Mode, ResourceSettings, SchedulingSettings
from storm_operator.core.topology_spec import JarSource, TopologySpec

BASE, PEAK, LOW = 0, 1, 2
"""Loads, as `Workload.rates` has them."""
NORMAL_MINUTES = 6.0
PERIOD_SECONDS = 5.0
EVEN, MANAGED = "Even", "managed"
"""Titles of the two phases that are compared."""
PACKAGE = "dev.stormoperator.workloads"

RESOURCES = ResourceSettings(theta_millicores=50.0, floor_millicores=50.0)
"""A machine of the demo has one core: a fifth of a core (the paper's theta) would be too coarse."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One topology of the demo; `rates` are tuples per second in (base, peak, low) load."""

    name: str
    main_class: str
    rates: tuple[int, int, int]
    args: tuple[str, ...]


WORKLOADS = (
    Workload(
        "wordcount",
        f"{PACKAGE}.WordCount",
        (70, 350, 25),
        ("--workers", "4", "--parallelism", "sentences=1,split=2,count=3", "--cpu-micros", "split=200,count=250"),
    ),
    Workload(
        "chain",
        f"{PACKAGE}.ReferenceChain",
        (100, 100, 25),
        ("--workers", "3", "--stages", "5", "--parallelism", "spout=1,simple=1,stateful=1,ack=1"),
    ),
)


def offered_per_second(load: int) -> float:
    """Root tuples that all topologies together emit, where nothing holds them up."""
    return float(sum(workload.rates[load] for workload in WORKLOADS))


@dataclass(frozen=True, slots=True)
class Durations:
    """Seconds of each phase, scaled from the six-minute demo."""

    warm_up: float
    settling_limit: float
    measured: float
    takeover_limit: float
    peak: float
    fall_limit: float


def durations(minutes: float) -> Durations:
    """Phases for a demo of about `minutes`, start and stop of the cluster included."""
    scale = minutes / NORMAL_MINUTES
    return Durations(
        warm_up=max(15.0, 20.0 * scale),
        settling_limit=max(60.0, 90.0 * scale),
        measured=max(20.0, 50.0 * scale),
        takeover_limit=max(45.0, 60.0 * scale),
        peak=max(40.0, 50.0 * scale),
        fall_limit=max(45.0, 60.0 * scale),
    )


def scheduling(mode: Mode) -> SchedulingSettings:
    """Faster than the defaults, so that a few minutes show what otherwise takes an hour."""
    return SchedulingSettings(
        mode=mode,
        period_seconds=PERIOD_SECONDS,
        cool_down_seconds=30.0,
        settling_seconds=15.0,
        maximum_age_seconds=10.0,
        expected_life_seconds=300.0,
        peak_seconds=15.0,
        room_peak_seconds=15.0,
    )


def specs(jar: str, rate_files: dict[str, str], mode: Mode) -> dict[str, TopologySpec]:
    """The topologies' specs by name."""
    return {
        workload.name: TopologySpec(
            name=workload.name,
            source=JarSource(
                jar,
                workload.main_class,
                ("--name", workload.name, "--rate-file", rate_files[workload.name], *workload.args),
            ),
            scheduling=scheduling(mode),
            resources=RESOURCES,
        )
        for workload in WORKLOADS
    }

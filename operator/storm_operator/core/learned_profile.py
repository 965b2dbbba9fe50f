"""What the pipeline learned from a cluster's history, as the operator reads it, and when it is not to be gone by.

A profile is advice: one that is old, of another cluster or of other components is refused with a reason, and the
operator goes on without. Its form as a file is docs/reference/profile.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from storm_operator.core.model import Topology, read_only
from storm_operator.core.seasonal import Season

SEASONAL = "Seasonal"
"""The forecaster that goes by a component's season; the others are the values of `settings.Forecast`."""

SYSTEM_PREFIX = "__"
"""Storm's own components, such as the acker, come and go with the configuration."""

CLOCK_TOLERANCE_SECONDS = 300.0
"""Clocks of different machines may differ by this much."""


@dataclass(frozen=True, slots=True)
class Robust:
    """A figure that many periods measured: its median, 1.4826 times the median absolute deviation, how many periods."""

    median: float
    spread: float
    periods: int


@dataclass(frozen=True, slots=True)
class ForecastError:
    """One forecaster on held-back history, as shares of the mean load in percent.

    `error_percent`: mean absolute error. `short_percent` and `over_percent`: by how much less, and more, CPU would have
    been allocated by it than was needed, on the mean over all periods.
    """

    error_percent: float
    short_percent: float
    over_percent: float


@dataclass(frozen=True, slots=True)
class ComponentProfile:
    """One component. `forecaster` is the best of those in `errors`; `season` is None where its load has none.

    `cpu_per_tuple` (kappa) is in millicores for a tuple per second, `selectivity` (rho) in tuples emitted for one
    executed; None where too little ran to tell.
    """

    forecaster: str
    season: Season | None = None
    errors: Mapping[str, ForecastError] = field(default_factory=dict)
    cpu_per_tuple: Robust | None = None
    selectivity: Robust | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "errors", read_only(self.errors))


@dataclass(frozen=True, slots=True)
class SettingsAdvice:
    """Settings that did better in replays of the history, `key=value` as `plan --set` takes them, and how much better.

    Percentages are of the score with the present settings, less is better; low and high are its 90% interval.
    """

    overrides: tuple[str, ...]
    change_percent: float
    low_percent: float
    high_percent: float


@dataclass(frozen=True, slots=True)
class LearnedProfile:
    """All that was learned about one Storm cluster. `topologies` has the components of each by topology name."""

    cluster: str
    made_at_seconds: float
    valid_until_seconds: float
    topologies: Mapping[str, Mapping[str, ComponentProfile]]
    advice: SettingsAdvice | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "topologies", read_only({n: read_only(c) for n, c in self.topologies.items()}))


@dataclass(frozen=True, slots=True)
class NoProfile:
    """Why there is nothing to go by."""

    reason: str


ProfileReading = LearnedProfile | NoProfile


@dataclass(frozen=True, slots=True)
class Learned:
    """What one pass may go by. `components` is keyed by (topology id, component); `refusals` by topology id."""

    components: Mapping[tuple[str, str], ComponentProfile] = field(default_factory=dict)
    refusals: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", read_only(self.components))
        object.__setattr__(self, "refusals", read_only(self.refusals))


NOTHING_LEARNED = Learned()


def accept_profiles(
    readings: Mapping[str, ProfileReading], topologies: Iterable[Topology], cluster: str, now_seconds: float
) -> Learned:
    """What may be gone by of the profiles that were read for topologies (by name); the others are refused.

    Topologies without a reading have no profile, and nothing is said of them.
    """
    components: dict[tuple[str, str], ComponentProfile] = {}
    refusals: dict[str, str] = {}
    for topology in topologies:
        reading = readings.get(topology.name)
        if reading is None:
            continue
        reason = why_refused(reading, topology, cluster, now_seconds)
        if isinstance(reading, NoProfile) or reason:
            refusals[topology.id] = reason
        else:
            own = reading.topologies[topology.name]
            components.update({(topology.id, name): profile for name, profile in own.items()})
    return Learned(components, refusals)


def why_refused(reading: ProfileReading, topology: Topology, cluster: str, now_seconds: float) -> str:
    """Why the profile is not to be gone by for `topology` of `cluster` now; empty when it is."""
    if isinstance(reading, NoProfile):
        return reading.reason
    if reading.cluster != cluster:
        return f"the profile is of cluster {reading.cluster!r}, this is {cluster!r}"
    if now_seconds >= reading.valid_until_seconds:
        return f"the profile was valid until {_time(reading.valid_until_seconds)}"
    if reading.made_at_seconds > now_seconds + CLOCK_TOLERANCE_SECONDS:
        return f"the profile was made at {_time(reading.made_at_seconds)}, which is yet to come: a clock is wrong"
    return _why_other_components(reading, topology)


def _why_other_components(profile: LearnedProfile, topology: Topology) -> str:
    known = profile.topologies.get(topology.name)
    if known is None:
        names = ", ".join(sorted(profile.topologies)) or "none"
        return f"the profile has no topology {topology.name!r}, only {names}"
    running = {component.name for component in topology.components if not component.name.startswith(SYSTEM_PREFIX)}
    learned = {name for name in known if not name.startswith(SYSTEM_PREFIX)}
    strange, missing = sorted(learned - running), sorted(running - learned)
    if strange:
        return f"the profile is of another topology {topology.name!r}: it has component {strange[0]!r}, which is gone"
    if missing:
        return f"the profile is of another topology {topology.name!r}: it does not know component {missing[0]!r}"
    return ""


def _time(seconds: float) -> str:
    """As a date and time in UTC: steady from pass to pass, unlike how long ago that was."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"

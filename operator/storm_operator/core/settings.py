"""Every knob in one place: name, type, default and a sentence. The CRD's defaults are pinned to these by a test.

Field names are the CRD's camelCase names in snake_case (`coolDownSeconds` is `cool_down_seconds`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Mode(StrEnum):
    """What the operator may do for a topology."""

    OBSERVE = "Observe"  # measure only
    RECOMMEND = "Recommend"  # make plans, apply those that a person approves
    ENFORCE = "Enforce"  # make plans and apply them, as approval allows


class Separation(StrEnum):
    """Whether stateful and stateless executors live in separate workers."""

    ALWAYS = "Always"
    NEVER = "Never"
    AUTO = "Auto"  # where the state that restarts lose costs more than the hops between workers


class Trigger(StrEnum):
    """Who decides that what a policy proposes is worth its restarts."""

    GAIN = "Gain"  # the operator: minimum gain and payback
    POLICY = "Policy"  # the policy by its own, published trigger alone


class Forecast(StrEnum):
    """How the load of the next period is told from that of the last ones."""

    LINE = "Line"  # Liu's least-squares line
    DAMPED_TREND = "DampedTrend"  # level and fading trend: misses by less on most loads


class ApplyMethod(StrEnum):
    """How a plan is put in force."""

    REBALANCE = "Rebalance"  # Nimbus rebalance: spouts pause for about a second
    IN_PLACE = "InPlace"  # the next scheduling round: no pause
    DRAIN = "Drain"  # pause the spouts, let tuples finish, move, resume: no failed tuples


class Enforcement(StrEnum):
    """Who holds executors to the CPU that the plan gives."""

    NONE = "None"
    POD = "Pod"
    EXECUTOR = "Executor"


class ApprovalMode(StrEnum):
    """Who says yes to a plan before it is applied."""

    AUTO = "Auto"  # the operator, at once
    MANUAL = "Manual"  # a person, each time


def _option(default: Any, help: str) -> Any:  # noqa: A002 - it is the help text of an option
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, slots=True)
class ObjectiveWeights:
    """Prices that turn unlike costs into one number; see docs/explanation/objective.md for what each means.

    The common unit is tuple-milliseconds of network per second (Pietzuch's network usage). The prices are ratios:
    they are multiplied by the cluster's own traffic and its typical round trip between supervisors, so that they
    need no change between 10 and 100,000 tuples/s, or between a rack and a wide area.
    """

    overload_per_millicore: float = _option(1.0, "price of a millicore of demand beyond a supervisor's headroom")
    overfull_per_megabyte: float = _option(1.0, "price of a MB of declared memory beyond what a supervisor declares")
    tuple_lost: float = _option(
        100.0, "price of a tuple that a supervisor which does not answer loses, in typical round trips"
    )
    supervisor_in_use: float = _option(
        1.0, "price of all supervisors in use now: as if every tuple made this many more typical round trips"
    )
    worker_restart: float = _option(10.0, "price of a tuple disturbed by a restart, in typical round trips")
    state_lost: float = _option(10.0, "extra price of a tuple through a restarted stateful executor, likewise")


@dataclass(frozen=True, slots=True)
class AutoApproval:
    """Conditions on a plan, all of which must be met; None is not asked for."""

    minimum_gain_percent: float | None = None
    maximum_restarted_workers: int | None = None
    maximum_payback_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ApprovalSettings:
    """With mode Auto and conditions, a plan that misses one waits for a person; without conditions none waits."""

    mode: ApprovalMode = _option(ApprovalMode.AUTO, "who says yes to a plan")
    auto_approve_when: AutoApproval | None = None


@dataclass(frozen=True, slots=True)
class ExcludedWindow:
    """A time in which no plan is applied: begins whenever `cron` (crontab's five fields, in `time_zone`) says so."""

    cron: str
    duration_seconds: int
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class SchedulingSettings:
    """How placement is decided and applied."""

    policy: str = _option("adaptive", "placement policy, a name from the registry")
    period_seconds: float = _option(10.0, "control period: measure, decide, maybe act")
    mode: Mode = _option(Mode.ENFORCE, "what the operator may do")
    apply_method: ApplyMethod = _option(ApplyMethod.REBALANCE, "how a plan is put in force")
    separation: Separation = _option(Separation.AUTO, "stateful and stateless executors in separate workers")
    trigger: Trigger = _option(Trigger.GAIN, "who decides that a proposal is worth its restarts")
    cool_down_seconds: float = _option(60.0, "least time between two plans, overload excepted")
    minimum_gain_percent: float = _option(10.0, "least predicted fall of the objective, overload excepted")
    maximum_payback_seconds: float = _option(600.0, "a plan must repay its restarts within this time")
    rollback_margin_percent: float = _option(
        25.0, "rolled back is a plan after which latency or traffic is worse by more, than before and than predicted"
    )
    settling_seconds: float = _option(20.0, "time between plan in force and the comparison with its prediction")
    history_periods: int = _option(5, "Liu's phi: periods that forecast and demand look back over")
    minimum_periods: int = _option(3, "periods that a topology must be seen for before it moves, if it could wait")
    forecast: Forecast = _option(Forecast.DAMPED_TREND, "how the load of the next period is forecast")
    minimum_completeness: float = _option(1.0, "least share of executors with metrics, else Hold")
    maximum_age_seconds: float = _option(15.0, "metrics older than this are stale: Hold")
    headroom_fraction: float = _option(0.9, "share of a supervisor's capacity that placement may fill")
    spare_fraction: float = _option(
        0.2, "share of the most that an executor needed lately which placement keeps free on top"
    )
    peak_seconds: float = _option(300.0, "time in which the most that an executor needed fades towards what it needs")
    room_peak_seconds: float = _option(
        3600.0, "the same for the room that placement keeps: a limit rises again at no cost, a move restarts workers"
    )
    expected_life_seconds: float = _option(
        300.0, "time that a plan is expected to last; restart costs are spread over it"
    )
    approval: ApprovalSettings = field(default_factory=ApprovalSettings)
    excluded_windows: tuple[ExcludedWindow, ...] = ()
    weights: ObjectiveWeights = field(default_factory=ObjectiveWeights)
    parameters: tuple[tuple[str, float], ...] = ()
    """The policy's own numbers (`alpha`, `beta`, ... for Aniello), sorted by name."""
    pinned_components: tuple[str, ...] = ()
    """Components that `dqos` leaves where they are, beside spouts and last bolts, sorted."""


@dataclass(frozen=True, slots=True)
class ResourceSettings:
    """How much CPU an executor is given (Liu, section III-A.2) and who enforces it."""

    theta_millicores: float = _option(200.0, "granularity of CPU allocation: 20% of a core in the paper")
    floor_millicores: float = _option(100.0, "no executor is given less")
    ceiling_millicores: float = _option(1000.0, "an executor is one thread: no use for more than one core")
    enforcement: Enforcement = _option(Enforcement.EXECUTOR, "who holds executors to their CPU")


def holds_executors(scheduling: SchedulingSettings, resources: ResourceSettings) -> bool:
    """Whether executors are to be held to CPU limits, one by one."""
    return scheduling.mode is Mode.ENFORCE and resources.enforcement is Enforcement.EXECUTOR


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """What a placement policy gets beside the snapshot and the demand.

    `movable` topologies may be changed; all others are obstacles that keep their place and their demand. `priority`
    is by topology id; it matters where supervisors are too small. Without it a topology has the lowest one there is.
    `resources` say what executors that come to need more are given.
    """

    scheduling: SchedulingSettings = field(default_factory=SchedulingSettings)
    movable: frozenset[str] = frozenset()
    restart_seconds: float = 8.0
    priority: Mapping[str, int] = field(default_factory=dict)
    resources: ResourceSettings = field(default_factory=ResourceSettings)

    @property
    def are_held(self) -> bool:
        """Whether movable executors are held to their CPU, so that who has a low priority can be made to wait."""
        return holds_executors(self.scheduling, self.resources)

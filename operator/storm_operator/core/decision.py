"""What a pass of the loop decides: a plan, or to hold still and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from storm_operator.core.model import Assignment, Executor, WorkerSlot, read_only


@dataclass(frozen=True, slots=True, order=True)
class Move:
    """`executor` leaves `source` (None: it was not placed) for `target`."""

    executor: Executor
    source: WorkerSlot | None
    target: WorkerSlot

    @property
    def changes_only_port(self) -> bool:
        """Whether the executor stays on its supervisor, in another worker of it."""
        return self.source is not None and self.source.supervisor_id == self.target.supervisor_id


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a placement costs and saves, as far as can be told from measured rates.

    Traffic and latency are those of the topologies that a plan is of; supervisors in use are those of the cluster,
    since one that others keep in use is not saved. `complete_latency_ms` is None where no latency was measured to scale
    from; after a plan also where that relieves an overload.
    """

    inter_supervisor_tuples_per_second: float
    inter_worker_tuples_per_second: float
    network_usage: float
    supervisors_used: int
    overloaded_millicores: float
    complete_latency_ms: float | None = None


class HoldReason(StrEnum):
    """Why nothing is done. One word for metrics and status; the sentence is in `Hold.message`."""

    METRICS_INCOMPLETE = "MetricsIncomplete"
    METRICS_STALE = "MetricsStale"
    WARMING_UP = "WarmingUp"
    NO_CHANGE = "NoChange"
    NOT_DUE = "NotDue"
    GAIN_TOO_SMALL = "GainTooSmall"
    PAYBACK_TOO_LONG = "PaybackTooLong"
    COOL_DOWN = "CoolDown"
    TOO_LITTLE_CAPACITY = "TooLittleCapacity"
    INFEASIBLE = "Infeasible"
    KNOWN_BAD = "KnownBad"
    PAUSED = "Paused"
    OBSERVE_ONLY = "ObserveOnly"
    AWAITING_APPROVAL = "AwaitingApproval"
    EXCLUDED_WINDOW = "ExcludedWindow"
    APPLYING = "Applying"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    NOTHING_TO_MANAGE = "NothingToManage"


@dataclass(frozen=True, slots=True)
class Hold:
    """The decision not to act, with its reason.

    `gain_percent` is what the best known placement would save of the cost in force; None where none was looked for.
    `short_topologies` are the ids of those that get less CPU than they need (TooLittleCapacity, and NotDue where it is
    not known yet whether anything helps).
    """

    reason: HoldReason
    message: str
    gain_percent: float | None = None
    short_topologies: tuple[str, ...] = ()


NOTHING_BETTER = frozenset({HoldReason.NO_CHANGE, HoldReason.GAIN_TOO_SMALL, HoldReason.PAYBACK_TOO_LONG})
"""No placement that is known is worth a change. Where CPU is short all the same, it is more CPU that is needed."""


class PlanCause(StrEnum):
    """Why something is done. One word for metrics and history; the sentence is in `Plan.reason`."""

    WITHOUT_PLACE = "WithoutPlace"
    OVERLOAD = "Overload"
    LITTLE_HEADROOM = "LittleHeadroom"
    COMING_OVERLOAD = "ComingOverload"
    MEMORY = "Memory"
    SAVINGS = "Savings"
    POLICY = "Policy"
    ROLLBACK = "Rollback"
    TAKEN_BACK = "TakenBack"
    UNSTATED = "Unstated"


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision to act: what moves, what restarts, what it should bring. A value; others carry it out.

    `base` and `target` cover the topologies in `topology_ids` only. `restarted_workers` are slots (before or
    after) whose set of executors changes; `kept_workers` are slots whose processes must survive.
    `cpu_limits_millicores` is what each executor may use once the plan is in force, `cpu_ceiling_millicores` the most
    that any may be given meanwhile; None where nobody said it, as in journals of earlier versions. `gain_percent` is
    the fall of the whole objective that it was decided by, in per cent of the cost in force; None where nobody weighed
    it. `cause` is Unstated where nobody said it, as in journals of earlier versions. `beyond_threads_millicores` is the
    part of `after.overloaded_millicores` that executors would need beyond their one thread: no supervisor has that.
    """

    id: str
    created_at_seconds: float
    policy: str
    reason: str
    topology_ids: tuple[str, ...]
    base: Assignment
    target: Assignment
    moves: tuple[Move, ...]
    restarted_workers: tuple[WorkerSlot, ...]
    kept_workers: tuple[WorkerSlot, ...]
    cpu_limits_millicores: Mapping[Executor, float]
    before: Prediction
    after: Prediction
    payback_seconds: float | None = None
    gain_percent: float | None = None
    cause: PlanCause = PlanCause.UNSTATED
    cpu_ceiling_millicores: float | None = None
    beyond_threads_millicores: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "cpu_limits_millicores", read_only(self.cpu_limits_millicores))

    @property
    def started_workers(self) -> tuple[WorkerSlot, ...]:
        """The restarted workers that run afterwards: those that only end cost nobody a wait."""
        running = set(self.target.slot_of.values())
        return tuple(slot for slot in self.restarted_workers if slot in running)

    @property
    def overloads_supervisors(self) -> bool:
        """Whether it leaves executors without CPU that supervisors might have."""
        return self.after.overloaded_millicores > self.beyond_threads_millicores

    @property
    def is_predicted(self) -> bool:
        """Whether `before` and `after` are anybody's figures: the way back of a rollback is weighed by nobody."""
        return self.after.supervisors_used > 0


Decision = Plan | Hold

"""A proposal seen beside the assignment in force: what changes, what it costs and brings, and whether it can wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decision import PlanCause, Prediction
from storm_operator.core.demand import allocation
from storm_operator.core.fresh_slots import on_fresh_slots
from storm_operator.core.model import Assignment, Executor, name_of_topology
from storm_operator.core.placement.bearable import cost_of_others, with_what_is_borne
from storm_operator.core.placement.capacity import LEAST_MILLICORES
from storm_operator.core.placement.objective import (
    SeenAssignment,
    beyond_threads,
    cost_seen,
    overload_cost,
    see,
    see_demand,
)
from storm_operator.core.placement.prices import Prices, prices_of
from storm_operator.core.plan_diff import PlanDiff, diff_assignments, moved_executors
from storm_operator.core.prediction import predict_change
from storm_operator.core.relieved_trouble import LEAST_RELIEF_FRACTION, Trouble, relieved_trouble
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.shuffle_shares import ShuffleShares
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.wording import counted, first_of


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """From `base` to `target`, both of the topologies that change only.

    Costs are in tuple-ms per second: `saved_cost` is what the target saves of `running_cost`, which is what the movable
    topologies cost in force (Cost.running, without `_not_in_question`). `payback_seconds` is the one-off cost of the
    restarts over what is saved each second; None when nothing is saved. `trouble` is what is wrong in force and better
    after the change, None when it only saves; urgent trouble must not wait.
    """

    base: Assignment
    target: Assignment
    diff: PlanDiff
    before: Prediction
    after: Prediction
    running_cost: float
    saved_cost: float
    payback_seconds: float | None
    trouble: Trouble | None
    overfull_megabytes: float = 0.0
    """Declared memory that finds no room even after the change."""
    overloaded_millicores: float = 0.0
    """CPU that is needed and finds no room even after the change."""
    beyond_threads_millicores: float = 0.0
    """The part of it that executors would need beyond their one thread: no supervisor has room for that."""
    limits_millicores: Mapping[Executor, float] = field(default_factory=dict)
    """What executors are to be given, for the tuples that they have or, where those are more, come to have."""
    is_of_several: bool = False
    """Whether it was looked for among the executors of more than one topology."""

    @property
    def is_urgent(self) -> bool:
        return self.trouble is not None and self.trouble.is_urgent

    @property
    def topology_ids(self) -> tuple[str, ...]:
        return tuple(sorted({move.executor.topology_id for move in self.diff.moves}))

    @property
    def gain_percent(self) -> float:
        return 100.0 * self.saved_cost / self.running_cost if self.running_cost > 0.0 else 0.0

    @property
    def what_moves(self) -> str:
        """E.g. `moves 3 executors, changes only the port of 4 executors, restarts 2 workers`.

        Workers that only end cost nobody a wait. Where they might be of any of several topologies, those are named.
        """
        moves, running = self.diff.moves, self.target.workers()
        only_port = sum(move.changes_only_port for move in moves)
        restarts = sum(slot in running for slot in self.diff.restarted_workers)
        parts = (("moves", len(moves) - only_port), ("changes only the port of", only_port))
        told = [f"{verb} {counted(number, 'executor')}" for verb, number in parts if number]
        whose = f" of {_listed(self.topology_ids)}" if self.is_of_several else ""
        return ", ".join([*told, f"restarts {counted(restarts, 'worker')}"]) + whose


def _listed(topology_ids: Sequence[str]) -> str:
    names = [name_of_topology(one) for one in topology_ids]
    return " and ".join(names) if len(names) == 2 else first_of(names)


def examine_proposal(
    snapshot: ClusterSnapshot, demand: Demand, proposal: Assignment, settings: PlacementSettings
) -> ProposedChange | None:
    """What `proposal` changes for the movable topologies; None when it is the assignment in force.

    A supervisor is filled by the room that executors may come to need, but overloaded only by what they need now:
    between the two lies what load may do without moving anybody.
    """
    base, target = _changed_part(snapshot.assignment, proposal, snapshot, settings)
    if not moved_executors(base, target):
        return None
    target = _in_free_slots(snapshot, target)
    diff = diff_assignments(base, target)
    in_force = see(snapshot, snapshot.assignment, demand, settings)
    whole = snapshot.assignment.with_moves(target.slot_of)
    changed = {executor.topology_id for executor in target.slot_of}
    snapshot_then, demand_then = ShuffleShares.of(snapshot, demand, changed).under(whole)
    then = see(snapshot_then, whole, demand_then, settings)
    now, now_then = demand.of_now(), demand_then.of_now()
    before, after = predict_change(
        snapshot,
        see_demand(snapshot, in_force, now, settings),
        see_demand(snapshot_then, then, now_then, settings),
        {move.executor.topology_id for move in diff.moves},
    )
    prices = prices_of(snapshot, settings)
    borne = with_what_is_borne(settings)
    needed = see_demand(snapshot, in_force, now, borne)
    needed_then = see_demand(snapshot_then, then, now_then, borne)
    coming = see_demand(snapshot, in_force, demand.of_coming(), borne)
    coming_then = see_demand(snapshot_then, then, demand_then.of_coming(), borne)
    trouble = relieved_trouble(diff.moves, snapshot, needed, needed_then, coming, coming_then, borne)
    cost_before, cost_after = (cost_seen(snapshot, seen, prices) for seen in (coming, coming_then))
    saved = cost_before.running - cost_after.running - _unnoticed_relief(snapshot, needed, needed_then, prices)
    return ProposedChange(
        base=base,
        target=target,
        diff=diff,
        before=before,
        after=replace(after, complete_latency_ms=None) if _ends_waits(trouble) else after,
        running_cost=cost_before.running
        - _not_in_question(snapshot, coming, coming_then, demand.of_coming(), prices, borne),
        saved_cost=saved,
        payback_seconds=(
            cost_after.restarts * settings.scheduling.expected_life_seconds / saved if saved > 0.0 else None
        ),
        trouble=trouble,
        overfull_megabytes=needed_then.overfull_megabytes,
        overloaded_millicores=needed_then.overloaded_millicores,
        beyond_threads_millicores=beyond_threads(whole, demand_then),
        is_of_several=len(settings.movable) > 1,
        limits_millicores={e: _limit(e, demand, demand_then, settings) for e in target.slot_of if demand.is_known(e)},
    )


def _ends_waits(trouble: Trouble | None) -> bool:
    """Whether tuples wait for CPU now, and will not: the measured latency tells nothing of the one to come then."""
    return trouble is not None and trouble.cause in {PlanCause.OVERLOAD, PlanCause.LITTLE_HEADROOM}


def _not_in_question(
    snapshot: ClusterSnapshot,
    in_force: SeenAssignment,
    then: SeenAssignment,
    demand: Demand,
    prices: Prices,
    settings: PlacementSettings,
) -> float:
    """What the cost has in it that no gain is measured by, in tuple-ms/s: that of the topologies that must not move,
    and declared memory that finds no room either way. Any of that outprices all else: one topology that declares more
    than a supervisor has, which Storm's own scheduler never looks at, would hide what others gain."""
    overfull = min(in_force.overfull_megabytes, then.overfull_megabytes)
    return cost_of_others(snapshot, in_force, demand, prices, settings) + overload_cost(0.0, overfull, prices)


def _unnoticed_relief(
    snapshot: ClusterSnapshot, in_force: SeenAssignment, then: SeenAssignment, prices: Prices
) -> float:
    """What a relief of CPU would save, in tuple-ms/s, that is smaller than what measuring can tell: it saves nothing.

    Where all supervisors are full, one of them always has a little too much. It is a relief when the overload of all
    falls, or the fullest supervisor is less full, by `LEAST_RELIEF_FRACTION` of a supervisor. Both are as needed now: a
    rise that is believed in was told from noise already.
    """
    known = {s.id: s.cpu_capacity_millicores for s in snapshot.supervisors if s.cpu_capacity_millicores is not None}
    capacity_of = {at: max(capacity, LEAST_MILLICORES) for at, capacity in known.items()}
    relieved = _counted_overload(in_force) - _counted_overload(then)
    if relieved <= 0.0 or relieved >= LEAST_RELIEF_FRACTION * max(capacity_of.values(), default=0.0):
        return 0.0
    if _fullest(in_force, capacity_of) - _fullest(then, capacity_of) >= LEAST_RELIEF_FRACTION:
        return 0.0
    return relieved * prices.per_overloaded_millicore


def _counted_overload(seen: SeenAssignment) -> float:
    return seen.overloaded_millicores + seen.outranking_millicores


def _fullest(seen: SeenAssignment, capacity_of: Mapping[str, float]) -> float:
    """The share of its capacity that is wanted of the fullest supervisor."""
    return max((seen.wanted_millicores.get(s, 0.0) / capacity for s, capacity in capacity_of.items()), default=0.0)


def _limit(executor: Executor, now: Demand, then: Demand, settings: PlacementSettings) -> float:
    """What it is given now; where tuples come to it with the change, what it is given for the room that they take."""
    limit, room = now.millicores[executor], then.room_millicores.get(executor, 0.0)
    if room <= now.room_millicores.get(executor, 0.0):
        return limit
    return max(limit, allocation(room, settings.resources))


def _in_free_slots(snapshot: ClusterSnapshot, target: Assignment) -> Assignment:
    """See `fresh_slots`; slots of topologies that do not change are not free."""
    whole = on_fresh_slots(snapshot.assignment, snapshot.assignment.with_moves(target.slot_of), snapshot.supervisors)
    return Assignment({executor: whole.slot_of[executor] for executor in target.slot_of})


def _changed_part(
    in_force: Assignment, proposal: Assignment, snapshot: ClusterSnapshot, settings: PlacementSettings
) -> tuple[Assignment, Assignment]:
    """Assignment in force and proposal, of those movable topologies that the proposal changes."""
    existing = {executor for topology in snapshot.topologies for executor in topology.executors}
    base = Assignment({e: slot for e, slot in in_force.slot_of.items() if e in existing})
    changed = {executor.topology_id for executor in moved_executors(base, proposal)} & settings.movable
    return base.restricted_to(changed), proposal.restricted_to(changed)

"""How many executors each component should have: what the spec asks for, and what the load asks for. Pure.

Storm can change the number of executors of a running topology, but never beyond its number of tasks. What the spec asks
for is the user's word and is done at once. What only the load asks for restarts workers like any plan, and waits for
what plans wait for: see `why_load_waits`. More executors wait for CPU, too: see `why_growth_waits`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from storm_operator.core.clock_steps import age_seconds, is_younger
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decide import in_excluded_window
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.decision_memory import DecisionMemory
from storm_operator.core.load_history import periods_seen
from storm_operator.core.measurement_check import check_measurements
from storm_operator.core.model import Component, ComponentKind, Executor, Topology, in_order
from storm_operator.core.settings import ApprovalMode, AutoApproval, Mode, PlacementSettings, SchedulingSettings
from storm_operator.core.shortage import has_room_for
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import ComponentParallelism, ParallelismMode, ParallelismSpec

FULL_FRACTION = 0.9
"""Auto: an executor whose demand reaches this share of its ceiling is full; its component gets more where they help."""

TARGET_FRACTION = 0.6
"""Auto: with a new number of executors each is expected to need this share of its ceiling."""

SHRINK_FACTOR = 2
"""Auto: fewer executors only where this many times fewer would do; a change restarts their workers."""

BY_HAND = "give the numbers in spec.parallelism.components to have them"


@dataclass(frozen=True, slots=True)
class Resize:
    """Numbers of executors by component, only those that change.

    `asked` is what the spec says by numbers and bounds; `by_load` what the load asks for beyond that, which goes before
    `asked` where both name a component. `notes` says what was asked for and cannot be.
    """

    asked: Mapping[str, int]
    by_load: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldResize:
    """Numbers of executors that the load asks for, and why they are not given."""

    executors: Mapping[str, int]
    hold: Hold

    @property
    def message(self) -> str:
        return f"by load executors should be {in_words(self.executors)}; {self.hold.message}"


def in_words(executors: Mapping[str, int]) -> str:
    """E.g. `count 4, split 2`."""
    return ", ".join(f"{name} {count}" for name, count in sorted(executors.items()))


def wanted_parallelism(
    topology: Topology, parallelism: ParallelismSpec, demand: Demand, ceiling_millicores: float
) -> Resize:
    """What is to be changed; nothing by load where the demand is unknown.

    Storm's own components (ackers) follow the load only where the spec names them.
    """
    asked: dict[str, int] = {}
    by_load: dict[str, int] = {}
    known = {component.name: component for component in topology.components}
    notes = [
        f"spec.parallelism.components: {topology.name} has no component {name!r}"
        for name in sorted(set(parallelism.components) - set(known))
    ]
    for name, component in sorted(known.items()):
        own = parallelism.components.get(name)
        if own is None and _is_storms_own(component):
            continue
        bounds = own or ComponentParallelism()
        present = len(topology.executors_of(name))
        stated = _bounded(present if bounds.executors is None else bounds.executors, bounds)
        if stated > component.tasks:
            notes.append(
                f"{name} has {component.tasks} tasks, so at most {component.tasks} executors; {stated} were asked for"
            )
            stated = component.tasks
        if stated != present:
            asked[name] = stated
        if parallelism.mode is ParallelismMode.AUTO and bounds.executors is None:
            found = _by_load(topology, component, demand, ceiling_millicores)
            wanted = stated if found is None else min(_bounded(found, bounds), component.tasks)
            if wanted != stated:
                by_load[name] = wanted
    return Resize(asked, by_load, tuple(notes))


def why_load_waits(
    topology_id: str,
    snapshot: ClusterSnapshot,
    demand: Demand,
    scheduling: SchedulingSettings,
    memory: DecisionMemory,
    *,
    now_seconds: float,
) -> Hold | None:
    """Why what only the load asks for is not done now; None when it may be.

    A change of the number of executors restarts workers as a plan does. Nobody can approve it one by one, so it is
    made only where plans need no approval: the user can state the numbers instead.
    """
    return (
        _not_ours_to_decide(scheduling)
        or check_measurements(snapshot, demand, PlacementSettings(scheduling, frozenset({topology_id})))
        or _too_little_seen(periods_seen(snapshot.history, [topology_id]), scheduling.minimum_periods)
        or in_excluded_window(scheduling, now_seconds)
        or _cooling_down(memory.changed_at_seconds.get(topology_id), scheduling.cool_down_seconds, now_seconds)
    )


def why_growth_waits(
    topology: Topology,
    by_load: Mapping[str, int],
    snapshot: ClusterSnapshot,
    demand: Demand,
    settings: PlacementSettings,
    memory: DecisionMemory,
) -> Hold | None:
    """Why more executors would not help; None where they may, and where no component is to have more.

    The policy has found none that helps who is short of CPU, and supervisors have hardly any left together: what one
    more executor was to take over would be short there. Where one supervisor alone is full, others can carry it.
    """
    grows = any(count > len(topology.executors_of(name)) for name, count in by_load.items())
    share = TARGET_FRACTION * settings.resources.ceiling_millicores
    if not grows or topology.id not in memory.unhelped_topologies or has_room_for(share, snapshot, demand, settings):
        return None
    return Hold(
        HoldReason.TOO_LITTLE_CAPACITY,
        f"supervisors have no {share:,.0f} millicores of CPU left for one more executor, and those that there are lack "
        "CPU already",
    )


def _not_ours_to_decide(scheduling: SchedulingSettings) -> Hold | None:
    approval = scheduling.approval
    if scheduling.mode is Mode.OBSERVE:
        return Hold(HoldReason.OBSERVE_ONLY, f"mode is Observe: {BY_HAND}")
    if scheduling.mode is Mode.RECOMMEND:
        return Hold(HoldReason.AWAITING_APPROVAL, f"mode is Recommend: {BY_HAND}")
    if approval.mode is ApprovalMode.MANUAL:
        return Hold(HoldReason.AWAITING_APPROVAL, f"approval is Manual: {BY_HAND}")
    if approval.auto_approve_when not in (None, AutoApproval()):
        why = "approval.autoApproveWhen asks for what is not predicted of another number of executors"
        return Hold(HoldReason.AWAITING_APPROVAL, f"{why}: {BY_HAND}")
    return None


def _too_little_seen(periods: int, least_periods: int) -> Hold | None:
    if periods >= least_periods:
        return None
    return Hold(HoldReason.WARMING_UP, f"load was seen for {periods} of {least_periods} periods")


def _cooling_down(changed_at_seconds: float | None, cool_down_seconds: float, now_seconds: float) -> Hold | None:
    if changed_at_seconds is None or not is_younger(changed_at_seconds, cool_down_seconds, now_seconds):
        return None
    return Hold(
        HoldReason.COOL_DOWN,
        f"the last change is {age_seconds(changed_at_seconds, now_seconds):.0f} s old, the next may follow after "
        f"{cool_down_seconds:.0f} s",
    )


def _is_storms_own(component: Component) -> bool:
    return component.kind is ComponentKind.ACKER or component.name.startswith("__")


def _by_load(topology: Topology, component: Component, demand: Demand, ceiling_millicores: float) -> int | None:
    executors = topology.executors_of(component.name)
    needs = {e: demand.raw_millicores[e] for e in executors if e in demand.raw_millicores}
    if len(needs) < len(executors) or not needs:
        return None
    present, target, full = len(executors), TARGET_FRACTION * ceiling_millicores, FULL_FRACTION * ceiling_millicores
    crowded = [executor for executor, need in needs.items() if need >= full]
    if crowded:
        more = math.ceil(math.fsum(needs.values()) / target)
        # The only task of an executor is its hot key's: others cannot take it over, they can only bear the rest.
        if more > present or any(len(executor.tasks) > 1 for executor in crowded):
            return max(present + 1, more)
    # Down late: by the most that was needed within an hour, as room is kept. The next peak would bring them back.
    lately = {executor: max(need, demand.room_peak_millicores.get(executor, need)) for executor, need in needs.items()}
    enough = max(1, math.ceil(math.fsum(lately.values()) / target))
    has_room = _fullest_of(enough, component.tasks, lately) < full
    return enough if enough * SHRINK_FACTOR <= present and has_room else present


def _fullest_of(executors: int, tasks: int, needs: Mapping[Executor, float]) -> float:
    """What the fullest of so many executors would need: the hottest task, with so many others beside it as come.

    Storm gives an executor tasks in a row: more where hot ones follow one another.
    """
    of_task = [needs[executor] / len(executor.tasks) for executor in in_order(needs) for _ in executor.tasks]
    each = math.ceil(tasks / executors)
    up_to = [0.0, *accumulate(of_task)]
    in_a_row = max((last - first for first, last in zip(up_to, up_to[each:], strict=False)), default=up_to[-1])
    return max(in_a_row, max(of_task) + (each - 1) * up_to[-1] / tasks)


def _bounded(count: int, asked: ComponentParallelism) -> int:
    at_most = count if asked.maximum is None else min(count, asked.maximum)
    return max(1, at_most if asked.minimum is None else max(at_most, asked.minimum))

"""Brings components to the number of executors that their spec or their load asks for, after each pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.errors import OUT_OF_REACH, AdapterError, RebalanceInProgress
from storm_operator.control_loop import ControlLoop, PassReport
from storm_operator.core.backoff import Retry, may_try, put_off
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.model import Topology
from storm_operator.core.parallelism import (
    HeldResize,
    Resize,
    in_words,
    wanted_parallelism,
    why_growth_waits,
    why_load_waits,
)
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import TopologySpec

ChangeCounts = Callable[[str, Mapping[str, int]], None]
"""Asks Nimbus to give the topology of that name so many executors by component. Raises `AdapterError`."""

REFUSED = "ParallelismRefused"
BY_LOAD = "by load"
"""Identity of what only the load asks for: its numbers may be others in each pass, and are as much of a refusal."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Numbers that Nimbus refused a topology (its name), why, and when they are asked for again."""

    topology: str
    message: str
    retry: Retry


@dataclass(slots=True)
class ExecutorCounts:
    """`tell(topology, reason, message, warning)` is told what is done and what is held.

    `resizes` is told the id of a topology whose numbers change, `onlooker` after each pass what is held.
    """

    tell: Callable[[str, str, str, bool], None]
    resizes: Callable[[str], None] = lambda _: None
    onlooker: Callable[[Mapping[str, HeldResize]], None] = lambda _: None
    held: dict[str, HeldResize] = field(default_factory=dict)
    """By topology id: what the load asks for and does not get, as of the last pass."""
    refused: dict[tuple[str, bool], Refusal] = field(default_factory=dict)
    """By topology id, and whether it was by load."""

    def follow(
        self, specs: Mapping[str, TopologySpec], report: PassReport, loop: ControlLoop, change: ChangeCounts
    ) -> bool:
        """Whether anything is being changed. Not while a plan is on its way: it names executors that would end. Nor of
        a topology of which nothing is placed.

        What Nimbus refuses is told, and asked for again ever more slowly. Raises `OUT_OF_REACH`.
        """
        if report.snapshot is None or report.demand is None or loop.has_pending_plan:
            return False
        changed = False
        before, self.held = self.held, {}
        wanted = set[tuple[str, bool]]()
        placed = {executor.topology_id for executor in report.snapshot.assignment.slot_of}
        for topology in report.snapshot.topologies:
            spec = specs.get(topology.name)
            if spec is None or spec.suspend:
                continue
            if topology.id not in placed:
                # Nobody sees how many executors it has, nor measures any: what it was refused may be wanted again.
                wanted |= {key for key in self.refused if key[0] == topology.id}
                continue
            resize = self._wanted(topology, spec, report.demand)
            wanted |= {(topology.id, False)} if resize.asked else set()
            wanted |= {(topology.id, True)} if resize.by_load else set()
            hold = None
            if resize.by_load:
                hold = _why_held(topology, resize, spec, report.snapshot, report.demand, loop)
            changed |= self._carry_out(topology, resize, hold, loop, change)
            held = self.held.get(topology.id)
            if held is not None and not is_same_hold(before.get(topology.id), held):
                self.tell(topology.name, "ResizeHeld", held.message, False)
        self.refused = {key: refusal for key, refusal in self.refused.items() if key in wanted}
        self.onlooker(self.held)
        return changed

    def obstacles(self, topology: str) -> tuple[tuple[str, str], ...]:
        """Reason and message of what Nimbus refused the topology of that name."""
        return tuple((REFUSED, one.message) for _, one in sorted(self.refused.items()) if one.topology == topology)

    def _wanted(self, topology: Topology, spec: TopologySpec, demand: Demand) -> Resize:
        resize = wanted_parallelism(topology, spec.parallelism, demand, spec.resources.ceiling_millicores)
        for note in resize.notes:
            self.tell(topology.name, "Parallelism", note, True)
        return resize

    def _carry_out(
        self, topology: Topology, resize: Resize, hold: Hold | None, loop: ControlLoop, change: ChangeCounts
    ) -> bool:
        """Change what the load asks for, together with what the spec does; where that may not be, the latter alone."""
        if resize.by_load:
            if hold is None and self._resize(topology, {**resize.asked, **resize.by_load}, BY_LOAD, loop, change):
                return True
            self.held[topology.id] = HeldResize(resize.by_load, hold or self._refused_hold(topology))
        return bool(resize.asked) and self._resize(topology, resize.asked, in_words(resize.asked), loop, change)

    def _refused_hold(self, topology: Topology) -> Hold:
        refusal = self.refused[topology.id, True]
        words = f"Nimbus refuses that, and is asked again ever more slowly: {refusal.message}"
        return Hold(HoldReason.INFEASIBLE, words)

    def _resize(
        self, topology: Topology, executors: Mapping[str, int], identity: str, loop: ControlLoop, change: ChangeCounts
    ) -> bool:
        """Whether Nimbus is about to change them; what it refused is not asked for before its time."""
        key, now = (topology.id, identity == BY_LOAD), loop.clock.now()
        last = self.refused[key].retry if key in self.refused else None
        if not may_try(last, identity, now):
            return False
        try:
            change(topology.name, executors)
        except RebalanceInProgress:
            # Perhaps it is what was asked for a pass ago; the next pass asks again, if that is still needed.
            self.resizes(topology.id)
            return True
        except OUT_OF_REACH:
            raise
        except AdapterError as error:
            self.refused[key] = Refusal(topology.name, str(error), put_off(last, identity, now))
            self.tell(topology.name, REFUSED, str(error), True)
            return False
        self.refused.pop(key, None)
        self.resizes(topology.id)
        loop.memory.decisions = loop.memory.decisions.with_change(topology.id, now)
        self.tell(topology.name, "Resized", f"executors are now to be: {in_words(executors)}", False)
        return True


def _why_held(
    topology: Topology,
    resize: Resize,
    spec: TopologySpec,
    snapshot: ClusterSnapshot,
    demand: Demand,
    loop: ControlLoop,
) -> Hold | None:
    """Why what only the load asks for is not done now."""
    now, decisions = loop.clock.now(), loop.memory.decisions
    settings = PlacementSettings(spec.scheduling, frozenset({topology.id}), resources=spec.resources)
    return why_load_waits(
        topology.id, snapshot, demand, spec.scheduling, decisions, now_seconds=now
    ) or why_growth_waits(topology, resize.by_load, snapshot, demand, settings, decisions)


def is_same_hold(one: HeldResize | None, other: HeldResize) -> bool:
    """Whether both hold the same for the same reason; their sentences may differ in minutes."""
    return one is not None and one.executors == other.executors and one.hold.reason is other.hold.reason

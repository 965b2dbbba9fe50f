"""Brings components to the number of executors that their spec or their load asks for, after each pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.errors import RebalanceInProgress
from storm_operator.control_loop import ControlLoop, PassReport
from storm_operator.core.model import Demand, Topology
from storm_operator.core.parallelism import HeldResize, in_words, wanted_parallelism
from storm_operator.core.topology_spec import TopologySpec

ChangeCounts = Callable[[str, Mapping[str, int]], None]
"""Asks Nimbus to give the topology of that name so many executors by component."""


@dataclass(slots=True)
class ExecutorCounts:
    """`tell(topology, reason, message, warning)` is told what is done and what is held.

    `resizes` is told the id of a topology before its numbers change.
    """

    tell: Callable[[str, str, str, bool], None]
    resizes: Callable[[str], None] = lambda _: None
    held: dict[str, HeldResize] = field(default_factory=dict)
    """By topology id: what the load asks for and does not get, as of the last pass without a plan on its way."""

    def follow(
        self, specs: Mapping[str, TopologySpec], report: PassReport, loop: ControlLoop, change: ChangeCounts
    ) -> bool:
        """Whether anything is changed. Not while a plan is on its way: it names executors that a change would end."""
        if report.snapshot is None or report.demand is None or loop.has_pending_plan:
            return False
        changed = False
        before, self.held = self.held, dict(report.held_resizes)
        for topology in report.snapshot.topologies:
            spec = specs.get(topology.name)
            if spec is None or spec.suspend:
                continue
            executors = self._wanted(topology, spec, report.demand, loop)
            if executors:
                changed = True
                self._resize(topology, executors, change)
            held = self.held.get(topology.id)
            if held is not None and not is_same_hold(before.get(topology.id), held):
                self.tell(topology.name, "ResizeHeld", held.message, False)
        return changed

    def _resize(self, topology: Topology, executors: Mapping[str, int], change: ChangeCounts) -> None:
        self.tell(topology.name, "Resized", f"executors are now to be: {in_words(executors)}", False)
        self.resizes(topology.id)
        with contextlib.suppress(RebalanceInProgress):  # then the next pass asks again, if that is still needed
            change(topology.name, executors)

    def _wanted(self, topology: Topology, spec: TopologySpec, demand: Demand, loop: ControlLoop) -> Mapping[str, int]:
        resize = wanted_parallelism(topology, spec.parallelism, demand, spec.resources.ceiling_millicores)
        for note in resize.notes:
            self.tell(topology.name, "Parallelism", note, True)
        if not resize.by_load or topology.id in self.held:
            return resize.asked
        loop.memory.decisions = loop.memory.decisions.with_change(topology.id, loop.clock.now())
        return {**resize.asked, **resize.by_load}


def is_same_hold(one: HeldResize | None, other: HeldResize | None) -> bool:
    """Whether both hold the same for the same reason; their sentences may differ in minutes."""
    if one is None or other is None:
        return one is other
    return dict(one.executors) == dict(other.executors) and one.hold.reason is other.hold.reason

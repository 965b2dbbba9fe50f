"""How many executors each component should have: what the spec fixes, or what the load asks for. Pure.

Storm can change the number of executors of a running topology, but never beyond its number of tasks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from storm_operator.core.model import Demand, Topology
from storm_operator.core.topology_spec import ComponentParallelism, ParallelismMode, ParallelismSpec

FULL_FRACTION = 0.9
"""Auto: an executor whose demand reaches this share of its ceiling is full, and its component gets more of them."""

TARGET_FRACTION = 0.6
"""Auto: with a new number of executors each is expected to need this share of its ceiling."""

SHRINK_FACTOR = 2
"""Auto: fewer executors only where this many times fewer would do; a change restarts their workers."""


@dataclass(frozen=True, slots=True)
class Resize:
    """`executors` by component, only those that change; `notes` says what was asked for and cannot be."""

    executors: Mapping[str, int]
    notes: tuple[str, ...] = ()


def wanted_parallelism(
    topology: Topology, parallelism: ParallelismSpec, demand: Demand, ceiling_millicores: float
) -> Resize:
    """What is to be changed; nothing where the demand that Auto asks about is unknown."""
    executors: dict[str, int] = {}
    notes: list[str] = []
    known = {component.name: component for component in topology.components}
    for name, asked in sorted(parallelism.components.items()):
        if name not in known:
            notes.append(f"spec.parallelism.components: {topology.name} has no component {name!r}")
            continue
        present = len(topology.executors_of(name))
        wanted = asked.executors
        if wanted is None and parallelism.mode is ParallelismMode.AUTO:
            wanted = _by_load(topology, name, present, demand, ceiling_millicores)
        wanted = _bounded(present if wanted is None else wanted, asked)
        tasks = known[name].tasks
        if wanted > tasks:
            notes.append(f"{name} has {tasks} tasks, so at most {tasks} executors; {wanted} were asked for")
            wanted = tasks
        if wanted != present:
            executors[name] = wanted
    return Resize(executors, tuple(notes))


def _by_load(topology: Topology, component: str, present: int, demand: Demand, ceiling_millicores: float) -> int | None:
    raw = [demand.raw_millicores.get(executor) for executor in topology.executors_of(component)]
    needs = [millicores for millicores in raw if millicores is not None]
    if len(needs) < len(raw) or not needs:
        return None
    wanted = max(1, math.ceil(math.fsum(needs) / (TARGET_FRACTION * ceiling_millicores)))
    if max(needs) >= FULL_FRACTION * ceiling_millicores:
        return max(wanted, present + 1)
    return wanted if wanted * SHRINK_FACTOR <= present else present


def _bounded(count: int, asked: ComponentParallelism) -> int:
    at_most = count if asked.maximum is None else min(count, asked.maximum)
    return max(1, at_most if asked.minimum is None else max(at_most, asked.minimum))

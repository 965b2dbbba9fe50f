"""What a component's own conf says that each of its executors needs, as Storm's ResourceAwareScheduler reads it.

Storm's defaults (128 MB, 10% of a core) are left out: they say nothing about the component.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

RESOURCES_MAP = "topology.component.resources.map"
ON_HEAP = ("topology.component.resources.onheap.memory.mb", "onheap.memory.mb")
OFF_HEAP = ("topology.component.resources.offheap.memory.mb", "offheap.memory.mb")
CPU_PERCENT = ("topology.component.cpu.pcore.percent", "cpu.pcore.percent")
MILLICORES_PER_PERCENT = 10.0


class DeclaredResources(TypedDict):
    """The fields of core.model.Component; None is not declared."""

    declared_memory_mb: float | None
    declared_cpu_millicores: float | None


def declared_resources(conf: Mapping[str, Any]) -> DeclaredResources:
    """Memory on and off the heap together, and CPU; what is no number counts as not declared."""
    memory = [amount for names in (ON_HEAP, OFF_HEAP) if (amount := _amount(conf, names)) is not None]
    percent = _amount(conf, CPU_PERCENT)
    return DeclaredResources(
        declared_memory_mb=sum(memory) if memory else None,
        declared_cpu_millicores=None if percent is None else percent * MILLICORES_PER_PERCENT,
    )


def _amount(conf: Mapping[str, Any], names: tuple[str, str]) -> float | None:
    """The entry in the resources map, under either name, goes before the setting's own key."""
    key, name_in_map = names
    given = conf.get(RESOURCES_MAP)
    together = given if isinstance(given, dict) else {}
    for value in (together.get(name_in_map), together.get(key), conf.get(key)):
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return float(value)
    return None

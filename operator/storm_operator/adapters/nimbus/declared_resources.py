"""What a component's conf, or its topology's for all, says that executors need, as ResourceAwareScheduler reads it.

Storm's defaults (128 MB, 10% of a core) are left out: they say nothing about the component.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypedDict

RESOURCES_MAP = "topology.component.resources.map"
ON_HEAP = ("topology.component.resources.onheap.memory.mb", "onheap.memory.mb")
OFF_HEAP = ("topology.component.resources.offheap.memory.mb", "offheap.memory.mb")
CPU_PERCENT = ("topology.component.cpu.pcore.percent", "cpu.pcore.percent")
MILLICORES_PER_PERCENT = 10.0
MOST_DECLARED = 1e9
"""MB, or percent of a core: no machine has so much. Who declares more says nothing of the component, and sums of such
amounts are no numbers any more."""
NOTHING_DECLARED: Mapping[str, Any] = MappingProxyType({})


class DeclaredResources(TypedDict):
    """The fields of core.model.Component; None is not declared."""

    declared_memory_mb: float | None
    declared_cpu_millicores: float | None


def declared_for_all(topology_conf: Mapping[str, Any], nimbus_conf: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the topology's conf declares for each component that does not say otherwise.

    That conf is merged with `nimbus_conf`: what is the same in both is a default, and nobody's word.
    """
    keys = (ON_HEAP[0], OFF_HEAP[0], CPU_PERCENT[0])
    found = {key: topology_conf[key] for key in keys if key in topology_conf}
    given = {key: value for key, value in found.items() if nimbus_conf.get(key) != value}
    defaults = _resources_map(nimbus_conf)
    together = {name: value for name, value in _resources_map(topology_conf).items() if defaults.get(name) != value}
    return {**given, RESOURCES_MAP: together}


def declared_resources(conf: Mapping[str, Any], of_all: Mapping[str, Any] = NOTHING_DECLARED) -> DeclaredResources:
    """Memory on and off the heap together, and CPU; what is no number, or more than there is, counts as not declared.

    Each amount that the component's `conf` does not say is that `of_all` (`declared_for_all`).
    """
    memory = [amount for names in (ON_HEAP, OFF_HEAP) if (amount := _first_amount((conf, of_all), names)) is not None]
    percent = _first_amount((conf, of_all), CPU_PERCENT)
    return DeclaredResources(
        declared_memory_mb=sum(memory) if memory else None,
        declared_cpu_millicores=None if percent is None else percent * MILLICORES_PER_PERCENT,
    )


def _first_amount(confs: Iterable[Mapping[str, Any]], names: tuple[str, str]) -> float | None:
    return next((amount for conf in confs if (amount := _amount(conf, names)) is not None), None)


def _resources_map(conf: Mapping[str, Any]) -> Mapping[str, Any]:
    given = conf.get(RESOURCES_MAP)
    return given if isinstance(given, dict) else {}


def _amount(conf: Mapping[str, Any], names: tuple[str, str]) -> float | None:
    """The entry in the resources map, under either name, goes before the setting's own key."""
    key, name_in_map = names
    together = _resources_map(conf)
    for value in (together.get(name_in_map), together.get(key), conf.get(key)):
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST_DECLARED:
            return float(value)
    return None

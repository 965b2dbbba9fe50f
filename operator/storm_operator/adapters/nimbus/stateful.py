"""Which components hold state, and how we know.

In order: the user's word; Storm's own plumbing holds none; the class inside the serialized bolt (TopologyBuilder
wraps each stateful or windowed bolt in an executor class of its own); a fields grouping, which is a hint only:
whoever sends equal keys to one task usually keeps something per key there. Spouts hold none under `auto`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from storm_operator.adapters.errors import UnknownComponent
from storm_operator.adapters.nimbus.java_stream import class_names
from storm_operator.core.topology_spec import StatefulSpec

STATEFUL_CLASSES = {
    "org.apache.storm.topology.StatefulBoltExecutor": "a stateful bolt",
    "org.apache.storm.topology.base.BaseStatefulBolt": "a stateful bolt",
    "org.apache.storm.topology.StatefulWindowedBoltExecutor": "a stateful windowed bolt",
    "org.apache.storm.topology.base.BaseStatefulWindowedBolt": "a stateful windowed bolt",
    "org.apache.storm.topology.PersistentWindowedBoltExecutor": "a persistent windowed bolt",
    "org.apache.storm.topology.WindowedBoltExecutor": "a windowed bolt",
    "org.apache.storm.topology.base.BaseWindowedBolt": "a windowed bolt",
    "org.apache.storm.streams.StatefulProcessorBolt": "a stateful bolt of the Streams API",
    "org.apache.storm.streams.WindowedProcessorBolt": "a windowed bolt of the Streams API",
    "org.apache.storm.trident.planner.processor.PartitionPersistProcessor": "a Trident state",
}
"""Exact names: CheckpointTupleForwarder, around every stateless bolt of a checkpointed topology, is none of them."""

SYSTEM_PREFIXES = ("__", "$checkpoint")


@dataclass(frozen=True, slots=True, order=True)
class StatefulFinding:
    """Whether `component` holds state, and the reason as words for a person."""

    component: str
    stateful: bool
    reason: str


def is_plumbing(component: str) -> bool:
    """Whether Storm itself added the component (ackers, metrics consumers, the checkpoint spout, ...)."""
    return component.startswith(SYSTEM_PREFIXES)


def find_stateful(storm_topology: Any, spec: StatefulSpec) -> tuple[StatefulFinding, ...]:
    """One finding per component of a Thrift StormTopology, sorted. UnknownComponent when `spec` names no component."""
    components = [*storm_topology.spouts, *storm_topology.bolts]
    check_spec(spec, components)
    findings = [_finding(name, None, spec) for name in storm_topology.spouts]
    findings += [_finding(name, bolt, spec) for name, bolt in storm_topology.bolts.items()]
    return tuple(sorted(findings))


def check_spec(spec: StatefulSpec, components: Collection[str]) -> None:
    """Raises UnknownComponent for a name that is no component, or that stands in both lists."""
    both = sorted(set(spec.stateful) & set(spec.stateless))
    if both:
        raise UnknownComponent(f"{', '.join(both)}: named both stateful and stateless; name each component once")
    for field, names in (("stateful", spec.stateful), ("stateless", spec.stateless)):
        unknown = sorted(set(names) - set(components))
        if unknown:
            known = ", ".join(sorted(name for name in components if not is_plumbing(name)))
            raise UnknownComponent(f"{field}: no component {', '.join(unknown)}; the topology has {known}")


def _finding(name: str, bolt: Any | None, spec: StatefulSpec) -> StatefulFinding:
    if name in spec.stateful:
        return StatefulFinding(name, True, "named stateful by the user")
    if name in spec.stateless:
        return StatefulFinding(name, False, "named stateless by the user")
    if is_plumbing(name):
        return StatefulFinding(name, False, "Storm's own component")
    if bolt is None:
        return StatefulFinding(name, False, "a spout")
    return _finding_of_bolt(name, bolt)


def _finding_of_bolt(name: str, bolt: Any) -> StatefulFinding:
    for class_name in _classes_of(bolt.bolt_object):
        if class_name in STATEFUL_CLASSES:
            return StatefulFinding(name, True, f"{STATEFUL_CLASSES[class_name]} ({class_name.rpartition('.')[2]})")
    for source, stream, keys in sorted(_keyed_inputs(bolt)):
        return StatefulFinding(name, True, f"fields grouping on {', '.join(keys)} of {source}/{stream} (a hint)")
    return StatefulFinding(name, False, "neither a stateful nor windowed class nor a fields grouping")


def _classes_of(component_object: Any) -> tuple[str, ...]:
    if component_object.serialized_java is not None:
        return class_names(_as_bytes(component_object.serialized_java))
    if component_object.java_object is not None:
        return (component_object.java_object.full_class_name,)
    return ()


def _as_bytes(value: bytes | str) -> bytes:
    # A Thrift reader gives text for binary fields that happen to be UTF-8; Java streams never are, but be safe.
    return value.encode("utf-8") if isinstance(value, str) else bytes(value)


def _keyed_inputs(bolt: Any) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    for stream, grouping in bolt.common.inputs.items():
        if grouping.fields and not is_plumbing(stream.componentId):
            yield stream.componentId, stream.streamId, tuple(grouping.fields)

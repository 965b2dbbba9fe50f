"""The executors of a cluster and who sends to whom, as arrays: what does not depend on the assignment.

Rows are the sorted executors of all topologies. A *segment* is one executor's share of one edge: the pairs to all
executors of the subscriber, side by side. Ack messages are kept apart: every executed tuple sends one to an acker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from storm_operator.core.arrays import Flags, Floats, Ints
from storm_operator.core.model import ACKER_COMPONENT, ComponentKind, Executor, Topology
from storm_operator.simulator.model import Grouping, SimulatedEdge, SimulatedTopology

JAVA_LIST_HASH_SEED = 31
LOCAL_FIRST = (Grouping.SHUFFLE, Grouping.LOCAL_OR_SHUFFLE)


@dataclass(frozen=True, slots=True)
class Wiring:
    """One row per executor, then one per pair (user streams), per segment, and per ack pair."""

    executors: tuple[Executor, ...]
    topologies: tuple[Topology, ...]
    topology_of: Ints
    component_of: Ints
    component_names: tuple[tuple[str, str], ...]
    """(topology id, component) by component number."""
    level_of: Ints
    """Longest way from a spout; ackers come after everything else. Cycles count as one level."""
    tasks: Floats
    """How many each executor has."""
    is_spout: Flags
    is_acker: Flags
    cpu_ms: Floats
    cpu_deviation: Floats
    load_share: Floats
    """Which part of its spout's load an executor is offered; 0 for all others."""
    emitted_per_tuple: Floats
    """Tuples on user streams for each tuple that an executor executes: one for all that subscribe to its stream."""

    pair_source: Ints
    pair_target: Ints
    pair_weight: Floats
    """Tuples to the target for each tuple that the source executes."""
    segment_start: Ints
    """First pair of each segment, and the number of pairs at the end."""
    segment_tuples: Floats
    segment_is_all: Flags
    segment_prefers_local: Flags
    """Tasks of the own worker, where there are some."""
    segment_prefers_host: Flags
    """Else those of the own supervisor."""
    executor_segments: Ints
    """First segment of each executor, and the number of segments at the end."""

    ack_source: Ints
    ack_target: Ints
    ack_weight: Floats
    acker_start: Ints
    """First acker row of each topology, and past its last one in `acker_end`; equal where there is none."""
    acker_end: Ints

    @property
    def size(self) -> int:
        return len(self.executors)


@dataclass(slots=True)
class _Pairs:
    """What is collected edge by edge: a block of segments each."""

    sources: list[Ints]
    targets: list[Ints]
    weights: list[Floats]
    segment_sources: list[Ints]
    segment_sizes: list[Ints]
    segment_tuples: list[Floats]
    segment_is_all: list[Flags]
    segment_prefers_local: list[Flags]
    segment_prefers_host: list[Flags]


def wire(topologies: tuple[SimulatedTopology, ...]) -> Wiring:
    """The wiring of `topologies`."""
    ordered = tuple(sorted(topologies, key=lambda topology: topology.id))
    shown = tuple(topology.as_topology() for topology in ordered)
    executors = tuple(sorted(executor for topology in shown for executor in topology.executors))
    row_of = {executor: row for row, executor in enumerate(executors)}
    names = sorted({(executor.topology_id, executor.component) for executor in executors})
    number_of = {name: number for number, name in enumerate(names)}
    component_of = np.array([number_of[e.topology_id, e.component] for e in executors], dtype=np.int64)
    topology_number = {topology.id: number for number, topology in enumerate(shown)}
    columns = _executor_columns(ordered, executors)
    pairs = _Pairs([], [], [], [], [], [], [], [], [])
    for topology, visible in zip(ordered, shown, strict=True):
        rows = {c.name: _rows(visible, c.name, row_of) for c in visible.components}
        for edge in topology.edges:
            _add_edge(pairs, topology, edge, rows, executors)
    acks = [_ack_pairs(visible, row_of) for visible in shown]
    sorted_pairs = _sorted_pairs(pairs, len(executors))
    return Wiring(
        executors=executors,
        topologies=shown,
        topology_of=np.array([topology_number[e.topology_id] for e in executors], dtype=np.int64),
        component_of=component_of,
        component_names=tuple(names),
        level_of=_levels(ordered, executors),
        tasks=np.array([float(len(executor.tasks)) for executor in executors]),
        is_acker=np.array([e.component == ACKER_COMPONENT for e in executors], dtype=bool),
        **columns,
        **sorted_pairs,
        ack_source=_joined_ints([a[0] for a in acks]),
        ack_target=_joined_ints([a[1] for a in acks]),
        ack_weight=_joined([a[2] for a in acks]),
        acker_start=np.array([a[3] for a in acks], dtype=np.int64),
        acker_end=np.array([a[4] for a in acks], dtype=np.int64),
    )


def _executor_columns(topologies: tuple[SimulatedTopology, ...], executors: tuple[Executor, ...]) -> dict[str, Any]:
    size = len(executors)
    floats = ("cpu_ms", "cpu_deviation", "load_share", "emitted_per_tuple")
    columns: dict[str, Any] = {name: np.zeros(size) for name in floats}
    columns["is_spout"] = np.zeros(size, dtype=bool)
    components = {(t.id, c.name): c for t in topologies for c in t.components}
    emitted = {t.id: _emitted(t) for t in topologies}
    seen: dict[tuple[str, str], int] = {}
    for row, executor in enumerate(executors):
        component = components.get((executor.topology_id, executor.component))
        if component is None:
            continue
        columns["cpu_ms"][row] = component.cpu_ms_per_tuple
        columns["cpu_deviation"][row] = component.cpu_deviation
        columns["emitted_per_tuple"][row] = emitted[executor.topology_id].get(executor.component, 0.0)
        if component.kind is ComponentKind.SPOUT:
            key = (executor.topology_id, executor.component)
            at = seen[key] = seen.get(key, -1) + 1
            position = 2.0 * at / (component.executors - 1) - 1.0 if component.executors > 1 else 0.0
            columns["load_share"][row] = (1.0 + component.load_spread * position) / component.executors
            columns["is_spout"][row] = True
    return columns


def _emitted(topology: SimulatedTopology) -> Mapping[str, float]:
    """By component, as Storm counts: once for each emit, however many get the tuple."""
    of_stream: dict[tuple[str, str], float] = {}
    for edge in topology.edges:
        key = (edge.source, edge.stream)
        of_stream[key] = max(edge.tuples_per_tuple, of_stream.get(key, 0.0))
    emitted: dict[str, float] = {}
    for (source, _), tuples in of_stream.items():
        emitted[source] = emitted.get(source, 0.0) + tuples
    return emitted


def _rows(topology: Topology, component: str, row_of: Mapping[Executor, int]) -> Ints:
    return np.array([row_of[executor] for executor in topology.executors_of(component)], dtype=np.int64)


def _add_edge(
    pairs: _Pairs,
    topology: SimulatedTopology,
    edge: SimulatedEdge,
    rows: Mapping[str, Ints],
    executors: tuple[Executor, ...],
) -> None:
    sources, targets = rows[edge.source], rows[edge.target]
    shares = _target_shares(topology, edge, [executors[row] for row in targets])
    block = np.repeat(shares[None, :], len(sources), axis=0)
    if edge.pinned_share:
        block = (1.0 - edge.pinned_share) * block + edge.pinned_share * _pinned(
            [executors[row] for row in sources], [executors[row] for row in targets]
        )
    count = len(sources)
    pairs.sources.append(np.repeat(sources, len(targets)))
    pairs.targets.append(np.tile(targets, count))
    pairs.weights.append((edge.tuples_per_tuple * block).ravel())
    pairs.segment_sources.append(sources)
    pairs.segment_sizes.append(np.full(count, len(targets), dtype=np.int64))
    pairs.segment_tuples.append(np.full(count, edge.tuples_per_tuple))
    pairs.segment_is_all.append(np.full(count, edge.grouping is Grouping.ALL))
    local = edge.grouping is Grouping.LOCAL_OR_SHUFFLE or (edge.grouping is Grouping.SHUFFLE and topology.load_aware)
    pairs.segment_prefers_local.append(np.full(count, local))
    pairs.segment_prefers_host.append(np.full(count, local and topology.load_aware))


def _target_shares(topology: SimulatedTopology, edge: SimulatedEdge, targets: list[Executor]) -> Floats:
    """Tuples for each target executor of one that is sent; under `all` every task gets one."""
    lengths = np.array([float(len(executor.tasks)) for executor in targets])
    if edge.grouping is Grouping.ALL:
        return lengths
    if edge.grouping is Grouping.GLOBAL:
        return np.array([1.0] + [0.0] * (len(targets) - 1))
    if edge.shares is None or edge.grouping in LOCAL_FIRST:
        return np.asarray(lengths / lengths.sum(), dtype=np.float64)
    if len(edge.shares) != int(lengths.sum()):
        raise ValueError(
            f"topology {topology.name}: shares of {edge.source} -> {edge.target} are {len(edge.shares)}; "
            f"one for each of the {int(lengths.sum())} tasks is right"
        )
    first = targets[0].task_start
    return np.array([sum(edge.shares[task - first] for task in executor.tasks) for executor in targets])


def _pinned(sources: list[Executor], targets: list[Executor]) -> Floats:
    """Where fields grouping sends each source task's own number: Java's hash of a list of one small number."""
    first = targets[0].task_start
    count = targets[-1].task_end - first + 1
    column_of = {task - first: column for column, executor in enumerate(targets) for task in executor.tasks}
    block = np.zeros((len(sources), len(targets)))
    for row, executor in enumerate(sources):
        for task in executor.tasks:
            block[row, column_of[(JAVA_LIST_HASH_SEED + task) % count]] += 1.0 / len(executor.tasks)
    return block


def _sorted_pairs(pairs: _Pairs, size: int) -> dict[str, Any]:
    """All segments ordered by source executor, each with its pairs."""
    segment_sources = _joined_ints(pairs.segment_sources)
    sizes = _joined_ints(pairs.segment_sizes)
    order = np.argsort(segment_sources, kind="stable")
    segment_of_pair = np.repeat(np.arange(len(sizes)), sizes)
    place = np.empty(len(sizes), dtype=np.int64)
    place[order] = np.arange(len(sizes))
    pair_order = np.argsort(place[segment_of_pair], kind="stable")
    return {
        "pair_source": _joined_ints(pairs.sources)[pair_order],
        "pair_target": _joined_ints(pairs.targets)[pair_order],
        "pair_weight": _joined(pairs.weights)[pair_order],
        "segment_start": np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.int64),
        "segment_tuples": _joined(pairs.segment_tuples)[order],
        "segment_is_all": _joined_flags(pairs.segment_is_all)[order],
        "segment_prefers_local": _joined_flags(pairs.segment_prefers_local)[order],
        "segment_prefers_host": _joined_flags(pairs.segment_prefers_host)[order],
        "executor_segments": np.searchsorted(segment_sources[order], np.arange(size + 1)).astype(np.int64),
    }


def _ack_pairs(topology: Topology, row_of: Mapping[Executor, int]) -> tuple[Ints, Ints, Floats, int, int]:
    """(sources, ackers, messages per executed tuple) and the range of the ackers' rows."""
    ackers = np.array([row_of[e] for e in topology.executors if e.component == ACKER_COMPONENT], dtype=np.int64)
    if not len(ackers):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), 0, 0
    others = np.array([row_of[e] for e in topology.executors if e.component != ACKER_COMPONENT], dtype=np.int64)
    sources, targets = np.repeat(others, len(ackers)), np.tile(ackers, len(others))
    # Storm numbers the tasks of components in the order of their names: the ackers are one range of rows.
    return sources, targets, np.full(len(sources), 1.0 / len(ackers)), int(ackers[0]), int(ackers[-1]) + 1


def _levels(topologies: tuple[SimulatedTopology, ...], executors: tuple[Executor, ...]) -> Ints:
    level: dict[tuple[str, str], int] = {}
    for topology in topologies:
        found = component_levels(topology)
        level |= {(topology.id, name): at for name, at in found.items()}
        level[topology.id, ACKER_COMPONENT] = max(found.values()) + 1
    return np.array([level[e.topology_id, e.component] for e in executors], dtype=np.int64)


def component_levels(topology: SimulatedTopology) -> Mapping[str, int]:
    """The longest way from a source to each component; edges that close a cycle do not count."""
    level = {component.name: 0 for component in topology.components}
    for _ in topology.components:
        changed = False
        for edge in topology.edges:
            deeper = level[edge.source] + 1
            if edge.source != edge.target and level[edge.target] < deeper < len(level):
                level[edge.target], changed = deeper, True
        if not changed:
            break
    return level


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate([*parts, np.empty(0)])


def _joined_ints(parts: list[Ints]) -> Ints:
    return np.concatenate([*parts, np.empty(0, np.int64)])


def _joined_flags(parts: list[Flags]) -> Flags:
    return np.concatenate([*parts, np.empty(0, bool)])

"""Random topologies as Storm users write them, with the tuples that flow between their executors and their CPU.

Word counts, chains, trees and graphs with joins, a few executors or some hundreds. Every subscription connects all
executors of one component with all of the other, as Storm's groupings do: evenly under shuffle, by the keys' skew
under fields, to a single executor under global. Two thirds of the topologies are acked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from storm_operator.core.model import ACKER_COMPONENT, Component, ComponentKind, Edge, Executor, Topology

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LARGEST_TOPOLOGY = 500
SMALLEST_TOPOLOGY = 10
LARGEST_WORD_COUNT = 90
"""Beyond this many executors people have more than three components."""
TYPICAL_PARALLELISM, PARALLELISM_SPREAD = 5.5, 0.55
"""Executors for each component over a topology: median and sigma of the logarithm."""
MOST_COMPONENTS = 60
GROUPINGS, GROUPING_SHARES = ("shuffle", "fields", "global"), (0.6, 0.35, 0.05)
SELECTIVITY = {"shuffle": 1.0, "fields": 1.0, "global": 0.02}
"""Tuples out for each tuple in, typically; what is gathered in one executor has been counted or filtered before."""
SENDING_COST = 0.5
"""CPU of sending a tuple over that of processing it; an acker's tuple costs ACKER_COST of a typical component's."""
ACKER_COST = 0.1
ACKED_SHARE = 2.0 / 3.0
EXECUTORS_PER_ACKER, MOST_ACKERS = 40, 8
KEYS, KEY_SKEW = 2000, 0.8
"""How many keys a fields grouping sees, and Zipf's exponent of how often each comes."""
UNEVEN_SHUFFLE = 0.05
COST_MS = (0.02, 0.3)
"""CPU milliseconds for each tuple: the range that topologies are drawn from, evenly on a logarithmic scale."""
BUSIEST_MILLICORES = (100.0, 900.0)
"""What a topology's busiest executor uses, likewise: no executor can use more than a core."""
LEAST_MILLICORES = 5.0
LEAST_PER_SECOND = 0.01
"""Pairs below are left out: a period of 10 s would hardly see them."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A topology with its tuples per second between executors (positions in `topology.executors`) and its CPU."""

    topology: Topology
    sources: Ints
    targets: Ints
    per_second: Floats
    millicores: Floats


@dataclass(frozen=True, slots=True)
class Shape:
    """A component graph, parents first: what a tuple costs where, how many come out, and with how many executors."""

    cost: Mapping[str, float]
    parallelism: Mapping[str, int]
    edges: tuple[Edge, ...]
    selectivity: Mapping[Edge, float]


def sizes(executors: int, rng: np.random.Generator) -> list[int]:
    """Executors of each topology: from 10 to 500, small ones more often; none has more than a third of all."""
    largest = min(LARGEST_TOPOLOGY, max(SMALLEST_TOPOLOGY, executors // 3))
    drawn: list[int] = []
    left = executors
    while left:
        size = round(float(np.exp(rng.uniform(np.log(SMALLEST_TOPOLOGY), np.log(largest)))))
        size = left if left - size < SMALLEST_TOPOLOGY else size
        drawn.append(size)
        left -= size
    return drawn


def random_flow(topology_id: str, executors: int, num_workers: int, rng: np.random.Generator) -> Flow:
    """A topology of that many executors, at a load that it can bear."""
    shape = _shape(executors, rng)
    fed = _fed(shape.edges)
    rows = _rows(shape.parallelism)
    sent, received = np.zeros(executors), np.zeros(executors)
    parts: list[tuple[Ints, Ints, Floats]] = []
    for name, own in rows.items():
        emitted = received[own] if name in fed else rng.lognormal(0.0, 0.1, len(own)) / len(own)
        for edge in (edge for edge in shape.edges if edge.source == name):
            shares = _shares(edge, len(own), len(rows[edge.target]), rng)
            rates = emitted[:, None] * shape.selectivity[edge] * shares
            sent[own] += rates.sum(axis=1)
            received[rows[edge.target]] += rates.sum(axis=0)
            parts.append(_pairs(own, rows[edge.target], rates))
    sources, targets, per_second = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    cost = np.concatenate([np.full(len(own), shape.cost[name]) for name, own in rows.items()])
    cpu = cost * (received + SENDING_COST * sent)
    busiest, typical_ms = (float(np.exp(rng.uniform(*np.log(bounds)))) for bounds in (BUSIEST_MILLICORES, COST_MS))
    share_of_busiest = cpu / float(cpu.max())
    tuples = busiest / typical_ms / float(cpu.max())
    some = per_second * tuples >= LEAST_PER_SECOND
    return Flow(
        topology=_topology(topology_id, shape, num_workers),
        sources=sources[some],
        targets=targets[some],
        per_second=per_second[some] * tuples,
        millicores=np.maximum(np.round(share_of_busiest * busiest), LEAST_MILLICORES),
    )


def _pairs(sources: Ints, targets: Ints, rates: Floats) -> tuple[Ints, Ints, Floats]:
    return np.repeat(sources, len(targets)), np.tile(targets, len(sources)), rates.ravel()


def _shares(edge: Edge, sources: int, targets: int, rng: np.random.Generator) -> Floats:
    """Which part of its tuples each source sends to each target."""
    if edge.grouping == "shuffle":
        weights = rng.lognormal(0.0, UNEVEN_SHUFFLE, (sources, targets))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)
    share = np.full(targets, 1.0 / targets)  # acks go by random ids, answers to the spout that a tuple came from
    if edge.grouping == "fields" and edge.target != ACKER_COMPONENT:
        frequency = 1.0 / np.arange(1, KEYS + 1) ** KEY_SKEW
        share = np.bincount(rng.integers(0, targets, KEYS), weights=frequency / frequency.sum(), minlength=targets)
    elif edge.grouping == "global":
        share = np.eye(1, targets).ravel()
    return np.broadcast_to(share, (sources, targets))


def _rows(parallelism: Mapping[str, int]) -> Mapping[str, Ints]:
    rows, start = {}, 0
    for name, count in parallelism.items():
        rows[name] = np.arange(start, start + count, dtype=np.int64)
        start += count
    return rows


def _fed(edges: Sequence[Edge]) -> frozenset[str]:
    """All but the spouts; that ackers answer spouts does not make them bolts."""
    return frozenset(edge.target for edge in edges if edge.source != ACKER_COMPONENT)


def _topology(topology_id: str, shape: Shape, num_workers: int) -> Topology:
    fed = _fed(shape.edges)
    keyed = {edge.target for edge in shape.edges if edge.grouping == "fields"} - {ACKER_COMPONENT}
    components, executors = [], []
    task = 1
    for name, count in shape.parallelism.items():
        kind = ComponentKind.BOLT if name in fed else ComponentKind.SPOUT
        kind = ComponentKind.ACKER if name == ACKER_COMPONENT else kind
        components.append(Component(name, kind, count, stateful=name in keyed))
        executors += [Executor(topology_id, at, at, name) for at in range(task, task + count)]
        task += count
    return Topology(topology_id, topology_id, tuple(components), shape.edges, tuple(executors), num_workers)


def _shape(executors: int, rng: np.random.Generator) -> Shape:
    """As its user would size it: a component has executors by the CPU it needs, within a factor."""
    ackers = 0
    if rng.random() < ACKED_SHARE:
        ackers = min(MOST_ACKERS, 1 + executors // EXECUTORS_PER_ACKER)
    parents = _component_graph(executors - ackers, rng)
    names = [f"c{at:02}" for at in range(len(parents))]
    edges = tuple(
        Edge(names[parent], "default", name, str(rng.choice(GROUPINGS, p=GROUPING_SHARES)))
        for name, own in zip(names, parents, strict=True)
        for parent in own
    )
    selectivity = {edge: float(rng.lognormal(0.0, 0.4)) * SELECTIVITY[edge.grouping] for edge in edges}
    cost = {name: float(rng.lognormal(0.0, 0.5)) for name in names}
    needs = _needs(names, edges, selectivity, cost) * rng.lognormal(0.0, 0.3, len(names))
    spare = rng.multinomial(executors - ackers - len(names), needs / needs.sum())
    parallelism = {name: 1 + int(extra) for name, extra in zip(names, spare, strict=True)}
    if ackers:
        parallelism[ACKER_COMPONENT], cost[ACKER_COMPONENT] = ackers, ACKER_COST
        spouts = [name for name, own in zip(names, parents, strict=True) if not own]
        acks = [Edge(name, "__ack", ACKER_COMPONENT, "fields") for name in names]
        answers = [Edge(ACKER_COMPONENT, "__ack_ack", spout, "direct") for spout in spouts]
        selectivity |= dict.fromkeys(acks, 1.0) | dict.fromkeys(answers, 1.0 / len(names) / len(spouts))
        edges = (*edges, *acks, *answers)
    return Shape(cost, parallelism, edges, selectivity)


def _needs(
    names: Sequence[str], edges: Sequence[Edge], selectivity: Mapping[Edge, float], cost: Mapping[str, float]
) -> Floats:
    """What each component's CPU is to the others', spouts emitting one tuple per second each."""
    fed = _fed(edges)
    taken = dict.fromkeys(names, 0.0)
    sent = dict.fromkeys(names, 0.0)
    for name in names:
        for edge in (edge for edge in edges if edge.source == name):
            rate = (taken[name] if name in fed else 1.0) * selectivity[edge]
            sent[name] += rate
            taken[edge.target] += rate
    return np.array([cost[name] * (taken[name] + SENDING_COST * sent[name]) for name in names], dtype=np.float64)


def _component_graph(executors: int, rng: np.random.Generator) -> list[list[int]]:
    """The parents of each component; spouts have none."""
    if executors <= LARGEST_WORD_COUNT and rng.random() < 0.3:
        return [[], [0], [1]]
    typical = float(rng.lognormal(np.log(TYPICAL_PARALLELISM), PARALLELISM_SPREAD))
    count = int(np.clip(round(executors / typical), 3, min(MOST_COMPONENTS, executors)))
    kind = rng.choice(["chain", "tree", "graph"])
    if kind == "chain":
        return [[], *([at] for at in range(count - 1))]
    if kind == "tree":
        return [[], *([(at - 1) // 2] for at in range(1, count))]
    spouts = 1 + int(count >= 6)
    parents: list[list[int]] = [[] for _ in range(spouts)]
    for at in range(spouts, count):
        near = np.arange(max(0, at - 5), at)
        wanted = min(len(near), 1 + int(rng.random() < 0.4))
        parents.append(sorted(int(parent) for parent in rng.choice(near, wanted, replace=False)))
    return parents

"""Small clusters whose optimum can be proven: every topology shape, with everything that makes placement hard.

`optimum_case(number)` is the same for ever: benchmarks/optimum.py measures the first 200, tests take a few.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from builders import FIRST_PORT, component_load, graph_topology, history, placement_settings, snapshot
from placement_cases import Case, dealt
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.distances import Distances
from storm_operator.core.model import (
    ACKER_COMPONENT,
    Assignment,
    ComponentKind,
    Edge,
    Executor,
    Supervisor,
    Topology,
    WorkerSlot,
)
from storm_operator.core.settings import SchedulingSettings, Separation
from storm_operator.core.snapshot import ClusterSnapshot, LoadPeriod

MOST_EXECUTORS = 24
MOST_SUPERVISORS = 5

SHAPES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "chain": (("spout", "a"), ("a", "b"), ("b", "c")),
    "star": (("spout", "hub"), ("side", "hub"), ("hub", "left"), ("hub", "right")),
    "diamond": (("spout", "left"), ("spout", "right"), ("left", "sink"), ("right", "sink")),
    "word count": (("spout", "split"), ("split", "count")),
    "http monitor": (
        ("spout", "parse"),
        ("parse", "hosts"),
        ("parse", "status"),
        ("status", "alarm"),
        ("hosts", "top"),
    ),
    "join": (("orders", "join"), ("clicks", "clean"), ("clean", "join"), ("join", "store")),
    "random": (),
}
"""Edges between components by shape; `random` draws its own."""


@dataclass(frozen=True, slots=True)
class OptimumCase:
    """One instance and what it is made of."""

    number: int
    shape: str
    description: str
    case: Case


def optimum_case(number: int) -> OptimumCase:
    """Instance `number`: its shape is the number modulo the shapes, everything else is drawn from its seed."""
    rng = random.Random(f"optimum {number}")
    shape = list(SHAPES)[number % len(SHAPES)]
    with_ackers = rng.random() < 0.5
    separation = rng.choice([Separation.ALWAYS, Separation.ALWAYS, Separation.NEVER, Separation.AUTO])
    topologies = _topologies(rng, shape, with_ackers)
    demand = _demand(rng, topologies)
    use = 1.15 if rng.random() < 0.05 else rng.uniform(0.35, 0.85)
    equal_machines = rng.random() < 0.5
    machines = _machines(rng, len(topologies), demand, use, equal=equal_machines)
    distances, distance_name = _distances(rng, machines)
    start, start_name = _start(rng, topologies, machines)
    picture = replace(
        snapshot(topologies, machines, start, rates=_rates(rng, topologies), periods=_steady_history(topologies)),
        distances=distances,
    )
    picture = _with_dead_supervisor(rng, picture)
    settings = placement_settings(topologies, scheduling=SchedulingSettings(separation=separation))
    description = (
        f"{sum(len(t.executors) for t in topologies)} executors of {len(topologies)} topologies on "
        f"{len(picture.supervisors)} {'equal' if equal_machines else 'unequal'} supervisors, {use:.0%} of CPU, "
        f"{distance_name} distances, {'with' if with_ackers else 'no'} ackers, separation {separation}, "
        f"in force: {start_name}"
    )
    return OptimumCase(number, shape, description, Case(picture, Demand(demand, demand), settings))


def _topologies(rng: random.Random, shape: str, with_ackers: bool) -> tuple[Topology, ...]:
    """One topology, or two that share the executors."""
    size = rng.randint(8, MOST_EXECUTORS)
    count = 2 if size >= 16 and rng.random() < 0.3 else 1
    return tuple(_topology(rng, f"t{at}", shape, size // count, with_ackers) for at in range(count))


def _topology(rng: random.Random, topology_id: str, shape: str, size: int, with_ackers: bool) -> Topology:
    arrows = SHAPES[shape] or _random_arrows(rng)
    names = list(dict.fromkeys(name for arrow in arrows for name in arrow))
    fed = {target for _, target in arrows}
    stateful = [name for name in names if name in fed and rng.random() < 0.4]
    edges = [Edge(a, "default", b, "fields" if b in stateful else "shuffle") for a, b in arrows]
    spouts = [name for name in names if name not in fed]
    if with_ackers:
        edges += [Edge(name, "__ack", ACKER_COMPONENT, "fields") for name in names]
        edges += [Edge(ACKER_COMPONENT, "__ack_ack", spout, "direct") for spout in spouts]
        names.append(ACKER_COMPONENT)
    parallelism = dict.fromkeys(names, 1)
    for _ in range(size - len(names)):
        parallelism[rng.choice(names)] += 1
    topology = graph_topology(topology_id, parallelism, edges, stateful=stateful)
    kinds = {ACKER_COMPONENT: ComponentKind.ACKER, **dict.fromkeys(spouts, ComponentKind.SPOUT)}
    components = tuple(replace(c, kind=kinds.get(c.name, ComponentKind.BOLT)) for c in topology.components)
    return replace(topology, components=components)


def _random_arrows(rng: random.Random) -> tuple[tuple[str, str], ...]:
    """A connected acyclic graph of four to six components: each later one is fed by one or two earlier ones."""
    names = [f"c{at}" for at in range(rng.randint(4, 6))]
    return tuple(
        (source, names[at])
        for at in range(1, len(names))
        for source in sorted(rng.sample(names[:at], min(at, rng.randint(1, 2))))
    )


def _demand(rng: random.Random, topologies: Sequence[Topology]) -> dict[Executor, float]:
    """Either steps of 100 millicores by component, as Liu's theta makes them, or every executor its own."""
    own = rng.random() < 0.4
    demand: dict[Executor, float] = {}
    for topology in topologies:
        for component in topology.components:
            each = 100.0 * rng.randint(1, 6)
            for executor in topology.executors_of(component.name):
                demand[executor] = round(each * rng.uniform(0.6, 1.4), 1) if own else each
    return demand


def _machines(
    rng: random.Random, topologies: int, demand: Mapping[Executor, float], use: float, *, equal: bool
) -> tuple[Supervisor, ...]:
    count = rng.randint(2, MOST_SUPERVISORS)
    sizes = [1.0 if equal else rng.choice([0.5, 1.0, 2.0]) for _ in range(count)]
    usable = max(sum(demand.values()) / use, max(demand.values()) * sum(sizes) / min(sizes) if use < 1.0 else 0.0)
    slots = rng.choice([1, 2, 2, 3]) if topologies == 1 else rng.choice([2, 3, 4])
    ports = tuple(range(FIRST_PORT, FIRST_PORT + slots))
    return tuple(
        Supervisor(f"s{at + 1}", f"10.0.0.{at + 1}", ports, float(round(usable * size / sum(sizes) / 0.9)))
        for at, size in enumerate(sizes)
    )


def _distances(rng: random.Random, machines: Sequence[Supervisor]) -> tuple[Distances, str]:
    typical = rng.choice([0.5, 4.0])
    kind = rng.choice(["equal", "two zones", "uneven"])
    trips: dict[tuple[str, str], float] = {}
    for at, a in enumerate(machines):
        for other in range(at + 1, len(machines)):
            b = machines[other]
            trip = typical
            if kind == "two zones":
                trip = typical * (1.0 if at % 2 == other % 2 else 5.0)
            elif kind == "uneven":
                trip = typical * rng.uniform(0.5, 2.0)
            trips[a.id, b.id] = trips[b.id, a.id] = trip
    measured = sorted(trips.values())
    return Distances(trips, typical / rng.choice([4.0, 20.0]), measured[len(measured) // 2]), kind


def _start(
    rng: random.Random, topologies: Sequence[Topology], machines: Sequence[Supervisor]
) -> tuple[dict[Executor, WorkerSlot], str]:
    """Nothing, Even's round robin, runs of neighbours that fitted another load, or runs with executors to be placed."""
    kind = rng.choice(["nothing", "nothing", "dealt", "runs", "runs", "runs and new executors"])
    slot_of: dict[Executor, WorkerSlot] = {}
    if kind == "nothing":
        return slot_of, kind
    for at, topology in enumerate(topologies):
        slots = [machine.slots[at % len(machine.slots)] for machine in machines]
        if kind == "dealt":
            slot_of |= dealt(topology, slots)
            continue
        executors = list(topology.executors)
        chosen = rng.sample(slots, rng.randint(1, len(slots)))
        cuts = sorted(rng.randint(0, len(executors)) for _ in chosen[1:])
        for slot, first, last in zip(chosen, [0, *cuts], [*cuts, len(executors)], strict=True):
            slot_of |= dict.fromkeys(executors[first:last], slot)
    if kind == "runs and new executors":
        for executor in rng.sample(sorted(slot_of), len(slot_of) // 4):
            del slot_of[executor]
    return slot_of, kind


def _rates(rng: random.Random, topologies: Sequence[Topology]) -> dict[tuple[Executor, Executor], float]:
    """Tuples flow from the spouts; shuffle spreads evenly, fields grouping by a skewed share for each receiver."""
    rates: dict[tuple[Executor, Executor], float] = {}
    for topology in topologies:
        per_second = rng.choice([20.0, 500.0, 20_000.0])
        flow = {c.name: per_second for c in topology.components}
        for edge in topology.edges:
            if edge.target != ACKER_COMPONENT and edge.source != ACKER_COMPONENT:
                flow[edge.target] = flow[edge.source] * rng.choice([0.3, 1.0, 1.0, 4.0])
        for edge in topology.edges:
            sources, targets = topology.executors_of(edge.source), topology.executors_of(edge.target)
            skewed = edge.grouping == "fields" and edge.target != ACKER_COMPONENT
            parts = [rng.uniform(0.2, 2.0) if skewed else 1.0 for _ in targets]
            through = flow[edge.target] if edge.source == ACKER_COMPONENT else flow[edge.source]
            for source in sources:
                for target, part in zip(targets, parts, strict=True):
                    rate = through / len(sources) * part / sum(parts)
                    rates[source, target] = rates.get((source, target), 0.0) + rate
    return rates


def _steady_history(topologies: Sequence[Topology]) -> tuple[LoadPeriod, ...]:
    """Five periods without change, for `Auto` to find every first topology calm."""
    return history(topologies[0].id, {c.name: [component_load(100.0)] * 5 for c in topologies[0].components})


def _with_dead_supervisor(rng: random.Random, picture: ClusterSnapshot) -> ClusterSnapshot:
    """Now and then a supervisor has died with all that it ran; Storm still lists its executors as placed there."""
    if len(picture.supervisors) < 3 or rng.random() > 0.1:
        return picture
    return replace(
        picture,
        supervisors=picture.supervisors[1:],
        assignment=Assignment(dict(picture.assignment.slot_of)),
    )

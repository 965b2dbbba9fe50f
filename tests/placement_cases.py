"""Clusters to place on, for tests and benchmarks of placement: the measured example, random ones, large ones."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from builders import FIRST_PORT, even_traffic, graph_topology, placement_settings, snapshot
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.distances import Distances
from storm_operator.core.model import (
    ACKER_COMPONENT,
    Assignment,
    ComponentKind,
    Edge,
    Executor,
    Infeasible,
    Supervisor,
    Topology,
    WorkerSlot,
)
from storm_operator.core.settings import PlacementSettings, Separation
from storm_operator.core.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class Case:
    """What a policy is called with."""

    snapshot: ClusterSnapshot
    demand: Demand
    settings: PlacementSettings

    def under(self, **scheduling: object) -> Case:
        """The same case under other scheduling settings."""
        changed = replace(self.settings.scheduling, **scheduling)  # type: ignore[arg-type]
        return replace(self, settings=replace(self.settings, scheduling=changed))

    def at(self, seconds: float) -> Case:
        """The same case at another time."""
        return replace(self, snapshot=replace(self.snapshot, taken_at_seconds=seconds))

    def in_force(self, assignment: Assignment) -> Case:
        """The same case with `assignment` in force."""
        return replace(self, snapshot=replace(self.snapshot, assignment=assignment))


def acked_chain(topology_id: str, *steps: tuple[str, int], stateful: Sequence[str] = (), ackers: int = 1) -> Topology:
    """A chain whose spout and bolts all talk to ackers, which answer the spout."""
    names = [name for name, _ in steps]
    edges = [
        Edge(source, "default", target, "fields" if target in stateful else "shuffle")
        for source, target in itertools.pairwise(names)
    ]
    edges += [Edge(name, "__ack", ACKER_COMPONENT, "fields") for name in names]
    edges += [Edge(ACKER_COMPONENT, "__ack_ack", names[0], "direct")]
    topology = graph_topology(topology_id, {**dict(steps), ACKER_COMPONENT: ackers}, edges, stateful=stateful)
    kinds = {names[0]: ComponentKind.SPOUT, ACKER_COMPONENT: ComponentKind.ACKER}
    components = tuple(
        replace(component, kind=kinds.get(component.name, ComponentKind.BOLT)) for component in topology.components
    )
    return replace(topology, components=components)


def dealt(topology: Topology, slots: Sequence[WorkerSlot]) -> dict[Executor, WorkerSlot]:
    """The topology's executors dealt out over `slots` in turn, as Storm's Even scheduler does."""
    return {executor: slots[at % len(slots)] for at, executor in enumerate(topology.executors)}


def measured_example(separation: Separation = Separation.ALWAYS, per_second: float = 300.0) -> Case:
    """Spout -> 4 bolts -> 2 stateful bolts, one acker, dealt out over three supervisors 4 ms apart."""
    topology = acked_chain("example", ("spout", 1), ("work", 4), ("count", 2), stateful=("count",))
    machines = tuple(Supervisor(f"s{n}", f"10.0.0.{n}", (FIRST_PORT, FIRST_PORT + 1), 2000.0) for n in (1, 2, 3))
    picture = snapshot(
        (topology,),
        machines,
        dealt(topology, [machine.slots[0] for machine in machines]),
        rates=even_traffic(topology, per_second),
    )
    demand = Demand(dict.fromkeys(topology.executors, 200.0), dict.fromkeys(topology.executors, 180.0))
    case = Case(picture, demand, placement_settings((topology,)))
    return case.under(separation=separation)


def random_case(
    seed: int,
    *,
    most_executors: int = 14,
    most_supervisors: int = 4,
    most_topologies: int = 2,
    obstacles: bool = True,
    slack: float = 1.5,
) -> Case:
    """A cluster with room: `slack` times the CPU that is needed, slots for everyone, distances and loads at random."""
    rng = random.Random(seed)
    count = rng.randint(1, most_topologies)
    topologies = tuple(_random_topology(rng, f"t{n}", max(3, most_executors // count)) for n in range(count))
    machines_count = rng.randint(2, most_supervisors)
    demand = {e: 50.0 * rng.randint(1, 6) for topology in topologies for e in topology.executors}
    capacity = max(slack * sum(demand.values()) / machines_count, slack * max(demand.values())) / 0.9
    ports = tuple(range(FIRST_PORT, FIRST_PORT + 2 * count + 1))
    machines = tuple(Supervisor(f"s{n}", f"10.0.0.{n}", ports, capacity) for n in range(machines_count))
    slot_of: dict[Executor, WorkerSlot] = {}
    for at, topology in enumerate(topologies):
        slots = [machine.slots[at] for machine in machines]
        slot_of |= dealt(topology, rng.sample(slots, rng.randint(1, machines_count)))
    if rng.random() < 0.3:
        for executor in rng.sample(sorted(slot_of), len(slot_of) // 3):
            del slot_of[executor]
    rates = {
        pair: rate * rng.uniform(0.2, 2.0)
        for topology in topologies
        for pair, rate in even_traffic(topology, rng.choice([10.0, 300.0, 20000.0])).items()
    }
    picture = replace(snapshot(topologies, machines, slot_of, rates=rates), distances=_random_distances(rng, machines))
    movable = topologies[1:] if obstacles and count > 1 and rng.random() < 0.3 else topologies
    fixed = {e for topology in topologies if topology not in movable for e in topology.executors}
    kept = dict(picture.assignment.slot_of)
    for executor in fixed - kept.keys():
        kept[executor] = machines[0].slots[0]
    picture = replace(picture, assignment=Assignment(kept))
    return Case(picture, Demand(demand, demand), placement_settings(movable))


def burdened(case: Case, seed: int) -> Case:
    """The case with memory that is declared for some components, and short, and supervisors that answer not always."""
    rng = random.Random(seed)
    topologies = tuple(
        replace(
            topology,
            components=tuple(
                replace(component, declared_memory_mb=float(rng.choice([64, 128, 256])))
                if rng.random() < 0.7
                else component
                for component in topology.components
            ),
        )
        for topology in case.snapshot.topologies
    )
    machines = tuple(
        replace(
            machine,
            memory_mb=rng.choice([None, 256.0, 512.0, 768.0]),
            availability=rng.choice([1.0, 1.0, 0.99, 0.9]),
        )
        for machine in case.snapshot.supervisors
    )
    return replace(case, snapshot=replace(case.snapshot, topologies=topologies, supervisors=machines))


def large_case(executors: int, supervisors: int, topologies: int, seed: int = 1, use: float = 0.6) -> Case:
    """Word-count-like topologies of equal size, dealt out over all supervisors in two racks, at `use` of the CPU."""
    rng = random.Random(seed)
    each = executors // topologies
    parts = (max(1, each // 10), each * 4 // 10, each * 4 // 10)
    made = tuple(
        acked_chain(
            f"t{n:02}",
            ("spout", parts[0]),
            ("split", parts[1]),
            ("count", parts[2]),
            stateful=("count",),
            ackers=each - sum(parts),
        )
        for n in range(topologies)
    )
    demand = {e: 100.0 * rng.randint(1, 4) for topology in made for e in topology.executors}
    capacity = sum(demand.values()) / supervisors / use / 0.9
    ports = tuple(range(FIRST_PORT, FIRST_PORT + 2 * topologies))
    machines = tuple(Supervisor(f"s{n:03}", f"10.0.0.{n}", ports, capacity) for n in range(supervisors))
    slot_of: dict[Executor, WorkerSlot] = {}
    for at, topology in enumerate(made):
        slot_of |= dealt(topology, [machine.slots[at] for machine in machines])
    rates = {
        pair: rate * rng.uniform(0.5, 1.5)
        for topology in made
        for pair, rate in even_traffic(topology, 5000.0 * rng.uniform(0.5, 2.0)).items()
    }
    trips = {
        (a.id, b.id): 1.0 if (i < supervisors // 2) == (j < supervisors // 2) else 4.0
        for i, a in enumerate(machines)
        for j, b in enumerate(machines)
        if a != b
    }
    picture = replace(snapshot(made, machines, slot_of, rates=rates), distances=Distances(trips, default_ms=1.0))
    return Case(picture, Demand(demand, demand), placement_settings(made))


def placed_or_fail(result: Assignment | Infeasible) -> Assignment:
    assert isinstance(result, Assignment), result
    return result


def workers_by_supervisor(assignment: Assignment, topology_id: str) -> Mapping[str, int]:
    """How many workers of the topology each supervisor runs."""
    counts: dict[str, int] = {}
    for slot in assignment.restricted_to({topology_id}).workers():
        counts[slot.supervisor_id] = counts.get(slot.supervisor_id, 0) + 1
    return counts


def _random_topology(rng: random.Random, topology_id: str, most: int) -> Topology:
    widths = [1]
    while sum(widths) < most - 2 and len(widths) < 4:
        widths.append(rng.randint(1, max(1, min(4, most - 1 - sum(widths)))))
    steps = [(f"c{at}", width) for at, width in enumerate(widths)]
    stateful = [name for name, _ in steps[1:] if rng.random() < 0.5]
    return acked_chain(topology_id, *steps, stateful=stateful)


def _random_distances(rng: random.Random, machines: Sequence[Supervisor]) -> Distances:
    typical = rng.choice([0.3, 4.0, 40.0])
    trips: dict[tuple[str, str], float] = {}
    for i, a in enumerate(machines):
        for b in machines[i + 1 :]:
            trips[a.id, b.id] = trips[b.id, a.id] = typical * rng.uniform(0.5, 2.0)
    return Distances(trips, loopback_ms=typical / 20.0, default_ms=typical)

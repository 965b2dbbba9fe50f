"""Clusters to plan for, from 10 to 100,000 executors: seeded, so that everybody plans for the very same one.

About 18 pairs of executors exchange tuples for each executor (fewer where there are few executors), supervisors have
four slots, CPU is filled to `use`, and in force is what Storm's Even scheduler made.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from plan.distances import known_distances, measured_distances
from plan.topologies import Floats, Flow, random_flow, sizes

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.distances import Distances
from storm_operator.core.model import (
    Assignment,
    Executor,
    ExecutorLoad,
    Supervisor,
    Topology,
    WorkerSlot,
)
from storm_operator.core.settings import ObjectiveWeights, PlacementSettings, SchedulingSettings, Separation
from storm_operator.core.snapshot import ClusterSnapshot, Completeness, LatencySummary, LoadPeriod, TopologyRates
from storm_operator.core.traffic import TrafficMatrix

PORTS = (6700, 6701, 6702, 6703)
WORKERS_PER_SUPERVISOR = 1.5
"""How many workers the topologies ask for together."""
UNEQUAL_CAPACITY = (0.5, 1.0, 2.0)
MOST_MILLICORES = 1000.0
LARGEST_ROOM = 1.2
"""A supervisor takes at least this many of the largest executor."""
NOW_SECONDS, PERIOD_SECONDS = 1000.0, 10.0


@dataclass(frozen=True, slots=True)
class Scale:
    """What to generate. `use` is demand over capacity of the whole cluster; `zones` of equally many supervisors.

    `distance_spread` is the standard deviation of the logarithm of each distance that an agent measures to one of its
    neighbours; with 0 nobody measured, beyond the zones.
    `supervisor_price` is a factor for the objective's weight of a supervisor in use; with 0 they are free.
    `restart_price` is a factor for its weights of restarts; with 0 a plan may tear everything up.
    `separation` is that of stateful and stateless executors: always is the harder task.
    """

    executors: int
    supervisors: int
    seed: int = 1
    use: float = 0.7
    zones: int = 1
    distance_spread: float = 0.0
    heterogeneous: bool = False
    supervisor_price: float = 1.0
    restart_price: float = 1.0
    separation: Separation = Separation.ALWAYS


@dataclass(frozen=True, slots=True)
class Instance:
    """What a policy is called with."""

    snapshot: ClusterSnapshot
    demand: Demand
    settings: PlacementSettings

    def under(self, policy: str) -> Instance:
        """The same instance under the policy of that name."""
        scheduling = replace(self.settings.scheduling, policy=policy)
        return replace(self, settings=replace(self.settings, scheduling=scheduling))

    def in_force(self, assignment: Assignment) -> Instance:
        """The same instance with `assignment` in force."""
        return replace(self, snapshot=replace(self.snapshot, assignment=assignment))

    def busier_topology(self, factor: float) -> Instance:
        """The same instance after the tuples and the CPU of its median topology by size changed by `factor`."""
        by_size = sorted(self.snapshot.topologies, key=lambda topology: (len(topology.executors), topology.id))
        busier = frozenset(by_size[len(by_size) // 2].executors)
        traffic = self.snapshot.traffic
        sources, targets, rates = traffic.flows()
        factors = np.array([factor if executor in busier else 1.0 for executor in traffic.executors])
        changed = TrafficMatrix.from_arrays(traffic.executors, sources, targets, rates * factors[sources])
        needs = {
            executor: min(round(need * factor), MOST_MILLICORES) if executor in busier else need
            for executor, need in self.demand.millicores.items()
        }
        return replace(self, snapshot=replace(self.snapshot, traffic=changed), demand=Demand(needs, needs))

    def without_supervisor(self) -> Instance:
        """The same instance after one of the supervisors in use died: Storm has no place for its executors."""
        machines = self.snapshot.supervisors
        used = self.snapshot.assignment.used_supervisors()
        dead = used[len(used) // 2]
        left = {e: slot for e, slot in self.snapshot.assignment.slot_of.items() if slot.supervisor_id != dead}
        alive = tuple(machine for machine in machines if machine.id != dead)
        return replace(self, snapshot=replace(self.snapshot, supervisors=alive, assignment=Assignment(left)))


def add_scale_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--executors", type=int, default=1000)
    parser.add_argument("--supervisors", type=int, default=None, help="a tenth of the executors, but two at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--use", type=float, default=0.7, help="demand over capacity of the whole cluster")
    parser.add_argument("--zones", type=int, default=1)
    parser.add_argument(
        "--distance-spread",
        type=float,
        default=0.0,
        help="agents measured their neighbours, each distance of its own: standard deviation of the logarithm",
    )
    parser.add_argument("--supervisor-price", type=float, default=1.0, help="a factor; 0: they are free")
    parser.add_argument("--restart-price", type=float, default=1.0, help="a factor; 0: from scratch")
    parser.add_argument(
        "--separation",
        choices=[Separation.AUTO.value, Separation.ALWAYS.value],
        default=Separation.ALWAYS.value,
        help="of stateful and stateless executors; the operator's own default is Auto",
    )
    parser.add_argument("--heterogeneous", action="store_true", help="supervisors of unequal capacity")


def scale_from(options: argparse.Namespace) -> Scale:
    supervisors = options.supervisors or max(2, options.executors // 10)
    return Scale(
        executors=options.executors,
        supervisors=supervisors,
        seed=options.seed,
        use=options.use,
        zones=options.zones,
        distance_spread=options.distance_spread,
        heterogeneous=options.heterogeneous,
        supervisor_price=options.supervisor_price,
        restart_price=options.restart_price,
        separation=Separation(options.separation),
    )


def scale_arguments(scale: Scale) -> list[str]:
    """The command line that `scale_from` reads back."""
    arguments = ["--heterogeneous"] if scale.heterogeneous else []
    names = ("executors", "supervisors", "seed", "use", "zones", "distance_spread")
    for name in (*names, "supervisor_price", "restart_price", "separation"):
        arguments += [f"--{name.replace('_', '-')}", str(getattr(scale, name))]
    return arguments


def make_instance(scale: Scale) -> Instance:
    """The instance of that scale and seed."""
    rng = np.random.default_rng(scale.seed)
    workers = WORKERS_PER_SUPERVISOR * scale.supervisors / scale.executors
    flows = [
        random_flow(f"t{at:05}", size, max(1, round(size * workers)), rng)
        for at, size in enumerate(sizes(scale.executors, rng))
    ]
    demand = np.concatenate([flow.millicores for flow in flows])
    machines = _supervisors(scale, demand, rng)
    topologies = tuple(flow.topology for flow in flows)
    executors = tuple(executor for topology in topologies for executor in topology.executors)
    millicores = dict(zip(executors, demand.tolist(), strict=True))
    snapshot = ClusterSnapshot(
        taken_at_seconds=NOW_SECONDS,
        period_seconds=PERIOD_SECONDS,
        supervisors=machines,
        topologies=topologies,
        assignment=even_assignment(topologies, machines),
        loads={executor: ExecutorLoad(cpu_millicores=cpu) for executor, cpu in millicores.items()},
        traffic=_traffic(executors, flows),
        distances=_distances(machines, scale),
        completeness=Completeness(len(executors)),
        rates={
            topology.id: TopologyRates(1000.0, 0.0, LatencySummary(20.0, 15.0, 60.0, 1e4)) for topology in topologies
        },
        history=(LoadPeriod(NOW_SECONDS, PERIOD_SECONDS, {}, {}),),
    )
    return Instance(snapshot, Demand(millicores, millicores), _settings(scale, topologies))


def even_assignment(topologies: Sequence[Topology], machines: Sequence[Supervisor]) -> Assignment:
    """What `place_even` answers, without sorting all slots anew for every topology."""
    used = np.zeros(len(machines), dtype=np.int64)
    by_id = sorted(machines, key=lambda machine: machine.id)
    slot_of: dict[Executor, WorkerSlot] = {}
    for topology in topologies:
        slots = _first_free_slots(by_id, used, topology.num_workers)
        slot_of.update((executor, slots[at % len(slots)]) for at, executor in enumerate(topology.executors))
    return Assignment(slot_of)


def _first_free_slots(machines: Sequence[Supervisor], used: np.ndarray, wanted: int) -> list[WorkerSlot]:
    """In turn from each supervisor, those with most free slots first; `used` counts them."""
    order = np.argsort(used, kind="stable").tolist()
    slots: list[WorkerSlot] = []
    while len(slots) < wanted:
        free = [at for at in order if used[at] < len(PORTS)][: wanted - len(slots)]
        if not free:
            break
        slots += [WorkerSlot(machines[at].id, PORTS[used[at]]) for at in free]
        used[free] += 1
    return slots


def _settings(scale: Scale, topologies: Sequence[Topology]) -> PlacementSettings:
    usual = ObjectiveWeights()
    weights = replace(
        usual,
        supervisor_in_use=usual.supervisor_in_use * scale.supervisor_price,
        worker_restart=usual.worker_restart * scale.restart_price,
        state_lost=usual.state_lost * scale.restart_price,
    )
    movable = frozenset(topology.id for topology in topologies)
    return PlacementSettings(
        scheduling=SchedulingSettings(separation=scale.separation, weights=weights), movable=movable
    )


def _supervisors(scale: Scale, demand: Floats, rng: np.random.Generator) -> tuple[Supervisor, ...]:
    size = np.ones(scale.supervisors)
    if scale.heterogeneous:
        size = rng.choice(UNEQUAL_CAPACITY, scale.supervisors)
    capacity = np.maximum(float(demand.sum()) / scale.use * size / size.sum(), LARGEST_ROOM * float(demand.max()))
    return tuple(
        Supervisor(f"s{at:05}", f"10.{at >> 16}.{at >> 8 & 255}.{at & 255}", PORTS, round(float(each)))
        for at, each in enumerate(capacity)
    )


def _distances(machines: Sequence[Supervisor], scale: Scale) -> Distances:
    names = [machine.id for machine in machines]
    if not scale.distance_spread:
        return known_distances(names, scale.zones)
    rng = np.random.default_rng((scale.seed, scale.supervisors))
    return measured_distances(names, scale.zones, scale.distance_spread, rng)


def _traffic(executors: tuple[Executor, ...], flows: Sequence[Flow]) -> TrafficMatrix:
    starts = np.cumsum([0, *(len(flow.millicores) for flow in flows)])[:-1].tolist()
    sources = np.concatenate([flow.sources + start for flow, start in zip(flows, starts, strict=True)])
    targets = np.concatenate([flow.targets + start for flow, start in zip(flows, starts, strict=True)])
    return TrafficMatrix.from_arrays(executors, sources, targets, np.concatenate([flow.per_second for flow in flows]))

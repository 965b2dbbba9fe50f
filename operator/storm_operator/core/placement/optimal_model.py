"""The placement problem as an integer program, term by term as `objective.py` prices it.

Built from the snapshot and the objective alone, apart from what `adaptive` searches on, so that the proven optimum is
also a check of `adaptive`'s own sums. Decided is the supervisor of each movable executor; executors of one group (a
topology, or its stateful or stateless part) on one supervisor share one worker. With binary x (executor, supervisor):

    minimise  constant + Σ place_cost·x + Σ pair_cost·x·x + overload_price·Σ overload + overfull_price·Σ overfull
              + supervisor_price·Σ in use - Σ restart_price·kept

A worker in force is kept when it has all its members and nobody else of their group; the restarts of all workers
that could be kept are in the constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.placement.capacity import by_supervisor, declared_memory_mb, memory_capacities
from storm_operator.core.placement.objective import cost_of, room_for_executors
from storm_operator.core.placement.prices import prices_of, stateful_executors
from storm_operator.core.placement.slots import match_slots
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

Places = tuple[int, ...]
"""The number of the supervisor of each executor, both in the model's order."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two executors, `first < second`, that exchange tuples; `cost[s][t]` with `first` on s and `second` on t."""

    first: int
    second: int
    cost: tuple[tuple[float, ...], ...]

    @property
    def same_apart(self) -> float | None:
        """What the pair costs on any two supervisors, when that is the same for all and never less than together."""
        apart = {cost for s, row in enumerate(self.cost) for t, cost in enumerate(row) if s != t}
        nearest, farthest = min(apart, default=0.0), max(apart, default=0.0)
        together = max((row[s] for s, row in enumerate(self.cost)), default=0.0)
        return farthest if farthest <= nearest * (1.0 + 1e-12) and together <= farthest else None


@dataclass(frozen=True, slots=True)
class KeepableWorker:
    """A worker in force that would go on if `members` and nobody else of their group were on `supervisor`."""

    supervisor: int
    group: int
    members: frozenset[int]
    restart_price: float


@dataclass(frozen=True, slots=True)
class ExactModel:
    """Executors and supervisors by number, in the order of their names. Prices in tuple-ms/s, CPU in millicores."""

    executors: tuple[Executor, ...]
    supervisors: tuple[str, ...]
    group_of: tuple[int, ...]
    groups: int
    free_slots: tuple[tuple[WorkerSlot, ...], ...]
    demand: tuple[float, ...]
    memory: tuple[float, ...]
    """Declared MB."""
    room: tuple[float, ...]
    """What placement may still fill of each supervisor; negative where obstacles alone fill more."""
    memory_room: tuple[float, ...]
    """The same of memory; infinite where nobody declares any."""
    in_use_anyway: tuple[bool, ...]
    pairs: tuple[Pair, ...]
    place_cost: tuple[tuple[float, ...], ...]
    """[executor][supervisor]: its traffic with obstacles, and what is lost when the supervisor does not answer."""
    keepable: tuple[KeepableWorker, ...]
    constant: float
    overload_price: float
    overfull_price: float
    supervisor_price: float

    @property
    def has_slots(self) -> bool:
        """Whether every group can have a worker somewhere."""
        return self.groups <= sum(len(slots) for slots in self.free_slots)

    def members_of(self, group: int) -> tuple[int, ...]:
        return tuple(at for at, its_group in enumerate(self.group_of) if its_group == group)

    def objective(self, places: Places) -> float:
        """The program's objective for `places`; equals `cost_of(...).total` of `to_assignment` (a test says so)."""
        load, megabytes = [0.0] * len(self.supervisors), [0.0] * len(self.supervisors)
        for at, place in enumerate(places):
            load[place] += self.demand[at]
            megabytes[place] += self.memory[at]
        overload = sum(max(0.0, load[s] - room) for s, room in enumerate(self.room))
        overfull = sum(max(0.0, megabytes[s] - room) for s, room in enumerate(self.memory_room))
        opened = {place for place in places if not self.in_use_anyway[place]}
        return (
            self.constant
            + sum(self.place_cost[at][place] for at, place in enumerate(places))
            + sum(pair.cost[places[pair.first]][places[pair.second]] for pair in self.pairs)
            + overload * self.overload_price
            + overfull * self.overfull_price
            + len(opened) * self.supervisor_price
            - sum(worker.restart_price for worker in self.keepable if self.is_kept(worker, places))
        )

    def is_kept(self, worker: KeepableWorker, places: Places) -> bool:
        there = {at for at in self.members_of(worker.group) if places[at] == worker.supervisor}
        return there == worker.members

    def fits_slots(self, places: Places) -> bool:
        """Whether no supervisor needs more workers than it has free slots."""
        workers = {(place, self.group_of[at]) for at, place in enumerate(places)}
        return all(
            sum(1 for place, _ in workers if place == number) <= len(slots)
            for number, slots in enumerate(self.free_slots)
        )


def build_exact_model(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, together: frozenset[str]
) -> ExactModel:
    """The program for the movable topologies; those in `together` mix stateful and stateless executors."""
    executors = tuple(sorted(e for t in snapshot.topologies if t.id in settings.movable for e in t.executors))
    number_of = {executor: at for at, executor in enumerate(executors)}
    machines = sorted(snapshot.supervisors, key=lambda machine: machine.id)
    column_of = {machine.id: at for at, machine in enumerate(machines)}
    obstacles = {e: s for e, s in sorted(snapshot.assignment.slot_of.items()) if e not in number_of}
    held = set(obstacles.values())
    free_slots = tuple(tuple(sorted(slot for slot in machine.slots if slot not in held)) for machine in machines)
    group_of, groups = _groups(executors, stateful_executors(snapshot), together)
    prices = prices_of(snapshot, settings)
    hop = _hops(snapshot, tuple(column_of), prices.between_workers_ms)
    usable = room_for_executors(snapshot, settings)
    taken = dict.fromkeys(column_of, 0.0)
    for executor, slot in obstacles.items():
        if slot.supervisor_id in taken:
            taken[slot.supervisor_id] += demand.room_millicores.get(executor, 0.0)
    megabytes, memory_of = declared_memory_mb(snapshot), memory_capacities(snapshot)
    memory_taken = by_supervisor(snapshot, settings, megabytes)
    keepable = _keepable(snapshot.assignment, number_of, column_of, free_slots, group_of, prices.restart_of)
    fixed = cost_of(snapshot, Assignment(obstacles), demand, settings)
    restarts = sum(prices.restart_of.get(e, 0.0) for e in executors)
    return ExactModel(
        executors=executors,
        supervisors=tuple(column_of),
        group_of=group_of,
        groups=groups,
        free_slots=free_slots,
        demand=tuple(demand.room_millicores.get(executor, 0.0) for executor in executors),
        memory=tuple(megabytes.get(executor, 0.0) for executor in executors),
        memory_room=tuple(memory_of[machine.id] - memory_taken[machine.id] for machine in machines),
        room=tuple(usable[machine.id] - taken[machine.id] for machine in machines),
        in_use_anyway=tuple(any(slot.supervisor_id == machine.id for slot in held) for machine in machines),
        pairs=_pairs(snapshot, number_of, group_of, hop, prices.between_workers_ms),
        place_cost=tuple(
            tuple(cost + prices.share_of[e] * prices.loss_ms[at] for cost, at in zip(row, column_of, strict=True))
            for e, row in zip(
                executors,
                _traffic_with_obstacles(snapshot, number_of, obstacles, tuple(column_of), prices.between_workers_ms),
                strict=True,
            )
        ),
        keepable=keepable,
        constant=fixed.network + fixed.supervisors + fixed.restarts + fixed.losses + restarts,
        overload_price=prices.per_overloaded_millicore,
        overfull_price=prices.per_overfull_megabyte,
        supervisor_price=prices.per_supervisor,
    )


def to_assignment(model: ExactModel, places: Places, in_force: Assignment) -> Assignment:
    """Give each worker a slot: its own where it goes on unchanged. Obstacles stay where `in_force` has them."""
    ours = frozenset(model.executors)
    slot_of = {e: s for e, s in in_force.slot_of.items() if e not in ours}
    before = {slot: frozenset(members) for slot, members in in_force.workers().items()}
    for column, slots in enumerate(model.free_slots):
        members: dict[int, set[Executor]] = {}
        for at, place in enumerate(places):
            if place == column:
                members.setdefault(model.group_of[at], set()).add(model.executors[at])
        workers = [frozenset(members[group]) for group in sorted(members)]
        for slot, executors in match_slots(workers, slots, before).items():
            slot_of.update(dict.fromkeys(executors, slot))
    return Assignment(slot_of)


def to_places(model: ExactModel, assignment: Assignment) -> Places | None:
    """Where `assignment` has the model's executors; None when it does not place them all on its supervisors."""
    column_of = {supervisor_id: at for at, supervisor_id in enumerate(model.supervisors)}
    slots = [assignment.slot_of.get(executor) for executor in model.executors]
    places = tuple(column_of[slot.supervisor_id] for slot in slots if slot and slot.supervisor_id in column_of)
    return places if len(places) == len(model.executors) and model.fits_slots(places) else None


def _groups(
    executors: Sequence[Executor], stateful: frozenset[Executor], together: frozenset[str]
) -> tuple[tuple[int, ...], int]:
    names = [(e.topology_id, e in stateful and e.topology_id not in together) for e in executors]
    number = {name: at for at, name in enumerate(sorted(set(names)))}
    return tuple(number[name] for name in names), len(number)


def _hops(snapshot: ClusterSnapshot, supervisors: Sequence[str], between_workers_ms: float) -> list[list[float]]:
    """Milliseconds between two workers on each pair of supervisors."""
    return [
        [
            between_workers_ms if a == b else snapshot.distances.between(WorkerSlot(a, 0), WorkerSlot(b, 0))
            for b in supervisors
        ]
        for a in supervisors
    ]


def _pairs(
    snapshot: ClusterSnapshot,
    number_of: Mapping[Executor, int],
    group_of: Sequence[int],
    hop: Sequence[Sequence[float]],
    between_workers_ms: float,
) -> tuple[Pair, ...]:
    rates: dict[tuple[int, int], list[float]] = {}
    for source, target, rate in snapshot.traffic.pairs():
        if source in number_of and target in number_of and source != target and rate > 0.0:
            a, b = number_of[source], number_of[target]
            rates.setdefault((min(a, b), max(a, b)), [0.0, 0.0])[a > b] += rate
    everywhere = range(len(hop))
    return tuple(
        Pair(
            first,
            second,
            tuple(
                tuple(
                    (0.0 if group_of[first] == group_of[second] else (up + down) * between_workers_ms)
                    if s == t
                    else up * hop[s][t] + down * hop[t][s]
                    for t in everywhere
                )
                for s in everywhere
            ),
        )
        for (first, second), (up, down) in sorted(rates.items())
    )


def _traffic_with_obstacles(
    snapshot: ClusterSnapshot,
    number_of: Mapping[Executor, int],
    obstacles: Mapping[Executor, WorkerSlot],
    supervisors: Sequence[str],
    between_workers_ms: float,
) -> tuple[tuple[float, ...], ...]:
    """Topologies do not exchange tuples in Storm, but a snapshot may say so; then it counts."""
    cost = [[0.0] * len(supervisors) for _ in number_of]
    for source, target, rate in snapshot.traffic.pairs():
        for ours, other, outwards in ((source, target, True), (target, source, False)):
            if ours in number_of and other in obstacles:
                there = obstacles[other]
                for column, supervisor_id in enumerate(supervisors):
                    here = WorkerSlot(supervisor_id, 0)
                    ends = (here, there) if outwards else (there, here)
                    near = supervisor_id == there.supervisor_id
                    cost[number_of[ours]][column] += rate * (
                        between_workers_ms if near else snapshot.distances.between(*ends)
                    )
    return tuple(tuple(row) for row in cost)


def _keepable(
    in_force: Assignment,
    number_of: Mapping[Executor, int],
    column_of: Mapping[str, int],
    free_slots: Sequence[Sequence[WorkerSlot]],
    group_of: Sequence[int],
    restart_of: Mapping[Executor, float],
) -> tuple[KeepableWorker, ...]:
    workers = []
    for slot, executors in in_force.workers().items():
        column = column_of.get(slot.supervisor_id)
        if column is None or slot not in free_slots[column] or any(e not in number_of for e in executors):
            continue
        members = frozenset(number_of[e] for e in executors)
        groups = {group_of[at] for at in members}
        if len(groups) == 1:
            price = sum(restart_of.get(e, 0.0) for e in executors)
            workers.append(KeepableWorker(column, groups.pop(), members, price))
    return tuple(workers)

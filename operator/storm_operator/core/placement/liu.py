"""Liu et al., "An Adaptive Online Scheme for Scheduling and Resource Enforcement in Storm", section III-B.

Two workers for each topology on a supervisor, stateful and stateless apart; executors leave overloaded supervisors
with as few workers disturbed as possible (Algorithms 1 and 2); supervisors whose workers fit elsewhere are emptied
(Algorithm 3). Traffic plays no part beyond placing neighbours of the component graph one after the other.

Where the paper is silent:

- A topology that is not split into two workers on each supervisor yet (placed by another scheduler) is first split
  and merged on the supervisors where it is, in the slots that keep most executors in their process. Executors that
  are not placed, or whose slot is gone, wait to be placed together with those of disrupted workers.
- Topologies go one after the other, by id. What other topologies need is taken from a supervisor's capacity before it
  is judged overloaded for this one. Capacity is the usable part (headroom), and filling it exactly is allowed.
- FindFreeNodes tries supervisors that other topologies use already before empty ones.
- CPU is acquired as a sum, but executors are whole: one that fits into no acquired worker gets another one, in the
  order of the paper (a worker that does not exist yet on a used supervisor, an existing one, a free supervisor), where
  it joins those who live there. If that fails too, everything is tried once more with the largest executors first.
- An executor that demands more than the largest supervisor has is counted as just that.
- Scale-in runs for each topology over the supervisors that it uses, then for whole supervisors with everything on
  them, until neither finds anything. A worker goes to the first target it fits, the fullest first (Algorithm 3 as
  written would go on and end with the last one); a worker that does not exist on the target is created if a slot is
  free. Supervisors with executors that may not move stay.
- With `separation: Never` a topology has one worker on a supervisor; `Auto` is taken as `Always`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import networkx as nx

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, ComponentKind, Executor, Infeasible, Topology
from storm_operator.core.placement.liu_workers import ROUNDING_NOISE, Kind, Worker, Workers
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

Order = Callable[[Executor], tuple[float, ...]]


def place_liu(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """Liu's placement of every movable topology, from the assignment in force."""
    workers = Workers(snapshot, demand, settings)
    movable = sorted((t for t in snapshot.topologies if t.id in settings.movable), key=lambda t: t.id)
    for topology in movable:
        relieved = _relieve_in_any_order(workers, topology)
        if isinstance(relieved, Infeasible):
            return relieved
        workers = relieved
    return _scale_in(workers, [topology.id for topology in movable]).assignment()


def breadth_first(topology: Topology) -> tuple[str, ...]:
    """Components level by level from the spouts, by name within a level; ackers and what is not reached last."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    ackers = {component.name for component in topology.components if component.kind is ComponentKind.ACKER}
    graph.add_nodes_from(component.name for component in topology.components)
    graph.add_edges_from((edge.source, edge.target) for edge in topology.edges if edge.target not in ackers)
    spouts = [component.name for component in topology.components if component.kind is ComponentKind.SPOUT]
    levels = [sorted(level) for level in nx.bfs_layers(graph, spouts)] if spouts else []
    reached = [name for level in levels for name in level]
    return (*reached, *sorted(set(graph) - set(reached)))


def _relieve_in_any_order(workers: Workers, topology: Topology) -> Workers | Infeasible:
    rank = {name: at for at, name in enumerate(breadth_first(topology))}
    orders: tuple[Order, ...] = (
        lambda executor: (rank[executor.component], executor.task_start),
        lambda executor: (-workers.need(executor), rank[executor.component], executor.task_start),
    )
    failure = None
    for order in orders:
        relieved = _relieve(workers.copy(), topology, order)
        if isinstance(relieved, Workers):
            return relieved
        failure = failure or relieved
    return failure or Infeasible(f"topology {topology.name} cannot be placed")


def _relieve(workers: Workers, topology: Topology, order: Order) -> Workers | Infeasible:
    """Algorithm 1 for one topology: find disrupted workers, find targets for them, place their executors."""
    disrupted = {w for n in workers.used_by(topology.id) for w in _overloaded_workers(workers, topology.id, n)}
    waiting = set(workers.homeless[topology.id]).union(*(workers.take_out(worker) for worker in sorted(disrupted)))
    search = _TargetSearch(workers, topology.id, disrupted, waiting)
    for step in (search.find_zero_affected, search.find_one_affected, search.find_free_supervisors):
        if search.needs_more:
            step()
    for executor in sorted(search.waiting, key=order):
        target = search.target_for(executor)
        if target is None:
            return _no_room(workers, topology, executor)
        workers.put((executor,), target)
    workers.homeless[topology.id] = frozenset()
    workers.close_empty()
    return workers


def _overloaded_workers(workers: Workers, topology_id: str, supervisor_id: str) -> tuple[Worker, ...]:
    """Algorithm 1, step 1: the workers to disturb there; the stateless one if that is enough, then the stateful one."""
    stateless, stateful = (Worker(topology_id, supervisor_id, kind) for kind in (Kind.STATELESS, Kind.STATEFUL))
    if workers.fits(0.0, supervisor_id):
        return ()
    missing = -workers.remaining(supervisor_id)
    for worker in (stateless, stateful):
        if workers.demand_of(worker) >= missing - ROUNDING_NOISE:
            return (worker,)
    return stateless, stateful


class _TargetSearch:
    """Algorithm 2: which workers may take executors, and how much CPU is still to be found (RTotal, by kind)."""

    def __init__(self, workers: Workers, topology_id: str, usable: set[Worker], waiting: set[Executor]) -> None:
        self.waiting = waiting
        self._workers = workers
        self._topology_id = topology_id
        self._usable = usable
        self._to_find = dict.fromkeys(Kind, 0.0)
        for executor in waiting:
            self._to_find[workers.kind_of(executor)] += workers.need(executor)
        self._left = {n: workers.remaining(n) for n in workers.supervisors}
        self._used = sorted({*workers.used_by(topology_id), *(worker.supervisor_id for worker in usable)})

    @property
    def needs_more(self) -> bool:
        return any(millicores > ROUNDING_NOISE for millicores in self._to_find.values())

    def find_zero_affected(self) -> None:
        """CPU of used supervisors in workers that are disrupted anyway, or do not exist yet."""
        for worker in self._workers_at(self._used):
            if worker in self._usable or not self._workers.demand_of(worker):
                self._acquire(worker)

    def find_one_affected(self) -> None:
        """CPU of used supervisors in workers that are disrupted for it; their executors wait to be placed as well."""
        for worker in self._workers_at(self._used):
            if worker not in self._usable and self._wants(worker):
                released = self._workers.demand_of(worker)
                self.waiting |= self._workers.take_out(worker)
                self._to_find[worker.kind] += released
                self._left[worker.supervisor_id] += released
                self._acquire(worker)

    def find_free_supervisors(self) -> None:
        """CPU of supervisors that the topology does not use."""
        for worker in self._workers_at(self._unused()):
            self._acquire(worker)

    def target_for(self, executor: Executor) -> Worker | None:
        """The first usable worker by supervisor that has room; else one more worker, else None."""
        kind, need = self._workers.kind_of(executor), self._workers.need(executor)
        usable = [worker for worker in self._workers_at(self._workers.supervisors, kind) if worker in self._usable]
        used = self._workers_at(self._used, kind)
        created = [worker for worker in used if not self._workers.is_open(worker)]
        free = self._workers_at(self._unused(), kind)
        for worker in (*usable, *created, *used, *free):
            if self._workers.fits(need, worker.supervisor_id) and self._workers.can_open(worker):
                self._usable.add(worker)
                return worker
        return None

    def _workers_at(self, supervisors: Iterable[str], *kinds: Kind) -> list[Worker]:
        """Stateful first, as in the paper."""
        return [
            Worker(self._topology_id, n, kind) for n in supervisors for kind in kinds or (Kind.STATEFUL, Kind.STATELESS)
        ]

    def _unused(self) -> list[str]:
        busy = set(self._workers.in_use())
        return sorted(set(self._workers.supervisors) - set(self._used), key=lambda n: (n not in busy, n))

    def _wants(self, worker: Worker) -> bool:
        return (
            self._to_find[worker.kind] > ROUNDING_NOISE
            and self._left[worker.supervisor_id] > ROUNDING_NOISE
            and self._workers.can_open(worker)
        )

    def _acquire(self, worker: Worker) -> None:
        if self._wants(worker):
            self._workers.open(worker)
            self._usable.add(worker)
            acquired = min(self._to_find[worker.kind], self._left[worker.supervisor_id])
            self._to_find[worker.kind] -= acquired
            self._left[worker.supervisor_id] -= acquired


def _no_room(workers: Workers, topology: Topology, executor: Executor) -> Infeasible:
    kind = workers.kind_of(executor)
    with_slot = [n for n in workers.supervisors if workers.can_open(Worker(topology.id, n, kind))]
    roomiest = max(with_slot, key=workers.remaining, default=None)
    if roomiest is not None:
        most = f"the most left on one is {workers.remaining(roomiest):.0f} ({roomiest})"
    elif not workers.supervisors:
        most = "there is no supervisor"
    else:
        most = "none has a slot left"
        if len({workers.kind_of(one) for one in topology.executors}) > 1:
            most = f"{most}; with separation Never its stateful and stateless executors would share one"
    return Infeasible(
        f"topology {topology.name}: executor {executor.label} ({executor.component}) needs "
        f"{workers.need(executor):.0f} millicores on a supervisor with a slot for it; {most}"
    )


def _scale_in(workers: Workers, topology_ids: Sequence[str]) -> Workers:
    """Algorithm 3, until no topology leaves a supervisor and no supervisor can be emptied."""
    while True:
        smaller = _leave_one(workers, topology_ids) or _empty_one(workers)
        if smaller is None:
            return workers
        workers = smaller


def _leave_one(workers: Workers, topology_ids: Sequence[str]) -> Workers | None:
    """A topology leaves the supervisor where it needs least, for others that it uses."""
    for topology_id in topology_ids:
        used = workers.used_by(topology_id)
        needs = {n: sum(workers.demand_of(w) for w in workers.workers_on(n, topology_id)) for n in used}
        smaller = _merge_into_others(workers, needs, used, topology_id)
        if smaller is not None:
            return smaller
    return None


def _empty_one(workers: Workers) -> Workers | None:
    """The least loaded supervisor in use is emptied into others in use."""
    used = workers.in_use()
    return _merge_into_others(workers, {n: workers.load(n) for n in used if n not in workers.with_fixed()}, used)


def _merge_into_others(
    workers: Workers, loads: Mapping[str, float], used: Sequence[str], topology_id: str | None = None
) -> Workers | None:
    """The workers of the least loaded supervisor each go, whole, to one other used supervisor; None if one cannot."""
    if not loads or len(used) < 2:
        return None
    leaving = min(sorted(loads), key=lambda n: loads[n])
    targets = sorted((n for n in used if n != leaving), key=lambda n: (workers.remaining(n), n))
    trial = workers.copy()
    leavers = trial.workers_on(leaving, topology_id)
    for worker in sorted(leavers, key=lambda w: (w.topology_id, w.kind is Kind.STATEFUL)):
        homes = [Worker(worker.topology_id, n, worker.kind) for n in targets if trial.fits(trial.demand_of(worker), n)]
        home = next((home for home in homes if trial.can_open(home)), None)
        if home is None:
            return None
        trial.put(trial.take_out(worker), home)
    trial.close_empty()
    return trial

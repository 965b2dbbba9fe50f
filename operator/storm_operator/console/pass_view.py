"""A pass of the loop -> its view. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from storm_operator.console.traffic_view import NO_TRAFFIC, topology_rates, traffic_view
from storm_operator.console.views import (
    ComponentView,
    DecisionView,
    ExecutorView,
    PassView,
    SupervisorView,
    TopologyView,
    WorkerView,
)
from storm_operator.core.decision import Decision, Hold
from storm_operator.core.model import Assignment, Executor, Supervisor, Topology, WorkerSlot, in_order
from storm_operator.core.snapshot import ClusterSnapshot, LatencySummary
from storm_operator.loop_ports import PassReport

NOTHING_SEEN = PassView(0.0, None, 0.0, 0.0, None, (), (), (), (), (), NO_TRAFFIC, ())
"""Of a cluster that no pass has seen yet."""


@dataclass(frozen=True, slots=True)
class Given:
    """What executors are expected to need, and what they are held to; both in millicores. `limited` are the ids of the
    topologies that are to be held, `held` of those that are."""

    demand: Mapping[Executor, float] = field(default_factory=dict)
    limits: Mapping[Executor, float] = field(default_factory=dict)
    limited: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()


def view_of_pass(report: PassReport, before: PassView) -> PassView:
    """The view of `report`; of the pass `before`, where this one could not see the cluster."""
    decisions = tuple(decision_view(ids, decision) for ids, decision in report.decisions)
    if report.snapshot is None:
        return replace(before, at_seconds=report.at_seconds, decisions=decisions)
    demand = report.demand.millicores if report.demand else {}
    managed = frozenset(topology_id for ids, _ in report.decisions for topology_id in ids)
    limits, unheld = _limits_held(report, report.snapshot)
    held = frozenset(executor.topology_id for executor in limits) & report.limited - unheld
    given = Given(demand, limits, report.limited, held)
    hosts = {supervisor.id: supervisor.host for supervisor in before.supervisors}
    seen = view_of_snapshot(report.snapshot, given, managed, hosts=hosts)
    return replace(seen, at_seconds=report.at_seconds, decisions=decisions)


def _limits_held(report: PassReport, snapshot: ClusterSnapshot) -> tuple[Mapping[Executor, float], frozenset[str]]:
    """The limits that somebody holds executors to, and the ids of the topologies with executors that nobody holds."""
    if report.agents is None:
        return report.limits_millicores, frozenset()
    hosts = {one.id: one.host for one in snapshot.all_supervisors}
    holding = {one for one, host in hosts.items() if (agent := report.agents.get(host)) is not None and agent.enforces}
    places = {executor: slot.supervisor_id for executor, slot in snapshot.assignment.slot_of.items()}
    limits = {
        executor: limit for executor, limit in report.limits_millicores.items() if places.get(executor) in holding
    }
    return limits, frozenset(executor.topology_id for executor, place in places.items() if place not in holding)


def view_of_snapshot(
    snapshot: ClusterSnapshot,
    given: Given,
    managed: frozenset[str] = frozenset(),
    assignment: Assignment | None = None,
    hosts: Mapping[str, str] | None = None,
) -> PassView:
    """The cluster without decisions; under `assignment` in place of the one in force, where one is given.

    Supervisors come by host: their ids tell people nothing. `hosts` by id are those of before, for whom Storm no longer
    sees.
    """
    is_known, unknown = snapshot.traffic_is_known, snapshot.topologies_of_unknown_traffic()
    assignment = snapshot.assignment if assignment is None else assignment
    staying = {supervisor.id for supervisor in snapshot.supervisors}
    everywhere = _supervisors_in_use(snapshot, assignment, hosts or {})
    by_host = tuple(sorted(everywhere, key=lambda supervisor: (supervisor.host, supervisor.id)))
    snapshot = replace(snapshot, supervisors=by_host, leaving=(), assignment=assignment)
    executors = tuple(in_order(e for topology in snapshot.topologies for e in topology.executors))
    positions = {supervisor.id: at for at, supervisor in enumerate(snapshot.supervisors)}
    workers = assignment.workers()
    worker_at = {slot: at for at, slot in enumerate(workers)}
    place = [worker_at.get(slot) if (slot := assignment.slot_of.get(e)) else None for e in executors]
    return PassView(
        at_seconds=snapshot.taken_at_seconds,
        measured_at_seconds=snapshot.taken_at_seconds,
        period_seconds=snapshot.period_seconds,
        completeness=snapshot.completeness.ratio,
        age_seconds=snapshot.completeness.known_age_seconds,
        problems=snapshot.completeness.problems,
        supervisors=_supervisors(snapshot, workers, staying),
        workers=tuple(_worker(slot, held, positions, snapshot) for slot, held in workers.items()),
        executors=tuple(_executor(e, at, snapshot, given) for e, at in zip(executors, place, strict=True)),
        topologies=_topologies(snapshot, assignment, given, managed, unknown),
        traffic=traffic_view(snapshot, executors, place, [positions[slot.supervisor_id] for slot in workers], is_known),
        decisions=(),
    )


def decision_view(topology_ids: tuple[str, ...], decision: Decision) -> DecisionView:
    """A decision in one word and one sentence."""
    if isinstance(decision, Hold):
        gain = decision.gain_percent
        return DecisionView(topology_ids, "hold", decision.reason.value, decision.message, None, gain)
    return DecisionView(topology_ids, "plan", "", decision.reason, decision.id, decision.gain_percent)


def _supervisors_in_use(
    snapshot: ClusterSnapshot, assignment: Assignment, hosts: Mapping[str, str]
) -> tuple[Supervisor, ...]:
    """Those that Storm sees or that leave, and what else executors are placed on, in force or by `assignment`."""
    known = snapshot.all_supervisors
    ports: dict[str, set[int]] = {}
    for slot in {*snapshot.assignment.slot_of.values(), *assignment.slot_of.values()}:
        ports.setdefault(slot.supervisor_id, set()).add(slot.port)
    unseen = ports.keys() - {supervisor.id for supervisor in known}
    gone = (Supervisor(one, hosts.get(one, one), tuple(sorted(ports[one])), availability=0.0) for one in unseen)
    return (*known, *gone)


def _supervisors(
    snapshot: ClusterSnapshot, workers: Mapping[WorkerSlot, Sequence[Executor]], staying: Collection[str]
) -> tuple[SupervisorView, ...]:
    used = Counter(slot.supervisor_id for slot in workers)
    held = Counter({slot.supervisor_id: 0 for slot in workers})
    for slot, executors in workers.items():
        held[slot.supervisor_id] += len(executors)
    return tuple(
        SupervisorView(
            id=one.id,
            host=one.host,
            slots=len(one.ports),
            workers=used[one.id],
            executors=held[one.id],
            cpu_used_millicores=snapshot.supervisor_cpu_millicores.get(one.id),
            cpu_capacity_millicores=one.cpu_capacity_millicores,
            availability=one.availability,
            is_leaving=one.id not in staying,
        )
        for one in snapshot.supervisors
    )


def _worker(
    slot: WorkerSlot, executors: Sequence[Executor], positions: Mapping[str, int], snapshot: ClusterSnapshot
) -> WorkerView:
    used = [load.cpu_millicores if (load := snapshot.loads.get(e)) else None for e in executors]
    return WorkerView(
        supervisor=positions[slot.supervisor_id],
        port=slot.port,
        topology=executors[0].topology_id,
        executors=len(executors),
        cpu_used_millicores=_sum_if_known(used),
    )


def _sum_if_known(values: Iterable[float | None]) -> float | None:
    known: list[float] = []
    for value in values:
        if value is None:
            return None
        known.append(value)
    return sum(known)


def _executor(executor: Executor, worker: int | None, snapshot: ClusterSnapshot, given: Given) -> ExecutorView:
    load = snapshot.loads.get(executor)
    return ExecutorView(
        topology=executor.topology_id,
        component=executor.component,
        tasks=executor.label,
        worker=worker,
        cpu_used_millicores=load.cpu_millicores if load else None,
        demand_millicores=given.demand.get(executor),
        limit_millicores=given.limits.get(executor),
        executed_per_second=load.executed_per_second if load else None,
        queue_length=load.queue_length if load else None,
    )


def _topologies(
    snapshot: ClusterSnapshot, assignment: Assignment, given: Given, managed: frozenset[str], unknown: frozenset[str]
) -> tuple[TopologyView, ...]:
    slots: dict[str, set[WorkerSlot]] = {}
    for executor, slot in assignment.slot_of.items():
        slots.setdefault(executor.topology_id, set()).add(slot)
    rates = topology_rates(snapshot, assignment, unknown)
    return tuple(
        _topology(topology, snapshot, slots.get(topology.id, set()), rates.get(topology.id), given, managed)
        for topology in snapshot.topologies
    )


def _topology(
    topology: Topology,
    snapshot: ClusterSnapshot,
    slots: set[WorkerSlot],
    tuples: tuple[float, float] | None,
    given: Given,
    managed: frozenset[str],
) -> TopologyView:
    rates = snapshot.rates.get(topology.id)
    latency: LatencySummary | None = rates.latency if rates else None
    counts = Counter(executor.component for executor in topology.executors)
    return TopologyView(
        id=topology.id,
        name=topology.name,
        is_managed=topology.id in managed,
        is_held_to_limits=topology.id in given.held,
        asks_for_limits=topology.id in given.limited,
        components=tuple(
            ComponentView(one.name, one.kind.value, one.stateful, counts[one.name], topology.parents_of(one.name))
            for one in topology.components
        ),
        executors=len(topology.executors),
        workers=len(slots),
        supervisors=len({slot.supervisor_id for slot in slots}),
        acked_per_second=rates.acked_per_second if rates else None,
        failed_per_second=rates.failed_per_second if rates else None,
        latency_mean_ms=latency.mean_ms if latency else None,
        latency_p50_ms=latency.p50_ms if latency else None,
        latency_p99_ms=latency.p99_ms if latency else None,
        tuples_per_second=tuples[0] if tuples else None,
        inter_supervisor_tuples_per_second=tuples[1] if tuples else None,
    )

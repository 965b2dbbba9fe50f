"""What one pass saw of supervisors and of the traffic between them, as readings. Pure. Unknown has no reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Executor, Supervisor, WorkerSlot
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.metric_contract import BY_NAME, OTHER
from storm_operator.operator_metrics.readings import MILLICORES_PER_CORE, PREFIX, Reading

PAIRS = "supervisor_traffic_tuples_per_second"


def supervisor_readings(snapshot: ClusterSnapshot, demand: Demand | None) -> Iterator[Reading]:
    """Series carry the supervisor's host, as agents do.

    Those that are being emptied are there until they have gone. Where two have the same host (one that was lost is
    known for a while beside the one in its place), it has one series.
    """
    needs = None if demand is None else demand.of_now()
    silent = frozenset(snapshot.completeness.silent_supervisors)
    by_supervisor: dict[str, dict[Executor, WorkerSlot]] = {}
    for executor, slot in snapshot.assignment.slot_of.items():
        by_supervisor.setdefault(slot.supervisor_id, {})[executor] = slot
    by_host: dict[str, list[Supervisor]] = {}
    for supervisor in snapshot.all_supervisors:
        by_host.setdefault(supervisor.host, []).append(supervisor)
    for host, supervisors in by_host.items():
        there = {e: slot for one in supervisors for e, slot in by_supervisor.get(one.id, {}).items()}
        used = _largest(snapshot.supervisor_cpu_millicores.get(one.id) for one in supervisors)
        capacity = _largest(one.cpu_capacity_millicores for one in supervisors)
        # One answer is no rate: an agent that began anew, or the first pass, has nothing used though all is well.
        answers = used is not None or any(one.id not in silent for one in supervisors)
        yield Reading("supervisor_measured", (host,), float(answers))
        yield Reading("supervisor_executors", (host,), len(there))
        yield Reading("supervisor_workers", (host,), len(set(there.values())))
        if used is not None:
            yield Reading("supervisor_cpu_used_cores", (host,), used / MILLICORES_PER_CORE)
        if capacity is not None:
            yield Reading("supervisor_cpu_capacity_cores", (host,), capacity / MILLICORES_PER_CORE)
        if demand is not None and needs is not None and all(executor in demand.millicores for executor in there):
            given = sum(demand.millicores[executor] for executor in there)
            yield Reading("supervisor_cpu_demand_cores", (host,), given / MILLICORES_PER_CORE)
            if capacity is not None:
                beyond = max(0.0, needs.total(there) - capacity)
                yield Reading("supervisor_cpu_overload_cores", (host,), beyond / MILLICORES_PER_CORE)


def _largest(values: Iterable[float | None]) -> float | None:
    """They are the same agent's where they are known."""
    return max((value for value in values if value is not None), default=None)


def pair_readings(snapshot: ClusterSnapshot) -> Iterator[Reading]:
    """Tuples per second by ordered pair of supervisors, over all topologies.

    Pairs between which a topology may run whose figures are not complete are left out: a part would look like a fall.
    """
    incomplete = snapshot.completeness.incomplete_topologies
    complete = [topology.id for topology in snapshot.topologies if topology.id not in incomplete]
    unknown = snapshot.incomplete_places()
    hosts = {supervisor.id: supervisor.host for supervisor in snapshot.all_supervisors}
    flows = snapshot.traffic.by_supervisor(snapshot.assignment.restricted_to(complete))
    by_hosts: dict[tuple[str, str], float] = {}
    for (a, b), tuples in flows.items():
        if not any(a in places and b in places for places in unknown):
            pair = hosts.get(a, a), hosts.get(b, b)
            by_hosts[pair] = by_hosts.get(pair, 0.0) + tuples
    largest_first = sorted(by_hosts, key=lambda pair: (-by_hosts[pair], pair))
    most = BY_NAME[PREFIX + PAIRS].most_series
    kept = largest_first if most is None or len(largest_first) <= most else largest_first[: most - 1]
    for pair in kept:
        yield Reading(PAIRS, pair, by_hosts[pair])
    folded = [by_hosts[pair] for pair in largest_first[len(kept) :]]
    if folded:
        yield Reading(PAIRS, (OTHER, OTHER), sum(folded))

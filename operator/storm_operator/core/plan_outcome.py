"""The figures that a plan is judged by, out of what was measured. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from storm_operator.core.model import ComponentKind, ExecutorLoad
from storm_operator.core.plan_record import Outcome
from storm_operator.core.snapshot import ClusterSnapshot

WORKED_OFF_SECONDS = 60.0
"""A queue that will be empty by then, as it shrinks, is a restart's backlog: what comes next does not wait for it."""


def outcome_of(
    snapshot: ClusterSnapshot, topology_ids: tuple[str, ...], timed_before: Collection[str] | None = None
) -> Outcome:
    """The figures that a plan for `topology_ids` is judged by.

    Latency is of those `timed_before` alone: what was unknown before is not compared with what was not. Where none was
    (or nobody knows: None) nothing is compared, and it is of all.
    """
    rates = [snapshot.rates[topology] for topology in topology_ids if topology in snapshot.rates]
    acked = [rate.acked_per_second for rate in rates if rate.acked_per_second is not None]
    told = timed_before or topology_ids
    timed = [snapshot.rates[topology].latency for topology in told if topology in snapshot.rates]
    slowest = max((one for one in timed if one is not None), key=lambda latency: latency.p50_ms, default=None)
    untimed = [topology for topology in topology_ids if not _is_timed(snapshot, topology)]
    waiting = [waits for topology in untimed if (waits := _waiting_ms(snapshot, topology)) is not None]
    known = not any(
        e.topology_id in topology_ids and not snapshot.loads.get(e, ExecutorLoad()).never_busy  # which sends nothing
        for e in snapshot.completeness.missing_executors
    )
    own = snapshot.assignment.restricted_to(topology_ids)
    return Outcome(
        # Where none of them has a place there is nothing to measure.
        inter_supervisor_tuples_per_second=snapshot.traffic.inter_supervisor(own) if known and own.slot_of else None,
        acked_per_second=sum(acked) if acked and len(acked) == len(topology_ids) else None,
        complete_latency_mean_ms=slowest.mean_ms if slowest else None,
        complete_latency_p50_ms=slowest.p50_ms if slowest else None,
        complete_latency_p99_ms=slowest.p99_ms if slowest else None,
        emitted_per_second=_sum_if_all_known([_emitted_per_second(snapshot, topology) for topology in topology_ids]),
        waiting_ms=max(waiting, default=None),
    )


def no_longer_timed(snapshot: ClusterSnapshot, timed_before: Collection[str] | None) -> tuple[str, ...]:
    """Those of the topologies (ids) whose complete latency was known before that run, and of which it is not now."""
    rates = snapshot.rates
    return tuple(sorted(t for t in timed_before or () if t in rates and rates[t].latency is None))


def _is_timed(snapshot: ClusterSnapshot, topology_id: str) -> bool:
    """Whether a complete latency tells of it; without ackers Storm acks what a spout emits at once."""
    rates = snapshot.rates.get(topology_id)
    return rates is not None and rates.latency is not None and rates.latency.p50_ms > 0.0


def _emitted_per_second(snapshot: ClusterSnapshot, topology_id: str) -> float | None:
    """What the topology's spouts emit; None where one of them was not measured."""
    spouts = _loads(snapshot, topology_id, ComponentKind.SPOUT).values()
    return _sum_if_all_known([load.executed_per_second for loads in spouts for load in loads])


def _waiting_ms(snapshot: ClusterSnapshot, topology_id: str) -> float | None:
    """How long a tuple waits in the queues of the component where it waits longest; None where one cannot be told."""
    found = [_waiting_seconds(loads) for loads in _loads(snapshot, topology_id, ComponentKind.BOLT).values()]
    known = [seconds for seconds in found if seconds is not None]
    return 1000.0 * max(known) if known and len(known) == len(found) else None


def _waiting_seconds(loads: Sequence[ExecutorLoad]) -> float | None:
    """What is worked off by now does not count. Of a component that executes nothing it is how long its queues took to
    grow: so long the first tuple has waited in vain."""
    waiting = _sum_if_all_known([_waits(load) for load in loads])
    executed = _sum_if_all_known([load.executed_per_second for load in loads])
    if not waiting:
        return waiting
    if executed is None:
        return None
    if executed > 0.0:
        return waiting / executed
    growth = _sum_if_all_known([load.queue_growth_per_second for load in loads])
    return waiting / growth if growth is not None and growth > 0.0 else None


def _waits(load: ExecutorLoad) -> float | None:
    """One of Storm's own would be seconds of waiting, now and then, over the few tuples that some bolts execute."""
    waiting, growth = load.waiting_tuples, load.queue_growth_per_second
    if waiting is None or growth is None:
        return None
    return 0.0 if waiting + growth * WORKED_OFF_SECONDS <= 0.0 else waiting


def _loads(snapshot: ClusterSnapshot, topology_id: str, kind: ComponentKind) -> Mapping[str, list[ExecutorLoad]]:
    """By component."""
    found: dict[str, list[ExecutorLoad]] = {}
    for topology in snapshot.topologies:
        for executor in topology.executors if topology.id == topology_id else ():
            if topology.component(executor.component).kind is kind:
                found.setdefault(executor.component, []).append(snapshot.loads.get(executor, ExecutorLoad()))
    return found


def _sum_if_all_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known and len(known) == len(values) else None

"""What one pass of the loop saw and did, as columns of the tables in `history_tables` (without their bookkeeping)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decision import Decision, Hold, Plan, Prediction
from storm_operator.core.forecast import ComponentKey, LoadForecast
from storm_operator.core.history_tables import (
    DECISIONS,
    EDGES,
    EXECUTORS,
    FORECASTS,
    PAIRS,
    PERIODS,
    PLANS,
    SUPERVISORS,
    TOPOLOGIES,
    Table,
)
from storm_operator.core.model import Component, Executor, ExecutorLoad
from storm_operator.core.plan_record import Outcome, PlanRecord
from storm_operator.core.snapshot import ClusterSnapshot, TopologyRates

Columns = Mapping[str, Any]
"""Values by column: sequences or arrays, all of one length."""
Decisions = Sequence[tuple[tuple[str, ...], Decision]]
LOAD = tuple(one.name for one in fields(ExecutorLoad))
RECORDED_OF_OUTCOME = (
    "inter_supervisor_tuples_per_second",
    "acked_per_second",
    "complete_latency_mean_ms",
    "complete_latency_p50_ms",
    "complete_latency_p99_ms",
)
"""A plan's message has the other figures."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass. `snapshot` None: the cluster could not be seen. `sequence` counts the recorder's passes from 0."""

    at_seconds: float
    sequence: int
    snapshot: ClusterSnapshot | None = None
    demand: Demand | None = None
    decisions: Decisions = ()
    forecasts: Mapping[ComponentKey, LoadForecast] = field(default_factory=dict)
    records: tuple[PlanRecord, ...] = ()
    pass_seconds: float | None = None
    dropped_before: int = 0


def columns_of(
    made: Pass, source: str, unknown: Mapping[Table, Collection[str]] = MappingProxyType({})
) -> dict[Table, Columns]:
    """All tables that have rows for this pass. `source` says what recorded it: operator, simulator or backfill.

    Columns in `unknown` are null, whatever the snapshot has: who made it could not know. `PERIODS` comes last: where
    writing ends before it, nobody takes what is missing of the period for none.
    """
    found: dict[Table, Columns] = {
        DECISIONS: _decisions(made.decisions),
        PLANS: _by_column(PLANS, [_plan(record) for record in _newest(made.records)]),
    }
    if made.snapshot is not None:
        found |= {
            SUPERVISORS: _supervisors(made.snapshot),
            TOPOLOGIES: _topologies(made.snapshot),
            EDGES: _edges(made.snapshot),
            EXECUTORS: _executors(made.snapshot, made.demand),
            PAIRS: _pairs(made.snapshot),
            FORECASTS: _forecasts(made.forecasts),
            PERIODS: _period(made, made.snapshot, source),
        }
    return {
        table: {name: [None] * len(own) if name in unknown.get(table, ()) else own for name, own in columns.items()}
        for table, columns in found.items()
        if columns and len(next(iter(columns.values())))
    }


def _by_column(table: Table, rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Rows as columns; all rows have the same ones."""
    return {name: [row[name] for row in rows] for name in table.names if rows and name in rows[0]}


def _period(made: Pass, snapshot: ClusterSnapshot, source: str) -> Columns:
    seen = snapshot.completeness
    row = {
        "source": source,
        "sequence": made.sequence,
        "dropped_before": made.dropped_before,
        "expected_executors": seen.expected_executors,
        "missing_executors": len(seen.missing_executors),
        "age_seconds": seen.known_age_seconds,
        "problems": list(seen.problems),
        "pass_seconds": made.pass_seconds,
        "default_round_trip_ms": None if snapshot.distances.are_assumed else snapshot.distances.default_ms,
        "loopback_round_trip_ms": snapshot.distances.loopback_ms,
    }
    return {name: [value] for name, value in row.items()}


def _supervisors(snapshot: ClusterSnapshot) -> Columns:
    rows = [
        {
            "supervisor_id": one.id,
            "host": one.host,
            "slots": len(one.ports),
            "cpu_capacity_millicores": one.cpu_capacity_millicores,
            "cpu_used_millicores": snapshot.supervisor_cpu_millicores.get(one.id),
            "availability": one.availability,
            "memory_mb": one.memory_mb,
        }
        for one in snapshot.supervisors
    ]
    return _by_column(SUPERVISORS, rows)


def _topologies(snapshot: ClusterSnapshot) -> Columns:
    rows = []
    for topology in snapshot.topologies:
        rates = snapshot.rates.get(topology.id, TopologyRates())
        latency = rates.latency
        rows.append(
            {
                "topology_id": topology.id,
                "topology_name": topology.name,
                "num_workers": topology.num_workers,
                "acked_per_second": rates.acked_per_second,
                "failed_per_second": rates.failed_per_second,
                "latency_mean_ms": latency.mean_ms if latency else None,
                "latency_p50_ms": latency.p50_ms if latency else None,
                "latency_p99_ms": latency.p99_ms if latency else None,
                "latency_count": latency.count if latency else None,
            }
        )
    return _by_column(TOPOLOGIES, rows)


def _edges(snapshot: ClusterSnapshot) -> Columns:
    rows = [{"topology_id": topology.id, **asdict(edge)} for topology in snapshot.topologies for edge in topology.edges]
    return _by_column(EDGES, rows)


def _executors(snapshot: ClusterSnapshot, demand: Demand | None) -> Columns:
    rows = []
    for topology in snapshot.topologies:
        components = {component.name: component for component in topology.components}
        for executor in topology.executors:
            row = {
                **_identity(executor, components[executor.component]),
                "topology_name": topology.name,
                "demand_millicores": demand.millicores.get(executor) if demand else None,
                "raw_demand_millicores": demand.raw_millicores.get(executor) if demand else None,
            }
            load = snapshot.loads.get(executor, ExecutorLoad())
            row |= {name: getattr(load, name) for name in LOAD}
            slot = snapshot.assignment.slot_of.get(executor)
            row |= {
                "supervisor_id": slot.supervisor_id if slot else None,
                "port": slot.port if slot else None,
                "worker_pid": snapshot.worker_pids.get(slot) if slot else None,
            }
            rows.append(row)
    return _by_column(EXECUTORS, rows)


def _identity(executor: Executor, component: Component) -> dict[str, Any]:
    return {
        "topology_id": executor.topology_id,
        "task_start": executor.task_start,
        "task_end": executor.task_end,
        "component": executor.component,
        "component_kind": component.kind.value,
        "stateful": component.stateful,
        "declared_cpu_millicores": component.declared_cpu_millicores,
        "declared_memory_mb": component.declared_memory_mb,
    }


def _pairs(snapshot: ClusterSnapshot) -> Columns:
    """Column by column, as a large cluster has a hundred thousand pairs."""
    executors = snapshot.traffic.executors
    sources, targets, rates = snapshot.traffic.flows()
    slots = [snapshot.assignment.slot_of.get(executor) for executor in executors]
    topologies = np.array([executor.topology_id for executor in executors], dtype=object)
    tasks = np.array([executor.task_start for executor in executors], dtype=np.int64)
    supervisors = np.array([slot.supervisor_id if slot else None for slot in slots], dtype=object)
    ports = np.array([slot.port if slot else None for slot in slots], dtype=object)
    return {
        "topology_id": topologies[sources],
        "source_task": tasks[sources],
        "target_task": tasks[targets],
        "source_supervisor": supervisors[sources],
        "source_port": ports[sources],
        "target_supervisor": supervisors[targets],
        "target_port": ports[targets],
        "tuples_per_second": rates,
    }


def _forecasts(forecasts: Mapping[ComponentKey, LoadForecast]) -> Columns:
    rows = [
        {
            "topology_id": topology_id,
            "component": component,
            "arrivals_per_second": forecast.arrivals_per_second,
            "queue_growth_per_second": forecast.queue_growth_per_second,
        }
        for (topology_id, component), forecast in sorted(forecasts.items())
    ]
    return _by_column(FORECASTS, rows)


def _decisions(decisions: Decisions) -> Columns:
    rows = [
        {
            "topology_ids": one_text(topology_ids),
            "decision": "Hold" if isinstance(decision, Hold) else "Plan",
            "reason": decision.reason.value if isinstance(decision, Hold) else decision.reason,
            "message": decision.message if isinstance(decision, Hold) else None,
            "plan_id": decision.id if isinstance(decision, Plan) else None,
            "policy": decision.policy if isinstance(decision, Plan) else None,
            "gain_percent": decision.gain_percent,
        }
        for topology_ids, decision in decisions
    ]
    return _by_column(DECISIONS, rows)


def one_text(topology_ids: Iterable[str]) -> str:
    """Sorted, with commas between; a comma of a topology's name has a backslash before it, which no name has."""
    return ",".join(topology_id.replace(",", "\\,") for topology_id in sorted(topology_ids))


def _newest(records: Iterable[PlanRecord]) -> list[PlanRecord]:
    """The last record of each plan in each state, in the order of the first."""
    return list({(record.plan.id, record.state): record for record in records}.values())


def _plan(record: PlanRecord) -> dict[str, Any]:
    plan = record.plan
    return {
        "plan_id": plan.id,
        "state": record.state.value,
        "policy": plan.policy,
        "method": record.method.value,
        "topology_ids": one_text(plan.topology_ids),
        "reason": plan.reason,
        "message": record.message,
        "created_at": plan.created_at_seconds,
        "in_force_at": record.in_force_at_seconds,
        "seconds_to_in_force": _duration(record.seconds_to_in_force),
        "seconds_to_running": _duration(record.seconds_to_running),
        "running_at": record.running_at_seconds,
        "moves": len(plan.moves),
        "restarted_workers": len(plan.started_workers),
        "failed_tuples": record.failed_tuples,
        "gain_percent": plan.gain_percent,
        "payback_seconds": plan.payback_seconds,
        "rollback_of": record.rollback_of,
        "approved_by": record.approved_by,
        **_prediction("predicted_before", plan.before if plan.is_predicted else None),
        **_prediction("predicted_after", plan.after if plan.is_predicted else None),
        **_outcome("measured_before", record.before),
        **_outcome("measured_after", record.measured),
    }


def _duration(seconds: float | None) -> float | None:
    """Nobody knows how long it was where the clock was set back meanwhile; a negative one would cost the whole row."""
    return None if seconds is None or seconds < 0.0 else seconds


def _prediction(prefix: str, given: Prediction | None) -> dict[str, Any]:
    values = asdict(given) if given else dict.fromkeys(one.name for one in fields(Prediction))
    values["latency_ms"] = values.pop("complete_latency_ms")
    return {f"{prefix}_{name}": value for name, value in values.items()}


def _outcome(prefix: str, given: Outcome | None) -> dict[str, Any]:
    return {
        f"{prefix}_{name.removeprefix('complete_')}": None if given is None else getattr(given, name)
        for name in RECORDED_OF_OUTCOME
    }

"""The demo's figures: what one phase measured, and the managed phase as a ratio of the baseline. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from storm_operator.core.latency_histogram import summarize_latency
from storm_operator.core.metrics_window import MetricsWindow
from storm_operator.core.model import ComponentKind
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.snapshot import ClusterSnapshot, LatencySummary
from storm_operator.demo.recorder import Recorder
from storm_operator.demo.scenario import MANAGED

LATENCY = "storm_complete_latency_seconds"
FAILED = "storm_executor_failed_tuples_total"


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    """One phase over all topologies together; None is unknown. Latency is that of all root tuples mixed."""

    latency: LatencySummary | None
    inter_supervisor_tuples_per_second: float | None
    throughput_tuples_per_second: float | None
    failed_tuples: float | None
    supervisors_used: int
    cpu_millicores: float | None


def phase_figures(snapshot: ClusterSnapshot, window: MetricsWindow) -> PhaseFigures:
    """`snapshot` and `window` both cover the phase and nothing else."""
    acked = [rates.acked_per_second for rates in snapshot.rates.values()]
    known = [value for value in acked if value is not None]
    failed_is_known = bool(snapshot.rates) and all(r.failed_per_second is not None for r in snapshot.rates.values())
    cpu_is_known = all(one.id in snapshot.supervisor_cpu_millicores for one in snapshot.supervisors)
    return PhaseFigures(
        latency=mixed_latency(window),
        inter_supervisor_tuples_per_second=(
            snapshot.traffic.inter_supervisor(snapshot.assignment) if snapshot.traffic_is_known else None
        ),
        throughput_tuples_per_second=sum(known) if known and len(known) == len(acked) else None,
        failed_tuples=_failed_trees(snapshot, window) if failed_is_known else None,
        supervisors_used=len(snapshot.assignment.used_supervisors()),
        cpu_millicores=sum(snapshot.supervisor_cpu_millicores.values()) if cpu_is_known else None,
    )


def _failed_trees(snapshot: ClusterSnapshot, window: MetricsWindow) -> float:
    """Spouts count them; what bolts fail is of the same trees."""
    spouts = {(t.id, c.name) for t in snapshot.topologies for c in t.components if c.kind is ComponentKind.SPOUT}
    counts = [
        series.increase
        for key, series in window.named(FAILED)
        if (key.label("topology_id"), key.label("component")) in spouts
    ]
    return sum(count for count in counts if not math.isnan(count))


def mixed_latency(window: MetricsWindow) -> LatencySummary | None:
    """Complete latency of all topologies' root tuples in the window."""
    buckets: dict[float, float] = {}
    for key, series in window.named(f"{LATENCY}_bucket"):
        if not math.isnan(series.increase):
            bound = float(key.label("le"))
            buckets[bound] = buckets.get(bound, 0.0) + series.increase
    return summarize_latency(buckets, sum(increases(window, f"{LATENCY}_sum")))


def increases(window: MetricsWindow, name: str) -> list[float]:
    return [series.increase for _, series in window.named(name) if not math.isnan(series.increase)]


def phase_to_json(figures: PhaseFigures) -> dict[str, Any]:
    latency = figures.latency
    return {
        "latency_ms": {
            "mean": latency.mean_ms if latency else None,
            "p50": latency.p50_ms if latency else None,
            "p99": latency.p99_ms if latency else None,
        },
        "inter_supervisor_tuples_per_second": figures.inter_supervisor_tuples_per_second,
        "throughput_tuples_per_second": figures.throughput_tuples_per_second,
        "failed_tuples": figures.failed_tuples,
        "supervisors_used": figures.supervisors_used,
        "cpu_millicores": figures.cpu_millicores,
    }


def ratios(baseline: PhaseFigures, managed: PhaseFigures) -> dict[str, float | None]:
    """Managed over baseline; below 1 is better for all but throughput."""
    return {
        "latency_p50": _ratio(
            managed.latency.p50_ms if managed.latency else None, baseline.latency.p50_ms if baseline.latency else None
        ),
        "latency_p99": _ratio(
            managed.latency.p99_ms if managed.latency else None, baseline.latency.p99_ms if baseline.latency else None
        ),
        "inter_supervisor_tuples_per_second": _ratio(
            managed.inter_supervisor_tuples_per_second, baseline.inter_supervisor_tuples_per_second
        ),
        "throughput": _ratio(managed.throughput_tuples_per_second, baseline.throughput_tuples_per_second),
    }


def nothing_compared(recorder: Recorder) -> str | None:
    """A sentence where both measured phases saw Storm's own placement, with the reason; None where a plan held.

    A plan holds that was in force, and not rolled back again, when the later of the two began.
    """
    phase = recorder.last_titled(MANAGED)
    if phase is None:
        return None
    since = phase.started_at_seconds
    in_force = [
        r for r in recorder.plans.values() if r.in_force_at_seconds is not None and r.in_force_at_seconds <= since
    ]
    undone = {record.rollback_of for record in in_force if record.rollback_of}
    if any(not record.rollback_of and record.plan.id not in undone for record in in_force):
        return None
    if undone:
        why = "; ".join(f"{r.plan.id}: {r.message}" for r in in_force if r.plan.id in undone)
        return f"nothing was compared: every plan was rolled back before the phase {phase.title!r} was measured ({why})"
    decided = [told for at, told in recorder.decisions if at <= since]
    return (
        f"nothing was compared: no plan came into force before the phase {phase.title!r} was measured; "
        f"the last decision before it: {decided[-1] if decided else 'none was made'}"
    )


def ratio_text(ratio: float | None) -> str:
    """E.g. `0.15x`, or `unknown`."""
    return "unknown" if ratio is None else f"{ratio:.2f}x"


def headline(recorder: Recorder, baseline: PhaseFigures, managed: PhaseFigures) -> str:
    """E.g. `storm-operator against Even, same run, same load: latency p50 0.15x, ...`, or why there is none."""
    nothing = nothing_compared(recorder)
    if nothing is not None:
        return nothing
    told = {
        name.replace("_tuples_per_second", "").replace("_", " "): ratio_text(ratio)
        for name, ratio in ratios(baseline, managed).items()
    }
    return "storm-operator against Even, same run, same load: " + ", ".join(f"{n} {r}" for n, r in told.items())


def conclusion(recorder: Recorder, baseline: PhaseFigures, managed: PhaseFigures) -> list[str]:
    """What the demo ends with: the headline, whether the load step was borne, and what the end has cut short."""
    return [
        headline(recorder, baseline, managed),
        *load_steps_told(recorder),
        *unsettled(recorder.plans.values()),
    ]


def load_steps_told(recorder: Recorder) -> list[str]:
    """A sentence for each phase that offered more than the first: what was acked at its end."""
    sentences = []
    for phase in recorder.phases:
        if phase.offered_per_second > recorder.phases[0].offered_per_second:
            last = recorder.at_end_of(phase)
            acked = last.acked_per_second if last else None
            told = "unknown" if acked is None else f"{acked:.0f}"
            sentences.append(f"{phase.title}: {phase.offered_per_second:.0f} tuples/s offered, {told} acked at its end")
    return sentences


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def unsettled(records: Iterable[PlanRecord]) -> tuple[str, ...]:
    """A sentence for each plan that the end of the demo has cut short."""
    doing = {PlanState.APPLYING: "applied", PlanState.SETTLING: "measured"}
    return tuple(
        f"{record.plan.id} was still being {doing[record.state]} when time was up: what it brought is not known. "
        "A longer demo (--minutes, make demo DEMO_MINUTES=) sees its end."
        for record in records
        if record.state in doing
    )


def plan_to_report(record: PlanRecord, hosts: Mapping[str, str]) -> dict[str, Any]:
    """A plan as the report shows it; supervisors by host."""
    plan = record.plan
    return {
        "id": plan.id,
        "policy": plan.policy,
        "reason": plan.reason,
        "moves": [
            {
                "topology": move.executor.topology_id,
                "executor": move.executor.name,
                "from": f"{hosts.get(move.source.supervisor_id, '?')}:{move.source.port}" if move.source else None,
                "to": f"{hosts.get(move.target.supervisor_id, '?')}:{move.target.port}",
            }
            for move in plan.moves
        ],
        "workers_restarted": len(plan.started_workers),
        "workers_kept": record.workers_kept,
        "workers_meant_to_be_kept": len(plan.kept_workers),
        "seconds_to_in_force": record.seconds_to_in_force,
        "seconds_to_running": record.seconds_to_running,
        "failed_tuples": record.failed_tuples,
        "predicted": asdict(plan.after) if plan.is_predicted else None,
        "before": asdict(record.before),
        "measured": asdict(record.measured) if record.measured else None,
        "state": record.state.value,
        "effect_is_unknown": record.effect_is_unknown,
        "message": record.message,
        "apply_method": record.method.value,
        "started_at_seconds": record.started_at_seconds,
        "in_force_at_seconds": record.in_force_at_seconds,
    }

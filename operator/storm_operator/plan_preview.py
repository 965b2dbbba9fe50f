"""How a decision looks: tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from storm_operator.core.decision import Decision, Hold, Move, Plan, Prediction
from storm_operator.core.model import WorkerSlot
from storm_operator.core.placement.optimal import Gap
from storm_operator.core.plan_json import plan_to_json
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.wording import figure

VERSION = 1

FIGURES: Mapping[str, str] = {
    "inter_supervisor_tuples_per_second": "between supervisors, tuples/s",
    "inter_worker_tuples_per_second": "between workers, tuples/s",
    "network_usage": "network usage, tuple-ms/s",
    "supervisors_used": "supervisors in use",
    "overloaded_millicores": "CPU beyond headroom and threads, millicores",
    "complete_latency_ms": "complete latency, ms",
}
COST = (
    "Cost: network usage, CPU beyond headroom and threads, and supervisors in use, all priced in tuple-ms/s. The CPU "
    "that executors may come to need, which adaptive and optimal keep free, is not in it: --gap weighs that too."
)


def decision_document(decision: Decision, gap: Gap | None = None) -> dict[str, Any]:
    """`{"version": 1, "decision": "plan", "plan": {...}}`, or a `"hold"` with its `reason` and `message`.

    With `gap`, also `"gap_to_optimum"`: percent, cost, restart_cost (which is in it), optimum_cost and bound in
    tuple-ms/s, and whether proven.
    """
    extra = {} if gap is None else {"gap_to_optimum": asdict(gap)}
    if isinstance(decision, Hold):
        hold = {"decision": "hold", "reason": decision.reason.value, "message": decision.message}
        return {"version": VERSION, **hold, **extra}
    return {"version": VERSION, "decision": "plan", "plan": plan_to_json(decision), **extra}


def decision_view(decision: Decision, snapshot: ClusterSnapshot, gap: Gap | None = None) -> RenderableType:
    """What would move, why, and what it brings; or why nothing does. With `gap`, how near that is to the optimum."""
    extra = () if gap is None else (Text(_gap_sentence(gap)),)
    if isinstance(decision, Hold):
        return Group(Text.assemble(("Hold", "bold yellow"), f" ({decision.reason.value}): {decision.message}"), *extra)
    return Group(
        Text.assemble(("Plan", "bold green"), f" by {decision.policy}: {decision.reason}"),
        _moves_table(decision, snapshot),
        _figures_table(decision.before, decision.after),
        Text(_workers_sentence(decision)),
        *extra,
    )


def _moves_table(plan: Plan, snapshot: ClusterSnapshot) -> Table:
    hosts = {supervisor.id: supervisor.host for supervisor in snapshot.supervisors}
    table = Table(title="What moves", title_justify="left")
    for heading in ("topology", "component", "executor", "from", "to"):
        table.add_column(heading, overflow="fold")
    for move in plan.moves:
        name = snapshot.topology(move.executor.topology_id).name
        source = "(not placed)" if move.source is None else _place(move.source, hosts)
        table.add_row(name, move.executor.component, move.executor.label, source, _destination(move, hosts))
    return table


def _destination(move: Move, hosts: Mapping[str, str]) -> str:
    return f":{move.target.port} (port only)" if move.changes_only_port else _place(move.target, hosts)


def _place(slot: WorkerSlot, hosts: Mapping[str, str]) -> str:
    return f"{hosts.get(slot.supervisor_id, slot.supervisor_id)}:{slot.port}"


def _figures_table(before: Prediction, after: Prediction) -> Table:
    table = Table("", title="What it brings", title_justify="left", caption=COST, caption_justify="left")
    table.add_column("now", justify="right")
    table.add_column("then", justify="right")
    for name, caption in FIGURES.items():
        table.add_row(caption, figure(getattr(before, name)), figure(getattr(after, name)))
    return table


def _gap_sentence(gap: Gap) -> str:
    costs = (
        f"It is of cost with restarts, {figure(gap.cost)} tuple-ms/s; without the {figure(gap.restart_cost)} that "
        f"these make, spread over expectedLifeSeconds, the proposal costs {figure(gap.cost - gap.restart_cost)}. "
        "CPU counts in it by what executors may come to need, in the table by what they need now."
    )
    percent = "unknown: the best found costs 0" if gap.percent is None else f"{gap.percent:.2f}%"
    if gap.proven:
        return f"Gap to optimum: {percent} (proven). {costs}"
    worst = gap.at_most_percent
    at_most = "how much at most is unknown: the bound is 0" if worst is None else f"at most {worst:.2f}%"
    return f"Gap to optimum: {percent} above the best found; {at_most} (not proven). {costs}"


def _workers_sentence(plan: Plan) -> str:
    payback = "" if plan.payback_seconds is None else f"; pays back in {plan.payback_seconds:.0f} s"
    return (
        f"Workers restarted: {len(plan.started_workers)}, ended: "
        f"{len(plan.restarted_workers) - len(plan.started_workers)}, kept running: {len(plan.kept_workers)}{payback}."
    )

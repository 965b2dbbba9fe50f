"""The demo's report: report.json for programs and report.html, one self-contained page, for people."""

from __future__ import annotations

import html
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.colors import qualitative
from plotly.subplots import make_subplots

from storm_operator.core.wording import EFFECT_UNKNOWN, figure
from storm_operator.demo.figures import (
    PhaseFigures,
    nothing_compared,
    phase_to_json,
    plan_to_report,
    ratio_text,
    ratios,
    unsettled,
)
from storm_operator.demo.recorder import Recorder

PLOT_HEIGHT_PX = 1150
MEASURED = (
    "Measured in the phases Even and managed alone. What plans cost in the other phases, failed tuples among it, "
    "stands with each plan below."
)
COMPARED = "Even against storm-operator, same cluster, same run, same load"
NOT_COMPARED = "Before and after storm-operator took over: Storm's own placement both times"
CAPTION = (
    "Red dashed lines: a plan came into force. Thin grey lines: a phase begins. Where a line has a gap, not everything "
    "could be measured in that period, as while workers restart."
)
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 1100px; color: #1c2733; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; }
th, td { text-align: left; padding: .35rem .7rem; border-bottom: 1px solid #dde3ea; vertical-align: top; }
th { background: #f3f6f9; } .number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.big { display: flex; gap: 1rem; flex-wrap: wrap; } .big div { flex: 1; background: #f3f6f9; border-radius: 8px;
padding: .8rem 1rem; } .big b { display: block; font-size: 1.7rem; } details { margin: .3rem 0; }
"""


def write_report(
    folder: Path,
    recorder: Recorder,
    baseline: PhaseFigures,
    managed: PhaseFigures,
    notes: Sequence[str] = (),
    subject: str = "a real Storm cluster",
) -> tuple[Path, Path]:
    """Write report.json and report.html into `folder` (made if absent); returns their paths.

    `subject` is what the page's title says the demo was played on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    report = report_to_json(recorder, baseline, managed, notes)
    as_json, as_html = folder / "report.json", folder / "report.html"
    as_json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    as_html.write_text(_page(report, recorder, subject), encoding="utf-8")
    return as_json, as_html


def report_to_json(
    recorder: Recorder, baseline: PhaseFigures, managed: PhaseFigures, notes: Sequence[str]
) -> dict[str, Any]:
    """The report as JSON values; docs/reference/demo-report.md describes it."""
    nothing, told = nothing_compared(recorder), ratios(baseline, managed)
    return {
        "version": 1,
        "baseline": phase_to_json(baseline),
        "managed": phase_to_json(managed),
        "ratio": told if nothing is None else dict.fromkeys(told),
        "plans": [plan_to_report(record, recorder.hosts) for record in recorder.plans.values()],
        "phases": [
            {
                "title": phase.title,
                "started_at_seconds": phase.started_at_seconds,
                "ended_at_seconds": phase.ended_at_seconds,
                "offered_tuples_per_second": phase.offered_per_second,
                "acked_tuples_per_second_at_end": last.acked_per_second if last else None,
                "supervisors_used_at_end": last.supervisors_used if last else None,
            }
            for phase, last in ((phase, recorder.at_end_of(phase)) for phase in recorder.phases)
        ],
        "notes": [*([] if nothing is None else [nothing]), *notes, *unsettled(recorder.plans.values())],
    }


def _page(report: dict[str, Any], recorder: Recorder, subject: str) -> str:
    nothing = nothing_compared(recorder)
    plots = plots_of(recorder).to_html(full_html=False, include_plotlyjs=True, config={"displaylogo": False})
    sections = [
        f"<h1>storm-operator: what it did to {html.escape(subject)}</h1>",
        _headline(report) if nothing is None else f"<p><b>{html.escape(nothing)}</b></p>",
        f"<h2>{COMPARED if nothing is None else NOT_COMPARED}</h2>",
        _comparison(report),
        "<h2>Course</h2>",
        f"<p>{CAPTION}</p>",
        plots,
        "<h2>Phases: load offered and load borne</h2>",
        _phases(report["phases"]),
        "<h2>Plans: what moved, why, predicted and measured</h2>",
        *[plan_section(plan) for plan in report["plans"]],
        *[f"<p>{html.escape(note)}</p>" for note in report["notes"]],
    ]
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>storm-operator demo</title>"
        f"<style>{STYLE}</style></head><body>{''.join(sections)}</body></html>"
    )


def _headline(report: dict[str, Any]) -> str:
    cards = (
        ("inter-supervisor tuples", report["ratio"]["inter_supervisor_tuples_per_second"]),
        ("median latency", report["ratio"]["latency_p50"]),
        ("p99 latency", report["ratio"]["latency_p99"]),
        ("throughput", report["ratio"]["throughput"]),
    )
    return "<div class='big'>" + "".join(f"<div><b>{ratio_text(v)}</b>{name}</div>" for name, v in cards) + "</div>"


def _comparison(report: dict[str, Any]) -> str:
    rows: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
        ("complete latency, mean (ms)", lambda m: m["latency_ms"]["mean"]),
        ("complete latency, median (ms)", lambda m: m["latency_ms"]["p50"]),
        ("complete latency, p99 (ms)", lambda m: m["latency_ms"]["p99"]),
        ("tuples between supervisors, per second", lambda m: m["inter_supervisor_tuples_per_second"]),
        ("throughput, acked tuples per second", lambda m: m["throughput_tuples_per_second"]),
        ("failed tuples", lambda m: m["failed_tuples"]),
        ("supervisors in use", lambda m: m["supervisors_used"]),
        ("CPU of all supervisors (millicores)", lambda m: m["cpu_millicores"]),
    ]
    body = "".join(
        f"<tr><td>{name}</td><td class='number'>{figure(read(report['baseline']))}</td>"
        f"<td class='number'>{figure(read(report['managed']))}</td></tr>"
        for name, read in rows
    )
    heads = "".join(f"<th class='number'>{name}</th>" for name in ("Even", "storm-operator"))
    return f"<table><tr><th>figure</th>{heads}</tr>{body}</table><p>{MEASURED}</p>"


def _phases(phases: Sequence[dict[str, Any]]) -> str:
    names = ("seconds", "root tuples/s offered", "acked at its end", "supervisors in use at its end")
    heads = "".join(f"<th class='number'>{name}</th>" for name in names)
    rows = "".join(f"<tr><td>{html.escape(phase['title'])}</td>{_phase_figures(phase)}</tr>" for phase in phases)
    return f"<table><tr><th>phase</th>{heads}</tr>{rows}</table>"


def _phase_figures(phase: dict[str, Any]) -> str:
    ended, started = phase["ended_at_seconds"], phase["started_at_seconds"]
    figures = (
        None if ended is None else round(ended - started),
        phase["offered_tuples_per_second"],
        phase["acked_tuples_per_second_at_end"],
        phase["supervisors_used_at_end"],
    )
    return "".join(f"<td class='number'>{figure(value)}</td>" for value in figures)


def plan_section(plan: dict[str, Any]) -> str:
    """One of the report's plans, as HTML."""
    moves = "".join(
        f"<tr><td>{html.escape(move['executor'])}</td><td>{html.escape(move['topology'])}</td>"
        f"<td>{html.escape(move['from'] or 'unplaced')}</td><td>{html.escape(move['to'])}</td></tr>"
        for move in plan["moves"]
    )
    before, predicted, measured = plan["before"], plan["predicted"] or {}, plan["measured"] or {}
    facts = (
        f"in force after {figure(plan['seconds_to_in_force'])} s, moved executors at work "
        f"{figure(plan['seconds_to_running'])} s later; {_workers(plan)}; "
        f"failed tuples meanwhile: {figure(plan['failed_tuples'])}; inter-supervisor traffic predicted "
        f"{figure(predicted.get('inter_supervisor_tuples_per_second'))}, measured "
        f"{figure(measured.get('inter_supervisor_tuples_per_second'))} tuples/s; mean complete latency predicted "
        f"{figure(predicted.get('complete_latency_ms'))}, measured "
        f"{figure(measured.get('complete_latency_mean_ms'))} ms, "
        f"{figure(before['complete_latency_mean_ms'])} before; load of its topologies: "
        f"{figure(before['acked_per_second'])} acked tuples/s before, "
        f"{figure(measured.get('acked_per_second'))} after"
    )
    state = f"{plan['state']}, {EFFECT_UNKNOWN}" if plan["effect_is_unknown"] else plan["state"]
    return (
        f"<details open><summary><b>{html.escape(plan['id'])}</b> ({state}, {plan['policy']}): "
        f"{html.escape(plan['reason'])}</summary><p>{facts}</p><p>{html.escape(plan['message'])}</p>"
        f"<table><tr><th>executor</th><th>topology</th><th>from</th><th>to</th></tr>{moves}</table></details>"
    )


def _workers(plan: dict[str, Any]) -> str:
    """Which restarted, and which of those that were to stay did."""
    count, stay = plan["workers_restarted"], plan["workers_meant_to_be_kept"]
    restarted = f"{count} worker{'' if count == 1 else 's'} restarted"
    return f"{restarted}, {figure(plan['workers_kept'])} of {stay} kept their process" if stay else restarted


def plots_of(recorder: Recorder) -> go.Figure:
    """The run's course: a chart for each kind of figure, one above the other."""
    titles = (
        "complete latency, ms (log scale; solid: median, dotted: p99)",
        "throughput, acked tuples/s",
        "tuples/s between supervisors",
        "CPU per supervisor, millicores",
        "supervisors in use",
    )
    figure = make_subplots(rows=len(titles), cols=1, shared_xaxes=True, subplot_titles=titles, vertical_spacing=0.045)
    start = recorder.phases[0].started_at_seconds if recorder.phases else 0.0
    points = [point for point in recorder.points if point.at_seconds >= start]
    seconds = [point.at_seconds - start for point in points]

    names = sorted({name for point in points for name in point.latency_p50_ms})
    hosts = sorted({host for point in points for host in point.cpu_millicores})
    singles = ("between supervisors", "supervisors in use")
    colors = dict(zip((*names, *hosts, *singles), itertools.cycle(qualitative.Plotly), strict=False))

    def line(row: int, of: str, values: Sequence[float | None], title: str = "", **style: Any) -> None:
        """`of` has one colour in all charts, which nothing else has."""
        drawn = {"x": seconds, "y": list(values), "mode": "lines", "line": {"color": colors[of], **style}}
        figure.add_trace(go.Scatter(**drawn, name=title or of, legend=_legend(row)), row=row, col=1)

    for name in names:
        line(1, name, [point.latency_p50_ms.get(name) for point in points], f"{name} p50")
        line(1, name, [point.latency_p99_ms.get(name) for point in points], f"{name} p99", dash="dot", width=1)
        line(2, name, [point.throughput_per_second.get(name) for point in points])
    line(3, singles[0], [point.inter_supervisor_per_second for point in points])
    for host in hosts:
        line(4, host, [point.cpu_millicores.get(host) for point in points])
    line(5, singles[1], [point.supervisors_used for point in points], shape="hv")
    for row in range(1, len(titles) + 1):
        top = next(figure.select_yaxes(row=row, col=1)).domain[1]
        figure.update_layout({_legend(row): {"y": top, "yanchor": "top", "x": 1.01}})
    _mark(figure, recorder, start)
    figure.update_yaxes(type="log", row=1, col=1)
    figure.update_yaxes(rangemode="tozero", row=5, col=1)
    figure.update_xaxes(title_text="seconds", row=len(titles), col=1)
    figure.update_layout(height=PLOT_HEIGHT_PX, margin={"t": 60, "l": 50, "r": 20}, template="plotly_white")
    return figure


def _legend(row: int) -> str:
    """Beside the chart of that row, of its lines alone."""
    return "legend" if row == 1 else f"legend{row}"


def _mark(figure: go.Figure, recorder: Recorder, start_seconds: float) -> None:
    """Plans as lines, phases as titles."""
    for record in recorder.plans.values():
        at = record.in_force_at_seconds
        if at is not None:
            figure.add_vline(x=at - start_seconds, line={"color": "#c0392b", "dash": "dash", "width": 1})
    for phase in recorder.phases:
        figure.add_vline(x=phase.started_at_seconds - start_seconds, line={"color": "#95a5a6", "width": 1})
        figure.add_annotation(
            x=phase.started_at_seconds - start_seconds,
            y=1.045,
            yref="paper",
            text=html.escape(phase.title),
            showarrow=False,
            xanchor="left",
            font={"size": 11, "color": "#5d6d7e"},
        )

"""Sections over traffic: how far tuples go, between which components and executors, how evenly keys are spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import plotly.graph_objects as go

from storm_pipeline.reporting.section import Known, Section, named
from storm_pipeline.transforms.overview import MOST_COMPONENTS, MOST_LINES, OTHER, REACHES, UNRECORDED

NO_TRAFFIC = "no tuples between its executors were measured"
NO_FIELDS = "it has no fields grouping that tuples went through, other than to ackers"
REACH_WORDS = {
    "within_worker": "within a worker",
    "between_workers": "between workers of a supervisor",
    "between_supervisors": "between supervisors",
    "place_unknown": "place unknown",
}
REACH_COLORS = dict(zip(REACH_WORDS, ("#00cc96", "#636efa", "#ef553b", "#bab0ac"), strict=True))
"""Of the plots' own palette: green stays where it is, red is what costs most; grey is not known."""
EVEN = 1.0
"""The imbalance where all receivers get the same."""
ROW_PIXELS = 26
"""Of a plot that grows with its rows."""
AROUND_PIXELS = 160


def _reach_over_time(known: Known) -> Section:
    found = known["reach_over_time"]
    frame = found.frame.sort_values("window_start")
    window = _window_of(frame)
    plots = []
    if not frame.empty:
        parts, tuples = go.Figure(), go.Figure()
        for name in _reached(frame):
            times, title = frame["window_start"].tolist(), REACH_WORDS[name]
            color = REACH_COLORS[name]
            parts.add_bar(x=times, y=(100.0 * frame[name]).tolist(), name=title, marker_color=color)
            tuples.add_bar(x=times, y=(frame["tuples"] * frame[name]).tolist(), name=title, marker_color=color)
        for figure, unit in ((parts, "% of all tuples"), (tuples, f"tuples in {window}")):
            plots.append(named(figure.update_layout(barmode="stack"), "time", unit))
    words = (
        f"Tuples of all topologies by what they cross, in windows of {window}: which part stays within a worker, "
        "passes between workers of one supervisor, or between supervisors. Where there is no bar nothing was measured."
        + found.left_out("newest", "windows")
    )
    return Section("traffic-share", "How far tuples go", words, plots, frame, found.nothing("traffic", NO_TRAFFIC))


def _reach_of_topologies(known: Known) -> Section:
    found = known["reach_of_topologies"]
    frame = found.frame
    plots = []
    if not frame.empty:
        figure = go.Figure()
        for name in _reached(frame):
            topologies, parts = frame["topology_id"].tolist(), (100.0 * frame[name]).tolist()
            color = REACH_COLORS[name]
            figure.add_bar(y=topologies, x=parts, name=REACH_WORDS[name], orientation="h", marker_color=color)
        figure.update_layout(barmode="stack").update_yaxes(type="category", autorange="reversed")
        plots.append(named(figure, "% of the topology's tuples", "topology", _height(len(frame))))
    words = "The same over all that is recorded." + found.left_out("busiest", "topologies")
    nothing = found.nothing("traffic", NO_TRAFFIC)
    return Section("traffic-topologies", "How far each topology's tuples go", words, plots, frame, nothing)


def _components(known: Known) -> Section:
    found = known["component_traffic"]
    frame = found.frame
    words = (
        "Tuples from component to component over all that is recorded: from the row to the column, in the picture in "
        "percent of all of the cluster, in the table as shares. Where there is no figure nothing was measured."
    )
    if found.total > MOST_COMPONENTS:
        others = found.total - MOST_COMPONENTS
        words += f" The {others:,} components with least tuples are one, {OTHER}."
    plots = [_matrix(frame)] if not frame.empty else []
    nothing = found.nothing("traffic", NO_TRAFFIC)
    return Section("traffic-components", "Traffic between components", words, plots, frame, nothing)


def _matrix(frame: pd.DataFrame) -> go.Figure:
    """A heat map with senders for rows; a pair that nothing was measured of stays blank."""
    ends = {end: _components_of(frame, end) for end in ("source", "target")}
    names = list(dict.fromkeys([*ends["source"], *ends["target"]]))
    parts = {
        (source, target): 100.0 * share
        for source, target, share in zip(ends["source"], ends["target"], frame["share"], strict=True)
    }
    figure = go.Figure(
        go.Heatmap(
            x=names,
            y=names,
            z=[[parts.get((source, target)) for target in names] for source in names],
            texttemplate="%{z:.2g}",
            hovertemplate="%{y} to %{x}: %{z:.3g}%<extra></extra>",
            colorscale="Blues",
            zmin=0.0,
            zmax=max(parts.values()),
            hoverongaps=False,
        )
    )
    # Names can look like numbers or dates, which plotly would place along an axis of such.
    figure.update_xaxes(type="category").update_yaxes(type="category", autorange="reversed")
    return named(figure, "to", "from", _height(len(names)))


def _heaviest(known: Known) -> Section:
    found = known["heaviest_pairs"]
    frame = found.frame
    window = _window_of(frame)
    plots = []
    if not frame.empty:
        figure = go.Figure(go.Bar(x=frame["tuples"].tolist(), y=_pair_names(frame), orientation="h"))
        figure.update_yaxes(type="category", autorange="reversed")
        plots.append(named(figure, f"tuples in {window}", "executors, by their first tasks", _height(len(frame))))
    words = (
        f"The pairs of executors with most tuples in any window of {window}; the share is that of the topology's "
        "tuples in this window, and windows are those in which the pair was among the heaviest."
        + found.left_out("heaviest", "pairs that storm-pipeline traffic has kept")
    )
    nothing = found.nothing("traffic", NO_TRAFFIC)
    return Section("heaviest-pairs", "Heaviest pairs", words, plots, frame, nothing)


def _skew(known: Known) -> Section:
    found = known["skewed_edges"]
    frame = found.frame
    plots = []
    if not frame.empty:
        figure = go.Figure(go.Bar(x=frame["imbalance"].tolist(), y=_edge_names(frame), orientation="h"))
        figure.update_yaxes(type="category", autorange="reversed").add_vline(x=EVEN, line_dash="dot")
        plots.append(named(figure, "imbalance (1: even)", "fields grouping", _height(len(frame))))
    words = (
        "How unevenly fields groupings spread tuples over the executors that receive them: the heaviest receiver's "
        "share of all, its tuples over the mean (imbalance, 1 is even), and the Gini index (0 is even), as means over "
        "all that is recorded. First comes where the heaviest receivers got most tuples beyond an even part."
        + found.left_out("most uneven", "fields groupings")
    )
    return Section("key-skew", "Key skew", words, plots, frame, found.nothing("traffic", NO_FIELDS))


def _skew_over_time(known: Known) -> Section:
    found = known["skew_over_time"]
    frame = found.frame.sort_values(["window_start", "topology_id", "source", "target"])
    plots = []
    if not frame.empty:
        figure = go.Figure()
        for name, own in frame.assign(edge=_edge_names(frame)).groupby("edge"):
            times, values = own["window_start"].tolist(), own["imbalance"].tolist()
            figure.add_scatter(x=times, y=values, name=str(name), mode="lines+markers")
        figure.add_hline(y=EVEN, line_dash="dot").update_layout(showlegend=True)
        plots.append(named(figure, "time", "imbalance (1: even)"))
    edges = min(MOST_LINES, len(set(_edge_names(frame)))) if not frame.empty else MOST_LINES
    words = f"The {edges} most uneven of them in windows of {_window_of(frame)}." + found.left_out(
        "newest", "windows of theirs"
    )
    nothing = found.nothing("traffic", NO_FIELDS)
    return Section("key-skew-over-time", "Key skew over time", words, plots, frame, nothing)


def _window_of(frame: pd.DataFrame) -> str:
    """The length of the frame's windows, which all have the same."""
    return str(frame["window"].iloc[0]) if not frame.empty else "time"


def _reached(frame: pd.DataFrame) -> list[str]:
    """The columns of how far tuples go that have any."""
    return [name for name in REACHES.values() if frame[name].any()]


def _components_of(frame: pd.DataFrame, end: str) -> list[str]:
    """The `end` (source or target) of each row; with its topology where rows are of several."""
    names = [str(name) if isinstance(name, str) else UNRECORDED for name in frame[end]]
    if frame.loc[frame["topology_id"] != OTHER, "topology_id"].nunique() < 2:
        return names
    topologies = frame["topology_id"]
    return [name if name == OTHER else f"{topology}/{name}" for topology, name in zip(topologies, names, strict=True)]


def _edge_names(frame: pd.DataFrame) -> list[str]:
    ends = zip(_components_of(frame, "source"), frame["target"], strict=True)
    return [f"{source} to {target}" for source, target in ends]


def _pair_names(frame: pd.DataFrame) -> list[str]:
    targets = [name if isinstance(name, str) else UNRECORDED for name in frame["target"]]
    ends = zip(_components_of(frame, "source"), frame["source_task"], targets, frame["target_task"], strict=True)
    return [f"{source} {own_task} to {target} {task}" for source, own_task, target, task in ends]


def _height(rows: int) -> int:
    """Of a plot with so many rows, in pixels."""
    return AROUND_PIXELS + ROW_PIXELS * rows


TRAFFIC: Sequence[Callable[[Known], Section]] = (
    _reach_over_time,
    _reach_of_topologies,
    _components,
    _heaviest,
    _skew,
    _skew_over_time,
)
"""In their order on the page."""

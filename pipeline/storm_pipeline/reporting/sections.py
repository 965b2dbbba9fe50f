"""Each section of the report: a sentence, a plot where there is something to see, and the same as a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go

LEAST_HOURS = 6
"""Of fewer, a line by the hour says nothing."""
MOST_ROWS = 200
"""Of a table on the page; the files beside it have all."""
MOST_SEASONS = 6
LEAST_SHOWN = 1e-9
"""What is less is left over from rounding."""


@dataclass(frozen=True, slots=True)
class Section:
    """`frame` is what the plots show; all of it is written beside the page."""

    name: str
    title: str
    words: str
    plots: Sequence[go.Figure]
    frame: pd.DataFrame


Frames = Mapping[str, pd.DataFrame]
"""Gold tables of one cluster by name; a table that no job has written yet is empty."""


def sections(frames: Frames) -> list[Section]:
    """All that there is something to say of, in order."""
    made: Sequence[Callable[[Frames], Section]] = (
        _shares,
        _profile,
        _restarts,
        _forecasts,
        _seasons,
        _effects,
        _league,
        _predictions,
        _costs,
        _tuning,
        _quality,
    )
    return [section for section in (make(frames) for make in made) if not section.frame.empty]


def _shares(frames: Frames) -> Section:
    frame = frames["traffic_share"]
    hourly = frame[frame["window"] == "1 hour"] if not frame.empty else frame
    plots = []
    if not hourly.empty:
        figure = go.Figure()
        for reach, own in hourly.groupby("reach"):
            total = own.groupby("window_start")["tuples"].sum()
            figure.add_bar(x=total.index, y=total.to_numpy(), name=str(reach))
        plots.append(_named(figure.update_layout(barmode="stack"), "time", "tuples an hour"))
    return Section("traffic-share", "How far tuples go", "Tuples by what they cross, hour by hour.", plots, hourly)


def _profile(frames: Frames) -> Section:
    frame = frames["component_profile"]
    whole = frame[frame["hour_of_week"].isna()] if not frame.empty else frame
    plots = []
    if not whole.empty:
        names = _labels(whole)
        for column, unit in (("cpu_per_tuple", "CPU ms per tuple"), ("selectivity", "tuples emitted for one executed")):
            error = {"type": "data", "array": whole[f"{column}_spread"].tolist()}
            figure = go.Figure(go.Bar(x=names, y=whole[column].tolist(), error_y=error))
            plots.append(_named(figure, "component", unit))
        hours = frame[frame["hour_of_week"].notna()]
        if hours["hour_of_week"].nunique() >= LEAST_HOURS:
            figure = go.Figure()
            for name, own in hours.assign(label=_labels(hours)).sort_values("hour_of_week").groupby("label"):
                figure.add_scatter(x=own["hour_of_week"].tolist(), y=own["cpu_per_tuple"].tolist(), name=str(name))
            plots.append(_named(figure, "hour of the week (0 is Monday 00:00 UTC)", "CPU ms per tuple"))
    words = "Medians over all periods; bars show the robust spread. Compare what is declared with what is used."
    return Section("component-profile", "What components cost", words, plots, whole)


def _restarts(frames: Frames) -> Section:
    words = "Seconds from the decision to the plan in force, and from there until all moved executors run."
    return Section("restarts", "How long restarts take", words, (), frames["restarts"])


def _forecasts(frames: Frames) -> Section:
    frame = frames["forecast_errors"]
    plots = []
    for column, what in (("error_percent", "mean absolute error"), ("short_percent", "CPU short")):
        if frame.empty or not frame[column].any():
            continue
        figure = go.Figure()
        for name, own in frame.groupby("forecaster"):
            figure.add_bar(x=_labels(own), y=own[column].tolist(), name=str(name))
        plots.append(_named(figure.update_layout(barmode="group"), "component", f"{what}, % of the mean load"))
    words = (
        "Rolling-origin backtests. Short: CPU that would have been lacking by that forecast, over: CPU reserved "
        "in vain, both in percent of the mean load (no plot of what is 0 everywhere). Holt-Winters and the naive one "
        "are not the operator's."
    )
    return Section("forecast-errors", "Who forecasts best", words, plots, frame)


def _seasons(frames: Frames) -> Section:
    frame = frames["seasons"]
    known = frame[frame["season"].notna()] if not frame.empty else frame
    plots = []
    for label, text in list(zip(_labels(known), known.get("season", ()), strict=True))[:MOST_SEASONS]:
        season = json.loads(text)
        hours = [index * season["bin_seconds"] / 3600.0 for index in range(len(season["expected_per_second"]))]
        figure = go.Figure()
        figure.add_scatter(x=hours, y=season["ready_per_second"], name="ready for", line={"width": 1})
        figure.add_scatter(x=hours, y=season["expected_per_second"], name="expected", line={"width": 1})
        plots.append(_named(figure.update_layout(title=label), "hours into the cycle", "tuples per second"))
    shown = known.drop(columns="season") if not known.empty else known
    return Section("seasons", "Loads that come again", "What is learned of a day, and published.", plots, shown)


def _effects(frames: Frames) -> Section:
    frame = frames["plan_effects"]
    plots = []
    for name, of_figure in frame.sort_values("created_at").groupby("figure") if not frame.empty else ():
        figure = go.Figure()
        for topology, own in of_figure.groupby("topology_id"):
            error = {
                "type": "data",
                "symmetric": False,
                "array": (own["effect_high"] - own["effect"]).clip(lower=0.0).tolist(),
                "arrayminus": (own["effect"] - own["effect_low"]).clip(lower=0.0).tolist(),
            }
            figure.add_scatter(
                x=own["plan_id"].tolist(), y=own["effect"].tolist(), error_y=error, mode="markers", name=str(topology)
            )
        plots.append(
            _named(figure.update_layout(scattermode="group", showlegend=True), "plan", f"effect on {_plain(name)}")
        )
    words = (
        "After minus what was to be expected (throughput scaled by the forecast load); 90% of resamples lie within. "
        "Only periods between the plans before and after count; a plan with too few of them is not shown."
    )
    return Section("plan-effects", "What each plan brought", words, plots, frame)


def _league(frames: Frames) -> Section:
    words = (
        "Changes are medians over plans, as the operator measured them when it verified each: mean latency of the "
        "slowest topology, against just before."
    )
    return Section("policy-league", "Policies", words, (), frames["policy_league"])


def _predictions(frames: Frames) -> Section:
    words = "Predicted against measured after the plan; a positive bias predicts too much."
    return Section("prediction-errors", "How good predictions are", words, (), frames["prediction_errors"])


def _costs(frames: Frames) -> Section:
    words = (
        "Tuple trees that were to be expected and were not completed while workers restarted. Of the unknown seconds "
        "nobody knows: what is missing there comes on top."
    )
    return Section("restart-costs", "What restarts cost", words, (), frames["restart_costs"])


def _tuning(frames: Frames) -> Section:
    frame = frames["tuning_advice"]
    plots = []
    if not frame.empty:
        error = {
            "type": "data",
            "symmetric": False,
            "array": (frame["high_percent"] - frame["change_percent"]).clip(lower=0.0).tolist(),
            "arrayminus": (frame["change_percent"] - frame["low_percent"]).clip(lower=0.0).tolist(),
        }
        ranks = [str(rank) for rank in frame["rank"]]
        figure = go.Figure(
            go.Scatter(x=ranks, y=frame["change_percent"].tolist(), error_x=None, error_y=error, mode="markers")
        )
        plots.append(_named(figure, "rank", "score against the present settings, %"))
    words = "Replays of recorded history in the simulator; negative is better. Nothing is changed by itself."
    return Section(
        "tuning-advice", "Other settings", words, plots, frame.sort_values("rank") if not frame.empty else frame
    )


def _quality(frames: Frames) -> Section:
    words = "What was read, kept and set aside in each run of ingest."
    return Section("quality", "Quality of the data", words, (), frames["quality"])


def _plain(name: object) -> str:
    """A column's name as words."""
    return str(name).replace("_", " ")


def heads(frame: pd.DataFrame) -> list[str]:
    """The names of a table's columns for a person; those that say nothing are left out."""
    return [_plain(name) for name in _telling(frame).columns]


def _labels(frame: pd.DataFrame) -> list[str]:
    if frame.empty:
        return []
    return [
        f"{topology}/{component}"
        for topology, component in zip(frame["topology_name"], frame["component"], strict=True)
    ]


def _named(figure: go.Figure, x: str, y: str) -> go.Figure:
    figure.update_xaxes(title=x, automargin=True)
    figure.update_yaxes(title=y, automargin=True)
    return figure.update_layout(height=360, margin={"l": 60, "r": 20, "t": 40, "b": 60}, template="plotly_white")


def cells(frame: pd.DataFrame) -> list[list[str]]:
    """A table's first rows as texts, column by column as in `heads`."""
    return [[_text(value) for value in row] for row in _telling(frame).head(MOST_ROWS).itertuples(index=False)]


def _telling(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.dropna(axis="columns", how="all")


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {number}" for name, number in value.items()) or "none"
    if isinstance(value, float):
        return "0" if abs(value) < LEAST_SHOWN else f"{value:,.4g}"
    return str(value)

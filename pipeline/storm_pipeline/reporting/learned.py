"""Sections over what was learned: components, restarts, forecasts, plans, settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pandas as pd
import plotly.graph_objects as go

from storm_pipeline.reporting.section import Known, Section, named, plain

LEAST_HOURS = 6
"""Of fewer, a line by the hour says nothing."""
MOST_SEASONS = 6
BIN = ("hour_of_cycle", "expected_per_second", "ready_per_second")
FAILED_OF = "Failed tuples are of as many plans as stand beside them; of the others nobody knows."
NO_PLAN = "no plan with enough periods before and after it was put in force"


def _profile(known: Known) -> Section:
    found = known["component_profile"]
    whole = found.frame[found.frame["hour_of_week"].isna()]
    plots = []
    if not whole.empty:
        names = _labels(whole)
        for column, unit in (("cpu_per_tuple", "CPU ms per tuple"), ("selectivity", "tuples emitted for one executed")):
            error = {"type": "data", "array": whole[f"{column}_spread"].tolist()}
            figure = go.Figure(go.Bar(x=names, y=whole[column].tolist(), error_y=error))
            plots.append(named(figure, "component", unit))
    words = "Medians over all periods; bars show the robust spread."
    if whole["used_share_of_declared"].notna().any():
        words += " Compare what is declared with what is used."
    nothing = found.nothing("profile", "no executor was recorded with its CPU time")
    return Section("component-profile", "What components cost", words, plots, whole, nothing)


def _hours(known: Known) -> Section:
    found = known["component_profile"]
    hours = found.frame[found.frame["hour_of_week"].notna()]
    plots = []
    if hours["hour_of_week"].nunique() >= LEAST_HOURS:
        figure = go.Figure()
        for name, own in hours.assign(label=_labels(hours)).sort_values("hour_of_week").groupby("label"):
            figure.add_scatter(x=own["hour_of_week"].tolist(), y=own["cpu_per_tuple"].tolist(), name=str(name))
        plots.append(named(figure, "hour of the week (0 is Monday 00:00 UTC)", "CPU ms per tuple"))
    words = f"The same by the hour of the week; no plot of fewer than {LEAST_HOURS} hours."
    nothing = found.nothing("profile", "no executor was recorded with its CPU time")
    return Section("component-hours", "What components cost hour by hour", words, plots, hours, nothing)


def _restarts(known: Known) -> Section:
    found = known["restarts"]
    nothing = found.nothing("profile", "no plan was put in force")
    words = (
        "Seconds from the decision, or after a wait for approval from the beginning of the execution, to the plan in "
        "force, and from there until all moved executors run. Times to running are of as many plans as stand beside "
        f"them: the others were interrupted, or nobody saw them run in time. {FAILED_OF}"
    )
    return Section("restarts", "How long restarts take", words, (), found.frame, nothing)


def _forecasts(known: Known) -> Section:
    found = known["forecast_errors"]
    frame = found.frame
    plots = []
    for column, what in (("error_percent", "mean absolute error"), ("short_percent", "CPU short")):
        if frame.empty or not frame[column].any():
            continue
        figure = go.Figure()
        for name, own in frame.groupby("forecaster"):
            figure.add_bar(x=_labels(own), y=own[column].tolist(), name=str(name))
        plots.append(named(figure.update_layout(barmode="group"), "component", f"{what}, % of the mean load"))
    words = (
        "Rolling-origin backtests. Short: CPU that would have been lacking by that forecast, over: CPU reserved "
        "in vain, both in percent of the mean load (no plot of what is 0 everywhere). Holt-Winters and the naive one "
        "are not the operator's."
    )
    nothing = found.nothing("forecast", "its history is too short for a backtest")
    return Section("forecast-errors", "Who forecasts best", words, plots, frame, nothing)


def _seasons(known: Known) -> Section:
    found = known["seasons"]
    seasonal = found.frame[found.frame["season"].notna()]
    bins = season_bins(seasonal)
    plots = []
    for names, own in list(bins.groupby(["topology_name", "component"], sort=False))[:MOST_SEASONS]:
        hours = own["hour_of_cycle"].tolist()
        figure = go.Figure()
        figure.add_scatter(x=hours, y=own["ready_per_second"].tolist(), name="ready for", line={"width": 1})
        figure.add_scatter(x=hours, y=own["expected_per_second"].tolist(), name="expected", line={"width": 1})
        plots.append(
            named(figure.update_layout(title="/".join(map(str, names))), "hours into the cycle", "tuples per second")
        )
    words = f"What is learned of {_cycles(seasonal)}, bin by bin."
    if len(seasonal) > MOST_SEASONS:
        words += f" Plots are of the first {MOST_SEASONS} of {len(seasonal):,} components; the file beside has all."
    nothing = found.nothing("forecast", "no component has a season")
    return Section("seasons", "Loads that come again", words, plots, bins, nothing)


def _cycles(seasonal: pd.DataFrame) -> str:
    """How long the cycles are, in words."""
    hours = sorted({json.loads(season)["cycle_seconds"] / 3600.0 for season in seasonal["season"]})
    return f"a cycle of {' or '.join(f'{one:,.4g}' for one in hours)} hours" if hours else "a cycle"


def season_bins(seasonal: pd.DataFrame) -> pd.DataFrame:
    """The rows of the table `seasons`, each a row for every bin of its season instead of JSON."""
    whose = [str(name) for name in seasonal.columns if name != "season"]
    rows = [
        (*own, number * season["bin_seconds"] / 3600.0, expected, ready)
        for *own, season in zip(*(seasonal[name] for name in whose), map(json.loads, seasonal["season"]), strict=True)
        for number, (expected, ready) in enumerate(
            zip(season["expected_per_second"], season["ready_per_second"], strict=True)
        )
    ]
    return pd.DataFrame(rows, columns=[*whose, *BIN])


def _effects(known: Known) -> Section:
    found = known["plan_effects"]
    frame = found.frame
    plots = []
    for name, of_figure in frame.sort_values("created_at").groupby("figure"):
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
            named(figure.update_layout(scattermode="group", showlegend=True), "plan", f"effect on {plain(name)}")
        )
    words = (
        "After minus what was to be expected (throughput scaled by the forecast load); 90% of resamples lie within. "
        "Only periods between the plans before and after count; a plan with too few of them is not shown."
        + found.left_out("newest", "figures of plans")
    )
    nothing = found.nothing("evaluate", NO_PLAN)
    return Section("plan-effects", "What each plan brought", words, plots, frame, nothing)


def _league(known: Known) -> Section:
    words = (
        "Changes are medians over plans, as the operator measured them when it verified each: mean latency of the "
        "slowest topology, against just before. Plans are all that were made; moves, restarted workers and failed "
        f"tuples are of those that came into force. {FAILED_OF}"
    )
    found = known["policy_league"]
    return Section("policy-league", "Policies", words, (), found.frame, found.nothing("evaluate", NO_PLAN))


def _predictions(known: Known) -> Section:
    words = (
        "Predicted against measured after the plan; a positive bias predicts too much. Latency is predicted as if "
        "tuples went on to wait in queues as long as before: after a plan that relieved an overload it is far less."
    )
    found = known["prediction_errors"]
    nothing = found.nothing("evaluate", "no plan was verified")
    return Section("prediction-errors", "How good predictions are", words, (), found.frame, nothing)


def _costs(known: Known) -> Section:
    found = known["restart_costs"]
    words = (
        "Tuple trees that were to be expected and were not completed while workers restarted. Of the unknown seconds "
        "nobody knows: what is missing there comes on top." + found.left_out("dearest", "restarts")
    )
    return Section("restart-costs", "What restarts cost", words, (), found.frame, found.nothing("evaluate", NO_PLAN))


def _tuning(known: Known) -> Section:
    found = known["tuning_advice"]
    frame = found.frame.sort_values("rank")
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
        plots.append(named(figure, "rank", "score against the present settings, %"))
    words = "Replays of recorded history in the simulator; negative is better. Nothing is changed by itself."
    nothing = found.nothing("tune", "there was nothing to replay")
    return Section("tuning-advice", "Other settings", words, plots, frame, nothing)


def _labels(frame: pd.DataFrame) -> list[str]:
    return [
        f"{topology}/{component}"
        for topology, component in zip(frame["topology_name"], frame["component"], strict=True)
    ]


LEARNED: Sequence[Callable[[Known], Section]] = (
    _profile,
    _hours,
    _restarts,
    _forecasts,
    _seasons,
    _effects,
    _league,
    _predictions,
    _costs,
    _tuning,
)
"""In their order on the page."""

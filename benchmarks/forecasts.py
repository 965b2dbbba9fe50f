"""Ways to forecast load, by rolling origin on series recorded from the simulator; the last line is JSON.

Each period is forecast from the five before it, as the operator does. `error` is the mean absolute error and `short`
the mean of what the forecast lacks, both as shares of the series' mean load. With gaps, a fifth of the periods (drawn
by seed) were not measured.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from forecast_methods import METHODS, PERIOD_SECONDS, Method
from reaction.cases import LOADS, WORKLOADS, changing_load, scenario

from storm_operator.core.forecast import Point
from storm_operator.simulated_loop import even_start
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.load import LoadShape, RandomLevels, Triangle
from storm_operator.simulator.measure import Meter

PHI = 5
MISSING_SHARE = 0.2
LIU_REGULAR, LIU_RANDOM = "Liu's regular", "Liu's random"
KINDS = (*LOADS, LIU_REGULAR, LIU_RANDOM)
WORKLOAD = "wordcount"
RECORDED = "count"
"""The component whose arrivals are recorded."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Shares of the mean load."""

    error: float
    short: float


def load_of(kind: str, base: float, seconds: float, seed: int) -> LoadShape:
    if kind == LIU_REGULAR:
        return Triangle(base, 3.0 * base)
    if kind == LIU_RANDOM:
        return RandomLevels(base / 8.0, seed=seed)
    return changing_load(kind, base, seconds, seed)


def record(kind: str, seconds: float, seed: int) -> list[Point]:
    """What the meter of an unmanaged simulated cluster says of a component's arrivals, period by period."""
    workload = WORKLOADS[WORKLOAD]
    played = replace(scenario(workload, load_of(kind, workload.base, seconds, seed), seconds, seed), step_seconds=2.0)
    engine = Engine(played.model, even_start(played.model), seed, played.step_seconds, drawn_trees=1)
    meter, series = Meter(engine), []
    while engine.now < seconds:
        engine.advance_to(engine.now + PERIOD_SECONDS)
        (period,) = meter.read().history[-1:]
        (load,) = [one for (_, component), one in period.components.items() if component == RECORDED]
        series.append((period.ended_at_seconds, load.arrived_per_second))
    return series


def with_gaps(series: Sequence[Point], seed: int) -> list[Point | None]:
    """The series with a fifth of its points unknown."""
    drawn = np.random.default_rng((seed, 2)).random(len(series))
    return [None if draw < MISSING_SHARE else point for point, draw in zip(series, drawn, strict=True)]


def rolling_origin(method: Method, measured: Sequence[Point | None], truth: Sequence[Point]) -> Iterator[float]:
    """Forecast less truth, for each period that has a measured one among the five before it."""
    for at in range(PHI, len(truth)):
        known = [point for point in measured[at - PHI : at] if point is not None]
        if known:
            yield method(known, truth[at][0]) - truth[at][1]


def score(method: Method, measured: Sequence[Point | None], truth: Sequence[Point]) -> Scores:
    mean = statistics.fmean(value for _, value in truth)
    misses = list(rolling_origin(method, measured, truth))
    return Scores(
        statistics.fmean(abs(miss) for miss in misses) / mean, statistics.fmean(max(0.0, -m) for m in misses) / mean
    )


def mean_scores(scores: Sequence[Scores]) -> Scores:
    return Scores(statistics.fmean(s.error for s in scores), statistics.fmean(s.short for s in scores))


def compare(series: Mapping[str, Sequence[tuple[int, list[Point]]]], gaps: bool) -> dict[str, dict[str, Scores]]:
    """Scores by method and kind of load."""
    return {
        name: {
            kind: mean_scores([score(method, with_gaps(s, seed) if gaps else s, s) for seed, s in recorded])
            for kind, recorded in series.items()
        }
        for name, method in METHODS.items()
    }


def table(by_method: Mapping[str, Mapping[str, Scores]], kinds: Sequence[str]) -> str:
    """In Markdown: error / short in percent."""
    lines = [f"| forecast | all | {' | '.join(kinds)} |", "|---|" + "---:|" * (len(kinds) + 1)]
    for name, scores in by_method.items():
        cells = [mean_scores(list(scores.values())), *(scores[kind] for kind in kinds)]
        lines.append(f"| {name} | " + " | ".join(f"{100 * c.error:.1f} / {100 * c.short:.1f}" for c in cells) + " |")
    return "\n".join(lines)


def winners(by_method: Mapping[str, Mapping[str, Scores]]) -> list[str]:
    """Methods with less error and less short than the line, on the mean over the kinds of load."""
    whole = {name: mean_scores(list(scores.values())) for name, scores in by_method.items()}
    line = whole["line"]
    return [name for name, s in whole.items() if s.error < line.error and s.short < line.short]


def main(
    seeds: Annotated[int, typer.Option(help="Series of each kind of load.")] = 5,
    seconds: Annotated[float, typer.Option(help="How long each series is.")] = 1200.0,
    output: Annotated[Path, typer.Option(help="Folder for series.json.")] = Path("build/bench-forecasts"),
) -> None:
    """Record the series and compare all methods on them, without and with gaps."""
    series = {kind: [(seed, record(kind, seconds, seed)) for seed in range(seeds)] for kind in KINDS}
    output.mkdir(parents=True, exist_ok=True)
    (output / "series.json").write_text(json.dumps(series), encoding="utf-8")
    complete, gapped = compare(series, gaps=False), compare(series, gaps=True)
    print(f"error / short, % of the mean load\n\n{table(complete, KINDS)}\n\nwith gaps\n\n{table(gapped, KINDS)}\n")
    better = [name for name in winners(complete) if name in winners(gapped)]
    figures = {name: mean_scores(list(scores.values())) for name, scores in complete.items()}
    percent = {name: [round(100 * s.error, 2), round(100 * s.short, 2)] for name, s in figures.items()}
    print(json.dumps({"series": seeds * len(KINDS), "error_and_short_percent": percent, "better_than_line": better}))


if __name__ == "__main__":
    typer.run(main)

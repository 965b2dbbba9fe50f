"""What a learned profile is worth on a daily load with spikes: days 1 to 7 are learned from, 8 to 14 judged.

All with the operator's own functions. The demand path plays real days, second by second of load, through history,
forecast and demand alone. The whole loop plays days on the simulator, with queues and limits, compressed and (which
takes half an hour for a load) whole; nobody is moved. Under- and over-provisioned CPU-seconds; the last line is JSON.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import typer
from profile_gain.demand_path import STAGES, Provided, provided
from profile_gain.learning import learn, profile_of
from profile_gain.whole_loop import WHOLE, LoopCase, play_loop

from storm_operator.core.damped_trend import damped_trend
from storm_operator.core.learned_profile import SEASONAL
from storm_operator.core.learned_profile_json import dump_profile, load_profile
from storm_operator.simulator.daily_load import DAY_SECONDS, DailyLoad
from storm_pipeline.models.backtest import Series, by_season, line

PERIOD_SECONDS = 10.0
BIN_SECONDS = 30.0
BASE_PER_SECOND = 1500.0
CLUSTER = "simulated"
LINE, TREND, LEARNED = "Liu's regression", "damped trend", "learned profile"

Row = dict[str, Any]
Case = tuple[int, int, int]
"""Seed, days learned from, days judged."""
Played = TypeVar("Played", Case, LoopCase)


def play_demand(case: Case) -> list[Row]:
    """One load through the demand path, by each way to forecast."""
    seed, learned_days, judged_days = case
    load = DailyLoad(BASE_PER_SECOND, seed)
    rates = np.concatenate([load.means(day, PERIOD_SECONDS) for day in range(learned_days + judged_days)])
    times = PERIOD_SECONDS * np.arange(1, len(rates) + 1, dtype=np.float64)
    first = round(learned_days * DAY_SECONDS / PERIOD_SECONDS)
    series = {stage.name: Series(times, rates * stage.per_source_tuple, PERIOD_SECONDS) for stage in STAGES}
    past = {name: one.before(float(times[first - 1])) for name, one in series.items()}
    profile = profile_of(
        learn(past, DAY_SECONDS, BIN_SECONDS, {stage.name: stage.step for stage in STAGES}),
        "words",
        CLUSTER,
        float(times[first - 1]),
    )
    # As the operator gets it: through its text, to four digits.
    learned = load_profile(dump_profile(profile)).topologies["words"]
    totals = {name: Provided(0.0, 0.0) for name in (LINE, TREND, LEARNED)}
    for stage in STAGES:
        season = learned[stage.name].season
        by_profile = by_season(season) if season is not None and learned[stage.name].forecaster == SEASONAL else line
        for name, forecaster in ((LINE, line), (TREND, damped_trend), (LEARNED, by_profile)):
            totals[name] += provided(stage, series[stage.name], first, forecaster)
    return [
        {"part": "demand path", "seed": seed, "forecast": name, "under": total.under, "over": total.over}
        for name, total in totals.items()
    ]


def against_line(rows: Sequence[Row]) -> list[Row]:
    """For each part and way to forecast: medians and ranges over seeds, and changes against Liu's regression."""
    found = []
    for part, name in dict.fromkeys((row["part"], row["forecast"]) for row in rows):
        own = [row for row in rows if (row["part"], row["forecast"]) == (part, name)]
        base = {row["seed"]: row for row in rows if (row["part"], row["forecast"]) == (part, LINE)}
        line: Row = {"part": part, "forecast": name, "seeds": len(own)}
        for figure in ("under", "over"):
            line[figure] = _spread([row[figure] for row in own])
            changes = [100.0 * (row[figure] / base[row["seed"]][figure] - 1.0) for row in own]
            line[f"{figure}_change_percent"] = _spread(changes)
        found.append(line)
    return found


def _spread(values: Sequence[float]) -> list[float]:
    return [round(value, 2) for value in (statistics.median(values), min(values), max(values))]


def table(rows: Sequence[Row]) -> str:
    """In Markdown: median (lowest to highest) over seeds."""
    heads = ("under-provisioned, CPU-seconds", "against Liu's", "over-provisioned, CPU-seconds", "against Liu's")
    lines = ["| part | forecast | " + " | ".join(heads) + " |", "|---|---|" + "---:|" * len(heads)]
    for row in against_line(rows):
        cells = [
            _cell(row["under"], "{:,.0f}"),
            _cell(row["under_change_percent"], "{:+.1f}%"),
            _cell(row["over"], "{:,.0f}"),
            _cell(row["over_change_percent"], "{:+.2f}%"),
        ]
        lines.append(f"| {row['part']} | {row['forecast']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(spread: Sequence[float], form: str) -> str:
    middle, low, high = (form.format(value) for value in spread)
    return middle if low == high else f"{middle} ({low} to {high})"


def main(
    seeds: Annotated[int, typer.Option(help="Loads of the demand path.")] = 5,
    loop_seeds: Annotated[int, typer.Option(help="Loads of the whole loop on compressed days; 0 leaves it out.")] = 3,
    whole_seeds: Annotated[int, typer.Option(help="Loads of the whole loop on whole days: half an hour each.")] = 0,
    learned_days: Annotated[int, typer.Option(help="Days to learn from.")] = 7,
    judged_days: Annotated[int, typer.Option(help="Days to judge on, after those.")] = 7,
    workers: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
    output: Annotated[Path, typer.Option(help="Folder for results.json and table.md.")] = Path("build/bench-profile"),
) -> None:
    """Play everything and write results.json and table.md."""
    rows = _all(play_demand, [(seed, learned_days, judged_days) for seed in range(seeds)], workers)
    rows += _all(play_loop, [LoopCase(seed, learned_days, judged_days) for seed in range(loop_seeds)], workers)
    rows += _all(play_loop, [LoopCase(seed, learned_days, judged_days, WHOLE) for seed in range(whole_seeds)], workers)
    output.mkdir(parents=True, exist_ok=True)
    (output / "results.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    (output / "table.md").write_text(table(rows) + "\n", encoding="utf-8")
    print(table(rows))
    learned = {row["part"]: row for row in against_line(rows) if row["forecast"] == LEARNED}
    figures = {
        part: {name: row[name] for name in ("under_change_percent", "over_change_percent")}
        for part, row in learned.items()
    }
    print(json.dumps({"seeds": seeds, "loop_seeds": loop_seeds, "whole_seeds": whole_seeds, "against_line": figures}))


def _all(work: Callable[[Played], list[Row]], cases: Sequence[Played], workers: int) -> list[Row]:
    rows: list[Row] = []
    with ProcessPoolExecutor(max_workers=workers) as pool:
        for found in pool.map(work, cases):
            for row in found:
                print(" ".join(f"{value:,.1f}" if isinstance(value, float) else str(value) for value in row.values()))
            rows += found
    return rows


if __name__ == "__main__":
    typer.run(main)

"""How policies react to changing load, and whether `adaptive` keeps still under noise; the last line is JSON.

Everything is simulated (docs/explanation/simulator.md). Two parts: each policy on each load, and an hour of constant
load with noise on every workload of the papers.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer
from bars import Bar, Panel, bars_of
from reaction.cases import CONTESTANTS, LOADS, STORM, WORKLOADS, changing_load, noisy_constant, scenario, specs

from storm_operator.simulated_loop import simulate
from storm_operator.simulation_report import SimulationReport

POLICIES = ("adaptive", "adaptive, Line", "liu", "aniello-online", "t-storm", "even", STORM)
HOUR_SECONDS = 3600.0
NOISE_INTERVALS_SECONDS = (1.0, 10.0)
COUNTS = (
    "over_core_seconds",
    "under_core_seconds",
    "failed_tuples",
    "unsent_tuples",
    "plans",
    "restarts",
    "supervisors_used",
    "latency_p50_ms",
)
DRAWN = ("under_core_seconds", "over_core_seconds", "restarts")
MOST_PLANS_AFTER_FIRST = 1

Row = dict[str, Any]
Case = tuple[str, str, str, int, float]
"""Workload, policy, load, seed, seconds."""
HourCase = tuple[str, str, float, int, float]
"""Workload, policy, seconds that noise is held, seed, seconds."""


def play(case: Case) -> Row:
    """One policy on one load."""
    name, policy, load, seed, seconds = case
    workload = WORKLOADS[name]
    played = scenario(workload, changing_load(load, workload.base, seconds, seed), seconds, seed)
    report = simulate(played, specs(workload, policy))
    return {"workload": name, "policy": policy, "load": load, "seed": seed, **figures(report)}


def play_hour(case: HourCase) -> Row:
    """One policy under constant load with noise."""
    name, policy, held, seed, seconds = case
    workload = WORKLOADS[name]
    played = scenario(workload, noisy_constant(workload.base, seconds, seed, held), seconds, seed)
    report = simulate(played, specs(workload, policy))
    later = report.plans[1:]
    return {
        "workload": name,
        "policy": policy,
        "noise_held_seconds": held,
        "seed": seed,
        "plans_after_first": len(later),
        "later_restarts": sum(plan.restarted_workers for plan in later),
        "later_plans": [[plan.at_seconds, plan.reason] for plan in later],
        "failed_tuples": round(report.sums.unsuccessful, 1),
    }


def figures(report: SimulationReport) -> Row:
    """What counts, without the warm-up; plans include the first one."""
    sums = report.sums
    return {
        "over_core_seconds": round(sums.over_provided_core_seconds, 1),
        "under_core_seconds": round(sums.under_provided_core_seconds, 2),
        "failed_tuples": round(sums.unsuccessful, 1),
        "plans": len(report.plans),
        "restarts": sum(plan.restarted_workers for plan in report.plans),
        "supervisors_used": round(report.mean_of("supervisors_used"), 2),
        "latency_p50_ms": report.median_latency_ms(),
        "acked_share": sums.acked / sums.offered if sums.offered else None,
        "unsent_tuples": round(sums.unsent, 1),
        "inter_supervisor_tuples_per_second": round(report.mean_of("inter_supervisor_tuples_per_second"), 1),
        "cpu_used_core_seconds": round(sums.cpu_used_core_seconds, 1),
    }


def summary(rows: Sequence[Row], counts: Sequence[str] = COUNTS) -> list[Row]:
    """Median and range over seeds, for each workload, load and policy in the order of `rows`."""
    keys = list(dict.fromkeys((row["workload"], row["load"], row["policy"]) for row in rows))
    return [
        {"workload": workload, "load": load, "policy": policy}
        | {figure: _spread(row[figure] for row in rows if _is(row, workload, load, policy)) for figure in counts}
        for workload, load, policy in keys
    ]


def _is(row: Row, workload: str, load: str, policy: str) -> bool:
    return (row["workload"], row["load"], row["policy"]) == (workload, load, policy)


def _spread(values: Iterable[float | None]) -> list[float] | None:
    known = [value for value in values if value is not None]
    return [round(v, 2) for v in (statistics.median(known), min(known), max(known))] if known else None


def table(rows: Sequence[Row]) -> str:
    """In Markdown: median (lowest to highest) over seeds."""
    lines = ["| workload | load | policy | " + " | ".join(name.replace("_", " ") for name in COUNTS) + " |"]
    lines.append("|---|---|---|" + "---:|" * len(COUNTS))
    for row in summary(rows):
        cells = [cell(row[figure]) for figure in COUNTS]
        lines.append(f"| {row['workload']} | {row['load']} | `{row['policy']}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(spread: list[float] | None) -> str:
    """Median (lowest to highest)."""
    if spread is None:
        return "-"
    middle, low, high = (f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in spread)
    return middle if low == high else f"{middle} ({low} to {high})"


def picture(rows: Sequence[Row]) -> str:
    """What was over and under for each load, and at what price in restarts."""
    found = summary(rows)
    cases = dict.fromkeys((row["workload"], row["load"]) for row in found)
    return bars_of(
        [
            Panel(
                f"{workload}, {load}: {name.replace('_', ' ')}",
                tuple(_bar(row, name) for row in found if (row["workload"], row["load"]) == (workload, load)),
            )
            for workload, load in cases
            for name in DRAWN
        ]
    )


def _bar(row: Row, name: str) -> Bar:
    return Bar(row["policy"], *row[name]) if row[name] else Bar(row["policy"], None)


def hour_table(rows: Sequence[Row]) -> str:
    """In Markdown: plans after the first, by seed."""
    lines = ["| workload | policy | noise drawn every | plans after the first, by seed |", "|---|---|---:|---|"]
    plans: dict[tuple[str, str, float], list[str]] = {}
    for row in rows:
        case = row["workload"], row["policy"], row["noise_held_seconds"]
        plans.setdefault(case, []).append(str(row["plans_after_first"]))
    lines += [f"| {name} | `{policy}` | {held:g} s | {', '.join(n)} |" for (name, policy, held), n in plans.items()]
    return "\n".join(lines)


def main(
    workload: Annotated[list[str], typer.Option(help="Workloads for the changing loads.")] = ["wordcount"],  # noqa: B006
    policy: Annotated[list[str], typer.Option(help="Policies for the changing loads.")] = list(POLICIES),  # noqa: B006
    load: Annotated[list[str], typer.Option(help="Changing loads.")] = list(LOADS),  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Seeds of the changing loads.")] = 5,
    seconds: Annotated[float, typer.Option(help="Simulated seconds of a changing load.")] = 1200.0,
    hour_seeds: Annotated[int, typer.Option(help="Seeds of the hour with noise; 0 leaves it out.")] = 5,
    hour_seconds: Annotated[float, typer.Option(help="How long that hour is.")] = HOUR_SECONDS,
    hour_policy: Annotated[list[str], typer.Option(help="Policies for that hour.")] = ["adaptive"],  # noqa: B006
    output: Annotated[Path, typer.Option(help="Folder for results.json and tables.md.")] = Path("build/bench-reaction"),
    pictures: Annotated[Path, typer.Option(help="Folder for a picture.")] = Path("build/bench-reaction"),
) -> None:
    """Play everything and write results.json and tables.md."""
    check_names("--policy", policy, CONTESTANTS)
    check_names("--hour-policy", hour_policy, CONTESTANTS)
    cases = [(w, p, kind, seed, seconds) for w in workload for kind in load for p in policy for seed in range(seeds)]
    hours = [
        (w, p, held, seed, hour_seconds)
        for w in WORKLOADS
        for p in hour_policy
        for held in NOISE_INTERVALS_SECONDS
        for seed in range(hour_seeds)
    ]
    rows, hour_rows = play_all(play, cases, os.cpu_count()), play_all(play_hour, hours, os.cpu_count())
    tables = f"{table(rows)}\n\n{hour_table(hour_rows)}\n"
    for folder in (output, pictures):
        folder.mkdir(parents=True, exist_ok=True)
    (pictures / "reaction.svg").write_text(picture(rows), encoding="utf-8")
    (output / "results.json").write_text(json.dumps({"changing": rows, "hour": hour_rows}, indent=1), encoding="utf-8")
    (output / "tables.md").write_text(tables, encoding="utf-8")
    print(tables)
    most = max((row["plans_after_first"] for row in hour_rows), default=None)
    quiet = None if most is None else most <= MOST_PLANS_AFTER_FIRST
    steady = {"runs": len(hour_rows), "most_plans_after_first": most, "is_quiet": quiet}
    print(json.dumps({"runs": len(rows), "median_and_range": summary(rows), "constant_with_noise": steady}))


def check_names(option: str, names: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(f"{option} {unknown[0]!r}: there are {'; '.join(known)}")


def play_all(work: Callable[[Any], Row], cases: Sequence[Any], processes: int | None) -> list[Row]:
    rows = []
    with ProcessPoolExecutor(max_workers=processes) as pool:
        for row in pool.map(work, cases):
            told = {name: value for name, value in row.items() if name != "later_plans"}
            print(" ".join(str(value) for value in told.values()), flush=True)
            rows.append(row)
    return rows


if __name__ == "__main__":
    typer.run(main)

"""All policies by name on the same workloads: `python -m league`, simulated; the last line is JSON.

A moderate load with 5% noise, 1.8 times as much from half way on, on the cluster of bench-reaction. Ours has its
defaults, everybody else is as published, `storm` is managed by nobody. `optimal` does not play: it solves to the proven
optimum, or as far as minutes go, in every control period.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from reaction.bench_reaction import Row, cell, check_names, figures, play_all, summary
from reaction.cases import CONTESTANTS, WARM_UP_SECONDS, WORKLOADS, scenario, specs

from storm_operator.simulated_loop import simulate
from storm_operator.simulator.load import LoadShape, Noisy, Step

PLAYED = ("wordcount", "http-monitor", "reference-chain")
VARIANTS_AND_TOO_SLOW = ("adaptive, Line", "optimal")
POLICIES = tuple(name for name in CONTESTANTS if name not in VARIANTS_AND_TOO_SLOW)
MODERATE = 1.5
"""Times a workload's `base`: under Even a sixth of the cluster's CPU, and a good quarter after the step."""
STEP_FACTOR = 1.8
NOISE = 0.05
LOAD = "step to 1.8"
COLUMNS: Mapping[str, str] = {
    "latency_p50_ms": "p50 ms",
    "inter_supervisor_tuples_per_second": "between supervisors, tuples/s",
    "supervisors_used": "supervisors",
    "cpu_used_core_seconds": "CPU used, core-s",
    "under_core_seconds": "CPU missing",
    "over_core_seconds": "CPU over",
    "failed_tuples": "failed",
    "unsent_tuples": "unsent",
    "plans": "plans",
    "restarts": "worker restarts",
}

Case = tuple[str, str, int, float]
"""Workload, policy, seed, seconds."""


def load_of(base: float, seconds: float, seed: int) -> LoadShape:
    """The step is half way through the time that counts."""
    before, half_way = MODERATE * base, (WARM_UP_SECONDS + seconds) / 2.0
    return Noisy(Step(((0.0, before), (half_way, STEP_FACTOR * before))), NOISE, seed)


def play(case: Case) -> Row:
    """One policy on one workload."""
    name, policy, seed, seconds = case
    workload = WORKLOADS[name]
    began = time.process_time()
    played = scenario(workload, load_of(workload.base, seconds, seed), seconds, seed)
    report = simulate(played, specs(workload, policy))
    took = round(time.process_time() - began, 1)
    return {"workload": name, "policy": policy, "load": LOAD, "seed": seed, **figures(report), "cpu_seconds": took}


def tables(rows: Sequence[Row]) -> str:
    """In Markdown, one for each workload: median (lowest to highest) over seeds."""
    found = summary(rows, tuple(COLUMNS))
    names = dict.fromkeys(row["workload"] for row in rows)
    return "\n".join(_table(name, [row for row in found if row["workload"] == name]) for name in names)


def _table(workload: str, rows: Sequence[Row]) -> str:
    head = [f"| policy | {' | '.join(COLUMNS.values())} |", "|---|" + "---:|" * len(COLUMNS)]
    body = [f"| `{row['policy']}` | {' | '.join(cell(row[figure]) for figure in COLUMNS)} |" for row in rows]
    return "\n".join([f"**{workload}**", "", *head, *body, ""])


def main(
    workload: Annotated[list[str], typer.Option(help="Workloads.")] = list(PLAYED),  # noqa: B006
    policy: Annotated[list[str], typer.Option(help="Policies.")] = list(POLICIES),  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Seeds of noise and trees.")] = 1,
    seconds: Annotated[float, typer.Option(help="Simulated seconds of each run.")] = 600.0,
    processes: Annotated[int, typer.Option(help="Runs at the same time.")] = 2,
    output: Annotated[Path, typer.Option(help="Folder for results.json and tables.md.")] = Path("build/bench-league"),
) -> None:
    """Play everything and write results.json and tables.md."""
    check_names("--workload", workload, tuple(WORKLOADS))
    check_names("--policy", policy, CONTESTANTS)
    cases = [(w, p, seed, seconds) for w in workload for p in policy for seed in range(seeds)]
    rows = play_all(play, cases, processes)
    output.mkdir(parents=True, exist_ok=True)
    (output / "results.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    (output / "tables.md").write_text(tables(rows), encoding="utf-8")
    print(tables(rows))
    print(json.dumps({"runs": len(rows), "median_and_range": summary(rows, tuple(COLUMNS))}))


if __name__ == "__main__":
    typer.run(main)

"""How good plans are and how long they take: `python -m plan.bench_plan --executors 10000`.

Beside `adaptive`: KaHIP eco and METIS at the same balance, and Storm's own ResourceAwareScheduler, all on one instance.
`share` is the part of all tuples that goes between supervisors. Each of them runs in a process of its own and is given
up after `--limit-seconds`; what was not measured is null. Repeated figures are medians, `spread` has min and max. The
last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from plan.instance import PORTS, Instance, Scale, add_scale_options, make_instance, scale_from
from plan.storms_own import place_resource_aware
from plan.yardsticks import Ints, imbalance_of
from rich.console import Console
from rich.table import Table

from storm_operator.core.model import Assignment, WorkerSlot

BENCHMARKS = Path(__file__).resolve().parent.parent

console = Console(stderr=True, width=130)


def bench(scale: Scale, options: argparse.Namespace) -> dict[str, Any]:
    """All figures of one scale; null where something took longer than the limit or was not asked for."""
    instance = make_instance(scale)
    with tempfile.TemporaryDirectory() as folder:
        own = _own(scale, options, Path(folder) / "own.npy")
        report = {
            "executors": scale.executors,
            "supervisors": scale.supervisors,
            "pairs": len(instance.snapshot.traffic.flows()[0]),
            "topologies": len(instance.snapshot.topologies),
            **own["figures"],
            "even_share": share_of(instance, instance.snapshot.assignment),
        }
        places: Ints | None = own["places"]
        if places is None:
            parts, imbalance = scale.supervisors, 1.0 / scale.use - 1.0
        else:
            parts = len(np.unique(places))
            imbalance = imbalance_of(_weights(instance), places, parts)
            report["share"] = share_of(instance, _on_supervisors(instance, places))
        report |= {"parts": parts, "imbalance": imbalance}
        for name, prefix in (("kahip", "kahip_eco"), ("metis", "metis")):
            if name in options.against:
                report |= _partitioned(name, prefix, instance, scale, parts, imbalance, options.limit_seconds, folder)
        if "ras" in options.against:
            report |= _resource_aware(instance, options.limit_seconds, Path(folder))
    return report


def share_of(instance: Instance, assignment: Assignment) -> float:
    """Which part of all tuples goes between supervisors."""
    traffic = instance.snapshot.traffic
    return traffic.inter_supervisor(assignment) / traffic.total()


def _own(scale: Scale, options: argparse.Namespace, path: Path) -> dict[str, Any]:
    command = _python("plan.measure", scale, "--assignment", path, "--repeats", options.repeats)
    lines = _lines_within([*command, "--policy", options.policy], options.limit_seconds, options.policy)
    told: dict[str, list[Any]] = {}
    for line in lines:
        found = json.loads(line)
        told.setdefault(found["name"], []).append(found["value"])
    figures: dict[str, Any] = {"policy": options.policy, "share": None}
    for name in (
        "plan_seconds",
        "plan_cpu_seconds",
        "replan_rates_seconds",
        "replan_death_seconds",
        "replan_nothing_seconds",
    ):
        figures[name] = statistics.median(told[name]) if name in told else None
    spread = {name: [min(values), max(values)] for name, values in told.items() if name.endswith("_seconds")}
    for name in ("decide_seconds", "warm_up_seconds", "peak_mb", "instance_mb"):
        figures[name] = statistics.median(told[name]) if name in told else None
    for name in ("decision", "replan_rates_moves", "replan_death_moves", "replan_nothing_moves"):
        figures[name] = told[name][-1] if name in told else None
    replans = [figures[f"replan_{what}_seconds"] for what in ("rates", "death")]
    figures["replan_seconds"] = None if None in replans else max(replans)
    places = np.load(path) if path.exists() else None
    return {"figures": {**figures, "spread": spread}, "places": places}


def _partitioned(
    name: str,
    prefix: str,
    instance: Instance,
    scale: Scale,
    parts: int,
    imbalance: float,
    limit_seconds: float,
    folder: str,
) -> dict[str, Any]:
    path = Path(folder) / f"{name}.npy"
    command = _python("plan.yardsticks", scale, "--parts", parts, "--imbalance", imbalance, "--assignment", path)
    command.insert(3, name)
    lines = _lines_within(command, limit_seconds, prefix)
    if not lines or not path.exists():
        return {f"{prefix}_share": None, f"{prefix}_seconds": None}
    places = np.load(path)
    return {
        f"{prefix}_share": share_of(instance, _on_supervisors(instance, places)),
        **{f"{prefix}_{what}": seconds for what, seconds in json.loads(lines[-1]).items()},
        f"{prefix}_imbalance": imbalance_of(_weights(instance), places, parts),
        f"{prefix}_parts": len(np.unique(places)),
    }


def _resource_aware(instance: Instance, limit_seconds: float, folder: Path) -> dict[str, Any]:
    with console.status("ResourceAwareScheduler"):
        placed = place_resource_aware(instance, folder, limit_seconds)
    if placed is None:
        return {"ras_seconds": None, "ras_share": None}
    whole = len(placed.assignment.slot_of) == len(instance.snapshot.traffic.executors)
    return {
        "ras_seconds": placed.seconds,
        "ras_share": share_of(instance, placed.assignment) if whole else None,
        "ras_placed": len(placed.assignment.slot_of),
        "ras_supervisors": len(placed.assignment.used_supervisors()),
    }


def _on_supervisors(instance: Instance, places: Ints) -> Assignment:
    """Executors on the supervisors with those numbers; which port matters to no figure here."""
    slots = [WorkerSlot(machine.id, PORTS[0]) for machine in instance.snapshot.supervisors]
    executors = instance.snapshot.traffic.executors
    return Assignment({executor: slots[at] for executor, at in zip(executors, places.tolist(), strict=True)})


def _weights(instance: Instance) -> list[float]:
    return [instance.demand.millicores[executor] for executor in instance.snapshot.traffic.executors]


def _python(module: str, scale: Scale, *arguments: object) -> list[str]:
    chosen: list[object] = ["--executors", scale.executors, "--supervisors", scale.supervisors]
    chosen += ["--seed", scale.seed, "--use", scale.use, "--zones", scale.zones]
    chosen += ["--supervisor-price", scale.supervisor_price]
    chosen += ["--heterogeneous"] if scale.heterogeneous else []
    return [sys.executable, "-m", module, *(str(argument) for argument in (*chosen, *arguments))]


def _lines_within(command: Sequence[str], limit_seconds: float, what: str) -> list[str]:
    """What the process printed until it ended, or until its time was up."""
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS)}
    with (
        console.status(f"{what} (at most {limit_seconds:.0f} s)"),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process,
    ):
        alarm = threading.Timer(limit_seconds, process.kill)
        alarm.start()
        assert process.stdout
        lines = process.stdout.read().splitlines()
        alarm.cancel()
    if process.returncode:
        console.print(f"{what}: ended with {process.returncode} (killed after {limit_seconds:.0f} s?)")
    return lines


def table_of(reports: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="Plan quality and time")
    columns = {
        "executors": "executors",
        "plan_seconds": "plan s",
        "replan_seconds": "replan s",
        "decide_seconds": "decide s",
        "peak_mb": "peak MB",
        "share": "share",
        "kahip_eco_share": "KaHIP",
        "kahip_eco_seconds": "s",
        "metis_share": "METIS",
        "metis_seconds": "s",
        "ras_share": "RAS",
        "ras_seconds": "s",
        "even_share": "Even",
    }
    for title in columns.values():
        table.add_column(title, justify="right")
    for report in reports:
        table.add_row(*(_shown(report.get(name)) for name in columns))
    return table


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--policy", default="adaptive")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit-seconds", type=float, default=600.0)
    parser.add_argument("--against", nargs="*", default=["kahip", "metis", "ras"], choices=["kahip", "metis", "ras"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_scale_options(parser)
    add_options(parser)
    options = parser.parse_args()
    report = bench(scale_from(options), options)
    console.print(table_of([report]))
    print(json.dumps(report))


if __name__ == "__main__":
    main()

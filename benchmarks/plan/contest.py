"""One instance, everybody's plan for it: `adaptive`, KaHIP eco, METIS, Storm's ResourceAwareScheduler, Storm's Even.

Each runs in a process of its own and is given up after a time; what was not measured is None.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from plan.instance import PORTS, Instance, Scale, make_instance, scale_arguments
from plan.storms_own import GivenUp, place_resource_aware
from plan.yardsticks import Ints, imbalance_of
from rich.console import Console

from storm_operator.core.model import Assignment, WorkerSlot
from storm_operator.core.placement.objective import usable_millicores

BENCHMARKS = Path(__file__).resolve().parent.parent
PARTITIONERS = {"kahip": "kahip_eco", "metis": "metis"}
"""By the name that `yardsticks` knows: what its figures are called."""
ROUNDING = 1e-3
RIVALS = (*PARTITIONERS, "ras")

HEADLINES = (
    "plan_seconds",
    "replan_seconds",
    "decide_seconds",
    "peak_mb",
    "share",
    *(f"{called}_{figure}" for called in (*PARTITIONERS.values(), "ras") for figure in ("share", "seconds")),
)
"""Figures that a report always has."""

Report = dict[str, Any]

console = Console(stderr=True, width=170)


@dataclass(frozen=True, slots=True)
class Contest:
    """Who plans, against whom, how often and for how long at most."""

    policy: str = "adaptive"
    rivals: tuple[str, ...] = RIVALS
    repeats: int = 3
    limit_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class Balance:
    """What a partitioner is asked for; `imbalance` is the heaviest part over the mean, less one."""

    parts: int
    imbalance: float


def hold(scale: Scale, contest: Contest) -> Report:
    """All figures of one scale; docs/benchmarks/plan-quality.md says what each is."""
    instance = make_instance(scale)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report, places = _own_figures(instance, scale, contest, folder)
        balances = {"all_": _widest_balance(instance)}
        if places is not None:
            balances[""] = Balance(len(np.unique(places)), imbalance_of(_millicores(instance), places))
        for rival in PARTITIONERS:
            if rival in contest.rivals and not scale.heterogeneous:  # they make equal parts
                for which, balance in balances.items():
                    report |= _partitioner_figures(rival, which, balance, scale, contest, instance, folder)
        if "ras" in contest.rivals:
            report |= _resource_aware_figures(instance, contest, folder)
    return report


def share_of(instance: Instance, assignment: Assignment) -> float:
    """Which part of all tuples goes between supervisors."""
    traffic = instance.snapshot.traffic
    return traffic.inter_supervisor(assignment) / traffic.total()


def overfills(report: Report, name: str) -> bool:
    """Whether the share called `name` belongs to a partition that fills a supervisor beyond what may be filled."""
    fullest = report.get(name.removesuffix("share") + "fullest")
    return name.endswith("share") and fullest is not None and fullest > 1.0 + ROUNDING


def _own_figures(instance: Instance, scale: Scale, contest: Contest, folder: Path) -> tuple[Report, Ints | None]:
    report: Report = {
        "policy": contest.policy,
        "separation": scale.separation.value,
        "executors": scale.executors,
        "supervisors": scale.supervisors,
        "topologies": len(instance.snapshot.topologies),
        "pairs": len(instance.snapshot.traffic.flows()[0]),
        **_quality(instance, _places(instance, instance.snapshot.assignment), "even_"),
        "limit_seconds": contest.limit_seconds,
        **dict.fromkeys(HEADLINES),
    }
    path = folder / "own.npy"
    command = [*_python("plan.measure"), *scale_arguments(scale), "--assignment", str(path)]
    command += ["--repeats", str(contest.repeats), "--policy", contest.policy]
    told: dict[str, list[Any]] = {}
    for line in lines_within(command, contest.limit_seconds, contest.policy):
        figure = json.loads(line)
        told.setdefault(figure["name"], []).append(figure["value"])
    report |= {name: statistics.median(v) if name.endswith("_seconds") else v[-1] for name, v in told.items()}
    changes = [f"replan_{change}_seconds" for change in ("rates", "death")]
    report["replan_seconds"] = max(report[c] for c in changes) if report.keys() >= set(changes) else None
    report["spread"] = {name: [min(values), max(values)] for name, values in told.items() if len(values) > 1}
    if not path.exists():
        return report, None
    places: Ints = np.load(path)
    return report | _quality(instance, places, ""), places


def _widest_balance(instance: Instance) -> Balance:
    """A part for each supervisor, none heavier than what may be filled: whoever keeps this keeps the CPU rule."""
    usable = min(usable_millicores(instance.snapshot, instance.settings).values())
    supervisors = len(instance.snapshot.supervisors)
    return Balance(supervisors, usable / (sum(_millicores(instance)) / supervisors) - 1.0)


def _partitioner_figures(
    rival: str, which: str, balance: Balance, scale: Scale, contest: Contest, instance: Instance, folder: Path
) -> Report:
    called = f"{PARTITIONERS[rival]}_{which}"
    path = folder / f"{called}.npy"
    command = [*_python("plan.yardsticks"), rival, *scale_arguments(scale), "--assignment", str(path)]
    command += ["--parts", str(balance.parts), "--imbalance", str(balance.imbalance)]
    lines = lines_within(command, contest.limit_seconds, f"{called}{balance.parts}")
    if not lines or not path.exists():
        return {f"{called}share": None, f"{called}seconds": None}
    seconds = {f"{called}{what}": value for what, value in json.loads(lines[-1]).items()}
    return _quality(instance, np.load(path), called) | seconds


def _resource_aware_figures(instance: Instance, contest: Contest, folder: Path) -> Report:
    with console.status(f"ResourceAwareScheduler (at most {contest.limit_seconds:.0f} s)"):
        placed = place_resource_aware(instance, folder, contest.limit_seconds)
    if isinstance(placed, GivenUp):
        console.print(f"ResourceAwareScheduler: given up, {placed.reason}", markup=False)
        return {"ras_seconds": None, "ras_share": None}
    if placed.not_placed:
        return {"ras_seconds": placed.seconds, "ras_share": None, "ras_not_placed": placed.not_placed}
    return _quality(instance, _places(instance, placed.assignment), "ras_") | {"ras_seconds": placed.seconds}


def _quality(instance: Instance, places: Ints, prefix: str) -> Report:
    """How well executors live where `places` says, and what that asks of the supervisors.

    `fullest` is the heaviest load over what placement may fill there: above 1 the CPU rule is broken.
    """
    machines = instance.snapshot.supervisors
    usable = usable_millicores(instance.snapshot, instance.settings)
    load = np.bincount(places, weights=_millicores(instance), minlength=len(machines))
    number = {topology.id: at for at, topology in enumerate(instance.snapshot.topologies)}
    topologies = np.array([number[executor.topology_id] for executor in instance.snapshot.traffic.executors])
    together = np.unique(places * len(number) + topologies) // len(number)
    return {
        f"{prefix}share": share_of(instance, _on_supervisors(instance, places)),
        f"{prefix}supervisors_used": len(np.unique(places)),
        f"{prefix}fullest": float((load / [usable[machine.id] for machine in machines]).max()),
        f"{prefix}most_topologies": int(np.bincount(together).max()),
        f"{prefix}imbalance": imbalance_of(_millicores(instance), places),
    }


def _places(instance: Instance, assignment: Assignment) -> Ints:
    """The number of each executor's supervisor."""
    number = {machine.id: at for at, machine in enumerate(instance.snapshot.supervisors)}
    slots = [assignment.slot_of[executor] for executor in instance.snapshot.traffic.executors]
    return np.array([number[slot.supervisor_id] for slot in slots], dtype=np.int64)


def _on_supervisors(instance: Instance, places: Ints) -> Assignment:
    """Executors on the supervisors with those numbers; which port matters to no figure here."""
    slots = [WorkerSlot(machine.id, PORTS[0]) for machine in instance.snapshot.supervisors]
    executors = instance.snapshot.traffic.executors
    return Assignment({executor: slots[at] for executor, at in zip(executors, places.tolist(), strict=True)})


def _millicores(instance: Instance) -> list[float]:
    return [instance.demand.millicores[executor] for executor in instance.snapshot.traffic.executors]


def _python(module: str) -> list[str]:
    return [sys.executable, "-m", module]


def lines_within(command: Sequence[str], limit_seconds: float, what: str) -> list[str]:
    """What the process printed until it ended, or until its time was up."""
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS)}
    out_of_time = threading.Event()
    with (
        console.status(f"{what} (at most {limit_seconds:.0f} s)"),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process,
    ):

        def give_up() -> None:
            out_of_time.set()
            process.kill()

        alarm = threading.Timer(limit_seconds, give_up)
        alarm.start()
        assert process.stdout
        lines = process.stdout.read().splitlines()
        alarm.cancel()
    if out_of_time.is_set():
        console.print(f"{what}: given up, it took longer than {limit_seconds:.0f} s")
    elif process.returncode < 0:
        console.print(f"{what}: ended by signal {-process.returncode}, as where memory runs out")
    elif process.returncode:
        console.print(f"{what}: failed with exit status {process.returncode}")
    return lines

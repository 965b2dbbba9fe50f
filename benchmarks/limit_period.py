"""How long a thread waits behind its CPU limit, by the period of the limit: one real thread in a real cgroup.

The thread executes tuples of equal cost that come by chance (Poisson) at a share of what its limit allows. Its limit is
set as the agent sets it, but for the period; kernels since 5.14 let it use what one period has left in the next.
Limits take turns, `repeats` times. A wait is what lies between a tuple's coming and its end beyond its cost; figures
are means over a turn, then median and range over turns. *Simulated* is the simulator's formula at the agent's period.
Needs root and cgroups of version 1; the last line is JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from storm_operator.agent.cgroups import PERIOD_US, Bandwidth, ExecutorCgroups, executor_cgroups
from storm_operator.agent.machine import MOUNTS
from storm_operator.agent.machine_cgroup import describe_cgroup, parse_mounts
from storm_operator.local.cgroups import usable_hierarchy
from storm_operator.simulator.cpu import held_back, mean_wait_seconds
from storm_operator.simulator.model import LIMIT_PERIOD_SECONDS

GROUP = "limited"
WITHOUT = 0
PERIODS_US = (WITHOUT, 20_000, 50_000, 100_000, 200_000)
LIMIT_MILLICORES = 200.0


@dataclass(frozen=True, slots=True)
class Work:
    """Tuples that take `tuple_ms` of CPU each, at `load` of what the limit allows."""

    tuple_ms: float
    load: float

    @property
    def per_second(self) -> float:
        return self.load * LIMIT_MILLICORES / self.tuple_ms

    def __str__(self) -> str:
        return f"{self.tuple_ms:g} ms, {100.0 * self.load:.0f}%"


WORKS = tuple(Work(tuple_ms, load) for tuple_ms in (1.0, 5.0) for load in (0.25, 0.5, 0.7, 0.85))


@contextmanager
def limited_group() -> Iterator[ExecutorCgroups]:
    """A cgroup of this process' own for one thread; removed at the end."""
    hierarchy = usable_hierarchy()
    if hierarchy is None or hierarchy.version != 1:
        raise typer.BadParameter("needs the cpu hierarchy of cgroups, version 1, and the right to change it")
    parent = hierarchy.control / f"storm-operator-limit-period-{os.getpid()}"
    parent.mkdir()
    cgroups = executor_cgroups(describe_cgroup(parent, parse_mounts(MOUNTS.read_text())))
    try:
        cgroups.create(GROUP)
        yield cgroups
    finally:
        cgroups.remove(GROUP)
        parent.rmdir()


def mean_wait_ms(cgroups: ExecutorCgroups, work: Work, period_us: int, seconds: float, seed: int) -> float:
    """One turn."""
    if period_us == WITHOUT:
        period_us, millicores = PERIOD_US, 1000.0 * (os.cpu_count() or 1)
    else:
        millicores = LIMIT_MILLICORES
    cgroups.limit(GROUP, Bandwidth(round(period_us * millicores / 1000.0), period_us))
    with ThreadPoolExecutor(max_workers=1) as thread:  # another each time: none is in the group between turns
        return thread.submit(_execute, cgroups, work, seconds, seed).result()


def _execute(cgroups: ExecutorCgroups, work: Work, seconds: float, seed: int) -> float:
    cgroups.add_thread(GROUP, threading.get_native_id())
    random, cost = np.random.default_rng(seed), work.tuple_ms / 1000.0
    gaps = random.exponential(1.0 / work.per_second, round(seconds * work.per_second))
    waits, began = [], time.perf_counter()
    for due in np.cumsum(gaps).tolist():
        now = time.perf_counter() - began
        if now < due:
            time.sleep(due - now)
        used = time.thread_time()
        while time.thread_time() - used < cost:
            pass
        waits.append(time.perf_counter() - began - due - cost)
    return 1000.0 * statistics.fmean(waits)


def simulated_ms(work: Work) -> float:
    """What the simulator takes the wait to be, behind a limit of the agent's period."""
    share = LIMIT_MILLICORES / 1000.0
    one = np.ones(1)
    free, behind = (
        mean_wait_seconds(work.per_second * one, at * 1000.0 / work.tuple_ms * one, 0.0 * one) for at in (1.0, share)
    )
    quota = share * LIMIT_PERIOD_SECONDS * 1000.0 / work.tuple_ms
    held = held_back(work.load * one, quota * one, 0.0 * one, 0.0 * one)
    return float(1000.0 * (free + held * (behind - free))[0])


def main(
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each limit with each work.")] = 5,
    seconds: Annotated[float, typer.Option(min=1.0, help="How long a turn is.")] = 6.0,
) -> None:
    """Measure all periods on all works."""
    console = Console(stderr=True)
    waits: dict[Work, dict[int, list[float]]] = {work: {period: [] for period in PERIODS_US} for work in WORKS}
    turns = [(work, period, n) for n in range(repeats) for work in WORKS for period in PERIODS_US]
    with limited_group() as cgroups:
        # Drawn between turns alone: a thread that draws would compete with the one that is measured.
        for work, period, n in track(turns, "waiting behind limits", console=console, auto_refresh=False):
            waits[work][period].append(mean_wait_ms(cgroups, work, period, seconds, n))
    table = Table("tuple, of the limit", *(_title(period) for period in PERIODS_US), "simulated")
    for work, by_period in waits.items():
        table.add_row(str(work), *(_cell(values) for values in by_period.values()), f"{simulated_ms(work):.2f}")
    console.print(table)
    medians = {
        str(work): {_title(period): statistics.median(values) for period, values in by_period.items()}
        for work, by_period in waits.items()
    }
    print(json.dumps({"wait_ms": medians}))


def _title(period_us: int) -> str:
    return "no limit" if period_us == WITHOUT else f"{period_us / 1000:.0f} ms"


def _cell(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


if __name__ == "__main__":
    typer.run(main)

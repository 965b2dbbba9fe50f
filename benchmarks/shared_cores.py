"""How much longer a thread takes because others use the same cores: real threads, beside the simulator's formula.

One thread executes tuples that come by chance (Poisson) at a tenth of a core; others use the same cores, either with
tuples of their own or always. Each thread is a process pinned to the first one or two cores. A stretch is the time from
a tuple's coming (or its predecessor's end) to its own end over its cost, less what it is without others; figures are
means over a turn, then median and range over turns, which take turns. The last line is JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from storm_operator.simulator.cpu import stretch_by_others

OWN_LOAD = 0.1
ALWAYS = 1.0
LOADS = (0.5, 0.8, 0.95, ALWAYS)
OTHERS = {1: (1, 2, 4), 2: (2, 4, 8)}
LONGEST_START_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Crowd:
    """`others` threads that use `load` of `cores` together."""

    cores: int
    others: int
    load: float

    @property
    def load_of_one(self) -> float:
        return min(self.load * self.cores / max(self.others, 1), ALWAYS)

    @property
    def simulated(self) -> float:
        one = np.array([self.load_of_one / self.cores])
        return float(stretch_by_others(np.array([self.load]), np.array([float(self.cores)]), one)[0])


CROWDS = tuple(Crowd(cores, others, load) for cores, counts in OTHERS.items() for others in counts for load in LOADS)


@dataclass(frozen=True, slots=True)
class Tuples:
    """Tuples of `cost_seconds` that use `load` of a core, for `seconds`."""

    cost_seconds: float
    load: float
    seconds: float
    seed: int

    def execute(self, cores: int) -> list[float]:
        """Execute them on the first `cores`; how long each took from when it could begin, in seconds."""
        os.sched_setaffinity(0, range(cores))
        rate = self.load / self.cost_seconds
        gaps = np.random.default_rng(self.seed).exponential(1.0 / rate, max(1, round(self.seconds * rate)))
        took, began = [], time.perf_counter()
        for due in np.cumsum(gaps).tolist():
            now = time.perf_counter() - began
            if now > self.seconds:
                break
            if now < due:
                time.sleep(due - now)
            used = time.thread_time()
            while time.thread_time() - used < self.cost_seconds:
                pass
            took.append(time.perf_counter() - began - max(due, now))
        return took


def _use(cores: int, tuples: Tuples, all_there: Barrier) -> None:
    """One of the others."""
    all_there.wait(LONGEST_START_SECONDS)
    if tuples.load < ALWAYS:
        tuples.execute(cores)
        return
    os.sched_setaffinity(0, range(cores))
    end = time.perf_counter() + tuples.seconds
    while time.perf_counter() < end:
        pass


@contextmanager
def crowded(crowd: Crowd, cost_seconds: float, seconds: float, seed: int) -> Iterator[None]:
    """The others are there inside the block; they end by themselves, too."""
    load = crowd.load_of_one
    works = [Tuples(cost_seconds, load, seconds, 1000 * seed + n) for n in range(crowd.others)]
    all_there = multiprocessing.Barrier(crowd.others + 1)
    processes = [
        multiprocessing.Process(target=_use, args=(crowd.cores, work, all_there), daemon=True) for work in works
    ]
    try:
        for process in processes:
            process.start()
        all_there.wait(LONGEST_START_SECONDS)
        yield
    finally:
        for process in processes:
            if process.pid is not None:
                process.kill()
                process.join()


def mean_stretch(pool: ProcessPoolExecutor, crowd: Crowd, cost_seconds: float, seconds: float, seed: int) -> float:
    """One turn."""
    tuples = Tuples(cost_seconds, OWN_LOAD, seconds, seed)
    with crowded(crowd, cost_seconds, 2.0 * seconds, seed):
        took = pool.submit(tuples.execute, crowd.cores).result()
    return statistics.fmean(took) / cost_seconds


def main(
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each crowd.")] = 5,
    seconds: Annotated[float, typer.Option(min=1.0, help="How long a turn is.")] = 3.0,
    cost_ms: Annotated[float, typer.Option(min=0.1, help="CPU of a tuple.")] = 1.0,
) -> None:
    """Measure all crowds."""
    crowds = [crowd for crowd in CROWDS if crowd.cores <= (os.cpu_count() or 1)]
    alone = {cores: Crowd(cores, 0, 0.0) for cores in sorted({crowd.cores for crowd in crowds})}
    stretches: dict[Crowd, list[float]] = {crowd: [] for crowd in (*alone.values(), *crowds)}
    turns = [(crowd, n) for n in range(repeats) for crowd in stretches]
    with ProcessPoolExecutor(max_workers=1) as pool:
        # Drawn between turns alone: a thread that draws would compete with the one that is measured.
        for crowd, n in track(turns, "sharing cores", console=Console(stderr=True), auto_refresh=False):
            stretches[crowd].append(mean_stretch(pool, crowd, cost_ms / 1000.0, seconds, n))
    overhead = {cores: statistics.median(stretches[crowd]) - 1.0 for cores, crowd in alone.items()}
    measured = {crowd: [value - overhead[crowd.cores] for value in stretches[crowd]] for crowd in crowds}
    Console(stderr=True).print(table_of(measured))
    alone_ms = {str(cores): round(cost_ms * beyond, 3) for cores, beyond in overhead.items()}
    print(json.dumps(summary_of(measured) | {"taken_off_ms": alone_ms}))


def table_of(measured: dict[Crowd, list[float]]) -> Table:
    table = Table("cores", "others", "they use", "measured", "simulated", title="times as long as alone")
    for crowd, values in measured.items():
        use = "always" if crowd.load == ALWAYS else f"{100.0 * crowd.load:.0f}%"
        table.add_row(str(crowd.cores), str(crowd.others), use, _cell(values), f"{crowd.simulated:.2f}")
    return table


def summary_of(measured: dict[Crowd, list[float]]) -> dict[str, object]:
    medians = {crowd: statistics.median(values) for crowd, values in measured.items()}
    errors = [abs(crowd.simulated / median - 1.0) for crowd, median in medians.items()]
    rows = [
        {
            "cores": c.cores,
            "others": c.others,
            "load": c.load,
            "measured": round(m, 2),
            "simulated": round(c.simulated, 2),
        }
        for c, m in medians.items()
    ]
    return {"median_error": round(statistics.median(errors), 3), "worst_error": round(max(errors), 3), "stretch": rows}


def _cell(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


if __name__ == "__main__":
    typer.run(main)

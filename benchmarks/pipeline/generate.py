"""A long recorded history, fast: the simulator says who sends how much to whom, numpy repeats it over time.

The simulated cluster runs some periods under the real loop's meter. Each further period is one of them, its rates times
a wave over the day and noise of each pair's own, so that no two periods are alike (and compress like real ones).
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storm_operator.core.history_rows import Pass, columns_of
from storm_operator.core.history_tables import EDGES, EXECUTORS, PAIRS, PERIODS, SUPERVISORS, TOPOLOGIES, Table
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.history.arrow import MICROSECONDS, TIME, PeriodStamp, arrow_table
from storm_operator.history.store import write_parquet
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulator.model import ClusterModel, SimulatedSupervisor
from storm_operator.simulator.workloads import word_count

START_SECONDS = 1_767_225_600.0  # the first second of 2026, UTC
PERIOD_SECONDS = 10.0
PERIODS_IN_FILE = 60
DAY_SECONDS = 86_400.0
TOPOLOGY_COUNT, WORKERS, SPLITTERS, COUNTERS = 40, 8, 16, 16
"""Of a spout in each worker the splitters there get the sentences; of those all counters get words."""
SUPERVISOR_COUNT = 60
SIMULATED_PERIODS = 6
NOISE = 0.05
WAVE = 0.5
TABLES_MADE = (PERIODS, SUPERVISORS, TOPOLOGIES, EDGES, EXECUTORS, PAIRS)
Template = dict[Table, Any]
SCALED = {
    PAIRS: ("tuples_per_second",),
    EXECUTORS: ("cpu_millicores", "executed_per_second", "emitted_per_second", "arrived_per_second"),
}


@dataclass(frozen=True, slots=True)
class Generated:
    """What lies below `root`."""

    root: Path
    pair_rows: int
    executor_rows: int
    bytes: int
    periods: int


def snapshots() -> list[ClusterSnapshot]:
    """Some periods of the simulated cluster, after it has warmed up."""
    supervisors = tuple(
        SimulatedSupervisor(f"supervisor-{n:03d}", f"host-{n:03d}", tuple(range(6700, 6708)), 16_000.0)
        for n in range(SUPERVISOR_COUNT)
    )
    topologies = tuple(
        word_count(
            200.0 + 20.0 * n,
            {"sentences": WORKERS, "split": SPLITTERS, "count": COUNTERS},
            topology_id=f"wordcount-{n}-1767225600",
            name=f"wordcount-{n}",
            num_workers=WORKERS,
        )
        for n in range(TOPOLOGY_COUNT)
    )
    scenario = Scenario("many", ClusterModel(supervisors, topologies), 100.0, step_seconds=1.0, drawn_trees=2)
    stage = SimulatedStage(scenario)
    seen = [stage.run_period(None) for _ in range(SIMULATED_PERIODS + 2)]
    return [snapshot for snapshot in seen[2:] if snapshot is not None]


def generate(root: Path, pair_rows: int, seed: int = 1, cluster: str = "bench") -> Generated:
    """At least `pair_rows` rows of pairs, in whole periods, with all tables that go with them."""
    templates = [template_of(snapshot) for snapshot in snapshots()]
    random = np.random.default_rng(seed)
    pairs = executors = periods = 0
    with ThreadPoolExecutor() as pool:
        while pairs < pair_rows:
            day = date_of(periods)
            batch: list[tuple[int, Template]] = []
            while pairs < pair_rows and len(batch) < PERIODS_IN_FILE and date_of(periods) == day:
                template = templates[periods % len(templates)]
                batch.append((periods, template))
                pairs += template[PAIRS].num_rows
                executors += template[EXECUTORS].num_rows
                periods += 1
            seeds = random.integers(2**31, size=len(TABLES_MADE))
            folders = [root / table.name / f"cluster={cluster}" / f"date={day}" for table in TABLES_MADE]
            work = zip(folders, TABLES_MADE, [batch] * len(folders), seeds.tolist(), strict=True)
            list(pool.map(lambda one: write_file(*one), work))
    size = sum(path.stat().st_size for path in root.rglob("*.parquet"))
    return Generated(root, pairs, executors, size, periods)


def template_of(snapshot: ClusterSnapshot) -> Template:
    """All tables of one period as Arrow has them."""
    stamp = PeriodStamp("bench-1", START_SECONDS, PERIOD_SECONDS)
    columns = columns_of(Pass(START_SECONDS, 0, snapshot=snapshot), "simulator")
    return {table: arrow_table(table, stamp, columns[table]) for table in TABLES_MADE}


def end_of(number: int) -> float:
    return START_SECONDS + PERIOD_SECONDS * (number + 1)


def date_of(number: int) -> str:
    """The UTC date that period `number` ends on."""
    return f"{datetime.fromtimestamp(end_of(number), UTC):%Y-%m-%d}"


def write_file(folder: Path, table: Table, batch: list[tuple[int, Template]], seed: int) -> None:
    """One file of some periods, its rates as in `scaled`."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    rows = pa.concat_tables([as_of(table, template[table], number, random) for number, template in batch])
    write_parquet(rows, table, folder / f"{batch[0][0]:09d}.parquet")


def as_of(table: Table, rows: Any, number: int, random: np.random.Generator) -> Any:
    """The template's rows as they are in period `number`: their time, and what changes with the load."""
    moment = pa.scalar(round(end_of(number) * MICROSECONDS), TIME)
    changed = {"period_end": pa.repeat(moment, rows.num_rows)}
    if table is PERIODS:
        changed["sequence"] = pa.array([number])
    wave = 1.0 + WAVE * math.sin(2.0 * math.pi * number * PERIOD_SECONDS / DAY_SECONDS)
    for name in SCALED.get(table, ()):
        values = rows[name].to_numpy()
        noisy = np.round(values * wave * random.lognormal(0.0, NOISE, len(values)), 4)
        changed[name] = pa.array(noisy, from_pandas=True)
    for name, values in changed.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, values)
    return rows


def rows_of(root: Path, table: Table) -> int:
    """Rows in all files of `table`, from their footers."""
    return sum(pq.read_metadata(path).num_rows for path in (root / table.name).rglob("*.parquet"))

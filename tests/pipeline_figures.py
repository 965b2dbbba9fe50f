"""What real runs of the pipeline's jobs told Prometheus, kept in `figures_of_jobs`: tests have no time for them.

Run as a program it plays, records and runs them anew: ten minutes of WordCount on a simulated cluster, with rows that
came twice and rows that break a rule, through ingest, traffic, profile, forecast and evaluate. That takes Spark minutes
of CPU.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).parent / "figures_of_jobs"
AGE_SECONDS = 600.0
"""As old as the newest run is made to look."""
TIME = "_timestamp_seconds"
LAST_RUN = "storm_pipeline_job_last_run_timestamp_seconds"
NEWEST_ROW = "storm_pipeline_table_newest_row_timestamp_seconds"
TWICE, WRONG = 40, 12


def pipeline_figures(now_seconds: float) -> list[str]:
    """The lines of all jobs' files, metric by metric, with their times moved so that the jobs ran lately, and the
    history that they read ended when the first of them did."""
    lines = [line for file in sorted(FOLDER.glob("*.prom")) for line in file.read_text().splitlines()]
    ran = [_value(line) for line in lines if line.startswith(LAST_RUN)]
    later = now_seconds - AGE_SECONDS - max(ran)
    rows_later = min(ran) + later - max(_value(line) for line in lines if line.startswith(NEWEST_ROW))
    by_metric: dict[str, list[str]] = {}
    for line in lines:
        name = line.split()[2] if line.startswith("#") else line.split("{")[0]
        known = by_metric.setdefault(name, [])
        if name.endswith(TIME) and not line.startswith("#"):
            known.append(f"{line.rsplit(maxsplit=1)[0]} {_value(line) + (rows_later if name == NEWEST_ROW else later)}")
        elif line not in known:
            known.append(line)
    return [line for known in by_metric.values() for line in known]


def _value(line: str) -> float:
    return float(line.rsplit(maxsplit=1)[1])


def spoil(bronze: Path) -> None:
    """Rows of one recorded table once more, and some with figures that cannot be."""
    (file,) = bronze.glob("pairs/*/*/*.parquet")
    rows = pq.read_table(file).to_pylist()
    wrong = [{**row, "tuples_per_second": -1.0} for row in rows[TWICE : TWICE + WRONG]]
    table = pa.Table.from_pylist([*rows[:TWICE], *wrong], schema=pq.read_schema(file))
    pq.write_table(table, file.with_name(f"again-{file.name}"))


def main() -> None:
    from history_scene import record
    from storm_pipeline.jobs.evaluate import evaluate
    from storm_pipeline.jobs.forecast import forecast
    from storm_pipeline.jobs.ingest import ingest
    from storm_pipeline.jobs.profile import profile
    from storm_pipeline.jobs.traffic import traffic
    from storm_pipeline.metrics import FOLDER_VARIABLE

    with tempfile.TemporaryDirectory() as scratch:
        lake, told = Path(scratch) / "lake", Path(scratch) / "told"
        os.environ[FOLDER_VARIABLE] = str(told)
        record(lake / "bronze", 60)
        spoil(lake / "bronze")
        spark: dict[str, Any] = {"master": "local[2]", "heap": "1g", "off_heap": "256m"}
        ingest(str(lake), **spark)
        traffic(str(lake), **spark)
        profile(str(lake), **spark)
        forecast(str(lake), cycle=120.0, bins=10.0, phi=3, yardsticks=False, **spark)
        evaluate(str(lake), around=120.0, **spark)
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.copytree(told, FOLDER)


if __name__ == "__main__":
    main()

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
TWICE, WRONG = 40, 12


def pipeline_figures(now_seconds: float) -> list[str]:
    """The lines of all jobs' files, with their times moved so that they ran lately. As node exporter serves them: what
    several files say of one metric is said once."""
    lines = [line for file in sorted(FOLDER.glob("*.prom")) for line in file.read_text().splitlines()]
    ran_at = max(float(line.split()[-1]) for line in lines if line.startswith(LAST_RUN))
    later = now_seconds - AGE_SECONDS - ran_at
    seen: set[str] = set()
    found = []
    for line in lines:
        if line.startswith("#"):
            if line not in seen:
                found.append(line)
            seen.add(line)
        else:
            found.append(_moved(line, later))
    return found


def _moved(line: str, seconds: float) -> str:
    series, value = line.rsplit(maxsplit=1)
    return f"{series} {float(value) + seconds}" if series.split("{")[0].endswith(TIME) else line


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

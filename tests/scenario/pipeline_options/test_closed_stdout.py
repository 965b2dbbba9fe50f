"""A job whose output nobody reads any more goes on: what it makes are tables."""

from __future__ import annotations

import subprocess
import sys

JOB = """
import sys
from storm_pipeline.job_console import job_console
console = job_console()
with console.status("it works"):
    for number in range(20_000):
        console.print(f"{number} rows kept")
print("all is done", file=sys.stderr)
"""


def test_a_job_whose_reader_has_gone_does_its_work() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", JOB], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        assert (job.stdout.readline(), job.stdout.readline()) == ("it works ...\n", "0 rows kept\n")
        job.stdout.close()
        assert (job.stderr.read(), job.wait()) == ("all is done\n", 0)

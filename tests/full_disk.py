"""Programs whose output nobody can write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_on_full_disk(*module_and_arguments: str, unbuffered: str = "") -> subprocess.CompletedProcess[str]:
    """`python -m` with standard output on a device that is full; what it says on the other one is text."""
    with Path("/dev/full").open("w") as full:
        return subprocess.run(
            [sys.executable, "-m", *module_and_arguments],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

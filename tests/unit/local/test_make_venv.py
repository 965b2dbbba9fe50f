"""`make venv` on a machine whose user has set numba's cache, as the Makefile has it: nothing is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SEARCH = Path("operator/storm_operator/core/placement/search")


@pytest.mark.parametrize("compiled", [("machine-code.sources", "words.nbi", "words.1.nbc"), ("machine-code.sources",)])
def test_machine_code_is_kept_for_other_trees_where_it_was_made_beside_the_sources(
    compiled: tuple[str, ...], tmp_path: Path
) -> None:
    """With NUMBA_CACHE_DIR set it is not, and that is no failure."""
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    files = " ".join(str(SEARCH / "__pycache__" / name) for name in compiled)
    python.write_text(f"#!/bin/sh\ntouch {files}\n")
    python.chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.lock", "pyproject.toml", ".venv/installed"):
        (tmp_path / name).touch()
    environment = dict(os.environ) | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "MAKEFLAGS": ""}
    done = subprocess.run(
        ["make", "-C", str(tmp_path), "venv"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    kept = [path.name for path in (tmp_path / "cache" / "storm-operator").iterdir()]
    assert kept == (["machine-code.tar"] if len(compiled) > 1 else [])

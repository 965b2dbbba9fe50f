"""Steps of the set-up as the Makefile has them, by programs that stand for what would install something."""

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


@pytest.mark.parametrize(
    ("status", "is_installed"),
    [("install ok installed", False), ("deinstall ok config-files", True), ("install ok half-configured", True)],
)
def test_a_package_of_which_only_the_configuration_is_left_is_installed_anew(
    status: str, is_installed: bool, tmp_path: Path
) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/apt-packages.txt").write_text("# Why\nprometheus\nrunc\n")
    shutil.copy(ROOT / "Makefile", tmp_path)
    said = f"install ok installed\\n{status}\\n"
    for name, does in {"dpkg-query": f"printf '{said}'", "apt-get": 'echo "apt-get $1"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    environment = dict(os.environ) | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "MAKEFLAGS": ""}
    done = subprocess.run(
        ["make", "-C", str(tmp_path), "packages"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert ("apt-get update" in done.stdout and "apt-get install" in done.stdout) == is_installed

"""What is compiled is kept until a source of it changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storm_operator.core.placement.search.compiled import forget_outdated

WHAT_IS_LEFT = """
import importlib, pkgutil
from numba.core.dispatcher import Dispatcher
from storm_operator.core.placement import search
from storm_operator.machine_code import compile_ahead
compile_ahead()
for found in pkgutil.iter_modules(search.__path__):
    for name, value in vars(importlib.import_module(f"{search.__name__}.{found.name}")).items():
        if isinstance(value, Dispatcher) and not value.targetoptions.get("no_cpython_wrapper") and not value.signatures:
            print(found.name, name)
"""


@pytest.mark.slow
def test_what_python_calls_is_compiled_ahead_or_the_first_plan_for_a_large_cluster_would_wait_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", WHAT_IS_LEFT], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_machine_code_is_forgotten_when_any_source_changes(tmp_path: Path) -> None:
    caller, called = tmp_path / "caller.py", tmp_path / "called.py"
    caller.write_text("a")
    called.write_text("b")
    forget_outdated(tmp_path)
    kept = [tmp_path / "__pycache__" / name for name in ("caller.f-1.py311.nbi", "caller.f-1.py311.1.nbc")]
    other = tmp_path / "__pycache__" / "caller.cpython-311.pyc"
    for file in (*kept, other):
        file.touch()
    os.utime(caller)
    forget_outdated(tmp_path)
    assert all(file.exists() for file in kept)
    called.write_text("c")
    forget_outdated(tmp_path)
    assert not any(file.exists() for file in kept)
    assert other.exists()

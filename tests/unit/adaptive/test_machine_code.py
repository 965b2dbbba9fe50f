"""What is compiled is kept until a source of it changes."""

from __future__ import annotations

import os
from pathlib import Path

from storm_operator.core.placement.search.compiled import forget_outdated


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

"""What is said of folders that commands are given."""

from __future__ import annotations

from pathlib import Path


def is_folder(path: Path) -> bool:
    """Whether a folder is known to be there: one that may not be looked at is none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_pipe(path: Path) -> bool:
    """Whether reading it is known to wait for whoever writes into it."""
    try:
        return path.is_fifo()
    except OSError:
        return False

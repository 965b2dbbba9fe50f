"""Where the local cluster keeps things: the user's cache, the user's state, the repository if there is one."""

from __future__ import annotations

import os
from pathlib import Path

RESOURCES = Path(__file__).parent / "resources"


def cache_dir() -> Path:
    """What can be fetched or made again: Storm's jars, class-data archives."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "storm-operator"


def state_dir(cluster: str) -> Path:
    """What belongs to one cluster: its state file, sockets, configuration, data and logs."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "storm-operator" / cluster


def repository_root() -> Path | None:
    """The checkout that this package runs from; None when it is installed."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "mvnw").is_file() and (folder / "pyproject.toml").is_file():
            return folder
    return None

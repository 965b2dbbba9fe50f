"""Where the layout of each cluster that is up is written down, and read again by whoever needs it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from storm_operator.local.paths import state_dir
from storm_operator.local.spec import ClusterLayout, LocalClusterError, from_json, to_json

STATE_FILE = "cluster.json"

log = logging.getLogger(__name__)


def state_file(cluster: str) -> Path:
    return state_dir(cluster) / STATE_FILE


def write_layout(layout: ClusterLayout) -> None:
    """Whole or not at all: others look at it at any moment."""
    file = state_file(layout.spec.name)
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text(to_json(layout))
    fresh.replace(file)


def read_layout(cluster: str) -> ClusterLayout | None:
    """What the state file of a cluster says; None when there is none, LocalClusterError when it cannot be read."""
    file = state_file(cluster)
    try:
        return from_json(file.read_text())
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, LocalClusterError) as reason:
        raise LocalClusterError(
            f"{file} cannot be read ({reason}); `storm-operator local down --name {cluster}` removes it"
        ) from reason


def readable_layout(cluster: str) -> ClusterLayout | None:
    """The same for whoever can do without it: a file that cannot be read is told, and then as good as none."""
    try:
        return read_layout(cluster)
    except LocalClusterError as reason:
        log.warning("%s", reason)
        return None


def readable_layouts() -> Iterator[ClusterLayout]:
    """Those of all clusters of this user."""
    for file in sorted(state_dir("any").parent.glob(f"*/{STATE_FILE}")):
        layout = readable_layout(file.parent.name)
        if layout is not None:
            yield layout

"""Everything on this machine that bears a cluster's name: what `down` must leave nothing of."""

from __future__ import annotations

from pathlib import Path

from kube_cluster.layout import mark_of, state_file
from kube_cluster.node.cgroups import hierarchies, kubelet_root
from kube_cluster.node.network import host_device
from storm_operator.local.cgroups import MOUNTS
from storm_operator.local.namespaces import NAMED
from storm_operator.local.processes import marked_processes


def leftovers(cluster: str) -> list[str]:
    """Processes by id, everything else by its path."""
    folders = [
        state_file(cluster).parent,
        NAMED / mark_of(cluster),
        Path("/sys/class/net", host_device(cluster)),
        *(mounted / kubelet_root(cluster).lstrip("/") for _, mounted in hierarchies(MOUNTS.read_text())),
    ]
    processes = [f"process {pid}" for pid in marked_processes(mark_of(cluster))]
    mounts = [line for line in MOUNTS.read_text().splitlines() if f"/{mark_of(cluster)}/" in line]
    return [*processes, *(str(folder) for folder in folders if folder.exists()), *mounts]

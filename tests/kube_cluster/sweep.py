"""Leave nothing behind: whatever a cluster has running or made, found by its name and marks alone.

Works after any crash, however far the cluster had come up.
"""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

from kube_cluster.layout import KubeLayout, all_layouts, mark_of, state_file
from kube_cluster.node.cgroups import remove_cgroups
from kube_cluster.node.network import remove_network
from storm_operator.local.processes import end_processes


def take_down(cluster: str) -> None:
    """End processes, then remove network and files. Doing it twice does no harm."""
    sweep_processes(cluster)
    remove_network(cluster)
    if state_file(cluster).parent.exists():
        shutil.rmtree(state_file(cluster).parent)


def sweep_processes(cluster: str) -> None:
    """End the daemons, then whatever runs in pods, and remove the pods' cgroups."""
    end_processes(mark_of(cluster))
    remove_cgroups(cluster)


def take_down_orphans() -> None:
    """Take down clusters whose owner and keeper were both killed: nobody else will."""
    for layout in all_layouts():
        owner_lives = layout.owner_pid is None or Path(f"/proc/{layout.owner_pid}").exists()
        if not owner_lives and not keeper_answers(layout):
            take_down(layout.name)


def keeper_answers(layout: KubeLayout) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(layout.keeper_socket))
        except OSError:
            return False
    return True

"""Bringing a cluster up, as steps on a layout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kube_cluster.access import write_keys, write_kubeconfigs
from kube_cluster.audit import write_policy
from kube_cluster.binaries import CONTROL_PLANE, NODE, ensure_programs
from kube_cluster.cache import Say
from kube_cluster.errors import KubeClusterError
from kube_cluster.layout import KubeLayout, mark_of, read_layout, write_layout
from kube_cluster.node.cgroups import create_cgroups
from kube_cluster.node.configuration import write_configuration
from kube_cluster.node.network import create_network, free_block
from kube_cluster.prerequisites import missing_for_api_server, missing_for_node
from kube_cluster.sweep import keeper_answers, take_down, take_down_orphans
from kube_cluster.waiting import wait_for
from storm_operator.local.daemons import CLUSTER_MARK
from storm_operator.local.lifecycle import first_free_ports, preferred_port

API_PORT = 6443
API_SERVER_BLOCK = 199
"""Without a node a service's address leads nowhere: all clusters may have the same."""
KEEPER_START_SECONDS = 20.0
PACKAGES = Path(__file__).parent.parent


def plan(name: str, node: bool, owner_pid: int | None, kept_logs_dir: Path | None, audit: bool = False) -> KubeLayout:
    """Choose addresses and ports."""
    port = first_free_ports(preferred_port(API_PORT, mark_of(name)), 1)
    block = free_block(name) if node else API_SERVER_BLOCK
    return KubeLayout(name, node, block, port, owner_pid, kept_logs_dir, audit)


def bring_up(layout: KubeLayout, say: Say) -> None:
    """Start everything; returns when the daemons have been started, not when they are ready.

    Whatever a crashed cluster of the same name left is swept first. If any step fails nothing stays.
    """
    check_prerequisites(layout.node)
    ensure_programs(NODE if layout.node else CONTROL_PLANE, say)
    take_down_orphans()
    present = read_layout(layout.name)
    if present and keeper_answers(present):
        raise KubeClusterError(
            f"cluster {layout.name!r} is up already; `python -m kube_cluster down --name {layout.name}` first"
        )
    take_down(layout.name)
    try:
        write_layout(layout)
        layout.logs_dir.mkdir(parents=True, exist_ok=True)
        write_keys(layout)
        write_kubeconfigs(layout)
        if layout.audit:
            write_policy(layout.audit_policy)
        if layout.node:
            write_configuration(layout)
            create_network(layout)
            create_cgroups(layout.name)
        _start_keeper(layout)
    except BaseException:
        take_down(layout.name)
        raise


def check_prerequisites(node: bool) -> None:
    """Raises KubeClusterError that names everything that is lacking here, and what installs it."""
    missing = missing_for_node() if node else missing_for_api_server()
    if missing:
        raise KubeClusterError("\n".join(map(str, missing)))


def _start_keeper(layout: KubeLayout) -> None:
    log_file = layout.logs_dir / "keeper.log"
    with log_file.open("ab") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "kube_cluster.keeper", layout.name],
            cwd=PACKAGES,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {CLUSTER_MARK: layout.mark},
            start_new_session=True,
        )
    wait_for(
        lambda: keeper_answers(layout) or keeper.poll() is not None, KEEPER_START_SECONDS, "the keeper did not start"
    )
    if keeper.poll() is not None:
        raise KubeClusterError(f"the keeper ended at once:\n{log_file.read_text()[-2000:]}")

"""The process that keeps a cluster's daemons running: `python -m kube_cluster.keeper NAME`.

It restarts what dies, and on SIGTERM, SIGINT or the end of its owner takes everything down. Should it be killed
itself, its daemons get SIGKILL from the kernel; the rest is swept by the next `down` or `up`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys

from kube_cluster.control_plane import control_plane
from kube_cluster.errors import KubeClusterError
from kube_cluster.layout import KubeLayout, read_layout
from kube_cluster.node.daemons import node_daemons
from kube_cluster.node.mounts import node_mounts
from kube_cluster.sweep import sweep_processes, take_down
from storm_operator.local.daemons import Daemon
from storm_operator.local.keeper import Kept


async def keep(layout: KubeLayout) -> None:
    """Until told to end, or the owner ends."""
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
    watched = _set_at_end_of(layout.owner_pid, over)
    all_kept = [Kept(daemon) for daemon in all_daemons(layout)]

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps([kept.status() for kept in all_kept]).encode() + b"\n")
        writer.close()

    server = await asyncio.start_unix_server(answer, str(layout.keeper_socket))
    for kept in all_kept:
        kept.start()
    await over.wait()
    server.close()
    if watched is not None:
        loop.remove_reader(watched)
    await asyncio.gather(*(kept.stop() for kept in all_kept))


def all_daemons(layout: KubeLayout) -> tuple[Daemon, ...]:
    """In the order in which they should start."""
    return (*control_plane(layout), *(node_daemons(layout) if layout.node else ()))


def _set_at_end_of(owner_pid: int | None, over: asyncio.Event) -> int | None:
    """Set `over` when the owner ends, however it ends."""
    if owner_pid is None:
        return None
    try:
        descriptor = os.pidfd_open(owner_pid)
    except ProcessLookupError:
        over.set()
        return None
    asyncio.get_running_loop().add_reader(descriptor, over.set)
    return descriptor


def main(name: str) -> None:
    layout = read_layout(name)
    if layout is None:
        raise KubeClusterError(f"no cluster {name!r} to keep")
    with node_mounts(layout) if layout.node else contextlib.nullcontext():
        asyncio.run(keep(layout))
        sweep_processes(name)
    # Only from outside of the node's mounts can the files below them be removed.
    take_down(name)


if __name__ == "__main__":
    main(sys.argv[1])

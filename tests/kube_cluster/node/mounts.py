"""The node's own view of the file system: its programs write where they always do, and nothing reaches this machine.

A private mount namespace, in which empty folders of the cluster lie over the system's. It ends with its last process,
and every mount that the node made in it.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kube_cluster.layout import KubeLayout
from storm_operator.local.namespaces import NAMED

COVERED = (Path("/run"), Path("/var/lib"), Path("/var/log"))
"""Where containerd, runc, the network plugins and the kubelet keep what they have."""

KUBELET_SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What the kubelet would set for the whole machine. It leaves alone what it finds as it wants it."""

CLONE_NEWNS = 0x00020000
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def node_mounts(layout: KubeLayout) -> Iterator[None]:
    """Run the body, and the processes it starts, with the node's view. Only for a process with one thread."""
    here = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    _check(_libc.unshare(CLONE_NEWNS), "unshare")
    try:
        _cover(layout)
        yield
    finally:
        _check(_libc.setns(here, CLONE_NEWNS), "setns")
        os.close(here)


def _cover(layout: KubeLayout) -> None:
    _mount("--make-rprivate", "/")
    # The named namespaces are in a folder that is covered next.
    layout.node_network.parent.mkdir(parents=True, exist_ok=True)
    layout.node_network.touch()
    _mount("--bind", str(NAMED / layout.mark), str(layout.node_network))
    for name, value in KUBELET_SYSCTLS.items():
        file = layout.node_dir / "sysctl" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
        _mount("--bind", str(file), f"/proc/sys/{name}")
    for folder in COVERED:
        own = layout.node_dir / folder.relative_to("/")
        own.mkdir(parents=True, exist_ok=True)
        _mount("--bind", str(own), str(folder))


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"mount {' '.join(arguments)}: {done.stderr.strip()}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")

"""What must be on this machine before it can be a node, or make images for one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from kube_cluster.node.mounts import COVERED
from storm_operator.local.paths import cache_dir, state_dir
from storm_operator.local.prerequisites import Missing

CNI_PLUGINS = Path("/usr/lib/cni")
NODE_PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "mount": "mount",
    "openssl": "openssl",
}
IMAGE_PACKAGES = {"buildah": "buildah", "mmdebstrap": "mmdebstrap"}
Which = Callable[[str], str | None]


def missing_for_node() -> tuple[Missing, ...]:
    """What keeps this machine from running a node."""
    return (
        *_check_root(os.geteuid()),
        *check_programs(NODE_PACKAGES, shutil.which),
        *_check_cni(),
        *check_covered((cache_dir(), state_dir("any"))),
    )


def missing_for_images() -> tuple[Missing, ...]:
    """What keeps this machine from making container images."""
    return (*_check_root(os.geteuid()), *check_programs(IMAGE_PACKAGES, shutil.which))


def check_programs(packages: dict[str, str], which: Which) -> tuple[Missing, ...]:
    """`packages`: the Debian package of each program."""
    absent = [program for program in packages if not which(program)]
    if not absent:
        return ()
    names = " ".join(sorted({packages[program] for program in absent}))
    return (Missing(f"{', '.join(absent)} not on PATH", f"apt-get install --no-install-recommends {names}"),)


def check_covered(folders: Iterable[Path]) -> tuple[Missing, ...]:
    """The node covers some of the system's folders with its own: what it needs must not be in them."""
    return tuple(
        Missing(f"{folder} is inside {covered}, which a node cannot see", "set XDG_CACHE_HOME and XDG_STATE_HOME")
        for folder in folders
        for covered in COVERED
        if folder.resolve().is_relative_to(covered)
    )


def _check_cni() -> tuple[Missing, ...]:
    if (CNI_PLUGINS / "ptp").exists():
        return ()
    return (
        Missing(
            f"{CNI_PLUGINS} has no network plugins",
            "apt-get install --no-install-recommends containernetworking-plugins",
        ),
    )


def _check_root(user_id: int) -> tuple[Missing, ...]:
    return () if user_id == 0 else (Missing("not root: a node needs namespaces and cgroups", "run it with sudo"),)

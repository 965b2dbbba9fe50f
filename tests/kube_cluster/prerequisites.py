"""What must be on this machine before it can run a cluster, be a node, or make images; and what installs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from kube_cluster.node.mounts import COVERED
from storm_operator.local.paths import cache_dir, state_dir
from storm_operator.local.prerequisites import Missing

API_SERVER_PACKAGES = {"openssl": "openssl"}
NODE_PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "nft": "nftables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "mount": "mount",
}
IMAGE_PACKAGES = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "unshare": "util-linux"}
"""The Debian package of each program."""

Which = Callable[[str], str | None]


def missing_for_api_server() -> tuple[Missing, ...]:
    """What keeps this machine from running an API server, besides its programs."""
    return check_programs(API_SERVER_PACKAGES, shutil.which)


def missing_for_node() -> tuple[Missing, ...]:
    """What keeps this machine from running a node."""
    return (
        *_check_root(os.geteuid()),
        *check_programs(API_SERVER_PACKAGES | NODE_PACKAGES, shutil.which),
        *check_covered((cache_dir(), state_dir("any"))),
    )


def missing_for_images() -> tuple[Missing, ...]:
    """What keeps this machine from making container images."""
    return (*_check_root(os.geteuid()), *check_programs(IMAGE_PACKAGES, shutil.which))


def missing_packages(which: Which = shutil.which) -> list[str]:
    """The Debian packages that a node and its images need and that are not installed."""
    packages = API_SERVER_PACKAGES | NODE_PACKAGES | IMAGE_PACKAGES
    return sorted({package for program, package in packages.items() if not which(program)})


def check_programs(packages: dict[str, str], which: Which) -> tuple[Missing, ...]:
    absent = [program for program in packages if not which(program)]
    if not absent:
        return ()
    names = " ".join(sorted({packages[program] for program in absent}))
    return (Missing(f"not found: {', '.join(absent)}", f"apt-get install --no-install-recommends {names}"),)


def check_covered(folders: Iterable[Path]) -> tuple[Missing, ...]:
    """The node covers some of the system's folders with its own: what it needs must not be in them."""
    return tuple(
        Missing(f"{folder} is inside {covered}, which a node cannot see", "set XDG_CACHE_HOME and XDG_STATE_HOME")
        for folder in folders
        for covered in COVERED
        if folder.resolve().is_relative_to(covered)
    )


def _check_root(user_id: int) -> tuple[Missing, ...]:
    return () if user_id == 0 else (Missing("not root: a node needs namespaces and cgroups", "run it with sudo"),)

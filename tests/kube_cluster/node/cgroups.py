"""The cgroups under which the kubelet puts all pods, in every hierarchy of this machine. cgroup v1 and v2."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kube_cluster.layout import mark_of
from storm_operator.local.cgroups import MOUNTS, PARENT, Hierarchy, remove_cluster_cgroups

V2_CONTROLLERS = "+cpu +cpuset +memory +pids"


def hierarchies(mounts: str) -> tuple[tuple[str, Path], ...]:
    """Kind (`cgroup`, `cgroup2`) and folder of each hierarchy, from the text of /proc/self/mounts."""
    lines = (line.split() for line in mounts.splitlines())
    return tuple((kind, Path(point)) for _, point, kind, *_ in lines if kind in ("cgroup", "cgroup2"))


def kubelet_root(cluster: str) -> str:
    """The cgroup under which all pods are, as the kubelet names it. `sweep` finds it under this name."""
    return f"/{PARENT}/{mark_of(cluster)}"


def create_cgroups(cluster: str) -> None:
    for kind, mounted in hierarchies(MOUNTS.read_text()):
        folder = mounted
        for part in (PARENT, mark_of(cluster)):
            if kind == "cgroup2":
                _delegate(folder)
            folder = folder / part
            folder.mkdir(exist_ok=True)
            _copy_from_parent(folder, ("cpuset.cpus", "cpuset.mems"))


def remove_cgroups(cluster: str) -> None:
    """Kill what runs in the cluster's pods, and remove their cgroups."""
    for hierarchy in _roots(hierarchies(MOUNTS.read_text())):
        remove_cluster_cgroups(mark_of(cluster), hierarchy)


def _roots(found: Iterable[tuple[str, Path]]) -> list[Hierarchy]:
    return [Hierarchy(2 if kind == "cgroup2" else 1, mounted) for kind, mounted in found]


def _copy_from_parent(folder: Path, names: tuple[str, ...]) -> None:
    """A new cpuset of version 1 has no CPU and no memory: nothing can run in it."""
    for name in names:
        file, above = folder / name, folder.parent / name
        if file.exists() and above.exists() and not file.read_text().strip():
            file.write_text(above.read_text())


def _delegate(folder: Path) -> None:
    available = (folder / "cgroup.controllers").read_text().split()
    wanted = [item for item in V2_CONTROLLERS.split() if item[1:] in available]
    if wanted:
        (folder / "cgroup.subtree_control").write_text(" ".join(wanted))

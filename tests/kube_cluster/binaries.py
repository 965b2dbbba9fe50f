"""The programs of a cluster, built from pinned Go modules (`go/`), once per version, into the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kube_cluster.cache import Say, kubernetes_cache, one_at_a_time
from kube_cluster.errors import KubeClusterError

MODULES = Path(__file__).parent / "go"
KUBERNETES_VERSION = "1.35.4"
KUBERNETES_LINK_FLAGS = f"-s -w -X k8s.io/component-base/version.gitVersion=v{KUBERNETES_VERSION}"


@dataclass(frozen=True, slots=True)
class Program:
    """One program: the Go package it is, and the wrapper module in `go/` that pins its version.

    Programs of one module share what is compiled for them; with other versions of the same libraries they would not.
    """

    name: str
    module: str
    package: str
    link_flags: str = "-s -w"


def _kubernetes(name: str) -> Program:
    return Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", KUBERNETES_LINK_FLAGS)


PROGRAMS = {
    program.name: program
    for program in (
        Program("etcd", "kubernetes", "go.etcd.io/etcd/server/v3"),
        _kubernetes("kube-apiserver"),
        _kubernetes("kube-controller-manager"),
        _kubernetes("kubectl"),
        Program("helm", "kubernetes", "helm.sh/helm/v3/cmd/helm"),
        Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
        _kubernetes("kube-scheduler"),
        _kubernetes("kubelet"),
        _kubernetes("kube-proxy"),
        Program("coredns", "kubernetes", "./coredns"),
        Program("pod-probe", "pod", "."),
        Program("kubeconform", "kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform"),
    )
}
"""By name, in the order in which they are built."""

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
NODE = (*CONTROL_PLANE, "kube-scheduler", "kubelet", "kube-proxy", "coredns", "pod-probe")


def program_path(name: str) -> Path:
    """Where the program is once it has been built; the folder's name changes with its module's content."""
    program = PROGRAMS[name]
    return kubernetes_cache() / f"{program.module}-{_version_key(program.module)}" / name


def unbuilt(names: Iterable[str]) -> tuple[str, ...]:
    """Those of the programs that are not in the cache yet."""
    return tuple(name for name in names if not program_path(name).is_file())


def obstacle(names: Iterable[str]) -> str | None:
    """Why the programs cannot be had on this machine, with the remedy; None when they can."""
    missing = unbuilt(names)
    if missing and not shutil.which("go"):
        return f"{', '.join(missing)} must be built, and go is not on PATH. Remedy: install Go 1.26 or newer"
    return None


def ensure_programs(names: Iterable[str], say: Say = lambda _: None) -> None:
    """Build what is not in the cache yet: minutes for each of Kubernetes' own programs. Raises KubeClusterError."""
    names = tuple(names)
    why_not = obstacle(names)
    if why_not:
        raise KubeClusterError(why_not)
    for name in unbuilt(names):
        with one_at_a_time(name, say):
            if unbuilt((name,)):
                _build(PROGRAMS[name], say)


def module_folder(name: str, path: str) -> Path:
    """Where Go keeps the sources of the module `path` that the wrapper module `name` pins (fetched if need be)."""
    command = ["go", "mod", "download", "-json", path]
    _run_go(command, MODULES / name)
    return Path(_run_go(["go", "list", "-m", "-f", "{{.Dir}}", path], MODULES / name).strip())


def _version_key(module: str) -> str:
    digest = hashlib.sha256(KUBERNETES_LINK_FLAGS.encode())
    folder = MODULES / module
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        digest.update(str(file.relative_to(folder)).encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _build(program: Program, say: Say) -> None:
    target = program_path(program.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    say(f"building {program.name}")
    began = time.monotonic()
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        # At the lowest priority: it takes every core for minutes.
        go_build = ["nice", "-n", "19", "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", program.link_flags]
        _run_go([*go_build, "-o", str(unfinished), program.package], MODULES / program.module)
        unfinished.rename(target)
    finally:
        unfinished.unlink(missing_ok=True)
    say(f"built {program.name} in {time.monotonic() - began:.0f} s")


def _run_go(command: list[str], folder: Path) -> str:
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise KubeClusterError(f"`{' '.join(command)}` in {folder} failed:\n" + "\n".join(lines[-15:]))
    return done.stdout

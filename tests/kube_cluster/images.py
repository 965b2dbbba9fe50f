"""The project's container images as archives, built from its Dockerfile by buildah, without a registry. Needs root."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

from kube_cluster.cache import Say, kubernetes_cache, one_at_a_time
from kube_cluster.errors import KubeClusterError
from kube_cluster.prerequisites import missing_for_images
from storm_operator.local.paths import repository_root

PROJECT_IMAGES = {"operator": "localhost/storm-operator:dev", "storm": "localhost/storm:dev"}
"""The Dockerfile's targets that Storm and its operator run from, each with the name that its image has in tests."""
PIPELINE_IMAGE = "localhost/storm-pipeline:dev"
"""Of target `pipeline`."""

BASE_IMAGE = "localhost/debian:12"
BASE_SUITE = "bookworm"
SECRETS = {
    "ca": Path("/etc/ssl/certs/ca-certificates.crt"),
    "java_ca": Path("/etc/ssl/certs/java/cacerts"),
    "pip_config": Path("~/.config/pip/pip.conf"),
    "maven_settings": Path("~/.m2/settings.xml"),
}
"""What the Dockerfile may use of this machine to reach package registries, and does not keep."""

NEVER_COPIED = {"__pycache__"}
"""Of the folders that the Dockerfile copies: as `.dockerignore` has it."""

MOST_CACHED_LAYERS = 250
"""Some 25 GB. All images of today are some 60."""


def build_project_images(say: Say = lambda _: None) -> dict[str, Path]:
    """The archive of each of `PROJECT_IMAGES`, by the image's name."""
    return {tag: build_image(target, tag, say) for target, tag in PROJECT_IMAGES.items()}


def build_image(target: str, tag: str, say: Say = lambda _: None) -> Path:
    """The archive of one of the Dockerfile's targets, for `KubeCluster.load_image`.

    Nothing is done when none of the files that images are made of has changed since it was written; else layers are
    cached. Minutes the first time. Raises KubeClusterError.
    """
    missing = missing_for_images()
    if missing:
        raise KubeClusterError("no images can be built here:\n" + "\n".join(map(str, missing)))
    with one_at_a_time("images", say):
        name = re.sub(r"[^a-z0-9.]+", "-", tag)
        archive = _folder("images") / f"{name}@{sources_digest(_repository())[:12]}.tar"
        if not archive.exists():
            _build(target, tag, say)
            say(f"writing {archive.name}")
            for older in archive.parent.glob(f"{name}@*"):
                older.unlink()
            unfinished = archive.with_name(f".{name}.unfinished")
            unfinished.unlink(missing_ok=True)
            _buildah("push", tag, f"docker-archive:{unfinished}:{tag}")
            unfinished.rename(archive)
        return archive


def sources_digest(repository: Path) -> str:
    """Of the Dockerfile, and of the path, mode, and content of each file that it copies from the repository."""
    digest = hashlib.sha256()
    for file in [repository / "Dockerfile", *_copied_files(repository)]:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(repository)} {file.stat().st_mode:o} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _copied_files(repository: Path) -> list[Path]:
    instructions = (repository / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    copies = [line.split()[1:-1] for line in instructions if line.startswith("COPY ")]
    sources = {source for words in copies if not words[0].startswith("--from=") for source in words}
    files = {file for source in sources for file in [repository / source, *(repository / source).rglob("*")]}
    return sorted(file for file in files if file.is_file() and not NEVER_COPIED & set(file.parts))


def _build(target: str, tag: str, say: Say) -> None:
    _tidy()
    _ensure_base_image(say)
    say(f"building {tag}, which takes minutes where its layers are not cached")
    secrets = [f"--secret=id={name},src={file}" for name, file in _present_secrets().items()]
    _buildah(
        *("build", "--layers", "--pull-never", "--format=docker", f"--target={target}", f"--tag={tag}"),
        *(f"--build-arg=BASE_IMAGE={BASE_IMAGE}", *secrets, str(_repository())),
    )


def _tidy() -> None:
    """Layers that were cached for images of the past fill a disk.

    Those of the present go with them, since nobody can tell them apart. So this is done before an image is built, never
    after: the next process would build anew what this one has just built.
    """
    if len(_buildah("images", "--all", "--quiet").splitlines()) > MOST_CACHED_LAYERS:
        _buildah("rm", "--all")  # what a build that was killed has left
        _buildah("rmi", "--prune")


def _ensure_base_image(say: Say) -> None:
    """Debian's minimal system, from Debian's packages."""
    if _buildah("images", "--quiet", "--filter", f"reference={BASE_IMAGE}").strip():
        return
    say(f"building {BASE_IMAGE}")
    with tempfile.TemporaryDirectory(dir=_folder("buildah/tmp")) as context:
        _run(["mmdebstrap", "--quiet", "--variant=minbase", BASE_SUITE, f"{context}/base.tar"])
        Path(context, "Dockerfile").write_text('FROM scratch\nADD base.tar /\nCMD ["bash"]\n')
        _buildah("build", f"--tag={BASE_IMAGE}", context)


def _buildah(*arguments: str) -> str:
    """In a mount namespace of its own: storage of kind overlay leaves mounts behind."""
    folder = _folder("buildah")
    storage = ("--root", f"{folder}/storage", "--runroot", f"{folder}/run", "--storage-driver=overlay")
    return _run(["unshare", "--mount", "nice", "-n", "19", "buildah", *storage, *arguments])


def _folder(name: str) -> Path:
    folder = kubernetes_cache() / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run(command: list[str]) -> str:
    # Cached mounts of a Dockerfile are below TMPDIR.
    environment = os.environ | {"BUILDAH_ISOLATION": "chroot", "TMPDIR": str(_folder("buildah/tmp"))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise KubeClusterError(f"`{' '.join(command)}` failed:\n" + "\n".join(lines[-25:]))
    return done.stdout


def _present_secrets() -> dict[str, Path]:
    found = {name: file.expanduser() for name, file in SECRETS.items()}
    return {name: file for name, file in found.items() if file.is_file()}


def _repository() -> Path:
    root = repository_root()
    if root is None:
        raise KubeClusterError("this installation has no Dockerfile to build images from")
    return root

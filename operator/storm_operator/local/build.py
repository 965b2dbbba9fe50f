"""The project's own jars, built by Maven when they are absent or older than their sources."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storm_operator.local.distribution import Say, maven_command
from storm_operator.local.paths import repository_root
from storm_operator.local.spec import LocalClusterError


def plugin_jar(say: Say = lambda _: None) -> Path:
    """The scheduler and metrics plugin, built if need be."""
    return _up_to_date(_checkout() / "operator" / "storm-plugin", "storm-plugin.jar", say)


def workloads_jar(say: Say = lambda _: None) -> Path:
    """The example topologies, built if need be."""
    return _up_to_date(_checkout() / "examples" / "workloads", "workloads.jar", say)


def is_older(jar: Path, project: Path) -> bool:
    """Whether the jar is missing, or older than the project's POM or any of its sources."""
    if not jar.is_file():
        return True
    sources = [project / "pom.xml", *(path for path in (project / "src" / "main").rglob("*") if path.is_file())]
    return any(source.stat().st_mtime > jar.stat().st_mtime for source in sources)


def _up_to_date(project: Path, name: str, say: Say) -> Path:
    if not (project / "pom.xml").is_file():
        raise LocalClusterError(f"{project} has no pom.xml: nothing to build {name} from")
    jar = project / "target" / name
    with _one_at_a_time(project):
        if is_older(jar, project):
            say(f"building {name}")
            _build(project, jar)
    return jar


def _build(project: Path, jar: Path) -> None:
    command = [maven_command(), "-q", "-B", "-f", str(project / "pom.xml"), "package", "-DskipTests"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not jar.is_file():
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise LocalClusterError(f"{jar.name} could not be built:\n" + "\n".join(lines[-15:]))
    # Maven leaves a jar alone whose content would be the same; its age must still say that it is up to date.
    jar.touch()


@contextmanager
def _one_at_a_time(project: Path) -> Iterator[None]:
    """Two test runs at once must not build into the same folder."""
    (project / "target").mkdir(exist_ok=True)
    with (project / "target" / ".build-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _checkout() -> Path:
    root = repository_root()
    if root is None:
        raise LocalClusterError(
            "there are no sources here to build jars from: it takes a checkout of the repository "
            "(`storm-operator demo --simulated` takes none)"
        )
    return root

"""Apache Storm from Maven Central, in the user's cache, shaped as Storm's daemons and workers expect their home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from storm_operator.local.paths import RESOURCES, cache_dir, repository_root
from storm_operator.local.spec import LocalClusterError

STORM_VERSION = "2.8.3"
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
CLASS_PATHS = {"lib": "daemon-pom.xml", "lib-worker": "worker-pom.xml"}
PLUGIN_FOLDERS = ("extlib", "extlib-daemon")

Say = Callable[[str], None]


def distribution_dir() -> Path:
    return cache_dir() / f"storm-{STORM_VERSION}"


def maven_command() -> str:
    """The repository's Maven script, else `mvn` on PATH."""
    root = repository_root()
    if root:
        return str(root / "mvnw")
    found = shutil.which("mvn")
    if not found:
        raise LocalClusterError("Maven is not on PATH: apt-get install maven | brew install maven")
    return found


def ensure_distribution(say: Say) -> Path:
    """The cached distribution, fetched if it is not there yet. It appears whole or not at all."""
    home = distribution_dir()
    if home.is_dir():
        return home
    say(f"fetching Apache Storm {STORM_VERSION} from Maven Central into {home}")
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".storm-") as scratch:
        build = Path(scratch) / home.name
        assemble(build)
        try:
            build.rename(home)
        except OSError:
            # Somebody else was faster, and theirs is whole too.
            if not home.is_dir():
                raise
    return home


def assemble(home: Path) -> None:
    """Fetches Storm into the new folder `home`, without any plugin. The image build runs this too (see the end)."""
    for folder, pom in CLASS_PATHS.items():
        _copy_jars(RESOURCES / pom, home / folder)
    for folder in (*PLUGIN_FOLDERS, "log4j2"):
        (home / folder).mkdir()
    for name in ("cluster.xml", "worker.xml"):
        shutil.copy(RESOURCES / name, home / "log4j2" / name)


def make_storm_home(home: Path, distribution: Path, plugin_jar: Path | None) -> None:
    """A STORM_HOME of one cluster: links into the cache, and folders of its own for the plugin."""
    home.mkdir(parents=True, exist_ok=True)
    for name in (*CLASS_PATHS, "log4j2"):
        link = home / name
        link.unlink(missing_ok=True)
        link.symlink_to(distribution / name)
    for name in PLUGIN_FOLDERS:
        shutil.rmtree(home / name, ignore_errors=True)
        (home / name).mkdir()
        if plugin_jar:
            shutil.copy(plugin_jar, home / name / plugin_jar.name)


def _copy_jars(pom: Path, into: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="storm-pom-") as scratch:
        # A copy of the POM, since Maven may write `target/` beside it and package data can be read-only.
        local_pom = Path(scratch) / pom.name
        shutil.copy(pom, local_pom)
        _run_maven(local_pom, into)


def _run_maven(pom: Path, into: Path) -> None:
    command = [maven_command(), "-q", "-B", "-f", str(pom), f"-Dstorm.version={STORM_VERSION}"]
    command += [COPY_DEPENDENCIES, "-DincludeScope=runtime", f"-DoutputDirectory={into}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise LocalClusterError(f"Maven could not fetch Storm {STORM_VERSION} ({pom.name}):\n" + "\n".join(lines[-8:]))


if __name__ == "__main__":
    assemble(Path(sys.argv[1]).absolute())

"""Apache Storm from Maven Central, in the user's cache, shaped as Storm's daemons and workers expect their home."""

from __future__ import annotations

import filecmp
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from storm_operator.local.paths import RESOURCES, cache_dir, repository_root
from storm_operator.local.spec import LocalClusterError

STORM_VERSION = "2.8.3"
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
CLASS_PATHS = {"lib": "daemon-pom.xml", "lib-worker": "worker-pom.xml"}
LOG_CONFIGURATIONS = ("cluster.xml", "worker.xml")
PLUGIN_FOLDERS = ("extlib", "extlib-daemon")
ONE_JAR = "storm-worker.jar"
NAMED_BY_IT = "jars"
MANIFEST_LINE_BYTES = 70
"""72 at most, by the JAR specification, with the end of the line."""

Say = Callable[[str], None]


def distribution_dir() -> Path:
    """Another for each Storm and each list of what belongs to it: one fetched by an older list lacks what is new."""
    files = [RESOURCES / name for name in (*CLASS_PATHS.values(), *LOG_CONFIGURATIONS)]
    made_from = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    return cache_dir() / f"storm-{STORM_VERSION}-{made_from[:8]}"


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
    """Fetches Storm into the new folder `home`, without any plugin."""
    for folder, pom in CLASS_PATHS.items():
        _copy_jars(RESOURCES / pom, home / folder)
    for folder in (*PLUGIN_FOLDERS, "log4j2"):
        (home / folder).mkdir()
    for name in LOG_CONFIGURATIONS:
        shutil.copy(RESOURCES / name, home / "log4j2" / name)


def assemble_for_image(home: Path) -> None:
    """Storm in the new folder `home`, for machines whose file systems this one does not know.

    An archive of classes (see `class_data`) serves only a class path of the same order as that it was made with. Java
    takes the jars of `lib-worker/*` as the file system lists them: in another order on another machine. So that folder
    has one jar, which names all others in its manifest; they are in a folder below, where Java does not look for any.
    Those that are a copy of one in `lib/` are a link to it.
    """
    assemble(home)
    worker = home / "lib-worker"
    jars = sorted(worker.glob("*.jar"))
    (worker / NAMED_BY_IT).mkdir()
    for jar in jars:
        twin = home / "lib" / jar.name
        if twin.is_file() and filecmp.cmp(jar, twin, shallow=False):
            jar.unlink()
            (worker / NAMED_BY_IT / jar.name).symlink_to(Path("..", "..", "lib", jar.name))
        else:
            jar.rename(worker / NAMED_BY_IT / jar.name)
    with zipfile.ZipFile(worker / ONE_JAR, "w") as one_jar:
        one_jar.writestr("META-INF/MANIFEST.MF", manifest_of(f"{NAMED_BY_IT}/{jar.name}" for jar in jars))


def manifest_of(class_path: Iterable[str]) -> str:
    """A jar's manifest that puts others, by their paths from its own folder, on the class path in its place."""
    line = f"Class-Path: {' '.join(class_path)}"
    first, rest = line[:MANIFEST_LINE_BYTES], line[MANIFEST_LINE_BYTES:]
    step = MANIFEST_LINE_BYTES - 1
    continued = [f" {rest[at : at + step]}" for at in range(0, len(rest), step)]
    return "".join(f"{part}\r\n" for part in ["Manifest-Version: 1.0", first, *continued, ""])


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
    assemble_for_image(Path(sys.argv[1]).absolute())

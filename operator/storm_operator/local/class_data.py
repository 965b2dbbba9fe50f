"""Archives of parsed classes (AppCDS), so that each of the cluster's JVMs starts with less CPU.

Each kind of JVM lists the classes that it loads during one rehearsal of the real thing (a small cluster that runs a
small topology); from each list Java makes an archive. They fit one Java and one set of jars: a folder's name in the
user's cache says which. Storm's image has both in one place, and its archives beside them.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from storm_operator.local.distribution import Say, distribution_dir
from storm_operator.local.jvm import Jvm
from storm_operator.local.paths import cache_dir
from storm_operator.local.prerequisites import java_version_text

CLASS_PATH_FOLDER: Mapping[Jvm, str] = {
    Jvm.ZOOKEEPER: "lib",
    Jvm.NIMBUS: "lib",
    Jvm.SUPERVISOR: "lib",
    Jvm.WORKER: "lib-worker",
    Jvm.LOG_WRITER: "lib-worker",
}


def archives_dir() -> Path:
    """Archives for this Java and these jars."""
    return cache_dir() / f"class-data-{fingerprint(java_version_text(), _jars(distribution_dir()))}"


def fingerprint(java_version: str, jars: Iterable[tuple[str, int, int]]) -> str:
    """Changes whenever Java would refuse the archive: another Java, or a jar with another name, size or time."""
    text = java_version + "".join(f"\n{name} {size} {modified}" for name, size, modified in sorted(jars))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def archive_options() -> dict[str, str]:
    """For each kind of JVM the option that makes it use its archive; empty before the rehearsal.

    With -Xshare:auto a JVM that cannot use its archive starts without it.
    """
    folder = archives_dir()
    found = {kind: folder / f"{kind}.jsa" for kind in Jvm}
    return {kind.value: f"-XX:SharedArchiveFile={path}" for kind, path in found.items() if path.is_file()}


def recording_options(folder: Path) -> dict[str, str]:
    """For each kind of JVM the option that makes it list the classes that it loads (one file per process)."""
    return {kind.value: f"-XX:DumpLoadedClassList={folder}/{kind}.%p.classlist" for kind in Jvm}


def merged_class_list(lists: Iterable[str]) -> str:
    """One list out of several processes': no process-bound numbers, no classes of custom loaders, no repetition."""
    lines: dict[str, None] = {}
    for text in lists:
        for line in text.splitlines():
            if line and not line.startswith("#") and " source: " not in line:
                lines[line.partition(" id: ")[0]] = None
    return "\n".join(lines) + "\n"


def make_archives(class_lists: Mapping[Jvm, Path], distribution: Path, target: Path, say: Say) -> None:
    """Turn lists of classes of a distribution into archives in the new folder `target`; all appear together or none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".class-data-") as scratch:
        build = Path(scratch) / target.name
        build.mkdir()
        for kind, class_list in class_lists.items():
            say(f"archiving the classes of {kind}")
            _dump(kind, class_list, distribution, build / f"{kind}.jsa")
        try:
            build.rename(target)
        except OSError:
            if not target.is_dir():
                raise


def _dump(kind: Jvm, class_list: Path, distribution: Path, archive: Path) -> None:
    """A class path that ends in a wildcard is expanded as in the daemon itself: the same folder, the same order."""
    command = ["java", "-Xshare:dump", "-XX:+UseSerialGC", "-Xmx256m", f"-XX:SharedClassListFile={class_list}"]
    command += [f"-XX:SharedArchiveFile={archive}", "-cp", f"{distribution}/{CLASS_PATH_FOLDER[kind]}/*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not archive.is_file():
        raise OSError(f"java -Xshare:dump made no archive for {kind}: {(done.stdout + done.stderr)[-500:]}")


def _jars(distribution: Path) -> list[tuple[str, int, int]]:
    jars = [jar for folder in set(CLASS_PATH_FOLDER.values()) for jar in (distribution / folder).glob("*.jar")]
    return [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars]

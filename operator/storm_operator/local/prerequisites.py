"""What must be on this machine before a local cluster can run; each missing thing with the command that installs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from storm_operator.local.paths import cache_dir, repository_root

OLDEST_JAVA = 17
OLDEST_PYTHON = (3, 11)
Which = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that is not there. `fatal` when no cluster can run without it."""

    what: str
    remedy: str
    fatal: bool = True

    def __str__(self) -> str:
        return f"{self.what}. Remedy: {self.remedy}"


def missing_prerequisites() -> tuple[Missing, ...]:
    """Everything that is missing on this machine, in the order in which to mend it."""
    return (
        *check_system(sys.platform),
        *check_python(sys.version_info[:2]),
        *check_java(_java_version(), shutil.which),
        *check_maven(shutil.which, _wrapper_has_maven(repository_root())),
        *check_isolation(os.geteuid(), shutil.which, Path("/dev/net/tun").exists()),
    )


def check_system(platform: str) -> tuple[Missing, ...]:
    """`platform` as `sys.platform` has it."""
    if platform == "linux":
        return ()
    return (
        Missing(f"a local cluster needs Linux, and this is {platform}", "run it in a container or virtual machine"),
    )


def check_python(version: tuple[int, int]) -> tuple[Missing, ...]:
    if version >= OLDEST_PYTHON:
        return ()
    return (Missing(f"Python {version[0]}.{version[1]} is too old: 3.11 or newer is needed", "pyenv install 3.11"),)


def check_java(version_text: str | None, which: Which) -> tuple[Missing, ...]:
    """`version_text` is what `java -version` printed; None when there is no java."""
    install = "apt-get install openjdk-17-jdk-headless | brew install openjdk@17"
    if version_text is None:
        return (Missing("Java is not on PATH", install),)
    version = java_major_version(version_text)
    if version is None or version < OLDEST_JAVA:
        first_line = version_text.strip().splitlines()[0] if version_text.strip() else "nothing"
        return (Missing(f"Java {OLDEST_JAVA} or newer is needed; `java -version` says {first_line!r}", install),)
    if not which("javac"):
        return (Missing("javac is not on PATH: a JDK is needed, not only a JRE", install),)
    return ()


def java_major_version(version_text: str) -> int | None:
    """17 from `openjdk version "17.0.15"`, 8 from `java version "1.8.0_402"`; None from anything else."""
    found = re.search(r'version "(?:1\.)?(\d+)', version_text)
    return int(found[1]) if found else None


def check_maven(which: Which, wrapper_has_it: bool) -> tuple[Missing, ...]:
    if wrapper_has_it or which("mvn"):
        return ()
    return (Missing("Maven is not on PATH", "apt-get install maven | brew install maven"),)


def _wrapper_has_maven(checkout: Path | None) -> bool:
    """Whether `mvnw` has fetched the one that it runs, or knows where to fetch it."""
    if checkout is None:
        return False
    version = re.findall(r"^version=(.*)$", (checkout / "mvnw").read_text(), re.MULTILINE)[0]
    return bool(os.environ.get("MVNW_REPOURL")) or (cache_dir() / f"apache-maven-{version}/bin/mvn").exists()


def check_isolation(user_id: int, which: Which, has_tun: bool) -> tuple[Missing, ...]:
    """What keeps machines from having networks and CPU of their own; never fatal."""
    if user_id != 0:
        return (Missing("not root: delay, network and CPU capacity are not emulated", "run it with sudo", False),)
    missing = []
    if not (which("ip") and which("nsenter")):
        missing.append(Missing("ip or nsenter is not on PATH", "apt-get install iproute2 util-linux", False))
    if not has_tun:
        missing.append(Missing("/dev/net/tun does not exist", "modprobe tun", False))
    return tuple(missing)


def agent_command() -> tuple[str, ...] | None:
    """How an agent is started; None while this installation has none."""
    if find_spec("storm_operator.agent.__main__") is None:
        return None
    return (sys.executable, "-m", "storm_operator.agent")


def java_version_text() -> str:
    return _java_version() or ""


def _java_version() -> str | None:
    if not shutil.which("java"):
        return None
    return subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr

"""Checks what must be on the machine before anything can be installed, and says how to install what is missing.

Runs under any Python 3 from 3.6 on, before the project's own packages exist: standard library only. With the argument
`python` it checks for that alone.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PYTHON = (3, 11)
JAVA = 17


def java_version() -> "int | None":
    if shutil.which("javac") is None:
        return None
    found = re.search(r"javac (\d+)", subprocess.getoutput("javac -version"))
    return int(found.group(1)) if found else None


def has_fetched_maven() -> bool:
    """Whether ./mvnw keeps the one that it runs."""
    version = re.findall(
        r"^version=(.*)$", Path(__file__).resolve().parents[1].joinpath("mvnw").read_text(), re.MULTILINE
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return (cache / "storm-operator" / f"apache-maven-{version[0]}" / "bin" / "mvn").exists()


def missing_of_python() -> "list[str]":
    problems = []
    if sys.version_info[:2] < PYTHON:
        problems.append(
            f"Python is {sys.version.split()[0]}, 3.11 or newer is needed: apt-get install python3.11 python3.11-venv"
            " | brew install python@3.11 (then make PYTHON=python3.11 ...)"
        )
    try:
        import ensurepip  # noqa: F401 - venv needs it, and Debian ships it apart
    except ImportError:
        problems.append("Python's venv is missing: apt-get install python3-venv")
    return problems


def missing_of_java() -> "list[str]":
    problems = []
    version = java_version()
    if version is None:
        problems.append("no Java compiler (javac): apt-get install openjdk-17-jdk-headless | brew install openjdk@17")
    elif version < JAVA:
        problems.append(f"Java is {version}, {JAVA} is needed: apt-get install openjdk-17-jdk-headless")
    if shutil.which("mvn") is None and not os.environ.get("MVNW_REPOURL") and not has_fetched_maven():
        problems.append("no Maven (mvn): apt-get install maven | brew install maven (or MVNW_REPOURL, see ./mvnw)")
    return problems


if __name__ == "__main__":
    python_alone = "python" in sys.argv[1:]
    found = missing_of_python() + ([] if python_alone else missing_of_java())
    for problem in found:
        print(f"prerequisite: {problem}", file=sys.stderr)
    if not found and not python_alone:
        print("prerequisites: all are there (Python with venv, a JDK, Maven)")
    sys.exit(1 if found else 0)

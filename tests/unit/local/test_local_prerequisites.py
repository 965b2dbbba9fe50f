"""Each missing prerequisite is named together with the command that installs it."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from storm_operator.local import prerequisites
from storm_operator.local.prerequisites import (
    check_isolation,
    check_java,
    check_maven,
    check_python,
    java_major_version,
)

ROOT = Path(__file__).parents[3]
MVNW = ROOT / "mvnw"
AS_PYTHON_3_10 = """
import runpy, sys
sys.version_info, sys.version, sys.argv = (3, 10, 12), "3.10.12 (main)", sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
MAVEN = re.findall(r"^version=(.*)$", MVNW.read_text(), re.MULTILINE)[0]
TAR_THAT_IS_CUT_SHORT = f"""#!/bin/sh
for into; do :; done
mkdir -p "$into/apache-maven-{MAVEN}/bin"
: > "$into/apache-maven-{MAVEN}/bin/mvn"
chmod +x "$into/apache-maven-{MAVEN}/bin/mvn"
exit 1
"""


def everything(name: str) -> str | None:
    return f"/usr/bin/{name}"


def nothing(name: str) -> str | None:
    return None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ("gibberish", None),
    ],
)
def test_java_versions_old_and_new(text: str, version: int | None) -> None:
    assert java_major_version(text) == version


@pytest.mark.parametrize("text", [None, 'java version "1.8.0_402"', 'openjdk version "11.0.2"', "gibberish", ""])
def test_no_java_or_an_old_one_is_fatal(text: str | None) -> None:
    (missing,) = check_java(text, everything)
    assert missing.fatal
    assert "apt-get install openjdk-17" in str(missing)


def test_java_17_with_its_compiler_will_do_and_without_it_not() -> None:
    assert check_java('openjdk version "17.0.15"', everything) == ()
    assert "javac" in str(check_java('openjdk version "17.0.15"', nothing)[0])


def test_another_system_than_linux_is_told_before_anything_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else minutes later by its /proc, which is not there."""
    monkeypatch.setattr(sys, "platform", "darwin")
    first = prerequisites.missing_prerequisites()[0]
    assert first.fatal
    assert str(first).startswith("a local cluster needs Linux, and this is darwin. ")


def test_python_3_10_is_too_old() -> None:
    assert check_python((3, 11)) == check_python((3, 14)) == ()
    assert check_python((3, 10))[0].fatal


def test_maven_on_path_or_fetched_by_the_wrapper() -> None:
    assert check_maven(everything, wrapper_has_it=False) == check_maven(nothing, wrapper_has_it=True) == ()
    assert "apt-get install maven" in str(check_maven(nothing, wrapper_has_it=False)[0])


def test_what_only_isolation_needs_is_said_but_not_fatal() -> None:
    assert check_isolation(0, everything, has_tun=True) == ()
    for missing in (*check_isolation(1000, everything, True), *check_isolation(0, nothing, False)):
        assert not missing.fatal
    assert "iproute2" in str(check_isolation(0, nothing, True)[0])


@pytest.mark.parametrize("has_maven", [True, False], ids=["maven on PATH", "maven that the wrapper fetches"])
def test_make_prerequisites_says_in_a_line_that_all_is_there(tmp_path: Path, has_maven: bool) -> None:
    done = prerequisites_by_make(tmp_path, has_maven, {} if has_maven else {"MVNW_REPOURL": "https://maven.example"})
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert "all are there" in line


def test_make_prerequisites_names_what_is_missing_and_ends_with_1(tmp_path: Path) -> None:
    done = prerequisites_by_make(tmp_path, has_maven=False, environment={})
    assert (done.returncode, done.stdout) == (1, "")
    assert "no Maven (mvn): apt-get install maven" in done.stderr


def test_a_maven_that_the_wrapper_has_fetched_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs that one, also in a shell in which nobody says where to fetch it."""
    (fetched_maven(tmp_path) / "bin").mkdir(parents=True)
    (fetched_maven(tmp_path) / "bin" / "mvn").touch()
    assert prerequisites_by_make(tmp_path, has_maven=False, environment={}).returncode == 0
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "mvn" else f"/usr/bin/{name}")
    monkeypatch.delenv("MVNW_REPOURL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert [missing.what for missing in prerequisites.missing_prerequisites() if "Maven" in missing.what] == []


def test_a_maven_whose_unpacking_was_cut_short_is_fetched_anew(tmp_path: Path) -> None:
    """Its first file is there, most of the others are not: it would fail for ever after."""
    environment = environment_without_maven(tmp_path)
    programs = Path(environment["PATH"])
    whole_tar = (programs / "tar").readlink()
    (programs / "tar").unlink()
    (programs / "tar").write_text(TAR_THAT_IS_CUT_SHORT)
    (programs / "tar").chmod(0o755)
    assert run_mvnw(environment).returncode != 0

    (programs / "tar").unlink()
    (programs / "tar").symlink_to(whole_tar)
    done = run_mvnw(environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the whole of it: --version\n", "")
    assert [path.name for path in (tmp_path / "storm-operator").iterdir()] == [f"apache-maven-{MAVEN}"]


def test_what_an_earlier_mvnw_unpacked_in_part_is_fetched_anew(tmp_path: Path) -> None:
    """Moved beside it, the whole one would be in a folder in which nobody looks."""
    environment = environment_without_maven(tmp_path)
    (fetched_maven(tmp_path) / "lib").mkdir(parents=True)
    done = run_mvnw(environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the whole of it: --version\n", "")


def environment_without_maven(folder: Path) -> dict[str, str]:
    """With all else that `mvnw` runs, and a repository to fetch one from."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("chmod", "dirname", "gzip", "mkdir", "mktemp", "mv", "rm", "sh", "tar"):
        (programs / name).symlink_to(str(shutil.which(name)))
    (programs / "python3").symlink_to(sys.executable)
    repository = repository_with_maven(folder).as_uri()
    return {"PATH": str(programs), "XDG_CACHE_HOME": str(folder), "HOME": str(folder), "MVNW_REPOURL": repository}


def repository_with_maven(folder: Path) -> Path:
    """With an archive of a Maven that says what it is called with, and the archive's checksum."""
    (folder / "made").mkdir()
    (folder / "made" / "mvn").write_text('#!/bin/sh\necho "the whole of it: $*"\n')
    (folder / "made" / "mvn").chmod(0o755)
    archive = folder / "repository/org/apache/maven/apache-maven" / MAVEN / f"apache-maven-{MAVEN}-bin.tar.gz"
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder / "made" / "mvn", f"apache-maven-{MAVEN}/bin/mvn")
    archive.with_name(f"{archive.name}.sha512").write_text(hashlib.sha512(archive.read_bytes()).hexdigest())
    return folder / "repository"


def run_mvnw(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(MVNW), "--version"], env=environment, capture_output=True, text=True, check=False)


def fetched_maven(cache: Path) -> Path:
    return cache / "storm-operator" / f"apache-maven-{MAVEN}"


def test_a_python_that_is_too_old_makes_no_venv_and_is_named(tmp_path: Path) -> None:
    """A .venv that it had made would stay its own: a newer one that makes it anew leaves `bin/python` as it is."""
    old = tmp_path / "python3.10"
    old.write_text(f'#!/bin/sh\n[ "$2" = venv ] && mkdir .venv\nexec {sys.executable} -c \'{AS_PYTHON_3_10}\' "$@"\n')
    old.chmod(0o755)
    for name in ("Makefile", ".ci/prerequisites.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    command = ["make", "-C", str(tmp_path), f"PYTHON={old}"]
    for target in ("venv", "prerequisites"):
        done = subprocess.run([*command, target], capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "prerequisite: Python is 3.10.12, 3.11 or newer is needed" in done.stderr
    assert not (tmp_path / ".venv").exists()


def prerequisites_by_make(
    folder: Path, has_maven: bool, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """On a machine that has a JDK, and Maven or not."""
    for name, said in {"javac": "javac 17.0.15", **({"mvn": "Apache Maven"} if has_maven else {})}.items():
        (folder / name).write_text(f"#!/bin/sh\necho {said}\n")
        (folder / name).chmod(0o755)
    command = [sys.executable, str(ROOT / ".ci/prerequisites.py")]
    return subprocess.run(
        command,
        env={"PATH": str(folder), "XDG_CACHE_HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )

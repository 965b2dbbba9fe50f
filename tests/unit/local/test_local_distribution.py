"""Storm's home in an image: workers' class path has one order on every machine."""

from __future__ import annotations

import shutil
import zipfile
from email.parser import BytesHeaderParser
from pathlib import Path

import pytest

from storm_operator.local import distribution
from storm_operator.local.distribution import CLASS_PATHS, assemble_for_image, manifest_of
from storm_operator.local.paths import RESOURCES

FETCHED = {
    "lib": {"b.jar": "b", "c.jar": "c of daemons"},
    "lib-worker": {"c.jar": "c", "b.jar": "b", "a.jar": "a"},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`b` is the daemons' too, `a` only workers', and `c` another one than the daemons' of that name."""

    def fetch(pom: Path, into: Path) -> None:
        into.mkdir(parents=True)
        (folder,) = [folder for folder, name in CLASS_PATHS.items() if name == pom.name]
        for name, text in FETCHED[folder].items():
            (into / name).write_text(text)

    monkeypatch.setattr(distribution, "_copy_jars", fetch)
    assemble_for_image(tmp_path / "storm")
    return tmp_path / "storm"


def class_path_of(jar: Path) -> list[Path]:
    """As Java reads it: paths from the jar's own folder."""
    with zipfile.ZipFile(jar) as opened:
        manifest = opened.read("META-INF/MANIFEST.MF")
    headers = BytesHeaderParser().parsebytes(manifest.replace(b"\r\n ", b""))
    return [jar.parent / entry for entry in headers["Class-Path"].split(" ")]


def test_workers_have_one_jar_that_names_all_in_order(home: Path) -> None:
    (one,) = (home / "lib-worker").glob("*.jar")
    named = class_path_of(one)
    assert [jar.name for jar in named] == ["a.jar", "b.jar", "c.jar"]
    assert [jar.read_text() for jar in named] == ["a", "b", "c"]


def test_what_daemons_have_too_is_in_the_image_once(home: Path) -> None:
    named = class_path_of(home / "lib-worker" / "storm-worker.jar")
    assert {jar.name: jar.resolve() for jar in named if jar.is_symlink()} == {"b.jar": home / "lib" / "b.jar"}


def test_they_are_found_behind_a_link_to_the_folder_too(home: Path, tmp_path: Path) -> None:
    """The home of a rehearsal has such a link."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "lib-worker").symlink_to(home / "lib-worker")
    assert all(jar.is_file() for jar in class_path_of(tmp_path / "other" / "lib-worker" / "storm-worker.jar"))


@pytest.mark.parametrize("length", range(50, 150))
def test_no_line_of_a_manifest_is_longer_than_java_takes(length: int) -> None:
    names = ["x" * length, "y.jar"]
    manifest = manifest_of(names)
    lines = manifest.split("\r\n")
    assert max(len(line.encode()) + len("\r\n") for line in lines) <= 72
    assert (lines[0], lines[-1]) == ("Manifest-Version: 1.0", "")
    assert f"Class-Path: {' '.join(names)}\r\n" in manifest.replace("\r\n ", "")


@pytest.mark.parametrize("name", ["daemon-pom.xml", "worker-pom.xml", "cluster.xml", "worker.xml"])
def test_what_was_fetched_by_another_list_of_jars_or_logs_otherwise_is_not_used(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an upgrade: a jar that is new in the list would be missing for ever."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = distribution.distribution_dir()
    shutil.copytree(RESOURCES, tmp_path / "resources")
    monkeypatch.setattr(distribution, "RESOURCES", tmp_path / "resources")
    assert distribution.distribution_dir() == before
    (tmp_path / "resources" / name).write_text("<changed/>")
    assert distribution.distribution_dir() != before

"""The parts of the test cluster that need no cluster: builds, archives, prerequisites, addresses."""

from __future__ import annotations

import json
import shutil
import tarfile
import threading
from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from kube_cluster import KubeClusterError, binaries
from kube_cluster.archives import write_program_image
from kube_cluster.binaries import Program, ensure_programs, module_folder, obstacle, program_path, unbuilt
from kube_cluster.cache import one_at_a_time
from kube_cluster.images import sources_digest
from kube_cluster.layout import KubeLayout, read_layout, write_layout
from kube_cluster.node.cgroups import hierarchies
from kube_cluster.node.network import BLOCKS, choose_block
from kube_cluster.prerequisites import check_covered, check_programs, missing_packages

needs_go = pytest.mark.skipif(not shutil.which("go"), reason="NO BUILD TESTS: go is not on PATH")
GOOD = "package main\n\nfunc main() {}\n"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a Go module with one program, `tiny`, and a cache of the test's own."""
    module = tmp_path / "go" / "tiny"
    module.mkdir(parents=True)
    (module / "go.mod").write_text("module example.test/tiny\n\ngo 1.25\n")
    (module / "main.go").write_text(GOOD)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(binaries, "MODULES", tmp_path / "go")
    monkeypatch.setitem(binaries.PROGRAMS, "tiny", Program("tiny", "tiny", "."))
    return module


@needs_go
def test_a_program_is_built_once_for_each_content_of_its_module(tiny: Path) -> None:
    said: list[str] = []
    ensure_programs(["tiny"], said.append)
    ensure_programs(["tiny"], said.append)
    assert [line.split(" in ")[0] for line in said] == ["building tiny", "built tiny"]
    first = program_path("tiny")
    assert first.stat().st_mode & 0o111
    (tiny / "main.go").write_text(GOOD + "// changed\n")
    assert program_path("tiny") != first
    assert unbuilt(["tiny"]) == ("tiny",)


@needs_go
def test_a_build_that_fails_says_why_and_leaves_nothing(tiny: Path) -> None:
    (tiny / "main.go").write_text("package main\n\nfunc main() { undefined() }\n")
    with pytest.raises(KubeClusterError, match="undefined: undefined"):
        ensure_programs(["tiny"])
    assert list(program_path("tiny").parent.iterdir()) == []


@needs_go
def test_of_two_at_once_the_second_waits_and_finds_it_built(tiny: Path) -> None:
    said: list[str] = []
    waits = threading.Event()

    def say(sentence: str) -> None:
        said.append(sentence)
        waits.set()

    second = threading.Thread(target=ensure_programs, args=(["tiny"], say))
    with one_at_a_time("tiny", lambda _: None):
        second.start()
        assert waits.wait(60)
        program_path("tiny").parent.mkdir(parents=True)
        program_path("tiny").touch()
    second.join()
    assert said == ["waiting: another process is building tiny"]


def test_without_go_the_obstacle_is_told(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: str) -> None:
        return None

    monkeypatch.setattr("kube_cluster.binaries.shutil.which", nothing)
    assert obstacle(["tiny"]) == "tiny must be built, and go is not on PATH. Remedy: install Go 1.26 or newer"
    with pytest.raises(KubeClusterError, match="go is not on PATH"):
        ensure_programs(["tiny"])
    program_path("tiny").parent.mkdir(parents=True)
    program_path("tiny").touch()
    assert obstacle(["tiny"]) is None


@needs_go
def test_kwoks_stages_are_found() -> None:
    stages = module_folder("kwok", "sigs.k8s.io/kwok") / "kustomize" / "stage"
    assert (stages / "pod" / "fast" / "kustomization.yaml").is_file()


def test_a_program_becomes_an_image(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_bytes(b"content")
    write_program_image(program, "localhost/tool:1", tmp_path / "image.tar")
    with tarfile.open(tmp_path / "image.tar") as archive:

        def member(name: str) -> bytes:
            found = archive.extractfile(name)
            assert found is not None
            return found.read()

        [manifest] = json.loads(member("manifest.json"))
        config = json.loads(member(manifest["Config"]))
        (tmp_path / "layer.tar").write_bytes(member(manifest["Layers"][0]))
    assert manifest["RepoTags"] == ["localhost/tool:1"]
    assert config["config"]["Entrypoint"] == ["/tool"]
    with tarfile.open(tmp_path / "layer.tar") as layer:
        assert [(entry.name, entry.mode, entry.size) for entry in layer] == [("tool", 0o755, 7)]


def only(*present: str) -> Callable[[str], str | None]:
    return lambda program: program if program in present else None


def test_what_is_missing_is_named_with_the_command_that_installs_it() -> None:
    [missing] = check_programs({"ctr": "containerd", "containerd": "containerd", "nft": "nftables"}, only("nft"))
    assert str(missing) == ("not found: ctr, containerd. Remedy: apt-get install --no-install-recommends containerd")
    assert check_programs({"nft": "nftables"}, only("nft")) == ()
    assert {"containerd", "runc", "containernetworking-plugins", "buildah"} <= set(missing_packages(only()))


def test_folders_that_the_node_covers_are_refused() -> None:
    assert check_covered([Path("/home/somebody/.cache")]) == ()
    [missing] = check_covered([Path("/var/lib/somebody/.cache")])
    assert "/var/lib/somebody/.cache is inside /var/lib" in missing.what


def test_addresses_avoid_what_the_machine_routes_elsewhere() -> None:
    first = choose_block("mine", [])
    assert choose_block("mine", [IPv4Network(f"10.{first}.7.0/24")]) != first
    with pytest.raises(KubeClusterError, match="no free address block"):
        choose_block("mine", [IPv4Network(f"10.{block}.0.0/16") for block in BLOCKS])


def test_hierarchies_of_both_versions_are_found() -> None:
    mounts = (
        "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
        "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
        "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
    )
    assert hierarchies(mounts) == (
        ("cgroup", Path("/sys/fs/cgroup/cpu")),
        ("cgroup2", Path("/sys/fs/cgroup/unified")),
    )


def test_a_layout_survives_its_state_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    layout = KubeLayout("mine", True, 201, 6443, owner_pid=7, kept_logs_dir=tmp_path / "logs")
    assert read_layout("mine") is None
    write_layout(layout)
    assert read_layout("mine") == layout
    assert layout.root == tmp_path / "storm-operator" / "kube.mine"


def test_images_are_of_the_dockerfile_and_of_what_it_copies(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM a AS b\nCOPY one.txt folder \\\n  /there/\nCOPY --from=b /opt/b /opt\n")
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "deep" / "run.sh").write_text("true")
    (tmp_path / "one.txt").write_text("one")
    seen = {sources_digest(tmp_path)}

    def changes(path: str, content: str) -> bool:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content)
        digest = sources_digest(tmp_path)
        changed = digest not in seen
        seen.add(digest)
        return changed

    assert not changes("tests.txt", "not copied")
    assert not changes("folder/deep/__pycache__/run.pyc", "made by running")
    assert changes("one.txt", "two")
    assert changes("folder/deep/run.sh", "false")
    assert changes("folder/new.txt", "")
    assert changes("Dockerfile", (tmp_path / "Dockerfile").read_text() + "USER 1\n")
    (tmp_path / "folder" / "deep" / "run.sh").chmod(0o755)
    assert sources_digest(tmp_path) not in seen

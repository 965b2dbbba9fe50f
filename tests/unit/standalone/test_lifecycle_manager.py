"""The lifecycle manager: one step a pass, failures said once and retried ever more slowly."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from storm_operator.core.lifecycle import RunningTopology
from storm_operator.core.topology_spec import AdoptSource, JarSource, TopologySpec
from storm_operator.jvm_submitter import JvmSubmitter, source_fingerprint
from storm_operator.lifecycle_manager import FIRST_RETRY_SECONDS, LifecycleManager


@dataclass
class FakeStorm:
    topologies: list[RunningTopology] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def running(self) -> tuple[RunningTopology, ...]:
        return tuple(self.topologies)

    def activate(self, topology_id: str) -> None:
        self.calls.append(f"activate {topology_id}")

    def deactivate(self, topology_id: str) -> None:
        self.calls.append(f"deactivate {topology_id}")

    def kill(self, name: str, wait_seconds: int) -> None:
        self.calls.append(f"kill {name}")


def jar(path: Path, content: str = "1") -> str:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("content", content)
    return str(path)


def test_jar_that_is_none_is_said_once_and_retried_slowly(tmp_path: Path) -> None:
    said: list[str] = []
    broken = tmp_path / "broken.jar"
    broken.write_text("not a jar")
    specs = {"words": TopologySpec("words", JarSource(str(broken), "a.B"))}
    manager = LifecycleManager(FakeStorm(), JvmSubmitter(None), said.append)
    for now in (0.0, 1.0, FIRST_RETRY_SECONDS + 1, FIRST_RETRY_SECONDS + 2):
        manager.step(specs, now)
    assert len(said) == 1
    assert "broken.jar" in said[0]
    assert manager.retries["words"].pause_seconds == 2 * FIRST_RETRY_SECONDS


def test_one_broken_topology_does_not_stop_the_others(tmp_path: Path) -> None:
    storm = FakeStorm([RunningTopology("ok-1", "ok", "ACTIVE")])
    specs = {
        "broken": TopologySpec("broken", JarSource(str(tmp_path / "absent.jar"), "a.B")),
        "ok": TopologySpec("ok", AdoptSource(), suspend=True),
    }
    LifecycleManager(storm, JvmSubmitter(None), lambda _: None).step(specs, 0.0)
    assert storm.calls == ["deactivate ok-1"]


def test_changed_jar_kills_the_old_topology_and_the_same_jar_does_not(tmp_path: Path) -> None:
    path = tmp_path / "a.jar"
    spec = TopologySpec("words", JarSource(jar(path), "a.B"))
    storm = FakeStorm([RunningTopology("words-1", "words", "ACTIVE", source_fingerprint(spec))])
    manager = LifecycleManager(storm, JvmSubmitter(None), lambda _: None)
    manager.step({"words": spec}, 0.0)
    assert storm.calls == []
    jar(path, "2")
    manager.step({"words": spec}, 1.0)
    assert storm.calls == ["kill words"]

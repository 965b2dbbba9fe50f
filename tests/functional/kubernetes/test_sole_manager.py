"""One manager of a Storm cluster, with a real ZooKeeper: another name of Nimbus, another release, a standalone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import eventually

from fake_zookeeper import QUEUE
from operator_scene import OperatorProcess, Scene
from storm_operator.adapters.manager_lock import decode_holder
from storm_operator.adapters.zookeeper import ZooKeeperSession

pytestmark = pytest.mark.functional


def other_name_of(nimbus: str) -> str:
    """The same address as 10.N, or 127.N: no IP address to the operator, and one to the resolver."""
    host, port = nimbus.rsplit(":", 1)
    first, *rest = map(int, host.split("."))
    return f"{first}.{int.from_bytes(bytes(rest), 'big')}:{port}"


def why_degraded(scene: Scene, name: str) -> str | None:
    return scene.condition(name, "Degraded").get("reason")


def holders(scene: Scene) -> list[str]:
    """The lock's queue, first the one that manages."""
    session = ZooKeeperSession(scene.storm.zookeeper)
    try:
        contents = [session.get(f"{QUEUE}/{name}") for name in session.children(QUEUE)]
        return [str(decode_holder(QUEUE, content)) for content in contents if content is not None]
    finally:
        session.close()


def standalone_refused(scene: Scene, folder: Path) -> str:
    """What a standalone on the same cluster says, and ends."""
    program = [sys.executable, "-m", "storm_operator", "standalone", str(folder), "--page-port", "0"]
    program += ["--nimbus", scene.nimbus, "--zookeeper", scene.storm.zookeeper]
    environment = os.environ | {"COLUMNS": "300"}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1, done.stdout
    return done.stdout


def test_of_all_that_would_manage_a_cluster_one_does_and_the_next_takes_over(
    scene: Scene, operator: OperatorProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.apply(scene.topology("one-name", adopt={}))
    eventually(lambda: why_degraded(scene, "one-name") == "AsExpected", "it is managed")
    scene.apply(scene.topology("another", adopt={}, nimbus=other_name_of(scene.nimbus)))
    eventually(lambda: why_degraded(scene, "another") == "ManagedByAnother", "both names are of one cluster")
    assert f"managed as {scene.nimbus} already" in scene.condition("another", "Degraded")["message"]
    assert scene.events("another", "ManagedByAnother")
    assert operator.process is not None
    assert f"already: pid {operator.process.pid} on" in standalone_refused(scene, tmp_path)
    assert why_degraded(scene, "one-name") == "AsExpected"

    scene.delete("one-name")
    eventually(lambda: scene.is_gone("one-name"), "the resource is gone, and its loop ends")
    eventually(lambda: why_degraded(scene, "another") == "AsExpected", "the other loop begins")

    monkeypatch.setenv("POD_NAME", "second-0")
    with OperatorProcess(scene.kube, scene.namespace, tmp_path / "second.log", lease="second") as second:
        eventually(lambda: "another operator manages the Storm cluster" in second.said(), "it finds the first one")
        operator.end(signal.SIGTERM)
        eventually(lambda: holders(scene) == [f"pod {scene.namespace}/second-0"], "the second release takes over")
        assert f"already: pod {scene.namespace}/second-0; end" in standalone_refused(scene, tmp_path)
        scene.delete("another")
        eventually(lambda: scene.is_gone("another"), "the resource is gone")
    assert holders(scene) == []

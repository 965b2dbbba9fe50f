"""StormTopology resources on a real API server, carried out on a real Storm cluster by the operator's own process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually

from operator_scene import Approver, OperatorProcess, PlayedKubelet, Scene
from page_truth import asked_of, tells_the_truth
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.plan_store import PlanStore
from storm_operator.adapters.zookeeper import ZooKeeperSession
from storm_operator.kube.rebalances import ASK_ANNOTATION
from storm_operator.kube.run_command import LOST_LEADERSHIP

pytestmark = pytest.mark.functional


@pytest.fixture
def nimbus(scene: Scene) -> Iterator[NimbusClient]:
    client = NimbusClient([scene.nimbus])
    yield client
    client.close()


def status_in_storm(nimbus: NimbusClient, name: str) -> str | None:
    topology = nimbus.cluster_info().topology_named(name)
    return topology.status if topology else None


def test_topology_is_submitted_planned_verified_suspended_and_deleted(
    scene: Scene, operator: OperatorProcess, nimbus: NimbusClient
) -> None:
    scene.apply(scene.topology("words"))
    eventually(lambda: scene.status("words").get("phase") == "Running", "it runs")
    assert status_in_storm(nimbus, "words") == "ACTIVE"

    # While loads settle a first plan may bring together only a part.
    verified = eventually(
        lambda: brought_together(scene), "plans are made, applied and verified until no tuple travels"
    )
    assert verified["spec"]["moveCount"] == len(verified["spec"]["moves"]) > 0
    assert verified["status"]["secondsToInForce"] > 0
    assert verified["status"]["approvedBy"] == "auto"
    assert verified["metadata"]["ownerReferences"][0]["name"] == "words"
    ready = eventually(lambda: scene.condition("words", "Ready").get("status") == "True", "it is ready")
    assert ready
    eventually(lambda: scene.status("words").get("interSupervisorTuplesPerSecond") == 0.0, "the status has figures")
    eventually(lambda: scene.status("words").get("supervisorsUsed") == 1, "the status has its one supervisor")
    eventually(lambda: scene.status("words").get("lastPlan", {}).get("state") == "Verified", "the status has its plan")
    page = operator.page
    tells_the_truth(page, nimbus, "words")
    assert asked_of(page, "clusters")["clusters"][0]["name"] == scene.nimbus
    assert asked_of(page, "clusters")["approval"] == "off"

    scene.apply(scene.topology("words", suspend=True))
    eventually(lambda: status_in_storm(nimbus, "words") == "INACTIVE", "its spouts are deactivated")
    eventually(lambda: scene.status("words").get("phase") == "Suspended", "the status says so")
    assert scene.condition("words", "Ready")["reason"] != "Running"
    scene.apply(scene.topology("words"))
    eventually(lambda: status_in_storm(nimbus, "words") == "ACTIVE", "its spouts are active again")

    scene.delete("words")
    eventually(lambda: scene.is_gone("words"), "the resource is gone")
    eventually(lambda: status_in_storm(nimbus, "words") is None, "the topology is gone")
    eventually(lambda: not scene.rebalances(), "its plans are gone with it")
    session = ZooKeeperSession(scene.storm.zookeeper)
    kept = [name for name in PlanStore(session).planned_topologies() if name.startswith("words-")]
    session.close()
    assert kept == [], "nothing is left in ZooKeeper"


def brought_together(scene: Scene) -> dict[str, Any]:
    """A verified plan after which no tuple travels between supervisors; empty when there is none."""
    for body in scene.rebalances("Verified"):
        if body["status"]["measured"].get("after", {}).get("interSupervisorTuplesPerSecond") == 0.0:
            return body
    return {}


def test_exactly_the_approved_plan_is_carried_out_and_can_be_taken_back(
    scene: Scene, operator: OperatorProcess
) -> None:
    scene.apply(scene.topology("asked", scheduling={"approval": {"mode": "Manual"}}))
    (first,) = eventually(lambda: scene.rebalances("Proposed"), "a plan is proposed")
    assert "Manual" in first["status"]["message"]
    ask(scene, first, "refresh")
    eventually(lambda: status_of(scene, first).get("state") == "Expired", "it is withdrawn")
    eventually(lambda: scene.rebalances("Proposed"), "it is proposed anew")

    approver = Approver(scene)
    (verified,) = eventually(lambda: approver.rebalances("Verified"), "what is approved is carried out and verified")
    assert verified["metadata"]["name"] != first["metadata"]["name"]
    begun = [body for body in scene.rebalances() if "applying" in body["status"].get("times", {})]
    # One that could not be judged on a busy machine is over before the next is approved.
    judged = [body["metadata"]["name"] for body in begun if body["status"]["state"] != "Expired"]
    assert judged == [verified["metadata"]["name"]], "no other was begun"
    for body in begun:
        assert body["spec"] == approver.approved[body["metadata"]["name"]]["spec"]
        assert body["status"]["approvedBy"] == "annotation (kubectl-annotate)"
    times = verified["status"]["times"]
    assert times["proposed"] <= times["approved"] <= times["applying"] <= times["inForce"] <= times["finished"]
    assert ASK_ANNOTATION not in verified["metadata"].get("annotations", {})

    ask(scene, verified, "rollback")
    (undone,) = eventually(lambda: scene.rebalances("RolledBack"), "the way back is carried out")
    (back,) = eventually(lambda: scene.rebalances("Verified"), "what took it back is verified")
    assert back["status"]["rollbackOf"] == undone["metadata"]["name"] == verified["metadata"]["name"]
    back_by = back["metadata"]["name"]
    eventually(lambda: status_of(scene, undone).get("rolledBackBy") == back_by, "what was taken back names what did it")
    assert back["spec"]["planHash"] == verified["spec"]["baseHash"]
    assert back["spec"]["baseHash"] == verified["spec"]["planHash"]
    scene.delete("asked")
    eventually(lambda: scene.is_gone("asked"), "the resource is gone")


def test_rejected_plan_is_not_proposed_again(scene: Scene, operator: OperatorProcess) -> None:
    scene.apply(scene.topology("refused", scheduling={"mode": "Recommend"}))
    eventually(lambda: scene.rebalances("Proposed"), "a plan is recommended")
    eventually(lambda: "not understood" in asked_of_present(scene, "perhaps"), "a word that is none is answered")
    eventually(lambda: asked_of_present(scene, "reject") and scene.rebalances("Rejected"), "it is rejected")
    eventually(lambda: scene.status("refused").get("lastHold", {}).get("reason") == "KnownBad", "it is remembered")
    assert not scene.rebalances("Proposed")
    scene.delete("refused")
    eventually(lambda: scene.is_gone("refused"), "the resource is gone")


def ask(scene: Scene, rebalance: dict[str, Any], what: str) -> None:
    scene.annotate("stormrebalance", rebalance["metadata"]["name"], f"{ASK_ANNOTATION}={what}")


def asked_of_present(scene: Scene, what: str) -> str:
    """Ask it of whatever is proposed now: on a busy machine one proposal follows another. What has been answered."""
    present = scene.rebalances("Proposed")
    for proposed in present:
        ask(scene, proposed, what)
    return " ".join(["asked", *(str(one["status"].get("message", "")) for one in present)])


def status_of(scene: Scene, rebalance: dict[str, Any]) -> dict[str, Any]:
    now = scene.get("stormrebalances", rebalance["metadata"]["name"])
    return dict(now["status"]) if now else {}


def test_replica_that_waits_takes_over_from_one_that_stands_still_and_the_two_never_act_together(
    scene: Scene, kubelet: PlayedKubelet, nimbus: NimbusClient, tmp_path: Path
) -> None:
    first = OperatorProcess(scene.kube, scene.namespace, tmp_path / "first.log")
    second = OperatorProcess(scene.kube, scene.namespace, tmp_path / "second.log")
    first.start()
    try:
        eventually(lambda: "starts as" in first.said(), "the first replica starts")
        scene.apply(scene.topology("shared", scheduling={"mode": "Observe"}))
        eventually(lambda: scene.status("shared").get("phase") == "Running", "it runs")
        second.start()
        eventually(lambda: "another replica holds lease" in second.said(), "the second replica waits")
        topology = nimbus.cluster_info().topology_named("shared")
        assert topology is not None
        submissions = len(kubelet.started)

        first.signal(signal.SIGSTOP)
        scene.apply(scene.topology("shared", scheduling={"mode": "Observe"}, suspend=True))
        eventually(lambda: status_in_storm(nimbus, "shared") == "INACTIVE", "the second replica acts")
        assert len(kubelet.started) == submissions
        again = nimbus.cluster_info().topology_named("shared")
        assert again is not None
        assert again.id == topology.id

        said_before = first.said()
        first.signal(signal.SIGCONT)
        eventually(lambda: first.has_ended, "the first replica ends as soon as it finds how late it is")
        said_since = first.said().removeprefix(said_before)
        assert first.end(signal.SIGKILL) == LOST_LEADERSHIP
        assert "so that two never act together" in said_since
        assert "shared" not in said_since, "it did nothing more for the topology"
        second.wait_for_passes(1)
        assert status_in_storm(nimbus, "shared") == "INACTIVE"
        assert len(kubelet.started) == submissions
        scene.delete("shared")
        eventually(lambda: scene.is_gone("shared"), "the resource is gone")
    finally:
        first.end(signal.SIGKILL)
        second.end(signal.SIGTERM)


def test_what_cannot_work_says_why_and_stays_deletable(scene: Scene, operator: OperatorProcess) -> None:
    scene.apply(scene.topology("lost", nimbus="127.0.0.1:1"))
    eventually(lambda: scene.condition("lost", "Degraded").get("reason") == "ClusterUnreachable", "it is degraded")
    assert "127.0.0.1:1" in scene.condition("lost", "Degraded")["message"]

    broken = scene.topology("broken")
    broken["spec"]["jar"]["mainClass"] = "does.not.Exist"
    scene.apply(broken)
    eventually(lambda: scene.condition("broken", "Degraded").get("reason") == "SubmissionFailed", "it says so")

    scene.apply(scene.topology("twin", topologyName="broken"))
    eventually(lambda: scene.condition("twin", "Degraded").get("reason") == "NameTaken", "the older one has the name")

    for name in ("twin", "broken", "lost"):
        scene.delete(name)
    for name in ("twin", "broken", "lost"):
        eventually(lambda name=name: scene.is_gone(name), f"{name} is gone")  # type: ignore[misc]

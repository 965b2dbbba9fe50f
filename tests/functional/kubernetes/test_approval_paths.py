"""A plan's ways between proposal and force, on a real API server and a real Storm: conditions, windows, expiry."""

from __future__ import annotations

from typing import Any

import pytest
from eventually import eventually

from operator_scene import Approver, OperatorProcess, PlayedKubelet, Scene, word_count_args
from storm_by_hand import StormByHand
from storm_operator.kube.rebalances import FINAL_STATES

pytestmark = pytest.mark.functional

NAME = "careful"
NO_RESTART = {"approval": {"autoApproveWhen": {"maximumRestartedWorkers": 0}}}
FEW_RESTARTS = {"approval": {"autoApproveWhen": {"maximumRestartedWorkers": 4}}}
ALWAYS_EXCLUDED = {"excludedWindows": [{"cron": "* * * * *", "durationSeconds": 3600}]}
KILL_WAIT_SECONDS = 6


def wish(scene: Scene, scheduling: dict[str, Any], **spec: Any) -> dict[str, Any]:
    # What was needed lately is soon forgotten: the load asks for fewer executors at once.
    return scene.topology(NAME, scheduling={"peakSeconds": 1, "roomPeakSeconds": 1, **scheduling}, **spec)


def is_spread(by_hand: StormByHand) -> bool:
    return len({slot.supervisor_id for slot in by_hand.assignment(NAME).slot_of.values()}) > 1


def waiting(scene: Scene) -> dict[str, Any]:
    """The plan that waits for a person; empty when there is none. While loads settle one supersedes the other."""
    return next(iter(scene.rebalances("Proposed")), {})


def is_outdated(scene: Scene) -> bool:
    words = "executors are no longer where the plan would move them from"
    return any(words in body["status"]["message"] for body in scene.rebalances("Expired"))


def held(scene: Scene) -> str:
    return str((scene.status(NAME).get("heldResize") or {}).get("reason"))


def test_plans_wait_for_conditions_windows_and_people_and_expire(
    scene: Scene, kubelet: PlayedKubelet, by_hand: StormByHand, operator: OperatorProcess
) -> None:
    auto = {"parallelism": {"mode": "Auto"}}
    scene.apply(wish(scene, NO_RESTART, **auto))
    first = eventually(lambda: waiting(scene), "a plan that misses a condition waits")
    assert "up to 0 need no approval" in first["status"]["message"]
    eventually(lambda: held(scene) == "AwaitingApproval", "what the load asks for waits as well")

    by_hand.scatter(NAME)
    eventually(lambda: is_outdated(scene), "the world has moved on")
    eventually(lambda: waiting(scene), "another is proposed from where they are now")

    scene.apply(wish(scene, NO_RESTART | ALWAYS_EXCLUDED, **auto))
    eventually(lambda: scene.status(NAME).get("lastHold", {}).get("reason") == "ExcludedWindow", "the window is seen")
    eventually(lambda: waiting(scene), "the plan still waits")
    approver = Approver(scene)
    (second,) = eventually(lambda: approver.rebalances("Approved"), "the plan is approved")
    assert second["spec"]["baseHash"] != first["spec"]["baseHash"]
    operator.wait_for_passes(3)
    assert [body["metadata"]["name"] for body in scene.rebalances("Approved")] == [second["metadata"]["name"]]
    assert is_spread(by_hand), "nothing moves in the window"

    scene.apply(wish(scene, FEW_RESTARTS, **auto))
    (verified,) = eventually(lambda: scene.rebalances("Verified"), "it is carried out after the window")
    assert verified["metadata"]["name"] == second["metadata"]["name"]
    assert verified["status"]["approvedBy"].startswith("annotation")
    assert not is_spread(by_hand)

    by_hand.scatter(NAME)
    eventually(lambda: len(scene.rebalances("Verified")) == 2, "a plan that meets the condition waits for nobody")
    (third,) = [body for body in scene.rebalances("Verified") if body["metadata"]["name"] != second["metadata"]["name"]]
    assert third["status"]["approvedBy"] == "auto"
    assert by_hand.executor_counts(NAME)["split"] == 2, "with a condition, the load alone changes no number"

    scene.apply(wish(scene, {}, rebalanceHistoryLimit=1, **auto))
    eventually(lambda: by_hand.executor_counts(NAME)["split"] == 1, "without any, mode Auto alone does")
    finished = eventually(lambda: finished_or_none(scene, 1), "the history is cut to its limit")
    assert first["metadata"]["name"] not in finished
    assert second["metadata"]["name"] not in finished

    replaced_by_other_arguments(scene, kubelet, by_hand)
    scene.delete(NAME)
    eventually(lambda: scene.is_gone(NAME), "the resource is gone")


def finished_or_none(scene: Scene, count: int) -> list[str]:
    """Names of the plans that are over, once there are so many."""
    names = [b["metadata"]["name"] for b in scene.rebalances() if (b.get("status") or {}).get("state") in FINAL_STATES]
    return names if len(names) == count else []


def replaced_by_other_arguments(scene: Scene, kubelet: PlayedKubelet, by_hand: StormByHand) -> None:
    known, submissions = by_hand.id_of(NAME), len(kubelet.started)
    changed = wish(scene, {"mode": "Observe"}, killWaitSeconds=KILL_WAIT_SECONDS)
    changed["spec"]["jar"]["args"] = word_count_args(NAME, rate=40)
    scene.apply(changed)
    eventually(lambda: by_hand.is_another(NAME, known), "it is submitted anew")
    assert len(kubelet.started) == submissions + 1
    eventually(lambda: scene.status(NAME).get("topologyId") == by_hand.id_of(NAME), "the status has the new one")
    nimbus_log = (scene.storm.logs_dir / "nimbus.log").read_text(errors="replace")
    waits = [line for line in nimbus_log.splitlines() if "Delaying event" in line and line.endswith(known)]
    assert f" for {KILL_WAIT_SECONDS} secs " in waits[-1], "spouts are given the time that was asked for"

"""A supervisor dies while the plan that filled it settles: the plan says so, and the next one goes around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from eventually import eventually

from operator_scene import OperatorProcess, Scene
from storm_by_hand import StormByHand

pytestmark = pytest.mark.functional

NAME = "bereft"
YET_TO_PLACE = f"not running, since Storm has yet to place them: 6 executors of {NAME}"


@pytest.fixture
def stopped(scene: Scene) -> Iterator[list[str]]:
    """Names of machines whose supervisors are to run again afterwards."""
    machines: list[str] = []
    yield machines
    for machine in machines:
        scene.storm.start_supervisor(machine)
    scene.storm.wait_ready()


def hosts_of(rebalance: dict[str, Any]) -> set[str]:
    """Where the plan brings executors."""
    return {move["to"].rpartition(":")[0] for move in rebalance["spec"]["moves"]}


def expired_plans(scene: Scene) -> dict[str, dict[str, Any]]:
    """By name."""
    return {body["metadata"]["name"]: body for body in scene.rebalances("Expired")}


def test_plan_that_loses_its_supervisor_expires_and_is_planned_around(
    scene: Scene, by_hand: StormByHand, operator: OperatorProcess, stopped: list[str]
) -> None:
    scene.apply(scene.topology(NAME, scheduling={"mode": "Observe"}))
    eventually(lambda: scene.status(NAME).get("phase") == "Running", "it runs")
    by_hand.scatter(NAME)
    scene.apply(scene.topology(NAME, scheduling={"settlingSeconds": 600}))
    (settling,) = eventually(lambda: scene.rebalances("Settling"), "a plan is in force")
    # On a busy machine a worker that just started may look too large for one supervisor: then two are filled.
    machine = next(one for one in scene.storm.machines if one.host in hosts_of(settling))
    lost = by_hand.supervisor_on(machine.host)

    stopped.append(machine.name)
    scene.storm.stop_supervisor(machine.name)
    name = settling["metadata"]["name"]
    eventually(lambda: name in expired_plans(scene), "it is not waited for")
    assert f"lost {lost}" in expired_plans(scene)[name]["status"]["message"]
    # Nimbus takes for alive what it has placed less than two minutes ago.
    eventually(lambda: YET_TO_PLACE in scene.status(NAME)["lastHold"]["message"], "that nothing runs so long is told")
    (around,) = eventually(lambda: scene.rebalances("Settling"), "the next plan is in force")
    assert machine.host not in hosts_of(around)
    assert lost not in {slot.supervisor_id for slot in by_hand.assignment(NAME).slot_of.values()}
    scene.delete(NAME)
    eventually(lambda: scene.is_gone(NAME), "the resource is gone")

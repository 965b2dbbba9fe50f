"""The operator's process is killed in the middle of a plan, at each step: its next life finishes that very plan."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually

from operator_scene import Approver, OperatorProcess, PlayedKubelet, Scene
from storm_by_hand import StormByHand
from storm_operator.core.model import WorkerSlot
from storm_operator.kube.rebalances import ASK_ANNOTATION

pytestmark = pytest.mark.functional

NAME = "mortal"
REBALANCE_STEPS = {
    "journal written": "after:PlanJournal.save:1",
    "shown as StormRebalance": "after:OwnKinds.create:1",
    "CPU limits raised": "after:CpuLimits.raise_for:1",
    "plan written": "after:PlanStore.write_plan:1",
    "Nimbus asked": "after:StormCluster.rebalance:1",
    "in force, not noted": "before:PlanJournal.save:2",
    "supervisors told": "after:StormCluster.tell_supervisors:1",
    "running, not noted": "before:PlanJournal.save:3",
    "settling": "after:PlanJournal.save:3",
    "verified, told to nobody": "after:PlanJournal.save:4",
    "verified, journal not cleared": "before:PlanJournal.clear:1",
}
DRAIN_STEPS = {
    "spouts paused": "after:StormCluster.deactivate:1",
    "moved, spouts not resumed": "before:StormCluster.activate:1",
}
UNNOTED_STEPS = {"plan written", "Nimbus asked", "in force, not noted"}
"""The plan comes into force while there is no operator: how long that takes nobody sees."""
UNWATCHED_STEPS = UNNOTED_STEPS | {"supervisors told", "running, not noted", "moved, spouts not resumed"}
"""Nor how long executors take until they run."""
STEPS = [("Rebalance", step) for step in REBALANCE_STEPS] + [("Drain", step) for step in DRAIN_STEPS]

Start = Callable[..., OperatorProcess]


@pytest.fixture(scope="module")
def lives() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def start(scene: Scene, kubelet: PlayedKubelet, lives: Iterator[int], tmp_path: Path) -> Iterator[Start]:
    """Starts an operator. A lease for each life: nobody needs to wait until that of a dead one lapses."""
    started: list[OperatorProcess] = []

    def start(dies_at: str | None = None) -> OperatorProcess:
        life = next(lives)
        log = tmp_path / f"life-{life}.log"
        operator = OperatorProcess(scene.kube, scene.namespace, log, dies_at=dies_at, lease=f"life-{life}")
        operator.start()
        started.append(operator)
        return operator

    yield start
    for operator in started:
        operator.end(signal.SIGKILL)
        print(operator.said())  # noqa: T201 - pytest shows it where the test failed
    print(scene.status(NAME).get("lastHold"))  # noqa: T201 - likewise


@pytest.fixture(scope="module")
def mortal(
    scene: Scene, kubelet: PlayedKubelet, by_hand: StormByHand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A topology that runs, submitted by an operator that has ended since; its id."""
    log = tmp_path_factory.mktemp("operator") / "log"
    with OperatorProcess(scene.kube, scene.namespace, log):
        scene.apply(scene.topology(NAME, scheduling={"mode": "Observe"}))
        eventually(lambda: scene.status(NAME).get("phase") == "Running", "it runs")
    yield by_hand.id_of(NAME)
    with OperatorProcess(scene.kube, scene.namespace, log):
        scene.delete(NAME)
        eventually(lambda: scene.is_gone(NAME), "the resource is gone")


@pytest.fixture
def scattered(scene: Scene, by_hand: StormByHand, mortal: str) -> None:
    """Nothing is in progress, and a better place is to be found."""
    by_hand.clear_journal()
    scene.forget_plans()
    by_hand.scatter(NAME)


class Witness:
    """Sees which worker processes there are: one that has started is not to be started again by the same plan."""

    def __init__(self, by_hand: StormByHand) -> None:
        self._by_hand = by_hand
        self._before: Mapping[WorkerSlot, int] = {}
        self.seen: dict[WorkerSlot, set[int]] = {}

    def look(self) -> None:
        in_progress = self._by_hand.journal
        if in_progress is not None and in_progress.worker_pids_before:  # of a plan that is over nobody keeps them
            self._before = in_progress.worker_pids_before
        for slot, pid in self._by_hand.processes(NAME).items():
            self.seen.setdefault(slot, set()).add(pid)

    def restarted_twice(self) -> dict[WorkerSlot, set[int]]:
        """Slots with more than one process beside the one from before the plan."""
        started = {slot: pids - {self._before.get(slot, 0)} for slot, pids in self.seen.items()}
        return {slot: pids for slot, pids in started.items() if len(pids) > 1}


def scheduling(**fields: Any) -> dict[str, Any]:
    return {"mode": "Enforce", "minimumGainPercent": 20, "periodSeconds": 2, "settlingSeconds": 3, **fields}


def until_killed(operator: OperatorProcess, meanwhile: Callable[[], object] = lambda: None) -> None:
    def has_ended() -> bool:
        meanwhile()
        return operator.has_ended

    eventually(has_ended, "the operator is killed at its step")
    assert operator.end(signal.SIGKILL) == -signal.SIGKILL


@pytest.mark.parametrize(("method", "step"), STEPS, ids=[f"{method}: {step}" for method, step in STEPS])
def test_plan_in_progress_is_finished_and_not_begun_again(
    scene: Scene, kubelet: PlayedKubelet, by_hand: StormByHand, mortal: str, scattered: None, start: Start,
    method: str, step: str,
) -> None:  # fmt: skip
    scene.apply(
        scene.topology(
            NAME,
            # No plan is to follow at once that saves something more, and takes the place of the one that is looked for.
            scheduling=scheduling(applyMethod=method, coolDownSeconds=600),
            resources={"thetaMillicores": 50, "floorMillicores": 50, "enforcement": "Executor"},
        )
    )
    witness, submissions = Witness(by_hand), len(kubelet.started)
    until_killed(start(dies_at=(REBALANCE_STEPS | DRAIN_STEPS)[step]), witness.look)
    in_progress = by_hand.journal
    assert in_progress is not None, "no lost plan"
    shown = {body["metadata"]["name"] for body in scene.rebalances()}
    assert shown <= {in_progress.plan.id}

    start()

    def is_over() -> bool:
        witness.look()
        return bool(scene.rebalances("Verified")) and by_hand.journal is None

    eventually(is_over, "the next life finishes the plan")
    (only,) = scene.rebalances()
    assert only["metadata"]["name"] == in_progress.plan.id
    assert (only["status"].get("secondsToInForce", 0) > 0) is (step not in UNNOTED_STEPS)
    assert {"proposed", "inForce", "finished"} <= only["status"]["times"].keys()
    assert ("running" in only["status"]["times"]) is (step not in UNWATCHED_STEPS)
    assert by_hand.assignment(NAME).slot_of == in_progress.plan.target.slot_of
    assert witness.restarted_twice() == {}, "no second apply"
    assert len(kubelet.started) == submissions, "no second submission"
    assert by_hand.id_of(NAME) == mortal
    assert by_hand.status(NAME) == "ACTIVE"
    shown_last = eventually(lambda: verified_plan(scene), "the StormTopology tells of it")
    assert shown_last == in_progress.plan.id


def verified_plan(scene: Scene) -> str | None:
    last = scene.status(NAME).get("lastPlan", {})
    return last["id"] if last.get("state") == "Verified" else None


def test_approved_plan_is_carried_out_by_the_next_life(
    scene: Scene, by_hand: StormByHand, scattered: None, start: Start
) -> None:
    scene.apply(scene.topology(NAME, scheduling=scheduling(approval={"mode": "Manual"})))
    doomed = start(dies_at="before:PlanJournal.save:1")
    eventually(lambda: scene.rebalances("Proposed"), "a plan is proposed")
    approver = Approver(scene)
    until_killed(doomed, approver.approve)
    assert by_hand.journal is None
    approved = [body["metadata"]["name"] for body in scene.rebalances("Approved")]
    assert len(approved) == 1, "that it is approved has been written"

    start()
    (verified,) = eventually(lambda: scene.rebalances("Verified"), "it is carried out")
    # Some may have been superseded before their approval was heard.
    not_superseded = [body["metadata"]["name"] for body in scene.rebalances() if body["status"]["state"] != "Expired"]
    assert not_superseded == approved == [verified["metadata"]["name"]]
    assert verified["spec"] == approver.approved[approved[0]]["spec"]


def test_way_back_is_finished_and_what_it_undoes_is_not_proposed_again(
    scene: Scene, by_hand: StormByHand, scattered: None, start: Start
) -> None:
    before = by_hand.assignment(NAME)
    # One worker, wherever: there is no second arrangement to propose in its place.
    scene.apply(scene.topology(NAME, scheduling=scheduling(separation="Never")))
    doomed = start(dies_at="after:PlanJournal.save:5")  # four are the plan's, this is that of its way back
    (verified,) = eventually(lambda: scene.rebalances("Verified"), "a plan is carried out")
    scene.annotate("stormrebalance", verified["metadata"]["name"], f"{ASK_ANNOTATION}=rollback")
    until_killed(doomed)

    start()
    (undone,) = eventually(lambda: scene.rebalances("RolledBack"), "the way back is carried out")
    (back,) = eventually(lambda: scene.rebalances("Verified"), "what took it back is verified")
    assert back["status"]["rollbackOf"] == undone["metadata"]["name"] == verified["metadata"]["name"]
    assert by_hand.assignment(NAME).slot_of == before.slot_of
    eventually(lambda: scene.status(NAME).get("lastHold", {}).get("reason") == "KnownBad", "it is remembered")
    assert len(scene.rebalances()) == 2

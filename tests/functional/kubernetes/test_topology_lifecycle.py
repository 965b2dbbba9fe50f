"""What a StormTopology goes through besides plans: adopted, suspended, paused, tampered with, resized, in Flux."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from eventually import eventually

from operator_scene import WORD_COUNT, OperatorProcess, PlayedKubelet, Scene, word_count_args
from page_truth import not_as_described
from storm_by_hand import StormByHand
from storm_operator.core.model import Assignment
from storm_operator.core.topology_spec import PAUSED_ANNOTATION
from storm_operator.local.paths import repository_root

pytestmark = pytest.mark.functional

FOUND = "found"


@pytest.fixture
def found(scene: Scene, by_hand: StormByHand) -> Iterator[str]:
    """A topology that was there before the operator; its id."""
    by_hand.submit(scene.jar, WORD_COUNT, word_count_args(FOUND))
    yield by_hand.id_of(FOUND)
    by_hand.kill(FOUND)
    eventually(lambda: by_hand.status(FOUND) is None, "it is gone")


def run(scene: Scene, by_hand: StormByHand, name: str, **spec: object) -> str:
    """Let the operator submit a topology, and wait until Nimbus has placed it; its id."""
    scene.apply(scene.topology(name, **spec))  # type: ignore[arg-type]
    eventually(lambda: scene.status(name).get("phase") == "Running", "it runs")
    eventually(lambda: by_hand.whole_assignment(name), "it is placed")
    return by_hand.id_of(name)


def is_spread(assignment: Assignment) -> bool:
    return len({slot.supervisor_id for slot in assignment.slot_of.values()}) > 1


def drift(scene: Scene, name: str, words: str) -> bool:
    return any(words in event["message"] for event in scene.events(name, "Drift"))


def leave(scene: Scene, name: str) -> None:
    scene.delete(name)
    eventually(lambda: scene.is_gone(name), "the resource is gone")


def test_adopted_topology_is_managed_and_outlives_its_resource(
    scene: Scene, kubelet: PlayedKubelet, by_hand: StormByHand, found: str, operator: OperatorProcess, tmp_path: Path
) -> None:
    submissions = len(kubelet.started)
    scene.apply(scene.topology(FOUND, adopt={}))
    (verified,) = eventually(lambda: scene.rebalances("Verified"), "it is planned for")
    assert verified["spec"]["topologies"] == [found]
    assert not is_spread(by_hand.assignment(FOUND))

    scene.apply(scene.topology(FOUND, adopt={}, suspend=True))
    eventually(lambda: by_hand.status(FOUND) == "INACTIVE", "its spouts are deactivated")
    eventually(lambda: scene.status(FOUND).get("suspendedByOperator") is True, "that is written down")
    assert operator.end(signal.SIGKILL) == -signal.SIGKILL
    scene.apply(scene.topology(FOUND, adopt={}))
    with OperatorProcess(scene.kube, scene.namespace, tmp_path / "next.log", lease="next") as next_life:
        eventually(lambda: by_hand.status(FOUND) == "ACTIVE", "the next life resumes what the last one suspended")
        # The first life may have been killed before it wrote that it suspends: the phase alone may still be its.
        eventually(lambda: "suspendedByOperator" not in scene.status(FOUND), "the status says so")
        eventually(lambda: scene.status(FOUND).get("phase") == "Running", "and that it runs")

        by_hand.deactivate(FOUND)
        eventually(lambda: scene.status(FOUND).get("phase") == "Suspended", "that its owner paused it is seen")
        next_life.wait_for_passes(2)
        assert by_hand.status(FOUND) == "INACTIVE", "what its owner paused is left paused"
        assert "suspendedByOperator" not in scene.status(FOUND)
        by_hand.activate(FOUND)

        leave(scene, FOUND)
    assert by_hand.status(FOUND) == "ACTIVE"
    assert by_hand.id_of(FOUND) == found
    assert len(kubelet.started) == submissions


def test_drift_is_told_and_repaired(scene: Scene, by_hand: StormByHand, operator: OperatorProcess) -> None:
    name = "tampered"
    fixed = {"components": {"split": {"executors": 2}}}
    first = run(scene, by_hand, name, parallelism=fixed)
    eventually(lambda: scene.rebalances("Verified"), "it is placed")

    by_hand.deactivate(name)
    eventually(lambda: drift(scene, name, "deactivated by somebody else"), "that it was deactivated is told")
    eventually(lambda: by_hand.status(name) == "ACTIVE", "it is active again")

    by_hand.rebalance(name, {"split": 1})
    eventually(lambda: drift(scene, name, "split from 2 to 1"), "that it was rebalanced is told")
    eventually(lambda: by_hand.executor_counts(name).get("split") == 2, "it is as its spec says again")

    eventually(lambda: scene.condition(name, "Ready").get("status") == "True", "it is measured again")
    by_hand.scatter(name)
    eventually(lambda: drift(scene, name, "by no plan of the operator"), "that executors were moved is told")
    eventually(lambda: not is_spread(by_hand.assignment(name)), "they are brought together again")

    by_hand.kill(name)
    eventually(lambda: drift(scene, name, "killed by somebody else"), "that it was killed is told")
    eventually(lambda: by_hand.is_another(name, first), "it is submitted again")
    leave(scene, name)
    eventually(lambda: by_hand.status(name) is None, "the topology is gone")


def test_paused_topology_is_left_as_it_is(scene: Scene, by_hand: StormByHand, operator: OperatorProcess) -> None:
    name = "paused"
    known = run(scene, by_hand, name, scheduling={"mode": "Observe"})
    scene.annotate("stormtopology", name, f"{PAUSED_ANNOTATION}=true")
    eventually(lambda: scene.status(name).get("phase") == "Paused", "the status says so")
    by_hand.scatter(name)
    by_hand.deactivate(name)
    scene.apply(scene.topology(name, parallelism={"components": {"split": {"executors": 1}}}))
    operator.wait_for_passes(4)
    assert scene.rebalances() == []
    assert is_spread(by_hand.assignment(name))
    assert by_hand.status(name) == "INACTIVE"
    assert by_hand.executor_counts(name)["split"] == 2
    assert scene.status(name)["phase"] == "Paused"

    scene.annotate("stormtopology", name, f"{PAUSED_ANNOTATION}-")
    eventually(lambda: by_hand.status(name) == "ACTIVE", "it is resumed")
    eventually(lambda: by_hand.executor_counts(name).get("split") == 1, "what the spec asks for is done")
    eventually(lambda: not is_spread(by_hand.assignment(name)), "it is placed")
    assert by_hand.id_of(name) == known
    leave(scene, name)


def test_fixed_parallelism_within_the_tasks_is_a_rebalance(
    scene: Scene, kubelet: PlayedKubelet, by_hand: StormByHand, operator: OperatorProcess
) -> None:
    name = "resized"
    known = run(scene, by_hand, name)
    submissions = len(kubelet.started)
    for count in (1, 2):
        scene.apply(scene.topology(name, parallelism={"components": {"split": {"executors": count}}}))
        eventually(lambda count=count: by_hand.executor_counts(name).get("split") == count, f"{count} executors")  # type: ignore[misc]
    scene.apply(scene.topology(name, parallelism={"components": {"split": {"executors": 5}}, "workers": 3}))
    eventually(lambda: scene.events(name, "Parallelism"), "that tasks are the limit is told")
    assert "has 2 tasks" in scene.events(name, "Parallelism")[0]["message"]
    operator.wait_for_passes(2)
    assert by_hand.executor_counts(name)["split"] == 2
    assert by_hand.id_of(name) == known, "the same topology"
    assert len(kubelet.started) == submissions, "nothing was submitted"
    assert scene.events(name, "Drift") == [], "what the spec asks for is no drift"
    leave(scene, name)


def test_another_number_of_workers_is_a_plan(
    scene: Scene, kubelet: PlayedKubelet, by_hand: StormByHand, operator: OperatorProcess
) -> None:
    name = "narrowed"
    even = {"policy": "even", "minimumGainPercent": 0}
    known = run(scene, by_hand, name, scheduling=even)
    assert len(by_hand.assignment(name).workers()) == 2
    submissions = len(kubelet.started)
    scene.apply(scene.topology(name, scheduling=even, parallelism={"workers": 1}))
    eventually(lambda: len(by_hand.assignment(name).workers()) == 1, "all executors are in one worker")
    assert by_hand.id_of(name) == known, "the same topology"
    assert len(kubelet.started) == submissions, "nothing was submitted"
    leave(scene, name)


def test_flux_from_a_config_map_is_replaced_when_that_changes(
    scene: Scene, by_hand: StormByHand, operator: OperatorProcess
) -> None:
    name = "flux-mapped"
    write_config_map(scene, name, flux_definition(name, splits=1))
    flux = {"configMap": {"name": name, "key": "topology.yaml"}, "jar": str(scene.jar)}
    first = run(scene, by_hand, name, flux=flux)
    assert by_hand.executor_counts(name)["split"] == 1

    write_config_map(scene, name, flux_definition(name, splits=2))
    eventually(lambda: any(name in why for why in not_as_described(operator.page)), "the page says what becomes of it")
    eventually(lambda: by_hand.is_another(name, first), "it is submitted anew")
    eventually(lambda: by_hand.executor_counts(name).get("split") == 2, "as the ConfigMap says now")
    assert scene.events(name, "Drift") == [], "we replaced it ourselves"
    leave(scene, name)


def test_flux_that_is_inlined_is_submitted(scene: Scene, by_hand: StormByHand, operator: OperatorProcess) -> None:
    name = "flux-inlined"
    run(scene, by_hand, name, flux={"definition": flux_definition(name, splits=2), "jar": str(scene.jar)})
    assert by_hand.executor_counts(name)["split"] == 2
    leave(scene, name)
    eventually(lambda: by_hand.status(name) is None, "the topology is gone")


def flux_definition(name: str, splits: int) -> dict[str, Any]:
    root = repository_root()
    assert root is not None
    definition: dict[str, Any] = yaml.safe_load((root / "examples" / "flux" / "wordcount.yaml").read_text())
    definition["name"] = name
    next(bolt for bolt in definition["bolts"] if bolt["id"] == "split")["parallelism"] = splits
    return definition


def write_config_map(scene: Scene, name: str, definition: Mapping[str, Any]) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": scene.namespace},
        "data": {"topology.yaml": yaml.safe_dump(definition)},
    }
    scene.kube.kubectl("apply", "-f", "-", input=json.dumps(body))

"""An adopted topology that standalone suspended is resumed by its next life, and one that its owner paused is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from fake_cluster import Killed
from fake_zookeeper import FakeSession, FakeZooKeeper
from storm_operator.adapters.errors import MalformedDocument
from storm_operator.adapters.plan_documents import decode_suspended
from storm_operator.adapters.plan_store import PlanStore
from storm_operator.core.lifecycle import RunningTopology
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.jvm_submitter import JvmSubmitter
from storm_operator.lifecycle_manager import LifecycleManager
from storm_operator.suspended_here import SuspendedHere

NODE = "/storm/storm-operator/suspended"
RUNS, SUSPENDED = (TopologySpec("words", AdoptSource(), suspend=suspend) for suspend in (False, True))


@dataclass
class Storm:
    topology: RunningTopology = RunningTopology("words-1", "words", "ACTIVE")
    dies: bool = False
    """The operator is killed right after the next topology was deactivated."""

    def running(self) -> tuple[RunningTopology, ...]:
        return (self.topology,)

    def activate(self, _: str) -> None:
        self.topology = replace(self.topology, status="ACTIVE")

    def deactivate(self, _: str) -> None:
        self.topology = replace(self.topology, status="INACTIVE")
        if self.dies:
            self.dies = False
            raise Killed

    def kill(self, name: str, wait_seconds: int) -> None:
        raise AssertionError(name, wait_seconds)


@dataclass
class Place:
    """A cluster, on which lives of the operator follow one another."""

    storm: Storm = field(default_factory=Storm)
    zookeeper: FakeZooKeeper = field(default_factory=FakeZooKeeper)
    said: list[str] = field(default_factory=list)

    def live(self, *passes: Mapping[str, TopologySpec]) -> None:
        lifecycle = LifecycleManager(self.storm, JvmSubmitter(None), self.said.append)
        here = SuspendedHere(PlanStore(FakeSession(self.zookeeper, "")), lifecycle, self.said.append)
        here.recall()
        for now, specs in enumerate(passes):
            lifecycle.step(specs, float(now))
            here.keep()


def test_what_an_earlier_life_suspended_is_resumed() -> None:
    place = Place()
    place.live({"words": RUNS}, {"words": SUSPENDED})
    assert place.storm.topology.is_inactive
    place.live({"words": SUSPENDED})
    place.live({"words": RUNS}, {"words": RUNS})
    assert not place.storm.topology.is_inactive
    assert NODE not in place.zookeeper.nodes


def test_what_its_owner_paused_is_left() -> None:
    place = Place()
    place.live({"words": RUNS})
    place.storm.deactivate("words-1")
    place.live({"words": RUNS})
    assert place.storm.topology.is_inactive


@pytest.mark.parametrize("without", [({},), ({}, {})], ids=["a pass", "longer"])
def test_what_was_not_managed_for_a_while_is_resumed_all_the_same(
    without: tuple[Mapping[str, TopologySpec], ...],
) -> None:
    """Its file may be moved, or written anew: nobody else would ever resume it."""
    place = Place()
    place.live({"words": SUSPENDED}, *without, {"words": SUSPENDED}, {"words": RUNS})
    assert not place.storm.topology.is_inactive
    place.live({"words": SUSPENDED}, *without)
    place.live(*without, {"words": RUNS})
    assert not place.storm.topology.is_inactive


@pytest.mark.parametrize("topology_id", ["words-1", "words-2"], ids=["activated", "submitted anew"])
def test_what_another_activated_while_it_was_not_managed_is_forgotten(topology_id: str) -> None:
    place = Place()
    place.live({"words": SUSPENDED}, {})
    place.storm.topology = RunningTopology(topology_id, "words", "ACTIVE")
    place.live({})
    assert NODE not in place.zookeeper.nodes
    place.storm.deactivate(topology_id)
    place.live({"words": RUNS})
    assert place.storm.topology.is_inactive


def test_what_was_suspended_right_before_the_operator_died_is_resumed_by_its_next_life() -> None:
    place = Place(Storm(dies=True))
    with pytest.raises(Killed):
        place.live({"words": SUSPENDED})
    assert place.storm.topology.is_inactive
    place.live({"words": RUNS})
    assert not place.storm.topology.is_inactive


def test_nobody_is_suspended_whom_the_next_life_would_not_know_of() -> None:
    place = Place()
    place.zookeeper.answers_left = 1
    place.live({"words": SUSPENDED})
    assert not place.storm.topology.is_inactive
    assert "no answer" in place.said[-1]


def test_what_changes_nothing_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    place, written = Place(), list[Mapping[str, str]]()

    def write_suspended(_: PlanStore, topologies: Mapping[str, str]) -> None:
        written.append(topologies)

    monkeypatch.setattr(PlanStore, "write_suspended", write_suspended)
    place.live({"words": RUNS}, *[{"words": SUSPENDED}] * 5)
    assert written == [{"words": place.storm.topology.id}]


def test_a_damaged_document_is_said_and_written_anew() -> None:
    place = Place()
    place.live({"words": SUSPENDED})
    place.zookeeper.nodes[NODE] = ("", b"{")
    place.live({"words": SUSPENDED})
    assert "suspended: not JSON" in place.said[-1]
    assert NODE not in place.zookeeper.nodes


@pytest.mark.parametrize("content", [b'{"version": 2, "topologies": {}}', b'{"version": 1, "topologies": {"a": 1}}'])
def test_a_document_of_another_form_is_refused(content: bytes) -> None:
    with pytest.raises(MalformedDocument, match=r"^suspended: "):
        decode_suspended(content)

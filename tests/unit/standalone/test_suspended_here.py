"""An adopted topology that standalone suspended is resumed by its next life, and one that its owner paused is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

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

    def running(self) -> tuple[RunningTopology, ...]:
        return (self.topology,)

    def activate(self, _: str) -> None:
        self.topology = replace(self.topology, status="ACTIVE")

    def deactivate(self, _: str) -> None:
        self.topology = replace(self.topology, status="INACTIVE")

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


def test_what_is_no_longer_managed_is_forgotten() -> None:
    place = Place()
    place.live({"words": SUSPENDED}, {})
    place.live({"words": RUNS})
    assert place.storm.topology.is_inactive


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

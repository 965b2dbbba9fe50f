"""The lifecycle manager: one step a pass, failures said once and retried ever more slowly."""

from __future__ import annotations

import os
import shutil
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from storm_operator.adapters.errors import NimbusError, SubmissionError, SubmissionFailed
from storm_operator.core.backoff import FIRST_RETRY_SECONDS
from storm_operator.core.lifecycle import SUBMITTED_BY_OTHERS, RunningTopology
from storm_operator.core.refusal import Refusal
from storm_operator.core.topology_spec import AdoptSource, FluxSource, JarSource, TopologySpec
from storm_operator.jvm_submitter import JvmSubmitter, source_fingerprint
from storm_operator.lifecycle_manager import LifecycleManager
from storm_operator.lifecycle_progress import BEING_WITHDRAWN, NOT_IN_STORM, Progress, Stage


@dataclass
class FakeStorm:
    topologies: list[RunningTopology] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    refusal: NimbusError | None = None
    """What it answers when it is asked to activate."""

    def running(self) -> tuple[RunningTopology, ...]:
        return tuple(self.topologies)

    def activate(self, topology_id: str) -> None:
        if self.refusal is not None:
            raise self.refusal
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


def test_topology_that_comes_back_is_tried_at_once_and_its_failure_said_anew(tmp_path: Path) -> None:
    """After a pause, or as a new resource: what it failed of may be mended by now, though the spec is the same."""
    said: list[str] = []
    specs = {"words": TopologySpec("words", JarSource(str(tmp_path / "absent.jar"), "a.B"))}
    manager = LifecycleManager(FakeStorm(), JvmSubmitter(None), said.append)
    manager.step(specs, 0.0)
    manager.step({}, 1.0)
    assert (manager.retries, manager.said) == ({}, {})
    manager.step(specs, 2.0)
    assert len(said) == 2
    assert manager.progress["words"].stage is Stage.FAILED
    assert manager.next_try_at_seconds == 2 + FIRST_RETRY_SECONDS
    when = f"tried again from 00:00:{2 + FIRST_RETRY_SECONDS:02.0f} UTC on, or when its definition or jar changes"
    assert manager.not_as_described() == (Refusal(f"words: {when}: {manager.progress['words'].message}", "words"),)
    assert manager.retries["words"].failures == 1


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


def test_topologies_that_begin_to_run_are_told_in_the_step_that_finds_them(tmp_path: Path) -> None:
    spec = TopologySpec("words", JarSource(jar(tmp_path / "a.jar"), "a.B"))
    ours = RunningTopology("words-1", "words", "ACTIVE", source_fingerprint(spec))
    storm = FakeStorm([replace(ours, fingerprint="of another jar")])
    manager = LifecycleManager(storm, Mock(fingerprint=source_fingerprint), lambda _: None)
    pictures = [storm.topologies, [], [], [ours], [ours], [ours], [replace(ours, status="INACTIVE")], [ours]]
    come = []
    for at, storm.topologies in enumerate(pictures):
        manager.step({"words": replace(spec, suspend=at == 5)}, float(at))
        come.append(sorted(manager.come))
    assert storm.calls == ["kill words", "deactivate words-1", "activate words-1"]
    assert come == [[], [], [], ["words-1"], [], [], ["words-1"], []], "once it is replaced, and once it is resumed"


def test_what_keeps_a_topology_from_running_as_described_is_told_at_each_step(tmp_path: Path) -> None:
    """Status and explanations have nothing else to say of it meanwhile."""
    path = tmp_path / "a.jar"
    specs = {
        "words": TopologySpec("words", JarSource(jar(path), "a.B")),
        "others": TopologySpec("others", AdoptSource()),
    }
    running = RunningTopology("words-1", "words", "ACTIVE", source_fingerprint(specs["words"]))
    theirs = RunningTopology("others-1", "others", "ACTIVE")
    storm = FakeStorm([running, theirs])
    manager = LifecycleManager(storm, JvmSubmitter(None), lambda _: None)
    manager.step(specs, 0.0)
    assert manager.not_as_described() == ()
    jar(path, "2")
    manager.step(specs, 1.0)
    why = "its jar, main class, arguments or config have changed"
    told = f"words: it is replaced, because {why}; the old one is given its time to finish"
    assert manager.not_as_described() == (Refusal(told, "words"),)
    storm.topologies = [replace(running, status="KILLED")]
    manager.step(specs, 2.0)
    assert [one.sentence for one in manager.not_as_described()] == [
        "others: no topology 'others' runs; spec.adopt waits until someone submits it",
        "words: the old topology of that name is being killed",
    ]


def test_one_that_is_suspended_or_somebody_elses_is_told(tmp_path: Path) -> None:
    """Else nobody could see why nothing is decided about it, or why it is not there at all."""
    source = JarSource(jar(tmp_path / "a.jar"), "a.B")
    specs = {
        "absent": TopologySpec("absent", source, suspend=True),
        "rests": TopologySpec("rests", AdoptSource(), suspend=True),
        "theirs": TopologySpec("theirs", source),
    }
    storm = FakeStorm([RunningTopology(f"{name}-1", name, "ACTIVE") for name in ("rests", "theirs")])
    manager = LifecycleManager(storm, JvmSubmitter(None), lambda _: None)
    manager.step(specs, 0.0)
    assert manager.progress["absent"] == NOT_IN_STORM
    assert manager.not_as_described() == (
        Refusal(f"absent: {NOT_IN_STORM.message}", "absent"),
        Refusal("rests: suspended: its spouts are deactivated", "rests"),
        Refusal(f"theirs: {SUBMITTED_BY_OTHERS}", "theirs"),
    )


def test_one_that_cannot_be_read_is_neither_replaced_nor_said_to_be_of_others_and_told_why(tmp_path: Path) -> None:
    why = "it is not managed, since its conf is none"
    storm = FakeStorm([RunningTopology("words-1", "words", "ACTIVE", unreadable=why)])
    manager = LifecycleManager(storm, JvmSubmitter(None), lambda _: None)
    manager.step({"words": TopologySpec("words", JarSource(jar(tmp_path / "a.jar"), "a.B"))}, 0.0)
    assert storm.calls == []
    assert manager.not_as_described() == (Refusal(f"words: {why}", "words"),)


def test_a_submission_is_told_before_it_takes_its_time_and_when_it_is_done(tmp_path: Path) -> None:
    told: list[str] = []

    class Slow(JvmSubmitter):
        def submit(self, spec: TopologySpec, wanted: str) -> bool:
            assert told == ["words: it is being submitted"]
            return True

    manager = LifecycleManager(FakeStorm(), Slow(None), lambda _: None)
    manager.on_submission = lambda: told.extend(one.sentence for one in manager.not_as_described())
    manager.step({"words": TopologySpec("words", JarSource(jar(tmp_path / "a.jar"), "a.B"))}, 0.0)
    assert told[1:] == ["words: submitted: it runs from the next pass on"]


@pytest.mark.parametrize("by_file", [True, False])
def test_the_same_files_in_another_folder_make_the_same_topology(by_file: bool, tmp_path: Path) -> None:
    jar(tmp_path / "a.jar")

    def source(folder: str, text: str = "name: words") -> JarSource | FluxSource:
        (tmp_path / folder).mkdir(exist_ok=True)
        path = shutil.copy(tmp_path / "a.jar", str(tmp_path / folder))
        if not by_file:
            return JarSource(path, "a.B", (text,))
        definition = tmp_path / folder / "words.yaml"
        definition.write_text(text)
        return FluxSource(path, path=str(definition))

    before, moved, other = (
        source_fingerprint(TopologySpec("words", made))
        for made in (source("old"), source("new"), source("other", "name: others"))
    )
    assert before == moved
    assert before != other


def test_topology_whose_jar_is_gone_can_still_be_suspended_and_resumed(tmp_path: Path) -> None:
    """The jar is needed to submit it: what runs has long been submitted, and its spouts must stop when told to."""
    path = tmp_path / "a.jar"
    spec = TopologySpec("words", JarSource(jar(path), "a.B"))
    storm = FakeStorm([RunningTopology("words-1", "words", "ACTIVE", source_fingerprint(spec))])
    manager = LifecycleManager(storm, JvmSubmitter(None), lambda _: None)
    path.unlink()
    manager.step({"words": spec}, 0.0)
    manager.step({"words": replace(spec, suspend=True)}, 1.0)
    assert storm.calls == ["deactivate words-1"]
    storm.topologies = [replace(storm.topologies[0], status="INACTIVE")]
    manager.step({"words": replace(spec, suspend=True)}, 2.0)
    assert "no file" in manager.progress["words"].message
    told: list[str] = []
    manager.on_resumption = told.append
    manager.step({"words": spec}, 3.0)
    assert storm.calls == ["deactivate words-1", "activate words-1"]
    assert told == ["words-1"]
    assert manager.progress["words"] == Progress(Stage.RUNNING, "", "words-1")


@pytest.mark.parametrize("suspend", [False, True])
def test_adopted_topology_whose_spouts_a_plan_left_paused_is_resumed_once_nimbus_does_so(suspend: bool) -> None:
    """Nobody else would: what its owner deactivated is left so, and this looks the same."""
    said: list[str] = []
    storm = FakeStorm([RunningTopology("words-1", "words", "ACTIVE")])
    manager = LifecycleManager(storm, JvmSubmitter(None), said.append)
    specs = {"words": TopologySpec("words", AdoptSource())}
    manager.step(specs, 0.0)
    storm.topologies = [RunningTopology("words-1", "words", "INACTIVE")]
    manager.take_left_paused = Mock(side_effect=[("words-1", "gone-1"), (), (), ()])
    storm.refusal = NimbusError("internal error")
    manager.step({"words": replace(specs["words"], suspend=suspend)}, 1.0)
    assert (manager.progress["words"].stage is Stage.SUSPENDED) == suspend
    manager.step(specs, 2.0)
    assert manager.progress["words"] == Progress(Stage.FAILED, "internal error", "words-1")
    assert manager.suspended == {"words": "words-1"}
    storm.refusal = None
    manager.step(specs, 2.0 + FIRST_RETRY_SECONDS)
    assert storm.calls == ["activate words-1"]
    assert manager.progress["words"].stage is Stage.RUNNING
    assert said[1:] == ["words: resumed"]
    assert not manager.repairs


def test_topology_whose_jar_is_gone_is_known_to_run_all_the_same(tmp_path: Path) -> None:
    """Else its status would lose what is measured of it, and say that it does not run yet."""
    storm = FakeStorm([RunningTopology("words-1", "words", "ACTIVE", "abc")])
    manager = LifecycleManager(storm, JvmSubmitter(None), lambda _: None)
    manager.step({"words": TopologySpec("words", JarSource(str(tmp_path / "absent.jar"), "a.B"))}, 0.0)
    known = manager.progress["words"]
    assert (known.stage, known.topology_id) == (Stage.FAILED, "words-1")


class SlowSubmitter:
    """A Job that waits for something, and submits all the same in the end."""

    def fingerprint(self, spec: TopologySpec) -> str:
        return "abc"

    def submit(self, spec: TopologySpec, wanted: str) -> bool:
        raise SubmissionError("submission job words-submit waits: Unschedulable")

    def withdraw(self, spec: TopologySpec) -> bool:
        return True


def test_topology_that_runs_at_last_is_seen_at_once_and_not_at_the_next_try_to_submit_it() -> None:
    storm = FakeStorm()
    manager = LifecycleManager(storm, SlowSubmitter(), lambda _: None)
    specs = {"words": TopologySpec("words", JarSource("words.jar", "a.B"))}
    manager.step(specs, 0.0)
    assert manager.progress["words"].stage is Stage.FAILED
    storm.topologies = [RunningTopology("words-1", "words", "ACTIVE", "abc")]
    manager.step(specs, 1.0)
    assert manager.progress["words"] == Progress(Stage.RUNNING, "", "words-1")
    assert manager.retries == {}


RUNNING = RunningTopology("words-1", "words", "ACTIVE")
INACTIVE = RunningTopology("words-1", "words", "INACTIVE")
LEAVING = RunningTopology("words-1", "words", "KILLED")
REBALANCED = RunningTopology("words-1", "words", "REBALANCING")


@dataclass
class FakeSubmitter:
    """What is submitted is the same whatever the spec says; that takes two steps, and so does it to be withdrawn."""

    under_way: int = 0
    withdrawals: int = 0

    def fingerprint(self, spec: TopologySpec) -> str:
        return "abc"

    def submit(self, spec: TopologySpec, wanted: str) -> bool:
        self.under_way = 2
        return False

    def withdraw(self, spec: TopologySpec) -> bool:
        self.withdrawals += 1
        self.under_way = max(0, self.under_way - 1)
        return not self.under_way


def test_topology_that_is_suspended_while_it_is_submitted_is_withdrawn() -> None:
    """Else it would get into Storm all the same, and its spouts would emit until the next step."""
    submitter = FakeSubmitter()
    manager = LifecycleManager(FakeStorm(), submitter, lambda _: None)
    spec = TopologySpec("words", JarSource("words.jar", "a.B"))
    suspended = {"words": replace(spec, suspend=True)}
    manager.step({"words": spec}, 0.0)
    manager.step(suspended, 1.0)
    assert manager.progress["words"].message == "suspended while it was submitted: that is being ended"
    for now in (2.0, 3.0, 4.0):
        manager.step(suspended, now)
    assert (submitter.under_way, submitter.withdrawals) == (0, 2), "nobody is asked again once there is none"
    assert manager.progress["words"] == NOT_IN_STORM
    manager.step({"words": spec}, 5.0)
    assert manager.progress["words"].stage is Stage.SUBMITTING


@pytest.mark.parametrize(
    ("progress", "is_so"),
    [
        (Progress(Stage.SUBMITTING), True),
        (Progress(Stage.REPLACING, "its jar has changed", "words-1"), True),
        (Progress(Stage.WAITING, "the old topology is being killed", "words-1"), True),
        (Progress(Stage.WAITING, "no topology 'words' runs; spec.adopt waits"), False),
        (BEING_WITHDRAWN, True),
        (NOT_IN_STORM, False),
        (Progress(Stage.SUSPENDED, "", "words-1"), False),
        (Progress(Stage.RUNNING, "", "words-1"), False),
        (Progress(Stage.FAILED, "no jar"), False),
    ],
)
def test_what_comes_or_goes_by_itself_is_under_way(progress: Progress, is_so: bool) -> None:
    manager = LifecycleManager(FakeStorm(), FakeSubmitter(), lambda _: None)
    assert not manager.is_under_way
    manager.progress = {"others": Progress(Stage.RUNNING, "", "others-1"), "words": progress}
    assert manager.is_under_way is is_so


@pytest.mark.parametrize(
    ("progress", "is_so"),
    [
        (Progress(Stage.SUBMITTING), True),
        (Progress(Stage.REPLACING, "its jar has changed", "words-1"), True),
        (Progress(Stage.WAITING, "the old topology is being killed", "words-1"), True),
        (Progress(Stage.FAILED, "no jar"), True),
        (Progress(Stage.FAILED, "Nimbus refuses to suspend it", "words-1"), False),
        (Progress(Stage.WAITING, "no topology 'words' runs; spec.adopt waits"), False),
        (NOT_IN_STORM, False),
        (Progress(Stage.RUNNING, "", "words-1"), False),
    ],
)
def test_what_is_to_get_into_storm_is_awaited_also_when_its_submission_failed(progress: Progress, is_so: bool) -> None:
    manager = LifecycleManager(FakeStorm(), FakeSubmitter(), lambda _: None)
    manager.progress = {"others": Progress(Stage.RUNNING, "", "others-1"), "words": progress}
    assert manager.awaited == (("words",) if is_so else ())


class TestDrift:
    """What somebody else did between two steps."""

    JAR = TopologySpec("words", JarSource("words.jar", "a.B"))
    ADOPTED = TopologySpec("words", AdoptSource())

    def steps(
        self, spec: TopologySpec, *found: RunningTopology | None
    ) -> tuple[list[str], FakeStorm, LifecycleManager]:
        """What is told after each step."""
        storm = FakeStorm()
        manager = LifecycleManager(storm, FakeSubmitter(), lambda _: None)
        told = []
        for one in found:
            storm.topologies = [one] if one else []
            manager.step({"words": spec}, 0.0)
            told.append(manager.repairs.get("words", ""))
        return told, storm, manager

    def test_steady_topology_has_none(self) -> None:
        assert self.steps(self.JAR, RUNNING, RUNNING)[0] == ["", ""]

    def test_killed_topology_is_told_once_and_submitted_again(self) -> None:
        told, _, manager = self.steps(self.JAR, RUNNING, LEAVING, None, None)
        assert told[1].startswith("words-1 was killed by somebody else, or Nimbus has lost it")
        assert [told[0], *told[2:]] == ["", "", ""]
        assert manager.progress["words"].stage is Stage.SUBMITTING

    def test_topology_that_is_gone_at_once_is_told_too(self) -> None:
        told, _, _ = self.steps(self.JAR, RUNNING, None)
        assert told[1] == "words-1 was killed by somebody else, or Nimbus has lost it; it is submitted again"

    def test_adopted_topology_that_is_gone_is_waited_for(self) -> None:
        told, _, _ = self.steps(self.ADOPTED, RUNNING, None)
        assert "Nimbus has lost it: no topology 'words' runs" in told[1]

    def test_what_was_replaced_here_was_killed_by_nobody_else(self) -> None:
        old = RunningTopology("words-1", "words", "ACTIVE", "old")
        assert self.steps(self.JAR, old, LEAVING, None)[0] == ["", "", ""]

    def test_topology_that_was_submitted_anew_is_told(self) -> None:
        told, _, _ = self.steps(self.ADOPTED, RUNNING, RunningTopology("words-2", "words", "ACTIVE"))
        assert "words-1 is words-2 now" in told[1]

    def test_deactivated_topology_is_activated_again(self) -> None:
        told, storm, _ = self.steps(self.JAR, RUNNING, INACTIVE)
        assert told[1] == "it was deactivated by somebody else; it is activated again"
        assert storm.calls == ["activate words-1"]

    def test_adopted_topology_that_its_owner_deactivated_is_left(self) -> None:
        told, storm, _ = self.steps(self.ADOPTED, RUNNING, INACTIVE)
        assert (told[1], storm.calls) == ("", [])

    def test_suspended_topology_that_was_activated_is_deactivated_again(self) -> None:
        told, storm, _ = self.steps(replace(self.JAR, suspend=True), RUNNING, RUNNING)
        assert told[0] == ""
        assert "activated by somebody else" in told[1]
        assert storm.calls == ["deactivate words-1", "deactivate words-1"]

    @pytest.mark.parametrize("left", [RUNNING, INACTIVE], ids=["till now", "before"])
    def test_suspended_topology_that_is_gone_is_told_once_and_not_said_to_be_new(self, left: RunningTopology) -> None:
        """Nothing is to be done about it now: without a word its owner would learn that only once it is to run."""
        told, _, manager = self.steps(replace(self.JAR, suspend=True), left, None, None)
        gone = "words-1 was killed by somebody else, or Nimbus has lost it"
        words = f"{gone}; it is submitted again once spec.suspend is false"
        assert told == ["", words, ""]
        assert manager.progress["words"].message == (
            "suspended, and not in Storm: it is submitted once spec.suspend is false"
        )
        manager.step({"words": self.JAR}, 0.0)
        assert manager.progress["words"].stage is Stage.SUBMITTING
        assert manager.repairs == {}

    def test_suspended_topology_that_is_replaced_here_was_killed_by_nobody_else(self) -> None:
        old = RunningTopology("words-1", "words", "INACTIVE", "old")
        assert self.steps(replace(self.JAR, suspend=True), old, LEAVING, None)[0] == ["", "", ""]

    def test_suspended_topology_that_is_rebalanced_was_activated_by_nobody(self) -> None:
        """Nimbus refuses to deactivate it then, and it is inactive again afterwards."""
        told, storm, manager = self.steps(replace(self.JAR, suspend=True), RUNNING, INACTIVE, REBALANCED, INACTIVE)
        assert told == ["", "", "", ""]
        assert storm.calls == ["deactivate words-1"]
        assert manager.progress["words"].stage is Stage.SUSPENDED

    def test_adopted_topology_that_is_to_run_again_while_it_is_rebalanced_is_resumed_afterwards(self) -> None:
        storm = FakeStorm([RUNNING])
        manager = LifecycleManager(storm, FakeSubmitter(), lambda _: None)
        manager.step({"words": replace(self.ADOPTED, suspend=True)}, 0.0)
        for now, found in ((1.0, REBALANCED), (2.0, INACTIVE)):
            storm.topologies = [found]
            manager.step({"words": self.ADOPTED}, now)
        assert storm.calls == ["deactivate words-1", "activate words-1"]

    def test_topology_that_is_rebalanced_when_it_is_first_seen_runs(self) -> None:
        _, _, manager = self.steps(self.JAR, replace(REBALANCED, fingerprint="abc"))
        assert manager.progress["words"] == Progress(Stage.RUNNING, "", "words-1")

    def test_topology_whose_spouts_a_plan_paused_is_left_alone(self) -> None:
        storm = FakeStorm([RUNNING])
        manager = LifecycleManager(storm, FakeSubmitter(), lambda _: None)
        manager.step({"words": self.JAR}, 0.0)
        storm.topologies = [INACTIVE]
        manager.step({"words": self.JAR}, 1.0, being_moved=("words-1",))
        assert (manager.repairs, storm.calls) == ({}, [])
        assert manager.progress["words"].topology_id == "words-1"


class TestSubmittedByOthers:
    """Under the name of a topology with a jar: managed, and not replaced."""

    def test_is_told_once_and_stays_to_be_read(self) -> None:
        said: list[str] = []
        storm, spec = FakeStorm([RUNNING]), TopologySpec("words", JarSource("words.jar", "a.B"))
        manager = LifecycleManager(storm, FakeSubmitter(), said.append)
        for now in (0.0, 1.0):
            manager.step({"words": spec}, now)
            assert manager.progress["words"] == Progress(Stage.RUNNING, SUBMITTED_BY_OTHERS, "words-1")
        manager.step({"words": replace(spec, suspend=True)}, 2.0)
        storm.topologies = [INACTIVE]
        manager.step({"words": replace(spec, suspend=True)}, 3.0)
        assert manager.progress["words"].message == f"its spouts are deactivated; {SUBMITTED_BY_OTHERS}"
        assert said == [f"words: {SUBMITTED_BY_OTHERS}", "words: suspended"]

    @pytest.mark.parametrize(
        ("source", "fingerprint"),
        [(AdoptSource(), None), (JarSource("words.jar", "a.B"), "abc")],
        ids=["adopted", "ours"],
    )
    def test_is_said_of_no_other(self, source: AdoptSource | JarSource, fingerprint: str | None) -> None:
        said: list[str] = []
        storm = FakeStorm([replace(RUNNING, fingerprint=fingerprint)])
        manager = LifecycleManager(storm, FakeSubmitter(), said.append)
        manager.step({"words": TopologySpec("words", source)}, 0.0)
        assert (manager.progress["words"], said) == (Progress(Stage.RUNNING, "", "words-1"), [])


class TestEarlierLife:
    def resumed(self, suspended: bool) -> list[str]:
        storm = FakeStorm([INACTIVE])
        manager = LifecycleManager(storm, FakeSubmitter(), lambda _: None)
        manager.remember("words", Progress(Stage.SUSPENDED, "", "words-1"), suspended)
        manager.step({"words": TopologySpec("words", AdoptSource())}, 0.0)
        return storm.calls

    def test_adopted_topology_that_it_suspended_is_resumed(self) -> None:
        assert self.resumed(suspended=True) == ["activate words-1"]

    def test_adopted_topology_that_its_owner_paused_is_left(self) -> None:
        assert self.resumed(suspended=False) == []

    def test_is_asked_only_of_what_this_one_does_not_know(self) -> None:
        manager = LifecycleManager(FakeStorm([RUNNING]), FakeSubmitter(), lambda _: None)
        manager.step({"words": TopologySpec("words", AdoptSource())}, 0.0)
        manager.remember("words", Progress(Stage.SUSPENDED, "", "words-0"), True)
        assert manager.progress["words"].topology_id == "words-1"
        assert manager.suspended == {}

    def test_who_is_activated_by_hand_is_no_longer_ours_to_resume(self) -> None:
        storm = FakeStorm([RUNNING])
        manager = LifecycleManager(storm, FakeSubmitter(), lambda _: None)
        manager.remember("words", Progress(Stage.SUSPENDED, "", "words-1"), True)
        spec = TopologySpec("words", AdoptSource())
        manager.step({"words": spec}, 0.0)
        storm.topologies = [INACTIVE]
        manager.step({"words": spec}, 1.0)
        assert storm.calls == []


def test_another_source_is_tried_at_the_first_pace_again(tmp_path: Path) -> None:
    manager = LifecycleManager(FakeStorm(), JvmSubmitter(None), lambda _: None)
    for name, now in (("a.jar", 0.0), ("a.jar", 11.0), ("b.jar", 12.0)):
        manager.step({"words": TopologySpec("words", JarSource(str(tmp_path / name), "a.B"))}, now)
    assert manager.retries["words"].pause_seconds == FIRST_RETRY_SECONDS
    assert manager.retries["words"].failures == 1


def test_jar_of_the_same_age_and_size_that_takes_the_place_of_another_is_another(tmp_path: Path) -> None:
    """As tools lay them down that give all files one time."""
    spec = TopologySpec("words", JarSource(str(tmp_path / "a.jar"), "a.B"))
    found = set()
    for content in "12":
        fresh = Path(jar(tmp_path / "new.jar", content))
        os.utime(fresh, (1, 1))
        if content == "2":
            assert fresh.stat().st_size == (tmp_path / "a.jar").stat().st_size
        fresh.rename(tmp_path / "a.jar")
        found.add(source_fingerprint(spec))
    assert len(found) == 2


def test_a_clock_that_is_set_back_puts_nothing_off_for_so_long(tmp_path: Path) -> None:
    specs = {"words": TopologySpec("words", JarSource(str(tmp_path / "absent.jar"), "a.B"))}
    manager = LifecycleManager(FakeStorm(), JvmSubmitter(None), print)
    manager.step(specs, 10_000.0)
    manager.step(specs, 10_000.0 + FIRST_RETRY_SECONDS / 2)
    assert manager.retries["words"].failures == 1
    manager.step(specs, 6_400.0)
    assert manager.retries["words"].failures == 2


def test_jar_with_names_that_are_no_text_stops_nobody_else(tmp_path: Path) -> None:
    """As a damaged one may have them: an error that nobody foresaw would end the pass for all."""
    broken = Path(jar(tmp_path / "broken.jar"))
    with zipfile.ZipFile(broken, "w") as archive:
        archive.writestr("ä", "1")
    broken.write_bytes(broken.read_bytes().replace("ä".encode(), b"\xff\xff"))
    specs = {"words": TopologySpec("words", JarSource(str(broken), "a.B"))}
    manager = LifecycleManager(FakeStorm(), JvmSubmitter(None), print)
    manager.step(specs, 0.0)
    assert manager.progress["words"].stage is Stage.FAILED
    assert "broken.jar is not a jar" in manager.progress["words"].message


def test_the_log_of_a_failed_submission_is_said_and_not_shown_beside_all_else() -> None:
    said: list[str] = []
    log = "12:00 INFO begins\n12:01 INFO goes on"
    submitter = Mock(fingerprint=Mock(return_value="f"))
    submitter.submit.side_effect = SubmissionFailed("a.B failed with exit code 1: no class C", log)
    manager = LifecycleManager(FakeStorm(), submitter, said.append)
    manager.step({"words": TopologySpec("words", JarSource("a.jar", "a.B"))}, 0.0)
    (told,) = manager.not_as_described()
    assert told.sentence.endswith(": a.B failed with exit code 1: no class C")
    assert log in said[-1]

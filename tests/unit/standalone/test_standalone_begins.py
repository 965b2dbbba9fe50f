"""`storm-operator standalone` before it manages anything: addresses, and a cluster that does not answer."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
import typer
from typer.testing import CliRunner

from loop_scene import SETTINGS, SPECS, scene
from storm_operator import standalone, standalone_command
from storm_operator.adapters.errors import NimbusUnreachable, ZooKeeperUnreachable
from storm_operator.adapters.manager_lock import ManagerLock
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.nimbus.connection import Connection, ConnectionBroken, NimbusAddress
from storm_operator.adapters.zookeeper import ZooKeeperSession
from storm_operator.assembly import assemble
from storm_operator.cli import app
from storm_operator.connection_options import agents_from, connection_from
from storm_operator.control_loop import ControlLoop
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.settings import ApplyMethod
from storm_operator.demo.recorder import Recorder
from storm_operator.history.settings import HistorySettings
from storm_operator.lifecycle_manager import LifecycleManager
from storm_operator.standalone import (
    ENDING,
    AroundPasses,
    Patience,
    Stop,
    last_words,
    run_forever,
    saying_when_asked_to_end,
)
from storm_operator.standalone_command import (
    NOBODY_CAN_APPROVE,
    NOBODY_MAY_APPROVE,
    recorder_for,
)
from storm_operator.terminal import TerminalListener
from storm_operator.topology_folder import TopologyFolder

GOOD = {"--nimbus": "nimbus:6627", "--zookeeper": "zookeeper:2181"}


@pytest.mark.parametrize(
    ("option", "text", "example"),
    [
        ("--nimbus", "foo", "nimbus.example:6627"),
        ("--nimbus", "foo:", "nimbus.example:6627"),
        ("--nimbus", "foo:70000", "nimbus.example:6627"),
        ("--zookeeper", "bar", "zookeeper.example:2181"),
        ("--zookeeper", "one:2181,two", "zookeeper.example:2181"),
        ("--zookeeper", "bar/storm:1", "zookeeper.example:2181"),
        ("--nimbus", "storm..example:6627", "nimbus.example:6627"),
        ("--nimbus", f"{'x' * 64}.example:6627", "nimbus.example:6627"),
        ("--zookeeper", ".example:2181", "zookeeper.example:2181"),
    ],
)
def test_address_without_a_port_is_refused_with_an_example(
    option: str, text: str, example: str, tmp_path: Path
) -> None:
    words = [word for pair in (GOOD | {option: text}).items() for word in pair]
    done = CliRunner().invoke(app, ["standalone", str(tmp_path), *words], env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert f"{option}: {text!r} must be HOST:PORT, such as {example}" in done.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--local", "local", "--nimbus", "a:1", "--zookeeper", "b:1"],
            "leave out --nimbus and --zookeeper, or --local",
        ),
        (["--local", "local", "--zookeeper", "b:1"], "leave out --zookeeper, or --local"),
        (["--local", "local", "--agent", "a=http://a:9464/metrics"], "leave out --agent, or --local"),
        (
            [*(word for pair in GOOD.items() for word in pair), "--agent", "a:9464"],
            "--agent is 'a:9464': expected HOST=URL",
        ),
        (
            [*(word for pair in GOOD.items() for word in pair), "--prometheus", "prometheus:9090"],
            "--prometheus is 'prometheus:9090': expected a URL such as",
        ),
        (
            [*(word for pair in GOOD.items() for word in pair), "--agent", "a=http://a:1", "--agent", "a=http://b:1"],
            "--agent names the host a twice",
        ),
        (
            ["--local", "local", "--agent-port", "9", "--prometheus", "http://a:9090"],
            "leave out --agent-port and --prometheus, or --local",
        ),
        (["--nimbus", "a:1", "--zookeeper", "b:1", "--match", "c='d'"], "give --prometheus URL as well"),
        (["--local", "local", "--match", 'cluster="blue"'], "leave out --match, or --local"),
        (
            ["--local", "local", "--storm-home", "/tmp", "--storm-conf-dir", "/tmp"],
            "leave out --storm-home and --storm-conf-dir, or --local",
        ),
        (["--local", "local", "--zookeeper-root", "/other"], "leave out --zookeeper-root, or --local"),
        (["--local", "unit-none", "--zookeeper-root", "/storm"], "--local: no cluster 'unit-none' is up"),
        (
            [*(word for pair in GOOD.items() for word in pair), "--agent-port", "-1"],
            "should be greater than or equal to 1",
        ),
        (["--nimbus", "a:1", "--zookeeper", "::1:2181"], "--zookeeper: '::1:2181' is no address of one: "),
        (
            [*(word for pair in GOOD.items() for word in pair), "--prometheus", "http://a..b:9090"],
            "--prometheus is 'http://a..b:9090': expected a URL such as",
        ),
        (["--local", "local", "--page-port", "0", "--page-approval"], "--page-approval is for the page"),
        (["--local", "local", "--page-port", "0", "--page-host", "::"], "--page-host is for the page"),
        (["--local", "local", "--history-days", "30"], "--history-days is for what --history records"),
        (["--local", "local", "--history-gigabytes", "1"], "--history-gigabytes is for what --history records"),
        (["--local", "local", "--history-cluster", "c"], "--history-cluster is for --history and --profile"),
        (
            [*(word for pair in GOOD.items() for word in pair), "--submission-seconds", "600"],
            "--submission-seconds is for what is submitted: give --storm-home too",
        ),
        (["--local", "local", "--history-days", "inf"], "Invalid value for '--history-days'"),
        (["--local", "local", "--history-gigabytes", "inf"], "Invalid value for '--history-gigabytes'"),
    ],
)
def test_options_that_cannot_be_are_refused(options: list[str], words: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["standalone", str(tmp_path), *options], env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert words in done.output


def test_folder_that_may_not_even_be_looked_at_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 300)
    done = CliRunner().invoke(app, ["standalone", str(folder), "--local", "none"], env={"COLUMNS": "600"})
    assert done.exit_code == 2
    assert "is not a folder" in done.output


def test_an_agent_without_a_path_is_asked_for_its_metrics() -> None:
    assert agents_from(["a=http://a:9999", "b=https://b/agent/metrics"]) == {
        "a": "http://a:9999/metrics",
        "b": "https://b/agent/metrics",
    }


def test_what_others_wrote_is_said_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Stop()
    ended.set()
    monkeypatch.setattr(standalone_command, "stop_on_signals", lambda: ended)
    monkeypatch.setattr("storm_operator.assembly.LOCK_ANSWER_SECONDS", 0.1)
    learned = tmp_path / "old[copy][" / "of]" / ":x:.json"
    options = ["--nimbus", "127.0.0.1:1", "--zookeeper", "127.0.0.1:1", "--page-port", "0", "--profile", str(learned)]
    done = CliRunner().invoke(app, ["standalone", str(tmp_path), *options], env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output
    assert f"--profile: {learned} is not there yet" in done.output


@pytest.mark.parametrize(
    ("is_folder", "words"),
    [(False, "notes.md is no learned profile: "), (True, "notes.md cannot be read: [Errno 21] Is a directory")],
)
def test_what_is_no_profile_is_said_before_anything_is_managed(
    is_folder: bool, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Stop()
    ended.set()
    monkeypatch.setattr(standalone_command, "stop_on_signals", lambda: ended)
    notes = tmp_path / "notes.md"
    if is_folder:
        notes.mkdir()
    else:
        notes.write_text("# Notes", encoding="utf-8")
    options = ["--nimbus", "127.0.0.1:1", "--zookeeper", "127.0.0.1:1", "--page-port", "0", "--profile", str(notes)]
    done = CliRunner().invoke(app, ["standalone", str(tmp_path), *options], env={"COLUMNS": "400"})
    (told,) = [line for line in done.output.splitlines() if "--profile: " in line]
    assert f"--profile: {words}" in told
    assert told.endswith("; it is followed once it is a profile")


@pytest.mark.parametrize(("file", "is_told"), [("notes.txt", True), ("x.yaml", False)])
def test_a_folder_without_topologies_is_told_once(
    file: str, is_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Stop()
    ended.set()
    monkeypatch.setattr(standalone_command, "stop_on_signals", lambda: ended)
    monkeypatch.setattr("storm_operator.assembly.LOCK_ANSWER_SECONDS", 0.1)
    (tmp_path / file).write_text("", encoding="utf-8")
    options = ["--nimbus", "127.0.0.1:1", "--zookeeper", "127.0.0.1:1", "--page-port", "0"]
    done = CliRunner().invoke(app, ["standalone", str(tmp_path), *options], env={"COLUMNS": "300"})
    assert done.output.count(f"no StormTopology is in {tmp_path} yet (.yaml, .yml)") == is_told


@pytest.mark.parametrize(
    ("is_taken", "may_approve", "told"),
    [(True, True, NOBODY_CAN_APPROVE), (True, False, NOBODY_MAY_APPROVE), (False, True, "")],
)
def test_that_nobody_can_approve_a_plan_is_told_also_where_the_page_is_not_served(
    is_taken: bool, may_approve: bool, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, listeners = Stop(), list[TerminalListener]()
    ended.set()

    def listen(*given: Any) -> TerminalListener:
        listeners.append(TerminalListener(*given))
        return listeners[-1]

    monkeypatch.setattr(standalone_command, "stop_on_signals", lambda: ended)
    monkeypatch.setattr("storm_operator.assembly.LOCK_ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(standalone_command, "TerminalListener", listen)
    options = ["--nimbus", "127.0.0.1:1", "--zookeeper", "127.0.0.1:1", *(["--page-approval"] if may_approve else [])]
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        if is_taken:
            other.listen()
        else:
            other.close()
        done = CliRunner().invoke(app, ["standalone", str(tmp_path), *options, "--page-port", str(port)])
    assert ("cannot be served" in done.output) == is_taken
    assert [listener.on_first_proposal for listener in listeners] == [told]


class NobodyAnswers:
    """Nimbuses that refuse each connection; `on_try` is called before."""

    def __init__(self, on_try: Callable[[], None]) -> None:
        self.tried: list[NimbusAddress] = []
        self.on_try = on_try

    def __call__(self, address: NimbusAddress, timeout_seconds: float, book: object) -> Connection:
        self.tried.append(address)
        self.on_try()
        raise ConnectionBroken("refused")


TWO_SEEDS = ["--nimbus", "one:1", "--nimbus", "two:1", "--zookeeper", "127.0.0.1:1", "--page-port", "0"]


def test_told_to_end_it_waits_for_no_nimbus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Stop()
    nimbuses = NobodyAnswers(on_try=ended.set)
    monkeypatch.setattr(standalone_command, "stop_on_signals", lambda: ended)
    monkeypatch.setattr(ManagerLock, "take", lambda _: None)
    monkeypatch.setattr("storm_operator.assembly.NotedConnection", nimbuses)
    done = CliRunner().invoke(app, ["standalone", str(tmp_path), *TWO_SEEDS], env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output
    assert [address.host for address in nimbuses.tried] == ["one"]
    assert "ended; nothing was managed" in done.output


class EndsAtTheFirstPause(Stop):
    def wait(self, timeout: float | None = None) -> bool:
        if timeout is not None:  # else who says that it ends
            self.set()
        return super().wait(timeout)


def test_a_nimbus_that_does_not_answer_is_told_of_at_the_first_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nimbuses = NobodyAnswers(on_try=lambda: None)
    monkeypatch.setattr(standalone_command, "stop_on_signals", EndsAtTheFirstPause)
    monkeypatch.setattr(ManagerLock, "take", lambda _: None)
    monkeypatch.setattr("storm_operator.assembly.NotedConnection", nimbuses)
    done = CliRunner().invoke(app, ["standalone", str(tmp_path), *TWO_SEEDS], env={"COLUMNS": "300"})
    assert "waiting: Nimbus one:1, two:1 cannot be reached (one:1: refused; two:1: refused)" in done.output
    assert len(nimbuses.tried) == 2


def test_told_to_end_no_zookeeper_is_waited_for() -> None:
    session = ZooKeeperSession("127.0.0.1:1", timeout_seconds=100.0, gives_up=lambda: True)
    with pytest.raises(ZooKeeperUnreachable, match=r"127\.0\.0\.1:1 did not answer so far"):
        session.get("/storm")
    session.close()


def test_what_must_not_be_left_half_done_is_waited_for_also_at_the_end() -> None:
    stop, moved = threading.Event(), ["words-1"]
    patience = Patience(stop, lambda: moved)
    assert not patience.is_over()
    stop.set()
    assert not patience.is_over()
    moved.clear()
    assert patience.is_over()
    patience.end_passes()
    assert not patience.is_over(), "limits are lifted then"


def test_that_it_ends_is_said_when_it_is_told_so_and_before_the_last_words() -> None:
    for _ in range(50):
        stop, said = Stop(), list[str]()
        with saying_when_asked_to_end(stop, said.append):
            stop.is_asked_for = True
            stop.set()
        said.append("ended")
        assert said == [ENDING, "ended"]


def test_an_end_that_nobody_asked_for_is_not_told_as_one() -> None:
    """As where another manager has taken over."""
    stop, said = Stop(), list[str]()
    with saying_when_asked_to_end(stop, said.append):
        stop.set()
    assert said == []


def test_what_an_earlier_life_left_half_done_is_waited_for() -> None:
    stop = threading.Event()
    stop.set()
    assert not Patience(stop, is_recovering=True).is_over()


def test_passes_are_over_before_the_cluster_is_left_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, said, loop = threading.Event(), list[str](), scene().loop
    stop.set()
    monkeypatch.setattr(ControlLoop, "release", lambda _: said.append("release"))
    lifecycle = LifecycleManager(NothingRuns(stop.set), None, said.append)  # type: ignore[arg-type]
    around = AroundPasses(over=lambda: said.append("over"))
    run_forever(TopologyFolder(tmp_path, said.append), lifecycle, loop, stop, said.append, around)
    assert said == ["over", "release"]


def test_errors_name_the_options_that_gave_the_addresses() -> None:
    connection = connection_from(None, ["nimbus:6627"], "one:2181,two:2181/below")
    assert (connection.nimbus_named_by, connection.zookeeper_named_by) == ("--nimbus", "--zookeeper")
    assert connection.root_named_by == "--zookeeper-root"
    assembly = assemble(connection, Recorder())
    assembly.close()
    session = ZooKeeperSession("127.0.0.1:1", timeout_seconds=0.2, named_by="--zookeeper")
    with pytest.raises(ZooKeeperUnreachable, match=r"and that its address is right in --zookeeper$"):
        session.get("/storm")
    session.close()
    client = NimbusClient(["127.0.0.1:1"], patience_seconds=0.0, named_by="--nimbus")
    with pytest.raises(NimbusUnreachable, match=r"and that its address is right in --nimbus$"):
        client.leader()


@dataclass
class NothingRuns:
    """A Nimbus without topologies, which stops the loop when it is asked for them."""

    stop: Callable[[], None]

    def running(self) -> tuple[()]:
        self.stop()
        return ()


@pytest.mark.parametrize("answers_at", [1, 3, None])
def test_nothing_is_done_before_the_cluster_has_answered(answers_at: int | None, tmp_path: Path) -> None:
    said, stop, tries = list[str](), threading.Event(), list[int]()
    loop = scene().loop
    loop.period_seconds = 0.01

    def begin() -> None:
        tries.append(1)
        if len(tries) == 5:
            stop.set()
        if len(tries) != answers_at:
            raise ZooKeeperUnreachable("no answer")

    lifecycle = LifecycleManager(NothingRuns(stop.set), None, said.append)  # type: ignore[arg-type]
    folder = TopologyFolder(tmp_path, said.append)
    assert run_forever(folder, lifecycle, loop, stop, said.append, AroundPasses(begin)) is (answers_at is not None)
    assert len(tries) == (answers_at or 5)
    assert said == ([] if answers_at == 1 else ["waiting: no answer"])


def test_the_shortest_control_period_is_everybodys(tmp_path: Path) -> None:
    said, stop, loop = list[str](), threading.Event(), scene().loop
    for name, seconds in (("slow", 60), ("fast", 20)):
        told = f"metadata: {{name: {name}}}\nspec: {{adopt: {{}}, scheduling: {{periodSeconds: {seconds}}}}}\n"
        (tmp_path / f"{name}.yaml").write_text(f"apiVersion: storm-operator.dev/v1alpha1\nkind: StormTopology\n{told}")
        os.utime(tmp_path / f"{name}.yaml", (1.0, 1.0))

    def begin() -> None:
        stop.set()
        raise ZooKeeperUnreachable("no answer")

    lifecycle = LifecycleManager(NothingRuns(stop.set), None, said.append)  # type: ignore[arg-type]
    run_forever(TopologyFolder(tmp_path, said.append), lifecycle, loop, stop, said.append, AroundPasses(begin))
    assert loop.period_seconds == 20.0


@pytest.mark.parametrize("fails", ["begin", "recover"])
def test_why_nothing_begins_is_told_at_each_try(fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no pass yet that would tell the page."""
    stop, heard, played = threading.Event(), list[str](), scene()
    played.loop.period_seconds = 0.01

    def away() -> None:
        raise NimbusUnreachable("Nimbus does not answer")

    def unseen(why: str) -> None:
        heard.append(why)
        if len(heard) == 2:
            stop.set()

    monkeypatch.setattr(ControlLoop, "recover", lambda _: away())
    around = AroundPasses(begin=away if fails == "begin" else lambda: None, unseen=unseen)
    lifecycle = LifecycleManager(NothingRuns(stop.set), None, heard.append)  # type: ignore[arg-type]
    run_forever(TopologyFolder(tmp_path, lambda _: None), lifecycle, played.loop, stop, lambda _: None, around)
    assert heard == ["Nimbus does not answer"] * 2
    assert played.audience.reports == []


def test_a_nimbus_that_goes_away_later_is_the_decision_of_each_pass(tmp_path: Path) -> None:
    """The page, the history and `explain` would else go on with what was decided before."""
    said, stop, played = list[str](), threading.Event(), scene()
    played.loop.period_seconds = 0.01
    played.run()
    played.audience.reports.clear()

    class Away:
        def running(self) -> tuple[()]:
            if len(played.audience.reports) == 2:
                stop.set()
                return ()
            raise NimbusUnreachable("Nimbus does not answer")

    lifecycle = LifecycleManager(Away(), None, said.append)  # type: ignore[arg-type]
    assert run_forever(TopologyFolder(tmp_path, said.append), lifecycle, played.loop, stop, said.append, AroundPasses())
    holds = [report.decisions[0][1] for report in played.audience.reports[:2]]
    assert all(isinstance(hold, Hold) and hold.reason is HoldReason.CLUSTER_UNREACHABLE for hold in holds)
    assert all(report.snapshot is None for report in played.audience.reports[:2])
    assert all(report.step_seconds == {} for report in played.audience.reports[:2]), "no step was taken"
    assert said == [], "the listener says it"


def test_a_pass_that_fails_unforeseen_is_told_once_and_the_next_is_tried(tmp_path: Path) -> None:
    said, shown, stop, passes = list[str](), list[str](), threading.Event(), list[int]()
    loop = scene().loop
    loop.period_seconds = 0.01

    def before() -> None:
        passes.append(1)
        if len(passes) < 3:
            raise ValueError("population = 0")
        stop.set()

    lifecycle = LifecycleManager(NothingRuns(lambda: None), None, said.append)  # type: ignore[arg-type]
    folder = TopologyFolder(tmp_path, said.append)
    around = AroundPasses(before=before, unseen=shown.append)
    assert run_forever(folder, lifecycle, loop, stop, said.append, around)
    assert len(passes) == 3
    words = "the operator failed (ValueError: population = 0); its terminal says where; please report it"
    assert shown == [words] * 2, "the page would else show the last pass as if it were of now"
    (told,) = said
    assert told.startswith("this pass failed, the next one is tried: ValueError: population = 0\nTraceback")


def test_a_folder_whose_reading_fails_unforeseen_is_read_anew(tmp_path: Path) -> None:
    said, stop, loop = list[str](), threading.Event(), scene().loop
    loop.period_seconds = 0.01
    folder = Mock(read=Mock(side_effect=[{}, RecursionError("too deep"), {}]))
    around = AroundPasses(ended=lambda *_: stop.set() if folder.read.call_count == 3 else None)
    lifecycle = LifecycleManager(NothingRuns(lambda: None), None, said.append)  # type: ignore[arg-type]
    assert run_forever(folder, lifecycle, loop, stop, said.append, around)
    (told,) = said
    assert told.startswith("this pass failed, the next one is tried: RecursionError: too deep\nTraceback")


@pytest.mark.parametrize(
    ("fails_with", "being_moved", "seconds"),
    [
        (None, (), 600.0),
        (None, ("words",), 10.0),
        (NimbusUnreachable("away"), (), 10.0),
        (ValueError("population = 0"), (), 10.0),
    ],
    ids=["came through", "left a plan half done", "peer in the way", "unforeseen"],
)
def test_after_a_pass_that_failed_the_next_one_comes_soon_however_long_the_period(
    fails_with: Exception | None,
    being_moved: tuple[str, ...],
    seconds: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spouts may be paused meanwhile."""
    monkeypatch.setattr(ControlLoop, "being_moved", being_moved)
    stop, played, told = Mock(is_set=Mock(side_effect=[False, True])), scene(), list[float]()
    played.loop.period_seconds, played.observer.error = 600.0, fails_with
    monkeypatch.setattr(standalone, "time", Mock(monotonic=lambda: 100.0, time=lambda: 1_800_000_000.0))
    lifecycle = LifecycleManager(NothingRuns(lambda: None), None, lambda _: None)  # type: ignore[arg-type]
    around = AroundPasses(ended=lambda _, failed, managed, to_next: told.append(to_next))
    run_forever(TopologyFolder(tmp_path, lambda _: None), lifecycle, played.loop, stop, lambda _: None, around)
    stop.wait.assert_called_once_with(seconds)
    assert told == [seconds]


DRAINED = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, apply_method=ApplyMethod.DRAIN))}


@pytest.mark.parametrize("nimbus_answers", [True, False])
def test_a_second_ctrl_c_in_the_midst_of_a_drained_plan_resumes_the_spouts(
    nimbus_answers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, stop, played = list[str](), threading.Event(), scene()

    def interrupt(_: float) -> None:
        assert played.cluster.inactive == {"words"}
        if not nimbus_answers:
            monkeypatch.setattr(played.cluster, "activate", refuse)
        raise KeyboardInterrupt

    def refuse(_: str) -> None:
        raise NimbusUnreachable("Nimbus does not answer")

    monkeypatch.setattr(played.cluster.clock, "sleep", interrupt)
    lifecycle = LifecycleManager(NothingRuns(lambda: None), None, said.append)  # type: ignore[arg-type]
    folder = TopologyFolder(tmp_path, said.append)
    monkeypatch.setattr(TopologyFolder, "read", lambda _: DRAINED)
    monkeypatch.setattr(LifecycleManager, "step", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        run_forever(folder, lifecycle, played.loop, stop, said.append)
    assert (not played.cluster.inactive) is nimbus_answers
    (told,) = said
    assert told == (
        "the spouts of words, which a plan had paused, are resumed"
        if nimbus_answers
        else "the spouts of words may stay paused: Nimbus does not answer; `storm activate NAME` or the next start "
        "resumes them"
    )
    assert last_words(played.loop, begun=True) == (
        "ended in the midst of a plan for words; the next start goes on with it"
    )


def test_spouts_that_a_plan_has_paused_do_not_wait_for_a_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another topology's main class may take minutes, or hang for an hour."""
    stop, played, paused = threading.Event(), scene(), list[set[str]]()
    with patch.object(played.cluster, "activate", Mock(side_effect=NimbusUnreachable("it fails over"))):
        played.run(DRAINED)
    assert (played.loop.being_moved, played.cluster.inactive) == (("words",), {"words"})

    def submit(*_: object) -> None:
        paused.append({*played.cluster.inactive})
        stop.set()

    monkeypatch.setattr(ControlLoop, "recover", lambda _: None)
    monkeypatch.setattr(TopologyFolder, "read", lambda _: DRAINED)
    monkeypatch.setattr(LifecycleManager, "step", submit)
    lifecycle = LifecycleManager(NothingRuns(lambda: None), None, lambda _: None)  # type: ignore[arg-type]
    run_forever(TopologyFolder(tmp_path, lambda _: None), lifecycle, played.loop, stop, lambda _: None)
    assert paused == [set()]


def test_who_ends_with_nothing_in_hand_says_how_topologies_are_left() -> None:
    played = scene()
    assert last_words(played.loop, begun=False) == "ended; nothing was managed"
    assert last_words(played.loop, begun=True) == "ended; topologies are left running under the plans in force"


def test_who_has_lost_the_cluster_to_another_asks_nimbus_for_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def confirm() -> None:
        raise PermissionError("another storm-operator has taken over")

    assembly = assemble(connection_from(None, ["nimbus:6627"], "zookeeper:2181"), Recorder(), confirm=confirm)
    monkeypatch.setattr(assembly.client, "_leader_connection", lambda: None)
    with pytest.raises(PermissionError):
        assembly.client.deactivate("words")
    assembly.close()


def test_a_start_that_fails_unforeseen_is_the_end(tmp_path: Path) -> None:
    def begin() -> None:
        raise ValueError("no such thing")

    said, stop = list[str](), threading.Event()
    lifecycle = LifecycleManager(NothingRuns(stop.set), None, said.append)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no such thing"):
        run_forever(
            TopologyFolder(tmp_path, said.append), lifecycle, scene().loop, stop, said.append, AroundPasses(begin)
        )


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("s3://", "it names no bucket, as s3://bucket/prefix does"),
        ("s3a:///prefix", "it names no bucket"),
        ("/proc/history", "cannot be written to"),
        ("", "it is empty: a folder or s3://bucket/prefix is right"),
    ],
)
def test_a_place_where_no_history_can_be_recorded_is_refused_at_the_start(place: str, said: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        recorder_for(HistorySettings(place), "nimbus:6627", lambda _: None)
    assert str(refused.value).startswith(f"--history: {place!r} cannot be written to: ")
    assert said in str(refused.value)


def test_a_clusters_name_that_spark_would_not_read_as_it_is_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(
        typer.BadParameter, match=r"--history: the name of a cluster in the history is .* 'Köln' is not"
    ):
        recorder_for(HistorySettings(str(tmp_path), "Köln"), "nimbus:6627", lambda _: None)


def test_a_folder_for_history_that_is_not_there_yet_is_made_and_left_empty(tmp_path: Path) -> None:
    recorder_for(HistorySettings(str(tmp_path / "new")), "nimbus:6627", lambda _: None).close()
    assert [path for path in (tmp_path / "new").rglob("*") if path.is_file()] == []

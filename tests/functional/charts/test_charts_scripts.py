"""The scripts that start Storm's daemons and agents in pods, run for real with small programs in their place."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from functional.charts.chart_objects import CHARTS, Helm, container

SCRIPTS = CHARTS / "storm" / "files"
OWN_PROCESSES = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
WORKER = "bash -c 'echo ready; while true; do sleep 0.1; done' org.apache.storm.daemon.worker.Worker"
PATIENCE_SECONDS = 60.0

Start = Callable[..., "Daemon"]


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


class Daemon:
    """`run-daemon.sh` with a shell program in the place of Java."""

    def __init__(self, folder: Path, program: str, own_processes: bool, settings: dict[str, str]) -> None:
        self._folder = folder
        self._own_processes = own_processes
        namespace = OWN_PROCESSES if own_processes else ()
        with (folder / "output").open("w") as output:
            self._process = subprocess.Popen(
                [*namespace, "bash", str(SCRIPTS / "run-daemon.sh"), "bash", "-c", program],
                cwd=folder,
                env=os.environ | settings,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def says(self, text: str) -> None:
        """Waits until it has said `text`."""
        eventually(lambda: text in self.said(), f"it never said {text!r}")

    def said(self) -> str:
        return (self._folder / "output").read_text()

    def tell_to_end(self) -> None:
        """SIGTERM to the script alone, as from a kubelet."""
        os.kill(self.script_pid(), signal.SIGTERM)

    def status(self) -> int:
        """Waits for its end."""
        return self._process.wait(PATIENCE_SECONDS)

    def running(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        if self.running():
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def script_pid(self) -> int:
        pid = self._process.pid
        if not self._own_processes:
            return pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Daemon] = []

    def start_one(program: str, own_processes: bool = False, **settings: str) -> Daemon:
        started.append(Daemon(tmp_path, program, own_processes, settings))
        return started[-1]

    yield start_one
    for daemon in started:
        daemon.end()


def test_its_status_is_the_daemons(start: Start) -> None:
    assert start("exit 7").status() == 7


def test_told_to_end_it_ends_the_daemon_and_is_content(start: Start) -> None:
    daemon = start("trap 'echo goodbye; exit 143' TERM; echo hello; while true; do sleep 0.1; done")
    daemon.says("hello")
    daemon.tell_to_end()
    assert daemon.status() == 0
    assert daemon.said().endswith("goodbye\n")


def test_it_waits_for_the_first_of_several_ports_that_answers(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        silent = closed.getsockname()[1]
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        daemon = start("echo started", WAIT_FOR_PORT=f"127.0.0.1:{silent},127.0.0.1:{port}")
        daemon.says(f"waiting for 127.0.0.1:{silent},127.0.0.1:{port}")
        assert "started" not in daemon.said()
        server.listen()
        assert daemon.status() == 0
    assert daemon.said().count("waiting") == 1
    assert daemon.said().endswith("started\n")


def probe_says(helm: Helm, kind: str, folder: Path, port: int) -> bool:
    """What the supervisor's probe answers, asked in this machine with `folder` as the container's /tmp."""
    pod = helm.template("storm").one("StatefulSet", "storm-supervisor")["spec"]["template"]["spec"]
    shell, option, words = container(pod, "supervisor")[kind]["exec"]["command"]
    command = [shell, option, words.replace("/tmp/waiting", f"{folder}/waiting").replace("/6628", f"/{port}")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_while_it_waits_it_is_well_and_afterwards_only_if_the_daemon_listens(
    start: Start, helm: Helm, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        own_port = closed.getsockname()[1]
    with socket.socket() as zookeeper:
        zookeeper.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{zookeeper.getsockname()[1]}"
        settings = {"WAIT_FOR_PORT": address, "TMPDIR": str(tmp_path)}
        daemon = start("echo started; while [ ! -e go ]; do sleep 0.1; done", **settings)
        daemon.says("waiting for")
        eventually(lambda: probe_says(helm, "livenessProbe", tmp_path, own_port), "it is not well while it waits")
        assert probe_says(helm, "startupProbe", tmp_path, own_port)
        zookeeper.listen()
        daemon.says("started")
        assert not probe_says(helm, "livenessProbe", tmp_path, own_port)
        with socket.create_server(("127.0.0.1", own_port)):
            assert probe_says(helm, "livenessProbe", tmp_path, own_port)
        (tmp_path / "go").touch()
        assert daemon.status() == 0


def test_a_daemon_that_is_kept_running_waits_again_each_time(start: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as zookeeper:
        address = f"127.0.0.1:{zookeeper.getsockname()[1]}"
        settings = {"WAIT_FOR_PORT": address, "TMPDIR": str(tmp_path), "KEEP_RUNNING": "yes"}
        daemon = start("echo started; while [ ! -e go ]; do sleep 0.1; done", **settings)
        daemon.says("started")
    (tmp_path / "go").touch()
    daemon.says("waiting for")
    eventually((tmp_path / "waiting").exists, "nobody can see that it waits")
    daemon.tell_to_end()
    assert daemon.status() == 0
    assert daemon.said().count("started") == 1


def test_told_to_end_while_it_waits_it_ends(start: Start) -> None:
    daemon = start("echo started", WAIT_FOR_PORT="127.0.0.1:1")
    daemon.says("waiting for")
    daemon.tell_to_end()
    assert daemon.status() == 0
    assert "started" not in daemon.said()


def test_a_daemon_to_be_kept_running_is_started_again(start: Start) -> None:
    daemon = start("[ -e once ] && { echo second; exec sleep 1000; }; touch once; exit 20", KEEP_RUNNING="yes")
    daemon.says("second")
    assert "the daemon ended with status 20, starting it again" in daemon.said()
    daemon.tell_to_end()
    assert daemon.status() == 0


def test_quick_deaths_in_a_row_end_it_with_the_daemons_status(start: Start) -> None:
    daemon = start("echo run; exit 20", KEEP_RUNNING="yes")
    assert daemon.status() == 20
    assert daemon.said().count("run\n") == 5


@pytest.mark.root
def test_it_stays_until_the_last_worker_has_left(start: Start, tmp_path: Path) -> None:
    daemon = start(f"{WORKER} & echo $! > worker; exec sleep 1000", own_processes=True, DRAIN_SECONDS="1000")
    daemon.says("ready")
    daemon.tell_to_end()
    daemon.says("draining: workers may go on for 1000 s")
    assert daemon.running()
    inner_pid = (tmp_path / "worker").read_text().strip()
    subprocess.run(["nsenter", f"--target={daemon.script_pid()}", "--pid", "--mount", "kill", inner_pid], check=True)
    assert daemon.status() == 0
    assert "draining: no worker is left" in daemon.said()


@pytest.mark.root
def test_when_time_is_up_it_ends_the_workers_that_are_left(start: Start) -> None:
    daemon = start(f"{WORKER} & exec sleep 1000", own_processes=True, DRAIN_SECONDS="1")
    daemon.says("ready")
    daemon.tell_to_end()
    assert daemon.status() == 0
    assert "draining: it is no use to wait longer, ending what is left" in daemon.said()


@pytest.mark.root
def test_it_does_not_wait_for_a_cluster_that_is_gone(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as zookeeper:
        address = f"127.0.0.1:{zookeeper.getsockname()[1]}"
        program = f"{WORKER} & exec sleep 1000"
        daemon = start(program, own_processes=True, DRAIN_SECONDS="1000", WAIT_FOR_PORT=address)
        daemon.says("ready")
    daemon.tell_to_end()
    assert daemon.status() == 0
    assert "ending what is left" in daemon.said()


@pytest.mark.root
def test_without_workers_there_is_nothing_to_drain(start: Start) -> None:
    daemon = start("echo ready; exec sleep 1000", own_processes=True, DRAIN_SECONDS="1000")
    daemon.says("ready")
    daemon.tell_to_end()
    assert daemon.status() == 0
    assert "draining" not in daemon.said()


@pytest.mark.parametrize(
    ("pod", "count", "peers"),
    [("storm-supervisor-1", 3, (0, 2)), ("storm-supervisor-0", 1, ()), ("storm-supervisor-5", 2, (0, 1))],
)
def test_an_agents_peers_are_all_other_supervisors(pod: str, count: int, peers: tuple[int, ...]) -> None:
    domain = "storm-supervisor.streams.svc.cluster.local"
    done = subprocess.run(
        ["bash", str(SCRIPTS / "run-agent.sh"), "printf", "%s\n", "storm-operator"],
        env=os.environ | {"POD_NAME": pod, "PEER_COUNT": str(count), "PEER_DOMAIN": domain},
        capture_output=True,
        text=True,
        check=True,
    )
    names = [f"storm-supervisor-{peer}.{domain}" for peer in peers]
    expected = ["storm-operator"]
    for name in names:
        expected += ["--peer", f"{name}={name}:9464"]
    assert done.stdout.split() == expected


def remove_old_logs(pod: dict[str, Any], node: Path) -> str:
    """What the script says, told what the supervisor's container is told, with the folder `node` as its root."""
    told = {one["name"]: one.get("value", "") for one in container(pod, "supervisor")["env"]}
    folders = (f"{node}{told[name]}" for name in ("LOGS", "CODE"))
    command = ["bash", str(SCRIPTS / "remove-old-logs.sh"), told["KEEP_LOGS_DAYS"], *folders]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def log_of(node: Path, topology: str, days_old: float) -> Path:
    """A worker's log that was written to so long ago, in a folder that is as old."""
    file = node / "var/log/storm/workers-artifacts" / topology / "6700" / "worker.log"
    file.parent.mkdir(parents=True)
    file.write_text("words\n")
    when = time.time() - days_old * 86_400
    for path in (file, file.parent, file.parent.parent):
        os.utime(path, (when, when))
    return file


def test_logs_of_ended_topologies_go_after_a_while(helm: Helm, tmp_path: Path) -> None:
    """Nothing else removes them: the node's disk fills up with those of each topology that was ever submitted."""
    pod = helm.template("storm", "supervisor.keepLogsDays=7").one("StatefulSet", "storm-supervisor")
    ended = log_of(tmp_path, "words-1-1767268800", days_old=8.5)
    just_ended = log_of(tmp_path, "words-2-1767868800", days_old=0.0)
    silent = log_of(tmp_path, "quiet-3-1767268900", days_old=30.0)
    (tmp_path / "var/lib/storm/supervisor/stormdist/quiet-3-1767268900").mkdir(parents=True)
    said = remove_old_logs(pod["spec"]["template"]["spec"], tmp_path)
    assert [one.exists() for one in (ended, just_ended, silent)] == [False, True, True]
    assert said == "removed the logs of words-1-1767268800, which has ended: none of them was written to for 7 days\n"
    assert [one.name for one in ended.parents[2].iterdir() if one.name.startswith("words-1")] == []


def test_all_logs_stay_where_nobody_can_tell_which_topologies_have_ended(helm: Helm, tmp_path: Path) -> None:
    """As where Storm keeps their code elsewhere: a topology that is silent would lose what it writes next."""
    pod = helm.template("storm").one("StatefulSet", "storm-supervisor")
    silent = log_of(tmp_path, "quiet-3-1767268900", days_old=30.0)
    assert remove_old_logs(pod["spec"]["template"]["spec"], tmp_path) == ""
    assert silent.exists()


@pytest.mark.parametrize("days", ["7", "0", ""])
def test_old_logs_are_removed_beside_the_daemon_unless_they_are_to_stay(
    start: Start, tmp_path: Path, days: str
) -> None:
    old = log_of(tmp_path, "words-1-1767268800", days_old=8.5)
    (tmp_path / "stormdist").mkdir()
    folders = {"LOGS": str(old.parents[2]), "CODE": str(tmp_path / "stormdist")}
    daemon = start(
        "for i in {1..20}; do sleep 0.1; [ -e $OLD ] || break; done", KEEP_LOGS_DAYS=days, OLD=str(old), **folders
    )
    assert daemon.status() == 0
    assert old.exists() is (days != "7")

"""Real peers of the agent: a busy JVM, cgroups of this kernel, the agent's own process."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from storm_operator.agent.cgroups import write_control
from storm_operator.agent.machine_cgroup import Mount, parse_mounts
from storm_operator.local.distribution import ensure_distribution

BUSY_PROGRAM = Path(__file__).parent / "TwoBusyThreads.java"
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class BusyProcess:
    """A JVM with two threads that never rest."""

    pid: int
    first_tid: int
    second_tid: int


@contextlib.contextmanager
def busy_jvm(niceness: int = 0) -> Iterator[BusyProcess]:
    command = [
        "nice",
        "-n",
        str(niceness),
        "java",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Xmx32m",
        str(BUSY_PROGRAM),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            tids = dict(process.stdout.readline().split() for _ in range(2))
            yield BusyProcess(process.pid, int(tids["first"]), int(tids["second"]))
        finally:
            process.kill()


def mounted(version: int, controller: str = "") -> Mount:
    """The hierarchy with `controller`; the test is skipped when this user cannot make cgroups in it."""
    for mount in parse_mounts(Path("/proc/self/mountinfo").read_text()):
        if mount.version == version and (version == 2 or controller in mount.controllers):
            if os.geteuid() == 0 and os.access(mount.mount_point, os.W_OK):
                return mount
            pytest.skip(f"cannot make cgroups below {mount.mount_point}: not root, or mounted read-only")
    pytest.skip(f"no cgroup version {version} hierarchy {controller} is mounted")


@contextlib.contextmanager
def machine_folders(*mounts: Mount) -> Iterator[list[Path]]:
    """A cgroup of one name below each of `mounts`; at the end its processes go back and it is removed."""
    folders = [mount.mount_point / f"storm-agent-test-{os.getpid()}" for mount in mounts]
    for folder in folders:
        folder.mkdir()
    try:
        yield folders
    finally:
        for folder, mount in zip(folders, mounts, strict=True):
            _remove_machine(folder, mount)


def _remove_machine(folder: Path, mount: Mount) -> None:
    for child in [entry for entry in folder.iterdir() if entry.is_dir()]:
        threads = "tasks" if mount.version == 1 else "cgroup.threads"
        for tid in (child / threads).read_text().split():
            with contextlib.suppress(ProcessLookupError):
                write_control(folder / threads, tid)
        child.rmdir()
    for pid in (folder / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            write_control(mount.mount_point / "cgroup.procs", pid)
    eventually(lambda: not (folder / "cgroup.procs").read_text().split())
    folder.rmdir()


def eventually(condition: Callable[[], object], patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Waits until `condition` holds; fails with its last answer when it never does."""
    deadline = time.monotonic() + patience_seconds
    while not (last := condition()):
        assert time.monotonic() < deadline, f"still not so after {patience_seconds} s, last seen: {last!r}"
        time.sleep(0.02)


class AgentProcess:
    """`python -m storm_operator.agent` and what it says."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log
        eventually(lambda: process.poll() is not None or "listens on" in self.log())
        found = re.search(r"listens on [^ ]+:(\d+)", self.log())
        assert found, self.log()
        self.port = int(found[1])

    def log(self) -> str:
        return self._log.read_text()

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def scrape(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of each sample called `name`."""
        families = text_string_to_metric_families(self.get("/metrics")[1])
        return [
            (dict(sample.labels), sample.value)
            for family in families
            for sample in family.samples
            if sample.name == name
        ]

    def terminate(self) -> int:
        """SIGTERM, and the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=10)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def running_agent(folder: Path, *options: str) -> Iterator[AgentProcess]:
    """An agent on a free port with its snapshots in `folder`/metrics."""
    (folder / "metrics").mkdir(exist_ok=True)
    log = folder / f"agent-{time.monotonic_ns()}.log"
    command = [
        *(sys.executable, "-m", "storm_operator.agent", "--host", "sup-1", "--listen", "127.0.0.1:0"),
        *("--metrics-dir", str(folder / "metrics"), *options),
    ]
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out, text=True) as process:
        try:
            yield AgentProcess(process, log)
        finally:
            process.kill()


class ZooKeeperServer:
    """A ZooKeeper of Storm's own jars, which can be killed and started again with its data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def hosts(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        jars = ensure_distribution(lambda _: None) / "lib" / "*"
        configuration = self._folder / "zoo.cfg"
        configuration.write_text(
            f"dataDir={self._folder}/zookeeper\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "tickTime=1000\nadmin.enableServer=false\n"
        )
        command = ["java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", str(jars)]
        main = "org.apache.storm.shade.org.apache.zookeeper.server.ZooKeeperServerMain"
        with (self._folder / "zookeeper.log").open("a") as log:
            self._process = subprocess.Popen([*command, main, str(configuration)], stdout=log, stderr=log)
        eventually(self._accepts)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _accepts(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False

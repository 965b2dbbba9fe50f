"""Fixtures of the agent's functional tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from functional.agent.agent_peers import BusyProcess, ZooKeeperServer, busy_jvm, machine_folders, mounted


@pytest.fixture
def busy_process() -> Iterator[BusyProcess]:
    with busy_jvm() as process:
        yield process


@pytest.fixture
def polite_process() -> Iterator[BusyProcess]:
    """Busy only while nobody else is: for tests that look at something else than its share of the CPU."""
    with busy_jvm(niceness=15) as process:
        yield process


@pytest.fixture
def machine_v1() -> Iterator[Path]:
    """A machine of 1500 millicores: a folder in the cpu hierarchy, and its twin in cpuacct."""
    with machine_folders(mounted(1, "cpu"), mounted(1, "cpuacct")) as (folder, _):
        (folder / "cpu.cfs_period_us").write_text("20000")
        (folder / "cpu.cfs_quota_us").write_text("30000")
        yield folder


@pytest.fixture
def machine_v2() -> Iterator[Path]:
    with machine_folders(mounted(2)) as (folder,):
        yield folder


@pytest.fixture
def zookeeper_server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer(tmp_path)
    try:
        server.start()
        yield server
    finally:
        server.stop()

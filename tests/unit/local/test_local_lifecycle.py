"""What is refused, and what becomes of the clusters that are there: on state files and sockets alone."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_operator.local import cluster as cluster_module
from storm_operator.local import lifecycle, rehearsal
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.lifecycle import (
    ZOOKEEPER_PORT,
    first_free_ports,
    plan_layout,
    preferred_port,
    read_layout,
    state_file,
)
from storm_operator.local.spec import ClusterLayout, LocalClusterError, LocalClusterSpec, lay_out, to_json

NAME = "unit-up"


@pytest.fixture(autouse=True)
def swept(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """State of its own, nothing to install, and no real sweep: the names that would have been swept."""
    names: list[str] = []
    with tempfile.TemporaryDirectory(prefix="so-") as folder:  # short: a socket's path has few bytes
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        monkeypatch.setattr(lifecycle, "sweep", names.append)
        monkeypatch.setattr(lifecycle, "ensure_distribution", lambda _: Path(folder, "storm"))
        monkeypatch.setattr(cluster_module, "ensure_distribution", lambda _: None)
        monkeypatch.setattr(cluster_module, "ensure_archives", lambda _: {})
        monkeypatch.setattr(cluster_module, "missing_prerequisites", lambda: ())
        yield names


def layout_of(name: str) -> ClusterLayout:
    return lay_out(LocalClusterSpec(name=name), state_file(name).parent, False, 6627, 2181)


@pytest.fixture
def running() -> Iterator[ClusterLayout]:
    """A cluster whose keeper answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as keeper:
        yield pretend_running(NAME, keeper)


def pretend_running(name: str, keeper: socket.socket) -> ClusterLayout:
    layout = layout_of(name)
    state_file(name).parent.mkdir(parents=True)
    state_file(name).write_text(to_json(layout))
    keeper.bind(str(layout.keeper_socket))
    keeper.listen()
    return layout


def test_a_second_cluster_of_a_name_is_refused_and_the_first_goes_on(running: ClusterLayout, swept: list[str]) -> None:
    with pytest.raises(LocalClusterError, match="is up already"), LocalCluster(running.spec, isolate=False):
        pass
    assert swept == []
    assert read_layout(NAME) == running


def test_a_second_rehearsal_is_refused_and_the_first_goes_on(swept: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(rehearsal, "archive_options", dict)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as keeper:
        first = pretend_running(rehearsal.NAME, keeper)
        rehearsal.ensure_archives(said.append)
        assert "is up already" in said[-1]
        assert swept == []
        assert read_layout(rehearsal.NAME) == first


def test_zookeeper_gets_no_port_on_which_another_listens() -> None:
    port = first_free_ports(preferred_port(ZOOKEEPER_PORT, NAME), 1)
    with socket.socket() as foreign:
        foreign.bind(("", port))
        foreign.listen()
        assert plan_layout(LocalClusterSpec(name=NAME), {}, isolate=False).zookeeper_port > port


@pytest.mark.parametrize("name", [NAME, LocalClusterSpec().name])
def test_on_loopback_nimbus_zookeeper_and_workers_have_different_ports(name: str) -> None:
    layout = plan_layout(LocalClusterSpec(name=name, slots_per_machine=40), {}, isolate=False)
    of_machines = [port for machine in layout.machines for port in (*machine.ports, machine.thrift_port)]
    ports = [layout.nimbus_port, layout.zookeeper_port, *of_machines]
    assert len(set(ports)) == len(ports) == 2 + 4 * 41

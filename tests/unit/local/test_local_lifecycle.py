"""What is refused, and what becomes of the clusters that are there: on state files and sockets alone."""

from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import typer
from typer.testing import CliRunner

from storm_operator.local import cluster as cluster_module
from storm_operator.local import commands, lifecycle, network, rehearsal
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.commands import app
from storm_operator.local.lifecycle import (
    ZOOKEEPER_PORT,
    bring_up,
    first_free_ports,
    plan_layout,
    preferred_port,
    take_down,
    take_down_orphans,
)
from storm_operator.local.spec import AGENT_PORT, ClusterLayout, LocalClusterError, LocalClusterSpec, lay_out
from storm_operator.local.state_file import read_layout, state_file, write_layout

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


def break_state_file(name: str, text: str = "") -> Path:
    state_file(name).parent.mkdir(parents=True)
    state_file(name).write_text(text)
    return state_file(name)


@pytest.fixture
def running() -> Iterator[ClusterLayout]:
    """A cluster whose keeper answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as keeper:
        yield pretend_running(NAME, keeper)


def pretend_running(name: str, keeper: socket.socket) -> ClusterLayout:
    layout = layout_of(name)
    write_layout(layout)
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


def test_a_rehearsal_ends_with_whoever_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Left running it would be up already for all later ones, and nothing would ever start fast."""
    begun: list[ClusterLayout] = []

    def bring_up(layout: ClusterLayout, _: Path) -> None:
        begun.append(layout)
        stop_here()

    monkeypatch.setattr(rehearsal, "archive_options", dict)
    monkeypatch.setattr(rehearsal, "bring_up", bring_up)
    with pytest.raises(Stopped):
        rehearsal.ensure_archives(lambda _: None)
    assert [layout.owner_pid for layout in begun] == [os.getpid()]


def has_interface(monkeypatch: pytest.MonkeyPatch, name: str, address: str) -> None:
    """One more on this machine, as psutil tells of it."""
    own = ipaddress.IPv4Interface(address)
    told = SimpleNamespace(family=socket.AF_INET, address=str(own.ip), netmask=str(own.netmask))
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: {name: [told]})


def isolated(subnet: str) -> ClusterLayout:
    return lay_out(LocalClusterSpec(name=NAME, subnet=subnet), state_file(NAME).parent, True, 6627, 2181)


@pytest.mark.parametrize(
    ("own", "subnet"),
    [
        ("192.168.50.7/24", "192.168.50.0/24"),
        ("192.168.50.7/32", "192.168.50.0/24"),
        ("192.168.50.9/16", "192.168.50.0/24"),
        ("10.77.5.9/16", "10.77.0.0/24"),
        ("10.77.5.9/16", "10.77.255.0/24"),
    ],
)
def test_a_network_that_this_machine_or_its_gateway_is_in_is_refused(
    own: str, subnet: str, swept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway's address, mostly the first, would be the cluster's host: this machine would be cut off."""
    has_interface(monkeypatch, "lan0", own)
    monkeypatch.setattr(lifecycle, "make_storm_home", stop_here)
    with pytest.raises(LocalClusterError, match=rf"subnet: '{subnet}' has .* interface lan0"):
        bring_up(isolated(subnet))
    assert swept == []


@pytest.mark.parametrize(
    ("name", "own"),
    [
        (f"so-{NAME}", "192.168.50.1/24"),
        ("lan0", "192.168.51.7/24"),
        ("lan0", "192.168.51.1/32"),
        ("lan0", "192.168.60.9/16"),
    ],
)
def test_what_a_crash_left_of_the_cluster_itself_or_is_elsewhere_is_in_nobodys_way(
    name: str, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_interface(monkeypatch, name, own)
    monkeypatch.setattr(lifecycle, "make_storm_home", stop_here)
    with pytest.raises(Stopped):
        bring_up(isolated("192.168.50.0/24"))


@pytest.mark.parametrize(
    ("own", "subnet"), [("192.168.51.7/24", "10.77.0.0/24"), ("10.77.0.9/16", "172.29.77.0/24"), (None, "10.77.0.0/24")]
)
def test_whoever_does_not_care_gets_a_subnet_that_is_free(
    own: str | None, subnet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if own is None:
        monkeypatch.setattr(network, "_is_free", lambda *_: False)
    else:
        has_interface(monkeypatch, "lan0", own)
    assert network.free_subnet(NAME) == subnet


def test_whoever_does_not_care_gets_another_subnet_than_clusters_that_share_the_loopback_interface(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No interface shows theirs: the second would be refused, and the demo takes no other by an option."""
    has_interface(monkeypatch, "lan0", "192.168.51.7/24")
    write_layout(layout_of("other"))
    assert network.free_subnet(NAME) == network.USUAL_SUBNETS[1]
    assert network.free_subnet("other") == network.USUAL_SUBNETS[0]


def test_a_sockets_path_is_as_long_as_its_bytes() -> None:
    network.check_socket_path(Path("/" + "x" * (network.LONGEST_SOCKET_PATH - 1)))
    with pytest.raises(LocalClusterError, match="too long"):
        network.check_socket_path(Path("/" + "ä" * (network.LONGEST_SOCKET_PATH - 1)))


@pytest.mark.parametrize("subnet", ["0.0.0.0/24", "127.5.0.0/24", "224.0.0.0/24", "239.255.255.0/24"])
def test_addresses_that_reach_no_machine_are_refused_before_anything_is_started(
    subnet: str, swept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "make_storm_home", stop_here)
    with pytest.raises(LocalClusterError, match=r"subnet: .* must be one in which machines can have addresses"):
        bring_up(isolated(subnet))
    assert swept == []


@pytest.mark.parametrize("left", [f"storm.{NAME}.machine-1", f"so-{NAME}"])
def test_a_network_that_somebody_else_removes_meanwhile_is_removed(
    left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that come up at once both sweep what a crash left."""
    (tmp_path / left).touch()
    fails = subprocess.CompletedProcess((), 1, stdout="", stderr="Cannot remove namespace file")
    monkeypatch.setattr(network, "NAMED", tmp_path)
    monkeypatch.setattr(network, "SYSTEM_DEVICES", tmp_path)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: fails)
    with pytest.raises(LocalClusterError, match="Cannot remove"):
        network.remove_network(NAME)

    def removed_by_another(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        (tmp_path / left).unlink()
        return fails

    monkeypatch.setattr(subprocess, "run", removed_by_another)
    network.remove_network(NAME)


def test_where_even_root_may_make_no_networks_machines_share_one_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a container that has the device and not the capability."""
    refusal = "mount --make-shared /run/netns failed: Operation not permitted\nCommand failed -:1\n"
    monkeypatch.setattr(lifecycle, "check_isolation", lambda *_: ())
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: subprocess.CompletedProcess((), 1, stdout="", stderr=refusal)
    )
    layout = plan_layout(LocalClusterSpec(name=NAME), {})
    assert not layout.isolated
    assert "mount --make-shared /run/netns failed: Operation not permitted" in layout.not_emulated[0]
    assert "all machines share the loopback interface" in layout.not_emulated[1]


def test_zookeeper_gets_no_port_on_which_another_listens() -> None:
    port = first_free_ports(preferred_port(ZOOKEEPER_PORT, NAME), 1)
    with socket.socket() as foreign:
        foreign.bind(("", port))
        foreign.listen()
        assert plan_layout(LocalClusterSpec(name=NAME), {}, isolate=False).zookeeper_port > port


def test_on_loopback_agents_get_no_port_on_which_another_listens() -> None:
    port = first_free_ports(preferred_port(AGENT_PORT, NAME), 1)
    with socket.socket() as foreign:
        foreign.bind(("", port))
        foreign.listen()
        layout = plan_layout(LocalClusterSpec(name=NAME), {}, isolate=False)
    ports = {machine.agent_address.rpartition(":")[2] for machine in layout.machines}
    assert len(ports) == 1
    assert int(ports.pop()) > port


@pytest.mark.parametrize("name", [NAME, LocalClusterSpec().name])
def test_on_loopback_nimbus_zookeeper_agents_and_workers_have_different_ports(name: str) -> None:
    layout = plan_layout(LocalClusterSpec(name=name, slots_per_machine=40), {}, isolate=False)
    of_machines = [port for machine in layout.machines for port in (*machine.ports, machine.thrift_port)]
    agents = {int(machine.agent_address.rpartition(":")[2]) for machine in layout.machines}
    ports = [layout.nimbus_port, layout.zookeeper_port, *agents, *of_machines]
    assert len(set(ports)) == len(ports) == 2 + 1 + 4 * 41


BROKEN = [
    "",
    "{",
    "[]",
    '{"version": 2}',
    '{"version": 1}',
    '{"version": 1, "spec": {"of_tomorrow": 1}, "machines": []}',
]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_state_file_is_named_with_what_removes_it(text: str) -> None:
    file = break_state_file(NAME, text)
    with pytest.raises(LocalClusterError, match=rf"{file} cannot be read .*local down --name {NAME}"):
        LocalCluster.attach(NAME)


@pytest.mark.parametrize("text", BROKEN)
def test_down_sweeps_by_name_and_removes_a_broken_state_file(text: str, swept: list[str]) -> None:
    break_state_file(NAME, text)
    assert take_down(NAME) is None
    assert swept == [NAME]
    assert not state_file(NAME).exists()


def test_the_command_down_tells_of_a_broken_state_file_and_then_it_is_down() -> None:
    break_state_file(NAME)
    ended = CliRunner().invoke(app, ["down", "--name", NAME])
    assert ended.exit_code == 0
    assert ended.stderr.rstrip().endswith(f"cluster '{NAME}' is down")


@pytest.mark.parametrize("left", ["a socket", "none"])
def test_status_of_a_cluster_whose_keeper_is_gone_says_so_and_what_removes_the_rest(left: str) -> None:
    """As after the machine was restarted."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as keeper:
        layout = pretend_running(NAME, keeper)
    if left == "none":
        layout.keeper_socket.unlink()
    ended = CliRunner().invoke(app, ["status", "--name", NAME], env={"COLUMNS": "300"})
    assert ended.exit_code == 1
    assert f"cluster '{NAME}' has ended" in ended.stderr
    assert f"`storm-operator local down --name {NAME}` removes" in ended.stderr


def test_the_words_of_a_program_that_failed_are_shown_as_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> Path:
        raise LocalClusterError("mvn: [main] failed: [/usr/lib/jvm] is no JDK")

    monkeypatch.setattr(commands, "build_plugin_jar", fails)
    ended = CliRunner().invoke(app, ["up", "--name", NAME], env={"COLUMNS": "300"})
    assert ended.exit_code == 1
    assert "mvn: [main] failed: [/usr/lib/jvm] is no JDK" in ended.output


def test_what_no_cluster_can_be_is_said_before_the_plugin_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """To fetch what the build needs and to build it takes minutes."""
    monkeypatch.setattr(commands, "build_plugin_jar", stop_here)
    ended = CliRunner().invoke(app, ["up", "--name", NAME, "--machines", "0"], env={"COLUMNS": "300"})
    assert ended.exit_code == 2
    assert ended.stderr.rstrip().endswith("machines: 0 must be 1 to 200")


@pytest.mark.parametrize(
    "option", [("--plugin-jar", "/some.jar"), ("--fallback", "resource-aware"), ("--exact-metrics",)]
)
def test_an_option_of_the_plugin_is_refused_where_there_is_to_be_none(option: tuple[str, ...]) -> None:
    """It would do nothing."""
    ended = CliRunner().invoke(app, ["up", "--name", NAME, "--no-plugin", *option], env={"COLUMNS": "300"})
    assert ended.exit_code == 2
    assert ended.stderr.rstrip().endswith("not with --no-plugin")


def test_a_cluster_that_is_up_and_cannot_be_shown_stays_up_and_that_is_said_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = dict.fromkeys(("nimbus", "zookeeper", "logs_dir"), "x") | {"name": NAME, "memory_mb": 1.0}
    now |= dict.fromkeys(("not_emulated", "machines", "daemons", "workers"), ())
    monkeypatch.setattr(commands, "LocalCluster", lambda _: SimpleNamespace(up=ignore, wait_ready=ignore))
    monkeypatch.setattr(commands, "cluster_status", lambda _: now)
    with Path("/dev/full").open("w", buffering=1) as full, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", full)
        with pytest.raises(typer.Exit) as ended:
            commands.up(plugin=False)
    assert ended.value.exit_code == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == "storm-operator local up: the output cannot be written: No space left on device"


def ignore(**_: object) -> None:
    """As a cluster that comes up at once."""


def test_only_options_of_its_own_are_told() -> None:
    assert "completion" not in CliRunner().invoke(app, ["--help"]).output


def test_a_state_folder_that_cannot_be_made_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    ended = CliRunner().invoke(app, ["up", "--name", NAME, "--no-plugin"], env={"COLUMNS": "300"})
    assert ended.exit_code == 1
    assert ended.stderr.rstrip().endswith("Not a directory: '/dev/null/storm-operator'")


def test_another_clusters_broken_state_file_is_told_once_and_stands_in_nobodys_way(
    swept: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = break_state_file("broken")
    monkeypatch.setattr(lifecycle, "make_storm_home", stop_here)
    with pytest.raises(Stopped), LocalCluster(LocalClusterSpec(name=NAME), isolate=False):
        pass
    assert [record.message for record in caplog.records if str(file) in record.message] == caplog.messages
    assert len(caplog.messages) == 1
    assert "broken" not in swept
    assert file.exists()


def test_up_over_a_broken_state_file_of_its_own_is_refused_while_anything_of_it_runs(
    swept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_state_file(NAME)
    monkeypatch.setattr(lifecycle, "marked_processes", lambda name: {1: None} if name == NAME else {})
    with pytest.raises(LocalClusterError, match="up already"):
        LocalCluster(LocalClusterSpec(name=NAME), isolate=False).up()
    assert swept == []


def test_an_orphan_beside_a_broken_state_file_is_taken_down(swept: list[str]) -> None:
    break_state_file("broken")
    write_layout(replace(layout_of("orphan"), owner_pid=2**22 + 1))  # above any process id
    write_layout(layout_of("stays"))
    assert [layout.spec.name for layout in take_down_orphans()] == ["stays"]
    assert swept == ["orphan"]


def test_a_state_file_that_cannot_be_written_takes_down_what_was_begun(
    swept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "replace", stop_here)
    with pytest.raises(Stopped):
        LocalCluster(LocalClusterSpec(name=NAME), isolate=False).up()
    assert swept == [NAME, NAME]
    assert not state_file(NAME).exists()


def test_what_cannot_be_removed_of_an_earlier_cluster_is_said_with_the_reason() -> None:
    logs = state_file(NAME).parent / "logs"
    logs.parent.mkdir(parents=True)
    logs.write_text("no folder: even root cannot remove it as one")
    with pytest.raises(LocalClusterError, match=f"left in {logs} cannot be removed: .*Not a directory"):
        LocalCluster(LocalClusterSpec(name=NAME), isolate=False).up()


def test_of_two_that_come_up_at_once_neither_sweeps_what_the_other_has_begun(
    swept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    others, seen = list[threading.Thread](), list[list[str]]()

    def begin_another(*_: object) -> None:
        if not others:
            others.append(threading.Thread(target=up_as_far_as_it_goes))
            others[0].start()
            others[0].join(0.3)
        seen.append(list(swept))
        raise Stopped

    def up_as_far_as_it_goes() -> None:
        with pytest.raises(Stopped):
            LocalCluster(LocalClusterSpec(name=NAME), isolate=False).up()

    monkeypatch.setattr(lifecycle, "make_storm_home", begin_another)
    up_as_far_as_it_goes()
    others[0].join()
    assert seen == [[NAME], [NAME] * 3], "each sweeps as it begins and as it fails"


class Stopped(Exception):
    """As far as a test wants to go."""


def stop_here(*_: object) -> None:
    raise Stopped


@pytest.mark.parametrize("name", ["", ".", "..", "../local", "Local"])
@pytest.mark.parametrize("command", ["down", "status"])
def test_name_that_no_cluster_can_have_sweeps_nothing(command: str, name: str, swept: list[str]) -> None:
    """The cgroups of an empty name are those of all clusters, and those of `..` are the whole machine's."""
    done = CliRunner().invoke(app, [command, "--name", name])
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert f"name: {name!r} must be 1 to 12 small letters, digits, dashes, a letter first" in said
    assert swept == []

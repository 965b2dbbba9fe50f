"""Bringing a cluster up and taking it down, as steps on a layout."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path

from storm_operator.core.nimbus_name import NIMBUS_PORT
from storm_operator.local.cgroups import cluster_cgroup, create_machine_cgroup, hierarchy_for_machines, usable_hierarchy
from storm_operator.local.cleanup import sweep
from storm_operator.local.daemons import CLUSTER_MARK, write_hosts_file, write_zookeeper_config
from storm_operator.local.distribution import ensure_distribution, make_storm_home
from storm_operator.local.network import check_socket_path, check_subnet, create_network, why_no_networks
from storm_operator.local.paths import state_dir
from storm_operator.local.prerequisites import check_isolation
from storm_operator.local.processes import marked_processes
from storm_operator.local.spec import (
    AGENT_PORT,
    ClusterLayout,
    LocalClusterError,
    LocalClusterSpec,
    check_name,
    lay_out,
)
from storm_operator.local.state_file import readable_layout, readable_layouts, state_file, write_layout
from storm_operator.local.storm_config import write_confs

ZOOKEEPER_PORT = 2181
WORKER_PORT = 6700
THRIFT_PORT = 6628
NAMED_CLUSTERS_PORTS = range(10_000, 30_000, 100)
NO_CGROUPS = (
    "no cgroups with CPU control can be made: machines may use all the CPU there is, and CPU limits are not enforced"
)
POLL_SECONDS = 0.1
KEEPER_STOP_SECONDS = 20.0


def plan_layout(
    spec: LocalClusterSpec, class_data: Mapping[str, str], isolate: bool | None = None, owner_pid: int | None = None
) -> ClusterLayout:
    """Choose ports and what can be emulated on this machine. `isolate` None: whatever is possible."""
    not_emulated = _obstacles_to_isolation() if isolate is None else []
    isolated = not not_emulated if isolate is None else isolate
    hierarchy = hierarchy_for_machines(spec.capacity_millicores) if isolated else None
    if not isolated:
        not_emulated.append("all machines share the loopback interface: no delay between them, ports differ instead")
    if hierarchy is None:
        not_emulated.append(NO_CGROUPS)
    # Whoever listens on all addresses (a ZooKeeper in Docker) would answer in the place of ours.
    nimbus_port = first_free_ports(preferred_port(NIMBUS_PORT, spec.name), 1)
    zookeeper_port = first_free_ports(preferred_port(ZOOKEEPER_PORT, spec.name), 1, but_not={nimbus_port})
    taken, agent_port, shared_ports = {nimbus_port, zookeeper_port}, AGENT_PORT, 0
    workers = spec.machines * spec.slots_per_machine
    if not isolated:
        agent_port = first_free_ports(preferred_port(AGENT_PORT, spec.name), 1, but_not=taken)
        preferred, count = preferred_port(WORKER_PORT, spec.name), workers + spec.machines
        shared_ports = first_free_ports(preferred, count, but_not={*taken, agent_port})
    layout = lay_out(
        spec,
        root=spec.work_dir or state_dir(spec.name),
        isolated=isolated,
        nimbus_port=nimbus_port,
        zookeeper_port=zookeeper_port,
        first_worker_port=WORKER_PORT if isolated else shared_ports,
        first_thrift_port=THRIFT_PORT if isolated else shared_ports + workers,
        agent_port=agent_port,
        cgroup_root=cluster_cgroup(hierarchy, spec.name) if hierarchy else None,
    )
    return replace(layout, not_emulated=tuple(not_emulated), owner_pid=owner_pid, class_data=class_data)


def _obstacles_to_isolation() -> list[str]:
    missing = check_isolation(os.geteuid(), shutil.which, Path("/dev/net/tun").exists())
    refused = None if missing else why_no_networks()
    return [refused] if refused else [one.what for one in missing]


def bring_up(layout: ClusterLayout, distribution: Path | None = None) -> None:
    """Start everything; returns when the daemons have been started, not when they are ready. Storm's jars are those of
    `distribution`; None: of the user's cache.

    Whatever a crashed cluster of the same name left is swept first. If any step fails nothing stays.
    """
    check_socket_path(layout.keeper_socket)
    distribution = distribution or ensure_distribution(lambda _: None)
    with _one_at_a_time(layout.spec.name):
        _bring_up(layout, distribution)


@contextlib.contextmanager
def _one_at_a_time(cluster: str) -> Iterator[None]:
    """Until its keeper answers nobody sees that a cluster comes up: another of that name would sweep it away."""
    folder = state_dir(cluster).parent
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{cluster}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _bring_up(layout: ClusterLayout, distribution: Path) -> None:
    _refuse_if_running(layout, take_down_orphans())
    if layout.isolated:
        check_subnet(layout.spec)
    sweep(layout.spec.name)
    for folder in (layout.data_dir, layout.logs_dir, layout.conf_dir):
        _make_anew(folder)
    try:
        write_layout(layout)
        make_storm_home(layout.storm_home, distribution, layout.spec.plugin_jar)
        write_confs(layout)
        write_zookeeper_config(layout)
        write_hosts_file(layout, socket.gethostname())
        if layout.isolated:
            create_network(layout)
        _create_machine_cgroups(layout)
        _start_keeper(layout)
    except BaseException:
        take_down(layout.spec.name)
        raise


def _make_anew(folder: Path) -> None:
    try:
        if folder.exists():
            shutil.rmtree(folder)
    except OSError as reason:  # of a cluster that root brought up, mostly
        raise LocalClusterError(f"what an earlier cluster left in {folder} cannot be removed: {reason}") from reason
    folder.mkdir(parents=True)


def take_down(cluster: str) -> ClusterLayout | None:
    """Stop a cluster, whatever state it is in; logs stay. What its state file said, None without one or a broken one.

    Without a layout nobody knows where its files are: they stay, and the next `up` in that folder removes them.
    """
    check_name(cluster)
    layout = readable_layout(cluster)
    sweep(cluster)
    if layout is not None:
        _remove_files(layout)
    state_file(cluster).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        # Only when no logs are in it.
        state_dir(cluster).rmdir()
    return layout


def _remove_files(layout: ClusterLayout) -> None:
    for folder in (layout.data_dir, layout.conf_dir, layout.storm_home):
        shutil.rmtree(folder, ignore_errors=True)
    for left in (layout.keeper_socket, layout.switch_socket, layout.switch_config):
        left.unlink(missing_ok=True)


def take_down_orphans() -> tuple[ClusterLayout, ...]:
    """Take down clusters whose owner and keeper were both killed: nobody else will. Returns the others."""
    others = []
    for layout in readable_layouts():
        owner_lives = layout.owner_pid is None or Path(f"/proc/{layout.owner_pid}").exists()
        if owner_lives or _keeper_answers(layout):
            others.append(layout)
        else:
            take_down(layout.spec.name)
    return tuple(others)


def _keeper_answers(layout: ClusterLayout) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(layout.keeper_socket))
        except OSError:
            return False
    return True


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Poll until it is so. Raises LocalClusterError when it takes longer than `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LocalClusterError(f"{what} within {seconds:g} s")
        time.sleep(POLL_SECONDS)


def preferred_port(usual: int, cluster: str) -> int:
    """The usual port for the default cluster; clusters of other names begin to look at places of their own.

    A port that is free now may be taken a second later, when the daemon asks for it: by another cluster, mostly.
    """
    if cluster == LocalClusterSpec().name:
        return usual
    return NAMED_CLUSTERS_PORTS[zlib.crc32(cluster.encode()) % len(NAMED_CLUSTERS_PORTS)] + usual % 100


def first_free_ports(preferred: int, count: int, but_not: Set[int] = frozenset()) -> int:
    """The first of `count` adjacent TCP ports on which nobody listens, at `preferred` or above; none of `but_not`."""
    start = preferred
    while start + count < 32768:
        taken = [port for port in range(start, start + count) if port in but_not or not _is_free(port)]
        if not taken:
            return start
        start = taken[-1] + 1
    raise LocalClusterError(f"no {count} adjacent free TCP ports from {preferred} on")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _refuse_if_running(layout: ClusterLayout, known: tuple[ClusterLayout, ...]) -> None:
    name = layout.spec.name
    present = next((other for other in known if other.spec.name == name), None)
    # A keeper whose place nobody can read cannot be asked: then whatever still runs counts.
    is_up = _keeper_answers(present) if present else state_file(name).exists() and marked_processes(name)
    if is_up:
        raise LocalClusterError(f"cluster {name!r} is up already; `storm-operator local down --name {name}` first")
    for neighbour in known:
        if neighbour.spec.name != name and neighbour.host == layout.host and marked_processes(neighbour.spec.name):
            raise LocalClusterError(
                f"subnet: {layout.spec.subnet!r} is in use by cluster {neighbour.spec.name!r}; "
                f"`storm-operator local down --name {neighbour.spec.name}` first, or `local up --subnet` with another"
            )


def _create_machine_cgroups(layout: ClusterLayout) -> None:
    hierarchy = usable_hierarchy()
    for machine in layout.machines:
        if machine.cgroup and hierarchy:
            create_machine_cgroup(hierarchy, layout.spec.name, machine.name, layout.spec.capacity_millicores)


def _start_keeper(layout: ClusterLayout) -> None:
    command = [sys.executable, "-m", "storm_operator.local.keeper", str(state_file(layout.spec.name))]
    with (layout.logs_dir / "keeper.out").open("ab") as log:
        keeper = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(os.environ) | {CLUSTER_MARK: layout.spec.name},
            start_new_session=True,
        )
    wait_until(
        lambda: _keeper_answers(layout) or keeper.poll() is not None,
        KEEPER_STOP_SECONDS,
        "the keeper did not start",
    )
    if keeper.poll() is not None:
        raise LocalClusterError(f"the keeper ended at once; see {layout.logs_dir / 'keeper.out'}")

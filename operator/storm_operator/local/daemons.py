"""The cluster's daemons as values: what to run, where, and into which file it writes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from storm_operator.local.cgroups import process_files, usable_hierarchy
from storm_operator.local.jvm import Jvm, daemon_options
from storm_operator.local.spec import ClusterLayout, LocalMachine

CLUSTER_MARK = "STORM_OPERATOR_LOCAL_CLUSTER"
MACHINE_MARK = "STORM_OPERATOR_LOCAL_MACHINE"
"""In the environment of every process of a cluster, inherited by workers: that is how stray ones are found."""

ZOOKEEPER_MAIN = "org.apache.storm.shade.org.apache.zookeeper.server.ZooKeeperServerMain"
ZOOKEEPER_OPTIONS = ("-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=1024")
"""Data must outlive the process, not the machine: no fsync, and no log file of 64 MB from the start."""

NIMBUS_MAIN = "org.apache.storm.daemon.nimbus.Nimbus"
SUPERVISOR_MAIN = "org.apache.storm.daemon.supervisor.Supervisor"


@dataclass(frozen=True, slots=True)
class Daemon:
    """One process that is kept running. `process_files` are cgroup files into which it writes its id first."""

    name: str
    command: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    process_files: tuple[Path, ...] = ()


def supervisor_name(machine: LocalMachine) -> str:
    return f"supervisor-{machine.name}"


def agent_name(machine: LocalMachine) -> str:
    return f"agent-{machine.name}"


def all_daemons(layout: ClusterLayout, agent_command: tuple[str, ...] | None) -> tuple[Daemon, ...]:
    """Every daemon, in the order in which they should start. `agent_command` None leaves the agents out."""
    daemons = [_switch(layout)] if layout.isolated else []
    daemons += [_zookeeper(layout), _nimbus(layout)]
    daemons += [_supervisor(layout, machine) for machine in layout.machines]
    if agent_command:
        daemons += [_agent(layout, machine, agent_command) for machine in layout.machines]
    return tuple(daemons)


def _switch(layout: ClusterLayout) -> Daemon:
    command = (sys.executable, "-m", "storm_operator.local.switch", str(layout.switch_config))
    return Daemon("switch", command, layout.logs_dir / "switch.out", _mark(layout))


def _zookeeper(layout: ClusterLayout) -> Daemon:
    return Daemon(
        "zookeeper",
        _java(
            layout, Jvm.ZOOKEEPER, layout.conf_dir, *ZOOKEEPER_OPTIONS, ZOOKEEPER_MAIN, str(zookeeper_config(layout))
        ),
        layout.logs_dir / "zookeeper.out",
        _mark(layout),
    )


def zookeeper_config(layout: ClusterLayout) -> Path:
    return layout.conf_dir / "zoo.cfg"


def write_zookeeper_config(layout: ClusterLayout) -> None:
    """Data lives in files that survive a restart. Snapshots are rare: the transaction log is small here."""
    data = layout.data_dir / "zookeeper"
    data.mkdir(parents=True, exist_ok=True)
    lines = {
        "dataDir": str(data),
        "clientPort": str(layout.zookeeper_port),
        "clientPortAddress": layout.host,
        "tickTime": "1000",
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
    }
    zookeeper_config(layout).write_text("".join(f"{key}={value}\n" for key, value in lines.items()))


def hosts_file(layout: ClusterLayout) -> Path:
    return layout.conf_dir / "hosts"


def write_hosts_file(layout: ClusterLayout, own_name: str) -> None:
    """Nimbus looks up this machine's name, whatever it is told that its own is, and ends where nobody knows it."""
    hosts_file(layout).write_text(f"{layout.host} {own_name}\n127.0.0.1 localhost\n")


def _nimbus(layout: ClusterLayout) -> Daemon:
    return Daemon(
        "nimbus",
        _java(layout, Jvm.NIMBUS, layout.conf_dir, f"-Djdk.net.hosts.file={hosts_file(layout)}", NIMBUS_MAIN),
        layout.logs_dir / "nimbus.out",
        _mark(layout),
    )


def _supervisor(layout: ClusterLayout, machine: LocalMachine) -> Daemon:
    command = _java(layout, Jvm.SUPERVISOR, machine.conf_dir, SUPERVISOR_MAIN, log_dir=machine.name)
    return Daemon(
        supervisor_name(machine),
        _inside(machine, command),
        layout.logs_dir / machine.name / "supervisor.out",
        _mark(layout, machine) | {"STORM_CONF_DIR": str(machine.conf_dir)},
        _join_files(machine),
    )


def _agent(layout: ClusterLayout, machine: LocalMachine, agent_command: tuple[str, ...]) -> Daemon:
    command = [
        *(*agent_command, "--host", machine.host, "--listen", machine.agent_address),
        *("--metrics-dir", str(machine.metrics_dir), "--storm-local-dir", str(machine.storm_local_dir)),
        *("--zookeeper", layout.zookeeper),
    ]
    for peer in layout.machines:
        if peer != machine:
            command += ["--peer", f"{peer.host}={peer.agent_address}"]
    # Without one of its own a machine is in the cgroup of whoever brought the cluster up, with all others.
    command += ["--cgroup", str(machine.cgroup)] if machine.cgroup else ["--shared-cgroup"]
    return Daemon(
        agent_name(machine),
        _inside(machine, tuple(command)),
        layout.logs_dir / machine.name / "agent.out",
        _mark(layout, machine),
        _join_files(machine),
    )


def _java(layout: ClusterLayout, kind: Jvm, conf_dir: Path, *arguments: str, log_dir: str = "") -> tuple[str, ...]:
    home = layout.storm_home
    class_path = [f"{home}/lib/*", f"{home}/extlib/*", f"{home}/extlib-daemon/*", str(conf_dir)]
    return (
        "java",
        *daemon_options(kind, layout.class_data.get(kind)),
        f"-Dstorm.home={home}",
        f"-Dstorm.log.dir={layout.logs_dir / log_dir}",
        f"-Dlogfile.name={kind}.log",
        f"-Djava.io.tmpdir={layout.data_dir}",  # Nimbus unpacks a library there, and leaves it when it is killed
        f"-Dlog4j.configurationFile={home}/log4j2/cluster.xml",
        f"-Djava.library.path={home}/native",
        "-Dstorm.conf.file=",
        "-Dstorm.options=",
        "-cp",
        ":".join(class_path),
        *arguments,
    )


def _inside(machine: LocalMachine, command: tuple[str, ...]) -> tuple[str, ...]:
    """In the machine's network. Not `ip netns exec`: that would hide the cgroup mounts from the agent."""
    return ("nsenter", f"--net=/run/netns/{machine.namespace}", *command) if machine.namespace else command


def _join_files(machine: LocalMachine) -> tuple[Path, ...]:
    hierarchy = usable_hierarchy()
    return process_files(hierarchy, machine.cgroup) if machine.cgroup and hierarchy else ()


def _mark(layout: ClusterLayout, machine: LocalMachine | None = None) -> dict[str, str]:
    mark = {CLUSTER_MARK: layout.spec.name}
    return mark | {MACHINE_MARK: machine.name} if machine else mark

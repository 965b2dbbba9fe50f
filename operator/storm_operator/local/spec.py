"""What a local cluster should be, and what follows from it: addresses, ports, folders. Pure values."""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from storm_operator.core.model import read_only

MAXIMUM_MACHINES = 200
FIRST_MACHINE_ADDRESS = 11
AGENT_PORT = 9464
NAME = re.compile(r"[a-z][a-z0-9-]{0,11}")
"""Twelve characters, since the cluster's network interface is `so-<name>` and the kernel allows fifteen."""
FALLBACK = re.compile(r"default|resource-aware|[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)+")
"""What the plugin takes, and what may be a class in Storm's class path: whether it is one only Nimbus knows."""


class LocalClusterError(Exception):
    """The local cluster cannot do what was asked; the message says what to change."""


class UnfitOption(LocalClusterError):
    """What was asked for no local cluster can be, whatever the machine."""


def check_name(name: str) -> None:
    """Of another name there can be no cluster; and what is swept by it might be everything (empty) or more (`..`)."""
    if not NAME.fullmatch(name):
        raise UnfitOption(f"name: {name!r} must be 1 to 12 small letters, digits, dashes, a letter first")


@dataclass(frozen=True, slots=True)
class LocalClusterSpec:
    """A cluster to be brought up on this machine.

    `one_way_delay_ms` is what a frame between two different machines is held back: a TCP connect takes twice that.
    `capacity_millicores` is the CPU of one machine (supervisor, workers and agent together).
    `fast_start` compiles workers with C1 alone: they start sooner and run slower; for tests about start-up.
    `extra_conf` is laid over everything else in storm.yaml.
    `work_dir` holds configuration, data and logs; by default the user's state folder.
    """

    name: str = "local"
    machines: int = 4
    slots_per_machine: int = 4
    capacity_millicores: float = 1000.0
    one_way_delay_ms: float = 2.0
    subnet: str = "10.77.0.0/24"
    exact_metrics: bool = False
    fast_start: bool = False
    agents: bool = True
    fallback: str = "default"
    message_timeout_seconds: int = 30
    worker_heap_mb: int = 128
    extra_conf: Mapping[str, Any] = field(default_factory=dict)
    plugin_jar: Path | None = None
    work_dir: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "extra_conf", read_only(self.extra_conf))
        check_name(self.name)
        if not 1 <= self.machines <= MAXIMUM_MACHINES:
            raise UnfitOption(f"machines: {self.machines} must be 1 to {MAXIMUM_MACHINES}")
        if not 1 <= self.slots_per_machine <= 100:
            raise UnfitOption(f"slots_per_machine (--slots): {self.slots_per_machine} must be 1 to 100")
        if not 50 <= self.capacity_millicores < math.inf:
            raise UnfitOption(
                f"capacity_millicores (--capacity-millicores): {self.capacity_millicores} must be a number of 50 or "
                "more, else no JVM starts"
            )
        if not 0 <= self.one_way_delay_ms < math.inf:
            raise UnfitOption(f"one_way_delay_ms (--delay-ms): {self.one_way_delay_ms} must be a number of 0 or more")
        if not FALLBACK.fullmatch(self.fallback):
            raise UnfitOption(
                f"fallback (--fallback): {self.fallback!r} must be default, resource-aware, or the full name of a "
                "class that implements org.apache.storm.scheduler.IScheduler"
            )
        self.network()

    def network(self) -> ipaddress.IPv4Network:
        try:
            network = ipaddress.IPv4Network(self.subnet)
        except ValueError as reason:
            raise UnfitOption(f"subnet: {self.subnet!r} must look like 10.77.0.0/24 ({reason})") from None
        if network.prefixlen != 24:
            raise UnfitOption(f"subnet: {self.subnet!r} must be a /24")
        return network


@dataclass(frozen=True, slots=True)
class LocalMachine:
    """One emulated machine: a supervisor, its workers and its agent.

    `namespace` and `cgroup` are None where they are not emulated. `cgroup` is the machine's folder under the cpu
    controller; child cgroups for executor threads go inside it.
    """

    name: str
    host: str
    ports: tuple[int, ...]
    thrift_port: int
    agent_address: str
    storm_local_dir: Path
    metrics_dir: Path
    conf_dir: Path
    namespace: str | None = None
    cgroup: Path | None = None

    @property
    def agent_url(self) -> str:
        return f"http://{self.agent_address}/metrics"


@dataclass(frozen=True, slots=True)
class ClusterLayout:
    """Everything about one cluster that others need to find it: the content of its state file.

    `isolated` says whether each machine has its own network namespace and delay. `owner_pid` is the process
    whose end ends the cluster; None for a cluster that stays until `down`. `class_data` is one more option for each
    kind of JVM: where its archive of classes is.
    """

    spec: LocalClusterSpec
    isolated: bool
    host: str
    nimbus_port: int
    zookeeper_port: int
    machines: tuple[LocalMachine, ...]
    root: Path
    not_emulated: tuple[str, ...] = ()
    owner_pid: int | None = None
    class_data: Mapping[str, str] = field(default_factory=dict)

    @property
    def storm_home(self) -> Path:
        return self.root / "storm-home"

    @property
    def conf_dir(self) -> Path:
        """The client's and Nimbus' configuration: storm.yaml with `nimbus.seeds`."""
        return self.root / "conf"

    @property
    def logs_dir(self) -> Path:
        return self.root / "logs"

    @property
    def data_dir(self) -> Path:
        return self.root / "data"

    @property
    def keeper_socket(self) -> Path:
        return self.root / "keeper.sock"

    @property
    def switch_socket(self) -> Path:
        return self.root / "switch.sock"

    @property
    def switch_config(self) -> Path:
        return self.root / "switch.json"

    @property
    def zookeeper(self) -> str:
        return f"{self.host}:{self.zookeeper_port}"

    def machine(self, name: str) -> LocalMachine:
        for machine in self.machines:
            if name in (machine.name, machine.host):
                return machine
        raise LocalClusterError(f"no machine {name!r}: there are {', '.join(m.name for m in self.machines)}")


def namespace_of(cluster: str, machine: str) -> str:
    """A dot cannot stand in a cluster's name, so that no cluster's names begin with another's."""
    return f"storm.{cluster}.{machine}"


def lay_out(
    spec: LocalClusterSpec,
    root: Path,
    isolated: bool,
    nimbus_port: int,
    zookeeper_port: int,
    first_worker_port: int = 6700,
    first_thrift_port: int = 6628,
    agent_port: int = AGENT_PORT,
    cgroup_root: Path | None = None,
) -> ClusterLayout:
    """Addresses, ports and folders of every part.

    Without namespaces every machine still has an address of its own (the whole of 127.0.0.0/8 is the loopback
    interface), but workers listen on all addresses, so ports must differ between machines.
    """
    network = spec.network() if isolated else ipaddress.IPv4Network(re.sub(r"^\d+", "127", spec.subnet))
    machines = []
    for index in range(spec.machines):
        name = f"machine-{index + 1}"
        host = str(network[FIRST_MACHINE_ADDRESS + index])
        home = root / "data" / name
        offset = 0 if isolated else index * spec.slots_per_machine
        machines.append(
            LocalMachine(
                name=name,
                host=host,
                ports=tuple(first_worker_port + offset + slot for slot in range(spec.slots_per_machine)),
                thrift_port=first_thrift_port + (0 if isolated else index),
                agent_address=f"{host}:{agent_port}",
                storm_local_dir=home / "storm-local",
                metrics_dir=home / "storm-local" / "storm-operator-metrics",
                conf_dir=root / "conf" / name,
                namespace=namespace_of(spec.name, name) if isolated else None,
                cgroup=cgroup_root / name if cgroup_root else None,
            )
        )
    return ClusterLayout(
        spec=spec,
        isolated=isolated,
        host=str(network[1]),
        nimbus_port=nimbus_port,
        zookeeper_port=zookeeper_port,
        machines=tuple(machines),
        root=root,
    )


def to_json(layout: ClusterLayout) -> str:
    plain = {name: getattr(layout, name) for name in ("isolated", "host", "nimbus_port", "zookeeper_port", "owner_pid")}
    plain["root"] = str(layout.root)
    plain["not_emulated"] = list(layout.not_emulated)
    plain["machines"] = [asdict(machine) for machine in layout.machines]
    plain["class_data"] = dict(layout.class_data)
    spec = {item.name: getattr(layout.spec, item.name) for item in fields(layout.spec)}
    plain["spec"] = spec | {"extra_conf": dict(layout.spec.extra_conf)}
    return json.dumps({"version": 1} | plain, indent=1, default=str)


def from_json(text: str) -> ClusterLayout:
    """The layout that `to_json` wrote down; LocalClusterError when it is none of this version."""
    try:
        return _from_plain(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError) as reason:
        raise LocalClusterError(f"not the state of a cluster: {reason}") from reason


def _from_plain(plain: dict[str, Any]) -> ClusterLayout:
    if plain.pop("version", None) != 1:
        raise LocalClusterError("unknown version")
    spec = LocalClusterSpec(**_with_paths(plain.pop("spec"), ("plugin_jar", "work_dir")))
    machine_paths = ("storm_local_dir", "metrics_dir", "conf_dir", "cgroup")
    machines = tuple(
        LocalMachine(**(_with_paths(machine, machine_paths) | {"ports": tuple(machine["ports"])}))
        for machine in plain.pop("machines")
    )
    not_emulated = tuple(plain.pop("not_emulated"))
    return ClusterLayout(spec=spec, machines=machines, not_emulated=not_emulated, **_with_paths(plain, ("root",)))


def _with_paths(plain: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return plain | {name: Path(plain[name]) for name in names if plain.get(name) is not None}

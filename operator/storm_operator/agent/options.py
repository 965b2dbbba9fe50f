"""What an agent is told at its start. Values only; the command line is `commands`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kazoo.hosts import collect_hosts

from storm_operator.core.host_and_port import without_brackets
from storm_operator.core.model import read_only
from storm_operator.core.server_url import check_zookeeper
from storm_operator.http_listening import ALL_ADDRESSES
from storm_operator.metric_contract import DEFAULT_PAIR_LIMIT

DEFAULT_LISTEN = f"[{ALL_ADDRESSES}]:9464"  # scrapers and peers are on other machines
DEFAULT_ZOOKEEPER_ROOT = "/storm/storm-operator"
METRICS_FOLDER = "storm-operator-metrics"


class OptionError(ValueError):
    """An option has a value that cannot be; the message names it and says what would be right."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """One agent. `zookeeper` None: nobody gives limits. `cgroup` None: found from the first worker.

    `shared_cgroup`: workers of other supervisors are in it too, so that it tells nothing of this one alone.
    """

    host: str
    metrics_dir: Path
    listen: tuple[str, int]
    zookeeper: str | None = None
    zookeeper_root: str = DEFAULT_ZOOKEEPER_ROOT
    peers: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    cgroup: Path | None = None
    cpu_capacity_millicores: float | None = None
    shared_cgroup: bool = False
    enforce: bool = True
    pair_limit: int = DEFAULT_PAIR_LIMIT

    def __post_init__(self) -> None:
        object.__setattr__(self, "peers", read_only(self.peers))

    @property
    def declined(self) -> str:
        """Why this agent is not to enforce CPU limits; empty: it is."""
        if not self.enforce:
            return "told not to (--no-enforce)"
        if self.shared_cgroup:
            return "workers of other supervisors are in the same cgroup (--shared-cgroup)"
        if not self.zookeeper:
            return "no --zookeeper to read limits from"
        return ""


def parse_address(option: str, text: str) -> tuple[str, int]:
    """`ADDRESS:PORT`; an IPv6 address stands in brackets."""
    address, _, port = text.rpartition(":")
    if not address or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise OptionError(f"{option} {text!r} must be ADDRESS:PORT, such as 10.77.0.11:9464")
    return without_brackets(address), int(port)


def parse_peer(text: str) -> tuple[str, tuple[str, int]]:
    """`HOST=ADDRESS:PORT`."""
    host, separator, address = text.partition("=")
    if not separator or not host:
        raise OptionError(f"--peer {text!r} must be HOST=ADDRESS:PORT, such as 10.77.0.12=10.77.0.12:9464")
    return host, parse_address("--peer", address)


def checked_zookeeper(text: str | None) -> str | None:
    """`text`, the addresses of a ZooKeeper's servers; None and empty: there is none."""
    if not text:
        return text
    try:
        check_zookeeper("--zookeeper", text)
    except ValueError as error:
        raise OptionError(str(error)) from None
    try:
        collect_hosts(text)
    except ValueError as error:
        raise OptionError(f"--zookeeper: {text!r} is no address of one: {error}") from None
    return text


def choose_metrics_dir(metrics_dir: Path | None, storm_local_dir: Path | None) -> Path:
    """Where workers of this supervisor write: as told, else where the plugin puts it by default."""
    if metrics_dir is not None:
        return metrics_dir
    if storm_local_dir is not None:
        return storm_local_dir / METRICS_FOLDER
    raise OptionError("give --metrics-dir, or --storm-local-dir to use its folder storm-operator-metrics")

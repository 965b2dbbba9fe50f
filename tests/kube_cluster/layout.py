"""Where everything of one cluster is: folders, addresses, ports. Pure values, and the state file that holds them."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from kube_cluster.errors import KubeClusterError
from storm_operator.local.paths import state_dir

NAME = re.compile(r"[a-z][a-z0-9-]{0,11}")
"""Twelve characters, since the node's network interface is `kc-<name>` and the kernel allows fifteen."""


@dataclass(frozen=True, slots=True)
class KubeLayout:
    """One cluster: the content of its state file.

    `block` is the third of its addresses: 10.BLOCK.0.0/24 for the node, 10.BLOCK.1.0/24 for pods, 10.BLOCK.2.0/24 for
    services. `owner_pid` is the process whose end ends the cluster; None for one that stays until `down`. Logs go with
    the cluster unless there is a `kept_logs_dir`. `audit`: what ServiceAccounts ask of the API server is written down.
    """

    name: str
    node: bool
    block: int
    api_port: int
    owner_pid: int | None = None
    kept_logs_dir: Path | None = None
    audit: bool = False

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise KubeClusterError(
                f"name: {self.name!r} must be 1 to 12 characters: a letter, then letters, digits, dashes"
            )

    @property
    def root(self) -> Path:
        """Everything of the cluster is in this folder, but its logs if they are to be kept."""
        return state_file(self.name).parent

    @property
    def mark(self) -> str:
        """In the environment of each of the cluster's processes."""
        return mark_of(self.name)

    @property
    def logs_dir(self) -> Path:
        return self.kept_logs_dir or self.root / "logs"

    @property
    def pki_dir(self) -> Path:
        return self.root / "pki"

    @property
    def ca_file(self) -> Path:
        """The API server's certificate, signed by itself."""
        return self.pki_dir / "api.crt"

    @property
    def api_key(self) -> Path:
        return self.pki_dir / "api.key"

    @property
    def service_account_key(self) -> Path:
        """Signs the tokens of ServiceAccounts."""
        return self.pki_dir / "service-account.key"

    @property
    def tokens_file(self) -> Path:
        return self.pki_dir / "tokens.csv"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.kubeconfig_of("admin")

    def kubeconfig_of(self, user: str) -> Path:
        return self.root / "kubeconfigs" / f"{user}.yaml"

    @property
    def client_cache(self) -> Path:
        """What kubectl and helm would else leave in the user's home."""
        return self.root / "client-cache"

    @property
    def audit_policy(self) -> Path:
        return self.root / "audit-policy.json"

    @property
    def audit_log(self) -> Path:
        return self.root / "audit.log"

    @property
    def etcd_socket(self) -> Path:
        return self.root / "etcd.sock"

    @property
    def keeper_socket(self) -> Path:
        return self.root / "keeper.sock"

    @property
    def node_dir(self) -> Path:
        """What the node's programs take for /run, /var/lib and /var/log."""
        return self.root / "node"

    @property
    def node_config(self) -> Path:
        return self.root / "node-config"

    @property
    def node_network(self) -> Path:
        """In the node's view of the file system: its network namespace."""
        return self.root / "node" / "network"

    @property
    def api_host(self) -> str:
        """Loopback; with a node, where the node reaches it."""
        return self.host_ip if self.node else "127.0.0.1"

    @property
    def host_ip(self) -> str:
        """This machine's end of the link to the node."""
        return f"10.{self.block}.0.1"

    @property
    def node_ip(self) -> str:
        return f"10.{self.block}.0.2"

    @property
    def node_name(self) -> str:
        return "node"

    @property
    def pod_subnet(self) -> str:
        return f"10.{self.block}.1.0/24"

    @property
    def url(self) -> str:
        return f"https://{self.api_host}:{self.api_port}"

    @property
    def service_subnet(self) -> str:
        return f"10.{self.block}.2.0/24"

    @property
    def api_service_ip(self) -> str:
        """Of the Service `kubernetes`: always the first of the subnet."""
        return f"10.{self.block}.2.1"


def mark_of(cluster: str) -> str:
    """No cluster of Storm daemons has a dot in its name: the two kinds never meet in the same state folder."""
    return f"kube.{cluster}"


def state_file(cluster: str) -> Path:
    return state_dir(mark_of(cluster)) / "kube.json"


def write_layout(layout: KubeLayout) -> None:
    file = state_file(layout.name)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps({"version": 1} | asdict(layout), indent=1, default=str))
    fresh.replace(file)  # whoever sweeps meanwhile reads the layouts of all clusters


def read_layout(cluster: str) -> KubeLayout | None:
    """What the state file of a cluster says; None when there is none."""
    return _read(state_file(cluster))


def all_layouts() -> tuple[KubeLayout, ...]:
    """Every cluster of this user that has a state file."""
    files = sorted(state_dir("any").parent.glob("kube.*/kube.json"))
    return tuple(layout for layout in map(_read, files) if layout)


def _read(file: Path) -> KubeLayout | None:
    try:
        plain = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    if plain.pop("version", None) != 1:
        raise KubeClusterError(f"{file} has an unknown version; remove it")
    logs = plain.pop("kept_logs_dir")
    return KubeLayout(**plain, kept_logs_dir=Path(logs) if logs else None)

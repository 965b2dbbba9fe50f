"""etcd, API server and controller manager as daemons."""

from __future__ import annotations

from kube_cluster.binaries import program_path
from kube_cluster.layout import KubeLayout
from storm_operator.local.daemons import CLUSTER_MARK, Daemon

SELDOM_COLLECTED = {"GOGC": "400"}
"""Go's garbage is collected when memory has grown fivefold instead of twofold: cores are dearer than memory here."""

UNUSED_ADDRESS = "http://127.0.0.1:1"
"""etcd insists on an address to tell other members; there are none."""


def control_plane(layout: KubeLayout) -> tuple[Daemon, ...]:
    """In the order in which they should start."""
    return _etcd(layout), _api_server(layout), _controller_manager(layout)


def daemon(layout: KubeLayout, name: str, *options: str) -> Daemon:
    """A daemon that is one of the built programs, with the cluster's mark."""
    command = (str(program_path(name)), *options)
    return Daemon(name, command, layout.logs_dir / f"{name}.log", {CLUSTER_MARK: layout.mark} | SELDOM_COLLECTED)


def _etcd(layout: KubeLayout) -> Daemon:
    return daemon(
        layout,
        "etcd",
        f"--data-dir={layout.root / 'etcd'}",
        # The data need not outlive the machine.
        "--unsafe-no-fsync",
        f"--listen-client-urls=unix://{layout.etcd_socket}",
        f"--listen-peer-urls=unix://{layout.root / 'peer.sock'}",
        f"--advertise-client-urls={UNUSED_ADDRESS}",
        f"--initial-advertise-peer-urls={UNUSED_ADDRESS}",
        f"--initial-cluster=default={UNUSED_ADDRESS}",
        "--log-level=warn",
    )


def _api_server(layout: KubeLayout) -> Daemon:
    return daemon(
        layout,
        "kube-apiserver",
        f"--etcd-servers=unix://{layout.etcd_socket}",
        f"--bind-address={layout.api_host}",
        f"--secure-port={layout.api_port}",
        f"--tls-cert-file={layout.ca_file}",
        f"--tls-private-key-file={layout.api_key}",
        f"--service-cluster-ip-range={layout.service_subnet}",
        # The `kubernetes` Service would get this address, which no pod can reach when it is loopback.
        "--endpoint-reconciler-type=none",
        f"--token-auth-file={layout.tokens_file}",
        "--authorization-mode=Node,RBAC",
        f"--service-account-key-file={layout.service_account_key}",
        f"--service-account-signing-key-file={layout.service_account_key}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--allow-privileged=true",
        # Nobody resolves the node's name.
        "--kubelet-preferred-address-types=InternalIP",
        "--profiling=false",
        *_audit_options(layout),
    )


def _audit_options(layout: KubeLayout) -> tuple[str, ...]:
    if not layout.audit:
        return ()
    return f"--audit-policy-file={layout.audit_policy}", f"--audit-log-path={layout.audit_log}"


def _controller_manager(layout: KubeLayout) -> Daemon:
    kubeconfig = layout.kubeconfig_of("system:kube-controller-manager")
    return daemon(
        layout,
        "kube-controller-manager",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={layout.service_account_key}",
        f"--root-ca-file={layout.ca_file}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        # Serves nothing: two clusters need no two ports for it.
        "--secure-port=0",
        f"--cert-dir={layout.pki_dir / 'controller-manager'}",
        # By default it makes a folder outside the cluster's own.
        f"--flex-volume-plugin-dir={layout.root / 'flex-volumes'}",
    )

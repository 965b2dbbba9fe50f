"""The node's programs as daemons, inside its network."""

from __future__ import annotations

from dataclasses import replace

from kube_cluster.control_plane import daemon
from kube_cluster.layout import KubeLayout
from storm_operator.local.daemons import CLUSTER_MARK, Daemon


def node_daemons(layout: KubeLayout) -> tuple[Daemon, ...]:
    """In the order in which they should start."""
    inside = (_containerd(layout), _kubelet(layout), _kube_proxy(layout), _coredns(layout))
    return (_scheduler(layout), *(_in_network(layout, each) for each in inside))


def _in_network(layout: KubeLayout, each: Daemon) -> Daemon:
    """Not by `ip netns exec`: that mounts /sys anew, and runc then finds no cgroups."""
    return replace(each, command=("nsenter", f"--net={layout.node_network}", *each.command))


def _scheduler(layout: KubeLayout) -> Daemon:
    kubeconfig = layout.kubeconfig_of("system:kube-scheduler")
    return daemon(
        layout,
        "kube-scheduler",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
    )


def _containerd(layout: KubeLayout) -> Daemon:
    command = ("containerd", f"--config={layout.node_config / 'containerd.toml'}")
    return Daemon("containerd", command, layout.logs_dir / "containerd.log", {CLUSTER_MARK: layout.mark})


def _kubelet(layout: KubeLayout) -> Daemon:
    return daemon(
        layout,
        "kubelet",
        f"--config={layout.node_config / 'kubelet.json'}",
        f"--kubeconfig={layout.kubeconfig_of(f'system:node:{layout.node_name}')}",
        f"--hostname-override={layout.node_name}",
        f"--node-ip={layout.node_ip}",
    )


def _kube_proxy(layout: KubeLayout) -> Daemon:
    return daemon(layout, "kube-proxy", f"--config={layout.node_config / 'kube-proxy.json'}")


def _coredns(layout: KubeLayout) -> Daemon:
    return daemon(layout, "coredns", "-conf", str(layout.node_config / "Corefile"))

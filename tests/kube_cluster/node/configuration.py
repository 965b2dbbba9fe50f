"""The configuration files of the node's programs."""

from __future__ import annotations

import json
from typing import Any

from kube_cluster.layout import KubeLayout
from kube_cluster.node.cgroups import kubelet_root

CLUSTER_DOMAIN = "cluster.local"
CNI_PLUGINS = "/usr/lib/cni"
PAUSE_IMAGE = "localhost/pod-probe:dev"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
DNS_READY_PORT = 8181


def write_configuration(layout: KubeLayout) -> None:
    """All of them, into the node's folder."""
    folder = layout.node_config
    (folder / "cni").mkdir(parents=True)
    (folder / "containerd.toml").write_text(_containerd(layout))
    (folder / "Corefile").write_text(_corefile(layout))
    # No name server: a pod's names are those of the cluster.
    (folder / "resolv.conf").write_text("")
    files = {"kubelet": _kubelet(layout), "kube-proxy": _kube_proxy(layout), "cni/10-pods.conflist": _cni(layout)}
    for name, content in files.items():
        (folder / (name if "." in name else f"{name}.json")).write_text(json.dumps(content, indent=1))


def _containerd(layout: KubeLayout) -> str:
    return f"""version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
# Without CAP_SYS_RESOURCE nobody's score can be lowered.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{layout.node_config / "cni"}"
"""


def _corefile(layout: KubeLayout) -> str:
    """Every block has lines of its own: CoreDNS does not accept them in one.

    The template has a server of its own, since in the kubernetes plugin's it would be asked first.
    """
    return f"""{CLUSTER_DOMAIN} in-addr.arpa {{
    bind {layout.node_ip}
    errors
    ready {layout.node_ip}:{DNS_READY_PORT}
    kubernetes {{
        kubeconfig {layout.kubeconfig_of("coredns")}
        pods insecure
        ttl 5
    }}
    cache 5
}}
. {{
    bind {layout.node_ip}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def _kubelet(layout: KubeLayout) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": layout.node_ip,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": kubelet_root(layout.name),
        "oomScoreAdj": 0,
        "clusterDNS": [layout.node_ip],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": str(layout.node_config / "resolv.conf"),
        "makeIPTablesUtilChains": False,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        # The disk belongs to the machine, and nobody else puts images on the node.
        "evictionHard": {"nodefs.available": "0%", "imagefs.available": "0%", "memory.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": False,
    }


def _kube_proxy(layout: KubeLayout) -> dict[str, Any]:
    unlimited = {"maxPerCore": 0, "min": 0, "tcpCloseWaitTimeout": "0s", "tcpEstablishedTimeout": "0s"}
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(layout.kubeconfig_of("system:kube-proxy"))},
        "hostnameOverride": layout.node_name,
        "mode": "nftables",
        "clusterCIDR": layout.pod_subnet,
        # Connection tracking is the machine's; its limits are not the node's to change.
        "conntrack": unlimited,
    }


def _cni(layout: KubeLayout) -> dict[str, Any]:
    """Each pod has a link of its own to the node: pod to pod goes through the node's rules too."""
    address = {"type": "host-local", "ranges": [[{"subnet": layout.pod_subnet}]], "routes": [{"dst": "0.0.0.0/0"}]}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": address}]}

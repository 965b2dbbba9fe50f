"""What the node's programs need in the API server."""

from __future__ import annotations

import json
from typing import Any

from kube_cluster.layout import KubeLayout


def node_manifests(layout: KubeLayout) -> str:
    """As one List for `kubectl apply`."""
    items = [_api_endpoints(layout), *_dns_rights()]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _api_endpoints(layout: KubeLayout) -> dict[str, Any]:
    """Where the Service `kubernetes` leads: by hand, since the API server was told not to."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [layout.host_ip], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": layout.api_port, "protocol": "TCP"}],
    }


def _dns_rights() -> list[dict[str, Any]]:
    verbs = ["list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": verbs},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": verbs},
    ]
    group = "rbac.authorization.k8s.io"
    return [
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "coredns"},
            "rules": rules,
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "coredns"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "coredns"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "coredns"}],
        },
    ]

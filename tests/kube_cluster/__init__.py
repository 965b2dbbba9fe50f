"""A real Kubernetes on this machine for tests: an API server alone, or one with a real node."""

from __future__ import annotations

from kube_cluster.cluster import KubeCluster
from kube_cluster.errors import KubeClusterError

__all__ = ["KubeCluster", "KubeClusterError"]

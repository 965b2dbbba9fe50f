"""Waiting for what a cluster does by itself."""

from __future__ import annotations

from collections.abc import Callable

from kube_cluster.errors import KubeClusterError
from storm_operator.local.lifecycle import wait_until
from storm_operator.local.spec import LocalClusterError


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Poll until it is so. Raises KubeClusterError, that begins with `what`, when it takes longer than `seconds`."""
    try:
        wait_until(condition, seconds, what)
    except LocalClusterError as reason:
        raise KubeClusterError(str(reason)) from None

"""All that the operator asks of the Kubernetes API, over one connection pool."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kubernetes import config
from kubernetes.client import ApiClient, CoreV1Api

from storm_operator.adapters.errors import SubmissionError
from storm_operator.adapters.kube.errors import NotFound, api_errors
from storm_operator.adapters.kube.events import Events
from storm_operator.adapters.kube.jobs import Jobs
from storm_operator.adapters.kube.pods import Pods
from storm_operator.adapters.kube.resources import OwnKinds

TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class KubeClients:
    """One of each. Thread-safe: the client's pool is."""

    api: ApiClient
    kinds: OwnKinds
    jobs: Jobs
    pods: Pods
    events: Events

    def config_map_text(self, namespace: str, name: str, key: str, field: str = "spec.flux.configMap") -> str:
        """One value of a ConfigMap that `field` names. `SubmissionError` when there is none."""
        core: Any = CoreV1Api(self.api)
        try:
            with api_errors(f"read ConfigMap {namespace}/{name}"):
                data = core.read_namespaced_config_map(name, namespace, _request_timeout=TIMEOUT_SECONDS).data or {}
        except NotFound as error:
            raise SubmissionError(f"{field}: there is no ConfigMap {name} in {namespace}") from error
        if key not in data:
            raise SubmissionError(f"{field}: {name} has no key {key!r}, only {', '.join(sorted(data))}")
        return str(data[key])


def connect(say: Callable[[str], None]) -> KubeClients:
    """By the pod's ServiceAccount, else by the usual kubeconfig file (KUBECONFIG)."""
    try:
        config.load_incluster_config()  # type: ignore[no-untyped-call]
    except config.ConfigException:
        config.load_kube_config(os.environ.get("KUBECONFIG"))  # type: ignore[no-untyped-call]
    api = ApiClient()
    return KubeClients(api, OwnKinds(api), Jobs(api), Pods(api), Events(api, lambda: datetime.now(UTC), say))

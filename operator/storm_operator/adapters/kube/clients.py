"""All that the operator asks of the Kubernetes API, over one connection pool."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import yaml
from kubernetes import config
from kubernetes.client import ApiClient, Configuration, CoreV1Api
from kubernetes.client.exceptions import ApiException
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError, ReadTimeoutError
from urllib3.util import Retry

from storm_operator.adapters.errors import SubmissionError
from storm_operator.adapters.kube.errors import KubernetesError, NotFound, api_errors
from storm_operator.adapters.kube.events import Events
from storm_operator.adapters.kube.jobs import Jobs
from storm_operator.adapters.kube.pods import Pods
from storm_operator.adapters.kube.resources import OwnKinds
from storm_operator.adapters.peer_calls import CallBook, CallOutcome, NoBook, Peer

TIMEOUT_SECONDS = 10.0
LONGEST_RETRY_AFTER_SECONDS = 1.0
MOST_SILENCES = 2
"""Of one call, each as long as its time-out."""
FIRST_REFUSAL = 400
"""HTTP statuses from here on say no."""


class NoKubernetes(KubernetesError):
    """Nothing says where the Kubernetes API is."""


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


class BriefRetry(Retry):
    """Tries again as urllib3 does, but waits no longer than a second for a server that says when: one that sheds load
    names half a minute, a proxy whatever it likes, and a loop or the lease would wait for it in the midst of a call.
    Likewise a server that says nothing is asked once more, over another connection, and not three times."""

    def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
        seconds = super().get_retry_after(response)
        return None if seconds is None else min(seconds, LONGEST_RETRY_AFTER_SECONDS)

    def increment(self, *args: Any, **kwargs: Any) -> Self:
        more = super().increment(*args, **kwargs)
        last = more.history[-1]
        if sum(map(_is_silence, (tried.error for tried in more.history))) >= MOST_SILENCES:
            raise MaxRetryError(kwargs["_pool"], last.url or "", last.error)
        return more


def _is_silence(error: Exception | None) -> bool:
    """A connection that is refused at once counts as one that timed out for urllib3."""
    return isinstance(error, ReadTimeoutError | ConnectTimeoutError) and not isinstance(error, NewConnectionError)


class NotedApiClient(ApiClient):
    """Notes each call in `book`; the verbs are those of HTTP."""

    def __init__(self, book: CallBook) -> None:
        configuration = Configuration.get_default_copy()
        configuration.retries = BriefRetry(Retry.DEFAULT.total)
        super().__init__(configuration)
        self._book = book

    def call_api(self, method: str, *args: Any, **kwargs: Any) -> Any:
        started, outcome = time.perf_counter(), CallOutcome.UNREACHABLE
        try:
            response = super().call_api(method, *args, **kwargs)
            outcome = CallOutcome.REFUSED if response.status >= FIRST_REFUSAL else CallOutcome.OK
            return response
        except ApiException as error:
            outcome = CallOutcome.REFUSED if error.status else CallOutcome.UNREACHABLE
            raise
        finally:
            self._book.note(Peer.KUBERNETES, method.lower(), outcome, time.perf_counter() - started)


def connect(say: Callable[[str], None], book: CallBook | None = None) -> KubeClients:
    """By the pod's ServiceAccount, else by the usual kubeconfig file (KUBECONFIG). Calls are noted in `book`.

    Raises `NoKubernetes`.
    """
    try:
        config.load_incluster_config()  # type: ignore[no-untyped-call]
    except config.ConfigException:
        file = os.environ.get("KUBECONFIG") or config.KUBE_CONFIG_DEFAULT_LOCATION
        try:
            config.load_kube_config(file)  # type: ignore[no-untyped-call]
        except (config.ConfigException, yaml.YAMLError, OSError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())
            raise NoKubernetes(f"this is no pod, and the kubeconfig {file} leads to no cluster: {reason}") from error
    api = NotedApiClient(book or NoBook())
    return KubeClients(api, OwnKinds(api), Jobs(api), Pods(api), Events(api, lambda: datetime.now(UTC), say))

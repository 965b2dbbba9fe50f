"""Objects as the API server keeps them, by a plain GET: for what is asked again and again while something is awaited.

A kubectl costs 0.07 s of CPU on an idle machine, some fifteen times as much; asked all the time it takes from the very
cluster that is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests

from kube_cluster.errors import KubeClusterError

ANSWER_SECONDS = 15.0
CORE = "api/v1"
GROUPS = {
    "stormtopologies": "apis/storm-operator.dev/v1alpha1",
    "stormrebalances": "apis/storm-operator.dev/v1alpha1",
    "jobs": "apis/batch/v1",
    "leases": "apis/coordination.k8s.io/v1",
    "roles": "apis/rbac.authorization.k8s.io/v1",
}
"""Kinds by their plural name, with the API they are part of; all others are of the core."""


def path_of(kind: str, namespace: str | None, name: str | None = None) -> str:
    """Of all objects of a kind, by its plural name; or of one. No namespace: the whole cluster's."""
    place = (GROUPS.get(kind, CORE), *(("namespaces", namespace) if namespace else ()), kind)
    return "/" + "/".join((*place, name) if name else place)


def answer_to(url: str, token: str, ca_file: str, query: Mapping[str, str]) -> requests.Response:
    """To a GET. Raises KubeClusterError when nobody answers: nobody listens yet, or there is no certificate yet."""
    headers = {"Authorization": f"Bearer {token}"}
    try:
        return requests.get(url, headers=headers, verify=ca_file, params=dict(query), timeout=ANSWER_SECONDS)
    except (OSError, requests.RequestException) as reason:
        raise KubeClusterError(f"GET {url}: {reason}") from reason


def document_of(answer: requests.Response) -> dict[str, Any]:
    """Raises KubeClusterError with what the API server said when it is a refusal."""
    if not answer.ok:
        raise KubeClusterError(f"GET {answer.url} failed ({answer.status_code}): {answer.text.strip()[:500]}")
    document: dict[str, Any] = answer.json()
    return document

"""The operator's own kinds, StormTopology and StormRebalance: what it reads of them and writes to them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from kubernetes.client import ApiClient, CustomObjectsApi

from storm_operator.adapters.kube.errors import Conflict, NotFound, api_errors

GROUP, VERSION = "storm-operator.dev", "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
TOPOLOGIES, REBALANCES = "stormtopologies", "stormrebalances"
MERGE_PATCH = "application/merge-patch+json"
TIMEOUT_SECONDS = 10.0
PAGE_SIZES = {TOPOLOGIES: 500, REBALANCES: 100}
"""So many objects are in memory at once while all are listed. A plan for 2,000 executors has half a megabyte."""

Body = Mapping[str, Any]


class OwnKinds:
    """Calls for both kinds. `plural` is TOPOLOGIES or REBALANCES. All raise `KubernetesError`."""

    def __init__(self, client: ApiClient) -> None:
        self._api: Any = CustomObjectsApi(client)

    def list(self, plural: str, namespaces: tuple[str, ...] = (), field_selector: str = "") -> tuple[Body, ...]:
        """All objects of the namespaces that `field_selector` fits; of the whole cluster when none is named."""
        return tuple(self.each(plural, namespaces, field_selector))

    def each(self, plural: str, namespaces: tuple[str, ...] = (), field_selector: str = "") -> Iterator[Body]:
        """As `list`, asked for as one goes: a page at a time."""
        options: dict[str, Any] = {"_request_timeout": TIMEOUT_SECONDS, "limit": PAGE_SIZES[plural]}
        if field_selector:
            options["field_selector"] = field_selector
        if not namespaces:
            yield from _pages(plural, partial(self._api.list_cluster_custom_object, GROUP, VERSION, plural, **options))
        for name in namespaces:
            of_one = partial(self._api.list_namespaced_custom_object, GROUP, VERSION, name, plural, **options)
            yield from _pages(plural, of_one)

    def patch_status(self, plural: str, namespace: str, name: str, status: Body) -> None:
        """Merge `status` into the object's; fields that are None are removed. An object that is gone is let go."""
        with contextlib.suppress(NotFound), api_errors(f"status of {plural} {namespace}/{name}"):
            self._patch(self._api.patch_namespaced_custom_object_status, plural, namespace, name, {"status": status})

    def annotate(
        self, plural: str, namespace: str, name: str, annotations: Mapping[str, str | None], version: str = ""
    ) -> None:
        """Set annotations; None removes one. `Conflict` where a `version` is given, and the object is at another;
        `NotFound` where it is gone."""
        with api_errors(f"annotate {plural} {namespace}/{name}"):
            metadata: dict[str, Any] = {"annotations": dict(annotations)}
            if version:
                metadata["resourceVersion"] = version
            body = {"metadata": metadata}
            self._patch(self._api.patch_namespaced_custom_object, plural, namespace, name, body)

    def create(self, plural: str, namespace: str, body: Body) -> bool:
        """Create the object; False when one of that name is there already."""
        try:
            with api_errors(f"create {plural} {namespace}/{body['metadata']['name']}"):
                self._api.create_namespaced_custom_object(
                    GROUP, VERSION, namespace, plural, body, _request_timeout=TIMEOUT_SECONDS
                )
        except Conflict:
            return False
        return True

    def delete(self, plural: str, namespace: str, name: str) -> None:
        """Delete the object; one that is gone already is none to delete."""
        try:
            with api_errors(f"delete {plural} {namespace}/{name}"):
                self._api.delete_namespaced_custom_object(
                    GROUP, VERSION, namespace, plural, name, _request_timeout=TIMEOUT_SECONDS
                )
        except NotFound:
            return

    def _patch(self, call: Any, plural: str, namespace: str, name: str, body: Body) -> None:
        with api_errors(f"patch {plural} {namespace}/{name}"):
            call(
                GROUP,
                VERSION,
                namespace,
                plural,
                name,
                body,
                _content_type=MERGE_PATCH,
                _request_timeout=TIMEOUT_SECONDS,
            )


def _pages(plural: str, ask: Callable[..., Any]) -> Iterator[Body]:
    """The objects of all pages. Refused where that took minutes, after which the server has forgotten the list."""
    options: dict[str, Any] = {}
    while True:
        with api_errors(f"list {plural}"):
            answer = ask(**options)
            items = _items(answer)
        yield from items
        token = (answer.get("metadata") or {}).get("continue")
        if not token:
            return
        options["_continue"] = token


def _items(answer: Any) -> list[Body]:
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        raise ValueError(f"a list of objects was asked for, and not {str(answer)[:100]!r}")
    return items

"""One operator at a time: leader election by a coordination.k8s.io Lease."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kubernetes.client import ApiClient, CoordinationV1Api

from storm_operator.adapters.kube.errors import Conflict, KubernetesError, NotFound, api_errors

TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """A lease not renewed for `duration_seconds` may be taken; its holder renews it every `renew_seconds`."""

    namespace: str
    name: str
    identity: str
    duration_seconds: int = 15
    renew_seconds: float = 4.0


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """What a read of the Lease showed. `renewed_at` None: never."""

    holder: str
    renewed_at: datetime | None
    duration_seconds: int


def may_take(seen: LeaseSeen | None, identity: str, unchanged_seconds: float) -> bool:
    """Pure: whether `identity` may hold the lease: nobody does, it does already, or the holder has let it lapse.

    `unchanged_seconds`: for how long it has been seen to be as it is. The time that the holder has written is that of
    another machine's clock, which may be an hour ahead of this one's, or behind.
    """
    if seen is None or not seen.holder or seen.holder == identity or seen.renewed_at is None:
        return True
    return unchanged_seconds > seen.duration_seconds


class Lease:
    """Tries to hold one Lease. `now` is the time with its zone; `clock` one that nobody sets, in seconds.

    A Lease that somebody deleted stays its last holder's until it would have lapsed: that one makes it anew. What
    others have marked it with stays: Helm knows by that what is its own, and refuses to install beside what is not.
    """

    def __init__(
        self,
        client: ApiClient,
        terms: LeaseTerms,
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api: Any = CoordinationV1Api(client)
        self._terms = terms
        self._now = now
        self._clock = clock
        self._last_seen: LeaseSeen | None = None
        self._marks: dict[str, Any] = {}
        self._changed_at = clock()

    def hold(self) -> bool:
        """Take or renew the lease; False while another holds it. Raises `KubernetesError`."""
        terms, now = self._terms, self._now()
        try:
            lease = self._read()
        except NotFound:
            if not self._may_take(self._last_seen):
                return False
            return self._write(None, self._body(now, transitions=0))
        spec = lease.spec
        if spec is None:  # made by the chart, and nobody has held it yet
            return self._write(lease.metadata.resource_version, self._body(now, transitions=0))
        seen = LeaseSeen(spec.holder_identity or "", spec.renew_time, spec.lease_duration_seconds or 0)
        if not self._may_take(seen):
            return False
        transitions = (spec.lease_transitions or 0) + (seen.holder != terms.identity)
        acquired = spec.acquire_time if seen.holder == terms.identity else now
        return self._write(lease.metadata.resource_version, self._body(now, transitions, acquired))

    def release(self) -> None:
        """Let another take it at once; harmless when it is not held."""
        try:
            lease = self._read()
            if lease.spec is not None and lease.spec.holder_identity == self._terms.identity:
                body = self._body(self._now(), lease.spec.lease_transitions or 0)
                del body["spec"]["holderIdentity"]
                self._write(lease.metadata.resource_version, body)
        except KubernetesError:
            return

    def _may_take(self, seen: LeaseSeen | None) -> bool:
        if seen != self._last_seen:
            self._last_seen, self._changed_at = seen, self._clock()
        return may_take(seen, self._terms.identity, self._clock() - self._changed_at)

    def _read(self) -> Any:
        with api_errors(f"read lease {self._terms.namespace}/{self._terms.name}"):
            lease = self._api.read_namespaced_lease(
                self._terms.name, self._terms.namespace, _request_timeout=TIMEOUT_SECONDS
            )
        marks = {"labels": lease.metadata.labels, "annotations": lease.metadata.annotations}
        self._marks = {kind: found for kind, found in marks.items() if found}
        return lease

    def _write(self, resource_version: str | None, body: dict[str, Any]) -> bool:
        terms = self._terms
        try:
            with api_errors(f"write lease {terms.namespace}/{terms.name}"):
                if resource_version is None:
                    self._api.create_namespaced_lease(terms.namespace, body, _request_timeout=TIMEOUT_SECONDS)
                else:
                    body["metadata"]["resourceVersion"] = resource_version
                    self._api.replace_namespaced_lease(
                        terms.name, terms.namespace, body, _request_timeout=TIMEOUT_SECONDS
                    )
        except Conflict:
            return False
        return True

    def _body(self, now: datetime, transitions: int, acquired: datetime | None = None) -> dict[str, Any]:
        terms = self._terms
        return {
            "metadata": {"name": terms.name, **self._marks},
            "spec": {
                "holderIdentity": terms.identity,
                "leaseDurationSeconds": terms.duration_seconds,
                "acquireTime": _micro_time(acquired or now),
                "renewTime": _micro_time(now),
                "leaseTransitions": transitions,
            },
        }


def _micro_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

"""Supervisor pods: which supervisor each one is, and the CPU limit of the container that its workers run in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubernetes.client import ApiClient, AppsV1Api, CoreV1Api
from kubernetes.utils.quantity import parse_quantity

from storm_operator.adapters.kube.errors import api_errors
from storm_operator.core.cpu_quantity import MOST_MILLICORES, millicores_from_quantity
from storm_operator.core.short_repr import short_repr

SELECTOR = "app.kubernetes.io/name=storm,app.kubernetes.io/component=supervisor"
CONTAINER = "supervisor"
CAPACITY_ANNOTATION = "storm-operator.dev/cpu-capacity-millicores"
FIELD_MANAGER = "storm-operator"
"""Under this name Kubernetes remembers, with the pod, that its CPU limit is what the operator made it."""
TIMEOUT_SECONDS = 10.0
MOST_DIGITS = len(f"{MOST_MILLICORES:.0f}")


@dataclass(frozen=True, slots=True)
class SupervisorPod:
    """One pod that runs a supervisor.

    `host` is what the supervisor calls itself (its FQDN without the cluster's domain may differ, so hosts are compared
    by their first three labels, see `matches`). `limit_millicores` is what the kubelet has in force, None when there
    is no limit; `wanted_millicores` what the spec asks for. `requested_millicores` is what the spec has the node keep
    free for the pod, `reserved_millicores` what the kubelet has granted of requests, None where it does not say.
    `is_guaranteed`: of a QoS class in which request and limit are the same, and have to stay it.
    `must_not_become_guaranteed`: they are the same of all but its CPU, and Kubernetes lets no pod change its class.
    `is_resized`: the operator, in this life or an earlier one, was the last to change the limit; `is_reserved`: the
    request.
    `resize_problem` is empty, or why a resize is not done: `Infeasible: ...`, `Deferred: ...`, or what is wrong with
    the annotation.
    """

    namespace: str
    name: str
    subdomain: str
    stateful_set: str
    ready: bool
    limit_millicores: float | None
    wanted_millicores: float | None
    capacity_millicores: float | None
    resize_problem: str = ""
    requested_millicores: float | None = None
    is_guaranteed: bool = False
    is_resized: bool = False
    must_not_become_guaranteed: bool = False
    reserved_millicores: float | None = None
    is_reserved: bool = False
    is_being_deleted: bool = False

    @property
    def kept_free_millicores(self) -> float | None:
        """Of its request, what its node is known to keep free for it; None without a request."""
        if self.requested_millicores is None or self.reserved_millicores is None:
            return self.requested_millicores
        return min(self.requested_millicores, self.reserved_millicores)

    @property
    def ordinal(self) -> int:
        """Place in its StatefulSet; the highest goes first when it shrinks."""
        tail = self.name.rpartition("-")[2]
        return int(tail) if tail.isdigit() else 0

    def matches(self, host: str) -> bool:
        """Whether a supervisor that calls itself `host` runs in this pod."""
        labels = host.split(".")
        return labels[0] == self.name and (len(labels) < 3 or labels[1:3] == [self.subdomain, self.namespace])


class Pods:
    """Reads and resizes supervisor pods, and scales their StatefulSets. Raises `KubernetesError`."""

    def __init__(self, client: ApiClient) -> None:
        self._core: Any = CoreV1Api(client)
        self._apps: Any = AppsV1Api(client)

    def supervisors(self, namespaces: tuple[str, ...]) -> tuple[SupervisorPod, ...]:
        """All supervisor pods of the namespaces, those that are being deleted, too; sorted by namespace and name."""
        found: list[SupervisorPod] = []
        with api_errors("list supervisor pods"):
            for namespace in sorted(set(namespaces)):
                answer = self._core.list_namespaced_pod(
                    namespace, label_selector=SELECTOR, _request_timeout=TIMEOUT_SECONDS
                )
                found += map(pod_from, answer.items)
        return tuple(sorted(found, key=lambda pod: (pod.namespace, pod.name)))

    def resize_cpu(self, pod: SupervisorPod, millicores: int, *, reserve_millicores: float | None) -> None:
        """Ask for a new CPU limit in place, and that the node keeps `reserve_millicores` free for the pod: its request,
        a millicore less than the limit where Kubernetes would not have them the same.

        None: it keeps free what it does. A request that the kubelet has not granted is lowered to what it has: the
        limit needs no room, and is granted with the request or not at all. One that is above the limit is lowered with
        it. `Refused` when the API server will not have it.
        """
        cpu = f"{millicores}m"
        resources = {"limits": {"cpu": cpu}}
        most = millicores - 1 if pod.must_not_become_guaranteed else millicores
        kept_free = min(most, math.floor(pod.kept_free_millicores or 0.0))
        if pod.is_guaranteed:
            resources["requests"] = {"cpu": f"{most}m"}
        elif reserve_millicores is not None:
            resources["requests"] = {"cpu": f"{min(most, math.ceil(reserve_millicores))}m"}
        elif pod.requested_millicores is not None and pod.requested_millicores > kept_free:
            resources["requests"] = {"cpu": f"{kept_free}m"}
        body = {"spec": {"containers": [{"name": CONTAINER, "resources": resources}]}}
        with api_errors(f"resize pod {pod.namespace}/{pod.name} to {cpu} CPU"):
            self._core.patch_namespaced_pod_resize(
                pod.name, pod.namespace, body, field_manager=FIELD_MANAGER, _request_timeout=TIMEOUT_SECONDS
            )

    def replicas(self, namespace: str, stateful_set: str) -> int:
        """What the StatefulSet is asked to run."""
        with api_errors(f"read scale of StatefulSet {namespace}/{stateful_set}"):
            scale = self._apps.read_namespaced_stateful_set_scale(
                stateful_set, namespace, _request_timeout=TIMEOUT_SECONDS
            )
        return int(scale.spec.replicas or 0)

    def first_ordinal(self, namespace: str, stateful_set: str) -> int:
        """What the StatefulSet numbers its first pod."""
        with api_errors(f"read StatefulSet {namespace}/{stateful_set}"):
            answer = self._apps.read_namespaced_stateful_set(stateful_set, namespace, _request_timeout=TIMEOUT_SECONDS)
        ordinals = answer.spec.ordinals
        return int(ordinals.start or 0) if ordinals is not None else 0

    def cpu_request(self, namespace: str, stateful_set: str) -> float | None:
        """Millicores that the StatefulSet's pods are made to request for the container; None where it does not say."""
        with api_errors(f"read StatefulSet {namespace}/{stateful_set}"):
            answer = self._apps.read_namespaced_stateful_set(stateful_set, namespace, _request_timeout=TIMEOUT_SECONDS)
        container = next((c for c in answer.spec.template.spec.containers if c.name == CONTAINER), None)
        resources = container.resources if container is not None else None
        # Without a request Kubernetes takes the limit for it.
        requested = _cpu("requests", resources)
        return requested if requested is not None else _cpu("limits", resources)

    def scale(self, namespace: str, stateful_set: str, replicas: int) -> None:
        """Ask for so many pods; the highest ordinals go first."""
        with api_errors(f"scale StatefulSet {namespace}/{stateful_set} to {replicas}"):
            self._apps.patch_namespaced_stateful_set_scale(
                stateful_set, namespace, {"spec": {"replicas": replicas}}, _request_timeout=TIMEOUT_SECONDS
            )


def pod_from(pod: Any) -> SupervisorPod:
    """Pure: the client's V1Pod as a value."""
    owners = [owner.name for owner in pod.metadata.owner_references or () if owner.kind == "StatefulSet"]
    spec = next((c for c in pod.spec.containers if c.name == CONTAINER), None)
    statuses = pod.status.container_statuses or ()
    status = next((c for c in statuses if c.name == CONTAINER), None)
    annotations = pod.metadata.annotations or {}
    wanted = _cpu("limits", spec.resources if spec else None)
    in_force = _cpu("limits", status.resources) if status is not None and status.resources is not None else wanted
    capacity, capacity_problem = _capacity(annotations.get(CAPACITY_ANNOTATION))
    return SupervisorPod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        subdomain=pod.spec.subdomain or "",
        stateful_set=owners[0] if owners else "",
        ready=any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or ()),
        limit_millicores=in_force,
        wanted_millicores=wanted,
        capacity_millicores=capacity,
        resize_problem=capacity_problem or _resize_problem(pod.status.conditions or ()),
        requested_millicores=_cpu("requests", spec.resources if spec else None),
        is_guaranteed=pod.status.qos_class == "Guaranteed",
        is_resized=any(_sets("limits", entry) for entry in pod.metadata.managed_fields or ()),
        must_not_become_guaranteed=pod.status.qos_class != "Guaranteed" and _reserves_all_but_its_cpu(pod.spec),
        reserved_millicores=_reserved(status),
        is_reserved=any(_sets("requests", entry) for entry in pod.metadata.managed_fields or ()),
        is_being_deleted=pod.metadata.deletion_timestamp is not None,
    )


def _reserves_all_but_its_cpu(spec: Any) -> bool:
    """Whether the requests of all containers are their limits, the supervisor's CPU aside."""
    return all(
        _reserves_all(container.resources, resource)
        for container in (*(spec.init_containers or ()), *spec.containers)
        for resource in ("cpu", "memory")
        if (container.name, resource) != (CONTAINER, "cpu")
    )


def _reserves_all(resources: Any, resource: str) -> bool:
    requests, limits = getattr(resources, "requests", None) or {}, getattr(resources, "limits", None) or {}
    if resource not in requests or resource not in limits:
        return False
    requested, most = (parse_quantity(one[resource]) for one in (requests, limits))  # type: ignore[no-untyped-call]
    return bool(requested == most)


def _sets(kind: str, entry: Any) -> bool:
    """Whether an entry of `managedFields` says that the CPU of `limits` or `requests` is as the operator set it."""
    fields: Any = entry.fields_v1 if entry.manager == FIELD_MANAGER else None
    path = ("f:spec", "f:containers", f'k:{{"name":"{CONTAINER}"}}', "f:resources", f"f:{kind}", "f:cpu")
    for step in path:
        fields = fields.get(step) if isinstance(fields, Mapping) else None
    return fields is not None


def _capacity(annotation: str | None) -> tuple[float | None, str]:
    """Millicores, and what is wrong with them: what somebody wrote on one pod must not keep all others unread."""
    if not annotation:
        return None, ""
    if len(annotation) <= MOST_DIGITS and annotation.isdecimal() and 0 < int(annotation) <= MOST_MILLICORES:
        return float(annotation), ""
    found = short_repr(annotation)
    return None, f"{CAPACITY_ANNOTATION} is {found}; give a whole number of millicores, such as 2000"


def _cpu(kind: str, resources: Any) -> float | None:
    """Millicores of `limits` or `requests`; None where there are none."""
    given: Mapping[str, str] = getattr(resources, kind, None) or {}
    return millicores_from_quantity(given["cpu"]) if "cpu" in given else None


def _reserved(status: Any) -> float | None:
    """What of the container's request the kubelet has granted, in millicores."""
    granted: Mapping[str, str] = getattr(status, "allocated_resources", None) or {}
    if "cpu" in granted:
        return millicores_from_quantity(granted["cpu"])
    return _cpu("requests", getattr(status, "resources", None))


def _resize_problem(conditions: Any) -> str:
    for condition in conditions:
        if condition.type == "PodResizePending" and condition.status == "True":
            return f"{condition.reason}: {condition.message}"
        if condition.type == "PodResizeInProgress" and condition.status == "True" and condition.reason == "Error":
            return f"Error: {condition.message}"
    return ""

"""What the client's pods say, as values; and what is asked of the API for them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast
from unittest.mock import Mock

import pytest
from kubernetes.client import (
    ApiClient,
    V1Container,
    V1ContainerStatus,
    V1ManagedFieldsEntry,
    V1ObjectMeta,
    V1OwnerReference,
    V1Pod,
    V1PodCondition,
    V1PodList,
    V1PodSpec,
    V1PodStatus,
    V1ResourceRequirements,
    V1StatefulSetOrdinals,
)

from kube_builders import api_refusal
from storm_operator.adapters.kube import pods as module
from storm_operator.adapters.kube.errors import Forbidden, Refused
from storm_operator.adapters.kube.pods import CAPACITY_ANNOTATION, FIELD_MANAGER, Pods, SupervisorPod, pod_from


def resources(cpu: str | None) -> V1ResourceRequirements:
    return V1ResourceRequirements(limits={"cpu": cpu, "memory": "1Gi"} if cpu else {"memory": "1Gi"})


def client_pod(
    name: str = "sup-1",
    *,
    cpu: str | None = "500m",
    in_force: str | None = "500m",
    capacity: str | None = "2000",
    conditions: tuple[tuple[str, str, str, str], ...] = (("Ready", "True", "", ""),),
    **metadata: Any,
) -> Any:
    """A supervisor pod beside its agent. `conditions`: (type, status, reason, message)."""
    container = V1Container(name="supervisor", image="storm", resources=resources(cpu))
    status = V1ContainerStatus(
        name="supervisor", image="storm", image_id="", ready=True, restart_count=0, resources=resources(in_force)
    )
    return V1Pod(
        metadata=V1ObjectMeta(
            name=name,
            namespace="storm",
            annotations={CAPACITY_ANNOTATION: capacity} if capacity is not None else None,
            owner_references=[V1OwnerReference(api_version="apps/v1", kind="StatefulSet", name="sup", uid="u")],
            **metadata,
        ),
        spec=V1PodSpec(
            containers=[V1Container(name="agent", image="storm", resources=resources("100m")), container],
            subdomain="sup-service",
        ),
        status=V1PodStatus(
            container_statuses=[status],
            conditions=[V1PodCondition(type=t, status=s, reason=r, message=m) for t, s, r, m in conditions],
        ),
    )


class TestPodFrom:
    def test_is_that_of_its_supervisor_container(self) -> None:
        assert pod_from(client_pod()) == SupervisorPod(
            "storm", "sup-1", "sup-service", "sup", True, 500.0, 500.0, 2000.0, ""
        )

    def test_limit_that_is_asked_for_and_that_in_force_are_told_apart(self) -> None:
        pod = pod_from(client_pod(cpu="1500m", in_force="0.5"))
        assert (pod.wanted_millicores, pod.limit_millicores) == (1500.0, 500.0)

    @pytest.mark.parametrize(
        ("manager", "container", "resized"),
        [
            ("storm-operator", "supervisor", True),
            ("storm-operator", "agent", False),
            ("kubectl-edit", "supervisor", False),
        ],
    )
    def test_whether_its_limit_is_the_operators_is_known_from_who_set_it(
        self, manager: str, container: str, resized: bool
    ) -> None:
        limit: dict[str, Any] = {f'k:{{"name":"{container}"}}': {"f:resources": {"f:limits": {"f:cpu": {}}}}}
        entries = [
            V1ManagedFieldsEntry(manager="kube-controller-manager", fields_v1={"f:metadata": {"f:labels": {}}}),
            V1ManagedFieldsEntry(manager=manager, subresource="resize", fields_v1={"f:spec": {"f:containers": limit}}),
        ]
        assert pod_from(client_pod(managed_fields=entries)).is_resized is resized
        assert not pod_from(client_pod(managed_fields=entries)).is_reserved

    def test_whether_its_request_is_the_operators_is_known_from_who_set_it(self) -> None:
        request: dict[str, Any] = {'k:{"name":"supervisor"}': {"f:resources": {"f:requests": {"f:cpu": {}}}}}
        fields = {"f:spec": {"f:containers": request}}
        entry = V1ManagedFieldsEntry(manager="storm-operator", subresource="resize", fields_v1=fields)
        assert pod_from(client_pod(managed_fields=[entry])).is_reserved
        assert not pod_from(client_pod(managed_fields=[entry])).is_resized

    def test_what_the_node_keeps_free_and_whether_that_must_be_the_limit_are_known(self) -> None:
        body = client_pod()
        body.spec.containers[1].resources.requests = {"cpu": "0.1"}
        body.status.qos_class = "Guaranteed"
        pod = pod_from(body)
        assert (pod.requested_millicores, pod.is_guaranteed) == (100.0, True)

    def test_what_the_kubelet_has_granted_of_its_request_is_known(self) -> None:
        body = client_pod()
        assert pod_from(body).reserved_millicores is None
        (status,) = body.status.container_statuses
        status.resources.requests = {"cpu": "98m"}
        assert pod_from(body).reserved_millicores == 98.0, "what a kubelet that tells no more has set"
        status.allocated_resources = {"cpu": "0.1"}
        assert pod_from(body).reserved_millicores == 100.0

    @pytest.mark.parametrize(
        ("agent", "memory", "qos", "must_not"),
        [
            ({"cpu": "0.1", "memory": "1024Mi"}, "1Gi", "Burstable", True),
            ({"cpu": "0.1", "memory": "1024Mi"}, "1Gi", "Guaranteed", False),
            ({"cpu": "50m", "memory": "1Gi"}, "1Gi", "Burstable", False),
            ({"memory": "1Gi"}, "1Gi", "Burstable", False),
            ({"cpu": "100m", "memory": "1Gi"}, "512Mi", "Burstable", False),
            ({"cpu": "100m", "memory": "1Gi"}, None, "Burstable", False),
        ],
    )
    def test_whether_reserving_its_cpu_would_make_it_guaranteed_is_known(
        self, agent: dict[str, str], memory: str | None, qos: str, must_not: bool
    ) -> None:
        body = client_pod()
        body.status.qos_class = qos
        sidecar, supervisor = body.spec.containers
        sidecar.resources.requests = agent
        supervisor.resources.requests = {"cpu": "100m", **({"memory": memory} if memory else {})}
        assert pod_from(body).must_not_become_guaranteed is must_not
        body.spec.init_containers, body.spec.containers = [sidecar], [supervisor]
        assert pod_from(body).must_not_become_guaranteed is must_not

    def test_without_a_cpu_limit_there_is_none(self) -> None:
        pod = pod_from(client_pod(cpu=None, in_force=None))
        assert (pod.wanted_millicores, pod.limit_millicores) == (None, None)

    def test_kubelet_that_reports_no_resources_is_believed_to_do_as_asked(self) -> None:
        pod = client_pod(cpu="700m")
        pod.status.container_statuses[0].resources = None
        assert pod_from(pod).limit_millicores == 700.0

    def test_pod_that_does_not_run_yet_is_not_ready(self) -> None:
        pod = client_pod(conditions=())
        pod.status.container_statuses = None
        pod.status.conditions = None
        assert not pod_from(pod).ready
        assert pod_from(pod).limit_millicores == 500.0

    def test_pod_of_nobody_has_no_stateful_set(self) -> None:
        pod = client_pod()
        pod.metadata.owner_references = None
        assert pod_from(pod).stateful_set == ""

    def test_capacity_is_unknown_without_the_annotation(self) -> None:
        pod = pod_from(client_pod(capacity=None))
        assert (pod.capacity_millicores, pod.resize_problem) == (None, "")

    @pytest.mark.parametrize("typed", ["2000m", "two", "0", "-5", "nan", "1e9999"])
    def test_capacity_that_is_no_number_is_unknown_and_told(self, typed: str) -> None:
        pod = pod_from(client_pod(capacity=typed))
        assert pod.capacity_millicores is None
        assert pod.resize_problem == (
            f"{CAPACITY_ANNOTATION} is {typed!r}; give a whole number of millicores, such as 2000"
        )

    @pytest.mark.parametrize("typed", ["1000000001", "9" * 400, "9" * 5000, "x" * 5000])
    def test_capacity_that_no_machine_has_is_unknown_and_told_in_brief(self, typed: str) -> None:
        pod = pod_from(client_pod(capacity=typed))
        assert pod.capacity_millicores is None
        assert pod.resize_problem.startswith(f"{CAPACITY_ANNOTATION} is '{typed[:5]}")
        assert len(pod.resize_problem) < 300

    @pytest.mark.parametrize(
        ("conditions", "problem"),
        [
            ((("PodResizePending", "True", "Infeasible", "node has 1 CPU"),), "Infeasible: node has 1 CPU"),
            ((("PodResizePending", "True", "Deferred", "no room now"),), "Deferred: no room now"),
            ((("PodResizePending", "False", "Infeasible", "was so"),), ""),
            ((("PodResizeInProgress", "True", "Error", "EINVAL"),), "Error: EINVAL"),
            ((("PodResizeInProgress", "True", "", ""),), ""),
        ],
    )
    def test_resize_that_is_not_done_says_why(
        self, conditions: tuple[tuple[str, str, str, str], ...], problem: str
    ) -> None:
        assert pod_from(client_pod(conditions=conditions)).resize_problem == problem


def named(name: str) -> SupervisorPod:
    return SupervisorPod("storm", name, "sup-service", "sup", True, None, None, None)


@pytest.mark.parametrize(("name", "ordinal"), [("sup-0", 0), ("sup-12", 12), ("storm-sup-3", 3), ("sup-abc", 0)])
def test_ordinal_is_the_end_of_the_name(name: str, ordinal: int) -> None:
    assert named(name).ordinal == ordinal


@pytest.mark.parametrize(
    ("host", "matches"),
    [
        ("sup-1", True),
        ("sup-1.sup-service.storm.svc.cluster.local", True),
        ("sup-1.sup-service.storm", True),
        ("sup-1.sup-service.other.svc.cluster.local", False),
        ("sup-1.other.storm.svc.cluster.local", False),
        ("sup-10.sup-service.storm.svc.cluster.local", False),
        ("10.0.0.7", False),
    ],
)
def test_supervisor_is_found_by_its_host(host: str, matches: bool) -> None:
    assert named("sup-1").matches(host) is matches


class TestPods:
    @pytest.fixture
    def core(self, monkeypatch: pytest.MonkeyPatch) -> Mock:
        core = Mock()
        monkeypatch.setattr(module, "CoreV1Api", lambda _: core)
        return core

    @pytest.fixture
    def apps(self, monkeypatch: pytest.MonkeyPatch) -> Mock:
        apps = Mock()
        monkeypatch.setattr(module, "AppsV1Api", lambda _: apps)
        return apps

    @pytest.fixture
    def pods(self, core: Mock, apps: Mock) -> Pods:
        return Pods(cast("ApiClient", None))

    def test_all_are_listed_sorted_and_told_apart_where_they_are_being_deleted(self, core: Mock, pods: Pods) -> None:
        leaving = client_pod("sup-2", deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
        core.list_namespaced_pod.return_value = V1PodList(items=[client_pod("sup-1"), leaving, client_pod("sup-0")])
        found = [(pod.name, pod.is_being_deleted) for pod in pods.supervisors(("storm", "storm"))]
        assert found == [("sup-0", False), ("sup-1", False), ("sup-2", True)]
        assert core.list_namespaced_pod.call_count == 1

    @pytest.mark.parametrize(("cpu", "capacity"), [("1M", None), ("1Ki", None), ("500m", "9" * 5000)])
    def test_what_somebody_wrote_on_one_pod_keeps_no_other_unread(
        self, core: Mock, pods: Pods, cpu: str, capacity: str | None
    ) -> None:
        strange = client_pod("anybodys", cpu=cpu, in_force=None, capacity=capacity)
        core.list_namespaced_pod.return_value = V1PodList(items=[client_pod("sup-0"), strange])
        assert [pod.name for pod in pods.supervisors(("storm",))] == ["anybodys", "sup-0"]

    def test_resize_sets_limit_and_request_of_the_supervisor_container_alone(self, core: Mock, pods: Pods) -> None:
        pods.resize_cpu(named("sup-1"), 1500, reserve_millicores=1500)
        (name, namespace, body), options = core.patch_namespaced_pod_resize.call_args
        assert (name, namespace, options["field_manager"]) == ("sup-1", "storm", FIELD_MANAGER)
        (container,) = body["spec"]["containers"]
        assert container["name"] == "supervisor"
        assert container["resources"] == {"limits": {"cpu": "1500m"}, "requests": {"cpu": "1500m"}}

    def test_resize_without_reserving_leaves_the_request_unless_the_pod_is_guaranteed(
        self, core: Mock, pods: Pods
    ) -> None:
        asked = []
        for pod in (named("sup-1"), replace(named("sup-2"), is_guaranteed=True)):
            pods.resize_cpu(pod, 1500, reserve_millicores=None)
            (container,) = core.patch_namespaced_pod_resize.call_args.args[2]["spec"]["containers"]
            asked.append(container["resources"].get("requests"))
        assert asked == [None, {"cpu": "1500m"}]

    def test_resize_may_reserve_less_than_the_limit(self, core: Mock, pods: Pods) -> None:
        pods.resize_cpu(named("sup-1"), 1500, reserve_millicores=100)
        (container,) = core.patch_namespaced_pod_resize.call_args.args[2]["spec"]["containers"]
        assert container["resources"] == {"limits": {"cpu": "1500m"}, "requests": {"cpu": "100m"}}

    def test_resize_keeps_a_pod_from_becoming_guaranteed(self, core: Mock, pods: Pods) -> None:
        pods.resize_cpu(replace(named("sup-1"), must_not_become_guaranteed=True), 1500, reserve_millicores=1500)
        (container,) = core.patch_namespaced_pod_resize.call_args.args[2]["spec"]["containers"]
        assert container["resources"] == {"limits": {"cpu": "1500m"}, "requests": {"cpu": "1499m"}}

    @pytest.mark.parametrize(
        ("limit", "must_not", "requests"),
        [
            (799, False, {"cpu": "799m"}),
            (800, False, None),
            (800, True, {"cpu": "799m"}),
            (801, True, None),
        ],
    )
    def test_request_goes_down_with_a_limit_that_it_would_be_above(
        self, core: Mock, pods: Pods, limit: int, must_not: bool, requests: dict[str, str] | None
    ) -> None:
        deferred = replace(named("sup-1"), requested_millicores=800.0, must_not_become_guaranteed=must_not)
        pods.resize_cpu(deferred, limit, reserve_millicores=None)
        (container,) = core.patch_namespaced_pod_resize.call_args.args[2]["spec"]["containers"]
        assert container["resources"].get("requests") == requests

    @pytest.mark.parametrize(
        ("limit", "granted", "requests"),
        [(1000, 300.0, {"cpu": "300m"}), (200, 300.0, {"cpu": "200m"}), (1000, 900.0, None)],
    )
    def test_resize_without_reserving_takes_back_a_request_that_is_not_granted(
        self, core: Mock, pods: Pods, limit: int, granted: float, requests: dict[str, str] | None
    ) -> None:
        deferred = replace(named("sup-1"), requested_millicores=800.0, reserved_millicores=granted)
        pods.resize_cpu(deferred, limit, reserve_millicores=None)
        (container,) = core.patch_namespaced_pod_resize.call_args.args[2]["spec"]["containers"]
        assert container["resources"].get("requests") == requests

    def test_refused_resize_names_pod_and_value(self, core: Mock, pods: Pods) -> None:
        core.patch_namespaced_pod_resize.side_effect = api_refusal(422, "QoS must not change")
        with pytest.raises(Refused, match="resize pod storm/sup-1 to 1500m CPU: QoS must not change"):
            pods.resize_cpu(named("sup-1"), 1500, reserve_millicores=1500)

    def test_scale_asks_for_replicas(self, apps: Mock, pods: Pods) -> None:
        pods.scale("storm", "sup", 3)
        (name, namespace, body), _ = apps.patch_namespaced_stateful_set_scale.call_args
        assert (name, namespace, body) == ("sup", "storm", {"spec": {"replicas": 3}})

    def test_replicas_are_what_is_asked_for(self, apps: Mock, pods: Pods) -> None:
        apps.read_namespaced_stateful_set_scale.return_value.spec.replicas = None
        assert pods.replicas("storm", "sup") == 0
        apps.read_namespaced_stateful_set_scale.return_value.spec.replicas = 3
        assert pods.replicas("storm", "sup") == 3

    @pytest.mark.parametrize(
        ("ordinals", "first"),
        [(None, 0), (V1StatefulSetOrdinals(), 0), (V1StatefulSetOrdinals(start=5), 5)],
    )
    def test_first_ordinal_is_that_of_the_spec(
        self, apps: Mock, pods: Pods, ordinals: V1StatefulSetOrdinals | None, first: int
    ) -> None:
        apps.read_namespaced_stateful_set.return_value.spec.ordinals = ordinals
        assert pods.first_ordinal("storm", "sup") == first

    @pytest.mark.parametrize(
        ("given", "request_millicores"),
        [
            (V1ResourceRequirements(requests={"cpu": "100m"}, limits={"cpu": "1"}), 100.0),
            (V1ResourceRequirements(limits={"cpu": "1"}), 1000.0),
            (V1ResourceRequirements(), None),
            (None, None),
        ],
    )
    def test_request_that_pods_are_made_with_is_that_of_the_template(
        self, apps: Mock, pods: Pods, given: V1ResourceRequirements | None, request_millicores: float | None
    ) -> None:
        containers = [
            V1Container(name="agent", resources=V1ResourceRequirements(requests={"cpu": "20m"})),
            V1Container(name="supervisor", resources=given),
        ]
        apps.read_namespaced_stateful_set.return_value.spec.template.spec = V1PodSpec(containers=containers)
        assert pods.cpu_request("storm", "sup") == request_millicores

    def test_missing_right_is_told_with_what_was_done(self, apps: Mock, pods: Pods) -> None:
        apps.read_namespaced_stateful_set_scale.side_effect = api_refusal(403, "cannot get statefulsets/scale")
        with pytest.raises(Forbidden, match="read scale of StatefulSet storm/sup: cannot get statefulsets/scale"):
            pods.replicas("storm", "sup")

"""One operator at a time: who may hold the Lease, and what is written to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast
from unittest.mock import Mock

import pytest
from kubernetes.client import ApiClient, V1Lease, V1LeaseSpec, V1ObjectMeta

from kube_builders import api_refusal
from storm_operator.adapters.kube import leases as module
from storm_operator.adapters.kube.errors import KubernetesError
from storm_operator.adapters.kube.leases import Lease, LeaseSeen, LeaseTerms, may_take

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
TERMS = LeaseTerms("storm", "storm-operator", "me")


def seen(holder: str, renewed: bool = True, duration_seconds: int = 15) -> LeaseSeen:
    return LeaseSeen(holder, NOW if renewed else None, duration_seconds)


class TestMayTake:
    @pytest.mark.parametrize(
        ("lease", "unchanged_seconds", "may"),
        [
            (None, 0.0, True),
            (seen(""), 1.0, True),
            (seen("me"), 1.0, True),
            (seen("me"), 100.0, True),
            (seen("other"), 15.1, True),
            (seen("other", renewed=False), 0.0, True),
            (seen("other"), 15.0, False),
            (seen("other"), 0.0, False),
        ],
        ids=["absent", "free", "own", "own lapsed", "lapsed", "never renewed", "last moment", "held"],
    )
    def test_only_what_nobody_else_holds(self, lease: LeaseSeen | None, unchanged_seconds: float, may: bool) -> None:
        assert may_take(lease, "me", unchanged_seconds) is may

    def test_duration_is_that_of_the_holder(self) -> None:
        assert not may_take(seen("other", duration_seconds=60), "me", 40.0)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Mock:
    api = Mock()
    monkeypatch.setattr(module, "CoordinationV1Api", lambda _: api)
    return api


@pytest.fixture
def lease(api: Mock) -> Lease:
    return Lease(cast("ApiClient", None), TERMS, lambda: NOW)


def stored(holder: str, seconds_ago: float = 1.0, transitions: int = 3) -> V1Lease:
    return V1Lease(
        metadata=V1ObjectMeta(name="storm-operator", resource_version="41"),
        spec=V1LeaseSpec(
            holder_identity=holder,
            renew_time=NOW - timedelta(seconds=seconds_ago),
            acquire_time=NOW - timedelta(hours=1),
            lease_duration_seconds=15,
            lease_transitions=transitions,
        ),
    )


def written(call: Any) -> dict[str, Any]:
    body: dict[str, Any] = call.call_args.args[-1]
    return body


class TestHold:
    def test_absent_lease_is_made(self, api: Mock, lease: Lease) -> None:
        api.read_namespaced_lease.side_effect = api_refusal(404)
        assert lease.hold()
        spec = written(api.create_namespaced_lease)["spec"]
        assert spec["holderIdentity"] == "me"
        assert spec["renewTime"] == spec["acquireTime"] == "2027-01-15T08:00:00.000000Z"
        assert spec["leaseDurationSeconds"] == 15

    def test_lease_that_was_deleted_is_its_holders_until_it_would_have_lapsed(self, api: Mock) -> None:
        clock = [100.0]
        lease = Lease(cast("ApiClient", None), TERMS, lambda: NOW, lambda: clock[0])
        api.read_namespaced_lease.return_value = stored("other")
        assert not lease.hold()
        api.read_namespaced_lease.side_effect = api_refusal(404)
        clock[0] += 15.0
        assert not lease.hold()
        api.create_namespaced_lease.assert_not_called()
        clock[0] += 0.1
        assert lease.hold()

    def test_holder_makes_a_lease_that_was_deleted_anew_at_once(self, api: Mock, lease: Lease) -> None:
        api.read_namespaced_lease.return_value = stored("me")
        assert lease.hold()
        api.read_namespaced_lease.side_effect = api_refusal(404)
        assert lease.hold()
        api.create_namespaced_lease.assert_called_once()

    def test_marks_that_others_have_put_on_it_stay_also_when_it_is_made_anew(self, api: Mock, lease: Lease) -> None:
        """By these Helm knows its own: it installs nothing beside one that is not."""
        labels, annotations = {"app.kubernetes.io/managed-by": "Helm"}, {"meta.helm.sh/release-name": "storm-operator"}
        marks = {"labels": labels, "annotations": annotations}
        there = stored("me")
        there.metadata = V1ObjectMeta(
            name="storm-operator", resource_version="41", labels=labels, annotations=annotations
        )
        api.read_namespaced_lease.return_value = there
        assert lease.hold()
        lease.release()
        for call in api.replace_namespaced_lease.call_args_list:
            assert call.args[-1]["metadata"] == {"name": "storm-operator", "resourceVersion": "41", **marks}
        api.read_namespaced_lease.side_effect = api_refusal(404)
        assert lease.hold()
        assert written(api.create_namespaced_lease)["metadata"] == {"name": "storm-operator", **marks}

    @pytest.mark.parametrize("seconds_ago", [3600.0, 16.0, -3600.0])
    def test_lease_that_is_not_renewed_is_taken_over_whatever_its_holders_clock_said(
        self, api: Mock, seconds_ago: float
    ) -> None:
        clock = [100.0]
        lease = Lease(cast("ApiClient", None), TERMS, lambda: NOW, lambda: clock[0])
        api.read_namespaced_lease.return_value = stored("other", seconds_ago)
        assert not lease.hold(), "it may just have been renewed"
        clock[0] += 10.0
        api.read_namespaced_lease.return_value = stored("other", seconds_ago - 10.0)
        clock[0] += 10.0
        assert not lease.hold(), "it was"
        clock[0] += 15.1
        assert lease.hold()
        body = written(api.replace_namespaced_lease)
        assert body["metadata"]["resourceVersion"] == "41"
        assert (body["spec"]["holderIdentity"], body["spec"]["leaseTransitions"]) == ("me", 4)
        assert body["spec"]["acquireTime"] == "2027-01-15T08:00:00.000000Z"

    def test_own_lease_is_renewed(self, api: Mock, lease: Lease) -> None:
        api.read_namespaced_lease.return_value = stored("me")
        assert lease.hold()
        spec = written(api.replace_namespaced_lease)["spec"]
        assert spec["renewTime"] == "2027-01-15T08:00:00.000000Z"
        assert spec["acquireTime"] == "2027-01-15T07:00:00.000000Z"
        assert spec["leaseTransitions"] == 3

    def test_held_lease_is_left_alone(self, api: Mock, lease: Lease) -> None:
        api.read_namespaced_lease.return_value = stored("other")
        assert not lease.hold()
        api.replace_namespaced_lease.assert_not_called()

    @pytest.mark.parametrize("there", [True, False])
    def test_replica_that_was_faster_wins(self, api: Mock, lease: Lease, there: bool) -> None:
        if there:
            api.read_namespaced_lease.return_value = stored("")
        else:
            api.read_namespaced_lease.side_effect = api_refusal(404)
        api.replace_namespaced_lease.side_effect = api.create_namespaced_lease.side_effect = api_refusal(409)
        assert not lease.hold()

    def test_api_that_does_not_answer_is_an_error_and_no_lost_lease(self, api: Mock, lease: Lease) -> None:
        api.read_namespaced_lease.side_effect = api_refusal(503, "down")
        with pytest.raises(KubernetesError, match="read lease storm/storm-operator: down"):
            lease.hold()


class TestRelease:
    def test_lets_another_take_it_at_once(self, api: Mock, lease: Lease) -> None:
        api.read_namespaced_lease.return_value = stored("me")
        lease.release()
        assert written(api.replace_namespaced_lease)["spec"].get("holderIdentity") is None

    def test_leaves_the_lease_of_another(self, api: Mock, lease: Lease) -> None:
        api.read_namespaced_lease.return_value = stored("other")
        lease.release()
        api.replace_namespaced_lease.assert_not_called()

    def test_that_fails_is_harmless(self, api: Mock, lease: Lease) -> None:
        api.read_namespaced_lease.side_effect = api_refusal(503)
        lease.release()

"""The client's exceptions as ours, with what was being done; and the calls for the operator's own kinds."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import Mock

import pytest
import urllib3
from kubernetes.client import ApiClient, V1Lease
from kubernetes.client.exceptions import ApiException

from kube_builders import api_refusal, topology_body
from storm_operator.adapters.kube import resources as module
from storm_operator.adapters.kube.errors import Conflict, Forbidden, KubernetesError, NotFound, Refused, api_errors
from storm_operator.adapters.kube.resources import MERGE_PATCH, PAGE_SIZES, REBALANCES, TOPOLOGIES, OwnKinds


def translated(error: Exception) -> KubernetesError:
    with pytest.raises(KubernetesError) as caught, api_errors("read job a/b"):
        raise error
    return caught.value


class TestApiErrors:
    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (404, NotFound),
            (409, Conflict),
            (422, Refused),
            (400, Refused),
            (403, Forbidden),
            (500, KubernetesError),
            (429, KubernetesError),
        ],
    )
    def test_are_told_apart_by_status(self, status: int, kind: type[KubernetesError]) -> None:
        assert type(translated(api_refusal(status, "because"))) is kind

    def test_say_what_was_done_and_why_not(self) -> None:
        assert str(translated(api_refusal(404, "jobs b not found"))) == "read job a/b: jobs b not found"

    @pytest.mark.parametrize("body", [None, "", "<html>", "[]", "{}", "null"])
    def test_without_a_message_the_status_is_said(self, body: str | None) -> None:
        error = ApiException(status=502, reason="Bad Gateway")
        error.body = body
        assert str(translated(error)) == "read job a/b: 502 Bad Gateway"

    @pytest.mark.parametrize(
        "error", [urllib3.exceptions.ProtocolError("reset"), ConnectionResetError("reset"), TimeoutError("reset")]
    )
    def test_server_that_does_not_answer_is_said(self, error: Exception) -> None:
        assert str(translated(error)) == "read job a/b: the Kubernetes API does not answer: reset"

    def test_answer_of_somebody_else_is_said_in_one_line(self) -> None:
        with pytest.raises(ValueError, match="V1Lease") as invalid:
            V1Lease.model_validate("<html>sign in first</html>")
        said = str(translated(invalid.value))
        assert said.startswith(
            "read job a/b: the answer is none of the Kubernetes API (is it a proxy's?): 1 validation"
        )
        assert "sign in first" in said
        assert "\n" not in said

    def test_mistakes_of_our_own_are_not_hidden(self) -> None:
        with pytest.raises(KeyError), api_errors("read job a/b"):
            raise KeyError("x")

    def test_nothing_is_changed_when_all_goes_well(self) -> None:
        with api_errors("read job a/b"):
            done = True
        assert done


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Mock:
    api = Mock()
    monkeypatch.setattr(module, "CustomObjectsApi", lambda _: api)
    return api


@pytest.fixture
def kinds(api: Mock) -> OwnKinds:
    return OwnKinds(cast("ApiClient", None))


def sent(call: Any) -> Any:
    return call.call_args.args[-1]


class TestOwnKinds:
    def test_status_is_merged_and_nothing_else_is_touched(self, api: Mock, kinds: OwnKinds) -> None:
        kinds.patch_status(TOPOLOGIES, "streams", "words", {"phase": "Running", "lastHold": None})
        call = api.patch_namespaced_custom_object_status
        assert sent(call) == {"status": {"phase": "Running", "lastHold": None}}
        assert call.call_args.kwargs["_content_type"] == MERGE_PATCH

    def test_annotation_is_removed_by_none(self, api: Mock, kinds: OwnKinds) -> None:
        kinds.annotate(REBALANCES, "streams", "p-1", {"a": None})
        assert sent(api.patch_namespaced_custom_object) == {"metadata": {"annotations": {"a": None}}}

    def test_annotation_is_changed_in_the_version_that_was_seen(self, api: Mock, kinds: OwnKinds) -> None:
        kinds.annotate(REBALANCES, "streams", "p-1", {"a": None}, "41")
        metadata = {"annotations": {"a": None}, "resourceVersion": "41"}
        assert sent(api.patch_namespaced_custom_object) == {"metadata": metadata}

    def test_object_that_is_gone_is_let_go(self, api: Mock, kinds: OwnKinds) -> None:
        gone = api_refusal(404)
        api.patch_namespaced_custom_object_status.side_effect = gone
        api.patch_namespaced_custom_object.side_effect = gone
        api.delete_namespaced_custom_object.side_effect = gone
        kinds.patch_status(TOPOLOGIES, "streams", "words", {})
        kinds.delete(TOPOLOGIES, "streams", "words")

    def test_what_is_asked_of_an_object_that_is_gone_is_not_taken_for_asked(self, api: Mock, kinds: OwnKinds) -> None:
        api.patch_namespaced_custom_object.side_effect = api_refusal(404)
        with pytest.raises(NotFound):
            kinds.annotate(REBALANCES, "streams", "p-1", {"a": "b"})

    def test_refused_status_names_the_object(self, api: Mock, kinds: OwnKinds) -> None:
        api.patch_namespaced_custom_object_status.side_effect = api_refusal(422, "status.phase: Unsupported value")
        with pytest.raises(Refused, match=r"stormtopologies streams/words: status.phase: Unsupported value"):
            kinds.patch_status(TOPOLOGIES, "streams", "words", {})

    def test_object_that_is_there_already_is_not_made_again(self, api: Mock, kinds: OwnKinds) -> None:
        assert kinds.create(TOPOLOGIES, "streams", topology_body())
        api.create_namespaced_custom_object.side_effect = api_refusal(409)
        assert not kinds.create(TOPOLOGIES, "streams", topology_body())

    def test_list_is_of_the_cluster_or_of_the_namespaces_named(self, api: Mock, kinds: OwnKinds) -> None:
        one, two, three = (topology_body(name) for name in ("one", "two", "three"))
        api.list_cluster_custom_object.return_value = {"items": [one, two, three]}
        api.list_namespaced_custom_object.side_effect = [{"items": [one]}, {"items": [two]}]
        assert kinds.list(TOPOLOGIES) == (one, two, three)
        assert kinds.list(TOPOLOGIES, ("a", "b")) == (one, two)

    def test_list_is_asked_for_a_page_at_a_time(self, api: Mock, kinds: OwnKinds) -> None:
        one, two, three = (topology_body(name) for name in ("one", "two", "three"))
        pages = [{"items": [one, two], "metadata": {"continue": "from-here"}}, {"items": [three], "metadata": {}}]
        api.list_namespaced_custom_object.side_effect = pages
        found = kinds.each(REBALANCES, ("a",), "status.state=Proposed")
        assert [next(found), next(found)] == [one, two]
        assert api.list_namespaced_custom_object.call_count == 1
        assert list(found) == [three]
        asked = [call.kwargs for call in api.list_namespaced_custom_object.call_args_list]
        assert [(one["limit"], one.get("_continue"), one["field_selector"]) for one in asked] == [
            (PAGE_SIZES[REBALANCES], None, "status.state=Proposed"),
            (PAGE_SIZES[REBALANCES], "from-here", "status.state=Proposed"),
        ]

    def test_page_that_is_refused_refuses_the_list(self, api: Mock, kinds: OwnKinds) -> None:
        first = {"items": [topology_body()], "metadata": {"continue": "too-old"}}
        api.list_cluster_custom_object.side_effect = [
            first,
            api_refusal(410, "continue is too old"),
        ]
        with pytest.raises(KubernetesError, match="list stormtopologies: continue is too old"):
            kinds.list(TOPOLOGIES)

    @pytest.mark.parametrize("answer", ["<html>sign in first</html>", "", None, [], {}, {"items": 7}])
    def test_listing_that_is_none_is_no_empty_one(self, api: Mock, kinds: OwnKinds, answer: object) -> None:
        api.list_cluster_custom_object.return_value = answer
        with pytest.raises(KubernetesError, match="list stormtopologies: the answer is none of the Kubernetes API"):
            kinds.list(TOPOLOGIES)

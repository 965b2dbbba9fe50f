"""The setting that says what pods of submission Jobs are given: what is wrong with it is named."""

from __future__ import annotations

import json

import pytest

from storm_operator.kube.submission_pod import InvalidSubmissionPod, SubmissionPod, parse_submission_pod


def test_nothing_is_given_by_default() -> None:
    assert parse_submission_pod("{}") == SubmissionPod()
    assert SubmissionPod().pod_fields() == SubmissionPod().container_fields() == {}


def test_all_is_taken_as_kubernetes_has_it() -> None:
    given = {
        "resources": {"requests": {"cpu": 1, "memory": "300Mi"}},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "storm", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "registry"}],
    }
    pod = parse_submission_pod(json.dumps({**given, "deadlineSeconds": 900}))
    assert pod.deadline_seconds == 900
    assert {**pod.container_fields(), **pod.pod_fields()} == given


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("disk=ssd", "not JSON"),
        ("[]", "must be an object"),
        ('{"affinity": {}}', "affinity: unknown; it may have resources, nodeSelector"),
        ('{"nodeSelector": ["disk"]}', "nodeSelector: .* must be an object"),
        ('{"nodeSelector": {"disk": 1}}', "nodeSelector.disk: 1 must be text"),
        ('{"tolerations": {"key": "storm"}}', "tolerations: .* must be a list of objects"),
        ('{"imagePullSecrets": ["registry"]}', "imagePullSecrets: .* must be a list of objects"),
        ('{"imagePullSecrets": [{}]}', r"imagePullSecrets\[0\]: must name a Secret"),
        ('{"deadlineSeconds": 0}', "deadlineSeconds: 0 must be a whole number of seconds, 1 or more"),
        ('{"deadlineSeconds": 1.5}', "deadlineSeconds: 1.5 must be a whole number"),
        ('{"deadlineSeconds": true}', "deadlineSeconds: True must be a whole number"),
        ('{"resources": {"request": {"cpu": 1}}}', "resources.request: must be requests or limits"),
    ],
)
def test_what_is_wrong_is_named(text: str, complaint: str) -> None:
    with pytest.raises(InvalidSubmissionPod, match=complaint):
        parse_submission_pod(text)

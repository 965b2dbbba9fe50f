"""What `make demo-k8s` says where it cannot go on."""

from __future__ import annotations

from demo_on_kubernetes import what_is_said


def test_the_operators_own_words_are_told_once_each() -> None:
    status = {
        "message": "words runs",
        "conditions": [
            {"type": "Ready", "status": "False", "message": "2 of 6 executors were not measured"},
            {"type": "Degraded", "status": "False", "message": "nothing is wrong"},
        ],
        "lastHold": {"reason": "MetricsIncomplete", "message": "2 of 6 executors were not measured"},
    }
    assert what_is_said(status) == "words runs 2 of 6 executors were not measured"


def test_of_a_topology_without_a_status_nothing_is_told_yet() -> None:
    assert what_is_said({}) == "nothing yet"

from __future__ import annotations

import json
from typing import Any

import pytest

from storm_operator.agent.limits import ExecutorKey, LimitsError, parse_limits


def document(**fields: Any) -> bytes:
    limits = [{"task_start": 1, "task_end": 2, "millicores": 400}]
    return json.dumps({"version": 1, "topology_id": "t-1", "plan_id": "p-1", "limits": limits} | fields).encode()


def test_reads_millicores_per_executor() -> None:
    assert parse_limits(document(), "t-1") == {ExecutorKey("t-1", 1, 2): 400.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "not JSON"),
        (b"[]", "must be a JSON object"),
        (document(version=2), "version is 2"),
        (document(topology_id="t-2"), "topology_id is 't-2', the node is named 't-1'"),
        (document(limits=None), "limits must be a list"),
        (
            document(limits=[{"task_start": 1, "task_end": 1, "millicores": 0}]),
            r"limits\[0\].millicores must be .* above 0",
        ),
        (document(limits=[{"task_start": 1, "millicores": 5}]), r"limits\[0\].task_end must be a whole number"),
    ],
)
def test_names_the_field_that_is_wrong(text: bytes, message: str) -> None:
    with pytest.raises(LimitsError, match=message):
        parse_limits(text, "t-1")

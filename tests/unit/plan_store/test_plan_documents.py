"""Documents of docs/reference/interfaces.md: they round-trip, and wrong ones are refused by field and value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_operator.adapters.errors import MalformedDocument
from storm_operator.adapters.plan_documents import (
    Acknowledgement,
    CpuLimits,
    PlanDocument,
    PlannedWorker,
    Unplaced,
    decode_acknowledgement,
    decode_cpu_limits,
    decode_plan,
    encode_acknowledgement,
    encode_cpu_limits,
    encode_plan,
)
from storm_operator.core.model import Executor

PLAN: dict[str, Any] = {
    "version": 1,
    "plan_id": "p-20260101-120000-3fa9",
    "topology_id": "wordcount-1-1767268800",
    "workers": [
        {"supervisor_id": "8c1f-10.77.0.11", "host": "10.77.0.11", "port": 6700, "executors": [[1, 1], [4, 5]]}
    ],
}
ACK: dict[str, Any] = {
    "version": 1,
    "plan_id": "p-1",
    "topology_id": "t-1",
    "outcome": "partial",
    "message": "6 of 7 executors as planned",
    "placed": 6,
    "unplaced": [{"executor": [1, 1], "reason": "supervisor 10.77.0.12 is dead"}],
    "at_ms": 1767268800000,
}
LIMITS: dict[str, Any] = {
    "version": 1,
    "topology_id": "t-1",
    "plan_id": "p-1",
    "limits": [{"task_start": 1, "task_end": 1, "millicores": 400}],
}


def encoded(document: Any) -> bytes:
    return json.dumps(document).encode()


def changed(document: dict[str, Any], path: tuple[str | int, ...], value: Any) -> bytes:
    copy = json.loads(json.dumps(document))
    at = copy
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return encoded(copy)


def test_the_plan_of_the_reference() -> None:
    plan = decode_plan(encoded(PLAN))
    assert plan == PlanDocument(
        "p-20260101-120000-3fa9",
        "wordcount-1-1767268800",
        (PlannedWorker("8c1f-10.77.0.11", "10.77.0.11", 6700, ((1, 1), (4, 5))),),
    )
    assert json.loads(encode_plan(plan)) == PLAN


def test_the_acknowledgement_of_the_reference() -> None:
    ack = decode_acknowledgement(encoded(ACK))
    assert ack.outcome == "partial"
    assert ack.unplaced == (Unplaced((1, 1), "supervisor 10.77.0.12 is dead"),)
    assert json.loads(encode_acknowledgement(ack)) == ACK


def test_a_rejection_may_have_no_plan_id() -> None:
    ack = decode_acknowledgement(changed(ACK | {"outcome": "rejected"}, ("plan_id",), None))
    assert ack.plan_id is None


def test_cpu_limits_are_keyed_by_executor_whatever_its_component() -> None:
    limits = decode_cpu_limits(encoded(LIMITS))
    assert limits.millicores == {Executor("t-1", 1, 1, "split"): 400.0}


RANGES = st.lists(st.integers(1, 99), unique=True, max_size=5).map(lambda starts: tuple((n, n) for n in starts))


@given(RANGES, RANGES, st.text())
def test_plans_round_trip(here: tuple[tuple[int, int], ...], there: tuple[tuple[int, int], ...], name: str) -> None:
    there = tuple((start + 100, end + 100) for start, end in there)
    plan = PlanDocument(name, "t", (PlannedWorker("a", name, 1, here), PlannedWorker("b", "h", 65535, there)))
    assert decode_plan(encode_plan(plan)) == plan


@given(st.dictionaries(st.integers(1, 99), st.floats(0.001, 1e6)), st.text())
def test_cpu_limits_round_trip(millicores: dict[int, float], plan_id: str) -> None:
    limits = CpuLimits("t", plan_id, {Executor("t", task, task, ""): limit for task, limit in millicores.items()})
    assert decode_cpu_limits(encode_cpu_limits(limits)) == limits


@given(RANGES, st.sampled_from(["applied", "partial", "rejected"]), st.none() | st.text())
def test_acknowledgements_round_trip(ranges: tuple[tuple[int, int], ...], outcome: str, plan_id: str | None) -> None:
    ack = Acknowledgement(plan_id, "t", outcome, "", 0, tuple(Unplaced(each, "dead") for each in ranges), 5)
    assert decode_acknowledgement(encode_acknowledgement(ack)) == ack


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), 2, "plan: version is 2; it must be 1"),
        (("version",), True, "plan: version is True"),
        (("plan_id",), None, "plan: plan_id is None; it must be str"),
        (("workers",), {}, "plan: workers is {}; it must be list"),
        (("workers", 0), "x", "plan: workers[0] is 'x'; it must be a JSON object"),
        (("workers", 0, "port"), 70000, "plan: workers[0].port is 70000; it must be 1 to 65535"),
        (("workers", 0, "port"), True, "plan: workers[0]: port is True; it must be int"),
        (("workers", 0, "executors", 1), [5, 4], "plan: workers[0].executors[1] is [5, 4]; it must be [task_start"),
        (("workers", 0, "executors", 1), [5], "plan: workers[0].executors[1] is [5]"),
        (("workers", 0, "executors", 1), [0, 1], "plan: workers[0].executors[1] is [0, 1]"),
        (("workers", 0, "executors", 1), [1, 1], "plan: executors: [1, 1] appears twice"),
    ],
)
def test_wrong_plans(path: tuple[str | int, ...], value: Any, message: str) -> None:
    with pytest.raises(MalformedDocument) as caught:
        decode_plan(changed(PLAN, path, value))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("outcome",), "done", "acknowledgement: outcome is 'done'; it must be one of applied, partial, rejected"),
        (("unplaced", 0, "reason"), 3, "acknowledgement: unplaced[0]: reason is 3; it must be str"),
        (("placed",), "six", "acknowledgement: placed is 'six'; it must be int"),
    ],
)
def test_wrong_acknowledgements(path: tuple[str | int, ...], value: Any, message: str) -> None:
    with pytest.raises(MalformedDocument) as caught:
        decode_acknowledgement(changed(ACK, path, value))
    assert message in str(caught.value)


@pytest.mark.parametrize("millicores", [0, -1, "400", None, True, float("nan"), float("inf"), 1e10, 10**400])
def test_wrong_limits(millicores: Any) -> None:
    with pytest.raises(MalformedDocument, match="millicores is"):
        decode_cpu_limits(changed(LIMITS, ("limits", 0, "millicores"), millicores))


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"nonsense", b"null"])
def test_what_is_no_json_object(content: bytes) -> None:
    with pytest.raises(MalformedDocument, match="plan"):
        decode_plan(content)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(MalformedDocument, match="plan: topology_id is missing; it must be str"):
        decode_plan(encoded({name: value for name, value in PLAN.items() if name != "topology_id"}))

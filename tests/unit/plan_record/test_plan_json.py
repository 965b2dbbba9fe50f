"""Records survive the journal unchanged."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from builders import chain_topology, placed, slot
from storm_operator.core.decision import Move, Plan, PlanCause, Prediction
from storm_operator.core.model import Assignment
from storm_operator.core.plan_json import record_from_json, record_to_json
from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState
from storm_operator.core.settings import ApplyMethod

WORDS = chain_topology("words", ("spout", 1), ("count", 2), stateful=("count",), tasks_per_executor=2)
FIGURES = (
    "inter_supervisor_tuples_per_second",
    "complete_latency_mean_ms",
    "complete_latency_p50_ms",
    "complete_latency_p99_ms",
)
BASE = Assignment(placed(WORDS, {"spout": "s1", "count": "s2"}))
TARGET = Assignment(placed(WORDS, {"spout": "s1", "count": "s1:6701"}))


def full_record() -> PlanRecord:
    count = WORDS.executors_of("count")[0]
    plan = Plan(
        id="p-1",
        created_at_seconds=12.5,
        policy="liu",
        reason="because",
        topology_ids=("words",),
        base=BASE,
        target=TARGET,
        moves=(Move(count, None, slot("s1:6701")), Move(count, slot("s2"), slot("s1:6701"))),
        restarted_workers=(slot("s1:6701"),),
        kept_workers=(slot("s1"),),
        cpu_limits_millicores={count: 200.0},
        before=Prediction(1.0, 2.0, 3.0, 2, 4.0, None),
        after=Prediction(1.0, 2.0, 3.0, 1, 0.0, 5.0),
        payback_seconds=40.0,
        gain_percent=12.0,
        cause=PlanCause.OVERLOAD,
        cpu_ceiling_millicores=300.0,
        beyond_threads_millicores=7.0,
    )
    return PlanRecord(
        plan=plan,
        method=ApplyMethod.DRAIN,
        state=PlanState.APPLYING,
        before=Outcome(1.0, None, 3.0, 4.0, 5.0),
        started_at_seconds=12.5,
        message="on its way",
        seconds_to_in_force=2.0,
        in_force_at_seconds=14.5,
        settling_since_seconds=17.5,
        measured=Outcome(None, None, None, None, None),
        worker_pids_before={slot("s1"): 4711},
        failures_before={"storm_executor_failed_tuples_total{}": 3.0},
        busy_before=(count,),
        timed_before=("words",),
        inactive_before=("words",),
        enforce_cpu=False,
        rollback_of="p-0",
        approved_by="auto",
        approved_at_seconds=13.0,
    )


def test_record_survives_json_text() -> None:
    record = full_record()
    again = record_from_json(json.loads(json.dumps(record_to_json(record))))
    assert again == record
    assert [e.component for e in again.plan.target.slot_of] == [e.component for e in record.plan.target.slot_of]


def test_failures_that_are_unknown_stay_so() -> None:
    record = replace(full_record(), failures_before=None)
    assert record_from_json(json.loads(json.dumps(record_to_json(record)))) == record


def test_a_plan_that_an_older_journal_has_in_force_runs_from_when_its_executors_were_seen() -> None:
    document = record_to_json(replace(full_record(), seconds_to_running=4.0))
    del document["settling_since_seconds"]
    assert record_from_json(document).running_at_seconds == 18.5


def test_a_plan_of_an_older_journal_has_no_cause() -> None:
    document = record_to_json(full_record())
    del document["plan"]["cause"]
    assert record_from_json(document).plan.cause is PlanCause.UNSTATED


def test_a_plan_of_an_older_journal_overloads_no_threads_that_anybody_knew_of() -> None:
    document = record_to_json(full_record())
    del document["plan"]["beyond_threads_millicores"]
    assert record_from_json(document).plan.beyond_threads_millicores == 0.0


def test_a_record_of_an_older_journal_does_not_say_whose_latency_was_known() -> None:
    document = record_to_json(full_record())
    del document["timed_before"]
    assert record_from_json(document).timed_before is None


def test_a_record_of_an_older_journal_resumes_whatever_it_drained() -> None:
    document = record_to_json(full_record())
    del document["inactive_before"]
    assert record_from_json(document).inactive_before == ()


def test_record_of_another_version_is_refused() -> None:
    document = record_to_json(full_record()) | {"version": 99}
    with pytest.raises(ValueError, match=r"version is 99; this operator reads version 1"):
        record_from_json(document)


MALFORMED: list[tuple[str, object]] = [
    ("started_at_seconds", "12"),
    ("started_at_seconds", None),
    ("in_force_at_seconds", "14.5"),
    ("settling_since_seconds", True),
    ("message", None),
    ("approved_by", 7),
    ("workers_kept", 1.5),
    ("before", dict.fromkeys(("acked_per_second", *FIGURES), "1")),
    ("measured", []),
    ("worker_pids_before", [{"supervisor_id": "s1", "port": 6700, "pid": None}]),
    ("worker_pids_before", [{"supervisor_id": "s1", "port": "6700", "pid": 1}]),
    ("failures_before", {"counter": None}),
    ("failures_before", 3),
    ("timed_before", [1]),
    ("inactive_before", [None]),
    ("enforce_cpu", "no"),
]


@pytest.mark.parametrize(("field", "value"), MALFORMED)
def test_a_value_of_another_kind_is_refused_when_it_is_read_and_not_while_it_is_used(field: str, value: object) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        record_from_json(record_to_json(full_record()) | {field: value})

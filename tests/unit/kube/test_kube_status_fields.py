"""Every field that the CRDs promise in a status is written by somebody, and nothing that they do not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import yaml

from builders import even_traffic, snapshot, supervisors
from kube_builders import NOW_SECONDS, SPREAD, TOPOLOGY_ID, WORDS, managed, plan, plan_record
from storm_operator.adapters.resource_schema import crd_file
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.forecast import LoadForecast
from storm_operator.core.parallelism import HeldResize
from storm_operator.core.plan_record import AUTO, Outcome, PlanState
from storm_operator.core.snapshot import ClusterSnapshot, LatencySummary, TopologyRates
from storm_operator.kube.conditions import TopologyView
from storm_operator.kube.rebalance_status import rebalance_status, rolled_back_status, shown_state
from storm_operator.kube.status import PHASES, status_of
from storm_operator.lifecycle_progress import Progress, Stage

MEASURED = Outcome(1.0, 2.0, 3.0, 4.0, 5.0)
HOLD = Hold(HoldReason.GAIN_TOO_SMALL, "3%", gain_percent=3.0)


def schema(plural: str) -> dict[str, Any]:
    (version,) = yaml.safe_load(crd_file(plural).read_text())["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    return found


def promised(part: Mapping[str, Any], path: str = "") -> Iterator[str]:
    if "items" in part:
        yield from promised(part["items"], f"{path}[]")
        return
    for name, below in part.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from promised(below, f"{path}.{name}")


def written(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from written(item, f"{path}[]")
    elif isinstance(value, Mapping):
        for name, below in value.items():
            if below is not None:
                yield f"{path}.{name}"
                yield from written(below, f"{path}.{name}")


def picture() -> ClusterSnapshot:
    taken = snapshot((WORDS,), supervisors(2), SPREAD.slot_of, rates=even_traffic(WORDS, 300.0))
    return replace(taken, rates={TOPOLOGY_ID: TopologyRates(300.0, 0.0, LatencySummary(8.0, 8.0, 9.0, 1000.0))})


def test_status_of_a_topology() -> None:
    job = ("words-submit-1", "abc")
    running, inactive = Progress(Stage.RUNNING, "", TOPOLOGY_ID), Progress(Stage.SUSPENDED, "", TOPOLOGY_ID)
    usual = TopologyView(
        managed(spec={"jar": {"path": "/opt/words.jar", "mainClass": "a.Words"}}),
        running,
        picture(),
        HOLD,
        plan_record(PlanState.VERIFIED),
        NOW_SECONDS,
        job=job,
        forecasts={(TOPOLOGY_ID, "spout"): LoadForecast(1.0, 0.0, "DampedTrend", "the profile is old")},
        held_resize=HeldResize({"count": 4}, Hold(HoldReason.OBSERVE_ONLY, "mode is Observe")),
    )
    failed = replace(
        usual, progress=Progress(Stage.FAILED, "no jar"), retry_at_seconds=NOW_SECONDS + 10.0, failed_attempts=1
    )
    suspended = replace(usual, progress=inactive, suspended_by_operator=True)
    fields = {field for view in (usual, failed, suspended) for field in written(status_of(view))}
    assert fields == set(promised(schema("stormtopologies")))


def test_status_of_a_rebalance() -> None:
    done = plan_record(
        PlanState.VERIFIED,
        before=MEASURED,
        measured=MEASURED,
        approved_by=AUTO,
        approved_at_seconds=NOW_SECONDS,
        in_force_at_seconds=NOW_SECONDS,
        seconds_to_in_force=1.0,
        seconds_to_running=2.0,
        workers_kept=1,
        failed_tuples=0.0,
        rollback_of="p-1",
        message="as predicted",
    )
    applying = rebalance_status(plan_record(PlanState.APPLYING), {}, NOW_SECONDS)
    status = rebalance_status(done, applying, NOW_SECONDS)
    fields = {*written(status), *written(rolled_back_status(done, status, NOW_SECONDS))}
    assert fields == set(promised(schema("stormrebalances")))


def test_every_state_of_a_rebalance_is_one_that_plans_come_into() -> None:
    known = {shown_state(plan_record(state)) for state in PlanState}
    known.add(shown_state(plan_record(PlanState.PROPOSED, approved_by=AUTO)))
    known.add(shown_state(plan_record(PlanState.APPLYING, in_force_at_seconds=NOW_SECONDS)))
    assert known == set(schema("stormrebalances")["properties"]["state"]["enum"])


def test_every_phase_of_a_topology_is_one_that_they_come_into() -> None:
    special = {"Rebalancing", "Paused", "Deleting"}  # see test_kube_status.py
    assert {*PHASES.values(), *special} == set(schema("stormtopologies")["properties"]["phase"]["enum"])


def test_moves_of_the_plan_here_are_some() -> None:
    assert plan().moves

"""A plan that is over takes next to nothing of the operator's memory; whatever is still asked of it is there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kube_builders import HOSTS, NOW_SECONDS, managed, plan, plan_record, rebalance
from large_plan import all_moved
from storm_operator.core.plan_record import PlanState
from storm_operator.kube.kept_rebalance import as_kept
from storm_operator.kube.managed import Body, key_of
from storm_operator.kube.rebalance_status import rebalance_status
from storm_operator.kube.rebalances import cluster_of, plan_of, rebalance_body, surplus

MANAGED_FIELDS = [{"manager": "kubectl-annotate", "fieldsV1": {"f:metadata": {}}}]


def shown(state: str, ask: str | None = None) -> dict[str, Any]:
    body = rebalance(state, ask=ask)
    metadata = {**body["metadata"], "managedFields": MANAGED_FIELDS, "resourceVersion": "41", "uid": "uid-p"}
    return {**body, "metadata": metadata}


def size(body: Body) -> int:
    return len(json.dumps(body))


@pytest.mark.parametrize("state", ["Proposed", "Approved", "Applying", "InForce", "Settling"])
def test_plan_that_is_not_over_is_kept_whole(state: str) -> None:
    assert as_kept(shown(state)) == shown(state)


@pytest.mark.parametrize("ask", ["rollback", "perhaps"])
def test_plan_that_somebody_asks_something_of_is_kept_whole(ask: str) -> None:
    assert as_kept(shown("Verified", ask)) == shown("Verified", ask)


@pytest.mark.parametrize("state", ["Verified", "Expired", "Failed"])
def test_of_a_plan_that_is_over_all_is_kept_but_the_plan(state: str) -> None:
    body, kept = shown(state), as_kept(shown(state))
    assert plan_of(kept) is None
    assert kept["status"] == body["status"]
    assert {"managedFields": MANAGED_FIELDS, **kept["metadata"]} == body["metadata"]
    assert (key_of(kept), cluster_of(kept)) == (key_of(body), cluster_of(body))
    assert {name: body["spec"][name] for name in kept["spec"]} == kept["spec"]
    assert {"planId", "planHash", "baseHash", "topologies"} <= kept["spec"].keys()
    assert surplus((kept,), managed(), 0, NOW_SECONDS) == (kept,)


@pytest.mark.parametrize("state", ["RolledBack", "Rejected"])
def test_plan_that_nobody_wants_again_is_still_known(state: str) -> None:
    assert plan_of(as_kept(shown(state))) == plan()


def test_plan_that_took_another_back_still_tells_what_it_left() -> None:
    body = shown("Verified")
    assert plan_of(as_kept({**body, "status": {**body["status"], "rollbackOf": "p-1"}})) == plan()


def test_plan_of_thousands_of_executors_takes_a_few_kilobytes_once_it_is_over() -> None:
    record = all_moved(2_000)
    record = replace(plan_record(PlanState.VERIFIED, of=record.plan), failed_tuples=0.0)
    body = {**rebalance_body(record, managed(), HOSTS), "status": rebalance_status(record, {}, NOW_SECONDS)}
    assert size(body) > 300_000
    assert size(as_kept(body)) < 3_000

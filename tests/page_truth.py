"""What the page of a running operator says, held against what Nimbus itself says."""

from __future__ import annotations

from typing import Any

import requests
from eventually import eventually

from storm_operator.adapters.nimbus.client import NimbusClient

Place = tuple[str, str, str, int]
"""Component, tasks, host, port."""


def asked_of(page: str, path: str) -> Any:
    answer = requests.get(f"{page}/api/v1/{path}", timeout=10)
    answer.raise_for_status()
    return answer.json()


def shown_places(page: str, topology_id: str) -> set[Place]:
    view = asked_of(page, "view")
    workers = [(view["supervisors"][worker["supervisor"]]["host"], worker["port"]) for worker in view["workers"]]
    return {
        (one["component"], one["tasks"], *workers[one["worker"]])
        for one in view["executors"]
        if one["topology"] == topology_id and one["worker"] is not None
    }


def real_places(nimbus: NimbusClient, topology_id: str) -> set[Place]:
    return {
        (one.component, f"{one.task_start}-{one.task_end}", one.host, one.port)
        for one in nimbus.topology_info(topology_id).executors
    }


def tells_the_truth(page: str, nimbus: NimbusClient, topology: str) -> None:
    """Every executor of the topology is shown where Nimbus has it: at the latest with the next pass after a plan.

    And the page itself is served, with its API's document, under the name of that cluster.
    """
    found = nimbus.cluster_info().topology_named(topology)
    assert found is not None
    assert len(real_places(nimbus, found.id)) == found.executors > 0

    def is_so() -> bool:
        return shown_places(page, found.id) == real_places(nimbus, found.id)

    eventually(is_so, "the page shows every executor where Nimbus has it")
    document = requests.get(f"{page}/", timeout=10)
    assert document.headers["Content-Type"].startswith("text/html")
    assert "storm-operator" in document.text
    assert requests.get(f"{page}/openapi.json", timeout=10).json()["openapi"].startswith("3.")
    (cluster,) = asked_of(page, "clusters")["clusters"]
    assert cluster["passes"] > 0
    plans = asked_of(page, "plans")["plans"]
    assert "Verified" in {plan["state"] for plan in plans if found.id in plan["topologies"]}


def not_as_described(page: str) -> list[str]:
    """What the page at that address says of StormTopologies that are not carried out as they stand, or not yet."""
    return list(asked_of(page, "view")["refused"])

"""The cluster that all functional tests share: supervisors, plugin and agents work together."""

from __future__ import annotations

import pytest
import requests

from storm_operator.local.cluster import LocalCluster
from storm_operator.local.lifecycle import wait_until

pytestmark = pytest.mark.functional

SECONDS = 60.0


def answers(url: str) -> bool:
    try:
        return "storm_supervisor_cpu_capacity_cores" in requests.get(url, timeout=5).text
    except requests.RequestException:
        return False


def test_every_machine_has_an_agent_that_answers(storm_cluster: LocalCluster) -> None:
    assert len(storm_cluster.agent_urls) == len(storm_cluster.machines)
    for host, url in storm_cluster.agent_urls.items():
        wait_until(lambda url=url: answers(url), SECONDS, f"the agent of {host} did not answer")  # type: ignore[misc]


def test_an_agent_can_be_stopped_and_comes_back(storm_cluster: LocalCluster) -> None:
    machine = storm_cluster.machines[-1]
    storm_cluster.stop_agent(machine.name)
    assert not answers(machine.agent_url)
    storm_cluster.start_agent(machine.name)
    wait_until(lambda: answers(machine.agent_url), SECONDS, "the agent did not come back")


def test_nimbus_runs_the_plugins_scheduler(storm_cluster: LocalCluster) -> None:
    log = storm_cluster.logs_dir / "nimbus.log"
    wait_until(lambda: "dev.stormoperator.scheduler.PlanScheduler" in log.read_text(), SECONDS, "no plan scheduler")

"""Each alert is fired once for real: its fault is caused, and Prometheus sees it in what was really exported.

One cluster, one operator and one Prometheus for all. Each test ends its fault, so that their order does not matter.
"""

from __future__ import annotations

import itertools
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually

from functional.monitoring.conftest import CLUSTER, PLAYED, SPEEDS, Watched
from functional.monitoring.played_kubernetes import PlayedKubernetes
from rule_files import alerts
from storm_by_hand import StormByHand
from storm_operator.core.model import ACKER_COMPONENT

pytestmark = [pytest.mark.functional, pytest.mark.timeout(900)]

WORDS, SCATTERED, HOT = "watched-words", "watched-scattered", "watched-hot"
SOME = ["--rate", "steady:80", "--parallelism", "split=2,count=2", "--workers", "1"]
HEAVY = ["--rate", "steady:100", "--cpu-micros", "split=40000", "--workers", "1"]
SLOW_MACHINE_MILLICORES = 400.0
"""Far less than the load needs, and enough for the agent there to answer each second."""
FAST_MACHINE_MILLICORES = 8000.0
AT_ONCE = {
    "separation": "Never",
    "minimumPeriods": 1,
    "coolDownSeconds": 0,
    "minimumGainPercent": 0,
    "maximumPaybackSeconds": 100_000,
}
NEVER_BACK = AT_ONCE | {"settlingSeconds": 0, "rollbackMarginPercent": 10_000_000}
"""On a busy machine latency says little about a plan."""
SOON_BACK = AT_ONCE | {"rollbackMarginPercent": 5}
PLANS_THAT_FLAP = 5
FORGOTTEN_SECONDS = 1200.0 / SPEEDS["StormPlacementFlapping"] + 60.0
PLAYED_WATCH = f'storm_operator_watch_age_seconds{{cluster="{PLAYED}"}}'
BETWEEN_SUPERVISORS = 'storm_operator_traffic_tuples_per_second{level="inter_supervisor",topology="%s"} > 0'
AT_ITS_RATE = 'storm_operator_acked_tuples_per_second{topology="%s"} > 60 < 100'
"""That of `SOME`: what waited meanwhile is worked off. With more load no latency is held against a plan."""
SETTLING_PLANS = 'storm_operator_topology_plans_total{topology="%s",state="Settling"}'
DECIDED_UPON = 'storm_operator_topology_hold{topology="%s",reason!~"Metrics.*|WarmingUp|Applying"} == 1'


@pytest.fixture(scope="module", autouse=True)
def words(watched: Watched, by_hand: StormByHand) -> Iterator[None]:
    """A topology that is managed; its executors are together."""
    with watched.manages(by_hand, WORDS, SOME, **NEVER_BACK):
        yield


def test_each_alert_has_a_test() -> None:
    fired = re.findall(r'\.fires\("(\w+)"', Path(__file__).read_text())
    assert sorted(fired) == sorted(alert.name for alert in alerts())


def test_executors_that_somebody_moves_back_again_and_again(watched: Watched, by_hand: StormByHand) -> None:
    eventually(lambda: watched.prometheus.query(DECIDED_UPON % WORDS), "the topology is measured and decided upon")
    for _ in range(PLANS_THAT_FLAP):
        ended = watched.said(": Verified") + watched.said(": Expired")
        # Nobody plans while somebody else moves: else they could get into each other's way.
        watched.change(WORDS, SOME, **NEVER_BACK, mode="Observe")
        by_hand.arrange(WORDS, lambda executor: int(executor.component == ACKER_COMPONENT))
        watched.change(WORDS, SOME, **NEVER_BACK)
        eventually(
            lambda: watched.said(": Verified") + watched.said(": Expired") > ended,  # noqa: B023
            "they are brought together again",
        )
    watched.fires("StormPlacementFlapping", topology=WORDS, cluster=CLUSTER)


def test_executors_that_somebody_scatters_while_a_plan_settles(watched: Watched, by_hand: StormByHand) -> None:
    apart: Iterator[int] = itertools.cycle(range(4))
    two_workers = [*SOME[:-1], "2"]
    settling = plans_that_settle(watched, SCATTERED)
    # A plan is taken back only where its topology ran before it, and where it relieved no overload: no machine may look
    # full while its JVMs warm up.
    with (
        watched.capacity(FAST_MACHINE_MILLICORES),
        watched.manages(by_hand, SCATTERED, two_workers, **SOON_BACK, mode="Observe"),
    ):
        by_hand.arrange(SCATTERED, lambda executor: int(executor.component == ACKER_COMPONENT))
        eventually(lambda: watched.prometheus.query(BETWEEN_SUPERVISORS % SCATTERED), "traffic to the acker")
        watched.change(SCATTERED, two_workers, settlingSeconds=600, **SOON_BACK)
        eventually(lambda: plans_that_settle(watched, SCATTERED) > settling, "its executors are brought together")
        settles_since = time.monotonic()
        by_hand.arrange(SCATTERED, lambda _: next(apart))
        eventually(lambda: watched.prometheus.query(BETWEEN_SUPERVISORS % SCATTERED), "traffic between supervisors")
        eventually(lambda: watched.prometheus.query(AT_ITS_RATE % SCATTERED), "what waited meanwhile is worked off")
        # The plan is due to be judged by now.
        watched.change(SCATTERED, two_workers, settlingSeconds=int(time.monotonic() - settles_since), **SOON_BACK)
        watched.fires("StormPlanFailedOrRolledBack", topology=SCATTERED, state="RolledBack")


def plans_that_settle(watched: Watched, topology: str) -> float:
    """How many there were."""
    found = watched.prometheus.query(SETTLING_PLANS % topology)
    return sum(value for _, value in found)


def test_more_load_than_a_supervisor_can_carry(watched: Watched, by_hand: StormByHand) -> None:
    if not watched.storm.isolated:
        pytest.skip("NOT TESTED: machines have no CPU capacity of their own here (needs root)")
    with watched.manages(by_hand, HOT, HEAVY, mode="Observe"):
        host = by_hand.host_of(next(iter(by_hand.assignment(HOT).slot_of.values())).supervisor_id)
        # A slow one: this machine may be too busy to give a fast one what it could use.
        with watched.capacity(SLOW_MACHINE_MILLICORES, host):
            watched.fires("StormSupervisorOverloaded", supervisor=host, cluster=CLUSTER)
            watched.fires("StormTopologyFailingTuples", topology=HOT)
    watched.keeps_quiet_again("StormSupervisorOverloaded", supervisor=host)
    watched.keeps_quiet_again("StormTopologyFailingTuples", topology=HOT)


def test_agent_that_is_killed(watched: Watched, by_hand: StormByHand) -> None:
    # A plan that is on its way could move it off the agent that is killed; and after one, it warms up first.
    eventually(lambda: watched.prometheus.query(DECIDED_UPON % WORDS), "the topology is measured and decided upon")
    lost = next(iter(by_hand.assignment(WORDS).slot_of.values())).supervisor_id
    host = by_hand.host_of(lost)
    watched.storm.stop_agent(host)
    try:
        watched.fires("StormAgentMissing", supervisor=host)
        watched.fires("StormMetricsIncomplete", topology=WORDS)
    finally:
        watched.storm.start_agent(host)
    watched.keeps_quiet_again("StormAgentMissing", supervisor=host)
    watched.keeps_quiet_again("StormMetricsIncomplete", topology=WORDS)


def test_watch_that_freezes_and_pods_that_a_node_has_no_room_for(watched: Watched, played_port: int) -> None:
    """Known on Kubernetes alone: the operator's parts for both, between a played API server and its exporter."""
    played = PlayedKubernetes()
    server = played.metrics.serve(played_port, "127.0.0.1")
    try:
        eventually(lambda: watched.prometheus.query(PLAYED_WATCH), "it is scraped")
        watched.keeps_quiet_again("StormWatchFrozen")
        watched.keeps_quiet_again("StormCpuResizeRefused")
        played.refuse_resizes()
        played.freeze_watch(for_seconds=180.0)
        watched.fires("StormWatchFrozen", kind="StormTopologies", cluster=PLAYED)
        watched.fires("StormCpuResizeRefused", reason="Refused", cluster=PLAYED)
    finally:
        server.shutdown()
        server.server_close()
    watched.keeps_quiet_again("StormWatchFrozen")
    watched.keeps_quiet_again("StormCpuResizeRefused")


def test_operator_that_hangs(watched: Watched) -> None:
    assert watched.process is not None
    watched.process.send_signal(signal.SIGSTOP)
    try:
        watched.fires("StormLoopNotRunning", why="no operator leads", cluster=CLUSTER)
    finally:
        watched.process.send_signal(signal.SIGCONT)
    watched.keeps_quiet_again("StormLoopNotRunning", cluster=CLUSTER)


def test_nothing_fires_while_all_is_well(watched: Watched) -> None:
    """Whatever was caused before: it is over, and what only remembers it forgets it."""
    eventually(lambda: not watched.prometheus.firing(), "nothing fires", FORGOTTEN_SECONDS)
    eventually(lambda: watched.prometheus.query(DECIDED_UPON % WORDS), "the topology is measured and decided upon")
    assert watched.prometheus.firing() == {}
    assert watched.prometheus.broken_rules() == []

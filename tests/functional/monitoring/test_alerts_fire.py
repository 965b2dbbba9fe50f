"""Each alert is fired once for real: its fault is caused, and Prometheus sees it in what was really exported.

One cluster, one operator and one Prometheus for all; the order is that of the file.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator

import pytest
from eventually import eventually

from functional.monitoring.conftest import CLUSTER, PLAYED, Watched
from functional.monitoring.played_kubernetes import PlayedKubernetes
from rule_files import alerts
from storm_by_hand import StormByHand
from storm_operator.core.model import ACKER_COMPONENT

pytestmark = pytest.mark.functional

WORDS, HOT = "watched-words", "watched-hot"
WORDS_ARGS = ["--name", WORDS, "--rate", "steady:80", "--parallelism", "split=2,count=2", "--workers", "1"]
HOT_ARGS = ["--name", HOT, "--rate", "steady:100", "--cpu-micros", "split=40000", "--workers", "1"]
AT_ONCE = {"separation": "Never", "coolDownSeconds": 0, "minimumGainPercent": 0, "maximumPaybackSeconds": 100_000}
PLANS_THAT_FLAP = 5
PLAYED_WATCH = f'storm_operator_watch_age_seconds{{cluster="{PLAYED}"}}'


@pytest.fixture(scope="module", autouse=True)
def managed(watched: Watched, by_hand: StormByHand) -> Iterator[None]:
    """The operator manages a topology."""
    # On a busy machine latency says little about a plan: it is not to be judged by it.
    watched.describe(WORDS, WORDS_ARGS, mode="Enforce", settlingSeconds=0, rollbackMarginPercent=10_000_000, **AT_ONCE)
    watched.start_operator()
    eventually(lambda: by_hand.running(WORDS) and by_hand.processes(WORDS), "the topology runs")
    yield
    watched.end_operator()
    for name in (WORDS, HOT):
        if by_hand.running(name) is not None:
            by_hand.kill(name)


def test_nothing_fires_while_all_is_well(watched: Watched) -> None:
    found = 'storm_operator_topology_hold{topology="%s", reason!~"Metrics.*|WarmingUp"}'
    eventually(lambda: watched.prometheus.query(found % WORDS), "the topology is measured and decided upon")
    assert watched.prometheus.firing() == {}
    assert watched.prometheus.broken_rules() == []


def test_executors_that_somebody_moves_back_again_and_again(watched: Watched, by_hand: StormByHand) -> None:
    for _ in range(PLANS_THAT_FLAP):
        plans = watched.said(": Verified")
        by_hand.arrange(WORDS, lambda executor: int(executor.component == ACKER_COMPONENT))
        eventually(lambda: watched.said(": Verified") > plans, "they are brought together again")  # noqa: B023
    watched.fires("StormPlacementFlapping", topology=WORDS, cluster=CLUSTER)


def test_executors_that_somebody_scatters_while_a_plan_settles(watched: Watched, by_hand: StormByHand) -> None:
    watched.describe(WORDS, WORDS_ARGS, mode="Enforce", settlingSeconds=12, **AT_ONCE)
    plans = watched.said(": Settling")
    by_hand.arrange(WORDS, lambda executor: int(executor.component == ACKER_COMPONENT))
    eventually(lambda: watched.said(": Settling") > plans, "a plan settles")
    apart: Iterator[int] = itertools.cycle(range(4))
    by_hand.arrange(WORDS, lambda _: next(apart))
    watched.fires("StormPlanFailedOrRolledBack", topology=WORDS, state="RolledBack")


def test_more_load_than_a_supervisor_can_carry(watched: Watched, by_hand: StormByHand) -> None:
    if not watched.storm.isolated:
        pytest.skip("machines have no CPU capacity of their own here (needs root)")
    watched.describe(HOT, HOT_ARGS, mode="Observe")
    eventually(lambda: by_hand.running(HOT), "it runs")
    watched.fires("StormSupervisorOverloaded", cluster=CLUSTER)
    watched.fires("StormTopologyFailingTuples", topology=HOT)


def test_agent_that_is_killed(watched: Watched, by_hand: StormByHand) -> None:
    lost = next(iter(by_hand.assignment(WORDS).slot_of.values())).supervisor_id
    host = by_hand.host_of(lost)
    watched.storm.stop_agent(host)
    try:
        watched.fires("StormAgentMissing", supervisor=host)
        watched.fires("StormMetricsIncomplete", topology=WORDS)
    finally:
        watched.storm.start_agent(host)
    watched.keeps_quiet_again("StormAgentMissing", supervisor=host)


def test_watch_that_freezes_and_pods_that_a_node_has_no_room_for(watched: Watched, played_port: int) -> None:
    """Known on Kubernetes alone: the operator's parts for both, between a played API server and its exporter."""
    played = PlayedKubernetes()
    server = played.metrics.serve(played_port, "127.0.0.1")
    try:
        eventually(lambda: watched.prometheus.query(PLAYED_WATCH), "it is scraped")
        assert not watched.firing("StormWatchFrozen")
        assert not watched.firing("StormCpuResizeRefused")
        played.refuse_resizes()
        played.freeze_watch(for_seconds=180.0)
        watched.fires("StormWatchFrozen", kind="StormTopologies", cluster=PLAYED)
        watched.fires("StormCpuResizeRefused", reason="Refused", cluster=PLAYED)
    finally:
        server.shutdown()
        server.server_close()


def test_operator_that_hangs(watched: Watched) -> None:
    assert watched.process is not None
    watched.process.send_signal(signal.SIGSTOP)
    try:
        watched.fires("StormLoopNotRunning", why="no operator leads", cluster=CLUSTER)
    finally:
        watched.process.send_signal(signal.SIGCONT)
    watched.keeps_quiet_again("StormLoopNotRunning", cluster=CLUSTER)


def test_each_alert_has_fired(watched: Watched) -> None:
    assert watched.fired == {alert.name for alert in alerts()}

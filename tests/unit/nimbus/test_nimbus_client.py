"""The client against Nimbuses that are not what they seem: followers, half-ready leaders, dead hosts."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest
from thriftpy2.thrift import TApplicationException

from loopbacks import BOTH_LOOPBACKS
from storm_operator.adapters.errors import (
    NimbusError,
    NimbusUnreachable,
    NotAuthorized,
    NotLeader,
    RebalanceInProgress,
    RebalanceRefused,
    TopologyNotAlive,
)
from storm_operator.adapters.nimbus.client import TRUSTED_SECONDS, NimbusClient
from storm_operator.adapters.nimbus.connection import ConnectionBroken, NimbusAddress, ThriftConnection, storm_thrift

FIRST = NimbusAddress("n1", 6627)
SECOND = NimbusAddress("n2", 6627)
REPLY = struct.pack(">Ii9sibh", 0x80010002, 9, b"getLeader", 0, 12, 0)
"""As to that call; the fields of a NimbusSummary follow."""
NO_NIMBUS = {
    "other protocol": b"not what you think",
    "name of a length below zero": REPLY + struct.pack(">bhi", 11, 1, -1),
    "field that is nested too deeply": REPLY + 1000 * struct.pack(">bh", 12, 9),
}


class Cluster:
    """Nimbuses by address; time passes only when somebody sleeps, and `at` makes things happen then."""

    def __init__(self, *addresses: NimbusAddress) -> None:
        self.up = set(addresses)
        self.leader: NimbusAddress | None = addresses[0]
        self.ready = True
        self.tells_only_supervisors = False
        self.topologies = {"words": "ACTIVE"}
        self.time = 0.0
        self.at: dict[float, Callable[[], None]] = {}
        self.calls: list[tuple[NimbusAddress, str]] = []
        self.broken_once = False
        self.as_others_have_it: list[Any] = []
        """Executors that a Nimbus shows that does not lead, or not yet."""

    def clock(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        for moment in sorted(moment for moment in self.at if moment <= self.time):
            self.at.pop(moment)()

    def connect(self, address: NimbusAddress, timeout_seconds: float) -> FakeConnection:
        if address not in self.up:
            raise ConnectionBroken("refused")
        return FakeConnection(self, address)

    def client(self, *seeds: NimbusAddress, patience: float = 30.0) -> NimbusClient:
        return NimbusClient(seeds, patience_seconds=patience, connect=self.connect, clock=self.clock, sleep=self.sleep)


def test_whoever_gives_up_tries_no_more_and_asks_no_further_seed() -> None:
    cluster, tried = Cluster(FIRST), list[NimbusAddress]()
    cluster.up.clear()

    def connect(address: NimbusAddress, timeout_seconds: float) -> FakeConnection:
        tried.append(address)
        return cluster.connect(address, timeout_seconds)

    client = NimbusClient(
        [FIRST, SECOND], connect=connect, gives_up=lambda: bool(tried), clock=cluster.clock, sleep=cluster.sleep
    )
    with pytest.raises(NimbusUnreachable, match="n1:6627: refused"):
        client.leader()
    assert (tried, cluster.time) == ([FIRST], 0.0)


def test_a_stale_connection_is_replaced_once_also_by_who_gives_up() -> None:
    cluster = Cluster(FIRST)
    client = NimbusClient([FIRST], connect=cluster.connect, gives_up=lambda: True)
    client.leader()
    cluster.broken_once = True
    assert client.leader().host == "n1"


class FakeConnection:
    def __init__(self, cluster: Cluster, address: NimbusAddress) -> None:
        self.cluster, self.address = cluster, address

    @property
    def leads(self) -> bool:
        return self.address == self.cluster.leader and self.cluster.ready

    def call(self, method: str, *args: Any) -> Any:
        cluster = self.cluster
        cluster.calls.append((self.address, method))
        if self.address not in cluster.up:
            raise ConnectionBroken("reset")
        if method == "getLeader":
            if cluster.leader is None:
                raise internal(method)
            return nimbus_summary(cluster.leader)
        if method in ("beginFileUpload", "finishFileUpload"):
            if not self.leads:
                raise internal(method)
            return "inbox/stormjar.jar"
        if method == "getClusterInfo":
            return storm_thrift.ClusterSummary(
                supervisors=[],
                nimbuses=[nimbus_summary(FIRST)],
                topologies=[topology_summary(name, status) for name, status in cluster.topologies.items()],
            )
        if method == "getTopologyInfoWithOpts":
            return topology_info([executor_at("h1")] if self.leads else cluster.as_others_have_it)
        return self.assignments() if method == "getSupervisorAssignments" else self.act(method, *args)

    def assignments(self) -> Any:
        if self.cluster.tells_only_supervisors:
            raise storm_thrift.AuthorizationException(msg="no")
        if not self.leads:
            raise TApplicationException(TApplicationException.MISSING_RESULT, "unknown result")
        return storm_thrift.SupervisorAssignments()

    def act(self, method: str, name: str, *_: Any) -> None:
        cluster = self.cluster
        if name == "secret":
            raise storm_thrift.AuthorizationException(msg="no")
        if not self.leads or name not in cluster.topologies:
            raise storm_thrift.NotAliveException(msg=f"{name} is not alive")
        if cluster.topologies[name] == "REBALANCING":
            raise internal(method)
        if method == "rebalance":
            if cluster.topologies[name] == "PICKY":
                raise storm_thrift.InvalidTopologyException(msg="Invalid component zz")
            cluster.topologies[name] = "REBALANCING"

    def close(self) -> None:
        pass


def internal(method: str) -> TApplicationException:
    return TApplicationException(TApplicationException.INTERNAL_ERROR, f"Internal error processing {method}")


def nimbus_summary(address: NimbusAddress) -> Any:
    return storm_thrift.NimbusSummary(
        host=address.host, port=address.port, uptime_secs=1, isLeader=True, version="2.8.3"
    )


def executor_at(host: str) -> Any:
    one = storm_thrift.ExecutorInfo(task_start=1, task_end=1)
    return storm_thrift.ExecutorSummary(executor_info=one, component_id="split", host=host, port=6700, uptime_secs=1)


def topology_info(executors: list[Any]) -> Any:
    return storm_thrift.TopologyInfo(
        id="words-1-1", name="words", uptime_secs=1, executors=executors, status="ACTIVE", errors={}
    )


def topology_summary(name: str, status: str) -> Any:
    return storm_thrift.TopologySummary(
        id=f"{name}-1-1", name=name, num_tasks=1, num_executors=1, num_workers=1, uptime_secs=1, status=status
    )


def test_a_follower_as_seed_leads_to_the_leader() -> None:
    cluster = Cluster(FIRST, SECOND)
    cluster.client(SECOND).activate("words")
    assert (FIRST, "activate") in cluster.calls
    assert (SECOND, "activate") not in cluster.calls


@pytest.mark.parametrize("patience", [30.0, 1.0])
def test_a_nimbus_that_does_not_lead_yet_is_not_believed_that_nobody_is_placed(patience: float) -> None:
    """It took its address over from the one that died, so that it is still named as the leader."""
    cluster = Cluster(FIRST)
    cluster.ready = False
    cluster.at[3.0] = lambda: setattr(cluster, "ready", True)
    client = cluster.client(FIRST, patience=patience)
    if patience < 3.0:
        with pytest.raises(NotLeader):
            client.topology_info("words-1-1")
    else:
        assert [one.host for one in client.topology_info("words-1-1").executors] == ["h1"]
        assert cluster.time >= 3.0


def test_a_nimbus_that_leads_no_longer_is_not_believed_where_executors_were() -> None:
    cluster = Cluster(FIRST, SECOND)
    cluster.as_others_have_it = [executor_at("old")]
    client = cluster.client(FIRST, SECOND)
    assert [one.host for one in client.topology_info("words-1-1").executors] == ["h1"]
    cluster.leader, cluster.time = SECOND, cluster.time + TRUSTED_SECONDS
    assert [one.host for one in client.topology_info("words-1-1").executors] == ["h1"]
    assert cluster.calls[-1] == (SECOND, "getTopologyInfoWithOpts")


def test_a_reading_of_many_topologies_asks_once_whether_nimbus_knows_them() -> None:
    cluster = Cluster(FIRST)
    client = cluster.client(FIRST)
    for _ in range(20):
        client.topology_info("words-1-1")
    assert [method for _, method in cluster.calls].count("getSupervisorAssignments") == 1


def test_a_nimbus_that_tells_assignments_to_supervisors_only_is_believed() -> None:
    cluster = Cluster(FIRST)
    cluster.tells_only_supervisors = True
    assert len(cluster.client(FIRST).topology_info("words-1-1").executors) == 1


def test_a_dead_seed_is_passed_over() -> None:
    cluster = Cluster(FIRST)
    cluster.client(SECOND, FIRST).activate("words")
    assert cluster.time == 0.0


def test_a_seed_whose_advertised_address_is_out_of_reach_serves_when_it_leads() -> None:
    forwarded = NimbusAddress("localhost", 16627)
    cluster = Cluster(FIRST)
    cluster.leader = NimbusAddress("pod-internal", 6627)

    class Forwarded(FakeConnection):
        def __init__(self) -> None:
            super().__init__(cluster, NimbusAddress("pod-internal", 6627))

    def connect(address: NimbusAddress, timeout_seconds: float) -> FakeConnection:
        if address != forwarded:
            raise ConnectionBroken("no route")
        cluster.up.add(NimbusAddress("pod-internal", 6627))
        return Forwarded()

    NimbusClient([forwarded], connect=connect, clock=cluster.clock, sleep=cluster.sleep).activate("words")
    assert cluster.calls[-1][1] == "activate"


def test_false_not_alive_during_failover_is_waited_out() -> None:
    cluster = Cluster(FIRST)
    cluster.ready = False
    cluster.at[7.0] = lambda: setattr(cluster, "ready", True)
    cluster.client(FIRST).activate("words")
    assert 7.0 <= cluster.time < 8.0


def test_not_alive_from_a_ready_leader_is_believed_at_once() -> None:
    cluster = Cluster(FIRST)
    with pytest.raises(TopologyNotAlive, match="no topology 'nope' runs on Nimbus n1:6627"):
        cluster.client(FIRST).activate("nope")
    assert cluster.time == 0.0


def test_the_new_leader_is_found_after_a_failover() -> None:
    cluster = Cluster(FIRST, SECOND)
    client = cluster.client(FIRST, SECOND)
    client.activate("words")
    cluster.up.remove(FIRST)
    cluster.at[3.0] = lambda: setattr(cluster, "leader", SECOND)
    client.activate("words")
    assert cluster.calls[-1] == (SECOND, "activate")


def test_a_stale_connection_is_replaced_without_a_pause() -> None:
    cluster = Cluster(FIRST)
    client = cluster.client(FIRST)
    client.activate("words")
    old = client._connection
    assert isinstance(old, FakeConnection)
    old.address = NimbusAddress("gone", 1)
    client.activate("words")
    assert cluster.time == 0.0


@pytest.mark.parametrize("method", ["activate", "deactivate", "rebalance", "kill"])
def test_call_that_is_repeated_changes_nothing_once_another_manages_the_cluster(method: str) -> None:
    cluster = Cluster(FIRST)
    cluster.ready = False
    cluster.at[7.0] = lambda: setattr(cluster, "ready", True)

    def confirm() -> None:
        if cluster.time >= 5.0:
            raise PermissionError("another storm-operator has taken over")

    client = NimbusClient([FIRST], connect=cluster.connect, confirm=confirm, clock=cluster.clock, sleep=cluster.sleep)
    with pytest.raises(PermissionError):
        getattr(client, method)("words")
    assert 5.0 <= cluster.time < 6.0
    assert client.cluster_info().topology_named("words") is not None, "who only asks needs no leave"


def test_call_that_was_interrupted_leaves_no_connection_on_which_its_answer_may_still_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(FIRST)
    client = cluster.client(FIRST)
    client.activate("words")
    interrupted = client._connection

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupted, "call", interrupt)
    with pytest.raises(KeyboardInterrupt):
        client.deactivate("words")
    client.activate("words")
    assert client._connection is not interrupted


def test_unreachable_names_hosts_and_gives_up_in_time() -> None:
    cluster = Cluster(FIRST)
    with pytest.raises(NimbusUnreachable, match=r"n2:6627 cannot be reached .*refused.*nimbus\.thrift\.port"):
        cluster.client(SECOND, patience=5.0).leader()
    assert cluster.time == pytest.approx(5.0)


def test_no_leader_at_all() -> None:
    cluster = Cluster(FIRST)
    cluster.leader = None
    with pytest.raises(NotLeader, match="n1:6627 has no leader"):
        cluster.client(FIRST, patience=2.0).cluster_info()


def test_wait_until_ready_waits_for_readiness_not_for_leadership_alone() -> None:
    cluster = Cluster(FIRST)
    cluster.ready = False
    cluster.at[4.0] = lambda: setattr(cluster, "ready", True)
    assert cluster.client(FIRST).wait_until_ready().is_leader
    assert 4.0 <= cluster.time < 5.0


@pytest.mark.parametrize("method", ["rebalance", "activate", "deactivate"])
def test_what_a_rebalance_keeps_nimbus_from_is_told_apart_from_an_internal_error(method: str) -> None:
    cluster = Cluster(FIRST)
    client = cluster.client(FIRST)
    client.rebalance("words")
    with pytest.raises(RebalanceInProgress, match=f"words is being rebalanced already.* does not {method} it"):
        getattr(client, method)("words")


def test_a_refused_rebalance_says_why() -> None:
    cluster = Cluster(FIRST)
    cluster.topologies["words"] = "PICKY"
    with pytest.raises(RebalanceRefused, match="rebalance of words: Invalid component zz"):
        cluster.client(FIRST).rebalance("words", executors={"zz": 1})


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"executors": {"split": 0}}])
def test_sizes_below_one_are_refused_before_nimbus_is_asked(wrong: dict[str, Any]) -> None:
    cluster = Cluster(FIRST)
    with pytest.raises(RebalanceRefused, match="is 0; it must be 1 or more"):
        cluster.client(FIRST).rebalance("words", **wrong)
    assert cluster.calls == []


def test_authorization_is_not_retried() -> None:
    cluster = Cluster(FIRST)
    with pytest.raises(NotAuthorized, match="refuses activate: no"):
        cluster.client(FIRST).activate("secret")
    assert cluster.time == 0.0


@pytest.mark.parametrize("refused", ["getLeader", "beginFileUpload"])
def test_user_who_may_not_find_the_leader_is_told_what_to_allow(refused: str) -> None:
    cluster = Cluster(FIRST)
    closed: list[str] = []

    class Strict(FakeConnection):
        def call(self, method: str, *args: Any) -> Any:
            if method == refused:
                raise storm_thrift.AuthorizationException(msg=f"{method} is not authorized")
            return super().call(method, *args)

        def close(self) -> None:
            closed.append(refused)

    client = NimbusClient([FIRST], connect=lambda *_: Strict(cluster, FIRST), clock=cluster.clock, sleep=cluster.sleep)
    with pytest.raises(NotAuthorized, match=f"{refused} is not authorized; allow this user getLeader and fileUpload"):
        client.activate("unknown")
    assert cluster.time == 0.0
    client.close()
    assert closed == [refused]


@pytest.mark.parametrize("words", NO_NIMBUS.values(), ids=NO_NIMBUS)
def test_what_answers_and_is_no_nimbus_is_out_of_reach(words: bytes) -> None:
    """As a server of another protocol, or a Nimbus behind another transport plugin."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as peer:
                peer.recv(1000)
                peer.sendall(struct.pack(">i", len(words)) + words)

        threading.Thread(target=answer, daemon=True).start()
        client = NimbusClient([NimbusAddress("127.0.0.1", server.getsockname()[1])], patience_seconds=0.0)
        with pytest.raises(NimbusUnreachable, match="what answers there is no Nimbus"):
            client.cluster_info()


def test_another_daemon_of_storms_is_no_nimbus_that_waits_for_a_leader() -> None:
    """Supervisors and DRPC servers speak Thrift, too."""

    class Supervisor:
        def call(self, method: str, *args: Any) -> Any:
            raise TApplicationException(TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{method}'")

        def close(self) -> None:
            pass

    client = NimbusClient(["n1:6628"], patience_seconds=0.0, named_by="--nimbus", connect=lambda *_: Supervisor())
    with pytest.raises(NimbusUnreachable, match=r"n1:6628: what answers there is no Nimbus: .* right in --nimbus"):
        client.leader()


def test_an_internal_error_of_a_ready_leader_is_final() -> None:
    cluster = Cluster(FIRST)

    class Failing(FakeConnection):
        def act(self, method: str, name: str, *_: Any) -> None:
            raise internal(method)

    client = NimbusClient(
        [FIRST], connect=lambda address, _: Failing(cluster, address), clock=cluster.clock, sleep=cluster.sleep
    )
    with pytest.raises(NimbusError, match=r"failed in activate of words: Internal error.*nimbus\.log"):
        client.activate("words")
    assert cluster.time == 0.0


@pytest.mark.parametrize("text", ["", "host:", "host:abc", ":6627", "host:70000", "host:0", "fd00::7", "fd00::7:6627"])
def test_wrong_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="give host or host:port"):
        NimbusAddress.parse(text)


def test_addresses() -> None:
    assert NimbusAddress.parse("n1") == NimbusAddress("n1", 6627)
    assert str(NimbusAddress.parse("n1:16627")) == "n1:16627"


@pytest.mark.parametrize("host", BOTH_LOOPBACKS)
def test_a_nimbus_is_reached_over_ipv4_and_over_ipv6(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listening:
        ThriftConnection(NimbusAddress(host, listening.getsockname()[1]), 5.0).close()


def test_addresses_of_ipv6_stand_in_brackets() -> None:
    assert NimbusAddress.parse("[fd00::7]") == NimbusAddress("fd00::7", 6627)
    assert NimbusAddress.parse("[fd00::7]:16627") == NimbusAddress("fd00::7", 16627)
    assert str(NimbusAddress("fd00::7", 16627)) == "[fd00::7]:16627"


def test_a_host_that_can_be_none_is_one_that_does_not_answer() -> None:
    with pytest.raises(ConnectionBroken):
        ThriftConnection(NimbusAddress("storm..example", 6627), 1.0)

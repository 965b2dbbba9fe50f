"""Puts the loop together for one Storm cluster: which adapters stand behind which port."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from storm_operator.adapters.manager_lock import SESSION_TIMEOUT_SECONDS, HeldNodes, Holder, ManagerLock
from storm_operator.adapters.metrics.enforcement import EnforcementNoted
from storm_operator.adapters.metrics.prometheus import PrometheusSource
from storm_operator.adapters.metrics.scrape import ScrapeSource
from storm_operator.adapters.metrics.source import MetricsSource
from storm_operator.adapters.nimbus.client import SEEDS_KEYS, NimbusClient
from storm_operator.adapters.nimbus.supervisors import DEFAULT_STORM_ROOT, storm_root
from storm_operator.adapters.observer import SnapshotObserver
from storm_operator.adapters.peer_calls import CallBook, NoBook, NotedConnection, NotedNodes
from storm_operator.adapters.plan_store import PlanStore
from storm_operator.adapters.storm_cluster import THE_ROOT, PlanJournal, StormCluster
from storm_operator.adapters.submission import StormClientHome
from storm_operator.adapters.worker_probe import AgentProbe
from storm_operator.adapters.zookeeper import SERVERS_KEYS, ZooKeeperSession
from storm_operator.apply import Applier
from storm_operator.apply_ports import MachineLimits, NoMachineLimits
from storm_operator.control_loop import ControlLoop, Listener
from storm_operator.core.host_and_port import host_and_port
from storm_operator.jvm_submitter import JvmSubmitter
from storm_operator.lifecycle_manager import LifecycleManager, Submitter
from storm_operator.loop_ports import NoProfiles, ProfileSource

DEFAULT_AGENT_PORT = 9464
LOCK_ANSWER_SECONDS = 5.0
TAILS = 0x10000
_tails = itertools.count(secrets.randbelow(TAILS))
"""Of plans' ids, one after another: people say yes to an id, and random ones of a second may be the same. Another
operator most likely begins elsewhere."""


@dataclass(frozen=True, slots=True)
class ClusterConnection:
    """Where one Storm cluster's parts are. `agents` gives URLs by supervisor host where they are not the usual ones.

    `match` narrows what `prometheus` is asked for to the cluster's series, e.g. `cluster="blue"`.
    `nimbus_named_by`, `zookeeper_named_by` and `root_named_by` say what these were read from, for errors.
    """

    nimbus: tuple[str, ...]
    zookeeper: str
    storm_root: str = DEFAULT_STORM_ROOT
    agent_port: int = DEFAULT_AGENT_PORT
    agents: Mapping[str, str] = field(default_factory=dict)
    prometheus: str | None = None
    match: str = ""
    storm_home: Path | None = None
    storm_conf_dir: Path | None = None
    nimbus_named_by: str = SEEDS_KEYS
    zookeeper_named_by: str = SERVERS_KEYS
    root_named_by: str = THE_ROOT

    def __post_init__(self) -> None:
        object.__setattr__(self, "storm_root", storm_root(self.storm_root))


class Machines(MachineLimits, Protocol):
    """Supervisors whose CPU limit the operator sets: what they have now says little about what they can have."""

    def capacities(self) -> Mapping[str, float]:
        """The most millicores that each can be given, by supervisor id, where that is known."""

    def leaving(self) -> Collection[str]:
        """Ids of supervisors that are to be emptied: no executor may stay there."""

    def is_going(self, host: str) -> bool:
        """Whether the supervisor that calls itself `host` is known to end: who does not see it need not wait for it."""


class SystemClock:
    """The real time."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Assembly:
    """Everything that works on one Storm cluster; `close` ends its connections."""

    loop: ControlLoop
    storm: StormCluster
    client: NimbusClient
    store: PlanStore
    metrics: EnforcementNoted
    session: ZooKeeperSession
    home: StormClientHome | None

    def lifecycle(self, say: Callable[[str], None], submitter: Submitter | None = None) -> LifecycleManager:
        """`submitter` None: a JVM on this machine."""
        made = LifecycleManager(self.storm, submitter or JvmSubmitter(self.home), say)
        made.on_resumption = self.loop.measure_anew
        made.take_left_paused = self.loop.take_left_paused
        return made

    def change_counts(self, name: str, executors: Mapping[str, int]) -> None:
        """Ask Nimbus to give the topology `name` so many executors by component. Raises `NimbusError`."""
        self.client.rebalance(name, executors=executors)

    def close(self) -> None:
        self.client.close()
        self.session.close()


def manager_lock(
    connection: ClusterConnection,
    me: Holder | None = None,
    on_lost: Callable[[], None] = lambda: None,
    gives_up: Callable[[], bool] = lambda: False,
) -> ManagerLock:
    """The lock of that cluster's managers, with a session of its own; not taken yet. `me` None: a standalone.

    Once `gives_up`, a ZooKeeper that does not answer is not waited for.
    """
    connected = threading.Event()
    session = ZooKeeperSession(
        connection.zookeeper,
        timeout_seconds=LOCK_ANSWER_SECONDS,
        session_timeout_seconds=SESSION_TIMEOUT_SECONDS,
        named_by=connection.zookeeper_named_by,
        on_connected=connected.set,
        gives_up=gives_up,
    )
    return ManagerLock(session, connected, on_lost, connection.storm_root, me)


def assemble(
    connection: ClusterConnection,
    listener: Listener,
    retention_seconds: float = 0.0,
    machines: Machines | None = None,
    profiles: ProfileSource | None = None,
    calls: CallBook | None = None,
    confirm: Callable[[], None] = lambda: None,
    is_ending: Callable[[], bool] = lambda: False,
    gives_up: Callable[[], bool] = lambda: False,
) -> Assembly:
    """The parts for `connection`. Nothing is asked of any peer yet. ValueError for an address that is none.

    `retention_seconds` is how far back windows of scraped metrics may reach that the loop does not ask for. `machines`
    None: the CPU of supervisors is what their agents measure, and nobody changes it. `profiles` None: nothing was
    learned from history. `calls` is where calls to Nimbus, ZooKeeper, and agents or Prometheus are noted; None:
    nowhere. `confirm` is called before each write to ZooKeeper, and each attempt to have Nimbus change a topology: it
    raises when another manages the cluster. `is_ending` says whether the operator was told to end,
    `gives_up` whether a Nimbus and a ZooKeeper that do not answer are no longer waited for.
    """
    book = calls or NoBook()
    client = NimbusClient(
        connection.nimbus,
        named_by=connection.nimbus_named_by,
        connect=partial(NotedConnection, book=book),
        confirm=confirm,
        gives_up=gives_up,
    )
    session = ZooKeeperSession(connection.zookeeper, named_by=connection.zookeeper_named_by, gives_up=gives_up)
    nodes = HeldNodes(NotedNodes(session, book), confirm)
    storm = StormCluster(client, nodes, connection.storm_root, connection.root_named_by)
    store = PlanStore(nodes, connection.storm_root)

    def targets() -> Mapping[str, str]:
        port, hosts = connection.agent_port, {*storm.supervisor_ids(), *observer.hosts}
        usual = {host: f"http://{host_and_port(host, port)}/metrics" for host in hosts}
        return {**usual, **connection.agents}

    source: MetricsSource
    if connection.prometheus is not None:
        source = PrometheusSource(connection.prometheus, connection.match, book=book)
    else:
        source = ScrapeSource(targets, retention_seconds=retention_seconds, book=book)
    metrics = EnforcementNoted(source)
    clock = SystemClock()
    observer = SnapshotObserver(storm, metrics, clock=clock.now)
    if machines is not None:
        observer = SnapshotObserver(
            storm, metrics, machines.capacities, machines.leaving, clock.now, is_going=machines.is_going
        )
    loop = ControlLoop(
        observer=observer,
        applier=Applier(
            storm, store, AgentProbe(targets, storm.supervisor_ids), clock, machines or NoMachineLimits(), is_ending
        ),
        journal=PlanJournal(store),
        clock=clock,
        listener=listener,
        new_plan_id=new_plan_id,
        profiles=profiles or NoProfiles(),
        agents=lambda: metrics.by_host,
    )
    return Assembly(loop, storm, client, store, metrics, session, _home(connection))


def new_plan_id(now_seconds: float) -> str:
    """Sortable by time, e.g. `p-20260101-120000-3fa9`; of one operator all that it makes in a second are different."""
    moment = datetime.fromtimestamp(now_seconds, UTC)
    return f"p-{moment:%Y%m%d-%H%M%S}-{next(_tails) % TAILS:04x}"


def _home(connection: ClusterConnection) -> StormClientHome | None:
    if connection.storm_home is None or connection.storm_conf_dir is None:
        return None
    return StormClientHome(connection.storm_home, connection.storm_conf_dir)

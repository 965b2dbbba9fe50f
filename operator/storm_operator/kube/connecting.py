"""The first look at a Storm cluster: where its parts are, and what an earlier life of the operator left undone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from storm_operator.adapters.errors import AdapterError
from storm_operator.adapters.kube.errors import KubernetesError
from storm_operator.adapters.kube.resources import REBALANCES, OwnKinds
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.nimbus.supervisors import zookeeper_of
from storm_operator.assembly import ClusterConnection
from storm_operator.control_loop import ControlLoop
from storm_operator.core.backoff import Retry, put_off
from storm_operator.core.host_and_port import host_and_port
from storm_operator.core.nimbus_name import NIMBUS_PORT, means_the_same_everywhere, nimbus_name
from storm_operator.core.topology_spec import ConfigMapKey
from storm_operator.history.settings import HistorySettings
from storm_operator.kube.asks import close_lost, seed_proposals
from storm_operator.kube.kept_rebalance import as_kept
from storm_operator.kube.managed import Managed, nimbus_of_status, submitted_stages
from storm_operator.kube.page import KubePage
from storm_operator.kube.shown_plans import ShownPlans
from storm_operator.kube.submission import JobSettings
from storm_operator.lifecycle_manager import LifecycleManager
from storm_operator.lifecycle_progress import Progress, Stage

CONNECT_PATIENCE_SECONDS = 10.0
NIMBUS_NAMED_BY = "spec.nimbus (or --nimbus)"
UNDER_WAY = frozenset({Stage.SUBMITTING, Stage.REPLACING, Stage.WAITING})
"""A topology that was left so is expected to be another, or gone: that is nobody else's doing."""


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """What all Storm clusters have in common."""

    jobs: JobSettings
    agent_port: int
    prometheus: str | None = None
    history: HistorySettings | None = None
    learned_profile: ConfigMapKey | None = None
    """Where topologies without a spec.learnedProfile have theirs, each in its own namespace."""
    page: KubePage | None = None
    pod: str = ""
    """NAMESPACE/NAME of the operator's; empty outside of one."""
    match: str = ""
    """Narrows what `prometheus` is asked for."""


@dataclass(slots=True)
class FirstLook:
    """How often in a row what the Kubernetes API refuses at the start was refused: the next try comes ever later.

    Nimbus and ZooKeeper out of reach are another matter: they are asked again soon, since they come back.
    """

    clock: Callable[[], float] = time.monotonic
    refused: Retry | None = None

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        """Raises `KubernetesError` that says what for, and how often it was tried."""
        try:
            yield
        except KubernetesError as error:
            self.refused = put_off(self.refused, "", self.clock())
            raise KubernetesError(
                f"no pass is made before what an earlier life of the operator left undone is known: {error}"
            ) from error
        except AdapterError:
            self.refused = None
            raise
        self.refused = None

    def pause_seconds(self, usual_seconds: float) -> float:
        """Until the next try."""
        return self.refused.pause_seconds if self.refused is not None else usual_seconds


def discover(nimbus: str, settings: RunnerSettings) -> ClusterConnection:
    """Where the parts of the cluster are, as its Nimbus has it. Raises `NimbusError`."""
    client = NimbusClient((nimbus,), patience_seconds=CONNECT_PATIENCE_SECONDS, named_by=NIMBUS_NAMED_BY)
    try:
        conf = client.nimbus_conf()
    finally:
        client.close()
    zookeeper, root = zookeeper_of(conf)
    return ClusterConnection(
        nimbus=(nimbus, *other_nimbuses(nimbus, conf)),
        zookeeper=zookeeper,
        storm_root=root,
        agent_port=settings.agent_port,
        prometheus=settings.prometheus,
        match=settings.match,
        nimbus_named_by=NIMBUS_NAMED_BY,
    )


def other_nimbuses(nimbus: str, conf: Mapping[str, Any]) -> tuple[str, ...]:
    """Pure: where others may lead when `nimbus` is away, by its own `conf`; asked only while it does not answer.

    None where it is the only one: its seed is then another name of `nimbus`. None, too, that is another host elsewhere.
    """
    seeds = conf.get("nimbus.seeds")
    port = conf.get("nimbus.thrift.port", NIMBUS_PORT)
    if not isinstance(seeds, list) or len(seeds) < 2:
        return ()
    addresses = (host_and_port(str(seed), port) for seed in seeds if means_the_same_everywhere(str(seed)))
    return tuple(one for one in dict.fromkeys(addresses) if nimbus_name(one, "") != nimbus)


def go_on_where_it_ended(
    loop: ControlLoop, nimbus: str, shown: ShownPlans, kinds: OwnKinds, namespaces: tuple[str, ...]
) -> None:
    """Finish the plan that was in hand, close those that are lost, and take up the proposals that still wait."""
    loop.recover()
    # Listed anew: the watch may not have delivered what an earlier life of the operator wrote.
    shown.registry.put_listed_rebalances(map(as_kept, kinds.each(REBALANCES, namespaces)))
    close_lost(shown.registry, kinds, loop, nimbus)
    seed_proposals(shown, loop, nimbus)


def remind(lifecycle: LifecycleManager, name: str, one: Managed) -> None:
    """What an earlier life of the operator wrote of a topology that it left running, or suspended, on this Nimbus."""
    status = one.body.get("status") or {}
    topology_id = status.get("topologyId") if nimbus_of_status(one.body) in ("", one.nimbus) else None
    stages = submitted_stages(one.body)
    if topology_id and not stages & UNDER_WAY:
        suspended = bool(status.get("suspendedByOperator"))
        stage = Stage.SUSPENDED if suspended else Stage.RUNNING
        stage = Stage.FAILED if Stage.FAILED in stages else stage
        lifecycle.remember(name, Progress(stage, "", str(topology_id)), suspended)

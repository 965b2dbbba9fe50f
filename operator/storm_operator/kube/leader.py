"""What the operator does while it leads: it watches resources, and runs a loop for each Storm cluster they name."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

import kopf

from storm_operator.adapters.kube.clients import KubeClients
from storm_operator.adapters.kube.resources import REBALANCES, TOPOLOGIES
from storm_operator.console.site import PageAddress, PageUnavailable, open_page
from storm_operator.core.plan_record import PlanState
from storm_operator.http_listening import ALL_ADDRESSES
from storm_operator.kube.canary import WatchCanary
from storm_operator.kube.connecting import RunnerSettings
from storm_operator.kube.handlers import Watched, build_registry, on_rebalance_end, on_topology_end
from storm_operator.kube.kept_rebalance import as_kept
from storm_operator.kube.managed import Body, Managed, Registry, key_of
from storm_operator.kube.managed_cluster import ManagedCluster
from storm_operator.kube.page import TokenApprover, in_name_of
from storm_operator.kube.rebalances import state_of
from storm_operator.kube.runner import ClusterRunner
from storm_operator.kube.runners import Runners
from storm_operator.operator_metrics import OperatorMetrics

PROPOSED = "status.state=Proposed"
log = logging.getLogger("storm_operator")


class Operator:
    """The parts of the operator that only the leader runs."""

    def __init__(
        self,
        clients: KubeClients,
        registry: Registry,
        settings: RunnerSettings,
        namespaces: tuple[str, ...],
        metrics: OperatorMetrics,
        watch_look_seconds: float,
    ) -> None:
        self._clients = clients
        self._registry = registry
        self._settings = settings
        self._namespaces = namespaces
        self._gone: set[str] = set()
        self._metrics = metrics
        topologies = WatchCanary(
            "StormTopologies",
            lambda: clients.kinds.list(TOPOLOGIES, namespaces),
            lambda: [managed.body for managed in registry.topologies()],
            log.info,
            watch_look_seconds,
            ended=partial(on_topology_end, registry, self._gone),
        )
        # Each loop lists the StormRebalances of its topologies' namespaces itself, and shows when it may not.
        self.runners = Runners(registry, self._make, self._forget, topologies.wait_until_whole)
        self._canaries = (
            topologies,
            # Of plans, that are many and large, those that people are asked about.
            WatchCanary(
                "StormRebalances",
                lambda: clients.kinds.list(REBALANCES, namespaces, PROPOSED),
                registry.rebalances,
                log.info,
                watch_look_seconds,
                ended=partial(on_rebalance_end, registry),
                is_gone=self._is_gone,
            ),
        )

    def _is_gone(self, rebalance: Body) -> bool:
        """Of a StormRebalance that is not listed as Proposed; one that is there has moved on."""
        if state_of(rebalance) != PlanState.PROPOSED:
            return False
        namespace, name = key_of(rebalance)
        found = self._clients.kinds.list(REBALANCES, (namespace,), f"metadata.name={name}")
        self._registry.put_listed_rebalances(map(as_kept, found))
        return not found

    def problem(self) -> str:
        """Why the operator should be started anew; empty when all is well, and while it waits to lead."""
        return "; ".join(filter(None, (self.runners.problem(), *(canary.problem() for canary in self._canaries))))

    def watch_ages(self) -> Mapping[str, float]:
        """Seconds since each kind's watch was seen to have delivered all, while this process leads."""
        ages = {canary.kind: canary.age_seconds() for canary in self._canaries}
        return {kind: age for kind, age in ages.items() if age is not None}

    def show_page(self, port: int, approval: bool) -> None:
        """Serve the page; where that is impossible the operator runs without it."""
        if self._settings.page is None:
            return
        approver = TokenApprover(self.runners.proposal, in_name_of) if approval else None
        try:
            open_page(self._settings.page.api(lambda: self.runners.running, approver), PageAddress(port, ALL_ADDRESSES))
        except PageUnavailable as error:
            log.warning("%s", error)

    def lead(self, stop: threading.Event, deletion_patience_seconds: float) -> bool:
        """Until `stop`: watch, and run the loops. Returns whether these have all ended then."""
        self._metrics.leads = True
        if self._settings.page is not None:
            self._settings.page.leads = True
        for target in (self.runners.run, *(canary.run for canary in self._canaries)):
            threading.Thread(target=target, args=(stop,), name=target.__qualname__, daemon=True).start()
        watched = Watched(self._registry, self._gone, self._tell, lambda: datetime.now(UTC), deletion_patience_seconds)
        asyncio.run(self._watch(build_registry(watched), stop))
        have_ended = self.runners.join()
        for topology_id in self.runners.paused():
            log.error(
                "the spouts of %s are paused for a plan: the next life of the operator goes on with it", topology_id
            )
        self._metrics.leads = False
        return have_ended

    async def _watch(self, handlers: kopf.OperatorRegistry, stop: threading.Event) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        threading.Thread(target=lambda: (stop.wait(), loop.call_soon_threadsafe(ended.set)), daemon=True).start()
        await kopf.operator(
            registry=handlers,
            clusterwide=not self._namespaces,
            namespaces=self._namespaces,
            standalone=True,
            stop_flag=ended,
        )

    def _make(self, nimbus: str) -> ClusterRunner:
        return ClusterRunner(
            ManagedCluster(
                nimbus, self._registry, self._clients, self._settings, log.info, self._gone, metrics=self._metrics
            )
        )

    def _forget(self, nimbus: str) -> None:
        self._metrics.forget(nimbus)
        if self._settings.page is not None:
            self._settings.page.forget(nimbus)

    def _tell(self, managed: Managed, reason: str, message: str, warning: bool) -> None:
        self._clients.events.post(managed.body, reason, message, warning)

"""What a pass and all that goes with it found about one topology, gathered for its status."""

from __future__ import annotations

import time
from collections.abc import Mapping

from storm_operator.core.agent_enforcement import AgentEnforcement
from storm_operator.kube.cluster_care import ClusterCare
from storm_operator.kube.conditions import TopologyView
from storm_operator.kube.enforced import NO_LIMITS, limits_in_force
from storm_operator.kube.managed import NIMBUS_CHANGED, Managed
from storm_operator.kube.publisher import Publisher, decision_for
from storm_operator.kube.status import unfinished_plan
from storm_operator.kube.submission import JobSubmitter
from storm_operator.lifecycle_manager import LifecycleManager


def view_of(
    name: str,
    one: Managed,
    publisher: Publisher,
    care: ClusterCare,
    lifecycle: LifecycleManager,
    submitter: JobSubmitter | None,
    agents: Mapping[str, AgentEnforcement],
) -> TopologyView:
    """Of the topology `name`, which `one` describes; `agents` by supervisor host."""
    progress, retry = lifecycle.progress.get(name), lifecycle.retries.get(name)
    topology_id = progress.topology_id if progress else ""
    report = publisher.last_report
    snapshot = report.snapshot if report else None
    known = publisher.as_known(one)
    record = publisher.last_record.get(topology_id)
    return TopologyView(
        managed=known,
        progress=progress,
        snapshot=snapshot,
        decision=decision_for(report, topology_id) if not one.is_paused else None,
        record=record,
        plan_end=publisher.end_of(unfinished_plan(known)) if record is None else None,
        now_seconds=time.time(),
        job=submitter.last.get(one.uid) if submitter else None,
        retry_at_seconds=retry.not_before_seconds if retry else None,
        failed_attempts=retry.failures if retry else None,
        suspended_by_operator=name in lifecycle.suspended if progress else None,
        forecasts=report.forecasts if report else {},
        places=care.places(topology_id, snapshot, agents) if snapshot else (),
        limits=limits_in_force(topology_id, snapshot, report.limits_millicores) if report and snapshot else NO_LIMITS,
        obstacles=care.obstacles(name) + _obstacle_of(one),
        held_resize=care.counts.held.get(topology_id),
    )


def _obstacle_of(one: Managed) -> tuple[tuple[str, str], ...]:
    return ((NIMBUS_CHANGED, one.stays),) if one.stays else ()

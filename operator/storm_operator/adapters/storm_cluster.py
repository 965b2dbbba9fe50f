"""One Storm cluster as the control loop needs it: its view, its commands, and the plan in progress."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from storm_operator.adapters.errors import MalformedDocument, RebalanceInProgress, TopologyNotAlive, UnknownComponent
from storm_operator.adapters.nimbus.assignment import assignment_from, read_assignment
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.nimbus.connection import NimbusAddress
from storm_operator.adapters.nimbus.declared_resources import declared_for_all
from storm_operator.adapters.nimbus.rebalanced import executor_counts, will_be_inactive
from storm_operator.adapters.nimbus.relay import relay_assignments
from storm_operator.adapters.nimbus.supervisors import DEFAULT_STORM_ROOT, read_supervisors, read_thrift_addresses
from storm_operator.adapters.nimbus.topology import (
    SUBMITTED_COUNTS,
    WORKERS_KEY,
    TopologyReading,
    is_placed_wholly,
    number_of_tasks,
    topology_from,
)
from storm_operator.adapters.nimbus.values import INACTIVE, KILLED, REBALANCING, TopologyInfo, TopologySummary
from storm_operator.adapters.plan_store import PlanStore
from storm_operator.adapters.zookeeper import Nodes
from storm_operator.core.lifecycle import FINGERPRINT_KEY, RunningTopology
from storm_operator.core.model import Assignment, Supervisor, Topology, WorkerSlot
from storm_operator.core.plan_json import record_from_json, record_to_json
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.snapshot_builder import ClusterView
from storm_operator.core.topology_spec import StatefulSpec, TopologySpec

SPARE_BYTES, SPARE_BYTES_PER_EXECUTOR = 4_000, 16
"""By so much a plan's record may grow while it is carried out: what it says, and a counter of its failures for each
executor that had none before (10 bytes, packed)."""

NOT_MANAGED = "it is not managed, since {}"
THE_ROOT = "its root"
REFRESH_KEY = "task.refresh.poll.secs"
DEFAULT_REFRESH_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Definition:
    """What never changes while a topology id lives."""

    storm_topology: Any
    tasks: int
    num_workers: int
    fingerprint: str | None
    of_all: Mapping[str, Any]


class StormCluster:
    """Reads the cluster from Nimbus and ZooKeeper and gives Nimbus its commands. Raises the adapters' errors.

    `root_named_by` is what `storm_root` was read from, for what is told of it.
    """

    def __init__(
        self,
        client: NimbusClient,
        nodes: Nodes,
        storm_root: str = DEFAULT_STORM_ROOT,
        root_named_by: str = THE_ROOT,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._storm_root = storm_root
        self._root_named_by = root_named_by
        self._definitions: dict[str, _Definition] = {}
        self._supervisors: tuple[Supervisor, ...] = ()
        self._finishing: tuple[str, ...] = ()

    def read_view(self, specs: Mapping[str, TopologySpec]) -> ClusterView:
        """All living topologies; state and number of workers are as the topology's spec says, if it has one.

        One that cannot be read is left out, with a problem that says so: who submits one must keep no other unmanaged.
        Slots in which such run, or killed ones still finish, are none that anybody else could have: supervisors are
        without their ports.
        """
        self._supervisors = read_supervisors(self._nodes, self._storm_root)
        topologies, infos, unread, problems = [], [], [], self._problems_of_root()
        for summary in self._living():
            spec = specs.get(summary.name)
            stateful = spec.stateful if spec else StatefulSpec()
            try:
                reading, info = self._read_topology(summary.id, stateful)
            except TopologyNotAlive:
                continue  # ended since the listing
            except MalformedDocument as error:
                problems.append(f"{summary.name}: {NOT_MANAGED.format(error)}")
                unread.append(summary.id)
                continue
            except UnknownComponent as error:
                # One user's slip must not stop the others: found automatically until it is mended.
                problems.append(f"{summary.name}: spec.stateful is left out of account: {error}")
                reading, info = self._read_topology(summary.id, StatefulSpec())
            topologies.append(_of_size(reading.topology, spec))
            infos.append(info)
        assignment = assignment_from(infos, self._supervisors).assignment
        others = read_assignment(self._client, (*self._finishing, *unread), self._supervisors).assignment
        supervisors = _without_slots(self._supervisors, frozenset(others.workers()))
        return ClusterView(supervisors, tuple(topologies), assignment, tuple(problems))

    def _problems_of_root(self) -> list[str]:
        """Supervisors make their folder when the first one comes, and it stays when they go."""
        folder = f"{self._storm_root}/supervisors"
        if self._supervisors or self._nodes.get(folder) is not None:
            return []
        return [
            f"no Storm cluster is known under {self._storm_root} in ZooKeeper, where {folder} is not there:"
            f" {self._root_named_by} must be Storm's storm.zookeeper.root"
        ]

    def running(self) -> tuple[RunningTopology, ...]:
        """All topologies by name, those being killed included."""
        found = []
        for summary in self._client.cluster_info().topologies:
            with contextlib.suppress(TopologyNotAlive):
                found.append(self._running(summary))
        return tuple(found)

    def _running(self, summary: TopologySummary) -> RunningTopology:
        seen = RunningTopology(summary.id, summary.name, summary.status)
        if seen.is_leaving:
            return seen
        try:
            return replace(seen, fingerprint=self._definition(summary.id).fingerprint)
        except MalformedDocument as error:
            return replace(seen, unreadable=NOT_MANAGED.format(error))

    def supervisor_ids(self) -> Mapping[str, str]:
        """Supervisor id by host, as of the last view or assignment that was read."""
        if not self._supervisors:
            self._supervisors = read_supervisors(self._nodes, self._storm_root)
        return {supervisor.host: supervisor.id for supervisor in self._supervisors}

    def read_assignment(self, topology_ids: Collection[str]) -> Assignment:
        self._supervisors = read_supervisors(self._nodes, self._storm_root)
        return read_assignment(self._client, topology_ids, self._supervisors).assignment

    def tell_supervisors(self, supervisor_ids: Collection[str]) -> bool:
        """Let these supervisors know their assignments now; whether all of them do."""
        leader = self._client.leader()
        known = read_thrift_addresses(self._nodes, self._storm_root)
        wanted = {supervisor_id: known[supervisor_id] for supervisor_id in supervisor_ids if supervisor_id in known}
        told = relay_assignments(NimbusAddress(leader.host, leader.port), wanted)
        return told == frozenset(supervisor_ids)

    def connection_refresh_seconds(self) -> float:
        """How often workers look for where to connect to."""
        configured = self._client.nimbus_conf().get(REFRESH_KEY)
        return float(configured) if isinstance(configured, int | float) else DEFAULT_REFRESH_SECONDS

    def rebalance(self, topology_id: str) -> None:
        """Ask for a scheduling round of `topology_id` now; one that is under way already will do."""
        with contextlib.suppress(RebalanceInProgress):
            self._client.rebalance(self._name(topology_id))

    def activate(self, topology_id: str) -> None:
        self._client.activate(self._name(topology_id))

    def deactivate(self, topology_id: str) -> None:
        self._client.deactivate(self._name(topology_id))

    def deactivated(self, topology_ids: Collection[str]) -> frozenset[str]:
        """Also those that are being rebalanced, where they will be deactivated again after that."""
        return frozenset(one.id for one in self._living() if one.id in topology_ids and self._is_inactive(one))

    def being_rebalanced(self, topology_ids: Collection[str]) -> frozenset[str]:
        """Those that somebody, or this operator, has asked Nimbus to rebalance, and that wait for it."""
        return frozenset(one.id for one in self._living() if one.id in topology_ids and one.status == REBALANCING)

    def _is_inactive(self, summary: TopologySummary) -> bool:
        if summary.status == REBALANCING:
            return will_be_inactive(self._nodes, self._storm_root, summary.id)
        return summary.status == INACTIVE

    def not_ended(self, topology_ids: Collection[str]) -> frozenset[str]:
        return frozenset(one.id for one in self._client.cluster_info().topologies if one.id in topology_ids)

    def kill(self, name: str, wait_seconds: int) -> None:
        """Kill the topology `name`; one that is gone already is none to kill."""
        with contextlib.suppress(TopologyNotAlive):
            self._client.kill(name, wait_seconds=wait_seconds)

    def _living(self) -> list[TopologySummary]:
        present = self._client.cluster_info().topologies
        self._finishing = tuple(summary.id for summary in present if summary.status == KILLED)
        living = [summary for summary in present if summary.status != KILLED]
        ids = {summary.id for summary in living}
        self._definitions = {i: known for i, known in self._definitions.items() if i in ids}
        return living

    def _read_topology(self, topology_id: str, stateful: StatefulSpec) -> tuple[TopologyReading, TopologyInfo]:
        known = self._definition(topology_id)
        info = self._client.topology_info(topology_id)
        counts: Mapping[str, int] = SUBMITTED_COUNTS
        if not is_placed_wholly(known.tasks, info):
            counts = executor_counts(self._nodes, self._storm_root, topology_id)
        return topology_from(known.storm_topology, info, stateful, known.num_workers, known.of_all, counts), info

    def _definition(self, topology_id: str) -> _Definition:
        if topology_id not in self._definitions:
            conf = self._client.topology_conf(topology_id)
            storm_topology = self._client.system_topology(topology_id)
            workers, fingerprint = conf.get(WORKERS_KEY), conf.get(FINGERPRINT_KEY)
            self._definitions[topology_id] = _Definition(
                storm_topology,
                number_of_tasks(storm_topology),
                workers if isinstance(workers, int) else 1,
                fingerprint if isinstance(fingerprint, str) else None,
                declared_for_all(conf, self._client.nimbus_conf()),
            )
        return self._definitions[topology_id]

    def _name(self, topology_id: str) -> str:
        """Asked for anew each time: by the name of one that has ended Nimbus would take another, submitted since."""
        for summary in self._living():
            if summary.id == topology_id:
                return summary.name
        raise TopologyNotAlive(f"topology {topology_id} does not run")


def _of_size(topology: Topology, spec: TopologySpec | None) -> Topology:
    """The conf has the number of workers that was asked for at the submission; the spec may have changed since."""
    workers = spec.parallelism.workers if spec is not None else None
    return topology if workers is None else replace(topology, num_workers=workers)


def _without_slots(supervisors: Iterable[Supervisor], taken: AbstractSet[WorkerSlot]) -> tuple[Supervisor, ...]:
    return tuple(
        replace(one, ports=tuple(port for port in one.ports if WorkerSlot(one.id, port) not in taken))
        for one in supervisors
    )


class PlanJournal:
    """The plan in progress, kept in ZooKeeper beside the plans."""

    def __init__(self, store: PlanStore) -> None:
        self._store = store

    def save(self, record: PlanRecord) -> None:
        """MalformedDocument when it is too large, or would become so: what is begun has to be kept to its end."""
        self._store.write_journal(record_to_json(record), _spare_bytes(record))

    def load(self) -> PlanRecord | None:
        """The record that was saved last and not cleared. MalformedDocument when it cannot be read."""
        try:
            document = self._store.read_journal()
            return None if document is None else record_from_json(document)
        except (MalformedDocument, KeyError, TypeError, ValueError) as error:
            raise MalformedDocument(
                f"the journal in ZooKeeper cannot be read ({type(error).__name__}: {error}); it is damaged, or another"
                f" version of the operator has written it: delete the node {self._store.journal} to begin anew"
            ) from error

    def clear(self) -> None:
        self._store.clear_journal()


def _spare_bytes(record: PlanRecord) -> int:
    """None once the plan is in force: it is too late then. None of a way back: that is better begun than refused."""
    is_begun = record.state is not PlanState.APPLYING or record.in_force_at_seconds is not None
    if is_begun or record.rollback_of:
        return 0
    return SPARE_BYTES + SPARE_BYTES_PER_EXECUTOR * len(record.plan.target.slot_of)

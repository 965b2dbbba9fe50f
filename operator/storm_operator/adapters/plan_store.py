"""PlanStore: plans, acknowledgements, CPU limits and the journal in ZooKeeper (docs/reference/interfaces.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from storm_operator.adapters import plan_documents as documents
from storm_operator.adapters.errors import MalformedDocument
from storm_operator.adapters.json_fields import decode_object
from storm_operator.adapters.nimbus.supervisors import DEFAULT_STORM_ROOT, read_supervisors
from storm_operator.adapters.zookeeper import LARGEST_NODE_BYTES, Nodes
from storm_operator.core import packed_json
from storm_operator.core.decision import Plan
from storm_operator.core.model import Executor

KINDS = ("plans", "cpu-limits", "acks")
"""Of documents that a topology may have."""
SUPERVISOR_ID = re.compile(r"[0-9a-fA-F-]{36}-(?P<host>.+)")


class PlanStore:
    """Reads and writes whole documents; as thread-safe as `nodes` is.

    All methods raise ZooKeeperUnreachable within the session's timeout, and readers MalformedDocument. `storm_root`
    is Storm's `storm.zookeeper.root`.
    """

    def __init__(self, nodes: Nodes, storm_root: str = DEFAULT_STORM_ROOT) -> None:
        self._nodes = nodes
        self._storm_root = storm_root
        self._root = f"{storm_root}/storm-operator"
        self._known_hosts: dict[str, str] = {}

    def write_plan(self, topology_id: str, plan: Plan) -> None:
        """Makes the part of `plan.target` that concerns `topology_id` the plan in force."""
        document = documents.plan_document(topology_id, plan, self._hosts(plan))
        self._nodes.put(self._path("plans", topology_id), documents.encode_plan(document))

    def read_plan(self, topology_id: str) -> documents.PlanDocument | None:
        """The plan in force; None when the topology has none."""
        content = self._nodes.get(self._path("plans", topology_id))
        return None if content is None else documents.decode_plan(content)

    def delete_plan(self, topology_id: str) -> None:
        """Gives the topology back to the fallback scheduler. Its acknowledgement and CPU limits go too."""
        for kind in KINDS:
            self._nodes.remove(self._path(kind, topology_id))

    def planned_topologies(self) -> tuple[str, ...]:
        """Ids of all topologies that anything is kept of, also of those that have ended, sorted."""
        return tuple(sorted({name for kind in KINDS for name in self._nodes.children(f"{self._root}/{kind}")}))

    def read_acknowledgement(self, topology_id: str) -> documents.Acknowledgement | None:
        """What the plan scheduler last said about the topology; None when nothing."""
        content = self._nodes.get(self._path("acks", topology_id))
        return None if content is None else documents.decode_acknowledgement(content)

    def write_cpu_limits(self, topology_id: str, plan_id: str, limits: Mapping[Executor, float]) -> None:
        """Makes `limits` (millicores) of `topology_id`'s executors the ones that agents enforce."""
        own = {executor: limit for executor, limit in limits.items() if executor.topology_id == topology_id}
        content = documents.encode_cpu_limits(documents.CpuLimits(topology_id, plan_id, own))
        self._nodes.put(self._path("cpu-limits", topology_id), content)

    def read_cpu_limits(self, topology_id: str) -> Mapping[Executor, float]:
        """Millicores by executor; empty when there are no limits."""
        content = self._nodes.get(self._path("cpu-limits", topology_id))
        return {} if content is None else documents.decode_cpu_limits(content).millicores

    @property
    def journal(self) -> str:
        """Path of the node that has it."""
        return f"{self._root}/journal"

    def write_journal(self, journal: Mapping[str, Any], spare_bytes: int = 0) -> None:
        """Keeps `journal`, any JSON object, for the operator's next life. MalformedDocument when it is too large.

        `spare_bytes`: by how much it may grow before it is cleared. Where that would be too large it is so from the
        beginning, and nothing is written.
        """
        content = packed_json.encode(journal)
        if len(content) + spare_bytes > LARGEST_NODE_BYTES:
            raise MalformedDocument(
                f"{self.journal} would be {len(content) + spare_bytes} bytes before the plan is over; a ZooKeeper node"
                f" holds at most {LARGEST_NODE_BYTES}: these are too many executors for one plan"
            )
        self._nodes.put(self.journal, content)

    def read_journal(self) -> dict[str, Any] | None:
        """What `write_journal` kept; None when nothing is in progress, nor a way back to be tried again."""
        content = self._nodes.get(self.journal)
        return None if content is None else decode_object("journal", content, packed_json.decode)

    def clear_journal(self) -> None:
        self._nodes.remove(self.journal)

    def write_suspended(self, topologies: Mapping[str, str]) -> None:
        """Keeps which topologies, id by name, the operator suspended; for a standalone's next life."""
        if topologies:
            self._nodes.put(f"{self._root}/suspended", documents.encode_suspended(topologies))
        else:
            self._nodes.remove(f"{self._root}/suspended")

    def read_suspended(self) -> Mapping[str, str]:
        """What `write_suspended` kept."""
        content = self._nodes.get(f"{self._root}/suspended")
        return {} if content is None else documents.decode_suspended(content)

    def _path(self, kind: str, topology_id: str) -> str:
        if not topology_id or "/" in topology_id:
            raise MalformedDocument(f"topology id {topology_id!r}: must be Storm's, without a slash")
        return f"{self._root}/{kind}/{topology_id}"

    def _hosts(self, plan: Plan) -> Mapping[str, str]:
        """Hosts of the plan's supervisors. One that has died since may still be named: its host is remembered."""
        needed = {slot.supervisor_id for slot in plan.target.slot_of.values()}
        if not needed <= self._known_hosts.keys():
            living = read_supervisors(self._nodes, self._storm_root)
            self._known_hosts |= {supervisor.id: supervisor.host for supervisor in living}
        return {
            supervisor_id: self._known_hosts.get(supervisor_id, _host_in(supervisor_id)) for supervisor_id in needed
        }


def _host_in(supervisor_id: str) -> str:
    """Storm's supervisor ids are a UUID and the host; an id of another form stands for itself."""
    match = SUPERVISOR_ID.fullmatch(supervisor_id)
    return match["host"] if match else supervisor_id

"""The operator's resources as last seen: filled by kopf's watches, read by the loops. Thread-safe."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from storm_operator.adapters.resource_metadata import idle_annotations
from storm_operator.adapters.resource_schema import of_known_fields
from storm_operator.adapters.resources import InvalidResource, parse_topology, topology_schema
from storm_operator.core.model import name_of_topology
from storm_operator.core.nimbus_name import nimbus_name
from storm_operator.core.topology_spec import PAUSED_ANNOTATION, TopologySpec
from storm_operator.kube.grouped import ALL, Grouped
from storm_operator.lifecycle_progress import Stage

Body = Mapping[str, Any]
Key = tuple[str, str]
"""(namespace, name)"""

Wishes = frozenset[tuple[str, int, bool]]
"""Of each resource its uid, its generation, and whether it is paused: all that its owner can want."""

MANAGED_ON, LEFT_ON = "managed on", "left on"
"""How a resource belongs to a Storm cluster, see `Registry.of_cluster` and `Registry.left_on`."""

NAME_TAKEN = "NameTaken"
"""Reason of the conditions of a resource whose topology belongs to another."""

NIMBUS_CHANGED = "NimbusChanged"
"""Reason of condition Degraded of a resource that names no Nimbus, while it runs on another than the default."""


@dataclass(frozen=True, slots=True)
class Managed:
    """A StormTopology resource. `spec` None: `problem` says what is wrong with it.

    `nimbus` is the one name that its Storm cluster has for the operator, see `core.nimbus_name`.
    """

    body: Body
    spec: TopologySpec | None
    problem: str
    nimbus: str
    stays: str = ""
    """Why `nimbus` is not the operator's default although `spec` names none; empty where it is."""

    @property
    def key(self) -> Key:
        return key_of(self.body)

    @property
    def uid(self) -> str:
        return str(self.body["metadata"].get("uid", ""))

    @property
    def generation(self) -> int:
        return int(self.body["metadata"].get("generation", 0))

    @property
    def is_being_deleted(self) -> bool:
        return "deletionTimestamp" in self.body["metadata"]

    @property
    def is_paused(self) -> bool:
        return annotations_of(self.body).get(PAUSED_ANNOTATION) == "true"

    @property
    def idle_annotations(self) -> list[str]:
        """Of those of ours each that does nothing, in a sentence: a mistyped `paused` pauses nothing."""
        return idle_annotations(annotations_of(self.body))

    @property
    def topology_id(self) -> str:
        """Of the topology that runs for it, as its status has it; empty while none does."""
        return str(self._status.get("topologyId") or "")

    @property
    def left_on(self) -> str:
        """The Nimbus of a topology that runs for a resource which is invalid by now; else empty."""
        return str(self._status.get("nimbus") or "") if self.spec is None and self.topology_id else ""

    @property
    def was_on(self) -> str:
        """The Nimbus that a resource which is invalid by now was managed on last; else empty."""
        return nimbus_of_status(self.body) if self.spec is None else ""

    @property
    def topology_name(self) -> str:
        """In Storm; empty where that is not known."""
        return self.spec.name if self.spec is not None else name_of_topology(self.topology_id)

    @property
    def claim(self) -> tuple[bool, bool, bool, str, Key]:
        """Of two resources for one topology the one with the lesser has it: the one that runs it; else the older.

        Not one that was refused: between the end of a topology and the beginning of its next version none runs.
        """
        reasons = {each.get("reason") for each in self._status.get("conditions") or ()}
        created = str(self.body["metadata"].get("creationTimestamp", ""))
        return not self.topology_id, self.spec is None, NAME_TAKEN in reasons, created, self.key

    @property
    def birth(self) -> tuple[str, bool]:
        """Of two resources of one name the one with the greater was made later: the name is free only after the end of
        the other one."""
        return str(self.body["metadata"].get("creationTimestamp", "")), not self.is_being_deleted

    @property
    def _status(self) -> Body:
        return self.body.get("status") or {}


def key_of(body: Body) -> Key:
    return str(body["metadata"]["namespace"]), str(body["metadata"]["name"])


def annotations_of(body: Body) -> Mapping[str, str]:
    return body["metadata"].get("annotations") or {}


def managed_from(body: Body, default_nimbus: str | None) -> Managed:
    """Pure: the resource as a value, valid or not.

    Newer CRDs than this operator's, as in the middle of an upgrade, may have more fields, with defaults at that.
    """
    try:
        spec = parse_topology(of_known_fields(body, topology_schema()))
    except InvalidResource as error:
        return Managed(body, None, error.in_one_sentence, "")
    except Exception as error:  # a resource that was never heard of would keep all loops waiting for it
        return Managed(
            body, None, f"the operator cannot read it ({type(error).__name__}: {error}); please report it", ""
        )
    if spec.nimbus is not None:
        return Managed(body, spec, "", nimbus_name(spec.nimbus, key_of(body)[0]))
    runs_on = _nimbus_of_what_runs(body)
    if runs_on and runs_on != default_nimbus:
        return Managed(body, spec, "", runs_on, _why_it_stays(runs_on, default_nimbus))
    if default_nimbus is None:
        return Managed(body, None, "spec.nimbus: absent, and the operator has no default; give host:port", "")
    return Managed(body, spec, "", default_nimbus)


def nimbus_of_status(body: Body) -> str:
    """The Nimbus that the resource was managed on last, as its status has it; empty where that has none."""
    nimbus = str((body.get("status") or {}).get("nimbus") or "")
    return nimbus and nimbus_name(nimbus, key_of(body)[0])


def submitted_stages(body: Body) -> frozenset[str]:
    """How far the submission of its topology is by the resource's status: none, or one `Stage`."""
    conditions = (body.get("status") or {}).get("conditions") or ()
    return frozenset(str(each.get("reason")) for each in conditions if each.get("type") == "Submitted")


def _nimbus_of_what_runs(body: Body) -> str:
    """Where, by its status, the resource's topology runs, or is being submitted; empty where it does neither."""
    runs = (body.get("status") or {}).get("topologyId") or Stage.SUBMITTING in submitted_stages(body)
    return nimbus_of_status(body) if runs else ""


def _why_it_stays(nimbus: str, default_nimbus: str | None) -> str:
    return (
        f"it runs on Nimbus {nimbus}, and stays there; spec.nimbus is absent, and the operator's default is"
        f" {default_nimbus or 'none'} by now: set that back, or delete this StormTopology (deletionPolicy Leave keeps"
        " the topology) and make another whose spec.nimbus names the right one"
    )


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Since when a loop asks what becomes of its topologies, and what was last in its way; `why` empty: not known."""

    since_seconds: float
    why: str = ""


class Registry:
    """All StormTopology and StormRebalance resources that the operator watches."""

    def __init__(self, default_nimbus: str | None) -> None:
        """`default_nimbus` is of resources that name none: a `nimbus_name`."""
        self._default_nimbus = default_nimbus
        self._lock = threading.Lock()
        self._topologies: Grouped[Key, Managed] = Grouped(_clusters_of, tuple)
        self._rebalances: Grouped[Key, Body] = Grouped(_owners_of, lambda key: (key[1], key[0]))
        self._deleted_proposals: dict[str, frozenset[Key]] = {}
        self._unanswered: dict[str, Unanswered] = {}

    def put_topology(self, body: Body) -> Managed:
        """Remember the resource as it is now, unless it has been made anew since: of that one may have heard before."""
        managed = managed_from(body, self._default_nimbus)
        with self._lock:
            known = self._topologies.get(managed.key)
            if known is None or known.uid == managed.uid or known.birth <= managed.birth:
                self._topologies.put(managed.key, managed)
        return managed

    def forget_topology(self, key: Key, uid: str) -> None:
        """The resource with that uid is gone; one that was made anew under its name, heard of before, stays."""
        with self._lock:
            known = self._topologies.get(key)
            if known is not None and known.uid == uid:
                self._topologies.remove(key)

    def topology(self, key: Key) -> Managed | None:
        with self._lock:
            return self._topologies.get(key)

    def topologies(self) -> tuple[Managed, ...]:
        """All of them, sorted by namespace and name."""
        with self._lock:
            return self._topologies.of(ALL)

    def of_cluster(self, nimbus: str) -> tuple[Managed, ...]:
        """The valid ones of one Storm cluster, sorted likewise."""
        with self._lock:
            return self._topologies.of((MANAGED_ON, nimbus))

    def left_on(self, nimbus: str) -> tuple[Managed, ...]:
        """Those that are invalid by now, and whose topologies run on that Storm cluster."""
        with self._lock:
            return self._topologies.of((LEFT_ON, nimbus))

    def clusters(self) -> frozenset[str]:
        """The Nimbus addresses that resources name."""
        return frozenset(managed.nimbus for managed in self.topologies() if managed.nimbus)

    def were_on(self, nimbus: str) -> tuple[Managed, ...]:
        """Those that are invalid by now, and were managed on that Storm cluster."""
        return tuple(managed for managed in self.topologies() if managed.was_on == nimbus)

    def left_clusters(self) -> frozenset[str]:
        """The Nimbus addresses that resources which are invalid by now were managed on."""
        return frozenset(managed.was_on for managed in self.topologies() if managed.was_on)

    def note_question(self, nimbus: str, at_seconds: float) -> None:
        """The loop of that cluster begins to ask what becomes of its topologies."""
        with self._lock:
            self._unanswered.setdefault(nimbus, Unanswered(at_seconds))

    def note_obstacle(self, nimbus: str, why: str) -> None:
        """Why the loop of that cluster got no answer to what it asked, if it still waits for one."""
        with self._lock:
            if nimbus in self._unanswered:
                self._unanswered[nimbus] = replace(self._unanswered[nimbus], why=why)

    def note_answer(self, nimbus: str) -> None:
        """All was answered that was asked. While the loop does something else it asks nothing."""
        with self._lock:
            self._unanswered.pop(nimbus, None)

    def unanswered(self, nimbus: str) -> Unanswered | None:
        """What the loop of that cluster asks without an answer; None: it was answered, or has not asked yet."""
        with self._lock:
            return self._unanswered.get(nimbus)

    def put_rebalance(self, body: Body) -> None:
        with self._lock:
            self._rebalances.put(key_of(body), body)

    def put_listed_rebalances(self, bodies: Iterable[Body]) -> None:
        """Those of a list, which may have been read before the watch told of something newer."""
        for body in bodies:
            with self._lock:
                known = self._rebalances.get(key_of(body))
                if known is None or _version(known) < _version(body):
                    self._rebalances.put(key_of(body), body)

    def replace_rebalance(self, known: Body, body: Body) -> None:
        """What was made of `known` here, unless the watch has told of something newer since."""
        with self._lock:
            if self._rebalances.get(key_of(known)) is known:
                self._rebalances.put(key_of(known), body)

    def forget_rebalance(self, key: Key) -> None:
        with self._lock:
            self._rebalances.remove(key)

    def note_deleted_proposal(self, nimbus: str, key: Key) -> None:
        """A StormRebalance that was for that cluster is gone, and its plan had not begun."""
        with self._lock:
            self._deleted_proposals[nimbus] = self._deleted_proposals.get(nimbus, frozenset()) | {key}

    def take_deleted_proposals(self, nimbus: str) -> frozenset[Key]:
        """Those of `note_deleted_proposal`; each is given once."""
        with self._lock:
            return self._deleted_proposals.pop(nimbus, frozenset())

    def rebalance(self, key: Key) -> Body | None:
        with self._lock:
            return self._rebalances.get(key)

    def rebalances(self) -> tuple[Body, ...]:
        """All of them, oldest first: their names begin with the time of their plan."""
        with self._lock:
            return self._rebalances.of(ALL)

    def rebalances_of(self, owner: Managed) -> tuple[Body, ...]:
        """Those that belong to `owner`, oldest first."""
        with self._lock:
            return self._rebalances.of(owner.uid)


def _clusters_of(managed: Managed) -> tuple[tuple[str, str], ...]:
    if managed.spec is not None:
        return ((MANAGED_ON, managed.nimbus),)
    return ((LEFT_ON, managed.left_on),) if managed.left_on else ()


def _owners_of(rebalance: Body) -> tuple[str, ...]:
    """Their uids."""
    return tuple(str(reference.get("uid")) for reference in rebalance["metadata"].get("ownerReferences") or ())


def _version(body: Body) -> int:
    """Of two states of an object the later has the greater one; 0 where it has none, or none that is a number."""
    version = str(body["metadata"].get("resourceVersion", ""))
    return int(version) if version.isdecimal() else 0


def wishes_of(managed: tuple[Managed, ...]) -> Wishes:
    return frozenset((one.uid, one.generation, one.is_paused) for one in managed)


def rightful(managed: tuple[Managed, ...]) -> tuple[dict[str, Managed], dict[Key, Key]]:
    """Of resources that name the same topology one has it, see `Managed.claim`; an invalid one keeps what runs for it.

    Returns the owners by topology name, the valid ones, and by key the owner of those that came too late.
    """
    owners: dict[str, Managed] = {}
    late: dict[Key, Key] = {}
    for one in sorted(managed, key=lambda m: m.claim):
        if one.spec is None and not one.topology_id:
            continue
        owner = owners.setdefault(one.topology_name, one)
        if owner is not one:
            late[one.key] = owner.key
    return {name: one for name, one in owners.items() if one.spec is not None}, late

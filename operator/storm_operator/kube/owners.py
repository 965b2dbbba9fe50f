"""Whose the topologies of one Storm cluster are, and what those resources are told."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from storm_operator.adapters.kube.errors import KubernetesError
from storm_operator.core.model import name_of_topology
from storm_operator.core.refusal import Refusal
from storm_operator.core.topology_spec import PAUSED, TopologySpec
from storm_operator.kube.managed import NAME_TAKEN, Key, Managed, Registry, rightful
from storm_operator.kube.publisher import Publisher
from storm_operator.kube.status import refused_status, trouble_status


@dataclass(slots=True)
class Owners:
    """The resource that has each topology. `publisher` gives the present one: after another manager there is a new one.

    `gone` collects the uids of resources whose topology no longer needs us.
    """

    nimbus: str
    registry: Registry
    gone: set[str]
    publisher: Callable[[], Publisher]
    by_name: dict[str, Managed] = field(default_factory=dict)
    """By topology name."""
    refused: tuple[Refusal, ...] = ()
    """Resources that are paused, that are invalid while their topology runs on, or whose topology is another's."""

    def look(self) -> None:
        """Go by the resources that there are now; one that names a topology of another's is told so."""
        managed = self.registry.of_cluster(self.nimbus)
        invalid = self.registry.left_on(self.nimbus)
        self.by_name, late = rightful(managed + invalid)
        refused = [_refusal(one, one.problem) for one in invalid]
        for one in managed:
            if one.key in late and one.is_being_deleted:
                self.gone.add(one.uid)
            elif one.key in late:
                words = _why_late(one, late[one.key])
                self._refuse_late(one, words)
                refused.append(_refusal(one, words))
        paused = (one for one in self.by_name.values() if one.is_paused and not one.is_being_deleted)
        self.refused = (*refused, *(replace(_refusal(one, PAUSED), is_pause=True) for one in paused))

    def specs(self) -> dict[str, TopologySpec]:
        """By name, of those that are managed: neither paused nor about to go."""
        active = {name: one for name, one in self.by_name.items() if not one.is_being_deleted and not one.is_paused}
        return {name: one.spec for name, one in active.items() if one.spec is not None}

    def left_alone(self) -> frozenset[str]:
        """Names of the topologies whose StormTopology is paused, about to go or invalid by now: not those of nobody."""
        invalid = {one.topology_name for one in self.registry.left_on(self.nimbus)}
        return frozenset(invalid.union(self.by_name) - self.specs().keys())

    def of_id(self, topology_id: str) -> Managed | None:
        # Storm makes an id of the name, a counter and the time.
        return self.by_name.get(name_of_topology(topology_id))

    def holder_of_id(self, topology_id: str) -> Managed | None:
        """As `of_id`; also one that is invalid by now, and that the topology runs for."""
        name = name_of_topology(topology_id)
        invalid = (one for one in self.registry.left_on(self.nimbus) if one.topology_name == name)
        return self.by_name.get(name) or next(invalid, None)

    def namespace_of(self, name: str) -> str:
        return self.by_name[name].key[0] if name in self.by_name else ""

    def tell(self, name: str, reason: str, message: str, warning: bool) -> None:
        """An event on the resource of topology `name`, if it has one."""
        if name in self.by_name:
            self.publisher().tell(self.by_name[name], reason, message, warning)

    def tell_trouble(self, words: str, reason: str) -> None:
        """What is in the way of all of them, in their statuses."""
        for one in self.by_name.values():
            status = trouble_status(self.publisher().as_known(one), reason, words, time.time())
            self.publisher().write_status(one, status)

    def note_suspension(self, name: str, topology_id: str) -> None:
        """See `LifecycleManager.before_suspending`. Raises `KubernetesError`."""
        note = {"topologyId": topology_id, "suspendedByOperator": True}
        if self.publisher().write_status(self.by_name[name], note):
            raise KubernetesError(f"{name}: not suspended: its status cannot be written, and would have to tell of it")

    def _refuse_late(self, one: Managed, words: str) -> None:
        status = refused_status(self.publisher().as_known(one), NAME_TAKEN, words, time.time())
        self.publisher().write_status(one, {**status, "topologyId": None})


def _why_late(one: Managed, owner: Key) -> str:
    return (
        f"topology {one.topology_name!r} belongs to StormTopology {'/'.join(owner)};"
        " choose another topologyName, or delete that one"
    )


def _refusal(one: Managed, why: str) -> Refusal:
    return Refusal(f"StormTopology {'/'.join(one.key)}: {why}", one.topology_name)

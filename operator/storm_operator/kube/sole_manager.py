"""One loop's part in the lock of its Storm cluster: no other release, name of Nimbus or standalone acts beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from storm_operator.adapters.manager_lock import Holder, HolderAwaited, ManagedByAnother, ManagerLock, this_process
from storm_operator.assembly import ClusterConnection, manager_lock
from storm_operator.kube.managed import Managed
from storm_operator.kube.publisher import Publisher
from storm_operator.kube.status import trouble_status

MANAGED_BY_ANOTHER = "ManagedByAnother"
"""Reason of condition `Degraded`, and of an event."""
AWAITED_LOOK_SECONDS = 0.5
"""So often it is looked whether the session of a holder that may be dead has ended."""


@dataclass(slots=True)
class SoleManager:
    """`nimbus` is the cluster's name for this loop."""

    nimbus: str
    say: Callable[[str], None]
    lock: ManagerLock | None = None
    connection: ClusterConnection | None = None
    awaits: bool = False
    """Whether a holder is waited for that may be dead or about to end: nobody need know yet."""
    said: str = ""
    """Why the cluster is not managed, as it was said last."""
    told: set[tuple[str, str]] = field(default_factory=set)
    """Uid of each resource whose status was made to say it, and the words."""

    def take(self, connection: ClusterConnection, pod: str) -> None:
        """Before anything of the cluster is touched. Raises as `ManagerLock.take`; a place in the queue is kept.

        `pod` is NAMESPACE/NAME of the operator's, empty outside of one.
        """
        if self.has_lost or connection != self.connection:
            self.close()
        if self.lock is None:
            self.lock, self.connection = manager_lock(connection, this_process(self.nimbus, pod)), connection
        try:
            self.lock.take()
        except HolderAwaited as error:
            self.awaits = True
            self._say_once(f"waiting: {error}")
            raise
        self.said = ""
        self.told.clear()

    def confirm(self) -> None:
        """Before each deed. Raises `ManagedByAnother`, and `AdapterError` while ZooKeeper does not tell."""
        if self.lock is None:
            raise RuntimeError(f"{self.nimbus}: nothing may be done without the lock of the cluster's managers")
        self.lock.take()

    @property
    def has_lost(self) -> bool:
        """Whether it was taken here, and another has it now."""
        return self.lock is not None and self.lock.is_lost

    def tell(self, owners: Collection[Managed], publisher: Publisher, other: ManagedByAnother) -> None:
        """Who manages the cluster, and what to do.

        Each resource is told once: what is written into its status afterwards is of an operator that manages it. One
        that was none of `owners` meanwhile is told again: its status says what was wrong with its spec.
        """
        if self.has_lost:
            self.say(f"{self.nimbus}: {other}")
        words = describe(other.holder, self.nimbus)
        self._say_once(words)
        uids = {one.uid for one in owners}
        self.told = {(uid, told) for uid, told in self.told if uid in uids}
        for one in owners:
            if (one.uid, words) in self.told:
                continue
            publisher.tell(one, MANAGED_BY_ANOTHER, words, warning=True)
            status = trouble_status(publisher.as_known(one), MANAGED_BY_ANOTHER, words, time.time())
            if not publisher.write_status(one, status):
                self.told.add((one.uid, words))

    def close(self) -> None:
        """Whoever comes next in the queue may begin at once."""
        if self.lock is not None:
            self.lock.close()
            self.lock = None

    def _say_once(self, words: str) -> None:
        if words != self.said:
            self.said = words
            self.say(f"{self.nimbus}: {words}")


def describe(holder: Holder, nimbus: str) -> str:
    """Who manages the cluster that a loop of this process knows as `nimbus`, and what to do about it."""
    if holder.is_in_process_of(this_process()):
        return (
            f"Nimbus {nimbus} is of the Storm cluster that is managed as {holder.nimbus} already: give all its"
            " StormTopologies the same spec.nimbus (one whose topology runs, by status.topologyId, cannot change it:"
            " delete that with deletionPolicy Leave, and make another)"
        )
    if holder.nimbus:
        return (
            f"another operator manages the Storm cluster of Nimbus {nimbus}, {holder}: let one of the two watch all"
            " StormTopologies of this cluster, and the other none"
        )
    return (
        f"storm-operator standalone manages the Storm cluster of Nimbus {nimbus}, {holder}: end it, its topologies run"
        " on; or let no StormTopology name this Nimbus"
    )

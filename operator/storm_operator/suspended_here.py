"""Which topologies standalone mode suspended, kept for its next life: of adopted ones it may resume only these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from storm_operator.adapters.errors import MalformedDocument
from storm_operator.lifecycle_manager import LifecycleManager
from storm_operator.lifecycle_progress import Progress, Stage


class SuspendedDocument(Protocol):
    """Ids of topologies by their names. Raises `AdapterError`."""

    def read_suspended(self) -> Mapping[str, str]: ...

    def write_suspended(self, topologies: Mapping[str, str]) -> None: ...


@dataclass(slots=True)
class SuspendedHere:
    """`recall` once before the first step of the lifecycle, `keep` after each; of those between it is told."""

    document: SuspendedDocument
    lifecycle: LifecycleManager
    say: Callable[[str], None]
    kept: Mapping[str, str] | None = None
    """What the document says; None when that is not known."""

    def __post_init__(self) -> None:
        self.lifecycle.before_suspending = self._note

    def recall(self) -> None:
        """What cannot be read is said, and then written anew: it must not keep everything else waiting."""
        try:
            self.kept = self.document.read_suspended()
        except MalformedDocument as error:
            self.say(f"adopted topologies that an earlier life suspended are left so: {error}")
            return
        for name, topology_id in self.kept.items():
            self.lifecycle.remember(name, Progress(Stage.SUSPENDED, "", topology_id), suspended=True)

    def keep(self) -> None:
        self._write(self.lifecycle.suspended)

    def _note(self, name: str, topology_id: str) -> None:
        self._write({**self.lifecycle.suspended, name: topology_id})

    def _write(self, topologies: Mapping[str, str]) -> None:
        if topologies != self.kept:
            self.document.write_suspended(topologies)
            self.kept = topologies

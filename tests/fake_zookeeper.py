"""A ZooKeeper in memory whose sessions can end, for the lock that managers of one Storm cluster share."""

from __future__ import annotations

from dataclasses import dataclass, field

from storm_operator.adapters.errors import ZooKeeperUnreachable
from storm_operator.adapters.manager_lock import Holder, decode_holder

QUEUE = "/storm/storm-operator/standalone"


@dataclass
class FakeZooKeeper:
    """Nodes in a dictionary, each with the session that it ends with."""

    nodes: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    count: int = 0
    answers: bool = True
    answers_left: int | None = None
    """After so many more it answers no longer; None: as `answers` says."""
    refused: int = 0

    def expire(self, session: str) -> None:
        self.nodes = {path: node for path, node in self.nodes.items() if node[0] != session}

    def holders(self) -> list[Holder]:
        return [decode_holder(path, content) for path, (_, content) in sorted(self.nodes.items())]


@dataclass
class FakeSession:
    zookeeper: FakeZooKeeper
    name: str

    def _ask(self) -> dict[str, tuple[str, bytes]]:
        left = self.zookeeper.answers_left
        if left is not None:
            self.zookeeper.answers_left = max(0, left - 1)
        if not self.zookeeper.answers or left == 0:
            self.zookeeper.refused += 1
            raise ZooKeeperUnreachable("no answer")
        return self.zookeeper.nodes

    def get(self, path: str) -> bytes | None:
        found = self._ask().get(path)
        return found[1] if found else None

    def put(self, path: str, content: bytes) -> None:
        self._ask()[path] = ("", content)

    def remove(self, path: str) -> None:
        self._ask().pop(path, None)

    def children(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(node.removeprefix(f"{path}/") for node in self._ask() if node.startswith(f"{path}/")))

    def enqueue(self, path: str, content: bytes) -> str:
        self.zookeeper.count += 1
        name = f"{path}{self.zookeeper.count:010}"
        self._ask()[name] = (self.name, content)
        return name

    def close(self) -> None:
        self.zookeeper.expire(self.name)

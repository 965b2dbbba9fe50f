"""Cgroups of single threads, as the agent makes them, in memory."""

from __future__ import annotations

import errno

from storm_operator.agent.cgroups import Bandwidth


class FakeCgroups:
    """Groups in memory, and what was done to them, in order."""

    mode = "cgroup-v1"

    def __init__(self, *existing: str, ceiling: float | None = None) -> None:
        self.groups: dict[str, tuple[Bandwidth | None, list[int]]] = {name: (None, []) for name in existing}
        self.ceiling = ceiling
        self.deeds: list[str] = []
        self.fails: dict[str, int] = {}
        self.waited_seconds: float | None = 0.0
        self.has_controller = False

    def _do(self, deed: str, name: str) -> None:
        if name in self.fails and deed != "remove":
            raise OSError(self.fails[name], "refused")
        self.deeds.append(deed)

    def prepare(self) -> None:
        self.has_controller = True

    def can_limit(self) -> bool:
        return self.has_controller

    def close(self) -> None: ...

    def ceiling_millicores(self) -> float | None:
        return self.ceiling

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.groups))

    def create(self, name: str) -> None:
        self._do("create", name)
        self.groups[name] = (None, [])

    def limit(self, name: str, bandwidth: Bandwidth) -> None:
        self._do("limit", name)
        self.groups[name] = (bandwidth, self.groups[name][1])

    def add_thread(self, name: str, tid: int) -> None:
        self._do("add", name)
        self.groups[name][1].append(tid)

    def keep_only(self, name: str, tid: int) -> None:
        if name not in self.groups:
            raise FileNotFoundError(errno.ENOENT, "gone")
        self.groups[name][1][:] = [tid]

    def throttled_seconds(self, name: str) -> float | None:
        return self.waited_seconds if name in self.groups else None

    def remove(self, name: str) -> None:
        self._do("remove", name)
        self.groups.pop(name, None)

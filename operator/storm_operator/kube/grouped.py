"""Values by key, in groups: those of one group are found without a look at all others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ALL: Final = object()
"""A group that every value is in."""


class Grouped(Generic[K, V]):
    """Not thread-safe. `groups_of` gives the groups of a value, and `order` what keys are sorted by."""

    def __init__(self, groups_of: Callable[[V], Collection[Hashable]], order: Callable[[K], tuple[str, ...]]) -> None:
        self._groups_of = groups_of
        self._order = order
        self._values: dict[K, V] = {}
        self._groups: dict[K, tuple[Hashable, ...]] = {}
        self._keys: dict[Hashable, set[K]] = {}
        self._sorted: dict[Hashable, tuple[V, ...]] = {}
        """By group, where nothing has changed since somebody asked."""

    def get(self, key: K) -> V | None:
        return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        """In the place of what had that key."""
        self.remove(key)
        self._values[key] = value
        self._groups[key] = (ALL, *self._groups_of(value))
        for group in self._groups[key]:
            self._keys.setdefault(group, set()).add(key)
            self._sorted.pop(group, None)

    def remove(self, key: K) -> None:
        """Nothing where nothing has that key."""
        self._values.pop(key, None)
        for group in self._groups.pop(key, ()):
            self._keys[group].discard(key)
            self._sorted.pop(group, None)
            if not self._keys[group]:
                del self._keys[group]

    def of(self, group: Hashable) -> tuple[V, ...]:
        """The values of that group, sorted."""
        if group not in self._keys:
            return ()
        if group not in self._sorted:
            self._sorted[group] = tuple(self._values[key] for key in sorted(self._keys[group], key=self._order))
        return self._sorted[group]

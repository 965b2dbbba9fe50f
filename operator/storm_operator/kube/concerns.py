"""What the operator does beside plans may fail one by one: it is said, shown, and tried again ever more slowly."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from storm_operator.adapters.errors import OUT_OF_REACH, AdapterError
from storm_operator.core.backoff import SLOWEST_RETRY_SECONDS, Retry, may_try, put_off

Tell = Callable[[str, str], None]
"""Takes reason and message of an event."""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Concern:
    """What may fail: one word for the failure, what it is about, and the topologies whose statuses show it."""

    reason: str
    about: str
    topologies: frozenset[str] = frozenset()

    @property
    def key(self) -> Key:
        return self.reason, self.about


@dataclass(frozen=True, slots=True)
class Trouble:
    """A concern that failed last time, and how."""

    concern: Concern
    message: str
    retry: Retry


@dataclass(slots=True)
class Concerns:
    """Those that failed. One that nobody tried again although it was time is no trouble any more."""

    now: Callable[[], float]
    say: Callable[[str], None]
    troubles: dict[Key, Trouble] = field(default_factory=dict)

    def attempt(
        self, concern: Concern, act: Callable[[], object], tell: Tell | None = None, identity: str = ""
    ) -> bool:
        """Whether `act` was done. Not tried while it is put off, unless `identity`, what it would do, is another.

        Raises `OUT_OF_REACH`: who gives no answer has refused nothing, and without that peer nothing else is possible.
        """
        known = self.troubles.get(concern.key)
        if not may_try(known.retry if known else None, identity, self.now()):
            return False
        try:
            act()
        except OUT_OF_REACH:
            raise
        except AdapterError as error:
            self.fail(concern, str(error), tell, identity)
            return False
        self.troubles.pop(concern.key, None)
        return True

    def fail(self, concern: Concern, message: str, tell: Tell | None = None, identity: str = "") -> None:
        """It failed, or was found impossible without a try."""
        known = self.troubles.get(concern.key)
        retry = put_off(known.retry if known else None, identity, self.now())
        self.troubles[concern.key] = Trouble(concern, message, retry)
        if known is None or known.message != message:
            self.say(f"{concern.reason}: {message}")
        if tell is not None:
            tell(concern.reason, message)

    def settle(self, concern: Concern) -> None:
        """It is no trouble now."""
        self.troubles.pop(concern.key, None)

    def keep(self, reason: str, abouts: Collection[str]) -> None:
        """Of one kind only those about something that is still wanted."""
        self.troubles = {k: t for k, t in self.troubles.items() if k[0] != reason or k[1] in abouts}

    def of(self, topology: str) -> tuple[Trouble, ...]:
        """Those that the topology's status shows, in order."""
        self._forget_untried()
        return tuple(t for _, t in sorted(self.troubles.items()) if topology in t.concern.topologies)

    def _forget_untried(self) -> None:
        oldest = self.now() - 2 * SLOWEST_RETRY_SECONDS
        self.troubles = {k: t for k, t in self.troubles.items() if t.retry.not_before_seconds > oldest}

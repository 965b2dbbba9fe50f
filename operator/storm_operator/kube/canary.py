"""Compares what a watch delivered with a fresh listing: whether it has delivered all yet, and whether it has frozen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.kube.errors import KubernetesError
from storm_operator.core.backoff import Retry, put_off
from storm_operator.kube.managed import Body, Key, key_of

LOOK_SECONDS = 30.0
FIRST_LOOK_SECONDS = 0.5
"""At the start everything waits for the watch to have delivered all: it is looked so often whether it has."""
TOLERATED_LOOKS = 3
"""A listing may be ahead of the watch for a moment; the same gap this many times in a row is a frozen watch."""


def behind(listed: Mapping[Key, str], watched: Mapping[Key, str]) -> dict[Key, str]:
    """Pure: the resources whose listed version the watch has not delivered, with that version."""
    return {key: version for key, version in listed.items() if watched.get(key) != version}


@dataclass(slots=True)
class WatchCanary:
    """Lists what the operator watches, of one kind, from time to time.

    `listed` asks the API server, for all of them or only some; `watched` gives what the watch has delivered.
    """

    kind: str
    listed: Callable[[], Iterable[Body]]
    watched: Callable[[], Iterable[Body]]
    say: Callable[[str], None]
    look_seconds: float = LOOK_SECONDS
    gaps: dict[Key, tuple[str, int]] = field(default_factory=dict)
    """By resource: the version that is missing and in how many looks it was."""
    ended: Callable[[Body], None] | None = None
    """Told of a resource that is there no longer, which the watch has not told of: none tells of it later."""
    is_gone: Callable[[Body], bool] = lambda _: True
    """Asked about one that is not listed: where `listed` lists only some, it may be there. Raises `KubernetesError`."""
    unlisted: dict[str, int] = field(default_factory=dict)
    """By uid of a resource that the watch has delivered: in how many looks in a row it was not listed."""
    clock: Callable[[], float] = time.monotonic
    whole_at: float | None = None
    """When the watch was last seen to have delivered all, by `clock`."""

    def run(self, stop: threading.Event) -> None:
        self.whole_at = self.clock()
        while not stop.wait(self.look_seconds):
            self.look()

    def wait_until_whole(self, stop: threading.Event) -> bool:
        """Block until the watch has delivered all that there is, in whatever version; False when `stop` came first.

        It is compared and not taken from the listing: what is deleted meanwhile the watch would never tell of again.
        """
        said = ""
        refused: Retry | None = None
        while not stop.is_set():
            try:
                missing = sorted(_versions(self.listed()).keys() - _versions(self.watched()).keys())
            except KubernetesError as error:
                self.say(f"no loop begins before the watch of {self.kind} has delivered all: {error}")
                refused = put_off(refused, "", self.clock())
                stop.wait(refused.pause_seconds)
                continue
            if not missing:
                return True
            words = f"no loop begins before the watch of {self.kind} has delivered {'/'.join(missing[0])}"
            if words != said:
                self.say(words)
            said, refused = words, None
            stop.wait(FIRST_LOOK_SECONDS)
        return False

    def look(self) -> None:
        """One comparison. An API server that does not answer says nothing about the watch."""
        watched_before = tuple(self.watched())
        before = _versions(watched_before)
        try:
            listed_bodies = tuple(self.listed())
        except KubernetesError as error:
            self.say(str(error))
            return
        listed, now = _versions(listed_bodies), _versions(self.watched())
        # Of what the watch has told meanwhile it may know more than the listing: that is no gap.
        late = {key: version for key, version in behind(listed, now).items() if before.get(key) == now.get(key)}
        # Whatever version is missing now, a resource that has been behind all along counts on.
        self.gaps = {key: (version, self.gaps.get(key, ("", 0))[1] + 1) for key, version in late.items()}
        if not late:
            self.whole_at = self.clock()
        if self.ended is not None:
            self._let_go(self.ended, watched_before, frozenset(map(_uid, listed_bodies)))

    def _let_go(self, ended: Callable[[Body], None], watched: Iterable[Body], listed: Collection[str]) -> None:
        """Of what was known before the listing: what that does not have was deleted, if it lacks it again and again."""
        gone = {_uid(body): body for body in watched if _uid(body) not in listed}
        self.unlisted = {uid: self.unlisted.get(uid, 0) + 1 for uid in gone}
        for uid, body in gone.items():
            if self.unlisted[uid] >= TOLERATED_LOOKS and self._is_gone(body):
                self.say(f"{'/'.join(key_of(body))} of {self.kind} is gone; the watch has not told of it")
                ended(body)

    def _is_gone(self, body: Body) -> bool:
        try:
            return self.is_gone(body)
        except KubernetesError as error:
            self.say(str(error))
            return False

    def age_seconds(self) -> float | None:
        """Since the watch was last seen to have delivered all that there is; None before that was ever seen."""
        return None if self.whole_at is None else self.clock() - self.whole_at

    def problem(self) -> str:
        """Why the watch is taken for frozen; empty while it is not."""
        frozen = sorted(key for key, (_, looks) in self.gaps.items() if looks >= TOLERATED_LOOKS)
        return f"the watch of {self.kind} is frozen: it has not seen {'/'.join(frozen[0])}" if frozen else ""


def _uid(body: Body) -> str:
    return str(body["metadata"].get("uid", ""))


def _versions(bodies: Iterable[Body]) -> dict[Key, str]:
    return {key_of(body): str(body["metadata"].get("resourceVersion", "")) for body in bodies}

"""What is said about recording on command lines and in charts. The recorder's libraries are imported when it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from storm_operator.loop_ports import Listener


class NoHistory(Exception):
    """History cannot be recorded; the message says why."""


class HistoryRecorder(Listener, Protocol):
    """A listener that keeps what it hears."""

    def close(self, patience_seconds: float = 30.0) -> None:
        """Write and publish what is left; gives up, and says so, where all of that takes `patience_seconds`."""


MOST_DAYS = 36_500.0
MOST_GIGABYTES = 1e6
"""What command lines take: longer, or more, is a slip."""


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """Where history is recorded (a folder or a URL), under which name of the cluster, and how much of it is kept.

    `cluster` None: the address of its Nimbus.
    """

    root: str
    cluster: str | None = None
    keep_days: float = 400.0
    keep_gigabytes: float = 20.0


def insist_on_plain(cluster: str) -> None:
    """`NoHistory` where a cluster's name has other letters than ASCII's, or leads out of its folder.

    It becomes a folder's name, in which they are escaped byte by byte, and Spark would read a letter for each byte.
    """
    if not cluster.isascii():
        raise NoHistory(f"the name of a cluster in the history is of ASCII characters, which {cluster!r} is not")
    if cluster in (".", ".."):
        raise NoHistory(f"the name of a cluster in the history is one that a folder can have, which {cluster!r} is not")


def start_recorder(
    settings: HistorySettings, nimbus: str, say: Callable[[str], None], insist: bool = False
) -> HistoryRecorder:
    """A recorder at work. Raises `NoHistory`; with `insist` also where nothing can be written there now."""
    insist_on_plain(settings.cluster or nimbus)
    try:
        from storm_operator.history.recording import start
    except ImportError as error:
        raise NoHistory(
            f"the extra `history` is not installed (pip install '.[history]' in a clone of storm-operator): {error}"
        ) from error
    try:
        return start(settings, nimbus, say, insist)
    except (OSError, ValueError, ImportError) as error:
        raise NoHistory(f"{settings.root!r} cannot be written to: {error}") from error


def recorder_or_none(
    settings: HistorySettings | None, nimbus: str, say: Callable[[str], None]
) -> HistoryRecorder | None:
    """A recorder at work where one is wished for; what is in its way is said, and stops nothing."""
    if settings is None:
        return None
    try:
        return start_recorder(settings, nimbus, say)
    except NoHistory as error:
        say(f"{nimbus}: no history is recorded: {error}")
        return None

"""CPU limits as the operator writes them into ZooKeeper, followed as they change.

The contract is docs/reference/interfaces.md, "CPU limits". While ZooKeeper cannot be reached the last known limits
stay: an outage must neither free nor stop anybody.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import WatchedEvent
from kazoo.retry import KazooRetry

from storm_operator.core.cpu_quantity import MOST_MILLICORES
from storm_operator.core.finite import number_in_words
from storm_operator.core.short_repr import short_repr

VERSION = 1
LIMITS_NODE = "cpu-limits"
SESSION_TIMEOUT_SECONDS = 20.0
LONGEST_RECONNECT_PAUSE_SECONDS = 5.0
RESYNC_SECONDS = 30.0
RETRY_SECONDS = 3.0
EVERYTHING = None
"""In place of the path that changed, where watches do not tell it."""
UNANSWERED_SECONDS = 15.0
"""ZooKeeper may come up later; one that has not answered after so long is perhaps not where it is said to be."""

log = logging.getLogger(__name__)


class LimitsError(ValueError):
    """A document that is not a set of CPU limits; the message names the field."""


@dataclass(frozen=True, slots=True, order=True)
class ExecutorKey:
    """An executor without its component's name, which limits do not carry."""

    topology_id: str
    task_start: int
    task_end: int


Limits = Mapping[ExecutorKey, float]


def parse_limits(document: bytes | None, topology_id: str) -> dict[ExecutorKey, float]:
    """Millicores per executor in a version 1 document for `topology_id`; LimitsError when it is malformed.

    A node of ZooKeeper without data has None as its document.
    """
    try:
        fields = json.loads(document or b"")
    except (ValueError, RecursionError) as error:
        raise LimitsError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise LimitsError(f"must be a JSON object, not {type(fields).__name__}")
    if fields.get("version") != VERSION:
        raise LimitsError(f"version is {short_repr(fields.get('version'))}, only {VERSION} is known here")
    if fields.get("topology_id") != topology_id:
        raise LimitsError(f"topology_id is {short_repr(fields.get('topology_id'))}, the node is named {topology_id!r}")
    rows = fields.get("limits")
    if not isinstance(rows, list):
        raise LimitsError(f"limits must be a list, not {short_repr(rows)}")
    return dict(_parse_row(f"limits[{index}]", row, topology_id) for index, row in enumerate(rows))


def _parse_row(where: str, row: Any, topology_id: str) -> tuple[ExecutorKey, float]:
    if not isinstance(row, dict):
        raise LimitsError(f"{where} must be an object, not {short_repr(row)}")
    tasks = []
    for name in ("task_start", "task_end"):
        value = row.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise LimitsError(f"{where}.{name} must be a whole number, not {short_repr(value)}")
        tasks.append(value)
    millicores = row.get("millicores")
    if not isinstance(millicores, int | float) or isinstance(millicores, bool):
        raise LimitsError(f"{where}.millicores must be a number, not {short_repr(millicores)}")
    if not 0 < millicores <= MOST_MILLICORES:
        raise LimitsError(
            f"{where}.millicores must be a number above 0 and at most {MOST_MILLICORES:.0f},"
            f" not {number_in_words(millicores)}"
        )
    return ExecutorKey(topology_id, tasks[0], tasks[1]), float(millicores)


class LimitsReader:
    """Follows `<root>/cpu-limits` in a thread of its own; `on_change` is called there after each change."""

    def __init__(self, hosts: str, root: str, on_change: Callable[[], None]) -> None:
        self._hosts = hosts
        # As watches tell it: with a slash at its beginning, and none twice.
        self._path = "".join(f"/{part}" for part in (*root.split("/"), LIMITS_NODE) if part)
        self._on_change = on_change
        self._limits: dict[str, dict[ExecutorKey, float]] = {}
        self._documents: dict[str, bytes | None] = {}
        self._changed: deque[str | None] = deque()
        self._look = threading.Event()
        self._stopped = threading.Event()
        self._has_answered = False
        self._complained = False
        self._is_absent = False
        self._why_unread = ""
        forever = KazooRetry(max_tries=-1, delay=0.5, max_delay=LONGEST_RECONNECT_PAUSE_SECONDS)
        self._client = KazooClient(hosts=hosts, timeout=SESSION_TIMEOUT_SECONDS, connection_retry=forever)
        self._client.add_listener(self._on_state)
        self._thread = threading.Thread(target=self._follow, name="cpu-limits", daemon=True)

    def start(self) -> None:
        """Returns at once; ZooKeeper may come up later."""
        self._client.start_async()
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._look.set()
        self._client.stop()
        self._client.close()

    def limits(self) -> Limits:
        """The limits last known, over all topologies."""
        return {key: limit for limits in tuple(self._limits.values()) for key, limit in limits.items()}

    def _on_state(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._look_at(EVERYTHING)
        elif not self._stopped.is_set():
            self._complained = True
            log.warning("ZooKeeper connection is %s: keeping the CPU limits last known", state.lower())

    def _on_watch(self, event: WatchedEvent) -> None:
        self._look_at(event.path or EVERYTHING)  # no path: the watches themselves are lost

    def _look_at(self, path: str | None) -> None:
        self._changed.append(path)
        self._look.set()

    def _follow(self) -> None:
        pause, is_unread = UNANSWERED_SECONDS, True
        while not self._stopped.is_set():
            is_unread |= not self._look.wait(pause)
            self._look.clear()
            pause = RESYNC_SECONDS
            if self._stopped.is_set():
                continue
            if not self._client.connected:
                self._note_unanswered()
                continue
            self._note_answer()
            try:
                self._read_changed(everything=is_unread)
                is_unread, self._why_unread = False, ""
            except (KazooException, KazooTimeoutError) as error:
                self._note_unread(f"{type(error).__name__} {error}")
                pause, is_unread = RETRY_SECONDS, True

    def _note_unread(self, why: str) -> None:
        if why != self._why_unread:
            self._why_unread = why
            log.warning("cannot read %s, trying again: %s", self._path, why)

    def _note_unanswered(self) -> None:
        if not self._has_answered and not self._complained:
            self._complained = True
            log.warning(
                "ZooKeeper %s has not answered for %.0f s, no CPU limits are known: check that it runs, and that its"
                " address is right in --zookeeper",
                self._hosts,
                UNANSWERED_SECONDS,
            )

    def _note_answer(self) -> None:
        self._has_answered = True
        if self._complained:
            self._complained = False
            log.info("ZooKeeper %s answers: following its CPU limits", self._hosts)

    def _read_changed(self, *, everything: bool) -> None:
        """Reads the limits that changed and leaves watches, so that the next change is seen at once."""
        changed: set[str | None] = set()
        while self._changed:
            changed.add(self._changed.popleft())
        everything |= EVERYTHING in changed
        topology_ids: Collection[str] = self._documents
        if everything or self._path in changed:
            topology_ids = self._topology_ids()
        documents: dict[str, bytes | None] = {}
        for topology_id in topology_ids:
            path = f"{self._path}/{topology_id}"
            if topology_id in self._documents and path not in changed and not everything:
                documents[topology_id] = self._documents[topology_id]
                continue
            try:
                documents[topology_id], _ = self._client.get(path, watch=self._on_watch)
            except NoNodeError:
                continue  # removed this very moment
        if documents == self._documents:
            return
        # Replaced as a whole, since others read it meanwhile.
        self._limits = {topology_id: self._parse(topology_id, document) for topology_id, document in documents.items()}
        self._documents = documents
        self._on_change()

    def _topology_ids(self) -> list[str]:
        """Those that have limits. The node is made by who writes them first: one made here would hide a wrong root."""
        if self._client.exists(self._path, watch=self._on_watch) is not None:
            self._is_absent = False
            return list(self._client.get_children(self._path, watch=self._on_watch))
        if not self._is_absent:
            self._is_absent = True
            log.info(
                "nobody has written CPU limits yet: there is no %s; should there be, --zookeeper-root is not the"
                " operator's node, Storm's storm.zookeeper.root with /storm-operator after it",
                self._path,
            )
        return []

    def _parse(self, topology_id: str, document: bytes | None) -> dict[ExecutorKey, float]:
        """The new limits, or the last good ones when the new are malformed."""
        known = self._limits.get(topology_id, {})
        if document == self._documents.get(topology_id):
            return known
        try:
            return parse_limits(document, topology_id)
        except LimitsError as error:
            log.warning("keeping the last CPU limits of %s, the new ones are malformed: %s", topology_id, error)
            return known

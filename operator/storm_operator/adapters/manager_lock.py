"""One manager for each Storm cluster, standalone or in Kubernetes: two would each plan against what the other does.

Whoever wants to manage queues up in Storm's ZooKeeper with a node that lives as long as its session; the first in the
queue manages (docs/reference/interfaces.md, "Manager lock"). Since every node has a name of its own, one that a dead
operator left behind can be removed without ever hitting a successor's.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from storm_operator.adapters.errors import AdapterError, MalformedDocument
from storm_operator.adapters.json_fields import decode_object, take
from storm_operator.adapters.nimbus.supervisors import DEFAULT_STORM_ROOT
from storm_operator.adapters.zookeeper import Nodes

VERSION = 1
"""Not raised for `nimbus` and `pod`: who knows only version 1 reads the rest rightly. What it refuses to read it would
not see as its successor, and go on."""
SESSION_TIMEOUT_SECONDS = 6.0
PATIENCE_SECONDS = SESSION_TIMEOUT_SECONDS + 4.0
"""A dead holder's node is gone by then: ZooKeeper looks for sessions that have timed out once in some seconds."""
LOOK_SECONDS = 30.0
RETRY_SECONDS = 2.0
STATE_FIELD, START_TIME_FIELD = 3, 22  # of /proc/PID/stat, counted from 1 as in proc(5)


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that manages the cluster, or wants to; in Kubernetes one loop of it.

    `started_ticks` is when it started, in clock ticks after boot; `pid_space` names the running kernel and the process
    namespace that `pid` is of. By both a neighbour can tell whether it still lives; 0 or empty where unknown.
    `nimbus` is the cluster's name for that loop, empty of a standalone; `pod` is NAMESPACE/NAME, empty outside of one.
    """

    host: str
    pid: int
    started_ticks: int = 0
    pid_space: str = ""
    nimbus: str = ""
    pod: str = ""

    def __str__(self) -> str:
        return f"pod {self.pod}" if self.pod else f"pid {self.pid} on {self.host}"

    def is_neighbour_of(self, other: Holder) -> bool:
        """Whether either can see the other's process."""
        return self.pid_space != "" and self.pid_space == other.pid_space

    def is_in_process_of(self, other: Holder) -> bool:
        """Whether both are of the same process, by whatever names of the cluster."""
        return replace(self, nimbus=other.nimbus, pod=other.pod) == other


class ManagedByAnother(Exception):
    """Another, `holder`, manages the cluster; the message says who, and what a standalone can do."""

    def __init__(self, message: str, holder: Holder) -> None:
        super().__init__(message)
        self.holder = holder


class HolderAwaited(AdapterError):
    """Another has the lock, and may be dead or about to end: then it is free within `PATIENCE_SECONDS`."""


class QueueNodes(Nodes, Protocol):
    """Nodes of one session that is for the lock alone; some end with it."""

    def enqueue(self, path: str, content: bytes) -> str:
        """Adds a node that ends with the session, named `path` and a number higher than all before; its path."""

    def close(self) -> None:
        """Ends the session."""


def this_process(nimbus: str = "", pod: str = "") -> Holder:
    """Who we are; see `Holder` for both arguments."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        pid_space = f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        pid_space = ""
    _, started_ticks = _state_and_start(os.getpid()) or ("", 0)
    return Holder(socket.gethostname(), os.getpid(), started_ticks, pid_space if started_ticks else "", nimbus, pod)


def is_gone(holder: Holder) -> bool:
    """Whether the process of `holder`, a neighbour of this one, has ended for certain."""
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # another user's, and /proc may hide it
    seen = _state_and_start(holder.pid)
    return seen is not None and (seen[0] in "ZX" or seen[1] != holder.started_ticks)


def _state_and_start(pid: int) -> tuple[str, int] | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # The name, field 2, is in parentheses and may hold anything, so count from its end.
        fields = stat.rpartition(")")[2].split()
        return fields[STATE_FIELD - 3], int(fields[START_TIME_FIELD - 3])
    except (OSError, ValueError, IndexError):
        return None


def encode_holder(holder: Holder) -> bytes:
    return json.dumps({"version": VERSION, **asdict(holder)}, separators=(",", ":")).encode("utf-8")


def decode_holder(where: str, content: bytes) -> Holder:
    """MalformedDocument when `content`, found at `where`, is none."""
    fields = decode_object(where, content)
    if fields.get("version") != VERSION:
        raise MalformedDocument(f"{where}: version is {fields.get('version')!r}; only {VERSION} is known here")
    fields = {"nimbus": "", "pod": "", **fields}  # those of before the operator in Kubernetes took the lock have none
    return Holder(
        take(fields, where, "host", str),
        take(fields, where, "pid", int),
        take(fields, where, "started_ticks", int),
        take(fields, where, "pid_space", str),
        take(fields, where, "nimbus", str),
        take(fields, where, "pod", str),
    )


class ManagerLock:
    """Held from `take` to `close`, over lost sessions too; `on_lost` is called once another has it meanwhile.

    `connected` is set whenever `nodes` get connected: whether the lock is still held is looked at then.
    """

    def __init__(
        self,
        nodes: QueueNodes,
        connected: threading.Event,
        on_lost: Callable[[], None],
        storm_root: str = DEFAULT_STORM_ROOT,
        me: Holder | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nodes = nodes
        self._on_lost = on_lost
        self._path = f"{storm_root}/storm-operator/standalone"
        self._me = me or this_process()
        self._clock = clock
        self._mine = ""
        self._held = ""
        self._patient_until: float | None = None
        self._taken_by: Holder | None = None
        self._looking = threading.Lock()
        self._look = connected
        self._closed = threading.Event()
        self._keeper: threading.Thread | None = None

    def take(self) -> None:
        """Manage from now on, or still: ZooKeeper is asked each time.

        `AdapterError` while nobody can tell whether that may be (`HolderAwaited` is one): to be tried again.
        `ManagedByAnother` when another does, and once another has taken over: then by this lock never again.
        """
        if self._keeper is not None:
            self._look_again()
            self.check()
            return
        other = self._first_before_me()
        if other is not None:
            raise self._told_of(other)
        self._held = self._mine
        self._keeper = threading.Thread(target=self._keep, name="manager-lock", daemon=True)
        self._keeper.start()

    def check(self) -> None:
        """`ManagedByAnother` once another was seen to have the lock that was held here. Nothing is asked."""
        if self._taken_by is not None:
            raise ManagedByAnother(
                f"another storm-operator has taken over this Storm cluster, {self._taken_by}, while this one's"
                " ZooKeeper session was lost; this one acts no more, so that two never do",
                self._taken_by,
            )

    @property
    def is_lost(self) -> bool:
        """Whether another was seen to have it after it was held here."""
        return self._taken_by is not None

    def close(self) -> None:
        """Leaves the lock, or the queue for it, to others: ends the session of `nodes`."""
        self._closed.set()
        self._look.set()
        self._nodes.close()

    def _told_of(self, other: Holder) -> Exception:
        """What there is to say where `other` comes first. The place behind it is kept."""
        now = self._clock()
        if self._patient_until is None:
            self._patient_until = now + PATIENCE_SECONDS
        # That a neighbour lives is known; a loop of this very process may be about to end.
        lives = other.is_neighbour_of(self._me) and not other.is_in_process_of(self._me)
        if lives or now >= self._patient_until:
            return ManagedByAnother(
                f"another storm-operator manages this Storm cluster already: {other}; end that one first, or leave your"
                f" topologies to it (its lock is {self._path} in ZooKeeper)",
                other,
            )
        return HolderAwaited(
            f"{other} holds the lock {self._path}: if it has died, it loses it within {PATIENCE_SECONDS:.0f} s"
        )

    def _look_again(self) -> None:
        """Note who has it where our own node has gone, and with it the session that held it."""
        with self._looking:
            if self._taken_by is None and not (self._held and self._nodes.get(self._held) == encode_holder(self._me)):
                self._taken_by = self._first_before_me()
                self._held = self._mine

    def _first_before_me(self) -> Holder | None:
        """Who manages: the first in the queue that is not known to have died; None when that is this one."""
        document = encode_holder(self._me)
        if not self._mine or self._nodes.get(self._mine) != document:
            self._mine = self._nodes.enqueue(f"{self._path}/holder-", document)
        for name in self._nodes.children(self._path):
            path = f"{self._path}/{name}"
            if path >= self._mine:
                break
            content = self._nodes.get(path)
            if content is None:
                continue  # ended this very moment
            holder = decode_holder(path, content)
            if holder != self._me and not (holder.is_neighbour_of(self._me) and is_gone(holder)):
                return holder
            # A killed neighbour's, whose session lasts some seconds longer; or ours, when its making was not answered.
            self._nodes.remove(path)
        return None

    def _keep(self) -> None:
        pause = LOOK_SECONDS
        while True:
            self._look.wait(pause)
            self._look.clear()
            if self._closed.is_set():
                return
            pause = LOOK_SECONDS
            try:
                self._look_again()
                if self.is_lost:
                    self._on_lost()
                    return
            except AdapterError:
                pause = RETRY_SECONDS  # what else needs ZooKeeper says so


@dataclass(frozen=True, slots=True)
class HeldNodes:
    """Nodes that are written by whoever manages: before each write `confirm` raises for all others."""

    nodes: Nodes
    confirm: Callable[[], None]

    def get(self, path: str) -> bytes | None:
        return self.nodes.get(path)

    def put(self, path: str, content: bytes) -> None:
        self.confirm()
        self.nodes.put(path, content)

    def remove(self, path: str) -> None:
        self.confirm()
        self.nodes.remove(path)

    def children(self, path: str) -> tuple[str, ...]:
        return self.nodes.children(path)

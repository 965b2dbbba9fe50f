"""The process that keeps a cluster's daemons running: `python -m storm_operator.local.keeper STATE_FILE`.

It restarts what dies, answers on a socket, and on SIGTERM, SIGINT or the end of its owner takes everything down.
Should it be killed itself, its daemons get SIGKILL from the kernel; the rest is swept by the next `down` or `up`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from storm_operator.local.daemons import Daemon, all_daemons
from storm_operator.local.lifecycle import take_down
from storm_operator.local.prerequisites import agent_command
from storm_operator.local.spec import ClusterLayout, from_json

FIRST_BACKOFF_SECONDS = 0.3
LONGEST_BACKOFF_SECONDS = 10.0
HEALTHY_SECONDS = 20.0
"""A daemon that lived this long starts with the shortest back-off again."""

log = logging.getLogger(__name__)
"""Goes to keeper.out."""

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Kept:
    """One daemon and its restart loop."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self._wanted = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._wanted.set()
        if self._loop is None:
            self._loop = asyncio.create_task(self._keep_running())

    async def stop(self) -> None:
        """Kill it, and do not start it again until `start`."""
        self._wanted.clear()
        while self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await asyncio.sleep(0.02)

    def status(self) -> dict[str, Any]:
        return {
            "name": self.daemon.name,
            "pid": self.process.pid if self.process else None,
            "starts": self.starts,
            "wanted": self._wanted.is_set(),
            "log": str(self.daemon.log),
        }

    async def _keep_running(self) -> None:
        backoff = FIRST_BACKOFF_SECONDS
        while True:
            await self._wanted.wait()
            began = time.monotonic()
            try:
                self.process = spawn(self.daemon)
            except (OSError, subprocess.SubprocessError) as reason:
                log.warning("%s cannot be started: %s", self.daemon.name, reason)
            else:
                self.starts += 1
                await _ended(self.process)
                self.process = None
            if time.monotonic() - began > HEALTHY_SECONDS:
                backoff = FIRST_BACKOFF_SECONDS
            if self._wanted.is_set():
                await asyncio.sleep(backoff)
                backoff = min(2 * backoff, LONGEST_BACKOFF_SECONDS)


def spawn(daemon: Daemon) -> subprocess.Popen[bytes]:
    """Start a daemon in its cgroups, bound to this process' life."""
    daemon.log.parent.mkdir(parents=True, exist_ok=True)

    def prepare() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for file in daemon.process_files:
            file.write_text(str(os.getpid()))

    with daemon.log.open("ab") as output:
        return subprocess.Popen(
            daemon.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(os.environ) | dict(daemon.environment),
            # Safe: this process has one thread. A new session, so that a worker's kill of its group hits nobody else.
            preexec_fn=prepare,  # noqa: PLW1509
            start_new_session=True,
        )


async def _ended(process: subprocess.Popen[bytes]) -> None:
    await _process_end(process.pid)
    process.wait()


async def _process_end(pid: int) -> None:
    """Wait for the end of any process, child or not."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


class Keeper:
    """All daemons of one cluster."""

    def __init__(self, layout: ClusterLayout) -> None:
        self._layout = layout
        daemons = all_daemons(layout, agent_command() if layout.spec.agents else None)
        self._kept = {daemon.name: Kept(daemon) for daemon in daemons}

    async def run(self) -> None:
        """Until told to end; then leave nothing behind."""
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, over.set)
        ends: list[Coroutine[Any, Any, object]] = [over.wait()]
        if self._layout.owner_pid:
            ends.append(_process_end(self._layout.owner_pid))
        socket_path = self._layout.keeper_socket
        socket_path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._serve, str(socket_path))
        for kept in self._kept.values():
            kept.start()
        await asyncio.wait([asyncio.create_task(end) for end in ends], return_when=asyncio.FIRST_COMPLETED)
        server.close()
        await asyncio.gather(*(kept.stop() for kept in self._kept.values()))
        take_down(self._layout.spec.name)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = await self._answer(json.loads(await reader.readline()))
        except (ValueError, KeyError, TypeError) as reason:
            answer = {"error": f"not a request: {reason}"}
        writer.write(json.dumps(answer).encode() + b"\n")
        writer.close()

    async def _answer(self, request: dict[str, str]) -> dict[str, Any]:
        """`{"do": "status"}`, or `{"do": "start" | "stop", "daemon": NAME}`."""
        if request["do"] in ("start", "stop"):
            kept = self._kept.get(request["daemon"])
            if kept is None:
                return {"error": f"no daemon {request['daemon']!r}: there are {', '.join(self._kept)}"}
            if request["do"] == "start":
                kept.start()
            else:
                await kept.stop()
        return {"keeper_pid": os.getpid(), "daemons": [kept.status() for kept in self._kept.values()]}


if __name__ == "__main__":
    asyncio.run(Keeper(from_json(Path(sys.argv[1]).read_text())).run())

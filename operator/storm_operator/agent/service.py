"""The agent as a running process: its parts put together, one light loop, a clean end."""

from __future__ import annotations

import gc
import logging
import random
import signal
import threading
import time
from http import HTTPStatus
from importlib.metadata import version

from storm_operator.agent.enforcement_switch import EnforcementSwitch
from storm_operator.agent.exporter import AgentExporter
from storm_operator.agent.families import CONTENT_TYPE
from storm_operator.agent.http_server import Response, serve
from storm_operator.agent.limits import LimitsReader
from storm_operator.agent.machine import Machine
from storm_operator.agent.options import AgentOptions
from storm_operator.agent.peers import COORDINATE_PATH, Peers, coordinate_document
from storm_operator.agent.processes import is_writer_alive, objection_to_writer
from storm_operator.agent.snapshot_folder import SnapshotFolder
from storm_operator.agent.worker_snapshot import WorkerSnapshot
from storm_operator.core.host_and_port import host_and_port

STEP_SECONDS = 1.0
STUCK_SECONDS = 15.0  # without a step for so long the agent does not call itself healthy
ZOOKEEPER_GOODBYE_SECONDS = 0.3
ALLOCATIONS_BETWEEN_COLLECTIONS = 100_000
"""A scrape makes thousands of objects, none of them in a cycle: looking for cycles amid it would take a third of it."""

log = logging.getLogger(__name__)


class ListenError(Exception):
    """The address to listen on cannot be had; the message says why."""


class AgentService:
    """Everything that runs beside one supervisor."""

    def __init__(self, options: AgentOptions) -> None:
        self._options = options
        self._wake = threading.Event()
        self._stopping = False
        self._failure = ""
        self._last_step_seconds = time.monotonic()
        self._folder = SnapshotFolder(options.metrics_dir, is_writer_alive, objection=_objection)
        began_at_seconds = time.time()
        machine = Machine(options.cpu_capacity_millicores, began_at_seconds, shares_cgroup=options.shared_cgroup)
        self._switch = EnforcementSwitch(machine, options.host, options.cgroup, options.declined)
        rng = random.Random(options.host)  # noqa: S311 - spreads probes, no secret
        self._peers = Peers(options.host, options.peers, rng)
        self._limits = (
            LimitsReader(options.zookeeper, options.zookeeper_root, self._wake.set)
            if options.zookeeper and not options.declined
            else None
        )
        self._exporter = AgentExporter(
            options.host,
            self._folder,
            machine,
            self._switch,
            self._peers.report,
            time.time,
            version("storm-operator"),
            began_at_seconds,
            options.pair_limit,
        )

    def start(self) -> int:
        """Starts all parts and returns the port it listens on; ListenError when the address cannot be had."""
        address, port = self._options.listen
        pages = {"/metrics": self._metrics, "/healthz": self._health, COORDINATE_PATH: self._coordinate}
        try:
            server = serve((address, port), pages)
        except OSError as error:
            raise ListenError(f"--listen: cannot listen on {host_and_port(address, port)}: {error.strerror}") from error
        if self._limits:
            self._limits.start()
        self._peers.start()
        return int(server.server_address[1])

    def run(self) -> None:
        """Steps once a second, and when limits change, until `stop`; then frees every thread."""
        try:
            while not self._stopping:
                self._try_step()
                self._wake.wait(STEP_SECONDS)
                self._wake.clear()
        finally:
            self._close()

    def step(self) -> None:
        limits = self._limits.limits() if self._limits else {}
        self._switch.step(self._folder.threads(), limits, time.monotonic())
        self._last_step_seconds = time.monotonic()

    def _try_step(self) -> None:
        """One that fails for a reason that nobody thought of leaves limits as they are; to end would free everybody."""
        try:
            self.step()
            self._failure = ""
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            if failure != self._failure:
                log.exception("this step failed, the next one is tried")
            self._failure = failure

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def _close(self) -> None:
        self._switch.close()
        self._peers.stop()
        if self._limits:
            # Without a connection kazoo may take its time; nothing here depends on the goodbye.
            goodbye = threading.Thread(target=self._limits.stop, daemon=True)
            goodbye.start()
            goodbye.join(ZOOKEEPER_GOODBYE_SECONDS)

    def _metrics(self) -> Response:
        return Response(HTTPStatus.OK, CONTENT_TYPE, self._exporter.text())

    def _health(self) -> Response:
        idle_seconds = time.monotonic() - self._last_step_seconds
        if idle_seconds > STUCK_SECONDS:
            return Response(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"stuck for {idle_seconds:.0f} s\n".encode())
        return Response(HTTPStatus.OK, "text/plain", b"ok\n")

    def _coordinate(self) -> Response:
        return Response(HTTPStatus.OK, "application/json", coordinate_document(self._peers.coordinate()))


def _objection(worker: WorkerSnapshot, owner: int) -> str:
    return objection_to_writer(worker.pid, owner, worker.topology_id, worker.port)


def run_agent(options: AgentOptions) -> None:
    """Runs an agent until SIGTERM or SIGINT. To be called in the main thread."""
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)
    service = AgentService(options)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: service.stop())
    port = service.start()
    log.info("agent of supervisor %s listens on %s", options.host, host_and_port(options.listen[0], port))
    service.run()
    log.info("agent of supervisor %s has ended", options.host)

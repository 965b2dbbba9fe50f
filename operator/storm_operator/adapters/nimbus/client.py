"""NimbusClient: asks the leading Nimbus, whichever that is at the moment.

After a failover a Nimbus answers for some seconds with false refusals (`NotAliveException` for a topology that runs,
or an internal error). A refusal therefore counts only from a Nimbus that has just proven to be a leader ready for
work: its `getLeader` says so and it accepts an upload, which a follower refuses.

Who is placed where any Nimbus answers, and only one that leads and has read all assignments knows it. So it is asked
for first whether it does.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from thriftpy2.thrift import TApplicationException

from storm_operator.adapters.errors import (
    InvalidTopology,
    MalformedDocument,
    NimbusError,
    NimbusUnreachable,
    NotAuthorized,
    NotLeader,
    RebalanceInProgress,
    RebalanceRefused,
    TopologyNotAlive,
)
from storm_operator.adapters.nimbus import values
from storm_operator.adapters.nimbus.connection import (
    Connection,
    ConnectionBroken,
    NimbusAddress,
    ThriftConnection,
    storm_thrift,
)
from storm_operator.adapters.nimbus.leader import (
    Connect,
    find_leader,
    has_assignments,
    is_ready,
    is_unknown_method,
    names,
    no_leader,
)

PAUSE_SECONDS = 0.5
TRUSTED_SECONDS = 1.0
"""A Nimbus that had the assignments is believed for so long to have them: a reading asks for many topologies."""
SEEDS_KEYS = "nimbus.seeds and nimbus.thrift.port"
T = TypeVar("T")


class NimbusClient:
    """Calls to Nimbus, with leader discovery and bounded retries. Thread-safe: calls take turns.

    Every method takes `patience_seconds`, the time within which failed attempts are repeated (None: the client's
    own). A call may outlast it by the few calls of its last attempt, each bounded by `call_timeout_seconds`. All
    methods raise `NimbusUnreachable`, `NotLeader` or `NotAuthorized`; those that name a topology, `TopologyNotAlive`.
    `named_by` is what the seeds were read from, for errors. `confirm` is called before each attempt to change a
    topology, and what it raises ends the call: one that was repeated for long must not follow another manager's deeds.
    Once `gives_up`, a failed attempt is not repeated, whatever the patience, but where a kept connection broke.

    A call whose connection breaks before its answer is repeated, so a rebalance, activation or kill may reach Nimbus
    twice. That is harmless, but a repeated kill can find the topology gone: take `TopologyNotAlive` as done there.
    """

    def __init__(
        self,
        seeds: Sequence[NimbusAddress | str],
        *,
        call_timeout_seconds: float = 10.0,
        patience_seconds: float = 30.0,
        named_by: str = SEEDS_KEYS,
        connect: Connect = ThriftConnection,
        confirm: Callable[[], None] = lambda: None,
        gives_up: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not seeds:
            raise ValueError("Nimbus seeds: give at least one host:port")
        self._seeds = tuple(NimbusAddress.parse(seed) if isinstance(seed, str) else seed for seed in seeds)
        self._call_timeout = call_timeout_seconds
        self._patience = patience_seconds
        self._named_by = named_by
        self._connect = connect
        self._confirm = confirm
        self._gives_up = gives_up
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._trusted: Connection | None = None
        self._trusted_until = 0.0

    def close(self) -> None:
        """Closes the connection; the next call opens a new one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = self._trusted = None

    def leader(self, *, patience_seconds: float | None = None) -> values.NimbusSummary:
        """The Nimbus that leads, as ZooKeeper has it; it may not be ready for work yet."""
        return values.nimbus_from(self._call("getLeader", patience_seconds=patience_seconds))

    def wait_until_ready(self, *, patience_seconds: float | None = None) -> values.NimbusSummary:
        """Returns once a leader is ready for work (e.g. to take a submission); else NotLeader or NimbusUnreachable."""

        def attempt() -> values.NimbusSummary:
            connection = self._leader_connection()
            if not is_ready(connection):
                raise NotLeader(no_leader(self._seeds))
            return values.nimbus_from(connection.call("getLeader"))

        return self._repeat(attempt, patience_seconds)

    def cluster_info(self, *, patience_seconds: float | None = None) -> values.ClusterInfo:
        """All Nimbuses, live supervisors and topologies."""
        return values.cluster_info_from(self._call("getClusterInfo", patience_seconds=patience_seconds))

    def nimbus_conf(self, *, patience_seconds: float | None = None) -> Mapping[str, Any]:
        """Nimbus' storm.yaml with all defaults."""
        answer = self._call("getNimbusConf", patience_seconds=patience_seconds)
        try:
            return _json_object("getNimbusConf", answer)
        except MalformedDocument as error:
            raise NimbusError(str(error)) from error  # no fault of any one topology

    def topology_info(self, topology_id: str, *, patience_seconds: float | None = None) -> values.TopologyInfo:
        """Placed executors, and the last error of each component."""
        options = storm_thrift.GetInfoOptions(num_err_choice=storm_thrift.NumErrorsChoice.ONE)
        return values.topology_info_from(
            self._call(
                "getTopologyInfoWithOpts",
                topology_id,
                options,
                patience_seconds=patience_seconds,
                before=self._insist_on_assignments,
            )
        )

    def system_topology(self, topology_id: str, *, patience_seconds: float | None = None) -> Any:
        """Thrift's StormTopology with Storm's own components (ackers, metrics consumers) and their streams added."""
        return self._call("getTopology", topology_id, patience_seconds=patience_seconds)

    def topology_conf(self, topology_id: str, *, patience_seconds: float | None = None) -> Mapping[str, Any]:
        """The topology's configuration, merged with Nimbus' own."""
        return _json_object(
            "getTopologyConf", self._call("getTopologyConf", topology_id, patience_seconds=patience_seconds)
        )

    def activate(self, name: str, *, patience_seconds: float | None = None) -> None:
        """Lets the spouts emit again. RebalanceInProgress until a rebalance is over."""
        self._change_status("activate", name, patience_seconds=patience_seconds)

    def deactivate(self, name: str, *, patience_seconds: float | None = None) -> None:
        """Pauses the spouts; bolts go on with what is queued. RebalanceInProgress until a rebalance is over."""
        self._change_status("deactivate", name, patience_seconds=patience_seconds)

    def rebalance(
        self,
        name: str,
        *,
        wait_seconds: int = 0,
        workers: int | None = None,
        executors: Mapping[str, int] | None = None,
        patience_seconds: float | None = None,
    ) -> None:
        """Schedules the topology anew after `wait_seconds` with its spouts paused; returns before that.

        `workers` and `executors` (per component) change its size. RebalanceRefused when Nimbus finds them wrong,
        RebalanceInProgress while the last rebalance has not been carried out (its repetition may say so as well).
        """
        counts = {"workers": workers, **{f"executors of {key}": value for key, value in (executors or {}).items()}}
        for field, count in counts.items():
            if count is not None and count < 1:
                # Nimbus answers the first of these with an internal error that explains nothing.
                raise RebalanceRefused(f"rebalance of {name}: {field} is {count}; it must be 1 or more")
        options = storm_thrift.RebalanceOptions(
            wait_secs=wait_seconds, num_workers=workers, num_executors=dict(executors) if executors else None
        )
        try:
            self._change_status("rebalance", name, options, patience_seconds=patience_seconds)
        except InvalidTopology as error:
            raise RebalanceRefused(f"rebalance of {name}: {error}") from error

    def kill(self, name: str, *, wait_seconds: int = 0, patience_seconds: float | None = None) -> None:
        """Stops the spouts, and after `wait_seconds` the workers; the name is free again some seconds after that."""
        options = storm_thrift.KillOptions(wait_secs=wait_seconds)
        self._call("killTopologyWithOpts", name, options, patience_seconds=patience_seconds, before=self._confirm)

    def _change_status(self, method: str, name: str, *args: Any, patience_seconds: float | None) -> None:
        try:
            self._call(method, name, *args, patience_seconds=patience_seconds, before=self._confirm)
        except NimbusError as error:
            # While it rebalances the topology Nimbus answers with an internal error; only the status tells why.
            if type(error) is NimbusError and self._is_rebalancing(name, patience_seconds):
                raise RebalanceInProgress(
                    f"{name} is being rebalanced already, and Nimbus does not {method} it before that is over"
                ) from error
            raise

    def _is_rebalancing(self, name: str, patience_seconds: float | None) -> bool:
        topology = self.cluster_info(patience_seconds=patience_seconds).topology_named(name)
        return topology is not None and topology.status == values.REBALANCING

    def _call(
        self, method: str, *args: Any, patience_seconds: float | None, before: Callable[[], None] = lambda: None
    ) -> Any:
        proven_ready = False

        def attempt() -> Any:
            nonlocal proven_ready
            connection = self._leader_connection()
            while True:
                before()
                try:
                    return connection.call(method, *args)
                except (storm_thrift.NotAliveException, TApplicationException) as refusal:
                    if proven_ready or is_unknown_method(refusal):
                        raise self._refused(method, args, refusal) from refusal
                    proven_ready = is_ready(connection)
                    if not proven_ready:
                        raise NotLeader(no_leader(self._seeds)) from refusal
                except storm_thrift.InvalidTopologyException as refusal:
                    raise InvalidTopology(refusal.msg) from refusal
                except storm_thrift.AuthorizationException as refusal:
                    raise NotAuthorized(f"Nimbus {names(self._seeds)} refuses {method}: {refusal.msg}") from refusal

        return self._repeat(attempt, patience_seconds)

    def _repeat(self, attempt: Callable[[], T], patience_seconds: float | None) -> T:
        deadline = self._clock() + (self._patience if patience_seconds is None else patience_seconds)
        at_once = self._connection is not None  # a kept connection is often merely stale: no pause before a new one
        while True:
            try:
                with self._lock:
                    return attempt()
            except (ConnectionBroken, NotLeader) as failure:
                self.close()
                left = deadline - self._clock()
                if left <= 0 or (not at_once and self._gives_up()):
                    raise self._gave_up(failure) from failure
            except KeyboardInterrupt:
                self.close()  # its answer would be taken for that to the next call
                raise
            except storm_thrift.AuthorizationException as refusal:
                raise NotAuthorized(
                    f"Nimbus {names(self._seeds)} refuses to tell which Nimbus leads and is ready: {refusal.msg}; allow"
                    " this user getLeader and fileUpload"
                ) from refusal
            if not at_once:
                self._sleep(min(PAUSE_SECONDS, left))
            at_once = False

    def _leader_connection(self) -> Connection:
        if self._connection is None:
            self._connection = find_leader(self._seeds, self._connect, self._call_timeout, self._gives_up)
        return self._connection

    def _insist_on_assignments(self) -> None:
        connection = self._leader_connection()
        if connection is self._trusted and self._clock() < self._trusted_until:
            return
        if not has_assignments(connection):
            raise NotLeader(no_leader(self._seeds))
        self._trusted, self._trusted_until = connection, self._clock() + TRUSTED_SECONDS

    def _refused(self, method: str, args: tuple[Any, ...], refusal: Exception) -> NimbusError:
        if isinstance(refusal, TApplicationException):
            what = f"{method} of {args[0]}" if args else method  # one topology may be in the way of all
            return NimbusError(
                f"Nimbus {names(self._seeds)} failed in {what}: {refusal.message}; the reason is in its nimbus.log"
            )
        return TopologyNotAlive(f"no topology {args[0]!r} runs on Nimbus {names(self._seeds)}")

    def _gave_up(self, failure: Exception) -> NimbusError:
        if isinstance(failure, NotLeader):
            return failure
        return NimbusUnreachable(
            f"Nimbus {names(self._seeds)} cannot be reached ({failure}); check that it runs, and that its address is "
            f"right in {self._named_by}"
        )


def _json_object(method: str, text: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedDocument(f"Nimbus' answer to {method} is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise MalformedDocument(f"Nimbus' answer to {method} is {type(parsed).__name__}; it must be a JSON object")
    return parsed

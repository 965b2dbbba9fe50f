"""LocalCluster: a real Storm cluster on this machine, up and down. The interface for demo, tests and benchmarks."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from pathlib import Path
from types import TracebackType
from typing import Any

from storm_operator.local.daemons import agent_name, supervisor_name
from storm_operator.local.distribution import Say, ensure_distribution
from storm_operator.local.ended_daemons import given_up, last_words
from storm_operator.local.lifecycle import bring_up, plan_layout, take_down, wait_until
from storm_operator.local.network import change_delays
from storm_operator.local.prerequisites import missing_prerequisites
from storm_operator.local.processes import WorkerProcess, end_processes, marked_processes, send_signal, worker_processes
from storm_operator.local.readiness import listens, registered_supervisors
from storm_operator.local.rehearsal import ensure_archives
from storm_operator.local.spec import ClusterLayout, LocalClusterError, LocalClusterSpec, LocalMachine, check_name
from storm_operator.local.state_file import read_layout, state_file
from storm_operator.local.switch import even_delays, read_config

READY_SECONDS = 240.0
ANSWER_SECONDS = 15.0


class LocalCluster:
    """One cluster. As a context manager it comes up, waits until it is ready, and goes down with its process.

    >>> with LocalCluster(LocalClusterSpec(name="mine", subnet="10.78.0.0/24")) as cluster:
    ...     host, port = cluster.nimbus
    """

    def __init__(self, spec: LocalClusterSpec, isolate: bool | None = None) -> None:
        """`isolate` None: own networks and CPU capacity where this machine can; False: all on loopback."""
        self.spec = spec
        self._isolate = isolate
        self._layout: ClusterLayout | None = None

    @classmethod
    def attach(cls, name: str) -> LocalCluster:
        """A cluster that is up already."""
        check_name(name)
        layout = read_layout(name)
        if layout is None:
            raise LocalClusterError(
                f"no cluster {name!r} is up ({state_file(name)} does not exist); "
                f"`storm-operator local up --name {name}` brings one up"
            )
        cluster = cls(layout.spec)
        cluster._layout = layout
        return cluster

    def up(self, owned: bool = False, say: Say = lambda _: None) -> None:
        """Start everything. `owned`: when this very process ends, however, the cluster ends too.

        Raises LocalClusterError, and leaves nothing behind then.
        """
        fatal = [str(missing) for missing in missing_prerequisites() if missing.fatal]
        if fatal:
            raise LocalClusterError("\n".join(fatal))
        ensure_distribution(say)
        class_data = ensure_archives(say)
        layout = plan_layout(self.spec, class_data, self._isolate, os.getpid() if owned else None)
        bring_up(layout)
        self._layout = layout

    def down(self) -> None:
        """Stop everything; logs stay. Harmless when nothing is up."""
        take_down(self.spec.name)

    def __enter__(self) -> LocalCluster:
        # Not in the `try`: what is refused since a cluster of this name is up must leave that cluster alone.
        self.up(owned=True)
        try:
            self.wait_ready()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    @property
    def layout(self) -> ClusterLayout:
        if self._layout is None:
            raise LocalClusterError(f"cluster {self.spec.name!r} is not up")
        return self._layout

    @property
    def nimbus(self) -> tuple[str, int]:
        return self.layout.host, self.layout.nimbus_port

    @property
    def zookeeper(self) -> str:
        """`host:port`"""
        return self.layout.zookeeper

    @property
    def machines(self) -> tuple[LocalMachine, ...]:
        return self.layout.machines

    @property
    def agent_urls(self) -> dict[str, str]:
        """Where each machine's metrics are, by the machine's host."""
        return {machine.host: machine.agent_url for machine in self.machines}

    @property
    def storm_home(self) -> Path:
        return self.layout.storm_home

    @property
    def conf_dir(self) -> Path:
        """For submission: storm.yaml with `nimbus.seeds`."""
        return self.layout.conf_dir

    @property
    def logs_dir(self) -> Path:
        return self.layout.logs_dir

    @property
    def isolated(self) -> bool:
        """Whether machines have their own network, delay and CPU capacity."""
        return self.layout.isolated

    @property
    def not_emulated(self) -> tuple[str, ...]:
        """Sentences for a person: what this machine cannot give the cluster."""
        return self.layout.not_emulated

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the daemons that run at this moment, by name (`nimbus`, `supervisor-machine-1`, ...)."""
        return {daemon["name"]: daemon["pid"] for daemon in self.daemons() if daemon["pid"]}

    @property
    def nimbus_pid(self) -> int | None:
        return self.pids.get("nimbus")

    @property
    def keeper_pid(self) -> int | None:
        """The process that restarts the daemons."""
        with contextlib.suppress(LocalClusterError):
            return int(self._ask("status")["keeper_pid"])
        return None

    def daemons(self) -> list[dict[str, Any]]:
        """Name, pid, number of starts, log of each daemon."""
        return list(self._ask("status")["daemons"])

    def workers(self) -> tuple[WorkerProcess, ...]:
        return worker_processes(self.spec.name)

    def processes(self) -> frozenset[int]:
        """Ids of all processes of the cluster, workers included."""
        return frozenset(marked_processes(self.spec.name))

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Until Nimbus leads and knows every supervisor whose daemon is meant to run, and these listen.

        Raises LocalClusterError when that takes too long, and at once when a daemon that it needs ends again and again.
        """
        before = self._needed_daemons()
        wanted = {daemon["name"] for daemon in before if daemon["wanted"]}
        expected = [machine for machine in self.machines if supervisor_name(machine) in wanted]

        def answers() -> bool:
            present = registered_supervisors(*self.nimbus)
            if present is None or not present >= {machine.host for machine in expected}:
                return False
            return all(listens(machine.host, machine.thrift_port) for machine in expected)

        def ready() -> bool:
            if answers():
                return True
            ended = given_up(before, self._needed_daemons())
            if ended is not None:
                raise LocalClusterError(last_words(ended))
            return False

        wait_until(ready, seconds, f"cluster {self.spec.name!r} was not ready (see {self.logs_dir})")

    def set_delay(self, a: str, b: str, one_way_ms: float) -> None:
        """Delay between two machines (by name or host), both ways, from now on."""
        self._need_switch()
        config_file = self.layout.switch_config
        delays = dict(read_config(config_file).delays_ms)
        first, second = self._port(a), self._port(b)
        delays[first, second] = delays[second, first] = one_way_ms
        change_delays(self.layout, delays)

    def set_all_delays(self, one_way_ms: float) -> None:
        """The same delay between any two machines, from now on."""
        self._need_switch()
        change_delays(self.layout, even_delays(len(self.machines) + 1, one_way_ms))

    def kill_nimbus(self, number: int = signal.SIGKILL) -> None:
        """Signal Nimbus; it is started again."""
        pid = self.nimbus_pid
        if pid is None:
            raise LocalClusterError("Nimbus does not run at this moment")
        send_signal(pid, number)

    def stop_supervisor(self, machine: str, with_workers: bool = True) -> None:
        """Kill a machine's supervisor until `start_supervisor`; its workers and agent too, as if the machine died."""
        target = self.layout.machine(machine)
        self._ask("stop", supervisor_name(target))
        if with_workers:
            if self._has_agents():
                self._ask("stop", agent_name(target))
            end_processes(self.spec.name, target.name)

    def start_supervisor(self, machine: str) -> None:
        target = self.layout.machine(machine)
        self._ask("start", supervisor_name(target))
        if self._has_agents():
            self._ask("start", agent_name(target))

    def stop_agent(self, machine: str) -> None:
        self._ask("stop", agent_name(self.layout.machine(machine)))

    def start_agent(self, machine: str) -> None:
        self._ask("start", agent_name(self.layout.machine(machine)))

    def stop_daemon(self, name: str) -> None:
        """Kill any daemon (`zookeeper`, `nimbus`, ...) and keep it down."""
        self._ask("stop", name)

    def start_daemon(self, name: str) -> None:
        self._ask("start", name)

    def _needed_daemons(self) -> list[dict[str, Any]]:
        """Those without which the cluster is never ready."""
        return [daemon for daemon in self.daemons() if not daemon["name"].startswith("agent-")]

    def _has_agents(self) -> bool:
        return any(daemon["name"].startswith("agent-") for daemon in self.daemons())

    def _need_switch(self) -> None:
        if not self.isolated:
            raise LocalClusterError("machines share the loopback interface: there is no delay to set (needs root)")

    def _port(self, machine: str) -> int:
        return self.machines.index(self.layout.machine(machine)) + 1

    def _ask(self, do: str, daemon: str = "") -> dict[str, Any]:
        request = json.dumps({"do": do, "daemon": daemon}).encode() + b"\n"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(ANSWER_SECONDS)
            try:
                client.connect(str(self.layout.keeper_socket))
                client.sendall(request)
                answer: dict[str, Any] = json.loads(client.makefile().readline())
            except (ConnectionRefusedError, FileNotFoundError) as reason:
                raise LocalClusterError(
                    f"cluster {self.spec.name!r} has ended, as by a restart of this machine: its keeper does not run; "
                    f"`storm-operator local down --name {self.spec.name}` removes what is left of it"
                ) from reason
            except (OSError, ValueError) as reason:
                raise LocalClusterError(
                    f"the keeper of cluster {self.spec.name!r} does not answer: {reason}"
                ) from reason
        if "error" in answer:
            raise LocalClusterError(answer["error"])
        return answer

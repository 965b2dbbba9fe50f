"""`helm test`: Nimbus leads, all supervisors are registered, and a topology runs until its spout has tuples acked.

Runs in the storm image. Ends with 0, or with 1 and the reason as its last line.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import requests
from prometheus_client.parser import text_string_to_metric_families

from storm_operator.adapters.errors import AdapterError, TopologyNotAlive
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.submission import JarSubmission, StormClientHome, submit_jar

HOME = StormClientHome(storm_home=Path("/opt/storm"), conf_dir=Path("/etc/storm"))
JAR = Path("/opt/storm/examples/workloads.jar")
MAIN_CLASS = "dev.stormoperator.workloads.WordCount"
SPOUT = "sentences"
AGENT_PORT = 9464
PAUSE_SECONDS = 1.0
KILL_PATIENCE_SECONDS = 20.0
"""Less than a pod that is deleted has to end."""
TOLD_TO_END = 128 + signal.SIGTERM

T = TypeVar("T")


class CheckFailed(Exception):
    """The cluster is not well; the message says what is missing."""


def main() -> int:
    # The first process of a container has no usual answer to SIGTERM: its topology would run on for ever.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TOLD_TO_END))
    options = parse_options()
    nimbus = NimbusClient(options.nimbus, patience_seconds=options.timeout_seconds)
    deadline = time.monotonic() + options.timeout_seconds
    try:
        leader = nimbus.wait_until_ready()
        say(f"Nimbus leads: {leader.host}:{leader.port}")
        hosts = wait_for(lambda: registered(nimbus, options.supervisors), deadline)
        say(f"supervisors are registered: {', '.join(hosts)}")
        if options.submit:
            run_topology(nimbus, hosts, deadline)
    except (AdapterError, CheckFailed) as problem:
        say(f"FAILED: {problem}")
        return 1
    say("all is well")
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nimbus", action="append", required=True, metavar="HOST:PORT")
    parser.add_argument("--supervisors", type=int, required=True)
    parser.add_argument("--timeout-seconds", type=float, default=180.0)
    parser.add_argument("--submit", action=argparse.BooleanOptionalAction, default=True)
    return parser.parse_args()


def registered(nimbus: NimbusClient, expected: int) -> tuple[str, ...]:
    """Hosts of the live supervisors; CheckFailed while there are fewer than expected."""
    hosts = tuple(sorted(supervisor.host for supervisor in nimbus.cluster_info().supervisors))
    if len(hosts) < expected:
        raise CheckFailed(f"{len(hosts)} of {expected} supervisors are registered: {', '.join(hosts) or 'none'}")
    return hosts


def run_topology(nimbus: NimbusClient, hosts: Iterable[str], deadline: float) -> None:
    """Submit, wait for acked tuples, kill."""
    name = f"helm-test-{uuid.uuid4().hex[:8]}"
    try:
        submit_jar(JarSubmission(JAR, MAIN_CLASS, ("--name", name, "--rate", "steady:20")), HOME)
        say(f"topology {name} is submitted")
        wait_for(lambda: placed(nimbus, name), deadline)
        say("all executors are placed")
        tuples = wait_for(lambda: acked(hosts, name), deadline)
        say(f"the agents count {tuples:g} acked tuples")
    finally:
        with contextlib.suppress(TopologyNotAlive):  # it may not have got into Storm
            nimbus.kill(name, patience_seconds=KILL_PATIENCE_SECONDS)


def placed(nimbus: NimbusClient, name: str) -> bool:
    """CheckFailed until each executor has a slot."""
    topology = nimbus.cluster_info().topology_named(name)
    if topology is None:
        raise CheckFailed(f"Nimbus does not list topology {name}")
    executors = len(nimbus.topology_info(topology.id).executors)
    if executors < topology.executors or not executors:
        raise CheckFailed(f"{executors} of {topology.executors} executors of {name} are placed")
    return True


def acked(hosts: Iterable[str], name: str) -> float:
    """What the agents say that the spout has had acked; CheckFailed while that is nothing."""
    tuples = sum(acked_on(host, name) for host in hosts)
    if not tuples:
        raise CheckFailed(f"no agent reports an acked tuple of {name}")
    return tuples


def acked_on(host: str, name: str) -> float:
    try:
        text = requests.get(f"http://{host}:{AGENT_PORT}/metrics", timeout=5).text
    except requests.RequestException as error:
        raise CheckFailed(f"the agent of {host} does not answer: {error}") from error
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "storm_executor_acked_tuples_total"
        and sample.labels["topology_id"].startswith(f"{name}-")
        and sample.labels["component"] == SPOUT
    )


def wait_for(attempt: Callable[[], T], deadline: float) -> T:
    """The first result of `attempt` without CheckFailed; its last CheckFailed when time is up."""
    while True:
        try:
            return attempt()
        except CheckFailed:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_SECONDS)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

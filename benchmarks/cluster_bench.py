"""A topology on a local cluster that can be measured and moved at will: for benchmarks and functional tests."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from eventually import PATIENCE_SECONDS, eventually

from storm_operator.adapters.metrics.page import fetch_text
from storm_operator.adapters.metrics.scrape import parse_metrics
from storm_operator.assembly import Assembly, assemble, new_plan_id
from storm_operator.connection_options import connection_of
from storm_operator.core.direct_plan import direct_plan
from storm_operator.core.latency_histogram import quantile
from storm_operator.core.model import Assignment, Supervisor, WorkerSlot
from storm_operator.core.plan_outcome import outcome_of
from storm_operator.core.plan_record import PlanRecord, PlanState, busy_executors
from storm_operator.core.settings import ApplyMethod, Mode, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import JarSource, TopologySpec
from storm_operator.demo.recorder import Recorder
from storm_operator.local.cluster import LocalCluster

PASS_SECONDS = 3.0
MEASURED_SECONDS = 120.0
"""So far back figures of a placement may reach, over many passes."""
OBSERVE = SchedulingSettings(mode=Mode.OBSERVE, maximum_age_seconds=30.0)
WORD_COUNT = "dev.stormoperator.workloads.WordCount"


@dataclass
class Bench:
    """One topology on the cluster and everything needed to move it."""

    cluster: LocalCluster
    assembly: Assembly
    name: str
    specs: Mapping[str, TopologySpec]

    @classmethod
    def submit(
        cls,
        cluster: LocalCluster,
        jar: str,
        name: str,
        args: tuple[str, ...],
        executors: int,
        main_class: str = WORD_COUNT,
    ) -> Bench:
        """Submit a topology called `name` and wait until all its `executors` (acker included) are placed."""
        specs = {name: TopologySpec(name, JarSource(jar, main_class, ("--name", name, *args)))}
        bench = cls(cluster, assemble(connection_of(cluster), Recorder(), MEASURED_SECONDS), name, specs)
        said: list[str] = []
        bench.assembly.lifecycle(said.append).step(specs, time.time())
        eventually(lambda: len(bench.assignment().slot_of) == executors, f"{name} is placed ({said})")
        return bench

    def close(self) -> None:
        """Kill the topology, wait until it is gone, and end the connections."""
        self.assembly.storm.kill(self.name, 0)
        eventually(lambda: all(t.name != self.name for t in self.assembly.storm.running()), f"{self.name} is gone")
        self.assembly.close()

    @property
    def topology_id(self) -> str:
        view = self.assembly.storm.read_view(self.specs)
        return next(topology.id for topology in view.topologies if topology.name == self.name)

    def assignment(self) -> Assignment:
        view = self.assembly.storm.read_view(self.specs)
        return view.assignment.restricted_to([t.id for t in view.topologies if t.name == self.name])

    def supervisors(self) -> tuple[Supervisor, ...]:
        return self.assembly.storm.read_view(self.specs).supervisors

    def wait_for_supervisors(self) -> None:
        """Until Nimbus knows one on each machine: one that was just started registers when its JVM is up."""
        expected = {machine.host for machine in self.cluster.machines}
        eventually(
            lambda: expected <= {supervisor.host for supervisor in self.supervisors()},
            "Nimbus knows a supervisor on each machine",
            seen=self.supervisors,
        )

    def layout(self, count_machine: int, first_port: int = 0) -> Assignment:
        """Spout, split and acker on the first machine, count on machine number `count_machine`, in the next slot."""
        self.wait_for_supervisors()
        view = self.assembly.storm.read_view(self.specs)
        topology = next(t for t in view.topologies if t.name == self.name)
        by_host = {supervisor.host: supervisor for supervisor in view.supervisors}
        machines = [by_host[machine.host] for machine in self.cluster.machines]
        home = WorkerSlot(machines[0].id, machines[0].ports[first_port])
        away = WorkerSlot(machines[count_machine].id, machines[count_machine].ports[first_port + 1])
        return Assignment({e: away if e.component == "count" else home for e in topology.executors})

    def snapshot(self) -> ClusterSnapshot:
        """A complete snapshot, made by passes of the loop that only watch."""
        watching = {name: replace(spec, scheduling=OBSERVE) for name, spec in self.specs.items()}
        self.assembly.loop.period_seconds = PASS_SECONDS
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            report = self.assembly.loop.run_once(watching)
            found = report.snapshot
            if found and found.completeness.expected_executors and not found.completeness.missing_executors:
                return found
            assert time.monotonic() < deadline, found.completeness if found else report.decisions
            time.sleep(PASS_SECONDS)

    def record(self, target: Assignment, method: ApplyMethod = ApplyMethod.REBALANCE) -> PlanRecord:
        """A plan from where the topology is to `target`, not yet applied."""
        snapshot = self.snapshot()
        now = time.time()
        base = snapshot.assignment.restricted_to([self.topology_id])
        plan = direct_plan(base, target, new_plan_id(now), now, "a test asks for it")
        return PlanRecord(
            plan=plan,
            method=method,
            state=PlanState.PROPOSED,
            before=outcome_of(snapshot, plan.topology_ids),
            started_at_seconds=now,
            busy_before=busy_executors(snapshot, plan.topology_ids),
            enforce_cpu=False,
        )

    def apply(self, target: Assignment, method: ApplyMethod = ApplyMethod.REBALANCE) -> PlanRecord:
        return self.assembly.loop.applier.apply(self.record(target, method), lambda _: None)

    def pid_of(self, slot: WorkerSlot) -> int | None:
        seen = self.assembly.loop.applier.probe.workers([slot.supervisor_id]).get(slot)
        return seen.pid if seen else None

    def failures(self) -> float:
        """Once all agents answer."""
        probe = self.assembly.loop.applier.probe
        deadline = time.monotonic() + PATIENCE_SECONDS
        everywhere = self.assembly.storm.supervisor_ids().values()
        while (known := probe.failures([self.topology_id], everywhere)) is None:
            assert time.monotonic() < deadline, "an agent does not answer"
            time.sleep(1.0)
        return sum(known.values())

    def wait_until_no_tuple_fails(self, quiet_seconds: float) -> float:
        """Until no failure was counted for `quiet_seconds`: what earlier moves lost has timed out. The count then."""
        count, since = self.failures(), time.monotonic()
        deadline = since + PATIENCE_SECONDS
        while time.monotonic() - since < quiet_seconds:
            assert time.monotonic() < deadline, "tuples go on failing"
            time.sleep(1.0)
            if self.failures() != count:
                count, since = self.failures(), time.monotonic()
        return count


def median_latency_ms(bench: Bench, seconds: float) -> float:
    """Median complete latency of the bench's topology over the next `seconds`; infinite when no tuple completes."""
    before = _latencies(bench)
    time.sleep(seconds)
    after = _latencies(bench)
    rises = {bound: after[bound] - before.get(bound, 0.0) for bound in after}
    return 1000.0 * quantile(rises, 0.5) if max(rises.values(), default=0.0) > 0 else math.inf


def _latencies(bench: Bench) -> dict[float, float]:
    """The topology's latency histogram so far: cumulative counts by bound in seconds."""
    buckets: dict[float, float] = {}
    topology_id = bench.topology_id
    for url in bench.cluster.agent_urls.values():
        for key, value in parse_metrics(fetch_text(url, 5.0)).items():
            if key.name == "storm_complete_latency_seconds_bucket" and key.label("topology_id") == topology_id:
                bound = float(key.label("le"))
                buckets[bound] = buckets.get(bound, 0.0) + value
    return buckets

"""The cases that the simulator is compared with a real cluster by: three workloads, four placements, two loads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cluster_bench import Bench

from storm_operator.core.model import Assignment, Executor, Supervisor, WorkerSlot
from storm_operator.core.placement.even import deal_out, interleaved_free_slots
from storm_operator.core.settings import Mode, SchedulingSettings
from storm_operator.core.snapshot_builder import build_snapshot
from storm_operator.demo.figures import mixed_latency
from storm_operator.demo.run import write_rate
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.spec import LocalClusterSpec
from storm_operator.simulator.model import SimulatedTopology
from storm_operator.simulator.workloads import http_monitor, reference_chain, word_count

PACKAGE = "dev.stormoperator.workloads"
MACHINES = 3
MACHINE_MILLICORES = 500.0
ONE_WAY_DELAY_MS = 2.0
MAX_SPOUT_PENDING = 100
MESSAGE_TIMEOUT_SECONDS = 5
"""Short: what a move loses stays pending for once or twice as long, and with few pending the spout waits for it."""
PLACEMENTS = ("one worker", "two workers", "two supervisors", "even")
LOADS = ("low", "saturated")
FIRST_PORT = 6700


@dataclass(frozen=True, slots=True)
class Workload:
    """A topology, real and simulated; `rates` are offered tuples per second in low and in saturating load."""

    name: str
    main_class: str
    rates: Mapping[str, int]
    parallelism: Mapping[str, int]
    cpu_micros: Mapping[str, int]
    more: tuple[str, ...] = ()

    def args(self, rate_file: Path) -> tuple[str, ...]:
        def joined(numbers: Mapping[str, int]) -> str:
            return ",".join(f"{component}={number}" for component, number in numbers.items())

        return (
            *("--workers", str(MACHINES), "--max-spout-pending", str(MAX_SPOUT_PENDING)),
            *("--rate-file", str(rate_file), "--parallelism", joined(self.parallelism)),
            *("--cpu-micros", joined(self.cpu_micros)),
            *self.more,
        )

    def simulated(self, topology_id: str, load: str) -> SimulatedTopology:
        make = {"wordcount": word_count, "http": http_monitor, "chain": reference_chain}[self.name]
        cpu_ms = {component: micros / 1000.0 for component, micros in self.cpu_micros.items()}
        more = {"stages": 5} if self.name == "chain" else {}
        return make(  # type: ignore[operator,no-any-return]
            float(self.rates[load]),
            parallelism=self.parallelism,
            cpu_ms=cpu_ms,
            topology_id=topology_id,
            num_workers=MACHINES,
            max_spout_pending=MAX_SPOUT_PENDING,
            message_timeout_seconds=float(MESSAGE_TIMEOUT_SECONDS),
            **more,
        )


WORKLOADS = (
    Workload(
        "wordcount",
        f"{PACKAGE}.WordCount",
        {"low": 40, "saturated": 1500},
        {"sentences": 1, "split": 2, "count": 2},
        {"split": 200, "count": 250},
    ),
    Workload(
        "chain",
        f"{PACKAGE}.ReferenceChain",
        {"low": 100, "saturated": 2500},
        {"spout": 2, "simple": 2, "stateful": 2, "ack": 2},
        {"simple": 100, "stateful": 100, "ack": 100},
        ("--stages", "5"),
    ),
    Workload(
        "http",
        f"{PACKAGE}.HttpMonitor",
        {"low": 60, "saturated": 1500},
        {"requests": 1, "retrieve": 2},
        {name: 100 for part in ("country", "isp", "prefix") for name in (part, f"stat-{part}")} | {"retrieve": 100},
    ),
)


@dataclass(frozen=True, slots=True)
class ExecutorFigures:
    """What one executor did: where, CPU and tuples."""

    component: str
    tasks: tuple[int, int]
    machine: int
    port: int
    cpu_millicores: float
    executed_per_second: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One case on the real cluster."""

    workload: str
    placement: str
    load: str
    turn: int
    acked_per_second: float
    latency_mean_ms: float
    latency_p50_ms: float
    latency_p99_ms: float
    round_trip_ms: float
    inter_supervisor_tuples_per_second: float
    executors: tuple[ExecutorFigures, ...]
    machine_millicores: tuple[float, ...]

    @property
    def case(self) -> tuple[str, str, str]:
        return self.workload, self.placement, self.load

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Measured:
        executors = tuple(ExecutorFigures(**{**e, "tasks": tuple(e["tasks"])}) for e in document["executors"])
        return cls(**{**document, "executors": executors, "machine_millicores": tuple(document["machine_millicores"])})


def cluster_spec(workload: Workload, plugin_jar: Path) -> LocalClusterSpec:
    return LocalClusterSpec(
        name=f"cal-{workload.name}"[:12],
        subnet="10.94.0.0/24",
        machines=MACHINES,
        capacity_millicores=MACHINE_MILLICORES,
        one_way_delay_ms=ONE_WAY_DELAY_MS,
        message_timeout_seconds=MESSAGE_TIMEOUT_SECONDS,
        plugin_jar=plugin_jar,
    )


def placement_of(
    kind: str, executors: tuple[Executor, ...], stateful: frozenset[str], supervisors: tuple[Supervisor, ...]
) -> Assignment:
    """`supervisors` in the order of their machines."""
    first, second = supervisors[0], supervisors[1]
    home = WorkerSlot(first.id, first.ports[0])
    if kind == "even":
        renamed = [replace(s, id=f"{number:03}{s.id}") for number, s in enumerate(supervisors)]
        slots = interleaved_free_slots(renamed, ())[:MACHINES]
        return Assignment(deal_out(executors, [WorkerSlot(slot.supervisor_id[3:], slot.port) for slot in slots]))
    away = {
        "one worker": home,
        "two workers": WorkerSlot(first.id, first.ports[1]),
        "two supervisors": WorkerSlot(second.id, second.ports[1]),
    }[kind]
    return Assignment({executor: away if executor.component in stateful else home for executor in executors})


def measure_workload(workload: Workload, jar: str, plugin_jar: Path, turn: int, seconds: float) -> Iterator[Measured]:
    """All placements and loads of one workload on one fresh cluster."""
    shown = workload.simulated("any", "low").as_topology()
    stateful = frozenset(component.name for component in shown.components if component.stateful)
    with LocalCluster(cluster_spec(workload, plugin_jar)) as cluster:
        rate_file = cluster.layout.data_dir / "rate"
        write_rate(rate_file, workload.rates["low"])
        bench = Bench.submit(
            cluster, jar, workload.name, workload.args(rate_file), len(shown.executors), workload.main_class
        )
        try:
            by_host = {supervisor.host: supervisor for supervisor in bench.supervisors()}
            machines = tuple(by_host[machine.host] for machine in cluster.machines)
            executors = tuple(sorted(bench.assignment().slot_of))
            for kind in PLACEMENTS:
                target = placement_of(kind, executors, stateful, machines)
                if target != bench.assignment():
                    bench.apply(target)
                for load, settle in (("saturated", 25.0), ("low", 8.0)):
                    write_rate(rate_file, workload.rates[load])
                    time.sleep(settle)
                    yield measure_placement(bench, workload, kind, load, turn, machines, seconds)
        finally:
            bench.close()


def measure_placement(
    bench: Bench,
    workload: Workload,
    placement: str,
    load: str,
    turn: int,
    machines: tuple[Supervisor, ...],
    seconds: float,
    wait: Callable[[float], None] = time.sleep,
) -> Measured:
    """What the topology does over the next `seconds`, which `wait` lets pass; `placement` is what it is called."""
    watching = {
        name: replace(spec, scheduling=SchedulingSettings(mode=Mode.OBSERVE)) for name, spec in bench.specs.items()
    }
    started = time.time()
    bench.assembly.metrics.read_window(started, 1.0)
    wait(seconds)
    now = time.time()
    window = bench.assembly.metrics.read_window(now, now - started + 0.9)
    snapshot = build_snapshot(bench.assembly.storm.read_view(watching), window, (), now)
    assert not snapshot.completeness.missing_executors, snapshot.completeness
    number_of = {supervisor.id: number for number, supervisor in enumerate(machines)}
    latency, rates = mixed_latency(window), snapshot.rates[bench.topology_id]
    assert latency is not None
    assert rates.acked_per_second is not None
    figures = []
    for executor, slot in sorted(snapshot.assignment.slot_of.items()):
        did = snapshot.loads[executor]
        assert did.cpu_millicores is not None
        assert did.executed_per_second is not None
        figures.append(
            ExecutorFigures(
                executor.component,
                (executor.task_start, executor.task_end),
                number_of[slot.supervisor_id],
                slot.port - FIRST_PORT,
                did.cpu_millicores,
                did.executed_per_second,
            )
        )
    return Measured(
        workload=workload.name,
        placement=placement,
        load=load,
        turn=turn,
        acked_per_second=rates.acked_per_second,
        latency_mean_ms=latency.mean_ms,
        latency_p50_ms=latency.p50_ms,
        latency_p99_ms=latency.p99_ms,
        round_trip_ms=snapshot.distances.default_ms,
        inter_supervisor_tuples_per_second=snapshot.traffic.inter_supervisor(snapshot.assignment),
        executors=tuple(figures),
        machine_millicores=tuple(snapshot.supervisor_cpu_millicores[supervisor.id] for supervisor in machines),
    )


def save(measured: list[Measured], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(one) for one in measured], separators=(",", ":")), encoding="utf-8")


def load(path: Path) -> list[Measured]:
    return [Measured.from_json(one) for one in json.loads(path.read_text(encoding="utf-8"))]

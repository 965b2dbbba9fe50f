"""Schedulers against each other on a real Storm cluster on this machine; the last line is JSON.

For each workload one cluster, on which the contenders take turns. Storm's own two (Even, ResourceAware) place the
topology themselves: Nimbus is restarted with the one that it is to use, any plan is taken away, and the topology is
rebalanced. A policy of ours starts from what Even has placed and runs in the control loop until it leaves things as
they are. Each is measured at low load and at saturation, after the same time in which the JVMs warm up.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
import yaml
from calibration_cases import (
    LOADS,
    MACHINE_MILLICORES,
    MACHINES,
    WORKLOADS,
    Measured,
    Workload,
    cluster_spec,
    load,
    measure_placement,
    save,
)
from cluster_bench import Bench
from eventually import eventually
from papers.contestants import as_published, published_enforcement
from real_figures import (
    ADAPTIVE,
    EVEN,
    RESOURCE_AWARE,
    STORMS_OWN,
    figures_table,
    picture,
    ratios,
    ratios_table,
    summary,
    turn_order,
)
from rich.console import Console

from storm_operator.adapters.errors import TopologyNotAlive
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.model import Supervisor
from storm_operator.core.placement.registry import period_of
from storm_operator.core.plan_record import executor_key
from storm_operator.core.settings import ApprovalMode, ApprovalSettings, Enforcement, Mode, ResourceSettings
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.demo.run import write_rate
from storm_operator.demo.scenario import PERIOD_SECONDS, scheduling
from storm_operator.local.build import plugin_jar, workloads_jar
from storm_operator.local.cluster import LocalCluster
from storm_operator.loop_ports import LoopMemory, PassReport

DEFAULT_FILE = Path("build/bench-real/measured.json")
FALLBACK_KEY = "storm_operator.fallback.scheduler"
FALLBACKS = {EVEN: "default", RESOURCE_AWARE: "resource-aware"}

SKIPPED_ROUND = "skipping assignments"
"""What Nimbus logs of it."""
QUIET_ROUNDS = 4
"""There is one each second (`nimbus.monitor.freq.secs`)."""

Wait = Callable[[float], None]
"""Lets so many seconds pass."""

RESOURCES = ResourceSettings(theta_millicores=25.0, floor_millicores=25.0)
"""The machines have half a core: half of what the demo's, with one core, are managed by."""

DECLARED_FRACTION = 0.8
WORKER_HEAP_MB, COMPONENT_HEAP_MB = 768, 32

PARK_MICROS = 1500
"""How long an idle bolt sleeps before it looks again. At the local cluster's 600 the HTTP monitor's 17 executors use
320 millicores of a machine's 500, most of that for looking alone."""

WARM_UP_SECONDS = 15.0
SETTLE_LOW_SECONDS, SETTLE_SATURATED_SECONDS = 8.0, 60.0
REBALANCE_SECONDS = 4.0
LIMIT_SECONDS = 120.0
CALM_PASSES = 5  # as many as demand looks back over
CALM = (
    HoldReason.NO_CHANGE,
    HoldReason.NOT_DUE,
    HoldReason.GAIN_TOO_SMALL,
    HoldReason.PAYBACK_TOO_LONG,
    HoldReason.TOO_LITTLE_CAPACITY,
    HoldReason.KNOWN_BAD,
    HoldReason.INFEASIBLE,
)
"""Reasons for which a policy that could act does not."""


def declared_percent(executors: int) -> int:
    """CPU that each executor declares for the ResourceAwareScheduler, in percent of a core.

    What a user who sizes the topology for saturation would say without having measured: an equal share of 80% of the
    cluster. With less, that scheduler puts everything on one supervisor, also at saturation.
    """
    return int(DECLARED_FRACTION * MACHINES * MACHINE_MILLICORES / 10.0 / executors)


def declarations(executors: int) -> tuple[str, ...]:
    """The topology's options by which the ResourceAwareScheduler goes; memory must not bind."""
    percent = declared_percent(executors)
    conf = {
        "topology.component.cpu.pcore.percent": percent,
        "topology.acker.cpu.pcore.percent": percent,
        "topology.component.resources.onheap.memory.mb": COMPONENT_HEAP_MB,
        "topology.acker.resources.onheap.memory.mb": COMPONENT_HEAP_MB,
        "topology.worker.max.heap.size.mb": WORKER_HEAP_MB,
    }
    return tuple(part for key, value in conf.items() for part in ("--conf", f"{key}={float(value)}"))


def passes_until_calm(policy: str) -> int:
    """A policy that acts from time to time could have acted once its period is over, and not before."""
    return CALM_PASSES + math.ceil((period_of(policy) or 0.0) / PERIOD_SECONDS)


def longest_settling(policy: str, limit_seconds: float) -> float:
    """Room for a period until the policy acts, and for one more in which it might act again."""
    return limit_seconds + 2.0 * (period_of(policy) or 0.0)


def is_calm(reports: Sequence[PassReport], passes: int = CALM_PASSES) -> bool:
    """Whether the policy has left things as they are for so many passes, although it could have acted."""
    made = [[decision for _, decision in report.decisions] for report in reports[-passes:]]
    return len(made) == passes and all(
        decisions and all(isinstance(one, Hold) and one.reason in CALM for one in decisions) for decisions in made
    )


@dataclass(frozen=True, slots=True)
class Arena:
    """One workload on one cluster, on which contenders take turns."""

    cluster: LocalCluster
    bench: Bench
    workload: Workload
    rate_file: Path
    console: Console
    limit_seconds: float = LIMIT_SECONDS

    def play(self, contender: str, turn: int, seconds: float) -> Iterator[Measured]:
        """Put `contender` in charge and measure it at each load."""
        self._offer("low")
        self._leave_to_storm(contender if contender in STORMS_OWN else EVEN)
        machines = self._machines()
        self._warm_up(time.sleep)  # as a topology is that has run for a while: compiling is no need of its own
        for load_name in LOADS:
            self._offer(load_name)
            if contender not in STORMS_OWN:
                self._manage(contender)
            wait = time.sleep if contender in STORMS_OWN else self._keeper_of_limits(contender)
            self._settle(load_name, wait)
            yield measure_placement(self.bench, self.workload, contender, load_name, turn, machines, seconds, wait)

    def _offer(self, load_name: str) -> None:
        write_rate(self.rate_file, self.workload.rates[load_name])

    def _settle(self, load_name: str, wait: Wait) -> None:
        """Whoever is measured at low load has had its JVMs warmed up by the same seconds of saturation."""
        if load_name == "saturated":
            wait(SETTLE_SATURATED_SECONDS)
        else:
            self._warm_up(wait)

    def _warm_up(self, wait: Wait) -> None:
        """Some seconds of saturation, then low load again."""
        self._offer("saturated")
        wait(WARM_UP_SECONDS)
        self._offer("low")
        wait(SETTLE_LOW_SECONDS)

    def _leave_to_storm(self, scheduler: str) -> None:
        """The topology as one of Storm's own schedulers places it from scratch, without any plan or limit."""
        self._use_fallback(FALLBACKS[scheduler])
        assembly, topology_id = self.bench.assembly, self.bench.topology_id
        assembly.loop.memory = LoopMemory()
        assembly.loop.journal.clear()
        assembly.store.delete_plan(topology_id)
        eventually(self._schedules, f"Nimbus schedules {self.workload.name}")
        eventually(self._is_rebalanced, f"Nimbus rebalances {self.workload.name}")
        time.sleep(REBALANCE_SECONDS)
        eventually(self._all_run, f"{self.workload.name} runs where {scheduler} has placed it")

    def _schedules(self) -> bool:
        """A Nimbus that has just started skips each round, that of a rebalance too, until workers beat again."""
        before = self._skipped_rounds()
        time.sleep(QUIET_ROUNDS)
        return self._skipped_rounds() == before

    def _skipped_rounds(self) -> int:
        logs = self.cluster.layout.logs_dir.glob("nimbus*.log")
        return sum(log.read_text(encoding="utf-8", errors="replace").count(SKIPPED_ROUND) for log in logs)

    def _is_rebalanced(self) -> bool:
        try:
            self.bench.assembly.storm.rebalance(self.bench.topology_id)
        except TopologyNotAlive:  # so says a Nimbus that has just started, although it lists the topology
            return False
        return True

    def _use_fallback(self, name: str) -> None:
        file = self.cluster.conf_dir / "storm.yaml"
        conf = yaml.safe_load(file.read_text(encoding="utf-8"))
        if conf[FALLBACK_KEY] == name:
            return
        file.write_text(yaml.safe_dump(conf | {FALLBACK_KEY: name}, sort_keys=True), encoding="utf-8")
        self.cluster.stop_daemon("nimbus")
        self.cluster.start_daemon("nimbus")
        self.cluster.wait_ready()

    def _all_run(self) -> bool:
        slot_of = self.bench.assignment().slot_of
        workers = self.bench.assembly.loop.applier.probe.workers({slot.supervisor_id for slot in slot_of.values()})
        return bool(slot_of) and all(
            slot in workers and executor_key(executor) in workers[slot].at_work for executor, slot in slot_of.items()
        )

    def _manage(self, policy: str) -> None:
        """Run the control loop with `policy` until it is calm, or the time is over; then nothing moves any more."""
        specs = {name: managed(spec, policy) for name, spec in self.bench.specs.items()}
        loop = self.bench.assembly.loop
        loop.period_seconds = PERIOD_SECONDS
        reports: list[PassReport] = []
        passes = passes_until_calm(policy)
        deadline = time.monotonic() + longest_settling(policy, self.limit_seconds)
        while not is_calm(reports, passes) and (time.monotonic() < deadline or loop.has_pending_plan):
            reports.append(self._pass(specs, PERIOD_SECONDS))
        plans = [f"{one.plan.id} {one.state.value}: {one.plan.reason}" for one in loop.memory.records]
        calm = "calm" if is_calm(reports, passes) else "NOT calm"
        self.console.log("\n".join([f"{policy}: {calm} after {len(reports)} passes; plans so far:", *plans]))
        last = [made for _, made in reports[-1].decisions if isinstance(made, Hold)]
        self.console.log("; ".join(f"{hold.reason.value}: {hold.message}" for hold in last))

    def _keeper_of_limits(self, policy: str) -> Wait:
        """Waits while the loop goes on: limits follow the load as they always do, and plans wait for somebody's yes."""
        specs = {name: managed(spec, policy, ApprovalMode.MANUAL) for name, spec in self.bench.specs.items()}

        def wait(seconds: float) -> None:
            until = time.monotonic() + seconds
            while (left := until - time.monotonic()) > 0.0:
                self._pass(specs, min(PERIOD_SECONDS, left))

        return wait

    def _pass(self, specs: Mapping[str, TopologySpec], seconds: float) -> PassReport:
        """One pass of the loop, and what is left of `seconds`."""
        began = time.monotonic()
        report = self.bench.assembly.loop.run_once(specs)
        time.sleep(max(0.0, began + seconds - time.monotonic()))
        return report

    def _machines(self) -> tuple[Supervisor, ...]:
        by_host = {supervisor.host: supervisor for supervisor in self.bench.supervisors()}
        return tuple(by_host[machine.host] for machine in self.cluster.machines)


def managed(spec: TopologySpec, policy: str, approval: ApprovalMode = ApprovalMode.AUTO) -> TopologySpec:
    """`spec` under `policy`: adaptive with the demo's settings, anybody else as published."""
    settings, enforcement = scheduling(Mode.ENFORCE), Enforcement.EXECUTOR
    if policy != ADAPTIVE:
        settings = replace(as_published(policy), period_seconds=PERIOD_SECONDS)
        enforcement = published_enforcement(policy)
    settings = replace(settings, approval=ApprovalSettings(approval))
    return replace(spec, scheduling=settings, resources=replace(RESOURCES, enforcement=enforcement))


def measure(
    workloads: Sequence[Workload],
    contenders: Sequence[str],
    turns: int,
    seconds: float,
    limit_seconds: float,
    keep: Path,
    console: Console,
) -> list[Measured]:
    """Every workload on a cluster of its own; what is measured is kept case by case."""
    found: list[Measured] = []
    for workload in workloads:
        spec = replace(
            cluster_spec(workload, plugin_jar()),
            name=f"real-{workload.name}"[:12],
            subnet="10.95.0.0/24",
            extra_conf={"topology.bolt.wait.park.microsec": PARK_MICROS},
        )
        executors = len(workload.simulated("any", "low").as_topology().executors)
        with LocalCluster(spec) as cluster:
            for sentence in cluster.not_emulated:
                console.log(f"not emulated: {sentence}")
            rate_file = cluster.layout.data_dir / "rate"
            write_rate(rate_file, workload.rates["low"])
            args = (*workload.args(rate_file), *declarations(executors))
            bench = Bench.submit(cluster, str(workloads_jar()), workload.name, args, executors, workload.main_class)
            try:
                arena = Arena(cluster, bench, workload, rate_file, console, limit_seconds)
                for turn in range(turns):
                    for contender in turn_order(contenders, turn):
                        for case in arena.play(contender, turn, seconds):
                            found.append(case)
                            save(found, keep)
                            console.log(_line(case))
            finally:
                bench.close()
    return found


def _line(case: Measured) -> str:
    return (
        f"turn {case.turn + 1}, {case.workload}, {case.placement}, {case.load}: p50 {case.latency_p50_ms:.2f} ms, "
        f"{case.inter_supervisor_tuples_per_second:.0f} inter-supervisor tuples/s, "
        f"{case.acked_per_second:.1f} trees/s, {len({e.machine for e in case.executors})} supervisors, "
        f"{len({(e.machine, e.port) for e in case.executors})} workers, "
        f"{[round(used) for used in case.machine_millicores]} millicores"
    )


def workloads_named(names: str) -> tuple[Workload, ...]:
    """ValueError for a name that there is not."""
    by_name = {workload.name: workload for workload in WORKLOADS}
    wanted = names.split(",")
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        raise ValueError(f"--workloads {names}: no {', '.join(unknown)}; there are {', '.join(by_name)}")
    return tuple(by_name[name] for name in wanted)


def main(
    turns: int = 3,
    seconds: float = 15.0,
    limit_seconds: Annotated[
        float, typer.Option(help="Longest time in which a policy may settle, beside two of its own periods.")
    ] = LIMIT_SECONDS,
    workloads: Annotated[str, typer.Option(help="Which workloads, in this order.")] = "wordcount,chain,http",
    policies: Annotated[str, typer.Option(help="Further policies by name, e.g. liu,aniello-online,t-storm.")] = "",
    measured: Annotated[Path | None, typer.Option(help="Do not measure: take what an earlier run measured.")] = None,
    keep: Annotated[Path, typer.Option(help="Where to keep what is measured.")] = DEFAULT_FILE,
    pictures: Annotated[Path, typer.Option(help="Folder for a picture.")] = Path("build/bench-real"),
) -> None:
    """Measure (about ten minutes for each workload and turn, two and a half more for each further policy, and two to
    four of its own periods where it has one)."""
    console = Console(file=sys.stderr, width=160)
    contenders = (*STORMS_OWN, ADAPTIVE, *filter(None, policies.split(",")))
    chosen = workloads_named(workloads)
    cases = load(measured) if measured else measure(chosen, contenders, turns, seconds, limit_seconds, keep, console)
    pictures.mkdir(parents=True, exist_ok=True)
    (pictures / "real.svg").write_text(picture(cases), encoding="utf-8")
    print(figures_table(cases))
    print()
    print(ratios_table([row for other in STORMS_OWN for row in ratios(cases, ADAPTIVE, other)]))
    print(json.dumps(summary(cases)))


if __name__ == "__main__":
    typer.run(main)

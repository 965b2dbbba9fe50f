"""CPU of the operator and all agents at rest: four machines, the demo's two topologies with next to no load.

The operator manages both with its default period. The last line is JSON; figures are percent of one core.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import typer
from eventually import eventually
from rich.console import Console

from storm_operator.assembly import assemble
from storm_operator.connection_options import connection_of
from storm_operator.demo.recorder import Recorder
from storm_operator.demo.scenario import WORKLOADS
from storm_operator.local.build import plugin_jar, workloads_jar
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.spec import LocalClusterSpec

FILE = """
apiVersion: storm-operator.dev/v1alpha1
kind: StormTopology
metadata: {{name: {name}}}
spec:
  jar: {{path: {jar}, mainClass: {main_class}, args: {args}}}
  resources: {{thetaMillicores: 50, floorMillicores: 50}}
"""


def main(seconds: float = 60.0, settle_seconds: float = 90.0) -> None:
    """Measure for `seconds`, after `settle_seconds` in which topologies start and the first plan is made."""
    console = Console(stderr=True)
    spec = LocalClusterSpec(name="bench-idle", subnet="10.95.0.0/24", slots_per_machine=6, plugin_jar=plugin_jar())
    with tempfile.TemporaryDirectory() as folder, LocalCluster(spec) as cluster:
        for workload in WORKLOADS:
            args = ["--name", workload.name, "--rate", "steady:1", *workload.args]
            text = FILE.format(
                name=workload.name, jar=workloads_jar(), main_class=workload.main_class, args=json.dumps(args)
            )
            (Path(folder) / f"{workload.name}.yaml").write_text(text)
        host, port = cluster.nimbus
        program = [sys.executable, "-m", "storm_operator", "standalone", folder, "--nimbus", f"{host}:{port}"]
        program += ["--zookeeper", cluster.zookeeper, "--storm-home", str(cluster.storm_home)]
        program += ["--storm-conf-dir", str(cluster.conf_dir)]
        operator = subprocess.Popen(program, stdout=subprocess.DEVNULL)
        try:
            assembly = assemble(connection_of(cluster), Recorder())
            eventually(lambda: len(assembly.storm.running()) == len(WORKLOADS), "both topologies run")
            assembly.close()
            time.sleep(settle_seconds)
            agents = [pid for name, pid in cluster.pids.items() if name.startswith("agent-")]
            used = _percent([operator.pid, *agents], seconds)
        finally:
            operator.terminate()
            operator.wait(timeout=30)
    console.print(f"operator {used[0]:.2f}%, agents {', '.join(f'{percent:.2f}%' for percent in used[1:])}")
    print(json.dumps({"operator_percent": used[0], "agents_percent": used[1:], "together_percent": sum(used)}))


def _percent(pids: list[int], seconds: float) -> list[float]:
    processes = [psutil.Process(pid) for pid in pids]
    before = [_cpu_seconds(process) for process in processes]
    started = time.monotonic()
    time.sleep(seconds)
    elapsed = time.monotonic() - started
    return [100.0 * (_cpu_seconds(p) - b) / elapsed for p, b in zip(processes, before, strict=True)]


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    typer.run(main)

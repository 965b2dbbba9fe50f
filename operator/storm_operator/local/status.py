"""What a cluster is doing at this moment, as plain values for a table or for JSON."""

from __future__ import annotations

import time
from typing import Any

import psutil

from storm_operator.local.cgroups import throttled_periods, usable_hierarchy, used_cpu_seconds
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.spec import LocalMachine

CPU_SAMPLE_SECONDS = 0.5


def cluster_status(cluster: LocalCluster, sample_seconds: float = CPU_SAMPLE_SECONDS) -> dict[str, Any]:
    """Daemons, machines and workers. CPU is what was used during `sample_seconds`; None is unknown."""
    layout = cluster.layout
    before = {machine.name: _cpu_seconds(machine) for machine in cluster.machines}
    began = time.monotonic()
    time.sleep(sample_seconds)
    elapsed = time.monotonic() - began
    after = {machine.name: _cpu_seconds(machine) for machine in cluster.machines}
    return {
        "name": cluster.spec.name,
        "isolated": cluster.isolated,
        "not_emulated": list(cluster.not_emulated),
        "nimbus": f"{layout.host}:{layout.nimbus_port}",
        "zookeeper": cluster.zookeeper,
        "conf_dir": str(cluster.conf_dir),
        "logs_dir": str(cluster.logs_dir),
        "memory_mb": round(sum(_memory_mb(pid) or 0.0 for pid in cluster.processes()), 1),
        "daemons": [daemon | {"memory_mb": _memory_mb(daemon["pid"])} for daemon in cluster.daemons()],
        "machines": [
            {
                "name": machine.name,
                "host": machine.host,
                "agent_url": machine.agent_url if cluster.spec.agents else None,
                "ports": list(machine.ports),
                "capacity_millicores": cluster.spec.capacity_millicores if machine.cgroup else None,
                "used_millicores": used_millicores(before[machine.name], after[machine.name], elapsed),
                "throttled_periods": throttled_periods(machine.cgroup) if machine.cgroup else None,
            }
            for machine in cluster.machines
        ],
        "workers": [
            {
                "machine": worker.machine,
                "port": worker.port,
                "pid": worker.pid,
                "topology_id": worker.topology_id,
                "memory_mb": _memory_mb(worker.pid),
            }
            for worker in cluster.workers()
        ],
    }


def used_millicores(before: float | None, after: float | None, elapsed_seconds: float) -> float | None:
    """From two readings of used CPU seconds; None when either is unknown."""
    if before is None or after is None:
        return None
    return round(1000.0 * (after - before) / elapsed_seconds, 1)


def _cpu_seconds(machine: LocalMachine) -> float | None:
    hierarchy = usable_hierarchy()
    if hierarchy is None or machine.cgroup is None:
        return None
    return used_cpu_seconds(hierarchy, machine.cgroup)


def _memory_mb(pid: int | None) -> float | None:
    """Proportional share of memory, so that what processes share is not counted twice; None when unknown."""
    if pid is None:
        return None
    try:
        return round(float(psutil.Process(pid).memory_full_info().pss) / 2**20, 1)
    except psutil.Error:
        return None

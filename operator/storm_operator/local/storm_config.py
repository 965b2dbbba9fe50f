"""storm.yaml: for Nimbus and clients, and for each machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from storm_operator.local.jvm import Jvm, log_writer_options, worker_options
from storm_operator.local.spec import ClusterLayout, LocalClusterSpec, LocalMachine

ZOOKEEPER_SESSION_MS = 6000
SUPERVISOR_MEMORY_MB = 4096.0

WORKER_START_SECONDS = 120
"""Storm's default. A slow or busy machine needs more than half a minute for several JVMs at once. A Nimbus that is less
patient than the supervisors has a worker killed that has not even written down its process id: Storm then does not end
it, and it comes up later, holds its port, and each worker that is placed there ends with a BindException."""

QUICK_REACTION: Mapping[str, Any] = {
    "nimbus.monitor.freq.secs": 1,
    "nimbus.supervisor.timeout.secs": 15,
    "nimbus.task.timeout.secs": 15,
    "nimbus.task.launch.secs": WORKER_START_SECONDS,
    "supervisor.worker.start.timeout.secs": WORKER_START_SECONDS,
    "blacklist.scheduler.tolerance.count": 1000,  # else a machine that was away is shunned for half an hour
    "supervisor.monitor.frequency.secs": 1,
    "supervisor.heartbeat.frequency.secs": 2,
    "supervisor.worker.shutdown.sleep.secs": 1,
    "task.refresh.poll.secs": 1,
    "executor.metrics.frequency.secs": 2,
    "storm.messaging.netty.max_wait_ms": 200,
    "storm.zookeeper.session.timeout": ZOOKEEPER_SESSION_MS,
    "storm.zookeeper.connection.timeout": ZOOKEEPER_SESSION_MS,
    "storm.zookeeper.retry.interval": 200,
    "storm.zookeeper.retry.intervalceiling.millis": 1000,
}
"""Storm's defaults suit machines that fail once a month; here things move and fail every minute."""

FEW_CORES: Mapping[str, Any] = {
    "topology.bolt.wait.strategy": "org.apache.storm.policy.WaitStrategyPark",
    "topology.bolt.wait.park.microsec": 600,
}
"""By default an idle executor polls its queue a thousand times before it sleeps: about 5% of a core each, for as long
as some tuples come. All machines share this machine's few cores, so here it parks at once, for 0.6 ms a time."""

SELDOM_AWAKE: Mapping[str, Any] = {
    "topology.bolt.wait.park.microsec": 10_000,
    "topology.spout.wait.progressive.level3.sleep.millis": 10,
}
"""For clusters whose tuples are in no hurry (`extra_conf`): three of them side by side, in tests, woke up 50,000 times
a second at 0.6 ms a time, and 22,000 times at this."""

SELDOM_HEARD: Mapping[str, Any] = {
    "supervisor.heartbeat.frequency.secs": 4,
    "executor.metrics.frequency.secs": 4,
}
"""For clusters at whose failures nobody looks within seconds (`extra_conf`): for each report of its own and each of its
workers, a supervisor connects to Nimbus anew and both ask ZooKeeper who leads."""


def common_conf(layout: ClusterLayout) -> dict[str, Any]:
    """What every process of the cluster, and every client, must agree on."""
    spec = layout.spec
    conf: dict[str, Any] = {
        "storm.cluster.mode": "distributed",
        "storm.zookeeper.servers": [layout.host],
        "storm.zookeeper.port": layout.zookeeper_port,
        "nimbus.seeds": [layout.host],
        "nimbus.thrift.port": layout.nimbus_port,
        "storm.local.hostname": layout.host,
        "storm.local.dir": str(layout.data_dir / "nimbus"),
        "topology.message.timeout.secs": spec.message_timeout_seconds,
        "topology.worker.max.heap.size.mb": float(spec.worker_heap_mb),
        "worker.heap.memory.mb": spec.worker_heap_mb,
        # Lists: Storm cuts a text at each space, and paths may have some.
        "worker.childopts": list(
            worker_options(spec.worker_heap_mb, spec.fast_start, layout.class_data.get(Jvm.WORKER))
        ),
        "topology.worker.logwriter.childopts": list(log_writer_options(layout.class_data.get(Jvm.LOG_WRITER))),
        **QUICK_REACTION,
        **FEW_CORES,
    }
    return conf | plugin_conf(spec) | dict(spec.extra_conf)


def plugin_conf(spec: LocalClusterSpec) -> dict[str, Any]:
    """The plugin's own keys (docs/reference/interfaces.md); nothing without the plugin."""
    if spec.plugin_jar is None:
        return {}
    return {
        "storm.scheduler": "dev.stormoperator.scheduler.PlanScheduler",
        "storm_operator.fallback.scheduler": spec.fallback,
        "topology.auto.task.hooks": ["dev.stormoperator.metrics.TrafficHook"],
        "storm.topology.metrics.system.reporters": [{"class": "dev.stormoperator.metrics.SnapshotReporter"}],
        "storm_operator.metrics.exact": spec.exact_metrics,
    }


def machine_conf(layout: ClusterLayout, machine: LocalMachine) -> dict[str, Any]:
    """A supervisor's storm.yaml; its workers read it too. Resource-aware scheduling counts 100 for a whole core."""
    own = {
        "storm.local.hostname": machine.host,
        "storm.local.dir": str(machine.storm_local_dir),
        "storm_operator.metrics.dir": str(machine.metrics_dir),
        "supervisor.slots.ports": list(machine.ports),
        "supervisor.thrift.port": machine.thrift_port,
        "supervisor.cpu.capacity": layout.spec.capacity_millicores / 10.0,
        "supervisor.memory.capacity.mb": SUPERVISOR_MEMORY_MB,
        "storm.workers.artifacts.dir": str(layout.logs_dir / machine.name / "workers"),
    }
    return common_conf(layout) | own | dict(layout.spec.extra_conf)


def write_confs(layout: ClusterLayout) -> None:
    """All storm.yaml files of the cluster, and the folders that they name."""
    _write(layout.conf_dir, common_conf(layout))
    (layout.data_dir / "nimbus").mkdir(parents=True, exist_ok=True)
    for machine in layout.machines:
        _write(machine.conf_dir, machine_conf(layout, machine))
        machine.metrics_dir.mkdir(parents=True, exist_ok=True)
        (layout.logs_dir / machine.name / "workers").mkdir(parents=True, exist_ok=True)


def _write(folder: Path, conf: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "storm.yaml").write_text(yaml.safe_dump(dict(conf), sort_keys=True))

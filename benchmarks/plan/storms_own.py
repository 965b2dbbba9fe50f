"""Storm's own ResourceAwareScheduler, called in a JVM of its own on the same instance.

It goes by what components declare, so each declares the mean CPU of its executors, rounded up; a supervisor offers what
placement may fill of it (its capacity times the headroom). Memory and number of workers do not limit it, the four
slots of each supervisor do.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plan.instance import Instance

from storm_operator.core.model import ACKER_COMPONENT, Assignment, Executor, Topology, WorkerSlot
from storm_operator.core.placement.objective import usable_millicores
from storm_operator.local.distribution import ensure_distribution
from storm_operator.local.spec import LocalClusterError

SOURCE = Path(__file__).parent / "ras" / "ResourceAware.java"
MILLICORES_PER_PERCENT = 10.0
HEAP = "-Xmx4g"


@dataclass(frozen=True, slots=True)
class Placed:
    """What the scheduler decided, how long its call took, and its status for each topology it did not place whole."""

    assignment: Assignment
    seconds: float
    not_placed: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Why there is no answer."""

    reason: str


def place_resource_aware(instance: Instance, folder: Path, limit_seconds: float) -> Placed | GivenUp:
    """What others have measured by then must not be lost to a Java that is missing or fails. Files go to `folder`."""
    question, answer = folder / "cluster.json", folder / "answer.json"
    question.write_text(json.dumps(cluster_to_json(instance)), encoding="utf-8")
    try:
        command = ["java", HEAP, "-Dlog4j2.level=ERROR", "-cp", _compiled(folder / "classes"), "ResourceAware"]
        _run([*command, str(question), str(answer)], limit_seconds)
    except subprocess.TimeoutExpired:
        return GivenUp(f"it took longer than {limit_seconds:.0f} s")
    except subprocess.CalledProcessError as error:
        return GivenUp(f"{error.cmd[0]} failed: {_complaint(error)}")
    except (LocalClusterError, OSError) as error:
        return GivenUp(str(error))
    decided = json.loads(answer.read_text(encoding="utf-8"))
    return Placed(_assignment(instance, decided["places"]), decided["seconds"], decided["not_placed"])


def cluster_to_json(instance: Instance) -> dict[str, Any]:
    """What the scheduler is told: CPU in percent of a core, as Storm counts it."""
    usable = usable_millicores(instance.snapshot, instance.settings)
    return {
        "supervisors": [
            {
                "id": machine.id,
                "host": machine.host,
                "ports": list(machine.ports),
                "cpu_percent": usable[machine.id] / MILLICORES_PER_PERCENT,
            }
            for machine in instance.snapshot.supervisors
        ],
        "topologies": [_topology_to_json(topology, instance) for topology in instance.snapshot.topologies],
    }


def _topology_to_json(topology: Topology, instance: Instance) -> dict[str, Any]:
    components = []
    for component in topology.components:
        executors = topology.executors_of(component.name)
        mean = instance.demand.total(executors) / len(executors)
        components.append(
            {
                "name": component.name,
                "kind": component.kind.value,
                "first_task": executors[0].task_start,
                "executors": len(executors),
                "cpu_percent": math.ceil(mean) / MILLICORES_PER_PERCENT,
                "parents": [name for name in topology.parents_of(component.name) if name != ACKER_COMPONENT],
            }
        )
    return {"id": topology.id, "workers": topology.num_workers, "components": components}


def _assignment(instance: Instance, places: list[tuple[str, int, str, int]]) -> Assignment:
    executor_of: dict[tuple[str, int], Executor] = {
        (executor.topology_id, executor.task_start): executor for executor in instance.snapshot.traffic.executors
    }
    return Assignment(
        {executor_of[topology_id, task]: WorkerSlot(node, port) for topology_id, task, node, port in places}
    )


def _compiled(classes: Path) -> str:
    """The class path of the compiled harness with Storm's."""
    jars = ensure_distribution(lambda message: None) / "lib" / "*"
    _run(["javac", "-d", str(classes), "-cp", str(jars), str(SOURCE)])
    return os.pathsep.join([str(classes), str(jars)])


def _run(command: list[str], limit_seconds: float | None = None) -> None:
    subprocess.run(
        command, check=True, timeout=limit_seconds, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def _complaint(error: subprocess.CalledProcessError) -> str:
    """The last line that is no line of a stack trace, such as an OutOfMemoryError's; else the exit status."""
    told = [line for line in (error.stderr or "").splitlines() if line and not line[0].isspace()]
    return told[-1] if told else f"exit status {error.returncode}"

"""ClusterSnapshot to and from plain dictionaries and lists: the form of docs/reference/snapshot.md, version 1.

Reading expects a document that has passed the schema; what a schema cannot say (does this executor exist, is this
id there twice) is checked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from storm_operator.core.distances import MEASURED_WORKER_HOP_MS, Distances
from storm_operator.core.model import (
    Assignment,
    Component,
    ComponentKind,
    Edge,
    Executor,
    ExecutorLoad,
    Supervisor,
    Topology,
    WorkerSlot,
)
from storm_operator.core.network_places import NO_PLACES, NetworkPlaces
from storm_operator.core.snapshot import (
    ClusterSnapshot,
    Completeness,
    ComponentLoad,
    LatencySummary,
    LoadPeriod,
    TopologyRates,
)
from storm_operator.core.traffic import TrafficMatrix
from storm_operator.core.vivaldi import Coordinate

VERSION = 1

Document = dict[str, Any]
ExecutorIndex = dict[tuple[str, int, int], Executor]


class InvalidSnapshot(ValueError):
    """A document that is not a snapshot; the message names the field, its value and what would be right."""


def to_document(snapshot: ClusterSnapshot) -> Document:
    """`snapshot` in JSON's types. ValueError when it speaks of executors that none of its topologies has."""
    _check_executors_are_known(snapshot)
    return {
        "version": VERSION,
        "taken_at_seconds": snapshot.taken_at_seconds,
        "period_seconds": snapshot.period_seconds,
        "supervisors": [{**asdict(supervisor), "ports": list(supervisor.ports)} for supervisor in snapshot.supervisors],
        "topologies": [_topology_document(snapshot, topology) for topology in snapshot.topologies],
        "workers": [{**asdict(slot), "pid": pid} for slot, pid in sorted(snapshot.worker_pids.items())],
        "distances": {
            "loopback_ms": snapshot.distances.loopback_ms,
            "default_ms": snapshot.distances.default_ms,
            "worker_hop_ms": snapshot.distances.worker_hop_ms,
            "round_trips": [
                {"from": a, "to": b, "ms": ms} for (a, b), ms in sorted(snapshot.distances.round_trip_ms.items())
            ],
            **_places_document(snapshot.distances.places),
        },
        "completeness": {
            "expected_executors": snapshot.completeness.expected_executors,
            "missing_executors": [
                {"topology_id": executor.topology_id, "tasks": _tasks(executor)}
                for executor in snapshot.completeness.missing_executors
            ],
            "age_seconds": snapshot.completeness.age_seconds,
            "problems": list(snapshot.completeness.problems),
            "topology_age_seconds": dict(sorted(snapshot.completeness.topology_age_seconds.items())),
            "silent_supervisors": list(snapshot.completeness.silent_supervisors),
        },
        "supervisor_cpu_millicores": dict(sorted(snapshot.supervisor_cpu_millicores.items())),
        "history": [_period_document(period) for period in snapshot.history],
    }


def _topology_document(snapshot: ClusterSnapshot, topology: Topology) -> Document:
    rates = snapshot.rates.get(topology.id)
    return {
        "id": topology.id,
        "name": topology.name,
        "num_workers": topology.num_workers,
        "components": [{**asdict(component), "kind": component.kind.value} for component in topology.components],
        "edges": [asdict(edge) for edge in topology.edges],
        "executors": [_executor_document(snapshot, executor) for executor in topology.executors],
        "traffic": [
            {"source": _tasks(source), "target": _tasks(target), "tuples_per_second": rate}
            for source, target, rate in snapshot.traffic.within(topology.id).pairs()
        ],
        "rates": None if rates is None else asdict(rates),
    }


def _executor_document(snapshot: ClusterSnapshot, executor: Executor) -> Document:
    slot, load = snapshot.assignment.slot_of.get(executor), snapshot.loads.get(executor)
    return {
        "tasks": _tasks(executor),
        "component": executor.component,
        "slot": None if slot is None else asdict(slot),
        "load": None if load is None else asdict(load),
    }


def _period_document(period: LoadPeriod) -> Document:
    return {
        "ended_at_seconds": period.ended_at_seconds,
        "period_seconds": period.period_seconds,
        "components": [
            {"topology_id": topology_id, "component": component, **asdict(load)}
            for (topology_id, component), load in sorted(period.components.items())
        ],
        "supervisor_cpu_millicores": dict(sorted(period.supervisor_cpu_millicores.items())),
    }


def _tasks(executor: Executor) -> list[int]:
    return [executor.task_start, executor.task_end]


def _check_executors_are_known(snapshot: ClusterSnapshot) -> None:
    known = {executor for topology in snapshot.topologies for executor in topology.executors}
    named = {*snapshot.assignment.slot_of, *snapshot.loads, *snapshot.completeness.missing_executors}
    for source, target, _ in snapshot.traffic.pairs():
        named |= {source, target}
        if source.topology_id != target.topology_id:
            raise ValueError(f"traffic from {source} to {target} of another topology cannot be written")
    strangers = sorted(named - known)
    if strangers:
        raise ValueError(f"no topology of the snapshot has the executor {strangers[0]}")


def from_document(document: Mapping[str, Any]) -> ClusterSnapshot:
    """The snapshot in a document that has passed the schema; InvalidSnapshot when its parts do not fit together."""
    _check_unique("supervisors", (supervisor["id"] for supervisor in document["supervisors"]))
    for at, supervisor in enumerate(document["supervisors"]):
        _check_unique(f"supervisors[{at}].ports", supervisor["ports"])
    _check_unique("topologies", (topology["id"] for topology in document["topologies"]))
    topologies = tuple(_topology(at, topology) for at, topology in enumerate(document["topologies"]))
    index = {(e.topology_id, e.task_start, e.task_end): e for topology in topologies for e in topology.executors}
    placed, loads = _executors_state(document["topologies"], index)
    _check_rising("history", "ended_at_seconds", document["history"])
    completeness = document["completeness"]
    return ClusterSnapshot(
        taken_at_seconds=document["taken_at_seconds"],
        period_seconds=document["period_seconds"],
        supervisors=tuple(Supervisor(**{**row, "ports": tuple(row["ports"])}) for row in document["supervisors"]),
        topologies=topologies,
        assignment=Assignment(placed),
        loads=loads,
        traffic=TrafficMatrix(_traffic_rates(document["topologies"], index), index.values()),
        distances=_distances(document["distances"]),
        completeness=Completeness(
            expected_executors=completeness["expected_executors"],
            missing_executors=tuple(
                _executor_at(index, row["topology_id"], row["tasks"], f"completeness.missing_executors[{at}].tasks")
                for at, row in enumerate(completeness["missing_executors"])
            ),
            age_seconds=completeness["age_seconds"],
            problems=tuple(completeness["problems"]),
            topology_age_seconds=completeness.get("topology_age_seconds", {}),
            silent_supervisors=tuple(completeness.get("silent_supervisors", ())),
        ),
        supervisor_cpu_millicores=document["supervisor_cpu_millicores"],
        rates={row["id"]: _rates(row["rates"]) for row in document["topologies"] if row["rates"] is not None},
        worker_pids={WorkerSlot(row["supervisor_id"], row["port"]): row["pid"] for row in document["workers"]},
        history=tuple(_period(row) for row in document["history"]),
    )


def _topology(at: int, row: Mapping[str, Any]) -> Topology:
    path = f"topologies[{at}]"
    names = [component["name"] for component in row["components"]]
    _check_unique(f"{path}.components", names)
    for edge_at, edge in enumerate(row["edges"]):
        for end in ("source", "target"):
            _check_known(edge[end], names, f"{path}.edges[{edge_at}].{end}", "a component of the topology")
    executors = []
    for executor_at, executor in enumerate(row["executors"]):
        where = f"{path}.executors[{executor_at}]"
        _check_known(executor["component"], names, f"{where}.component", "a component of the topology")
        start, end = executor["tasks"]
        if end < start:
            raise InvalidSnapshot(f"{where}.tasks is [{start}, {end}]: expected the first task before the last")
        executors.append(Executor(row["id"], start, end, executor["component"]))
    _check_disjoint(f"{path}.executors", executors)
    return Topology(
        id=row["id"],
        name=row["name"],
        components=tuple(Component(**{**part, "kind": ComponentKind(part["kind"])}) for part in row["components"]),
        edges=tuple(Edge(**edge) for edge in row["edges"]),
        executors=tuple(executors),
        num_workers=row["num_workers"],
    )


def _executors_state(
    topologies: Iterable[Mapping[str, Any]], index: ExecutorIndex
) -> tuple[dict[Executor, WorkerSlot], dict[Executor, ExecutorLoad]]:
    placed, loads = {}, {}
    for topology in topologies:
        for row in topology["executors"]:
            executor = index[topology["id"], row["tasks"][0], row["tasks"][1]]
            if row["slot"] is not None:
                placed[executor] = WorkerSlot(**row["slot"])
            if row["load"] is not None:
                loads[executor] = ExecutorLoad(**row["load"])
    return placed, loads


def _traffic_rates(
    topologies: Iterable[Mapping[str, Any]], index: ExecutorIndex
) -> dict[tuple[Executor, Executor], float]:
    rates: dict[tuple[Executor, Executor], float] = {}
    for topology_at, topology in enumerate(topologies):
        for at, row in enumerate(topology["traffic"]):
            path = f"topologies[{topology_at}].traffic[{at}]"
            source = _executor_at(index, topology["id"], row["source"], f"{path}.source")
            target = _executor_at(index, topology["id"], row["target"], f"{path}.target")
            if (source, target) in rates:
                raise InvalidSnapshot(f"{path} is there twice: {row['source']} to {row['target']}")
            rates[source, target] = row["tuples_per_second"]
    return rates


def _distances(row: Mapping[str, Any]) -> Distances:
    round_trips = {(trip["from"], trip["to"]): trip["ms"] for trip in row["round_trips"]}
    hop_ms = row.get("worker_hop_ms", MEASURED_WORKER_HOP_MS)  # files of before it was counted do not name it
    return Distances(round_trips, row["loopback_ms"], row["default_ms"], hop_ms, _places(row.get("places")))


def _places(row: Mapping[str, Any] | None) -> NetworkPlaces:
    if row is None:
        return NO_PLACES
    coordinates = {
        one["supervisor"]: Coordinate(one["x_ms"], one["y_ms"], one["height_ms"], one["error_ratio"])
        for one in row["coordinates"]
    }
    return NetworkPlaces(coordinates, row["least_ms"])


def _places_document(places: NetworkPlaces) -> dict[str, Any]:
    """Nothing where there are none: every pair measured each other, or no agent knows where it is."""
    if not places:
        return {}
    coordinates = [
        {"supervisor": one, "x_ms": at.x, "y_ms": at.y, "height_ms": at.height, "error_ratio": at.error}
        for one, at in sorted(places.coordinate_of.items())
    ]
    return {"places": {"least_ms": places.least_ms, "coordinates": coordinates}}


def _rates(row: Mapping[str, Any]) -> TopologyRates:
    latency = None if row["latency"] is None else LatencySummary(**row["latency"])
    return TopologyRates(row["acked_per_second"], row["failed_per_second"], latency)


def _period(row: Mapping[str, Any]) -> LoadPeriod:
    components = {}
    for entry in row["components"]:
        load = {name: value for name, value in entry.items() if name not in ("topology_id", "component")}
        components[entry["topology_id"], entry["component"]] = ComponentLoad(**load)
    return LoadPeriod(row["ended_at_seconds"], row["period_seconds"], components, row["supervisor_cpu_millicores"])


def _executor_at(index: ExecutorIndex, topology_id: str, tasks: list[int], path: str) -> Executor:
    executor = index.get((topology_id, tasks[0], tasks[1]))
    if executor is None:
        raise InvalidSnapshot(f"{path} is {tasks}: expected the tasks of an executor of topology {topology_id!r}")
    return executor


def _check_known(name: str, known: Iterable[str], path: str, what: str) -> None:
    if name not in known:
        raise InvalidSnapshot(f"{path} is {name!r}: expected {what}, one of {', '.join(sorted(known)) or '(none)'}")


def _check_unique(path: str, names: Iterable[str]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise InvalidSnapshot(f"{path} has {name!r} twice: expected each once")
        seen.add(name)


def _check_disjoint(path: str, executors: Iterable[Executor]) -> None:
    for before, after in pairwise(sorted(executors)):
        if after.task_start <= before.task_end:
            raise InvalidSnapshot(f"{path} has task {after.task_start} twice: expected each task in one executor")


def _check_rising(path: str, field: str, rows: Iterable[Mapping[str, Any]]) -> None:
    for at, (before, after) in enumerate(pairwise(rows), start=1):
        if after[field] <= before[field]:
            raise InvalidSnapshot(
                f"{path}[{at}].{field} is {after[field]}: expected more than {before[field]}, that of {path}[{at - 1}]"
            )

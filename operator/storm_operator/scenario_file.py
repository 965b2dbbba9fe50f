"""A simulation written down in YAML: cluster, topologies, loads, faults, and the settings they are managed by."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from storm_operator.adapters.resource_schema import InvalidResource
from storm_operator.adapters.resource_settings import (
    checked_section,
    parallelism_spec,
    resource_settings,
    scheduling_settings,
)
from storm_operator.core.snapshot import Distances
from storm_operator.core.topology_spec import AdoptSource, ParallelismSpec, TopologySpec
from storm_operator.simulated_loop import Scenario
from storm_operator.simulator.load import LoadShape
from storm_operator.simulator.load_text import parse_load
from storm_operator.simulator.model import (
    AvailabilityDrops,
    ClusterModel,
    Fault,
    SimulatedSupervisor,
    SimulatedTopology,
    SupervisorDies,
    SupervisorSlows,
)
from storm_operator.simulator.workloads import (
    grand_challenge_query1,
    http_monitor,
    reference_chain,
    source_to_consumer,
    word_count,
)

FIRST_PORT = 6700
WORKLOADS: Mapping[str, Callable[..., SimulatedTopology]] = {
    "wordcount": word_count,
    "http-monitor": http_monitor,
    "reference-chain": reference_chain,
    "grand-challenge-query1": grand_challenge_query1,
    "application": source_to_consumer,
}
TOPOLOGY_FIELDS = {
    "parallelism": "parallelism",
    "tasks": "tasks",
    "cpuMs": "cpu_ms",
    "stages": "stages",
    "workers": "num_workers",
    "ackers": "ackers",
    "maxSpoutPending": "max_spout_pending",
    "messageTimeoutSeconds": "message_timeout_seconds",
    "replaysFailed": "replays_failed",
    "sourceKeepsBacklog": "source_keeps_backlog",
}
COUNTS = ("parallelism", "tasks")
"""Of a topology, by component."""
SECTIONS = ("scheduling", "resources", "parallelism")
"""As in a StormTopology's spec."""
SUPERVISOR_FIELDS = ("count", "capacityMillicores", "slots", "availability", "threadSpeed")


class InvalidScenario(Exception):
    """The file is no scenario; the message names the field, the value and what would be right."""


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """What the file says: the scenario, and how its topologies are managed."""

    scenario: Scenario
    specs: Mapping[str, TopologySpec]


def read_scenario(path: Path) -> ScenarioFile:
    """The scenario in a YAML file. Raises `InvalidScenario`."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidScenario(f"cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidScenario(f"cannot be read: {' '.join(str(error).split())}") from error
    return parse_scenario(document, path.stem)


def parse_scenario(document: object, name: str) -> ScenarioFile:
    """The scenario in a parsed document, called `name` unless it says otherwise. Raises `InvalidScenario`."""
    given = _mapping(document, "the document")
    known = ("name", "durationSeconds", "warmUpSeconds", "periodSeconds", "seed", "supervisors", "roundTripMs")
    _only(given, (*known, "topologies", "faults", *SECTIONS), "the document")
    try:
        topologies = tuple(_topology(one, at) for at, one in enumerate(_list(given, "topologies"), start=1))
        _check_differ([topology.name for topology in topologies])
        model = ClusterModel(
            supervisors=_supervisors(given.get("supervisors", 4)),
            topologies=topologies,
            distances=Distances({}, default_ms=_number(given, "roundTripMs", 1.0)),
            faults=tuple(_fault(one, f"faults[{at}]") for at, one in enumerate(given.get("faults", ()))),
        )
        scheduling = scheduling_settings(_section_of_spec(given, "scheduling"))
        resources = resource_settings(_section_of_spec(given, "resources"))
        parallelism = _parallelism(given, topologies)
    except InvalidResource as error:  # it names the field as in a StormTopology
        raise InvalidScenario(str(error).removeprefix("spec.")) from error
    except (ValueError, TypeError) as error:
        raise InvalidScenario(str(error)) from error
    scenario = Scenario(
        name=str(given.get("name", name)),
        model=model,
        duration_seconds=_number(given, "durationSeconds", 600.0),
        period_seconds=_number(given, "periodSeconds", scheduling.period_seconds),
        warm_up_seconds=_number(given, "warmUpSeconds", 0.0),
        seed=int(_number(given, "seed", 0.0)),
    )
    specs = {
        topology.name: TopologySpec(
            topology.name, AdoptSource(), scheduling=scheduling, resources=resources, parallelism=own
        )
        for topology, own in zip(topologies, parallelism, strict=True)
    }
    return ScenarioFile(scenario, specs)


def _parallelism(given: Mapping[str, Any], topologies: Sequence[SimulatedTopology]) -> list[ParallelismSpec]:
    """For each topology the section with what is said of its components."""
    whole = parallelism_spec(_section_of_spec(given, "parallelism"))
    if whole.workers is not None:
        raise InvalidScenario("parallelism.workers: simulated workers stay as many as topologies[].workers says")
    names = [{component.name for component in t.as_topology().components} for t in topologies]
    unknown = sorted(whole.components.keys() - set().union(*names))
    if unknown:
        raise InvalidScenario(f"parallelism.components.{unknown[0]}: no topology has such a component")
    return [
        replace(whole, components={name: asked for name, asked in whole.components.items() if name in own})
        for own in names
    ]


def _section_of_spec(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section as a StormTopology's spec has it, checked and filled up by the very schema that checks those."""
    return checked_section(name, _mapping(given.get(name, {}), name))


def _supervisors(given: object) -> tuple[SimulatedSupervisor, ...]:
    machines: list[SimulatedSupervisor] = []
    for fields in _supervisor_groups(given):
        _only(fields, SUPERVISOR_FIELDS, "supervisors")
        for _ in range(int(_number(fields, "count", 1.0))):
            name = f"supervisor-{len(machines) + 1}"
            machines.append(
                SimulatedSupervisor(
                    name,
                    name,
                    tuple(range(FIRST_PORT, FIRST_PORT + int(_number(fields, "slots", 4.0)))),
                    _number(fields, "capacityMillicores", 1000.0),
                    thread_speed=_number(fields, "threadSpeed", 1.0),
                    availability=_number(fields, "availability", 1.0),
                )
            )
    return tuple(machines)


def _supervisor_groups(given: object) -> Sequence[Mapping[str, Any]]:
    """A number, a mapping of `SUPERVISOR_FIELDS`, or a list of such mappings."""
    if isinstance(given, list):
        return [_mapping(one, f"supervisors[{at}]") for at, one in enumerate(given)]
    if isinstance(given, dict):
        return [given]
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return [{"count": given}]
    raise InvalidScenario(
        f"supervisors is {given!r}: a number of 0 or more, a mapping with any of {', '.join(SUPERVISOR_FIELDS)}, "
        "or a list of such mappings is right"
    )


def _topology(given: object, number: int) -> SimulatedTopology:
    where = f"topologies[{number - 1}]"
    fields = _mapping(given, where)
    _only(fields, ("workload", "name", "load", *TOPOLOGY_FIELDS), where)
    workload = str(fields.get("workload"))
    if workload not in WORKLOADS:
        raise InvalidScenario(f"{where}.workload is {workload!r}: one of {', '.join(WORKLOADS)} is right")
    name = str(fields.get("name", workload))
    settings = {TOPOLOGY_FIELDS[key]: value for key, value in fields.items() if key in TOPOLOGY_FIELDS}
    if "load" in fields:
        settings["load"] = _load(str(fields["load"]), where)
    counts = {field: _mapping(fields[field], f"{where}.{field}") for field in COUNTS if field in fields}
    for field, numbers in counts.items():
        _check_counts(numbers, f"{where}.{field}")
    topology = WORKLOADS[workload](topology_id=f"{name}-{number}", name=name, **settings)
    for field, numbers in counts.items():
        _check_names(numbers, topology, f"{where}.{field}")
    return topology


def _check_names(counts: Mapping[str, Any], topology: SimulatedTopology, where: str) -> None:
    """Components of the reference chain are named by kind, without their numbers."""
    known = {component.name.rstrip(string.digits) for component in topology.components}
    unknown = sorted(counts.keys() - known)
    if unknown:
        raise InvalidScenario(f"{where}.{unknown[0]}: one of {', '.join(sorted(known))} is right")


def _check_differ(names: Sequence[str]) -> None:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise InvalidScenario(f"topologies[{at}].name is {name!r}, as of one before: each needs its own")


def _check_counts(counts: Mapping[str, Any], where: str) -> None:
    for component, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidScenario(f"{where}.{component} is {count!r}: a whole number of 1 or more is right")


def _load(text: str, where: str) -> LoadShape:
    try:
        return parse_load(text)
    except ValueError as error:
        raise InvalidScenario(f"{where}.{error}") from error


def _fault(given: object, where: str) -> Fault:
    fields = _mapping(given, where)
    _only(fields, ("kind", "supervisor", "atSeconds", "untilSeconds", "factor", "availability"), where)
    supervisor, at = str(fields.get("supervisor")), _number(fields, "atSeconds", 0.0)
    until = _number(fields, "untilSeconds", 0.0) if "untilSeconds" in fields else None
    match fields.get("kind"):
        case "dies":
            return SupervisorDies(supervisor, at, until)
        case "slows":
            return SupervisorSlows(supervisor, at, _number(fields, "factor", 0.5), until)
        case "availability":
            return AvailabilityDrops(supervisor, at, _number(fields, "availability", 0.85), until)
        case other:
            raise InvalidScenario(f"{where}.kind is {other!r}: one of dies, slows, availability is right")


def _mapping(given: object, where: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise InvalidScenario(f"{where} is {type(given).__name__}: a mapping is right")
    return given


def _list(given: Mapping[str, Any], field: str) -> Sequence[object]:
    value = given.get(field)
    if not isinstance(value, list) or not value:
        raise InvalidScenario(f"{field} is {value!r}: a list of at least one is right")
    return value


def _only(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InvalidScenario(f"{where} has the unknown field {unknown[0]!r}: only {', '.join(known)} are known")


def _number(given: Mapping[str, Any], field: str, default: float) -> float:
    value = given.get(field, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise InvalidScenario(f"{field} is {value!r}: a number of 0 or more is right")
    return float(value)

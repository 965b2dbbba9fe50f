"""A simulation written down in YAML: cluster, topologies, loads, faults, and the settings they are managed by."""

from __future__ import annotations

import hashlib
import inspect
import json
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from storm_operator.adapters.resource_schema import InvalidResource
from storm_operator.adapters.resource_settings import (
    checked_section,
    parallelism_spec,
    resource_settings,
    scheduling_settings,
)
from storm_operator.adapters.yaml_text import InvalidYaml, yaml_document
from storm_operator.core.distances import Distances
from storm_operator.core.topology_spec import AdoptSource, ParallelismSpec, TopologySpec
from storm_operator.scenario_fields import (
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    InvalidScenario,
    Reader,
    by_name,
    flag,
    in_words,
    mapping,
    number,
    one_of,
    only,
    rate_text,
    read,
    required,
    sequence,
    text,
    whole,
)
from storm_operator.simulated_loop import Scenario, even_start
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
MOST_SUPERVISORS = 10_000
MOST_SLOTS = 1_000
MOST_EXECUTORS = 100_000
"""Ten times as many as the simulator is made for: with more nothing would be seen for minutes."""
WORKLOADS: Mapping[str, Callable[..., SimulatedTopology]] = {
    "wordcount": word_count,
    "http-monitor": http_monitor,
    "reference-chain": reference_chain,
    "grand-challenge-query1": grand_challenge_query1,
    "application": source_to_consumer,
}
TOPOLOGY_FIELDS: Mapping[str, tuple[str, Reader]] = {
    "parallelism": ("parallelism", by_name(whole(1, MOST_EXECUTORS))),
    "tasks": ("tasks", by_name(whole(1, MOST_EXECUTORS))),
    "cpuMs": ("cpu_ms", by_name(NOT_NEGATIVE)),
    "stages": ("stages", whole(2, MOST_EXECUTORS)),
    "workers": ("num_workers", whole(1)),
    "ackers": ("ackers", whole(0, MOST_EXECUTORS)),
    "maxSpoutPending": ("max_spout_pending", whole(1)),
    "messageTimeoutSeconds": ("message_timeout_seconds", POSITIVE),
    "replaysFailed": ("replays_failed", flag),
    "sourceKeepsBacklog": ("source_keeps_backlog", flag),
}
"""What workloads call them, and their readers."""
BY_COMPONENT = ("parallelism", "tasks", "cpuMs")
AT_LEAST_1 = number("a number of 1 or more", lambda value: value >= 1.0)
"""As scheduling.periodSeconds."""
SECTIONS = ("scheduling", "resources", "parallelism")
"""As in a StormTopology's spec."""
CAPACITY = number("a number of 50 or more, up to 1,000,000,000,", lambda value: 50.0 <= value <= 1e9)
"""As `storm-operator local` has it: with less no JVM starts."""
DURATION = number("a number of more than 0, up to 31,536,000 (a year),", lambda value: 0.0 < value <= 31_536_000.0)
"""Longer ones, as of who takes it for milliseconds, would not end."""
SUPERVISOR_FIELDS = ("count", "capacityMillicores", "slots", "availability", "threadSpeed")
FAULT_FIELDS = {"dies": (), "slows": ("factor",), "availability": ("availability",)}
"""By kind, beside those that all have."""


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """What the file says: the scenario, and how its topologies are managed.

    `fingerprint` is another one where the file says something else, whatever comments and layout are like.
    """

    scenario: Scenario
    specs: Mapping[str, TopologySpec]
    fingerprint: str


def read_scenario(path: Path) -> ScenarioFile:
    """The scenario in a YAML file. Raises `InvalidScenario`."""
    try:
        document = yaml_document(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidScenario(f"cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, InvalidYaml) as error:
        raise InvalidScenario(f"cannot be read: {error}") from error
    return parse_scenario(document, path.stem)


def parse_scenario(document: object, name: str) -> ScenarioFile:
    """The scenario in a parsed document, called `name` unless it says otherwise. Raises `InvalidScenario`."""
    if document is None:
        raise InvalidScenario("it is empty: a scenario is right (docs/reference/scenario.md)")
    given = mapping(document, "the document")
    known = ("name", "durationSeconds", "warmUpSeconds", "periodSeconds", "seed", "supervisors", "roundTripMs")
    only(given, (*known, "topologies", "faults", *SECTIONS), "the document")
    try:
        topologies = tuple(_topology(one, at) for at, one in enumerate(_topology_list(given), start=1))
        _check_sizes(topologies)
        _check_differ([topology.name for topology in topologies])
        model = ClusterModel(
            supervisors=_supervisors(given.get("supervisors", 4)),
            topologies=topologies,
            distances=Distances({}, default_ms=read(given, "roundTripMs", NOT_NEGATIVE, 1.0)),
            faults=tuple(_fault(one, f"faults[{at}]") for at, one in enumerate(read(given, "faults", sequence, ()))),
        )
        scheduling = scheduling_settings(_section_of_spec(given, "scheduling"))
        resources = resource_settings(_section_of_spec(given, "resources"))
        parallelism = _parallelism(given, topologies)
    except InvalidResource as error:  # it names the field as in a StormTopology
        raise InvalidScenario(str(error).removeprefix("spec.")) from error
    except (ValueError, TypeError) as error:
        raise InvalidScenario(str(error)) from error
    scenario = Scenario(
        name=read(given, "name", text, name),
        model=model,
        duration_seconds=read(given, "durationSeconds", DURATION, 600.0),
        period_seconds=read(given, "periodSeconds", AT_LEAST_1, scheduling.period_seconds),
        warm_up_seconds=read(given, "warmUpSeconds", NOT_NEGATIVE, 0.0),
        seed=read(given, "seed", whole(0), 0),
    )
    _check_times(scenario)
    _check_slots(model)
    specs = {
        topology.name: TopologySpec(
            topology.name, AdoptSource(), scheduling=scheduling, resources=resources, parallelism=own
        )
        for topology, own in zip(topologies, parallelism, strict=True)
    }
    fingerprint = hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()[:12]
    return ScenarioFile(scenario, specs, fingerprint)


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
    return checked_section(name, mapping(given.get(name, {}), name))


def _check_times(scenario: Scenario) -> None:
    """Some period is counted, and each fault begins before the end of the last one."""
    duration, period = scenario.duration_seconds, scenario.period_seconds
    last = scenario.end_seconds
    if last <= 0.0:
        raise InvalidScenario(f"durationSeconds is {duration:g}: a period of {period:g} seconds or more is right")
    right = f"less than {last:g}, when the last period of durationSeconds ends, is right"
    if scenario.warm_up_seconds >= last:
        raise InvalidScenario(f"warmUpSeconds is {scenario.warm_up_seconds:g}: {right}")
    for at, fault in enumerate(scenario.model.faults):
        if fault.at_seconds >= last:
            raise InvalidScenario(f"faults[{at}].atSeconds is {fault.at_seconds:g}: {right}")


def _check_slots(model: ClusterModel) -> None:
    try:
        even_start(model)
    except ValueError as error:
        slots = sum(len(supervisor.ports) for supervisor in model.supervisors)
        raise InvalidScenario(f"supervisors have {slots} slots together: {error}") from error


def _supervisors(given: object) -> tuple[SimulatedSupervisor, ...]:
    machines: list[SimulatedSupervisor] = []
    for group, where in _supervisor_groups(given):
        only(group, SUPERVISOR_FIELDS, where)
        count = read(group, "count", whole(0, MOST_SUPERVISORS), 1, where)
        if len(machines) + count > MOST_SUPERVISORS:
            raise InvalidScenario(f"{where}: up to {MOST_SUPERVISORS:,} supervisors can be simulated together")
        for _ in range(count):
            name = f"supervisor-{len(machines) + 1}"
            machines.append(
                SimulatedSupervisor(
                    name,
                    name,
                    tuple(range(FIRST_PORT, FIRST_PORT + read(group, "slots", whole(1, MOST_SLOTS), 4, where))),
                    read(group, "capacityMillicores", CAPACITY, 1000.0, where),
                    thread_speed=read(group, "threadSpeed", POSITIVE, 1.0, where),
                    availability=read(group, "availability", SHARE, 1.0, where),
                )
            )
    return tuple(machines)


def _supervisor_groups(given: object) -> Sequence[tuple[Mapping[str, Any], str]]:
    """A number, a mapping of `SUPERVISOR_FIELDS`, or a list of such mappings; each with its path."""
    if isinstance(given, list):
        return [(mapping(one, f"supervisors[{at}]"), f"supervisors[{at}]") for at, one in enumerate(given)]
    if isinstance(given, dict):
        return [(given, "supervisors")]
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return [({"count": given}, "supervisors")]
    raise InvalidScenario(
        f"supervisors is {in_words(given)}: a number of 0 or more, a mapping with any of "
        f"{', '.join(SUPERVISOR_FIELDS)}, or a list of such mappings is right"
    )


def _topology_list(given: Mapping[str, Any]) -> Sequence[object]:
    value = given.get("topologies")
    if not isinstance(value, list) or not value:
        raise InvalidScenario(f"topologies is {in_words(value)}: a list of at least one is right")
    return value


def _topology(given: object, number_of_it: int) -> SimulatedTopology:
    where = f"topologies[{number_of_it - 1}]"
    told = mapping(given, where)
    workload = required(told, "workload", one_of(WORKLOADS), where)
    readers = _readers_of(workload)
    only(told, ("workload", "name", "load", *readers), f"{where} ({workload})")
    name = read(told, "name", text, workload, where)
    settings = {
        TOPOLOGY_FIELDS[field][0]: read(told, field, reader, None, where)
        for field, reader in readers.items()
        if field in told
    }
    if "load" in told:
        settings["load"] = _load(read(told, "load", rate_text, None, where), where)
    try:
        topology = WORKLOADS[workload](topology_id=f"{name}-{number_of_it}", name=name, **settings)
    except ValueError as error:
        raise InvalidScenario(f"{where}, {error}") from error
    for field in BY_COMPONENT:
        if isinstance(told.get(field), dict):
            _check_names(told[field], topology, f"{where}.{field}")
    return topology


def _readers_of(workload: str) -> Mapping[str, Reader]:
    """Of the fields that the workload takes: not all have stages, or executors to choose; some have one CPU for all."""
    own = inspect.signature(WORKLOADS[workload]).parameters
    taken = {*own, *(entry.name for entry in fields(SimulatedTopology))}
    readers = {field: reader for field, (name, reader) in TOPOLOGY_FIELDS.items() if name in taken}
    return readers | ({} if isinstance(own["cpu_ms"].default, Mapping) else {"cpuMs": NOT_NEGATIVE})


def _check_names(given: Mapping[str, Any], topology: SimulatedTopology, where: str) -> None:
    """Components of the reference chain are named by kind, without their numbers."""
    known = {component.name.rstrip(string.digits) for component in topology.components}
    unknown = sorted(given.keys() - known, key=str)
    if unknown:
        raise InvalidScenario(f"{where}.{unknown[0]}: one of {', '.join(sorted(known))} is right")


def _check_sizes(topologies: Sequence[SimulatedTopology]) -> None:
    executors = sum(topology.ackers + sum(c.executors for c in topology.components) for topology in topologies)
    if executors > MOST_EXECUTORS:
        raise InvalidScenario(
            f"topologies have {executors:,} executors together: up to {MOST_EXECUTORS:,} can be simulated"
        )


def _check_differ(names: Sequence[str]) -> None:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise InvalidScenario(f"topologies[{at}].name is {name!r}, as of one before: each needs its own")


def _load(text: str, where: str) -> LoadShape:
    try:
        return parse_load(text)
    except ValueError as error:
        raise InvalidScenario(f"{where}.{error}") from error


def _fault(given: object, where: str) -> Fault:
    told = mapping(given, where)
    kind = required(told, "kind", one_of(FAULT_FIELDS), where)
    only(told, ("kind", "supervisor", "atSeconds", "untilSeconds", *FAULT_FIELDS[kind]), f"{where} ({kind})")
    supervisor, at = str(told.get("supervisor") or ""), read(told, "atSeconds", NOT_NEGATIVE, 0.0, where)
    later = number(f"a number of more than atSeconds, {at:g},", lambda value: value > at)
    until = read(told, "untilSeconds", later, None, where)
    if kind == "dies":
        return SupervisorDies(supervisor, at, until)
    if kind == "slows":
        return SupervisorSlows(supervisor, at, read(told, "factor", SHARE, 0.5, where), until)
    return AvailabilityDrops(supervisor, at, read(told, "availability", SHARE, 0.85, where), until)

"""A simulation written down in YAML: cluster, topologies, loads, faults, and the settings they are managed by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from storm_operator.core.topology_spec import AdoptSource, ParallelismSpec, TopologySpec
from storm_operator.scenario_cluster import read_distances, read_fault, read_supervisors, read_timings
from storm_operator.scenario_fields import (
    NOT_NEGATIVE,
    InvalidScenario,
    mapping,
    number,
    only,
    read,
    sequence,
    text,
    whole,
)
from storm_operator.scenario_topologies import read_topologies
from storm_operator.simulated_loop import Scenario, even_start
from storm_operator.simulator.model import ClusterModel, SimulatedTopology

AT_LEAST_1 = number("a number of 1 or more", lambda value: value >= 1.0)
"""As scheduling.periodSeconds."""
SECTIONS = ("scheduling", "resources", "parallelism")
"""As in a StormTopology's spec."""
FIELDS = (
    *("name", "durationSeconds", "warmUpSeconds", "periodSeconds", "seed"),
    *("supervisors", "roundTripMs", "distances", "timings", "topologies", "faults", *SECTIONS),
)
DURATION = number("a number of more than 0, up to 31,536,000 (a year),", lambda value: 0.0 < value <= 31_536_000.0)
"""Longer ones, as of who takes it for milliseconds, would not end."""


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
    only(given, FIELDS, "the document")
    try:
        topologies = read_topologies(given.get("topologies"))
        supervisors = read_supervisors(given.get("supervisors", 4))
        faults = enumerate(read(given, "faults", sequence, ()))
        model = ClusterModel(
            supervisors=supervisors,
            topologies=topologies,
            distances=read_distances(given, supervisors),
            timings=read_timings(given.get("timings", {})),
            faults=tuple(read_fault(one, f"faults[{at}]") for at, one in faults),
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

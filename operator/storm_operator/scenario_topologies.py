"""The topologies in a scenario file: the papers' workloads, with what the file says otherwise."""

from __future__ import annotations

import inspect
import string
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from storm_operator.scenario_fields import (
    NOT_NEGATIVE,
    POSITIVE,
    InvalidScenario,
    Reader,
    by_name,
    flag,
    in_words,
    mapping,
    one_of,
    only,
    rate_text,
    read,
    required,
    text,
    whole,
)
from storm_operator.simulator.load import LoadShape
from storm_operator.simulator.load_text import parse_load
from storm_operator.simulator.model import SimulatedComponent, SimulatedTopology
from storm_operator.simulator.workloads import (
    grand_challenge_query1,
    http_monitor,
    reference_chain,
    source_to_consumer,
    word_count,
)

MOST_EXECUTORS = 100_000
"""Ten times as many as the simulator is made for: with more nothing would be seen for minutes."""
MOST_PENDING = 2**31 - 1
"""As many as Storm can count."""
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
    "maxSpoutPending": ("max_spout_pending", whole(1, MOST_PENDING)),
    "messageTimeoutSeconds": ("message_timeout_seconds", POSITIVE),
    "replaysFailed": ("replays_failed", flag),
    "sourceKeepsBacklog": ("source_keeps_backlog", flag),
}
"""What workloads call them, and their readers."""
STATE_RESTORE = "stateRestoreSeconds"
BY_COMPONENT = ("parallelism", "tasks", "cpuMs", STATE_RESTORE)


def read_topologies(given: object) -> tuple[SimulatedTopology, ...]:
    """All that the list describes. Raises `InvalidScenario`, also where they are too many or have one name."""
    if not isinstance(given, list) or not given:
        raise InvalidScenario(f"topologies is {in_words(given)}: a list of at least one is right")
    topologies = tuple(_topology(one, at) for at, one in enumerate(given, start=1))
    _check_sizes(topologies)
    _check_differ([topology.name for topology in topologies])
    return topologies


def _topology(given: object, number_of_it: int) -> SimulatedTopology:
    where = f"topologies[{number_of_it - 1}]"
    told = mapping(given, where)
    workload = required(told, "workload", one_of(WORKLOADS), where)
    readers = _readers_of(workload)
    only(told, ("workload", "name", "load", *readers, STATE_RESTORE), f"{where} ({workload})")
    name = read(told, "name", text, workload, where)
    settings = {
        TOPOLOGY_FIELDS[field][0]: read(told, field, reader, None, where)
        for field, reader in readers.items()
        if field in told
    }
    if "load" in told:
        settings["load"] = _load(read(told, "load", rate_text, None, where), where)
    restore_seconds = read(told, STATE_RESTORE, by_name(NOT_NEGATIVE), {}, where)
    try:
        topology = WORKLOADS[workload](topology_id=f"{name}-{number_of_it}", name=name, **settings)
    except ValueError as error:
        raise InvalidScenario(f"{where}, {error}") from error
    for field in BY_COMPONENT:
        if isinstance(told.get(field), dict):
            having = [one for one in topology.components if one.stateful or field != STATE_RESTORE]
            _check_names(told[field], {_kind(one) for one in having}, f"{where}.{field}")
    return _with_restore(topology, restore_seconds)


def _readers_of(workload: str) -> Mapping[str, Reader]:
    """Of the fields that the workload takes: not all have stages, or executors to choose; some have one CPU for all."""
    own = inspect.signature(WORKLOADS[workload]).parameters
    taken = {*own, *(entry.name for entry in fields(SimulatedTopology))}
    readers = {field: reader for field, (name, reader) in TOPOLOGY_FIELDS.items() if name in taken}
    return readers | ({} if isinstance(own["cpu_ms"].default, Mapping) else {"cpuMs": NOT_NEGATIVE})


def _kind(component: SimulatedComponent) -> str:
    """Components of the reference chain are named by kind, without their numbers."""
    return component.name.rstrip(string.digits)


def _check_names(given: Mapping[str, Any], known: Collection[str], where: str) -> None:
    unknown = sorted(given.keys() - known, key=str)
    if unknown:
        raise InvalidScenario(f"{where}.{unknown[0]}: {_right(known)}")


def _right(known: Collection[str]) -> str:
    return f"one of {', '.join(sorted(known))} is right" if known else "none of this workload's components has state"


def _with_restore(topology: SimulatedTopology, restore_seconds: Mapping[str, float]) -> SimulatedTopology:
    components = tuple(
        replace(one, state_restore_seconds=restore_seconds.get(_kind(one), one.state_restore_seconds))
        for one in topology.components
    )
    return replace(topology, components=components)


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

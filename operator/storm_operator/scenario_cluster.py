"""The cluster in a scenario file: supervisors, distances between them, what befalls them, how long Storm takes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from storm_operator.core.distances import Distances
from storm_operator.scenario_fields import (
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    InvalidScenario,
    Reader,
    in_words,
    mapping,
    number,
    one_of,
    only,
    read,
    required,
    sequence,
    whole,
)
from storm_operator.simulator.model import (
    AvailabilityDrops,
    Fault,
    SimulatedSupervisor,
    SupervisorDies,
    SupervisorSlows,
    Timings,
)

FIRST_PORT = 6700
MOST_SUPERVISORS = 10_000
MOST_SLOTS = 1_000
MOST_PAIRS = 500_000
"""Of two zones of 700 supervisors each: half a second, and some 180 MB while they are read."""
CAPACITY = number("a number of 50 or more, up to 1,000,000,000,", lambda value: 50.0 <= value <= 1e9)
"""As `storm-operator local` has it: with less no JVM starts."""
SUPERVISOR_FIELDS = ("count", "capacityMillicores", "slots", "availability", "threadSpeed")
DISTANCE_FIELDS = ("from", "to", "roundTripMs")
FAULT_FIELDS = {"dies": (), "slows": ("factor",), "availability": ("availability",)}
"""By kind, beside those that all have."""
TIMING_FIELDS: Mapping[str, tuple[str, Reader]] = {
    "noticeSeconds": ("notice_seconds", NOT_NEGATIVE),
    "workerStartSeconds": ("worker_start_seconds", NOT_NEGATIVE),
    "spoutPauseSeconds": ("spout_pause_seconds", NOT_NEGATIVE),
    "schedulingSeconds": ("scheduling_seconds", number("a number of 0.1 or more", lambda value: value >= 0.1)),
    "supervisorTimeoutSeconds": ("supervisor_timeout_seconds", POSITIVE),
}
"""What the simulator calls them, and their readers."""


def read_supervisors(given: object) -> tuple[SimulatedSupervisor, ...]:
    """Those of all groups, numbered through."""
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


def read_distances(given: Mapping[str, Any], supervisors: Sequence[SimulatedSupervisor]) -> Distances:
    """`roundTripMs` between any two, but for the pairs that `distances` names; of one that it names twice the last."""
    names = {supervisor.id: None for supervisor in supervisors}
    pairs, round_trip_ms = 0, dict[tuple[str, str], float]()
    for at, one in enumerate(read(given, "distances", sequence, ())):
        where = f"distances[{at}]"
        told = mapping(one, where)
        only(told, DISTANCE_FIELDS, where)
        pair_ms = required(told, "roundTripMs", NOT_NEGATIVE, where)
        heres, theres = (_some_of(names, told.get(end), f"{where}.{end}") for end in ("from", "to"))
        pairs += len(heres) * len(theres)
        if pairs > MOST_PAIRS:
            raise InvalidScenario(f"{where}: up to {MOST_PAIRS:,} pairs may have a distance of their own")
        for here, there in itertools.product(heres, theres):
            if here == there:
                raise InvalidScenario(f"{where}: {here} is in both from and to: two supervisors are right")
            round_trip_ms[here, there] = round_trip_ms[there, here] = pair_ms
    return Distances(round_trip_ms, default_ms=read(given, "roundTripMs", NOT_NEGATIVE, 1.0))


def _some_of(known: Mapping[str, None], given: object, path: str) -> Sequence[str]:
    """One supervisor's name, or a list of such names."""
    names: list[Any] = given if isinstance(given, list) and given else [given]
    for name in names:
        if not isinstance(name, str) or name not in known:
            there_are = f"{next(iter(known))} to {list(known)[-1]}" if known else "none"
            raise InvalidScenario(
                f"{path} is {in_words(name)}: a supervisor, or a list of such, is right; there are {there_are}"
            )
    return names


def read_timings(given: object) -> Timings:
    """How long Storm takes to react; the defaults are those of a real cluster."""
    told = mapping(given, "timings")
    only(told, tuple(TIMING_FIELDS), "timings")
    return Timings(
        **{
            name: read(told, field, reader, None, "timings")
            for field, (name, reader) in TIMING_FIELDS.items()
            if field in told
        }
    )


def read_fault(given: object, where: str) -> Fault:
    """What befalls one supervisor."""
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

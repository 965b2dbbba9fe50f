"""What agents measured of each other becomes the distances between supervisors."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from storm_operator.core.distances import Distances
from storm_operator.core.model import Supervisor
from storm_operator.core.network_places import NO_PLACES, NetworkPlaces
from storm_operator.core.vivaldi import Coordinate
from storm_operator.core.window_readings import AGENT_UPTIME, WindowReadings

ROUND_TRIP = "storm_supervisor_round_trip_seconds"
COORDINATE_ERROR = "storm_supervisor_coordinate_error_ratio"
MS_PER_SECOND = 1000.0

MOST_ERROR_RATIO = 0.5
"""A coordinate that is less sure of itself is none: an agent that has just begun is at 1, one that settled near 0.1."""

PROBED_BY_SECONDS = 30.0
"""An agent that has run for so long has probed all the peers that it was told, each several times."""


def measured_distances(supervisors: Sequence[Supervisor], readings_in: WindowReadings) -> Distances:
    """Round trips by pair: the mean of both directions; for pairs that nobody measured places, and the median."""
    ids = {supervisor.host: supervisor.id for supervisor in supervisors}
    both_ways: dict[tuple[str, str], list[float]] = {}
    for (host, peer), seconds in readings_in.by_supervisor_and_peer(ROUND_TRIP).items():
        if host in ids and peer in ids and host != peer:
            a, b = sorted((ids[host], ids[peer]))
            both_ways.setdefault((a, b), []).append(MS_PER_SECOND * seconds)
    means = {pair: statistics.fmean(values) for pair, values in both_ways.items()}
    if not means:
        return Distances({}, are_assumed=True)
    symmetric = {**means, **{(b, a): ms for (a, b), ms in means.items()}}
    is_every_pair_measured = len(symmetric) == len(ids) * (len(ids) - 1)
    places = NO_PLACES if is_every_pair_measured else _places(ids, readings_in, min(means.values()))
    return Distances(symmetric, default_ms=statistics.median(means.values()), places=places)


def problems_of_distances(
    distances: Distances, supervisors: Sequence[Supervisor], readings_in: WindowReadings
) -> list[str]:
    """A sentence where agents have run for long and none has measured a way to another: nothing else would tell."""
    uptimes = (readings_in.supervisor_gauge(AGENT_UPTIME, host) for host in {one.host for one in supervisors})
    settled = [seconds for seconds in uptimes if seconds is not None and seconds >= PROBED_BY_SECONDS]
    if not distances.are_assumed or len(settled) < 2:
        return []
    return [
        f"no agent measures its way to another: supervisors are taken to be {distances.default_ms:g} ms apart, and to"
        " answer always; give each agent the others as --peer HOST=ADDRESS:PORT, HOST being their storm.local.hostname"
    ]


def _places(ids: Mapping[str, str], readings_in: WindowReadings, least_ms: float) -> NetworkPlaces:
    """Of the supervisors whose agents are sure enough of theirs."""
    found = {supervisor_id: _coordinate(host, readings_in) for host, supervisor_id in ids.items()}
    sure = {supervisor_id: place for supervisor_id, place in found.items() if place is not None}
    return NetworkPlaces(sure, least_ms) if len(sure) > 1 else NO_PLACES


def _coordinate(host: str, readings_in: WindowReadings) -> Coordinate | None:
    error = readings_in.supervisor_gauge(COORDINATE_ERROR, host)
    if error is None or error > MOST_ERROR_RATIO:
        return None
    x, y, height = (readings_in.coordinate(host, dimension) for dimension in ("x", "y", "height"))
    if x is None or y is None or height is None or height < 0.0:
        return None
    return Coordinate(MS_PER_SECOND * x, MS_PER_SECOND * y, MS_PER_SECOND * height, error)

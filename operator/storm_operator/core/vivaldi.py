"""Network coordinates: each supervisor finds a place in a plane so that distances are round trips.

Vivaldi, Dabek, Cox, Kaashoek, Morris, "Vivaldi: A Decentralized Network Coordinate System", SIGCOMM 2004: the
adaptive time step of its figure 3 in the 2-dimensional space with heights of section 5.4, or in the plain plane: nodes
whose height is 0 and may stay 0. Pure functions; units are milliseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

ERROR_GAIN = 0.25  # c_e: how fast the error estimate follows new samples
STEP_GAIN = 0.25  # c_c: how far along the spring's force one sample moves a node
INITIAL_ERROR = 1.0
MAXIMUM_ERROR = 1.5
MINIMUM_HEIGHT_MS = 0.01  # a height of zero could never grow again: the force on it is in proportion to itself


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A place: `x`, `y` in the core of the network, `height` for the access link that every packet pays.

    `error` is the node's own estimate of its relative error, 0 (sure) and up; a new node starts at 1.
    """

    x: float = 0.0
    y: float = 0.0
    height: float = MINIMUM_HEIGHT_MS
    error: float = INITIAL_ERROR


def predicted_round_trip_ms(a: Coordinate, b: Coordinate) -> float:
    """Distance in the plane plus both heights (section 5.4)."""
    return math.hypot(a.x - b.x, a.y - b.y) + a.height + b.height


def moved_by_sample(
    own: Coordinate,
    peer: Coordinate,
    round_trip_ms: float,
    angle: float,
    least_height_ms: float = MINIMUM_HEIGHT_MS,
) -> Coordinate:
    """Where `own` goes after measuring `round_trip_ms` (above 0) to `peer`; figure 3 of the paper.

    `angle` (radians) is the way to go apart when both are at the same place, else unused: pass a random one. With
    `least_height_ms` = 0, nodes without a height stay in the plane.
    """
    if not round_trip_ms > 0:
        raise ValueError(f"round_trip_ms is {round_trip_ms}, must be above 0")
    distance_ms = predicted_round_trip_ms(own, peer)
    weight = own.error / (own.error + peer.error) if own.error > 0 else 0.0
    sample_error = abs(distance_ms - round_trip_ms) / round_trip_ms
    error = sample_error * ERROR_GAIN * weight + own.error * (1 - ERROR_GAIN * weight)
    force = STEP_GAIN * weight * (round_trip_ms - distance_ms)
    flat = math.hypot(own.x - peer.x, own.y - peer.y)
    if flat > 0:
        # The unit vector of [x_i - x_j, h_i + h_j], whose norm in this space is flat + heights.
        along_x, along_y = (own.x - peer.x) / distance_ms, (own.y - peer.y) / distance_ms
        upward = (own.height + peer.height) / distance_ms
    else:
        along_x, along_y, upward = math.cos(angle), math.sin(angle), 0.0
    return Coordinate(
        x=own.x + force * along_x,
        y=own.y + force * along_y,
        height=max(least_height_ms, own.height + force * upward),
        error=min(MAXIMUM_ERROR, error),
    )

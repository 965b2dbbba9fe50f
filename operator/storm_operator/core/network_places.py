"""Where supervisors are in the network: for the distance between two that never measured each other.

Where there may be many supervisors agents probe some neighbours each, and place themselves by what they measure
(`vivaldi`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from storm_operator.core.arrays import Floats, Ints
from storm_operator.core.model import read_only
from storm_operator.core.vivaldi import Coordinate, predicted_round_trip_ms


@dataclass(frozen=True, slots=True)
class NetworkPlaces:
    """Coordinates by supervisor id; empty where nobody told any, and where every pair measured each other.

    `least_ms` is what no distance is below: two that came to lie on the same point are not nearer to each other than
    any that measured it, and a search for short distances would go for just those.
    """

    coordinate_of: Mapping[str, Coordinate] = field(default_factory=dict)
    least_ms: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "coordinate_of", read_only(self.coordinate_of))

    def __bool__(self) -> bool:
        return bool(self.coordinate_of)

    def round_trip_ms(self, a: str, b: str, unknown_ms: float) -> float:
        """Between two supervisors, `unknown_ms` where one has no coordinate."""
        here, there = self.coordinate_of.get(a), self.coordinate_of.get(b)
        if here is None or there is None:
            return unknown_ms
        return max(predicted_round_trip_ms(here, there), self.least_ms)

    def round_trips_ms(self, supervisors: tuple[str, ...], here: Ints, there: Ints, unknown_ms: float) -> Floats:
        """The same for many pairs at once, by their positions in `supervisors`; `here` and `there` are broadcast."""
        if not self.coordinate_of:
            return np.full(np.broadcast_shapes(here.shape, there.shape), unknown_ms, dtype=np.float64)
        # An unknown place is NaN, and so is every distance to it.
        unknown = Coordinate(np.nan, np.nan, np.nan, np.nan)
        found = [self.coordinate_of.get(supervisor, unknown) for supervisor in supervisors]
        x, y, height = np.array([(place.x, place.y, place.height) for place in found]).reshape(-1, 3).T
        # Of a million pairs `hypot` and `where` would be most of what the search for a plan prepares.
        across, along = x[here] - x[there], y[here] - y[there]
        predicted: Floats = np.sqrt(across * across + along * along) + height[here] + height[there]
        np.maximum(predicted, self.least_ms, out=predicted)  # which leaves NaN as it is
        predicted[np.isnan(predicted)] = unknown_ms
        return predicted


NO_PLACES = NetworkPlaces()

"""Learned profiles in ConfigMaps, each in its StormTopology's namespace."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.errors import AdapterError, SubmissionError
from storm_operator.core.learned_profile import NoProfile, ProfileReading
from storm_operator.core.learned_profile_json import read_profile
from storm_operator.core.topology_spec import ConfigMapKey, TopologySpec

REREAD_SECONDS = 60.0
"""A profile is new once a day or so; a request for it in each period would be one too many."""

Place = tuple[str, ConfigMapKey]
"""Namespace, and what in it."""


@dataclass(slots=True)
class ProfileMaps:
    """Implements `loop_ports.ProfileSource` for one Storm cluster.

    `text_of` gives one key of a ConfigMap by namespace, name, key and the field that names it. It raises
    `SubmissionError` where there is none, and another `AdapterError` where that is not known. `namespace_of` gives a
    topology's namespace by its name. `default` is where to look for topologies that name no ConfigMap of their own.
    """

    cluster: str
    text_of: Callable[[str, str, str, str], str]
    namespace_of: Callable[[str], str]
    default: ConfigMapKey | None = None
    clock: Callable[[], float] = time.monotonic
    _readings: dict[Place, tuple[float, str | None, ProfileReading]] = field(default_factory=dict)
    """When each was read, its text, what it says."""

    def read(self, specs: Mapping[str, TopologySpec]) -> Mapping[str, ProfileReading]:
        wanted = {name: spec.learned_profile or self.default for name, spec in specs.items()}
        places = {name: (self.namespace_of(name), at) for name, at in wanted.items() if at is not None}
        found = {place: self._reading(place) for place in dict.fromkeys(places.values())}
        self._readings = {place: known for place, known in self._readings.items() if place in found}
        return {name: found[place] for name, place in places.items()}

    def _reading(self, place: Place) -> ProfileReading:
        now = self.clock()
        read_at, text, reading = self._readings.get(place, (-math.inf, None, NoProfile("not read yet")))
        if now - read_at < REREAD_SECONDS:
            return reading
        namespace, at = place
        new_text = None
        try:
            new_text = self.text_of(namespace, at.name, at.key, "learned profile")
        except SubmissionError as error:
            reading = NoProfile(str(error))
        except AdapterError as error:
            # What was read is valid for as long as it says itself. Asked again by the next pass.
            return reading if text is not None else NoProfile(str(error))
        else:
            if new_text != text:
                reading = read_profile(new_text, f"{at.key} of ConfigMap {namespace}/{at.name}")
        self._readings[place] = now, new_text, reading
        return reading

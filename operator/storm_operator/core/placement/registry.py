"""Every placement policy by the name that `spec.scheduling.policy` gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from storm_operator.core.placement import aniello_offline, aniello_online
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.placement.aniello_offline import place_aniello_offline
from storm_operator.core.placement.aniello_online import place_aniello_online
from storm_operator.core.placement.even import place_even
from storm_operator.core.placement.liu import place_liu
from storm_operator.core.placement.optimal import place_optimal
from storm_operator.core.placement.parameters import Parameters, read_parameters
from storm_operator.core.placement.signature import PlacementPolicy

POLICIES: Mapping[str, PlacementPolicy] = MappingProxyType(
    {
        "adaptive": place_adaptive,
        aniello_offline.NAME: place_aniello_offline,
        aniello_online.NAME: place_aniello_online,
        "even": place_even,
        "liu": place_liu,
        "optimal": place_optimal,
    }
)

_PARAMETERS: Mapping[str, Parameters] = MappingProxyType(
    {aniello_offline.NAME: aniello_offline.PARAMETERS, aniello_online.NAME: aniello_online.PARAMETERS}
)


def policy_named(name: str) -> PlacementPolicy:
    """The policy called `name`; ValueError with the names that there are."""
    if name not in POLICIES:
        raise ValueError(f"scheduling.policy = {name!r}: no such policy; there are {', '.join(sorted(POLICIES))}")
    return POLICIES[name]


def parameters_of(name: str) -> Parameters:
    """The numbers that policy `name` takes in `scheduling.parameters`, with defaults and ranges."""
    policy_named(name)
    return _PARAMETERS.get(name, {})


def check_parameters(name: str, given: Iterable[tuple[str, float]]) -> None:
    """ValueError naming the field, the value and what would be right, for settings at the edge."""
    read_parameters(name, parameters_of(name), given)

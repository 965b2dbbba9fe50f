"""How wide a season's bins must be for a profile to have so many bytes at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from storm_operator.core.learned_profile import ComponentProfile, LearnedProfile
from storm_operator.core.learned_profile_json import dump_profile
from storm_operator.core.seasonal import Season, bins_in

MARGIN = 0.95
"""Learned anew, loads have some digits more or less than the means of those that are known."""


def narrowest_bin(profile: LearnedProfile, most_bytes: int) -> float | None:
    """Seconds of the narrowest bins, each of several of the present ones, that fit; None: not even one of a cycle.

    All seasons have the same cycle and bins, as those of one run of `forecast` have.
    """
    seasons = [own.season for components in profile.topologies.values() for own in components.values() if own.season]
    if not seasons:
        return None
    bins = bins_in(seasons[0].cycle_seconds, seasons[0].bin_seconds)
    for together in range(max(2, size_of(profile) // most_bytes), bins + 1):
        if bins % together == 0 and size_of(with_wider_bins(profile, together)) <= MARGIN * most_bytes:
            return seasons[0].bin_seconds * together
    return None


def size_of(profile: LearnedProfile) -> int:
    """Bytes of its text."""
    return len(dump_profile(profile).encode())


def with_wider_bins(profile: LearnedProfile, together: int) -> LearnedProfile:
    """`profile` with the means of so many bins in place of each of them."""
    topologies = {
        topology: {name: _wider(own, together) for name, own in components.items()}
        for topology, components in profile.topologies.items()
    }
    return replace(profile, topologies=topologies)


def _wider(own: ComponentProfile, together: int) -> ComponentProfile:
    if own.season is None:
        return own
    expected, ready = (
        _means(shape, together) for shape in (own.season.expected_per_second, own.season.ready_per_second)
    )
    width = own.season.bin_seconds * together
    return replace(own, season=Season(own.season.cycle_seconds, width, expected, ready, own.season.level_weight))


def _means(shape: Sequence[float], together: int) -> tuple[float, ...]:
    return tuple(sum(shape[at : at + together]) / together for at in range(0, len(shape), together))

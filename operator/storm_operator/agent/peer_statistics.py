"""What the last probes of one peer say: how far it is, and how often it answered. Pure.

TCP connects on busy machines have a long upper tail which says nothing about the network, so the round trip is a
low percentile of the last few samples (Ledlie, Gardner, Seltzer, "Network Coordinates in the Wild", NSDI 2007:
the moving-percentile filter, 25th percentile).
"""

from __future__ import annotations

from dataclasses import dataclass

ROUND_TRIP_SAMPLES = 8
AVAILABILITY_PROBES = 60


@dataclass(frozen=True, slots=True)
class PeerStatistics:
    """The last probes of one peer, oldest first; times in seconds."""

    round_trips: tuple[float, ...] = ()
    answers: tuple[bool, ...] = ()

    def after_answer(self, round_trip_seconds: float) -> PeerStatistics:
        return PeerStatistics(
            (*self.round_trips, round_trip_seconds)[-ROUND_TRIP_SAMPLES:],
            (*self.answers, True)[-AVAILABILITY_PROBES:],
        )

    def after_silence(self) -> PeerStatistics:
        return PeerStatistics(self.round_trips, (*self.answers, False)[-AVAILABILITY_PROBES:])

    @property
    def round_trip_seconds(self) -> float | None:
        """The lower quartile of the last samples; None before the first, or while the peer does not answer."""
        if not self.round_trips or not any(self.answers[-ROUND_TRIP_SAMPLES:]):
            return None
        return sorted(self.round_trips)[(len(self.round_trips) - 1) // 4]

    @property
    def availability_ratio(self) -> float | None:
        """The fraction of the last probes that were answered; None before the first."""
        return sum(self.answers) / len(self.answers) if self.answers else None

"""What the last probes of one peer say: how far it is, and how often it answered. Pure.

TCP connects on busy machines have a long upper tail which says nothing about the network, so the round trip is a
low percentile of the last few samples (Ledlie, Gardner, Seltzer, "Network Coordinates in the Wild", NSDI 2007:
the moving-percentile filter, 25th percentile).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

ROUND_TRIP_SAMPLES = 8
AVAILABILITY_PROBES = 60
RESTART_PROBES = 12
"""A minute of them: by then an agent, or a pod, that is started anew answers again."""


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
        """The fraction of the last probes that were answered; None before the first.

        One silence that is over, the longest that a restart may be, is left out: it need not come again, and executors
        should not move away from a supervisor since its agent was started anew.
        """
        if not self.answers:
            return None
        runs = [(answered, len(tuple(run))) for answered, run in groupby(self.answers)]
        over = (length for answered, length in runs[:-1] if not answered and length <= RESTART_PROBES)
        return sum(self.answers) / (len(self.answers) - max(over, default=0))

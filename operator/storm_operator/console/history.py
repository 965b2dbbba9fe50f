"""The last hours in bounded memory: each pass as the very bytes that are served, older ones thinned out.

A pass is three documents: its view (compressed, the large one), a point of the time line, and its components' loads.
Of passes up to `FULL_SECONDS` old all are kept; of older ones one in each `spacing` of `SPACINGS`; none is older than
the last of these. Beyond `most_bytes` the oldest go first, whatever their age, and the newest always stays.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

FULL_SECONDS = 900.0
SPACINGS = ((7_200.0, 60.0), (43_200.0, 300.0))
"""(age up to, seconds between passes that are kept), by age."""
MOST_BYTES = 48 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class KeptPass:
    """One pass. `view` and `loads` are gzip, `point` is JSON text; `number` counts passes from 1."""

    number: int
    at_seconds: float
    view: bytes
    point: bytes
    loads: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.view) + len(self.point) + len(self.loads)


@dataclass(frozen=True, slots=True)
class History:
    """Passes, oldest first. A value: whoever has got hold of one can read it while the loop goes on."""

    passes: tuple[KeptPass, ...] = ()

    def having(self, newest: KeptPass, most_bytes: int = MOST_BYTES) -> History:
        """With `newest`, thinned out as seen from its time."""
        kept = thinned((*self.passes, newest), newest.at_seconds)
        size = sum(one.size_bytes for one in kept)
        oldest = 0
        while size > most_bytes and oldest < len(kept) - 1:
            size -= kept[oldest].size_bytes
            oldest += 1
        return History(tuple(kept[oldest:]))

    @property
    def newest(self) -> KeptPass | None:
        return self.passes[-1] if self.passes else None

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.passes)

    def at(self, seconds: float) -> KeptPass | None:
        """The last pass up to that time; the oldest where all are later, None where there is none.

        The clock may have been set back: a later pass is not always of a later time.
        """
        before = [one for one in self.passes if one.at_seconds <= seconds] or self.passes[:1]
        return max(before, key=lambda one: (one.at_seconds, one.number), default=None)

    def since(self, number: int) -> tuple[KeptPass, ...]:
        """The passes after the one of that number."""
        return self.passes[bisect_right([one.number for one in self.passes], number) :]


def thinned(passes: Sequence[KeptPass], now_seconds: float) -> list[KeptPass]:
    """`passes` without those that are too near to an older one for their age, and those that are too old."""
    kept: list[KeptPass] = []
    for one in passes:
        spacing = _spacing(now_seconds - one.at_seconds)
        if spacing is None:
            continue
        # By the slots of a fixed grid: which passes stay does not depend on when this is asked.
        if spacing and kept and one.at_seconds // spacing == kept[-1].at_seconds // spacing:
            continue
        kept.append(one)
    return kept


def _spacing(age_seconds: float) -> float | None:
    """Seconds between passes of that age; None where none is kept."""
    if age_seconds <= FULL_SECONDS:
        return 0.0
    return next((spacing for up_to, spacing in SPACINGS if age_seconds <= up_to), None)

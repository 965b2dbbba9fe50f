"""One phase of Aniello's Algorithm 1: items into bins, pair by pair in descending order of traffic.

Both phases are the same but for names: executors into workers, then workers onto supervisors.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from itertools import product


class Bins:
    """Mutable: which item is in which bin, what each bin carries, and what each item exchanges with each bin.

    `rates` are tuples per second from item to item. A bin takes items while it has `room` (a count) and load below
    its `limit`.
    """

    def __init__(
        self,
        item_loads: Sequence[float],
        rates: Mapping[tuple[int, int], float],
        bin_loads: Sequence[float],
        limits: Sequence[float],
        room: Sequence[int],
    ) -> None:
        self.item_loads = item_loads
        self.rates = rates
        self.bin_of: list[int | None] = [None] * len(item_loads)
        self._loads = list(bin_loads)
        self._limits = list(limits)
        self._room = list(room)
        self._counts = [0] * len(room)
        self._by_fill = sorted(map(self._fill, range(len(room))))
        """Least loaded first: most often one of the first takes what is asked for, of a thousand."""
        self._affinity = [[0.0] * len(room) for _ in item_loads]
        self._neighbours: list[dict[int, float]] = [{} for _ in item_loads]
        for (a, b), rate in rates.items():
            for one, other in ((a, b), (b, a)):
                self._neighbours[one][other] = self._neighbours[one].get(other, 0.0) + rate

    def put(self, item: int, to: int | None) -> None:
        """Put `item` into a bin, or take it out."""
        at = self.bin_of[item]
        if at == to:
            return
        for where, sign in ((at, -1), (to, 1)):
            if where is None:
                continue
            self._by_fill.pop(bisect_left(self._by_fill, self._fill(where)))
            self._loads[where] += sign * self.item_loads[item]
            self._room[where] -= sign
            self._counts[where] += sign
            insort(self._by_fill, self._fill(where))
            for neighbour, rate in self._neighbours[item].items():
                self._affinity[neighbour][where] += sign * rate
        self.bin_of[item] = to

    def place_pairs(self) -> None:
        """Algorithm 1: pairs by descending rate, both ends free to the least loaded bin, else the best of at most 9."""
        for (a, b), _ in sorted(self.rates.items(), key=lambda entry: (-entry[1], entry[0])):
            if a == b:
                continue
            if self.bin_of[a] is None and self.bin_of[b] is None:
                emptiest = self._least_loaded((a, b))
                if emptiest is not None:
                    self.put(a, emptiest)
                    self.put(b, emptiest)
            else:
                self._place_best(a, b)

    def place_rest(self) -> bool:
        """What no pair placed: heaviest first, to where it adds least traffic. False when there is no room."""
        rest = [item for item, at in enumerate(self.bin_of) if at is None]
        for item in sorted(rest, key=lambda item: (-self.item_loads[item], item)):
            roomy = [at for at, room in enumerate(self._room) if room > 0]
            if not roomy:
                return False
            fitting = [at for at in roomy if self._fits(at, (item,))]
            affinity = self._affinity[item]
            if fitting:
                self.put(item, min(fitting, key=lambda at, near=affinity: (-near[at], *self._fill(at))))  # type: ignore[misc]
            else:
                self.put(item, min(roomy, key=lambda at: (self._loads[at] - self._limits[at], at)))
        return True

    def fill_empty(self) -> None:
        """Give each empty bin the item that its own bin misses least, as long as some bin has two."""
        for empty in [at for at, count in enumerate(self._counts) if count == 0]:
            spare = [
                (self._affinity[item][at], item)
                for item, at in enumerate(self.bin_of)
                if at is not None and self._counts[at] > 1
            ]
            if spare:
                self.put(min(spare)[1], empty)

    def _place_best(self, a: int, b: int) -> None:
        """The assignment of `a` and `b` to their own bins and the least loaded one with least traffic between bins."""
        of_a, of_b = self.bin_of[a], self.bin_of[b]
        unplaced = tuple(item for item in (a, b) if self.bin_of[item] is None)
        emptiest = self._least_loaded(unplaced or (a,))
        choices = sorted({at for at in (of_a, of_b, emptiest) if at is not None}, key=(of_a, of_b, emptiest).index)
        mutual = self._neighbours[a].get(b, 0.0)
        best: tuple[float, int, int] | None = None
        for to_a, to_b in product(choices, choices):
            together = mutual if to_a == to_b else 0.0
            local = self._near(a, to_a, but=b) + self._near(b, to_b, but=a) + together
            if (best is None or local > best[0]) and self._fits_pair(a, to_a, b, to_b):
                best = (local, to_a, to_b)
        if best is not None:
            self.put(a, best[1])
            self.put(b, best[2])

    def _near(self, item: int, at: int, but: int) -> float:
        """What `item` exchanges with the bin, `but` one other item."""
        return self._affinity[item][at] - (self._neighbours[item].get(but, 0.0) if self.bin_of[but] == at else 0.0)

    def _fits_pair(self, a: int, to_a: int, b: int, to_b: int) -> bool:
        """Whether the bins hold both there, after both have left where they are."""
        for at in {to_a, to_b}:
            arriving = [item for item, to in ((a, to_a), (b, to_b)) if to == at]
            leaving = [item for item in (a, b) if self.bin_of[item] == at]
            if self._room[at] + len(leaving) < len(arriving):
                return False
            load = (
                self._loads[at] + sum(self.item_loads[e] for e in arriving) - sum(self.item_loads[e] for e in leaving)
            )
            if load > self._limits[at] + 1e-9:
                return False
        return True

    def _least_loaded(self, items: Sequence[int]) -> int | None:
        return next((at for _, _, at in self._by_fill if self._fits(at, items)), None)

    def _fill(self, at: int) -> tuple[float, int, int]:
        """To find the least loaded bin; of equally loaded ones that with fewest items, then the first."""
        return self._loads[at], self._counts[at], at

    def _fits(self, at: int, items: Sequence[int]) -> bool:
        load = sum(self.item_loads[item] for item in items)
        return self._room[at] >= len(items) and self._loads[at] + load <= self._limits[at] + 1e-9

"""What executors need of CPU, are given, and have room for: the value that demand, placement and limits speak in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import repeat

from storm_operator.core.model import Executor, read_only


@dataclass(frozen=True, slots=True)
class Demand:
    """CPU for each executor in the next period, in millicores.

    `millicores` is what it is given: what enforcement holds it to and published schedulers pack (rounded to theta,
    clamped). `raw_millicores` is the unrounded need, Liu's r (eq. 4), kept so that the next period can tell "down late"
    from "down at once". `room_millicores` is what our objective makes room for on supervisors: what the executor may
    come to need while a plan lasts; the bare needs unless told otherwise. `peak_millicores` is what it needed lately at
    most, also of those whose need is not known now, and `room_peak_millicores` the same of a longer past;
    `limit_peak_millicores` is the most that it needed, or had to be given lest its limit keep it waiting
    (`lasting_demand`). `coming_millicores` is what executors will soon need whose load has long risen, of those alone.
    `beyond_thread_millicores` is what executors would need beyond their one thread, where an assignment brings them so
    many tuples that nobody else may take (`shuffle_shares`): no supervisor has room for that.
    `assumed` are those whose figures nobody knows, and that placement takes to need this (`assumed_needs`).
    """

    millicores: Mapping[Executor, float]
    raw_millicores: Mapping[Executor, float]
    room_millicores: Mapping[Executor, float] = field(default_factory=dict)
    peak_millicores: Mapping[Executor, float] = field(default_factory=dict)
    room_peak_millicores: Mapping[Executor, float] = field(default_factory=dict)
    limit_peak_millicores: Mapping[Executor, float] = field(default_factory=dict)
    coming_millicores: Mapping[Executor, float] = field(default_factory=dict)
    beyond_thread_millicores: Mapping[Executor, float] = field(default_factory=dict)
    assumed: frozenset[Executor] = field(default=frozenset(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "millicores", read_only(self.millicores))
        object.__setattr__(self, "raw_millicores", read_only(self.raw_millicores))
        object.__setattr__(self, "room_millicores", read_only(self.room_millicores or self._bare_needs()))
        object.__setattr__(self, "peak_millicores", read_only(self.peak_millicores))
        object.__setattr__(self, "room_peak_millicores", read_only(self.room_peak_millicores))
        object.__setattr__(self, "limit_peak_millicores", read_only(self.limit_peak_millicores))
        object.__setattr__(self, "coming_millicores", read_only(self.coming_millicores))
        object.__setattr__(self, "beyond_thread_millicores", read_only(self.beyond_thread_millicores))

    def is_known(self, executor: Executor) -> bool:
        """Whether anybody can tell what `executor` needs."""
        return executor in self.millicores and executor not in self.assumed

    def of_now(self) -> Demand:
        """With room for the bare needs alone: what the next period is expected to use."""
        return replace(self, room_millicores=self._bare_needs())

    def of_coming(self) -> Demand:
        """With room for what is needed now, and for the growth that is sure to go on while a plan lasts."""
        return replace(self, room_millicores=self._bare_needs() | dict(self.coming_millicores))

    def no_less_than(self, needs: Mapping[Executor, float]) -> Demand:
        """With at least these needs, in millicores; who has no demand stays without.

        They are given and have room, too.
        """

        def raised(values: Mapping[Executor, float]) -> Mapping[Executor, float]:
            return {executor: max(value, needs.get(executor, 0.0)) for executor, value in values.items()}

        return replace(
            self,
            millicores=raised(self.millicores),
            raw_millicores=raised(self.raw_millicores),
            room_millicores=raised(self.room_millicores),
        )

    def among(self, executors: Iterable[Executor]) -> Demand:
        """What of it concerns `executors`."""
        chosen = frozenset(executors)
        figures = [part.name for part in fields(self) if part.name != "assumed"]
        parts = {name: {e: v for e, v in getattr(self, name).items() if e in chosen} for name in figures}
        # Whom there is no room for counts nothing: left out, it would be given room for its bare needs.
        parts["room_millicores"] = {e: self.room_millicores.get(e, 0.0) for e in parts["millicores"]}
        return Demand(**parts, assumed=self.assumed & chosen)

    def total(self, executors: Iterable[Executor]) -> float:
        """The room for `executors` together, in millicores; an executor without a demand counts nothing."""
        return sum(map(self.room_millicores.get, executors, repeat(0.0)), 0.0)

    def _bare_needs(self) -> dict[Executor, float]:
        """Without what rounding up adds, and never above what is given: an executor is one thread."""
        return {e: min(given, self.raw_millicores.get(e, given)) for e, given in self.millicores.items()}

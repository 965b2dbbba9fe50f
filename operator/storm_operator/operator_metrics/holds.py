"""Why topologies are left as they are, and how far from the best known placement they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from storm_operator.core.decision import Decision, Hold, HoldReason, Plan
from storm_operator.core.plan_record import PlanState
from storm_operator.loop_ports import PassReport
from storm_operator.operator_metrics.readings import PERCENT, Reading


@dataclass(slots=True)
class HoldBook:
    """Not safe for threads. Topologies are told by name."""

    counts: dict[str, int] = field(default_factory=lambda: {reason.value: 0 for reason in HoldReason})
    holding: tuple[str, ...] = ()
    """The reason of each group that the last pass left as it is."""
    reason_of: dict[str, str] = field(default_factory=dict)
    gain_ratio: dict[str, float] = field(default_factory=dict)
    """By topology: what the last search found that could be saved."""

    def see(self, report: PassReport, names: Mapping[str, str]) -> None:
        """`names` are those of the managed topologies by id."""
        self.reason_of.clear()
        self._forget_all_but(names.values())
        decisions = tuple(_as_done(report))
        self.holding = tuple(made.reason.value for _, made in decisions if isinstance(made, Hold))
        for reason in self.holding:
            self.counts[reason] += 1
        for topology_ids, decision in decisions:
            for name in (names[i] for i in topology_ids if i in names):
                if isinstance(decision, Plan):
                    self.gain_ratio.pop(name, None)  # the plan takes it: what is left the next search tells
                else:
                    self.reason_of[name] = decision.reason.value
                    if decision.gain_percent is not None:
                        self.gain_ratio[name] = max(0.0, decision.gain_percent / PERCENT)

    def _forget_all_but(self, names: Collection[str]) -> None:
        self.gain_ratio = {name: ratio for name, ratio in self.gain_ratio.items() if name in names}

    def readings(self) -> Iterator[Reading]:
        for reason, count in self.counts.items():
            yield Reading("holds_total", (reason,), count)
        for reason in sorted(set(self.holding)):
            yield Reading("holding", (reason,), self.holding.count(reason))
        for name, reason in self.reason_of.items():
            yield Reading("topology_hold", (name, reason), 1.0)
        for name, ratio in self.gain_ratio.items():
            yield Reading("best_known_gain_ratio", (name,), ratio)
            if ratio < 1.0:
                yield Reading("gap_to_best_known_ratio", (name,), ratio / (1.0 - ratio))


def _as_done(report: PassReport) -> Iterator[tuple[tuple[str, ...], Decision]]:
    """The pass's decisions; a plan that waits for a person leaves everything as it is until somebody says yes."""
    waiting = {one.plan.id for one in report.open_plans if one.state is PlanState.PROPOSED and not one.approved_by}
    for topology_ids, decision in report.decisions:
        if isinstance(decision, Plan) and decision.id in waiting:
            yield topology_ids, Hold(HoldReason.AWAITING_APPROVAL, decision.reason, decision.gain_percent)
        else:
            yield topology_ids, decision

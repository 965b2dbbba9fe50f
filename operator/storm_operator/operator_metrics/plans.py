"""What became of plans: counts since the operator started, and the figures of each topology's last one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState
from storm_operator.operator_metrics.readings import MS_PER_SECOND, PERCENT, Reading

KEPT_PLANS = 200
"""A plan's steps come one after another: of older ones nothing more is heard."""


Counter = tuple[str, tuple[str, ...]]
"""A counter's metric and labels."""


@dataclass(slots=True)
class PlanBook:
    """Not safe for threads. Topologies are told by name."""

    states: dict[str, PlanState] = field(default_factory=dict)
    """By plan id: the state that was counted last."""
    in_force: dict[str, None] = field(default_factory=dict)
    """Ids of the plans whose moves were counted; a dictionary, since its order tells the oldest."""
    by_state: dict[tuple[str, str], int] = field(default_factory=dict)
    """Plans by state and policy."""
    by_topology: dict[tuple[str, str], int] = field(default_factory=dict)
    """Plans by topology and state."""
    moves: int = 0
    restarted_workers: int = 0
    last: dict[str, PlanRecord] = field(default_factory=dict)
    """By topology: the last plan that concerned it."""
    told: frozenset[Counter] = frozenset()
    """The counters that somebody has asked for before."""

    def see_topologies(self, names: Collection[str]) -> None:
        """Those that are managed now: others are forgotten, and new ones begin with 0 plans in each state."""
        self.last = {name: record for name, record in self.last.items() if name in names}
        self.by_topology = {
            (name, state.value): self.by_topology.get((name, state.value), 0)
            for name in sorted(names)
            for state in PlanState
        }

    def see_record(self, record: PlanRecord, names: Iterable[str]) -> None:
        """One step of the life of a plan that concerns the topologies called `names`."""
        plan = record.plan
        names = tuple(names)
        self.last.update(dict.fromkeys(names, record))
        is_in_force = record.in_force_at_seconds is not None
        # One that is heard of only when it is over came into force in an earlier life, which has counted it.
        if is_in_force and not record.state.is_final and plan.id not in self.in_force:
            self.in_force[plan.id] = None
            self.moves += len(plan.moves)
            self.restarted_workers += len(plan.started_workers)
        if self.states.get(plan.id) is not record.state:
            self.states[plan.id] = record.state
            self._count_state(record, names)
        for known in (self.states, self.in_force):
            while len(known) > KEPT_PLANS:
                del known[next(iter(known))]

    def _count_state(self, record: PlanRecord, names: Iterable[str]) -> None:
        policy = record.plan.policy
        for state in PlanState:
            self.by_state.setdefault((state.value, policy), 0)
        self.by_state[record.state.value, policy] += 1
        for name in names:
            key = name, record.state.value
            self.by_topology[key] = self.by_topology.get(key, 0) + 1

    def readings(self) -> Iterator[Reading]:
        """A counter is 0 when it is asked for the first time. Prometheus sees no increase in the first value of a
        series: what a new life finds out at once, such as that a plan of the one before has failed, would alert nobody.
        """
        counts = dict(self._counts())
        for (metric, labels), count in counts.items():
            yield Reading(metric, labels, count if (metric, labels) in self.told else 0)
        self.told = frozenset(counts)
        for name, record in self.last.items():
            yield from last_plan_readings(name, record)

    def _counts(self) -> Iterator[tuple[Counter, int]]:
        for labels, count in self.by_state.items():
            yield ("plans_total", labels), count
        for labels, count in self.by_topology.items():
            yield ("topology_plans_total", labels), count
        yield ("plan_moves_total", ()), self.moves
        yield ("plan_restarted_workers_total", ()), self.restarted_workers


def last_plan_readings(topology: str, record: PlanRecord) -> Iterator[Reading]:
    """The figures of `topology`'s last plan. Pure."""
    plan, of_it = record.plan, (topology,)
    yield Reading("last_plan_info", (topology, plan.id, plan.policy, plan.cause.value, record.state.value), 1.0)
    optional: Mapping[str, float | None] = {
        "last_plan_timestamp_seconds": plan.created_at_seconds,
        "last_plan_moves": len(plan.moves),
        "last_plan_restarted_workers": len(plan.started_workers),
        "last_plan_payback_seconds": plan.payback_seconds,
        "last_plan_gain_ratio": None if plan.gain_percent is None else plan.gain_percent / PERCENT,
        "last_plan_in_force_seconds": record.seconds_to_in_force,
        "last_plan_running_seconds": record.seconds_to_running,
        "last_plan_failed_tuples": record.failed_tuples,
    }
    for metric, value in optional.items():
        if value is not None:
            yield Reading(metric, of_it, value)
    yield from _stages(topology, record)


def _stages(topology: str, record: PlanRecord) -> Iterator[Reading]:
    measured = record.measured or Outcome(None, None, None, None, None)
    predicted = record.plan.after if record.plan.is_predicted else None
    traffic = {
        "before": record.before.inter_supervisor_tuples_per_second,
        "predicted": predicted.inter_supervisor_tuples_per_second if predicted else None,
        "measured": measured.inter_supervisor_tuples_per_second,
    }
    latency_ms = {
        "before": record.before.complete_latency_mean_ms,
        "predicted": predicted.complete_latency_ms if predicted else None,
        "measured": measured.complete_latency_mean_ms,
    }
    for stage, tuples in traffic.items():
        if tuples is not None:
            yield Reading("last_plan_inter_supervisor_tuples_per_second", (topology, stage), tuples)
    for stage, value_ms in latency_ms.items():
        if value_ms is not None:
            yield Reading("last_plan_complete_latency_seconds", (topology, stage), value_ms / MS_PER_SECOND)

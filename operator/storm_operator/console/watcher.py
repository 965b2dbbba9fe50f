"""The listener behind the page: takes in what one loop says, and hands out what the API serves. Thread-safe."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from storm_operator.console.approval import Verdict, as_said
from storm_operator.console.decisions_now import decisions_now
from storm_operator.console.documents import squeezed, to_bytes
from storm_operator.console.explain import Explanation, explain_topology
from storm_operator.console.history import MOST_BYTES, History, KeptPass
from storm_operator.console.load_view import LoadView, load_views
from storm_operator.console.pass_view import NOTHING_SEEN, view_of_pass
from storm_operator.console.plan_view import PlanView, scene_of_plan, view_of_plan
from storm_operator.console.traffic_view import NO_TRAFFIC
from storm_operator.console.views import DecisionView, PassView
from storm_operator.core.forecast import ComponentKey, LoadForecast
from storm_operator.core.parallelism import HeldResize
from storm_operator.core.plan_record import PlanRecord
from storm_operator.core.refusal import Refusal
from storm_operator.loop_ports import PassReport

KEPT_PLANS = 50


@dataclass(frozen=True, slots=True)
class TopologyPoint:
    """One topology in one pass of the time line."""

    acked_per_second: float | None
    failed_per_second: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None


UNKNOWN_POINT = TopologyPoint(None, None, None, None)


@dataclass(frozen=True, slots=True)
class PassPoint:
    """One pass of the time line: little enough to have all of them at once. Topologies by id.

    Of a pass that could not see the cluster no figure is known; `supervisors_used` is that of the last one that could.
    """

    number: int
    at_seconds: float
    is_measured: bool
    in_worker_tuples_per_second: float | None
    between_workers_tuples_per_second: float | None
    between_supervisors_tuples_per_second: float | None
    supervisors_used: int
    cpu_used_millicores: float | None
    topologies: Mapping[str, TopologyPoint]
    decisions: tuple[DecisionView, ...]


@dataclass(frozen=True, slots=True)
class PassLoads:
    """Forecast and actual of all components in one pass."""

    number: int
    at_seconds: float
    components: tuple[LoadView, ...]


@dataclass(frozen=True, slots=True)
class KnownPlan:
    """A plan and, once the pass that made it has ended, the cluster before and after it (gzip of a `PlanScene`)."""

    record: PlanRecord
    scene: bytes | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """All that is known of one cluster at one moment. `changes` counts everything that was ever taken in.

    `life` is another one for each watcher, whose numbers begin anew.
    """

    life: str = ""
    view: PassView = NOTHING_SEEN
    refused: tuple[Refusal, ...] = ()
    """With their names, by now: in `view` are the sentences of its pass."""
    loads: tuple[LoadView, ...] = ()
    history: History = field(default_factory=History)
    plans: tuple[KnownPlan, ...] = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """By plan id: what people said to those that wait, and the loop has perhaps not carried out yet."""
    held_resizes: Mapping[str, HeldResize] = field(default_factory=dict)
    """By topology id: numbers of executors that the load asks for and that are not given."""
    passes: int = 0
    plan_changes: int = 0
    held_changes: int = 0

    @property
    def changes(self) -> int:
        return self.passes + self.plan_changes + self.held_changes

    @property
    def view_now(self) -> PassView:
        """`view`, with the plans that are being applied in place of what its pass decided about their topologies, and
        with what is not carried out by now."""
        records = (known.record for known in self.plans)
        decisions = decisions_now(self.view.decisions, self.view.at_seconds, records)
        now = replace(_saying(self.view, self.refused), decisions=decisions)
        return self.view if now == self.view else now

    def plan(self, plan_id: str) -> KnownPlan | None:
        return next((known for known in self.plans if known.record.plan.id == plan_id), None)

    def hosts(self) -> Mapping[str, str]:
        return {supervisor.id: supervisor.host for supervisor in self.view.supervisors}

    def plan_views(self) -> tuple[PlanView, ...]:
        """Newest first."""
        hosts = self.hosts()
        records = (as_said(one.record, self.verdicts.get(one.record.plan.id)) for one in reversed(self.plans))
        return tuple(view_of_plan(record, hosts) for record in records)

    def explain(self, topology: str) -> Explanation | None:
        """Why what is decided now about that topology (its id or name) is what it is; None: no such topology."""
        return explain_topology(topology, self.view_now, self.loads, self.plan_views(), self.held_resizes, self.refused)


class Watcher:
    """A `Listener`. What it has seen is one value that is replaced: who reads it needs no lock."""

    def __init__(self, most_bytes: int = MOST_BYTES, stopwatch: Callable[[], float] = time.monotonic) -> None:
        self.seen = Seen(life=uuid.uuid4().hex[:12])
        self.refused: Callable[[], tuple[Refusal, ...]] = tuple
        """Asked at each pass, and by `look_again`: see `PassView`."""
        self._stopwatch = stopwatch
        self._heard_at: float | None = None
        self._most_bytes = most_bytes
        self._forecasts: Mapping[ComponentKey, LoadForecast] = {}
        self._lock = threading.Lock()
        """Told by one loop, and yet: a restarted loop's first words may meet the last of the one before."""

    @property
    def pass_age_seconds(self) -> float | None:
        """How long ago the last pass was told, whatever any clock's time of day; None before the first."""
        return None if self._heard_at is None else self._stopwatch() - self._heard_at

    def on_pass(self, report: PassReport) -> None:
        with self._lock:
            self._heard_at = self._stopwatch()
            before = self.seen
            for record in report.open_plans:
                before = _having(before, record)
            refused = self.refused()
            view = _saying(view_of_pass(report, before.view), refused)
            loads: tuple[LoadView, ...] = ()
            if report.snapshot is not None:
                loads = load_views(report.snapshot, report.forecasts, self._forecasts)
            self._forecasts = report.forecasts  # none where nothing was seen: those of before are not of this period
            number = before.passes + 1
            kept = _kept(number, view, loads, report.snapshot is not None)
            self.seen = replace(
                before,
                view=view,
                refused=refused,
                loads=loads,
                history=before.history.having(kept, self._most_bytes),
                plans=tuple(_with_scene(known, report) for known in before.plans),
                passes=number,
            )

    def look_again(self) -> None:
        """Between passes: StormTopologies may be carried out by now, or refused."""
        with self._lock:
            refused = self.refused()
            if refused != self.seen.refused:
                self.seen = replace(self.seen, refused=refused, plan_changes=self.seen.plan_changes + 1)

    def on_record(self, record: PlanRecord) -> None:
        with self._lock:
            self.seen = _having(self.seen, record)

    def on_verdict(self, plan_id: str, verdict: Verdict) -> None:
        """Somebody has answered a proposal on the page; the loop hears of it before its next pass."""
        with self._lock:
            known = {one.record.plan.id for one in self.seen.plans}
            verdicts = {plan: said for plan, said in self.seen.verdicts.items() if plan in known} | {plan_id: verdict}
            self.seen = replace(self.seen, verdicts=verdicts, plan_changes=self.seen.plan_changes + 1)

    def on_held_resizes(self, held: Mapping[str, HeldResize]) -> None:
        """See `executor_counts.ExecutorCounts`: after a pass, beside what its report says."""
        with self._lock:
            if held != self.seen.held_resizes:
                changes = self.seen.held_changes + 1
                self.seen = replace(self.seen, held_resizes=dict(held), held_changes=changes)


def _saying(view: PassView, refused: tuple[Refusal, ...]) -> PassView:
    """`view`, with what is not carried out, and which of that since it is paused."""
    paused = tuple(sorted(one.topology for one in refused if one.is_pause))
    return replace(view, refused=tuple(one.sentence for one in refused), paused=paused)


def _having(seen: Seen, record: PlanRecord) -> Seen:
    """With `record` among the last plans; of those that are over the oldest go, of those that wait none."""
    known = seen.plan(record.plan.id)
    if known is not None and known.record == record:
        return seen
    fresh = KnownPlan(record) if known is None else replace(known, record=record)
    if known is not None:
        plans = [fresh if one is known else one for one in seen.plans]
    elif seen.passes:  # as they are told: as they were made, whatever the clock did
        plans = [*seen.plans, fresh]
    else:  # of before a restart
        plans = sorted((*seen.plans, fresh), key=lambda one: (one.record.plan.created_at_seconds, one.record.plan.id))
    over = [one for one in plans if one.record.state.is_final]
    surplus = {one.record.plan.id for one in over[: max(0, len(plans) - KEPT_PLANS)]}
    kept = tuple(one for one in plans if one.record.plan.id not in surplus)
    return replace(seen, plans=kept, plan_changes=seen.plan_changes + 1)


def _kept(number: int, view: PassView, loads: tuple[LoadView, ...], is_measured: bool) -> KeptPass:
    return KeptPass(
        number=number,
        at_seconds=view.at_seconds,
        view=squeezed(to_bytes(view)),
        point=to_bytes(_point(number, view, is_measured)),
        loads=squeezed(to_bytes(PassLoads(number, view.at_seconds, loads))),
    )


def _point(number: int, view: PassView, is_measured: bool) -> PassPoint:
    used = [supervisor.cpu_used_millicores for supervisor in view.supervisors]
    known = [value for value in used if value is not None]
    traffic = view.traffic if is_measured else NO_TRAFFIC
    return PassPoint(
        number=number,
        at_seconds=view.at_seconds,
        is_measured=is_measured,
        in_worker_tuples_per_second=traffic.in_worker_tuples_per_second,
        between_workers_tuples_per_second=traffic.between_workers_tuples_per_second,
        between_supervisors_tuples_per_second=traffic.between_supervisors_tuples_per_second,
        supervisors_used=view.supervisors_used,
        cpu_used_millicores=sum(known) if is_measured and known and len(known) == len(used) else None,
        topologies={
            one.id: TopologyPoint(one.acked_per_second, one.failed_per_second, one.latency_p50_ms, one.latency_p99_ms)
            if is_measured
            else UNKNOWN_POINT
            for one in view.topologies
        },
        decisions=view.decisions,
    )


def _with_scene(known: KnownPlan, report: PassReport) -> KnownPlan:
    """A plan is shown on the picture of the pass that made it: the one in which its executors are where it began."""
    plan, snapshot = known.record.plan, report.snapshot
    if known.scene is not None or snapshot is None:
        return known
    if snapshot.assignment.restricted_to(plan.topology_ids).slot_of != plan.base.slot_of:
        return known
    return replace(known, scene=squeezed(to_bytes(scene_of_plan(plan, snapshot))))

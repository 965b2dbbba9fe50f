"""Tells users what the loop does: writes statuses and StormRebalances, posts events. Only what is new is written."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from storm_operator.adapters.kube.errors import NoAnswer
from storm_operator.adapters.kube.events import Events
from storm_operator.adapters.kube.resources import REBALANCES, TOPOLOGIES, OwnKinds
from storm_operator.control_loop import PassReport
from storm_operator.core.decision import Hold, Plan
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.kube.concerns import Concern, Concerns
from storm_operator.kube.managed import Body, Managed, Registry, key_of
from storm_operator.kube.rebalance_status import rebalance_status, rolled_back_status, shown_state
from storm_operator.kube.rebalances import FINAL_STATES, rebalance_body, surplus
from storm_operator.kube.shown_plans import Place, ShownPlans
from storm_operator.kube.status_news import has_figures, is_due, is_news, with_short_messages

MOST_UNSHOWN = 50
"""Plans that are over and could not be shown: of more, the last. That may go on for months, as under an admission
policy that nobody mends."""

WATCH_PATIENCE_SECONDS = 30.0
"""What was written is believed for so long; after that what the watch says counts, whoever wrote that."""

SILENCE_SECONDS = 10.0
"""So long nothing is written after what was not answered: there may be hundreds of statuses, and each would wait as
long; and plans go on meanwhile, whose spouts may be paused."""

WARNING_STATES = frozenset({PlanState.FAILED, PlanState.ROLLED_BACK})


@dataclass(slots=True)
class Publisher:
    """One for each Storm cluster; a `control_loop.Listener`. That something could not be told stops nothing.

    `owner_of` gives the resource that a topology id belongs to, `hosts` the supervisors' hosts by id.
    """

    kinds: OwnKinds
    events: Events
    registry: Registry
    owner_of: Callable[[str], Managed | None]
    hosts: Callable[[], Mapping[str, str]]
    say: Callable[[str], None]
    shown: ShownPlans
    last_report: PassReport | None = None
    last_record: dict[str, PlanRecord] = field(default_factory=dict)
    """By topology id: the last plan that concerned it."""
    written: dict[str, tuple[float, Body]] = field(default_factory=dict)
    """By the resource's uid: when its status was written last, by `clock`, and what it says since."""
    figures_at: dict[str, float] = field(default_factory=dict)
    """By the resource's uid: when figures were written last, by `clock`."""
    unshown: dict[str, PlanRecord] = field(default_factory=dict)
    """By plan id: steps that could not be shown."""
    silent_until: float = -math.inf
    """By `clock`: see `SILENCE_SECONDS`."""
    clock: Callable[[], float] = time.monotonic
    concerns: Concerns = field(init=False)

    def __post_init__(self) -> None:
        self.concerns = Concerns(self.clock, self.say)

    def on_pass(self, report: PassReport) -> None:
        self.last_report = report
        for record in tuple(self.unshown.values()):
            self._show(record)
        self._forget_what_is_gone(report)

    def on_record(self, record: PlanRecord) -> None:
        """Each step of a plan's life."""
        self.say(f"plan {record.plan.id}: {shown_state(record)}: {record.message or record.plan.reason}")
        for topology_id in record.plan.topology_ids:
            self.last_record[topology_id] = record
        self._show(record)

    def _forget_what_is_gone(self, report: PassReport) -> None:
        """Topologies that have ended, resources that were deleted, plans that are over and whose resource is gone."""
        if report.snapshot is not None:
            running = {topology.id for topology in report.snapshot.topologies}
            self.last_record = {i: record for i, record in self.last_record.items() if i in running}
        managed = self.registry.topologies()
        names = {"/".join(one.key) for one in managed}
        for reason in ("StatusRefused", "HistoryKept"):
            self.concerns.keep(reason, names)
        over = [plan_id for plan_id, record in self.unshown.items() if record.state.is_final]
        for plan_id in over[:-MOST_UNSHOWN]:
            del self.unshown[plan_id]
        self.concerns.keep("PlanNotShown", self.unshown)
        resources = {one.uid for one in managed}
        self.written = {uid: known for uid, known in self.written.items() if uid in resources}
        self.figures_at = {uid: at for uid, at in self.figures_at.items() if uid in resources}
        kept = {key_of(body) for body in self.registry.rebalances()}
        self.shown.written = {
            plan_id: (namespace, status)
            for plan_id, (namespace, status) in self.shown.written.items()
            if (namespace, plan_id) in kept or status.get("state") not in FINAL_STATES
        }

    def as_known(self, managed: Managed) -> Managed:
        """The resource with the status that was written last, while the watch may not have told of it yet."""
        at, status = self.written.get(managed.uid, (-math.inf, {}))
        if self.clock() - at < WATCH_PATIENCE_SECONDS:
            return replace(managed, body={**managed.body, "status": status})
        self.written.pop(managed.uid, None)
        return managed

    def end_of(self, plan_id: str) -> Body | None:
        """The status of the plan's StormRebalance, whoever wrote it, where that plan is over; else None."""
        if not plan_id:
            return None
        _, written = self.shown.written.get(plan_id, ("", {}))
        _, found = self.shown.found(plan_id) or ("", {})
        return next((status for status in (written, found) if status.get("state") in FINAL_STATES), None)

    def write_status(self, managed: Managed, status: Mapping[str, Any]) -> bool:
        """Write the status if it says anything new, and the resource is still there; whether that failed."""
        present = self.registry.topology(managed.key)
        if present is None or present.uid != managed.uid:
            return False  # a status is written by name: another resource may have that by now
        status = with_short_messages(status)
        old: Body = self.as_known(managed).body.get("status") or {}
        figures_age_seconds = self.clock() - self.figures_at.get(managed.uid, -math.inf)
        if not is_due(old, status, figures_age_seconds):
            return False
        if self._is_silent:
            return True
        concern = Concern("StatusRefused", "/".join(managed.key))
        written = self.concerns.attempt(concern, lambda: self._put_status(managed.key, status), self._teller(managed))
        if written:
            self.written[managed.uid] = self.clock(), {**old, **status}
            if has_figures(status):
                self.figures_at[managed.uid] = self.clock()
        return not written

    @property
    def _is_silent(self) -> bool:
        return self.clock() < self.silent_until

    @contextmanager
    def _noting_silence(self) -> Iterator[None]:
        try:
            yield
        except NoAnswer:
            self.silent_until = self.clock() + SILENCE_SECONDS
            raise

    def _put_status(self, key: tuple[str, str], status: Body) -> None:
        with self._noting_silence():
            self.kinds.patch_status(TOPOLOGIES, *key, status)

    def tell(self, managed: Managed, reason: str, message: str, warning: bool = False) -> None:
        self.events.post(managed.body, reason, message, warning)

    def trim_history(self, owner: Managed, limit: int) -> None:
        """Delete the oldest finished plans beyond `limit`."""
        old = surplus(self.registry.rebalances_of(owner), owner, limit, time.time())
        if old and not self._is_silent:
            concern = Concern("HistoryKept", "/".join(owner.key))
            self.concerns.attempt(concern, lambda: self._delete(old), self._teller(owner))

    def _delete(self, rebalances: tuple[Body, ...]) -> None:
        with self._noting_silence():
            for body in rebalances:
                namespace, name = key_of(body)
                self.kinds.delete(REBALANCES, namespace, name)
                self.registry.forget_rebalance((namespace, name))

    def _teller(self, managed: Managed) -> Callable[[str, str], None]:
        return lambda reason, message: self.tell(managed, reason, message, warning=True)

    def _show(self, record: PlanRecord) -> None:
        """What could not be shown is shown later; the plan itself goes on."""
        owner = next(iter(self._owners(record.plan)), None)
        concern = Concern("PlanNotShown", record.plan.id)
        tell = self._teller(owner) if owner is not None else None
        is_shown = not self._is_silent and self.concerns.attempt(
            concern, lambda: self._write_rebalance(record), tell, record.state.value
        )
        if is_shown:
            self.unshown.pop(record.plan.id, None)
        else:
            self.unshown[record.plan.id] = record

    def _write_rebalance(self, record: PlanRecord) -> None:
        with self._noting_silence():
            self._write_to_its_resource(record)
        words = f"plan {record.plan.id}: {record.message or record.plan.reason}"
        for each in self._owners(record.plan):
            self.tell(each, f"Plan{shown_state(record)}", words, record.state in WARNING_STATES)

    def _write_to_its_resource(self, record: PlanRecord) -> None:
        plan = record.plan
        owner = next(iter(self._owners(plan)), None)
        known = self.shown.place_of(plan)
        if known is None and owner is not None and not _came_to_nothing(record):
            body = with_short_messages(rebalance_body(record, owner, self.hosts()))
            self.kinds.create(REBALANCES, owner.key[0], body)
            known = owner.key[0], {}
        if known is not None:
            self._write_step(record, known)

    def _owners(self, plan: Plan) -> list[Managed]:
        """The resources of its topologies; the plan's own resource is the first one's."""
        return [owner for owner in map(self.owner_of, plan.topology_ids) if owner is not None]

    def _write_step(self, record: PlanRecord, place: Place) -> None:
        namespace, before = place
        status = with_short_messages(rebalance_status(record, before, time.time()))
        if is_news(before, status):
            self.kinds.patch_status(REBALANCES, namespace, record.plan.id, status)
        self.shown.written[record.plan.id] = namespace, {**before, **status}
        if record.rollback_of and record.state is PlanState.VERIFIED:
            self._mark_rolled_back(namespace, record)

    def _mark_rolled_back(self, namespace: str, record: PlanRecord) -> None:
        """The plan that `record` undid points to it."""
        known = self.shown.written.get(record.rollback_of) or self.shown.found(record.rollback_of)
        namespace, before = known or (namespace, {})
        status = rolled_back_status(record, before, time.time())
        self.kinds.patch_status(REBALANCES, namespace, record.rollback_of, status)


def _came_to_nothing(record: PlanRecord) -> bool:
    """Whether the plan ended before it was in force. Where its resource was deleted it gets no other."""
    return record.state is PlanState.EXPIRED and record.in_force_at_seconds is None


def decision_for(report: PassReport | None, topology_id: str) -> Any:
    """The decision about the group that the topology is in; the one about all where there are no groups."""
    if report is None:
        return None
    for topology_ids, decision in report.decisions:
        if topology_id in topology_ids or (not topology_ids and isinstance(decision, Hold)):
            return decision
    return None

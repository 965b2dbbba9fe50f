"""Yes and no from the page: what the API asks, and how it is answered where no Kubernetes API can be asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from http import HTTPStatus
from typing import Protocol

from storm_operator.approval_desk import ApprovalDesk
from storm_operator.core.decision import Plan
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.proposals import Proposals


class Verdict(StrEnum):
    """What a person says to a proposed plan."""

    APPROVE = "approve"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a verdict, in a sentence."""

    status: HTTPStatus
    message: str


class Approver(Protocol):
    """Who takes verdicts. `needs_token`: whether the caller's Kubernetes token decides."""

    @property
    def needs_token(self) -> bool: ...

    def take(self, plan_id: str, verdict: Verdict, token: str) -> Answer: ...


APPROVED = "approved; it begins with the next pass"
REJECTED = "rejected; its target is not proposed again"
THE_PAGE = "the operator's page"
"""Who has approved what was approved here."""
REJECTED_HERE = "rejected on the operator's page"
HAS_ENDED = "the loop has ended, or ends with this pass: nothing is carried out any more"
UNDONE = {
    Verdict.APPROVE: "plan {} was approved on the page and is not begun: approve it again after the next start",
    Verdict.REJECT: "plan {} was rejected on the page too late to be remembered: reject it again after the next start",
}
"""What nobody carries out any more."""


def as_said(record: PlanRecord, verdict: Verdict | None) -> PlanRecord:
    """`record` as it will be once the loop carries out the `verdict` that somebody gave it; None: nobody did.

    Until then it would be told to wait for a person, who has answered.
    """
    is_open = record.state is PlanState.PROPOSED and not record.approved_by
    if verdict is None or not is_open:
        return record
    if verdict is Verdict.APPROVE:
        return replace(record, approved_by=THE_PAGE, message=f"approved by {THE_PAGE}; it begins with the next pass")
    return replace(record, state=PlanState.REJECTED, message=REJECTED_HERE)


def not_waiting(plan_id: str) -> Answer:
    return Answer(HTTPStatus.CONFLICT, f"plan {plan_id} does not wait for a person: it may be begun, or outdated")


@dataclass(slots=True)
class LoopApprover:
    """Verdicts that the loop's own thread carries out before its next pass: nobody else may touch its memory.

    `proposals` tells what waits at this moment, `is_ending` whether this pass is the last. `on_verdict` is told of each
    at once, by plan id.
    """

    proposals: Callable[[], Proposals]
    is_ending: Callable[[], bool] = lambda: False
    on_verdict: Callable[[str, Verdict], None] = lambda _plan_id, _verdict: None
    needs_token: bool = False
    _verdicts: dict[str, tuple[Verdict, Plan]] = field(default_factory=dict)
    """By plan id. With the plan itself: it may be superseded until the verdict is carried out."""
    _has_ended: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, plan_id: str, verdict: Verdict, token: str) -> Answer:
        with self._lock:
            if self._has_ended or self.is_ending():
                return Answer(HTTPStatus.CONFLICT, HAS_ENDED)
            if plan_id in self._verdicts:
                said, _ = self._verdicts[plan_id]
                words = f"somebody has said {said} to plan {plan_id} already: that is carried out before the next pass"
                return Answer(HTTPStatus.CONFLICT, words)
            known = self.proposals().named(plan_id)
            if known is None or known.state is not PlanState.PROPOSED or known.approved_by:
                return not_waiting(plan_id)
            self._verdicts[plan_id] = verdict, known.plan
            self.on_verdict(plan_id, verdict)
        return Answer(HTTPStatus.ACCEPTED, APPROVED if verdict is Verdict.APPROVE else REJECTED)

    def carry_out(self, desk: ApprovalDesk) -> None:
        """To be called between passes, by who runs them."""
        with self._lock:
            for plan_id, (verdict, plan) in self._verdicts.items():
                if verdict is Verdict.APPROVE:
                    desk.approve(plan_id, THE_PAGE)
                else:
                    desk.reject(plan, REJECTED_HERE)
            self._verdicts.clear()

    def end(self) -> tuple[str, ...]:
        """To be called after the last pass: nobody carries anything out any more. What is left undone, in sentences."""
        with self._lock:
            self._has_ended = True
            left = tuple(UNDONE[verdict].format(plan_id) for plan_id, (verdict, _) in self._verdicts.items())
            self._verdicts.clear()
        return left

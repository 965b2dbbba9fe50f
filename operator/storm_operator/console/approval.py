"""Yes and no from the page: what the API asks, and how it is answered where no Kubernetes API can be asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Protocol

from storm_operator.approval_desk import ApprovalDesk
from storm_operator.core.plan_record import PlanState
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


def not_waiting(plan_id: str) -> Answer:
    return Answer(HTTPStatus.CONFLICT, f"plan {plan_id} does not wait for a person: it may be begun, or outdated")


@dataclass(slots=True)
class LoopApprover:
    """Verdicts that the loop's own thread carries out before its next pass: nobody else may touch its memory.

    `proposals` tells what waits at this moment.
    """

    proposals: Callable[[], Proposals]
    needs_token: bool = False
    _verdicts: list[tuple[str, Verdict]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, plan_id: str, verdict: Verdict, token: str) -> Answer:
        known = self.proposals().named(plan_id)
        if known is None or known.state is not PlanState.PROPOSED or known.approved_by:
            return not_waiting(plan_id)
        with self._lock:
            self._verdicts.append((plan_id, verdict))
        return Answer(HTTPStatus.ACCEPTED, APPROVED if verdict is Verdict.APPROVE else REJECTED)

    def carry_out(self, desk: ApprovalDesk) -> None:
        """To be called between passes, by who runs them."""
        with self._lock:
            verdicts, self._verdicts = self._verdicts, []
        for plan_id, verdict in verdicts:
            if verdict is Verdict.APPROVE:
                desk.approve(plan_id, "the operator's page")
            else:
                desk.reject(plan_id, "rejected on the operator's page")

"""Where a topology stands on its way into Storm, and what that means in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from storm_operator.core.backoff import Retry
from storm_operator.core.lifecycle import Action, Resume, RunningTopology, Submit, Suspend, Wait


class Stage(StrEnum):
    """Where a topology stands on its way into Storm, in one word for status and metrics."""

    SUBMITTING = "Submitting"
    RUNNING = "Running"
    REPLACING = "Replacing"
    SUSPENDED = "Suspended"
    WAITING = "Waiting"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where one topology stands, and why; `topology_id` once Nimbus has given it one.

    Of a submission that failed the end of its log follows in `message`.
    """

    stage: Stage
    message: str = ""
    topology_id: str = ""

    @property
    def sentence(self) -> str:
        """`message` without a log."""
        return self.message.partition("\n")[0]


NOT_IN_STORM = Progress(Stage.SUSPENDED, "suspended, and not in Storm: it is submitted once spec.suspend is false")
"""It was never submitted, was killed by somebody else, or its next version was not submitted yet."""
SUBMITTED = Progress(Stage.SUBMITTING, "submitted: it runs from the next pass on")
TRIED_EARLIER = "its definition or jar changes"
BEING_WITHDRAWN = Progress(Stage.SUSPENDED, "suspended while it was submitted: that is being ended")


def why_not_as_described(progress: Progress, retry: Retry | None) -> str:
    """Empty where it runs, and nothing is left to be done."""
    match progress.stage:
        case Stage.FAILED if retry is not None:
            next_try = datetime.fromtimestamp(retry.not_before_seconds, UTC)
            return f"tried again from {next_try:%H:%M:%S} UTC on, or when {TRIED_EARLIER}: {progress.sentence}"
        case Stage.FAILED | Stage.WAITING | Stage.RUNNING:
            return progress.sentence
        case Stage.SUBMITTING:
            return progress.message or "it is being submitted"
        case Stage.REPLACING:
            return f"it is replaced, because {progress.message}; the old one is given its time to finish"
        case Stage.SUSPENDED:
            return f"suspended: {progress.message}" if progress.topology_id else progress.message


def is_under_way(progress: Progress) -> bool:
    """Not of one that waits for somebody else to submit it."""
    waits_for_its_end = progress.stage is Stage.WAITING and bool(progress.topology_id)
    return progress.stage in (Stage.SUBMITTING, Stage.REPLACING) or waits_for_its_end or progress == BEING_WITHDRAWN


def is_awaited(progress: Progress) -> bool:
    """Whether it is to get into Storm, which then needs room for it; also after a submission that failed."""
    return is_under_way(progress) or (progress.stage is Stage.FAILED and not progress.topology_id)


def drift(before: Progress, action: Action | None, running: RunningTopology | None) -> str:
    """What somebody else did to a topology since it was left running or suspended; empty when nothing."""
    gone = f"{before.topology_id} was killed by somebody else, or Nimbus has lost it"
    match action:
        case Submit():
            return f"{gone}; it is submitted again"
        case Wait(_, reason):
            return f"{gone}: {reason}"
        case None if running is None:
            return f"{gone}; it is submitted again once spec.suspend is false"
        case Resume() if before.stage is Stage.RUNNING:
            return "it was deactivated by somebody else; it is activated again"
        case Suspend() if before.stage is Stage.SUSPENDED:
            return "it was activated by somebody else although spec.suspend is true; it is deactivated again"
    if running is not None and running.id != before.topology_id:
        return f"it was killed and submitted anew by somebody else: {before.topology_id} is {running.id} now"
    return ""

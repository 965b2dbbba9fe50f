"""Ends submissions that nobody wants any more: of resources that are deleted, paused, invalid or of another cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from storm_operator.kube.concerns import Concern, Concerns
from storm_operator.kube.managed import Managed
from storm_operator.kube.submission import JobSubmitter

SUBMISSION_NOT_ENDED = "SubmissionNotEnded"


@dataclass(slots=True)
class CallingOff:
    """`tell` posts an event for a topology."""

    concerns: Concerns
    tell: Callable[[str, str, str, bool], None]
    at_rest: set[str] = field(default_factory=set)
    """Uids of paused resources for which nothing is under way: until the pause is over nobody begins anything."""

    def follow_pauses(self, owners: Sequence[Managed], submitter: JobSubmitter | None) -> bool:
        """End what is under way for those of `owners` that are paused; whether nothing is under way any more.

        A topology that got into Storm in the middle of a pause would not have been left as it is.
        """
        paused = {one.uid: one for one in owners if one.is_paused and not one.is_being_deleted}
        self.at_rest &= paused.keys()
        for uid in paused.keys() - self.at_rest:
            if self.is_called_off(paused[uid], submitter):
                self.at_rest.add(uid)
        return len(self.at_rest) == len(paused)

    def follow_moves(self, nimbus: str, resources: Sequence[Managed], submitter: JobSubmitter | None) -> None:
        """End what was begun on `nimbus`, this loop's, for those of all `resources` that name another by now, or none,
        as they are invalid.

        That one's loop would, too, unless its Nimbus does not answer: what is under way would get into this Storm
        cluster, and nobody would manage it. Of one that is invalid no loop would.
        """
        if submitter is None:
            return
        submitter.forget_all_but({one.uid for one in resources})
        for one in resources:
            if one.uid in submitter.last and one.nimbus != nimbus:
                self.concerns.attempt(Concern(SUBMISSION_NOT_ENDED, one.uid), partial(submitter.give_up, one))

    def is_called_off(self, one: Managed, submitter: JobSubmitter | None) -> bool:
        """Whether no submission is under way for it: one could get into Storm after the last look at Nimbus."""
        if submitter is None:
            return True
        name = one.spec.name if one.spec else ""
        ended: list[bool] = []
        self.concerns.attempt(
            Concern(SUBMISSION_NOT_ENDED, one.uid, frozenset({name})),
            lambda: ended.append(submitter.call_off(one)),
            lambda reason, message: self.tell(name, reason, message, True),
        )
        return ended == [True]

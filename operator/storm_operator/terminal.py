"""What standalone mode says on the terminal: decisions, plans, forecasts and numbers of executors, each thing once."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from io import TextIOWrapper

from rich.console import Console

from storm_operator.cli_output import give_up_stdout
from storm_operator.control_loop import PassReport
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.decision_memory import assignment_hash
from storm_operator.core.forecast import ComponentKey, LoadForecast
from storm_operator.core.learned_profile import SEASONAL
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.said_once import SaidOnce

KEPT_PLANS = 50
"""Plans of which is known what was said; those before them are long over."""

Say = Callable[[str], None]


def say_on_stdout(on_closed: Callable[[], None]) -> Say:
    """Says sentences with their time: folded for a terminal, each on one line for a log.

    What cannot be written is lost, a character that the encoding lacks is its number, and neither ends a loop in the
    midst of a plan. `on_closed` is called where nobody reads any more.
    """
    # Not `markup`: sentences have names, addresses and tracebacks of others in them, and brackets in these.
    console = Console(highlight=False, log_path=False, markup=False, emoji=False)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")

    def say(sentence: str) -> None:
        try:
            if sys.stdout.isatty():
                console.log(sentence)
            else:
                now = datetime.now().astimezone().isoformat(timespec="seconds")
                sys.stdout.write(f"{now} {sentence}\n")
                sys.stdout.flush()
        except OSError as error:
            if error.errno == errno.EPIPE:
                give_up_stdout()
                on_closed()

    return say


@dataclass(frozen=True, slots=True)
class Said:
    """A decision: what tells it from another one, and the sentence."""

    key: str
    sentence: str


@dataclass(slots=True)
class TerminalListener:
    """Says each new decision and each step of a plan once."""

    say: Say
    on_first_proposal: str = ""
    """Said after the first plan that waits for a person, if not empty."""
    last_decisions: dict[tuple[str, ...], Said] = field(default_factory=dict)
    """By topology ids: of those that the last pass decided about."""
    last_problems: tuple[str, ...] = ()
    last_forecasters: dict[str, str] = field(default_factory=dict)
    """By id of a topology that runs: what was said of its forecasts."""
    last_words: dict[str, str] = field(default_factory=dict)
    """By plan id: its state and message as last said."""

    def on_pass(self, report: PassReport) -> None:
        if report.snapshot is not None:
            problems = report.snapshot.completeness.problems
            for problem in problems:
                if problem not in self.last_problems:
                    self.say(f"note: {problem}")
            self.last_problems = problems
        self._say_forecasters(report)
        # What was said of those that this pass did not decide for is over: the same again is news.
        before, self.last_decisions = self.last_decisions, {}
        now: set[str] = set()
        for topology_ids, decision in report.decisions:
            if isinstance(decision, Hold):
                key, sentence = decision.reason.value, f"hold, {decision.reason.value}: {decision.message}"
                if decision.reason is HoldReason.CLUSTER_UNREACHABLE:
                    key = sentence  # another peer in the way is news
                told = False
            else:
                key, sentence = assignment_hash(decision.target), f"plan {decision.id}: {decision.reason}"
                told = decision.id in self.last_words  # the pass is over: its record went before
            self.last_decisions[topology_ids] = now_said = Said(key, sentence)
            if _stands(topology_ids, now_said, before) or sentence in now:
                continue
            if not told:
                self.say(sentence)
            now.add(sentence)

    def _say_forecasters(self, report: PassReport) -> None:
        """Said when it changes, and not at all without a profile. Where nothing is forecast, nothing changes."""
        if report.snapshot is None:
            return
        running = {topology.id for topology in report.snapshot.topologies}
        self.last_forecasters = {one: words for one, words in self.last_forecasters.items() if one in running}
        for topology in report.snapshot.topologies:
            words = describe_forecasters(topology.id, report.forecasts)
            if words and words != self.last_forecasters.get(topology.id):
                self.last_forecasters[topology.id] = words
                self.say(f"{topology.name}: forecast by {words}")

    def on_record(self, record: PlanRecord) -> None:
        """A plan is saved more often than it changes: only what is new is said, the reason with its first line."""
        words = f"; {record.message}" if record.message else ""
        known = self.last_words.pop(record.plan.id, None)
        self.last_words[record.plan.id] = now = f"{record.state.value}{words}"
        if known is None:
            for past in tuple(self.last_words)[:-KEPT_PLANS]:
                del self.last_words[past]
            self.say(f"plan {record.plan.id}: {record.state.value}: {record.plan.reason}{words}")
            if record.state is PlanState.PROPOSED and not record.approved_by and self.on_first_proposal:
                self.say(self.on_first_proposal)
                self.on_first_proposal = ""
        elif known != now:
            self.say(f"plan {record.plan.id}: {now}")


def describe_forecasters(topology_id: str, forecasts: Mapping[ComponentKey, LoadForecast]) -> str:
    """Which forecaster each component has, and why not its learned profile; empty where no profile was given."""
    own = {name: found for (owner, name), found in sorted(forecasts.items()) if owner == topology_id}
    if not any(found.forecaster == SEASONAL or found.why_not_learned for found in own.values()):
        return ""
    members: dict[tuple[str, str], list[str]] = {}
    for name, found in own.items():
        members.setdefault((found.forecaster, found.why_not_learned), []).append(name)
    parts = [
        f"{forecaster} ({', '.join(names)}{'; ' + why if why else ''})" for (forecaster, why), names in members.items()
    ]
    return ", ".join(parts)


@dataclass(slots=True)
class CountsTeller:
    """Says what becomes of numbers of executors: each thing once, until it is something else.

    One pass may have several messages of a kind about a topology.
    """

    say: Say
    passes: int = 0
    said: dict[tuple[str, str], SaidOnce] = field(default_factory=dict)
    """By topology name and kind of message."""

    def begin_pass(self) -> None:
        self.passes += 1

    def tell(self, name: str, reason: str, message: str, warning: bool) -> None:
        """See `executor_counts.ExecutorCounts`."""
        if self.said.setdefault((name, reason), SaidOnce()).is_new(message, self.passes):
            self.say(f"{name}: {'note: ' if warning else ''}{message}")


def _stands(topology_ids: tuple[str, ...], decided: Said, before: Mapping[tuple[str, ...], Said]) -> bool:
    """Whether a reader knows it from the pass before.

    A group that is another one since a topology has joined it has not changed its mind by that; and since sentences do
    not say of whom they are, the very same of somebody new tells nothing.
    """
    if topology_ids in before:
        return before[topology_ids].key == decided.key
    return any(
        said.sentence == decided.sentence or (said.key == decided.key and not frozenset(ids).isdisjoint(topology_ids))
        for ids, said in before.items()
    )

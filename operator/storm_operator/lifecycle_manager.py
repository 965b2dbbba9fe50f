"""Brings topologies to where their specs say, one step a pass: submits, replaces, suspends, resumes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from storm_operator.adapters.errors import AdapterError
from storm_operator.core.backoff import Retry, may_try, put_off
from storm_operator.core.lifecycle import (
    SUBMITTED_BY_OTHERS,
    Action,
    Kill,
    Resume,
    RunningTopology,
    Submit,
    Suspend,
    Wait,
    by_name,
    is_of_others,
    next_action,
)
from storm_operator.core.refusal import Refusal
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.lifecycle_progress import (
    BEING_WITHDRAWN,
    NOT_IN_STORM,
    SUBMITTED,
    TRIED_EARLIER,
    Progress,
    Stage,
    drift,
    is_awaited,
    is_under_way,
    why_not_as_described,
)


class TopologyCommands(Protocol):
    """What a lifecycle needs of Nimbus. Raises `AdapterError`."""

    def running(self) -> tuple[RunningTopology, ...]: ...

    def activate(self, topology_id: str) -> None: ...

    def deactivate(self, topology_id: str) -> None: ...

    def kill(self, name: str, wait_seconds: int) -> None: ...


class Submitter(Protocol):
    """Gets topologies into Storm. Raises `AdapterError`."""

    def fingerprint(self, spec: TopologySpec) -> str:
        """Identity of what the topology is made from; another one means a resubmission."""

    def submit(self, spec: TopologySpec, wanted: str) -> bool:
        """Submit, or ask how a submission under way stands; True once it is done."""

    def withdraw(self, spec: TopologySpec) -> bool:
        """End a submission that may be under way; True once there is none."""


@dataclass(slots=True)
class LifecycleManager:
    """`say` gets one sentence for each thing that was done, or could not be done; `progress` has the last of each."""

    storm: TopologyCommands
    submitter: Submitter
    say: Callable[[str], None]
    progress: dict[str, Progress] = field(default_factory=dict)
    retries: dict[str, Retry] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    suspended: Mapping[str, str] = field(default_factory=dict)
    """By name, the ids of topologies that were suspended here, and so may be resumed here, managed meanwhile or not."""
    before_suspending: Callable[[str, str], None] = lambda *_: None
    """Told name and id: a next life must know whom it may resume, wherever this one ends. Raises `AdapterError`."""
    on_submission: Callable[[], None] = lambda: None
    """Told when one begins, and when it is done, once `progress` says so: to submit may take longer than a pass."""
    on_resumption: Callable[[str], None] = lambda _: None
    """Told the id of a topology whose spouts were deactivated till now, before they are activated."""
    take_left_paused: Callable[[], Collection[str]] = tuple
    """Ids, each told once, of topologies whose spouts plans have paused and could not resume: that is done here."""
    come: frozenset[str] = frozenset()
    """Ids of the topologies that run as of the last step, and did not as of the one before, or were suspended then."""
    repairs: dict[str, str] = field(default_factory=dict)
    """By topology: what the last step found changed by somebody else, and what becomes of it, in a sentence."""

    @property
    def is_under_way(self) -> bool:
        """Whether any topology gets into Storm, or waits for its old one to end, as of the last step."""
        return any(map(is_under_way, self.progress.values()))

    @property
    def awaited(self) -> tuple[str, ...]:
        """Names of the topologies that are to get into Storm, as of the last step."""
        return tuple(sorted(name for name, progress in self.progress.items() if is_awaited(progress)))

    @property
    def next_try_at_seconds(self) -> float:
        """When the first of what failed may be tried again, since 1970; infinity where nothing did."""
        return min((retry.not_before_seconds for retry in self.retries.values()), default=math.inf)

    def not_as_described(self) -> tuple[Refusal, ...]:
        """Why topologies do not run (yet) as StormTopologies say, or are suspended, as of the last step."""
        retries, known = dict(self.retries), sorted(dict(self.progress).items())
        words = {name: why_not_as_described(progress, retries.get(name)) for name, progress in known}
        return tuple(Refusal(f"{name}: {why}", name) for name, why in words.items() if why)

    def remember(self, name: str, known: Progress, suspended: bool) -> None:
        """What an earlier life of the operator knew of `name`, unless this one knows it already."""
        if name not in self.progress:
            self.progress[name] = known
            if suspended:
                self.suspended = {**self.suspended, name: known.topology_id}

    def step(
        self, specs: Mapping[str, TopologySpec], now_seconds: float, being_moved: Collection[str] = frozenset()
    ) -> None:
        """One step for every topology that needs one. A failure of one is said and does not stop the others.

        `being_moved` are the ids of topologies whose spouts a plan may have paused for the time being: left alone.
        """
        running, before = by_name(self.storm.running()), self._running_ids()
        self._take_over_paused(running)
        self._forget_all_but(specs)
        self.suspended = {
            name: own for name, own in self.suspended.items() if _may_be_suspended(running.get(name), own)
        }
        self.repairs = {}
        for name in sorted(specs):
            if name in running and running[name].id in being_moved:
                continue
            present = running.get(name)
            wanted, obstacle = self._fingerprint_or_obstacle(specs[name])
            # As long as nobody can tell what it would be made from, what runs is taken for right.
            assumed = wanted if obstacle is None else (present.fingerprint if present else None) or ""
            action = next_action(specs[name], present, assumed, name in self.suspended)
            identity = f"{type(action).__name__} {wanted or obstacle}"
            if not may_try(self.retries.get(name), identity, now_seconds):
                continue
            try:
                if obstacle is not None and not isinstance(action, Suspend | Resume):
                    raise obstacle
                self._note_drift(name, action, present)
                self._carry_out(specs[name], action, present)
                self.retries.pop(name, None)
            except AdapterError as error:
                self._put_off(name, identity, now_seconds, error, present.id if present else "")
        self.come = self._running_ids() - before

    def _running_ids(self) -> frozenset[str]:
        return frozenset(known.topology_id for known in self.progress.values() if known.stage is Stage.RUNNING)

    def _take_over_paused(self, running: Mapping[str, RunningTopology]) -> None:
        left = self.take_left_paused()
        paused = {name: one.id for name, one in running.items() if one.id in left}
        self.suspended = {**self.suspended, **paused}
        self.progress.update({name: Progress(Stage.SUSPENDED, "", own) for name, own in paused.items()})

    def _forget_all_but(self, names: Collection[str]) -> None:
        """One that comes back is begun anew: what failed before may be tried at once."""
        self.progress = {name: known for name, known in self.progress.items() if name in names}
        self.retries = {name: retry for name, retry in self.retries.items() if name in names}
        self.said = {name: sentence for name, sentence in self.said.items() if name in names}

    def _fingerprint_or_obstacle(self, spec: TopologySpec) -> tuple[str, AdapterError | None]:
        try:
            return self.submitter.fingerprint(spec), None
        except AdapterError as error:
            return "", error

    def _put_off(self, name: str, identity: str, now_seconds: float, error: AdapterError, topology_id: str) -> None:
        """`topology_id` is that of what runs all the same, if anything does."""
        self.retries[name] = put_off(self.retries.get(name), identity, now_seconds)
        pause = self.retries[name].pause_seconds
        self.progress[name] = Progress(Stage.FAILED, str(error), topology_id)
        self._say_once(name, f"{name}: {error} (next try in {pause:.0f} s or more, or when {TRIED_EARLIER})")

    def _carry_out(self, wanted_spec: TopologySpec, action: Action | None, running: RunningTopology | None) -> None:
        name, wait_seconds = wanted_spec.name, wanted_spec.kill_wait_seconds
        topology_id = running.id if running is not None else ""
        match action:
            case Submit(spec, wanted):
                self._submit(spec, wanted)
            case Kill(_, reason):
                self.say(f"{name}: replaced, because {reason}; the old one gets {wait_seconds} s to finish")
                self.storm.kill(name, wait_seconds)
                self.progress[name] = Progress(Stage.REPLACING, reason, topology_id)
            case Suspend() if running is not None:
                self.before_suspending(name, running.id)
                self.storm.deactivate(running.id)
                self.suspended = {**self.suspended, name: running.id}
                self.say(f"{name}: suspended")
                self.progress[name] = Progress(Stage.SUSPENDED, "its spouts are deactivated", topology_id)
            case Resume() if running is not None:
                self.on_resumption(running.id)  # first: an answer that is lost makes it no less so
                self.storm.activate(running.id)
                self.suspended = {other: own for other, own in self.suspended.items() if other != name}
                self.say(f"{name}: resumed")
                self.progress[name] = Progress(Stage.RUNNING, "", topology_id)
            case Wait(_, reason):
                self._say_once(name, f"{name}: {reason}")
                self.progress[name] = Progress(Stage.WAITING, reason, topology_id)
            case _:
                self.progress[name] = self._at_rest(wanted_spec, running)

    def _at_rest(self, spec: TopologySpec, running: RunningTopology | None) -> Progress:
        """Where one stands that is as it should be. One that is suspended is not submitted any more."""
        known = self.progress.get(spec.name)
        if running is None:
            is_withdrawn = known == NOT_IN_STORM or self.submitter.withdraw(spec)
            return NOT_IN_STORM if is_withdrawn else BEING_WITHDRAWN
        note = SUBMITTED_BY_OTHERS if is_of_others(spec, running) else running.unreadable
        if note:
            self._say_once(spec.name, f"{spec.name}: {note}")
        was_inactive = known is not None and (known.stage, known.topology_id) == (Stage.SUSPENDED, running.id)
        # Whether one that is being rebalanced is suspended shows once that is done: until then it is as it was.
        if running.is_inactive or (running.is_being_rebalanced and was_inactive):
            words = "its spouts are deactivated"
            return Progress(Stage.SUSPENDED, f"{words}; {note}" if note else words, running.id)
        return Progress(Stage.RUNNING, note, running.id)

    def _note_drift(self, name: str, action: Action | None, running: RunningTopology | None) -> None:
        """Compare what is found with what the last step left."""
        before = self.progress.get(name)
        if before is None or not before.topology_id or before.stage not in (Stage.RUNNING, Stage.SUSPENDED):
            return
        words = drift(before, action, running)
        if words:
            self.repairs[name] = words
            self.say(f"{name}: {words}")

    def _submit(self, spec: TopologySpec, wanted: str) -> None:
        self._say_once(spec.name, f"{spec.name}: submitting")
        self.progress[spec.name] = Progress(Stage.SUBMITTING)
        self.on_submission()
        if self.submitter.submit(spec, wanted):
            self.progress[spec.name] = SUBMITTED
            self.on_submission()
            self.said.pop(spec.name, None)
            self.say(f"{spec.name}: submitted")

    def _say_once(self, name: str, sentence: str) -> None:
        """The same sentence about the same topology is not repeated every period."""
        if self.said.get(name) != sentence.split(" (next try")[0]:
            self.said[name] = sentence.split(" (next try")[0]
            self.say(sentence)


def _may_be_suspended(running: RunningTopology | None, topology_id: str) -> bool:
    """Whether the topology of that id still is as it was suspended, or nobody can tell while it is rebalanced."""
    return running is not None and running.id == topology_id and (running.is_inactive or running.is_being_rebalanced)

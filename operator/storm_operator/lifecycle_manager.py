"""Brings topologies to where their specs say, one step a pass: submits, replaces, suspends, resumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from storm_operator.adapters.errors import AdapterError
from storm_operator.core.lifecycle import (
    Action,
    Kill,
    Resume,
    RunningTopology,
    Submit,
    Suspend,
    Wait,
    by_name,
    next_action,
)
from storm_operator.core.topology_spec import TopologySpec

FIRST_RETRY_SECONDS = 10.0
SLOWEST_RETRY_SECONDS = 300.0


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
    """Where one topology stands, and why; `topology_id` once Nimbus has given it one."""

    stage: Stage
    message: str = ""
    topology_id: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """A topology whose last step failed: not tried again before `not_before_seconds`, unless its source changes."""

    identity: str
    not_before_seconds: float
    pause_seconds: float


@dataclass(slots=True)
class LifecycleManager:
    """`say` gets one sentence for each thing that was done, or could not be done; `progress` has the last of each."""

    storm: TopologyCommands
    submitter: Submitter
    say: Callable[[str], None]
    progress: dict[str, Progress] = field(default_factory=dict)
    retries: dict[str, Retry] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    suspended: set[str] = field(default_factory=set)

    def step(self, specs: Mapping[str, TopologySpec], now_seconds: float) -> None:
        """One step for every topology that needs one. A failure of one is said and does not stop the others."""
        running = by_name(self.storm.running())
        self.progress = {name: known for name, known in self.progress.items() if name in specs}
        for name in sorted(specs):
            wanted, obstacle = self._fingerprint_or_obstacle(specs[name])
            identity = wanted or str(obstacle)
            if not self._may_try(name, identity, now_seconds):
                continue
            try:
                if obstacle is not None:
                    raise obstacle
                action = next_action(specs[name], running.get(name), wanted, name in self.suspended)
                self._carry_out(specs[name], action, running.get(name))
                self.retries.pop(name, None)
            except AdapterError as error:
                self._put_off(name, identity, now_seconds, error)

    def forget(self, name: str) -> None:
        """Begin anew with `name`: what failed before may be tried at once."""
        self.retries.pop(name, None)
        self.said.pop(name, None)

    def _fingerprint_or_obstacle(self, spec: TopologySpec) -> tuple[str, AdapterError | None]:
        try:
            return self.submitter.fingerprint(spec), None
        except AdapterError as error:
            return "", error

    def _may_try(self, name: str, identity: str, now_seconds: float) -> bool:
        retry = self.retries.get(name)
        return retry is None or retry.identity != identity or now_seconds >= retry.not_before_seconds

    def _put_off(self, name: str, identity: str, now_seconds: float, error: AdapterError) -> None:
        last = self.retries.get(name)
        pause = FIRST_RETRY_SECONDS if last is None else min(last.pause_seconds * 2, SLOWEST_RETRY_SECONDS)
        self.retries[name] = Retry(identity, now_seconds + pause, pause)
        self.progress[name] = Progress(Stage.FAILED, str(error))
        self._say_once(name, f"{name}: {error} (next try in {pause:.0f} s, or when its file or jar changes)")

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
                self.storm.deactivate(running.id)
                self.suspended.add(name)
                self.say(f"{name}: suspended")
                self.progress[name] = Progress(Stage.SUSPENDED, "its spouts are deactivated", topology_id)
            case Resume() if running is not None:
                self.storm.activate(running.id)
                self.suspended.discard(name)
                self.say(f"{name}: resumed")
                self.progress[name] = Progress(Stage.RUNNING, "", topology_id)
            case Wait(_, reason):
                self._say_once(name, f"{name}: {reason}")
                self.progress[name] = Progress(Stage.WAITING, reason, topology_id)
            case _:
                self.progress[name] = _at_rest(running)

    def _submit(self, spec: TopologySpec, wanted: str) -> None:
        self._say_once(spec.name, f"{spec.name}: submitting")
        self.progress[spec.name] = Progress(Stage.SUBMITTING)
        if self.submitter.submit(spec, wanted):
            self.said.pop(spec.name, None)
            self.say(f"{spec.name}: submitted")

    def _say_once(self, name: str, sentence: str) -> None:
        """The same sentence about the same topology is not repeated every period."""
        if self.said.get(name) != sentence.split(" (next try")[0]:
            self.said[name] = sentence.split(" (next try")[0]
            self.say(sentence)


def _at_rest(running: RunningTopology | None) -> Progress:
    """Nothing is to be done: it runs as it should, or is suspended and was never submitted."""
    if running is None:
        return Progress(Stage.SUSPENDED, "suspended before it was submitted")
    if running.is_inactive:
        return Progress(Stage.SUSPENDED, "its spouts are deactivated", running.id)
    return Progress(Stage.RUNNING, "", running.id)

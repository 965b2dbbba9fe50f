"""`storm-operator standalone`: the control loop over StormTopology files in a folder, no Kubernetes."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from storm_operator.adapters.errors import AdapterError
from storm_operator.adapters.manager_lock import ManagedByAnother
from storm_operator.adapters.resources import SUFFIXES, InvalidResource, read_topology_file
from storm_operator.control_loop import ControlLoop, PassReport
from storm_operator.core.decision import Hold
from storm_operator.core.decision_memory import assignment_hash
from storm_operator.core.forecast import ComponentKey, LoadForecast
from storm_operator.core.learned_profile import SEASONAL
from storm_operator.core.plan_record import PlanRecord
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.lifecycle_manager import LifecycleManager
from storm_operator.said_once import SaidOnce

KEPT_PLANS = 50
"""Plans of which is known what was said; those before them are long over."""
FIRST_TRIES_SECONDS = 2.0
"""So often a cluster that does not answer yet is asked, however long the period."""

Say = Callable[[str], None]


@dataclass(slots=True)
class TopologyFolder:
    """StormTopology files of one folder, read again when they change. A file that is wrong keeps its last good spec."""

    folder: Path
    say: Say
    nimbus: tuple[str, ...] = ()
    """Addresses of the Nimbus that is managed; files that name another are not for us. Empty: any."""
    specs_by_file: dict[Path, TopologySpec] = field(default_factory=dict)
    versions: dict[Path, tuple[int, int]] = field(default_factory=dict)
    reads: int = 0
    said: SaidOnce = field(default_factory=SaidOnce)

    def read(self) -> dict[str, TopologySpec]:
        """The specs by topology name, as of now. Files of a name that another has are refused."""
        self.reads += 1
        try:
            files = {path for path in self.folder.iterdir() if path.suffix in SUFFIXES}
        except OSError as error:
            self._say_once(f"{self.folder} cannot be read ({error}); what it described stays in use")
            return {spec.name: spec for spec in self.specs_by_file.values()}
        for gone in set(self.versions) - files:
            spec = self.specs_by_file.pop(gone, None)
            del self.versions[gone]
            if spec is not None:
                self.say(f"{spec.name}: {gone.name} is gone; no longer managed, and left running if it runs")
        for path in sorted(files):
            self._read_if_changed(path)
        return {spec.name: spec for spec in self.specs_by_file.values()}

    def _read_if_changed(self, path: Path) -> None:
        try:
            stat = path.stat()
            version = (stat.st_mtime_ns, stat.st_size)
            if self.versions.get(path) == version:
                return
            self.versions[path] = version
            spec = read_topology_file(path)
        except FileNotFoundError:
            return
        except InvalidResource as error:
            kept = self.specs_by_file.get(path)
            self.say(f"{error}{'; its last good version stays in use' if kept else ''}")
            return
        if spec.nimbus is not None and self.nimbus and spec.nimbus not in self.nimbus:
            self.say(
                f"{path.name}: spec.nimbus is {spec.nimbus}, not the {', '.join(self.nimbus)} managed here; ignored"
            )
            self.specs_by_file.pop(path, None)
            return
        owner = next((p for p, s in self.specs_by_file.items() if s.name == spec.name and p != path), None)
        if owner is not None:
            del self.versions[path]  # looked at again in each pass: the other file may go
            self.specs_by_file.pop(path, None)  # what it described before it took that name
            self._say_once(f"{path.name}: topology {spec.name!r} is already described by {owner.name}; it is ignored")
            return
        if path in self.specs_by_file:
            self.say(f"{spec.name}: {path.name} has changed and is followed")
        self.specs_by_file[path] = spec

    def _say_once(self, sentence: str) -> None:
        if self.said.is_new(sentence, self.reads):
            self.say(sentence)


@dataclass(slots=True)
class TerminalListener:
    """Says each new decision and each step of a plan once."""

    say: Say
    last_decisions: dict[tuple[str, ...], str] = field(default_factory=dict)
    last_problems: tuple[str, ...] = ()
    last_forecasters: dict[str, str] = field(default_factory=dict)
    """By topology id: what was said of its forecasts."""
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
        for topology_ids, decision in report.decisions:
            if isinstance(decision, Hold):
                key, sentence = decision.reason.value, f"hold, {decision.reason.value}: {decision.message}"
                told = False
            else:
                key, sentence = assignment_hash(decision.target), f"plan {decision.id}: {decision.reason}"
                told = decision.id in self.last_words  # the pass is over: its record went before
            if self.last_decisions.get(topology_ids) != key:
                self.last_decisions[topology_ids] = key
                if not told:
                    self.say(sentence)

    def _say_forecasters(self, report: PassReport) -> None:
        """Said when it changes, and not at all while no profile was ever given."""
        topologies = report.snapshot.topologies if report.snapshot is not None else ()
        for topology in topologies:
            words = describe_forecasters(topology.id, report.forecasts)
            if words != self.last_forecasters.get(topology.id, ""):
                self.last_forecasters[topology.id] = words
                self.say(f"{topology.name}: forecast by {words}" if words else f"{topology.name}: no profile any more")

    def on_record(self, record: PlanRecord) -> None:
        """A plan is saved more often than it changes: only what is new is said, the reason with its first line."""
        words = f"; {record.message}" if record.message else ""
        known = self.last_words.pop(record.plan.id, None)
        self.last_words[record.plan.id] = now = f"{record.state.value}{words}"
        if known is None:
            for past in tuple(self.last_words)[:-KEPT_PLANS]:
                del self.last_words[past]
            self.say(f"plan {record.plan.id}: {record.state.value}: {record.plan.reason}{words}")
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


PassEnded = Callable[[float, bool, int, float], None]
"""Told of each pass: seconds, whether a peer was in its way, topologies that are managed, seconds of a period."""


@dataclass(frozen=True, slots=True)
class AroundPasses:
    """What others do before each pass, and are told after it.

    `begin` comes once, before anything else is done: while it raises `AdapterError`, the cluster is waited for.
    """

    begin: Callable[[], None] = lambda: None
    confirm: Callable[[], None] = lambda: None
    """Comes last: raises `ManagedByAnother` when that is why `stop` was set."""
    before: Callable[[], None] = lambda: None
    after: Callable[[Mapping[str, TopologySpec], PassReport], object] = lambda *_: None
    ended: PassEnded = lambda *_: None


def run_forever(
    folder: TopologyFolder,
    lifecycle: LifecycleManager,
    loop: ControlLoop,
    stop: threading.Event,
    say: Say,
    around: AroundPasses | None = None,
) -> bool:
    """Pass after pass, one a period, until `stop` is set. Topologies are left running. Whether it ever began.

    A pass that fails for a reason that nobody foresaw is told, and the next one is tried; before it ever began that
    ends it.
    Raises `ManagedByAnother`; the CPU limits in force are then that one's.
    """
    around = around or AroundPasses()
    theirs = False
    try:
        begun = _run_passes(folder, lifecycle, loop, stop, say, around)
        around.confirm()
    except ManagedByAnother:
        theirs = True
        raise
    finally:
        if not theirs:
            _release(loop, say)
    return begun


def _release(loop: ControlLoop, say: Say) -> None:
    try:
        loop.release()
    except AdapterError as error:
        say(f"CPU limits could not be lifted and stay in force: {error}")


@dataclass(slots=True)
class _Obstacle:
    """What is in the way of passes: said once, until it is something else or gone."""

    say: Say
    last: str = ""

    def tell(self, what: str, sentence: str) -> None:
        if what != self.last:
            self.last = what
            self.say(sentence)


def _run_passes(
    folder: TopologyFolder,
    lifecycle: LifecycleManager,
    loop: ControlLoop,
    stop: threading.Event,
    say: Say,
    around: AroundPasses,
) -> bool:
    begun = recovered = False
    obstacle = _Obstacle(say)
    while not stop.is_set():
        started = time.monotonic()
        specs = folder.read()
        if specs:
            loop.period_seconds = min(spec.scheduling.period_seconds for spec in specs.values())
        try:
            if not begun:
                around.begin()
                begun = True
            if not recovered:
                loop.recover()  # before anything else: a plan half in force must not meet another plan
                recovered = True
            lifecycle.step(specs, time.time(), loop.being_moved)
            around.before()
            report = loop.run_once(specs)
            failed = report.snapshot is None
            around.after(specs, report)
            obstacle.last = ""
        except AdapterError as error:
            failed = True
            obstacle.tell(str(error), f"waiting: {error}")
        except ManagedByAnother:
            raise
        except Exception as error:
            if not begun:
                raise
            failed = True
            words = f"{type(error).__name__}: {error}"
            obstacle.tell(words, f"this pass failed, the next one is tried: {words}\n{traceback.format_exc()}")
        around.ended(time.monotonic() - started, failed, len(specs), loop.period_seconds)
        pause_seconds = loop.period_seconds if begun else min(loop.period_seconds, FIRST_TRIES_SECONDS)
        stop.wait(max(0.0, pause_seconds - (time.monotonic() - started)))
    return begun


def stop_on_signals() -> threading.Event:
    """An event that Ctrl-C and SIGTERM set; a second Ctrl-C interrupts at once."""
    stop = threading.Event()

    def on_signal(number: int, _: object) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    return stop

"""`storm-operator standalone`: the control loop over StormTopology files in a folder, no Kubernetes."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from storm_operator.adapters.errors import AdapterError
from storm_operator.adapters.manager_lock import ManagedByAnother
from storm_operator.control_loop import ControlLoop, PassReport
from storm_operator.core.backoff import LONGEST_PASS_RETRY_SECONDS
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.lifecycle_manager import LifecycleManager
from storm_operator.paused_spouts import resume_before_the_end
from storm_operator.topology_folder import TopologyFolder

FIRST_TRIES_SECONDS = 2.0
"""So often a cluster that does not answer yet is asked, however long the period."""

Say = Callable[[str], None]


ENDING = "ending once a pass, or a plan that is being put in force, is through; Ctrl-C again waits for neither"

PassEnded = Callable[[float, bool, int, float], None]
"""Told of each pass: seconds, whether it failed, topologies that are managed, seconds from its begin to the next."""


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
    over: Callable[[], None] = lambda: None
    """Comes when no pass will follow, before what was paused is resumed and limits are lifted."""
    unseen: Say = lambda _: None
    """Told at each try why nothing has begun yet, and why a pass failed that nobody foresaw: no pass would say it."""


def run_forever(
    folder: TopologyFolder,
    lifecycle: LifecycleManager,
    loop: ControlLoop,
    stop: threading.Event,
    say: Say,
    around: AroundPasses | None = None,
) -> bool:
    """Pass after pass, one a period, until `stop` is set. Topologies are left running. Whether it ever began.

    After a pass that failed the next one comes within 10 s, however long the period.
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
        around.over()
        if not theirs:
            _release(loop, say)
    return begun


def _release(loop: ControlLoop, say: Say) -> None:
    resume_before_the_end(loop, say)  # where a peer, or a second Ctrl-C, has cut a plan short
    try:
        loop.release()
    except AdapterError as error:
        say(f"CPU limits could not be lifted and stay in force: {error}")


def last_words(loop: ControlLoop, *, begun: bool) -> str:
    """How topologies are left; `begun` is whether they were ever managed."""
    if not begun:
        return "ended; nothing was managed"
    if loop.being_moved:
        return f"ended in the midst of a plan for {', '.join(loop.being_moved)}; the next start goes on with it"
    waiting = [known.plan.id for known in loop.memory.proposals.waiting]
    forgotten = (
        f"; what waited for approval ({', '.join(waiting)}) is proposed anew by the next start" if waiting else ""
    )
    return f"ended; topologies are left running under the plans in force{forgotten}"


@dataclass(slots=True)
class _Obstacle:
    """What is in the way of passes: said once, until it is something else or gone."""

    say: Say
    is_ending: Callable[[], bool]
    last: str = ""

    def wait_for(self, error: AdapterError) -> None:
        if not self.is_ending():
            self.tell(str(error), f"waiting: {error}")

    def tell(self, what: str, sentence: str) -> None:
        if what != self.last:
            self.last = what
            self.say(sentence)


@contextmanager
def _telling(unseen: Say) -> Iterator[None]:
    """What is in the way goes on to whoever handles it."""
    try:
        yield
    except AdapterError as error:
        unseen(str(error))
        raise


def _run_passes(
    folder: TopologyFolder,
    lifecycle: LifecycleManager,
    loop: ControlLoop,
    stop: threading.Event,
    say: Say,
    around: AroundPasses,
) -> bool:
    begun = recovered = False
    specs: Mapping[str, TopologySpec] = {}
    obstacle = _Obstacle(say, stop.is_set)
    while not stop.is_set():
        started, report = time.monotonic(), None
        try:
            specs = folder.read()
            if specs:
                loop.period_seconds = min(spec.scheduling.period_seconds for spec in specs.values())
            with _telling(around.unseen):
                if not begun:
                    around.begin()
                    begun = True
                if not recovered:
                    loop.recover()  # before anything else: a plan half in force must not meet another plan
                    recovered = True
            loop.carry_on()  # first: to submit a topology may take long
            lifecycle.step(specs, time.time(), loop.being_moved)
            around.before()
            report = loop.run_once(specs)
            failed = report.snapshot is None
            around.after(specs, report)
            obstacle.last = ""
        except AdapterError as error:
            failed = True
            if recovered and report is None:
                loop.tell_out_of_reach(error)
            else:
                obstacle.wait_for(error)
        except ManagedByAnother:
            raise
        except Exception as error:
            if not begun:
                raise
            failed = True
            words = f"{type(error).__name__}: {error}"
            obstacle.tell(words, f"this pass failed, the next one is tried: {words}\n{traceback.format_exc()}")
            with suppress(Exception):  # it may be the telling that failed
                around.unseen(f"the operator failed ({words}); its terminal says where; please report it")
        next_in_seconds = _seconds_to_next(loop, begun=begun, failed=failed)
        around.ended(time.monotonic() - started, failed, len(specs), next_in_seconds)
        stop.wait(max(0.0, next_in_seconds - (time.monotonic() - started)))
    return begun


def _seconds_to_next(loop: ControlLoop, *, begun: bool, failed: bool) -> float:
    """From the beginning of a pass to that of the next."""
    if not failed:
        return loop.seconds_to_next
    return min(loop.period_seconds, LONGEST_PASS_RETRY_SECONDS if begun else FIRST_TRIES_SECONDS)


@dataclass(slots=True)
class Patience:
    """Whether peers that do not answer are waited for: once told to end, only for what must not be left half done."""

    stop: threading.Event
    being_moved: Callable[[], object] = lambda: ()
    """Topologies of a plan that has begun."""
    is_recovering: bool = False
    """Whether nobody knows yet which plan an earlier life has left half done."""
    passes_are_over: bool = False
    """What comes then leaves the cluster in order."""

    def is_over(self) -> bool:
        is_half_done = self.is_recovering or self.passes_are_over or self.being_moved()
        return self.stop.is_set() and not is_half_done

    def end_passes(self) -> None:
        self.passes_are_over = True


class Stop(threading.Event):
    """Set once no further pass is to begin; `is_asked_for` where a signal has said so."""

    is_asked_for = False


@contextmanager
def saying_when_asked_to_end(stop: Stop, say: Say) -> Iterator[None]:
    """Says at once that an end was heard of. In a thread: a signal may come in the midst of another sentence."""

    def wait_and_say() -> None:
        stop.wait()
        if stop.is_asked_for:
            say(ENDING)

    told = threading.Thread(target=wait_and_say, name="ending", daemon=True)
    told.start()
    try:
        yield
    finally:
        stop.set()
        told.join()


def stop_on_signals() -> Stop:
    """An event that Ctrl-C, SIGTERM and the end of the terminal set; a second Ctrl-C interrupts at once."""
    stop = Stop()

    def on_signal(number: int, _: object) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.is_asked_for = True
        stop.set()

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        signal.signal(signal.SIGHUP, on_signal)
    return stop

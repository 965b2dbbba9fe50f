"""The rhythm of one Storm cluster's loop: pass after pass, looks between them, and what becomes of those that fail."""

from __future__ import annotations

import contextlib
import math
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from storm_operator.adapters.errors import AdapterError
from storm_operator.adapters.kube.errors import KubernetesError
from storm_operator.adapters.manager_lock import HolderAwaited, ManagedByAnother
from storm_operator.core.backoff import LONGEST_PASS_RETRY_SECONDS, Retry, put_off
from storm_operator.kube.managed_cluster import ManagedCluster, shortest_period_seconds
from storm_operator.kube.resize_problem import problem_reason
from storm_operator.kube.sole_manager import AWAITED_LOOK_SECONDS, describe
from storm_operator.loop_ports import report_of_unseen
from storm_operator.paused_spouts import resume_before_the_end

LOOK_SECONDS = 0.5
"""Between passes it is looked so often whether anybody wants something new."""

PLACED_WITHIN_SECONDS = 20.0
"""Nimbus has placed a topology that is new to it by then: two of its scheduling rounds, as Storm has them by itself."""


@dataclass(slots=True)
class ClusterRunner:
    """Lets passes over one cluster follow each other, whatever happens in them."""

    cluster: ManagedCluster
    last_pass_at: float = field(default_factory=time.monotonic)
    next_pass_at: float = 0.0
    """When the one after that is due, by the same clock."""
    came_through_at: float = math.inf
    """When the last pass began, by the same clock; infinity if it failed: then a pause of its own comes first."""
    unforeseen: Retry | None = None
    """How often in a row it failed for a reason that nobody foresaw."""

    @property
    def nimbus(self) -> str:
        return self.cluster.nimbus

    @property
    def paused(self) -> tuple[str, ...]:
        """Ids of the topologies whose spouts a plan on its way into force pauses."""
        return self.cluster.paused

    def run(self, stop: threading.Event) -> None:
        """Until `stop`. Topologies are left running under the plans in force, with limits while anybody asks."""
        self.cluster.watcher()  # from now on the page lists the cluster, whether it can be reached or not
        self.cluster.is_ending = stop.is_set
        while not stop.is_set():
            started = time.monotonic()
            self.cluster.manager.awaits = False
            self.cluster.look_again_at = math.inf
            period = self._whatever_happens(self.cluster.run_pass)
            ended = time.monotonic()
            self.came_through_at = math.inf if period is None else started
            until = started + (self._retry_seconds() if period is None else period)
            if self.unforeseen is None:  # else, when that goes on, /healthz says that there was no pass for long
                self.last_pass_at, self.next_pass_at = ended, until
            if not self.cluster.manager.awaits:
                self._note_pass(ended - started, period)
            self._rest(stop, until)
        if not self.cluster.registry.of_cluster(self.nimbus):
            self._whatever_happens(self.cluster.release)
        self.close()

    def release_only(self, stop: threading.Event) -> None:
        """As the end of a loop that nobody asks for any more, where an earlier life of the operator had that loop.

        Until its cluster can be looked at; not where another manages it, or a valid resource names it by now.
        """
        self.cluster.is_ending = stop.is_set
        while not stop.is_set() and not self.cluster.registry.of_cluster(self.nimbus):
            self.cluster.manager.awaits = False
            if self._whatever_happens(self._take_over) is not None:
                break
            if self.unforeseen is None:  # else /healthz says it
                self.last_pass_at = time.monotonic()
            stop.wait(self._retry_seconds())
        stop.set()
        self.run(stop)

    def _take_over(self) -> float:
        try:
            self.cluster.take_over()
        except ManagedByAnother as other:  # who took over what was left, too
            self._tell_obstacle(other)
        return 0.0

    def resume_paused(self) -> None:
        """In the midst of a pass, perhaps, before an end that waits for none: see `paused`."""
        assembly = self.cluster.assembly
        if assembly is not None:
            with contextlib.suppress(ManagedByAnother):  # who goes on with the plan
                resume_before_the_end(assembly.loop, self.cluster.say)

    def close(self) -> None:
        self.cluster.close()
        self.cluster.manager.close()  # last: whoever waits for the lock begins at once

    def _rest(self, stop: threading.Event, until: float) -> None:
        """Until the next pass is due. New and changed resources are attended to once they have come to rest, and those
        that come or go again and again."""
        cluster = self.cluster
        before = cluster.attended
        until = min(until, self._due_for_those_who_came())
        while not stop.wait(max(0.0, min(LOOK_SECONDS, until - time.monotonic()))):
            if time.monotonic() >= until:
                return
            now = cluster.wishes()
            is_due = now != cluster.attended or self._is_to_look_again()
            if now == before and cluster.lifecycle is not None and is_due:
                cluster.look_again_at = time.monotonic() + self._retry_seconds()  # if it fails
                self._whatever_happens(cluster.attend)
                shortest = shortest_period_seconds(cluster.owners.specs())
                until = min(until, self.came_through_at + shortest, self._due_for_those_who_came())
            before = now

    def _due_for_those_who_came(self) -> float:
        """When the next pass is due, however long the period; infinity where nobody came, or the last pass failed.

        Only a pass opens pods whose limits are of before, and JVMs that start there must not wait for it.
        """
        is_due = self.came_through_at < self.cluster.topologies_came_at + PLACED_WITHIN_SECONDS
        return self.came_through_at + LONGEST_PASS_RETRY_SECONDS if is_due else math.inf

    def _is_to_look_again(self) -> bool:
        """Not after what nobody foresaw: that would go on ever more slowly, and a look that succeeds would hide it."""
        return self.unforeseen is None and time.monotonic() >= self.cluster.look_again_at

    def _retry_seconds(self) -> float:
        """After a failure: a period of its resources, if not too long; later, if Kubernetes refused the start.

        Ever later, too, after what nobody foresaw.
        """
        if self.unforeseen is not None:
            return self.unforeseen.pause_seconds
        if self.cluster.manager.awaits:
            return AWAITED_LOOK_SECONDS
        resources = self.cluster.registry.of_cluster(self.nimbus)
        periods = [one.spec.scheduling.period_seconds for one in resources if one.spec]
        return self.cluster.first_look.pause_seconds(min([LONGEST_PASS_RETRY_SECONDS, *periods]))

    def _whatever_happens(self, act: Callable[[], float | None]) -> float | None:
        """As `_unless_out_of_reach`; an error that nobody foresaw does not end the loop, and with it all others."""
        try:
            period = self._unless_out_of_reach(act)
        except Exception as error:
            self.unforeseen = put_off(self.unforeseen, "", time.monotonic())
            self.cluster.say(f"{self.nimbus}: {''.join(traceback.format_exception(error))}")
            words = f"the operator failed ({type(error).__name__}: {error}); its log says where; please report it"
            self.cluster.registry.note_obstacle(self.nimbus, words)
            with contextlib.suppress(Exception):  # it may be the telling that failed
                self.cluster.owners.tell_trouble(words, "OperatorFailed")
            with contextlib.suppress(Exception):
                self._tell_page(words)
            return None
        self.unforeseen = None
        return period

    def _unless_out_of_reach(self, act: Callable[[], float | None]) -> float | None:
        """What `act` returns; None when a peer is in its way, which the resources' statuses then say."""
        try:
            return act()
        except (ManagedByAnother, AdapterError) as error:
            self.cluster.registry.note_obstacle(self.nimbus, str(error))
            self._tell_obstacle(error)
            return None

    def _tell_obstacle(self, error: ManagedByAnother | AdapterError) -> None:
        if isinstance(error, HolderAwaited):
            return  # most often a dead operator's session, which ends in some seconds
        if isinstance(error, ManagedByAnother):
            self._tell_page(describe(error.holder, self.nimbus))
            self._leave_to(error)
            return
        if self.cluster.assembly is None:
            self._tell_page(str(error))
        self.cluster.say(f"{self.nimbus}: {error}")
        reason = "KubernetesRefused" if isinstance(error, KubernetesError) else "ClusterUnreachable"
        self.cluster.owners.tell_trouble(str(error), reason)

    def _tell_page(self, why: str) -> None:
        """That the cluster is not seen, where there is no loop that could tell, or it failed."""
        watcher = self.cluster.watcher()
        if watcher is not None:
            watcher.on_pass(report_of_unseen(time.time(), why))

    def _leave_to(self, other: ManagedByAnother) -> None:
        """Once that one has gone, this loop begins as after a restart."""
        if self.cluster.manager.has_lost:
            self.cluster.close()
            self.cluster.know_nothing_yet()
        self.cluster.manager.tell(self.cluster.owners.by_name.values(), self.cluster.publisher, other)

    def _note_pass(self, seconds: float, period_seconds: float | None) -> None:
        """`period_seconds` None: a peer was in the pass' way."""
        cluster = self.cluster
        report = cluster.publisher.last_report
        snapshot = report.snapshot if report is not None else None
        failed = period_seconds is None or snapshot is None
        cluster.told.pass_ended(seconds, failed, len(cluster.owners.by_name), period_seconds or self._retry_seconds())
        if snapshot is not None:
            problems = cluster.care.limits.problems_of([supervisor.host for supervisor in snapshot.all_supervisors])
            cluster.told.resize_problems(map(problem_reason, problems.values()))

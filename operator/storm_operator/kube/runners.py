"""Starts a loop for each Storm cluster that a resource names, and ends it when none does.

Where all resources are invalid since an earlier life of the operator, one loop releases what that life left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from storm_operator.kube.managed import Body, Registry
from storm_operator.kube.runner import ClusterRunner

LOOK_SECONDS = 1.0
END_SECONDS = 10.0
"""All loops together have so long to end."""
PAUSED_END_SECONDS = 40.0
"""And those by whose plan spouts are paused: less than the pod's terminationGracePeriodSeconds."""
IDLE_LIMIT_SECONDS = 600.0
"""A loop whose next pass is due for this long is stuck: applying a plan may take some minutes, no more."""


@dataclass(slots=True)
class _Running:
    runner: ClusterRunner
    thread: threading.Thread
    stop: threading.Event

    @property
    def has_ended(self) -> bool:
        """As it was told to."""
        return self.stop.is_set() and not self.thread.is_alive()


@dataclass(slots=True)
class Runners:
    """One thread for each cluster: a Nimbus that does not answer holds up nobody else."""

    registry: Registry
    make: Callable[[str], ClusterRunner]
    ended: Callable[[str], None] = lambda _: None
    """Told of each cluster whose loop has ended because nobody names it any more."""
    wait_until_known: Callable[[threading.Event], bool] = lambda _: True
    """Blocks until the registry has all resources that there are; False when told to stop first."""
    running: dict[str, _Running] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Clusters that had a loop in this life: its end releases what it held."""
    ending: bool = False
    """From then on no loop is started."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, stop: threading.Event) -> None:
        """Follow the registry until `stop`. Who knows only some of the resources takes the rest for deleted."""
        if not self.wait_until_known(stop):
            return
        while not stop.wait(LOOK_SECONDS):
            self.follow()

    def join(self) -> bool:
        """End all loops; whether they have ended. One that is applying a plan is not waited for long, unless spouts are
        paused for it: its journal says how to go on."""
        with self._lock:
            self.ending = True
            running = tuple(self.running.values())
        for one in running:
            one.stop.set()
        begun = time.monotonic()
        for one in running:
            until = begun + (PAUSED_END_SECONDS if one.runner.paused else END_SECONDS)
            one.thread.join(timeout=max(0.0, until - time.monotonic()))
        return not any(one.thread.is_alive() for one in running)

    def paused(self) -> tuple[str, ...]:
        """Ids of the topologies whose spouts a plan on its way into force pauses, sorted."""
        return tuple(sorted(topology_id for one in self.running.values() for topology_id in one.runner.paused))

    def resume_paused(self, within_seconds: float) -> None:
        """Let spouts that plans pause run again, as far as that is done in time: nobody may lead for long, and go on
        with these plans."""
        asked = [
            threading.Thread(target=one.runner.resume_paused, name=f"last deed {nimbus}", daemon=True)
            for nimbus, one in list(self.running.items())
            if one.runner.paused
        ]
        for thread in asked:
            thread.start()
        until = time.monotonic() + within_seconds
        for thread in asked:
            thread.join(max(0.0, until - time.monotonic()))

    def proposal(self, plan_id: str) -> Body | None:
        """The StormRebalance of a plan that waits for a person; None where none of that id does."""
        found = (one.runner.cluster.proposal(plan_id) for one in list(self.running.values()))
        return next((body for body in found if body is not None), None)

    def follow(self) -> None:
        """Start and end loops so that there is one for each cluster."""
        with self._lock:
            if not self.ending:
                self._follow()

    def _follow(self) -> None:
        # Until a loop has ended it may still be applying a plan: two at once for one cluster must never be.
        for nimbus in [nimbus for nimbus, one in self.running.items() if one.has_ended]:
            self.running.pop(nimbus)
            self.known.add(nimbus)
            self.ended(nimbus)
        named = self.registry.clusters()
        self.known |= named
        left = self.registry.left_clusters() - self.known
        for nimbus in set(self.running) - named - left:
            self.running[nimbus].stop.set()
        for nimbus in named.union(left) - set(self.running):
            runner, stop = self.make(nimbus), threading.Event()
            target = runner.run if nimbus in named else runner.release_only
            thread = threading.Thread(target=target, args=(stop,), name=f"loop {nimbus}", daemon=True)
            self.running[nimbus] = _Running(runner, thread, stop)
            thread.start()

    def problem(self) -> str:
        """Why the loops are not well; empty when they are."""
        for nimbus, one in list(self.running.items()):
            if one.has_ended:
                continue
            if not one.thread.is_alive():
                return f"the loop of {nimbus} has ended"
            now, last = time.monotonic(), one.runner.last_pass_at
            if now - max(last, one.runner.next_pass_at) > IDLE_LIMIT_SECONDS:
                return f"the loop of {nimbus} made no pass for {now - last:.0f} s"
        return ""

"""A simulation at a pace that people can follow, with the operator's page beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from storm_operator.console.site import PageAddress, SinglePage
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.simulated_loop import Scenario, SimulatedStage

DEFAULT_PACE = 10.0


@dataclass(slots=True)
class Pace:
    """Rests after each control period, so that `factor` simulated seconds take one real second."""

    period_seconds: float
    factor: float
    stop: threading.Event = field(default_factory=threading.Event)
    _due_seconds: float = field(default_factory=time.monotonic)

    def rest(self) -> None:
        """Until the next period is due; not at all where the simulation is late."""
        self._due_seconds = max(self._due_seconds + self.period_seconds / self.factor, time.monotonic())
        self.stop.wait(self._due_seconds - time.monotonic())


def play_beside_page(
    scenario: Scenario, specs: Mapping[str, TopologySpec], page: SinglePage, pace: Pace
) -> SimulatedStage:
    """Play `scenario` until its end or until the pace is stopped; the stage as it ended."""
    stage = SimulatedStage(scenario, page.watcher)
    stage.counts.onlooker = page.watcher.on_held_resizes
    page.proposals = lambda: stage.loop.memory.proposals
    while not stage.is_over and not pace.stop.is_set():
        page.carry_out(stage.loop.desk)
        stage.run_period(specs)
        if not stage.is_over:
            pace.rest()
    page.end()
    return stage


def show_simulation(
    scenario: Scenario,
    specs: Mapping[str, TopologySpec],
    address: PageAddress,
    pace: Pace,
    say: Callable[[str], None],
) -> None:
    """Play `scenario` beside its page, which stays until the pace is stopped. Raises `PageUnavailable`."""
    page = SinglePage(scenario.name, may_approve=True)
    with shown_page(page, address, say):
        play_beside_page(scenario, specs, page, pace)
        if not pace.stop.is_set():
            say("the scenario has ended; the page stays until Ctrl-C")
        pace.stop.wait()


@contextmanager
def shown_page(page: SinglePage, address: PageAddress, say: Callable[[str], None]) -> Iterator[PageAddress]:
    """The page while the block runs. Raises `PageUnavailable`."""
    server, where = page.open(address)
    say(f"page: {where.url}")
    try:
        yield where
    finally:
        server.shutdown()
        server.server_close()

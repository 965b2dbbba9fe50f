"""An operator's page over a simulated cluster that is known, and a browser that looks at it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from storm_operator.adapters.errors import AdapterError
from storm_operator.console.site import PageAddress, SinglePage
from storm_operator.core.distances import Distances
from storm_operator.core.model import ComponentKind
from storm_operator.core.settings import Mode, ResourceSettings, SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulator.load import Constant, Sine
from storm_operator.simulator.model import (
    ClusterModel,
    Grouping,
    SimulatedComponent,
    SimulatedEdge,
    SimulatedSupervisor,
    SimulatedTopology,
)
from storm_operator.simulator.workloads import word_count

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
WIDTH, HEIGHT = 1440, 900
SECONDS = 1000.0
"""A browser's own waits, in milliseconds, are many seconds long: the machine may be busy."""
PATIENCE_MS = 60 * SECONDS
MOST_PASSES = 20


@contextmanager
def chromium(*more: str) -> Iterator[Browser]:
    """Debian's Chromium, without a window; the test is skipped where there is none."""
    if shutil.which(CHROMIUM) is None:
        pytest.skip("NO BROWSER TESTS: there is no chromium; `make packages` installs it")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, *more])
        yield browser
        browser.close()


def words_scenario(supervisors: int = 4) -> Scenario:
    """WordCount on small supervisors, spread by Storm's Even scheduler; every figure is a constant."""
    machines = tuple(
        SimulatedSupervisor(f"s{n}", f"machine-{n}", (6700, 6701, 6702, 6703), 1000.0)
        for n in range(1, supervisors + 1)
    )
    topology = word_count(
        Constant(100.0),
        parallelism={"split": 2, "count": 3},
        num_workers=4,
        cpu_ms={"split": 0.2, "count": 0.25},
        message_timeout_seconds=10.0,
    )
    return Scenario(
        "words", ClusterModel(machines, (topology,), Distances({}, default_ms=4.0)), 600.0, step_seconds=1.0
    )


def large_scenario(executors: int, supervisors: int) -> Scenario:
    """Chains of five components with 100 executors each."""
    machines = tuple(
        SimulatedSupervisor(f"s{n:03}", f"machine-{n:03}", (6700, 6701, 6702, 6703), 4000.0)
        for n in range(1, supervisors + 1)
    )
    count = executors // 100
    topologies = tuple(_chain_of_hundred(number, max(1, 2 * supervisors // count)) for number in range(1, count + 1))
    return Scenario("large", ClusterModel(machines, topologies, Distances({}, default_ms=2.0)), 600.0, step_seconds=1.0)


def _chain_of_hundred(number: int, workers: int) -> SimulatedTopology:
    names = ["source", "parse", "enrich", "count", "store"]
    components = [SimulatedComponent(names[0], ComponentKind.SPOUT, 18, load=Sine(400.0, 1200.0, 600.0))]
    components += [
        SimulatedComponent(name, ComponentKind.BOLT, 18, cpu_ms_per_tuple=0.4, stateful=name == "count")
        for name in names[1:]
    ]
    edges = tuple(
        SimulatedEdge(one, other, Grouping.FIELDS if other == "count" else Grouping.SHUFFLE)
        for one, other in pairwise(names)
    )
    name = f"topology-{number:02}"
    return SimulatedTopology(f"{name}-{number}", name, tuple(components), edges, ackers=10, num_workers=workers)


@dataclass
class PageStage:
    """The loop on a simulated cluster, pass by pass as the test says, with its page."""

    scenario: Scenario
    mode: Mode = Mode.ENFORCE
    page: SinglePage = field(init=False)
    stage: SimulatedStage = field(init=False)
    url: str = ""

    def __post_init__(self) -> None:
        self.page = SinglePage("sim:6627", may_approve=True)
        self.stage = SimulatedStage(self.scenario, self.page.watcher)
        self.page.proposals = lambda: self.stage.loop.memory.proposals

    def specs(self) -> Mapping[str, TopologySpec]:
        settings = SchedulingSettings(settling_seconds=20.0, mode=self.mode)
        resources = ResourceSettings(theta_millicores=50.0, floor_millicores=50.0)
        names = [topology.name for topology in self.scenario.model.topologies]
        return {name: TopologySpec(name, AdoptSource(), scheduling=settings, resources=resources) for name in names}

    def passes(self, number: int = 1) -> None:
        for _ in range(number):
            self.page.carry_out(self.stage.loop.desk)
            self.stage.run_period(self.specs())

    def passes_unseen(self, number: int = 1) -> None:
        """Passes in which nobody tells how the cluster is."""
        loop = self.stage.loop
        seeing = loop.observer
        loop.observer = Mock(**{"observe.side_effect": AdapterError("no Nimbus answers")})
        self.passes(number)
        loop.observer = seeing

    def until_planned(self) -> int:
        """Pass after pass until the first plan is made, which gathers what Even has spread; how many there were."""
        for number in range(1, MOST_PASSES):
            self.passes(1)
            if self.page.watcher.seen.plans:
                return number
        raise AssertionError(f"no plan in {MOST_PASSES} passes")

    @contextmanager
    def served(self) -> Iterator[PageStage]:
        server, where = self.page.open(PageAddress(0))
        try:
            yield replace_url(self, where.url)
        finally:
            server.shutdown()
            server.server_close()


def replace_url(stage: PageStage, url: str) -> PageStage:
    stage.url = url
    return stage


class Visitor:
    """A browser's tab on the page. `troubles` are errors of its console, of scripts, and requests that failed."""

    def __init__(self, browser: Browser, url: str, **context: Any) -> None:
        given = {"viewport": {"width": WIDTH, "height": HEIGHT}, "reduced_motion": "reduce", **context}
        self.context = browser.new_context(**given)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.troubles: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)
        self.page.wait_for_selector(".topology")

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(message.text)

    def seen(self, expression: str) -> Any:
        """A value of the page's own state, e.g. `state.view.executors.length`."""
        return self.page.evaluate(f"() => {{ const {{ state, map }} = window.stormOperator; return {expression}; }}")

    def wait_for(self, selector: str, text: str) -> None:
        self.page.locator(selector, has_text=text).first.wait_for()

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def close(self) -> None:
        self.context.close()

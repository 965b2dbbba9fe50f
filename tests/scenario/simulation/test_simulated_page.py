"""A simulation beside its page: the whole scenario is played, can be stopped, and what is said on the page is done."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from page_stage import words_scenario
from storm_operator.console.api import Api
from storm_operator.console.approval import HAS_ENDED, Verdict
from storm_operator.console.messages import Request
from storm_operator.console.site import PageAddress, SinglePage
from storm_operator.core.settings import Mode, SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_page import Pace, play_beside_page, show_simulation

SPECS = {"wordcount": TopologySpec("wordcount", AdoptSource(), scheduling=SchedulingSettings())}
FAST = 1e9
SHORT = replace(words_scenario(), duration_seconds=200.0)


def test_every_period_of_the_scenario_is_seen() -> None:
    page = SinglePage("sim", may_approve=False)
    stage = play_beside_page(SHORT, SPECS, page, Pace(10.0, FAST))
    assert page.watcher.seen.passes == len(stage.points) == 20
    assert page.watcher.seen.plans


def test_after_the_scenario_nobody_is_told_that_a_plan_will_begin() -> None:
    recommend = {"wordcount": replace(SPECS["wordcount"], scheduling=SchedulingSettings(mode=Mode.RECOMMEND))}
    page = SinglePage("sim", may_approve=True)
    stage = play_beside_page(SHORT, recommend, page, Pace(10.0, FAST))
    (waiting,) = stage.loop.memory.proposals.waiting
    answer = page.approver.take(waiting.plan.id, Verdict.APPROVE, "")
    assert (answer.status, answer.message) == (409, HAS_ENDED)


def test_the_pace_rests_after_each_period_and_can_be_stopped() -> None:
    started = time.monotonic()
    pace = Pace(10.0, 1000.0)  # its time begins here
    for _ in range(5):
        pace.rest()
    assert time.monotonic() - started >= 5 * 10.0 / 1000.0  # at least: a busy machine may take longer
    pace.stop.set()
    page = SinglePage("sim", may_approve=False)
    play_beside_page(SHORT, SPECS, page, pace)
    assert page.watcher.seen.passes == 0


def test_the_page_stays_until_it_is_stopped() -> None:
    pace = Pace(10.0, FAST)
    said: list[str] = []
    ended = threading.Event()

    def say(sentence: str) -> None:
        said.append(sentence)
        if "Ctrl-C" in sentence:
            ended.set()

    shown = threading.Thread(target=show_simulation, args=(SHORT, SPECS, PageAddress(0), pace, say))
    shown.start()
    assert ended.wait(120.0)
    assert shown.is_alive()
    pace.stop.set()
    shown.join(60.0)
    assert not shown.is_alive()
    assert said[0].startswith("page: http://127.0.0.1:")


def test_the_api_names_the_simulation() -> None:
    page = SinglePage("sim", may_approve=False)
    answer = Api(lambda: {page.cluster: page.watcher}).answer(Request("GET", "/api/v1/clusters"))
    assert b'"name":"sim"' in answer.body

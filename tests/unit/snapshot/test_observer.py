"""Passes over a Prometheus that scrapes by its own clock: each tuple counts once, and periods follow each other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import pytest

from builders import chain_topology, placed, supervisors
from fake_cluster import FakeClock
from storm_operator.adapters.metrics import scrape
from storm_operator.adapters.observer import SnapshotObserver
from storm_operator.core.metrics_window import MetricsWindow, Sample, SeriesKey, window_of_samples
from storm_operator.core.model import Assignment
from storm_operator.core.settings import SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.snapshot_builder import ClusterView
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from window_builder import executor_labels

PERIOD_SECONDS = 10.0
RATE = 100.0
BEGAN = 1000.0
WORDS = chain_topology("words", ("spout", 1), ("count", 1))
MACHINES = supervisors(1)
SLOTS = placed(WORDS, {"spout": "s1", "count": "s1"})


class Cluster:
    def read_view(self, specs: Mapping[str, TopologySpec]) -> ClusterView:
        return ClusterView(MACHINES, (WORDS,), Assignment(SLOTS))


@dataclass(frozen=True)
class Scraped:
    """A Prometheus that scraped the agent of a steady topology every so many seconds, since long ago."""

    every_seconds: float
    fails_at: tuple[float, ...] = ()

    def read_window(
        self, now_seconds: float, window_seconds: float, since_seconds: float | None = None
    ) -> MetricsWindow:
        if now_seconds in self.fails_at:
            return MetricsWindow(now_seconds, window_seconds, {}, ("it failed",))
        return window_of_samples(self.samples(now_seconds), now_seconds, window_seconds, (), since_seconds)

    def samples(self, now_seconds: float) -> Mapping[SeriesKey, list[Sample]]:
        count = int((now_seconds - BEGAN) / self.every_seconds) + 1
        times = [BEGAN + self.every_seconds * number for number in range(count)]

        def counter(per_second: float) -> list[Sample]:
            return [Sample(per_second * (at - BEGAN), at) for at in times]

        host = MACHINES[0].host
        samples = {
            SeriesKey.of(
                "storm_traffic_tuples_total",
                {
                    "supervisor": host,
                    "topology_id": "words",
                    "source_task": "1",
                    "target_task": "2",
                    "stream": "default",
                },
            ): counter(RATE)
        }
        rates = {"cpu_seconds_total": 0.1, "executed_tuples_total": RATE, "emitted_tuples_total": RATE}
        for executor, slot in SLOTS.items():
            labels = {k: str(v) for k, v in executor_labels(executor, host, slot.port).items()}
            for name, rate in {**rates, "queue_length": 0.0}.items():
                samples[SeriesKey.of(f"storm_executor_{name}", labels)] = counter(rate)
        return samples


def passes(source: Scraped, *moments: float) -> list[ClusterSnapshot]:
    observer = SnapshotObserver(Cluster(), source)
    history: tuple[object, ...] = ()
    found = []
    for moment in moments:
        found.append(observer.observe({}, history, moment, PERIOD_SECONDS, -math.inf))  # type: ignore[arg-type]
        history = found[-1].history
    return found


def flow(snapshot: ClusterSnapshot) -> float:
    return snapshot.traffic.rate(*WORDS.executors) * snapshot.period_seconds


@pytest.mark.parametrize("every_seconds", [1.0, 2.0, 3.0, 5.0, 7.0])
def test_tuples_are_counted_once_however_often_somebody_scrapes(every_seconds: float) -> None:
    _, *seen = passes(Scraped(every_seconds), *(BEGAN + 100.0 + PERIOD_SECONDS * n for n in range(31)))
    assert all(one.completeness.ratio == 1.0 for one in seen)
    assert sum(flow(one) for one in seen) == pytest.approx(30 * PERIOD_SECONDS * RATE)
    assert {one.period_seconds for one in seen} == {PERIOD_SECONDS}


@pytest.mark.parametrize("every_seconds", [1.0, 2.0, 3.0, 5.0])
def test_what_forecasts_look_back_over_was_measured_once_too(every_seconds: float) -> None:
    _, *seen = passes(Scraped(every_seconds), *(BEGAN + 100.0 + PERIOD_SECONDS * n for n in range(31)))
    lengths = [period.period_seconds for period in seen[-1].history[1:]]
    assert sum(lengths) == pytest.approx(30 * PERIOD_SECONDS, abs=every_seconds)


def test_a_pass_that_comes_late_is_of_all_the_time_since_the_one_before() -> None:
    _, late, next_one = passes(Scraped(1.0), BEGAN + 100.0, BEGAN + 113.0, BEGAN + 123.0)
    assert (late.period_seconds, next_one.period_seconds) == (13.0, 10.0)
    assert flow(late) == pytest.approx(13.0 * RATE)
    assert late.history[-1].period_seconds == 13.0


def test_nothing_is_said_of_the_time_before_what_was_counted() -> None:
    _, after = passes(Scraped(1.0), BEGAN + 100.0, BEGAN + 400.0)
    assert after.period_seconds < 15.0, "the rest is a gap"


def test_a_pass_soon_after_another_has_its_own_length_and_readings_that_are_long_enough() -> None:
    _, soon = passes(Scraped(1.0), BEGAN + 100.0, BEGAN + 102.0)
    assert soon.completeness.ratio == 1.0
    assert soon.period_seconds == 2.0
    assert flow(soon) == pytest.approx(2.0 * RATE)


def test_a_pass_in_which_prometheus_failed_is_a_period_in_which_nothing_is_known() -> None:
    _, blind, seen = passes(Scraped(1.0, (BEGAN + 110.0,)), BEGAN + 100.0, BEGAN + 110.0, BEGAN + 120.0)
    assert blind.completeness.ratio == 0.0
    assert (blind.period_seconds, seen.period_seconds) == (10.0, 10.0)
    assert flow(seen) == pytest.approx(10.0 * RATE)


@pytest.mark.parametrize("goes", [True, False])
def test_who_is_known_to_go_is_not_waited_for_once_storm_does_not_see_it(goes: bool) -> None:
    class Ending(Cluster):
        def __init__(self) -> None:
            self.views = iter([super().read_view({}), ClusterView((), (WORDS,), Assignment({}))])

        def read_view(self, specs: Mapping[str, TopologySpec]) -> ClusterView:
            return next(self.views)

    observer = SnapshotObserver(Ending(), Scraped(1.0), is_going=lambda host: goes and host == MACHINES[0].host)
    _, after = (observer.observe({}, (), BEGAN + at, PERIOD_SECONDS, -math.inf) for at in (100.0, 110.0))
    assert [one.id for one in after.supervisors] == ([] if goes else ["s1"])
    assert after.assignment == Assignment({} if goes else SLOTS)
    assert after.completeness.problems == () if goes else "stay for now" in after.completeness.problems[0]


@pytest.mark.parametrize(("least_share", "is_remembered"), [(1.0, False), (0.5, True)])
def test_a_topology_says_itself_how_much_of_it_is_to_be_measured(least_share: float, is_remembered: bool) -> None:
    class Partly(Scraped):
        def samples(self, now_seconds: float) -> Mapping[SeriesKey, list[Sample]]:
            known = super().samples(now_seconds)
            return {key: found for key, found in known.items() if key.label("component") != "count"}

    spec = TopologySpec(WORDS.name, AdoptSource(), scheduling=SchedulingSettings(minimum_completeness=least_share))
    seen = SnapshotObserver(Cluster(), Partly(1.0)).observe(
        {WORDS.name: spec}, (), BEGAN + 100.0, PERIOD_SECONDS, -math.inf
    )
    assert seen.completeness.missing_executors == WORDS.executors_of("count")
    assert bool(seen.history) is is_remembered


def agent(monkeypatch: pytest.MonkeyPatch, clock: FakeClock, answers_in_seconds: float = 0.0) -> scrape.ScrapeSource:
    """The agent of the steady topology, asked directly."""

    def exposition(url: str, timeout_seconds: float) -> str:
        clock.sleep(answers_in_seconds)
        samples = Scraped(1.0).samples(clock.now())
        return "".join(f"{key} {readings[-1].value}\n" for key, readings in samples.items())

    monkeypatch.setattr(scrape, "fetch_text", exposition)
    return scrape.ScrapeSource(lambda: {MACHINES[0].host: "http://agent/metrics"})


@pytest.mark.parametrize("periods", [0.2, 1.6, 6.0])
def test_all_is_measured_from_the_second_pass_on_however_long_a_reading_takes(
    monkeypatch: pytest.MonkeyPatch, periods: float
) -> None:
    clock = FakeClock(BEGAN + 100.0)
    observer = SnapshotObserver(Cluster(), agent(monkeypatch, clock, periods * PERIOD_SECONDS), clock=clock.now)
    began, found = [], []
    for _ in range(5):
        began.append(clock.now())
        found.append(observer.observe({}, (), clock.now(), PERIOD_SECONDS, -math.inf))
        clock.seconds = max(clock.now(), began[-1] + PERIOD_SECONDS)
    assert [one.completeness.ratio for one in found] == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert [one.period_seconds for one in found[1:]] == [later - one for one, later in pairwise(began)]
    for one in found[1:]:
        assert flow(one) == pytest.approx(one.period_seconds * RATE)


def test_what_is_measured_while_a_plan_is_put_in_force_is_of_no_use() -> None:
    """A long pass is all the same measured over when there was none."""
    for steady_since, ratio in ((BEGAN + 99.0, 1.0), (BEGAN + 100.0, 0.0), (BEGAN + 125.0, 0.0), (BEGAN + 9e3, 1.0)):
        observer = SnapshotObserver(Cluster(), Scraped(30.0))
        observer.observe({}, (), BEGAN + 100.0, PERIOD_SECONDS, -math.inf)
        after = observer.observe({}, (), BEGAN + 160.0, PERIOD_SECONDS, steady_since)
        assert after.completeness.ratio == ratio, f"since {steady_since}; 9e3: the clock was set back"


def test_the_time_that_nimbus_lets_wait_makes_nobody_busier(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(BEGAN + 100.0)

    class TakenOver(Cluster):
        def read_view(self, specs: Mapping[str, TopologySpec]) -> ClusterView:
            clock.sleep({BEGAN + 110.0: 4.0, BEGAN + 120.0: 20.0}.get(clock.now(), 0.0))
            return super().read_view(specs)

    observer = SnapshotObserver(TakenOver(), agent(monkeypatch, clock), clock=clock.now)
    found = []
    for moment in (BEGAN + 100.0, BEGAN + 110.0, BEGAN + 120.0, BEGAN + 150.0):
        clock.seconds = moment
        found.append(observer.observe({}, (), moment, PERIOD_SECONDS, -math.inf))
    loads = [{load.executed_per_second for load in one.loads.values()} for one in found]
    assert loads == [set(), {RATE}, {RATE}, {RATE}]
    assert [one.period_seconds for one in found[1:]] == [14.0, 26.0, 10.0]

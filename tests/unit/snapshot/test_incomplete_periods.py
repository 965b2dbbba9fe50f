"""What is remembered of a period in which not all executors of a topology were measured."""

from __future__ import annotations

import pytest

from builders import chain_topology, placed, supervisors
from storm_operator.core.model import Assignment, Executor
from storm_operator.core.snapshot import LoadPeriod
from storm_operator.core.snapshot_builder import ClusterView, build_snapshot
from window_builder import Scrapes, executor_labels

WORDS = chain_topology("words", ("spout", 1), ("count", 4))
MACHINES = supervisors(1)
WHERE = placed(WORDS, {"spout": "s1", "count": "s1"})
VIEW = ClusterView(MACHINES, (WORDS,), Assignment(WHERE))
HOST = MACHINES[0].host
COUNTERS = ("cpu_seconds_total", "executed_tuples_total", "emitted_tuples_total", "queue_length")


def scrapes() -> Scrapes:
    made = Scrapes(1000.0)
    made.add_topology(WORDS, WHERE, {"s1": HOST})
    return made


def lose(made: Scrapes, executor: Executor, *counters: str) -> None:
    for counter in counters:
        made.drop(f"storm_executor_{counter}", **executor_labels(executor, HOST, WHERE[executor].port))


def newest(made: Scrapes, least_share: float | None = None) -> LoadPeriod | None:
    shares = {} if least_share is None else {"words": least_share}
    built = build_snapshot(VIEW, made.window(), (), 1000.0, 10.0, shares)
    return built.history[-1] if built.history else None


@pytest.mark.parametrize("least_share", [None, 1.0, 0.9])
def test_of_a_topology_that_is_measured_too_little_nothing_is_remembered(least_share: float | None) -> None:
    made = scrapes()
    lose(made, WORDS.executors_of("count")[0], *COUNTERS)
    assert newest(made, least_share) is None


def test_where_less_will_do_those_that_lack_count_as_the_mean_of_the_others() -> None:
    whole, made = newest(scrapes()), scrapes()
    lose(made, WORDS.executors_of("count")[0], *COUNTERS)
    partly = newest(made, 0.8)
    assert whole is not None
    assert partly is not None
    assert partly.components.keys() == whole.components.keys()
    for key, load in whole.components.items():
        assert partly.components[key].cpu_millicores == pytest.approx(load.cpu_millicores)
        assert partly.components[key].arrived_per_second == pytest.approx(load.arrived_per_second)


@pytest.mark.parametrize(
    ("queue", "share"), [((0.0, 0.0), 0.75), ((4000.0, 9000.0), 1.0)], ids=["it idles", "it has not come up"]
)
def test_those_that_never_got_a_tuple_count_as_doing_nothing(queue: tuple[float, float], share: float) -> None:
    """Their thread is not known, and so no CPU: they are what a lower share is set for. Who has tuples to do is not."""
    whole, made = newest(scrapes()), scrapes()
    idle = WORDS.executors_of("count")[0]
    lose(made, idle, *COUNTERS)
    made.add_executor(idle, HOST, WHERE[idle].port, executed=(0.0, 0.0), emitted=(0.0, 0.0), queue=queue)
    lose(made, idle, "cpu_seconds_total")
    partly = newest(made, 0.8)
    assert whole is not None
    assert partly is not None
    key = ("words", "count")
    assert partly.components[key].cpu_millicores == pytest.approx(share * whole.components[key].cpu_millicores)
    assert newest(made) is None, "by default all must be known"


def test_a_component_of_which_nobody_was_measured_is_not_remembered() -> None:
    made = scrapes()
    lose(made, WORDS.executors_of("spout")[0], *COUNTERS)
    partly = newest(made, 0.5)
    assert partly is not None
    assert partly.components.keys() == {("words", "count")}


def test_where_nobody_is_measured_nothing_is_remembered_however_little_will_do() -> None:
    made = scrapes()
    for executor in WORDS.executors:
        lose(made, executor, *COUNTERS)
    assert newest(made, 0.0) is None

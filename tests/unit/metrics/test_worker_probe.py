"""What agents tell while a plan is applied: an agent that is silent makes failures unknown, not fewer."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import pytest

from http_server import serving
from storm_operator.adapters import worker_probe as module
from storm_operator.adapters.metrics.page import NoAnswer
from storm_operator.adapters.metrics.scrape import parse_metrics
from storm_operator.adapters.worker_probe import AgentProbe
from storm_operator.core.model import WorkerSlot
from storm_operator.core.plan_record import WorkerSeen

PAGE = """
storm_complete_latency_seconds_sum{supervisor="a",topology_id="words-1",component="lines",executor="1-1"} 0.3
storm_executor_failed_tuples_total{supervisor="a",topology_id="words-1",component="lines",executor="1-1"} 5
storm_executor_failed_tuples_total{supervisor="a",topology_id="words-1",component="split",executor="2-2"} 4
storm_executor_failed_tuples_total{supervisor="a",topology_id="other-1",component="lines",executor="1-1"} 7
storm_executor_acked_tuples_total{supervisor="a",topology_id="words-1",component="lines",executor="1-1"} 9
"""


OF_A = 'supervisor="a",topology_id="words-1"'


def idle(supervisor: str) -> str:
    """The page of an agent whose supervisor hosts nothing."""
    return f'storm_agent_build_info{{supervisor="{supervisor}",version="1.0"}} 1'


def probe(monkeypatch: pytest.MonkeyPatch, pages: Mapping[str, str | None]) -> AgentProbe:
    """When these are the agents' pages; None is one that does not answer."""

    def fetch(url: str, timeout_seconds: float) -> str:
        page = pages[url]
        if page is None:
            raise NoAnswer("did not answer")
        return page

    monkeypatch.setattr(module, "fetch_text", fetch)
    return AgentProbe(lambda: {url: url for url in pages}, lambda: {host: f"id-of-{host}" for host in pages})


def failures(monkeypatch: pytest.MonkeyPatch, pages: Mapping[str, str | None]) -> list[float] | None:
    """Of topology `words-1`, which was on no supervisors but `a` and `b`."""
    found = probe(monkeypatch, pages).failures(["words-1"], ["id-of-a", "id-of-b"])
    return None if found is None else list(found.values())


def test_failures_are_those_of_the_spouts_of_the_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tuple that a bolt fails is of a tree that its spout counts as failed, too."""
    assert failures(monkeypatch, {"a": PAGE, "b": idle("b")}) == [5.0]


def test_failures_are_unknown_while_no_spout_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    of_bolts_alone = "\n".join(line for line in PAGE.splitlines() if "lines" not in line)
    assert failures(monkeypatch, {"a": of_bolts_alone, "b": idle("b")}) is None


def test_failures_are_unknown_while_an_agent_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failures(monkeypatch, {"a": PAGE, "b": None}) is None


@pytest.mark.parametrize(
    ("pages", "known"), [({"a": idle("a"), "c": None}, True), ({"a": None, "c": idle("c")}, False), ({}, False)]
)
def test_only_agents_of_supervisors_that_the_topology_was_on_are_heard(
    monkeypatch: pytest.MonkeyPatch, pages: Mapping[str, str | None], known: bool
) -> None:
    """Of another topology's supervisor the agent may be away for long, and plans are made all the same."""
    assert (failures(monkeypatch, pages) is not None) is known
    in_flight = probe(monkeypatch, pages).tuples_in_flight(["words-1"], ["id-of-a", "id-of-b"])
    assert (in_flight is not None) is known


def test_of_a_page_no_more_is_kept_than_is_asked_for() -> None:
    """Of a large cluster the pairs of tasks that exchange tuples are most of it, and all pages are there at once."""
    pair = 'storm_traffic_tuples_total{supervisor="a",topology_id="words-1",source_task="1",target_task="2"} 9'
    kept = module._parse("a", f"{PAGE}{pair}")
    assert kept is not None
    assert {key.name for key in kept} == {module.LATENCY, module.FAILED}


@pytest.mark.parametrize("page", ["", "python_info 1"])
def test_another_program_at_the_agents_port_is_no_agent_that_sees_nothing(
    monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """As OpenTelemetry's exporters, whose usual port it is: a topology would seem to be drained at once."""
    assert failures(monkeypatch, {"a": PAGE, "b": page}) is None
    assert probe(monkeypatch, {"a": page}).tuples_in_flight(["words-1"], ["id-of-a"]) is None
    assert not probe(monkeypatch, {"a": page}).sees_any(["id-of-a"])


def test_what_is_in_flight_is_as_old_as_the_oldest_word_of_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = ('a",topology_id="words-1",port="6700', 'a",topology_id="words-1",port="6701', 'a",topology_id="other-1')
    ages = zip(labels, (0.4, 8.5, 99.0), strict=True)
    page = "\n".join(f'storm_worker_snapshot_age_seconds{{supervisor="{at}"}} {age}' for at, age in ages)
    in_flight = probe(monkeypatch, {"a": page}).tuples_in_flight(["words-1"], ["id-of-a"])
    assert in_flight is not None
    assert in_flight.age_seconds == 8.5


@pytest.mark.parametrize("age", ["NaN", "+Inf", "-1"])
def test_what_is_in_flight_is_unknown_where_an_agent_gives_an_age_that_is_none(
    monkeypatch: pytest.MonkeyPatch, age: str
) -> None:
    page = f'storm_worker_snapshot_age_seconds{{supervisor="a",topology_id="words-1",port="6700"}} {age}'
    assert probe(monkeypatch, {"a": page}).tuples_in_flight(["words-1"], ["id-of-a"]) is None


def test_ticks_of_paused_topologies_are_nothing_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    def page(words: int, ticks: int) -> str:
        executor = 'supervisor="a",topology_id="words-1",component="count",executor="2-2",port="6700"'
        task = 'supervisor="a",topology_id="words-1",task="2"'
        return f"""
storm_executor_queue_length{{{executor}}} 0
storm_executor_cpu_seconds_total{{{executor}}} {words / 100}
storm_executor_executed_tuples_total{{{executor}}} {words + ticks}
storm_task_executed_tuples_total{{{task},source_component="spout",stream="default"}} {words}
storm_task_executed_tuples_total{{{task},source_component="__system",stream="__tick"}} {ticks}
"""

    counts = [
        probe(monkeypatch, {"a": page(*executed)}).tuples_in_flight(["words-1"], ["id-of-a"])
        for executed in ((300, 10), (300, 11), (301, 12))
    ]
    seen = [(one.waiting, dict(one.executed), *one.cpu_seconds.values()) for one in counts if one is not None]
    way = ("words-1", "spout", "count")
    assert seen == [(0.0, {way: 300.0}, 3.0), (0.0, {way: 300.0}, 3.0), (0.0, {way: 301.0}, 3.01)]


@pytest.mark.parametrize(
    ("spout", "split", "count", "waiting"),
    [
        (50, 0, 0, 0.0),
        (50, 1, 1, 0.0),  # flush tuples, as the spout's are
        (50, 3, 1, 2.0),
        (0, 1, 0, 1.0),  # nothing is flushed here: a tuple that a bolt has not come to
        (0, 2, 1, 3.0),
    ],
)
def test_what_lies_in_queues_of_spouts_and_is_flushed_does_not_wait(
    monkeypatch: pytest.MonkeyPatch, spout: int, split: int, count: int, waiting: float
) -> None:
    page = f"""
storm_complete_latency_seconds_sum{{{OF_A},component="spout",executor="1-1"}} 0
storm_executor_queue_length{{{OF_A},component="spout",executor="1-1"}} {spout}
storm_executor_queue_length{{{OF_A},component="split",executor="2-2"}} {split}
storm_executor_queue_length{{{OF_A},component="count",executor="3-3"}} {count}
"""
    in_flight = probe(monkeypatch, {"a": page}).tuples_in_flight(["words-1"], ["id-of-a"])
    assert in_flight is not None
    assert in_flight.waiting == waiting


def test_who_has_executed_whose_tuples_is_added_up_over_tasks_and_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    def page(host: str, executor: str, component: str, *executed: str) -> str:
        there = f'supervisor="{host}",topology_id="words-1"'
        hosted = f'{there},component="{component}",executor="{executor}",port="6700"'
        counts = (f"storm_task_executed_tuples_total{{{there},{one}" for one in executed)
        return "\n".join((f"storm_executor_queue_length{{{hosted}}} 0", *counts, ""))

    of_split = page(
        "a",
        "2-3",
        "split",
        'task="2",source_component="spout",stream="default"} 5',
        'task="3",source_component="spout",stream="late"} 2',
    )
    of_count = page("b", "4-4", "count", 'task="4",source_component="split",stream="default"} 9')
    found = probe(monkeypatch, {"a": of_split, "b": of_count}).tuples_in_flight(["words-1"], ["id-of-a", "id-of-b"])
    assert found is not None
    assert dict(found.executed) == {("words-1", "spout", "split"): 7.0, ("words-1", "split", "count"): 9.0}
    assert found.queues_of == {("words-1", 2, 3), ("words-1", 4, 4)}


def test_workers_are_looked_for_on_the_supervisors_of_the_plan_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked three times a second while a plan comes into force, and of 500 agents each page is large."""
    asked, parsed_in = [], set()

    def fetch(url: str, timeout_seconds: float) -> str:
        asked.append(url)
        info = f'supervisor="{url}",topology_id="words-1",port="6700"'
        executor = f'{info},component="count",executor="2-3"'
        return f"""
storm_worker_info{{{info},pid="4711"}} 1
storm_executor_queue_length{{{executor}}} 0
storm_executor_cpu_seconds_total{{{executor}}} 1.5
"""

    def parse(page: str) -> module.Readings:
        parsed_in.add(threading.current_thread())
        return parse_metrics(page)

    found = probe(monkeypatch, dict.fromkeys("abc"))
    monkeypatch.setattr(module, "fetch_text", fetch)
    monkeypatch.setattr(module, "parse_metrics", parse)
    there = frozenset({("words-1", 2, 3)})
    assert found.workers(["id-of-b"]) == {WorkerSlot("id-of-b", 6700): WorkerSeen(4711, there, there)}
    assert asked == ["b"]
    assert parsed_in == {threading.current_thread()}
    assert len(found.workers(["id-of-a", "id-of-c"])) == 2
    assert sorted(asked) == ["a", "b", "c"]


def test_labels_that_name_what_cannot_be_are_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "9" * 5_000
    hosted = "storm_executor_queue_length{{" + OF_A + ',component="x",executor="{}",port="{}"}} 0\n'
    worker = "storm_worker_info{{" + OF_A + ',pid="{}",port="{}"}} 1\n'
    page = "".join(
        (
            *(hosted.format(*odd) for odd in (("0-2147483647", 6700), (long, 6700), ("3-3", long), ("3-3", ""))),
            *(worker.format(*odd) for odd in ((long, 6700), ("", 6700), (5, long), (5, -1))),
            hosted.format("2-2", 6701),
            worker.format(7, 6701),
            f'storm_task_executed_tuples_total{{{OF_A},task="2",source_component="spout",stream="s"}} 5\n',
            f'storm_task_executed_tuples_total{{{OF_A},task="{long}",source_component="spout",stream="s"}} 9\n',
        )
    )
    agents = probe(monkeypatch, {"a": page})
    assert agents.workers(["id-of-a"]) == {
        WorkerSlot("id-of-a", 6701): WorkerSeen(7, frozenset({("words-1", 2, 2)}), frozenset()),
    }
    found = agents.tuples_in_flight(["words-1"], ["id-of-a"])
    assert found is not None
    assert found.executed == {("words-1", "spout", "x"): 5.0, ("words-1", "spout", ""): 9.0}


@pytest.mark.parametrize(
    "page",
    [
        f"storm_executor_failed_tuples_total{{{OF_A}}} NaN\n",
        f"storm_executor_failed_tuples_total{{{OF_A}}} -1\n",
        f"storm_executor_queue_length{{{OF_A}}} 1e300\n",
        'storm_executor_failed_tuples_total{supervisor="b",topology_id="words-1"} 5\n',
        "<html>",
    ],
)
def test_an_agent_that_cannot_be_believed_is_one_that_is_silent(page: str) -> None:
    with serving(lambda path: (200, (PAGE if path == "/b" else page).encode())) as base:
        targets = {"a": f"{base}/a", "b": f"{base}/b"}
        agents = AgentProbe(lambda: targets, lambda: {host: f"id-of-{host}" for host in targets})
        assert agents.failures(["words-1"], ["id-of-a"]) is None
        assert agents.tuples_in_flight(["words-1"], ["id-of-a"]) is None
        assert not agents.sees_any(["id-of-a"])

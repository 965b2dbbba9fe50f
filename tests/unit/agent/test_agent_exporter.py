from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent_snapshots import executor_document, snapshot_document
from storm_operator.agent.exporter import AgentExporter
from storm_operator.agent.machine import Machine
from storm_operator.agent.peer_statistics import PeerStatistics
from storm_operator.agent.peers import PeerReport
from storm_operator.agent.worker_snapshot import WorkerSnapshot, parse_worker_snapshot
from storm_operator.core.vivaldi import Coordinate

TOPOLOGY = "wordcount-1-1767268800"
EXECUTOR_2 = {"supervisor": "sup-1", "topology_id": TOPOLOGY, "component": "split", "executor": "2-2", "port": "6700"}


class Shown:
    """Workers as the test says."""

    def __init__(self) -> None:
        self.now: tuple[WorkerSnapshot, ...] = ()
        self.ended: tuple[WorkerSnapshot, ...] = ()

    def show(self, *documents: dict[str, Any]) -> None:
        self.now = tuple(parse_worker_snapshot(json.dumps(document).encode()) for document in documents)

    def end(self, *documents: dict[str, Any]) -> None:
        self.ended = tuple(parse_worker_snapshot(json.dumps(document).encode()) for document in documents)

    def workers(self) -> tuple[WorkerSnapshot, ...]:
        return self.now

    def take_last_words(self) -> tuple[WorkerSnapshot, ...]:
        ended, self.ended = self.ended, ()
        return ended


class NotEnforcing:
    enforcer = None
    mode = "observe-only"
    reason = "told not to"


class Scraper:
    """Of an agent that began at 0 and is scraped at 5 seconds, unless told otherwise."""

    def __init__(
        self,
        shown: Shown,
        peers: PeerReport | None = None,
        pair_limit: int = 5_000,
        began_at_seconds: float = 0.0,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = lambda: 5.0,
    ) -> None:
        report = peers or PeerReport({}, None)
        self._exporter = AgentExporter(
            "sup-1",
            shown,
            Machine(1500, began_at_seconds),
            NotEnforcing(),
            lambda: report,
            clock,
            "1.2.3",
            began_at_seconds,
            pair_limit,
            monotonic,
        )

    def text(self) -> str:
        return self._exporter.text().decode()

    def scrape(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        text = self.text()
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
        return found


def test_counts_go_on_over_a_restart_with_the_last_words_of_the_old_worker() -> None:
    shown = Shown()
    scraper = Scraper(shown)
    shown.show(snapshot_document(pid=1, executors=[executor_document(2, executed=10)]))
    assert scraper.scrape()["storm_executor_executed_tuples_total"] == [(EXECUTOR_2, 10.0)]
    shown.end(snapshot_document(pid=1, executors=[executor_document(2, executed=14)]))
    shown.show(snapshot_document(pid=2, executors=[executor_document(2, executed=3)]))
    assert scraper.scrape()["storm_executor_executed_tuples_total"] == [(EXECUTOR_2, 17.0)]


def test_a_worker_that_is_read_beside_its_successor_is_counted_once() -> None:
    shown = Shown()
    scraper = Scraper(shown)

    def worker(port: int, tuples: int) -> dict[str, Any]:
        return snapshot_document(
            pid=port, port=port, started_at_ms=port, traffic=[OLD_WORKER_TRAFFIC | {"tuples": tuples}]
        )

    totals = []
    for leaving, coming in ((1000, None), (1010, 5), (1012, 8)):
        shown.show(worker(6700, leaving), *([worker(6701, coming)] if coming else []))
        totals.append(scraper.scrape()["storm_traffic_tuples_total"][-1][1])
    shown.end(worker(6700, 1013))
    shown.show(worker(6701, 20))
    totals.append(scraper.scrape()["storm_traffic_tuples_total"][-1][1])
    assert totals == [1000, 1015, 1020, 1033]


def test_a_task_in_two_workers_for_a_moment_has_one_series_of_each_kind() -> None:
    shown = Shown()
    margins = {"stream": "default", "tuples": 3}

    def worker(port: int) -> dict[str, Any]:
        return snapshot_document(
            pid=port,
            port=port,
            executors=[executor_document(2, "spout")],
            executed_from=[{"task": 2, "source_component": "spout", **margins}],
            transferred=[{"task": 2, **margins}],
            complete_latency=[{"task": 2, "sum_ms": 5_000, "count": 3, "buckets": [[1, 1], [None, 3]]}],
        )

    shown.show(worker(6700), worker(6701))
    found = Scraper(shown).scrape()
    assert [value for _, value in found["storm_task_executed_tuples_total"]] == [6.0]
    assert [value for _, value in found["storm_task_transferred_tuples_total"]] == [6.0]
    assert [value for _, value in found["storm_complete_latency_seconds_bucket"]] == [2.0, 6.0]
    for rows in found.values():
        labels = [tuple(sorted(labels.items())) for labels, _ in rows]
        assert len(set(labels)) == len(labels)


@pytest.mark.slow
def test_components_that_are_called_anew_each_time_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storm_operator.agent.exporter.MOST_REMEMBERED", 100)
    shown = Shown()
    scraper = Scraper(shown, clock=itertools.count(5.0).__next__)
    there = snapshot_document(port=6700, executors=[executor_document(2, executed=7)])
    for number in range(200):
        hostile = snapshot_document(port=6701, executors=[executor_document(2, f"bolt-{number}", executed=7)])
        shown.show(there, hostile)
        scraper.scrape()
    first_again = snapshot_document(pid=5, port=6701, executors=[executor_document(2, "bolt-0", executed=7)])
    shown.show(there | {"pid": 5}, first_again)
    executed = {labels["component"]: n for labels, n in scraper.scrape()["storm_executor_executed_tuples_total"]}
    assert executed == {"split": 14.0, "bolt-0": 7.0}, "the worker that is there is remembered, the names are not"


OLD_WORKER_TRAFFIC = {"source_task": 2, "stream": "default", "target_task": 5}


def old_worker(tuples: int, **fields: Any) -> dict[str, Any]:
    """A worker that started before the agent did, with everything that it counts at `tuples`."""
    return (
        snapshot_document(
            pid=os.getpid(),
            started_at_ms=1_000,
            executors=[executor_document(2, executed=tuples, tid=threading.get_native_id())],
            executed_from=[{"task": 2, "source_component": "spout", "stream": "default", "tuples": tuples}],
            transferred=[{"task": 2, "stream": "default", "tuples": tuples}],
            traffic=[OLD_WORKER_TRAFFIC | {"tuples": tuples}],
            complete_latency=[{"task": 2, "sum_ms": tuples * 1000, "count": tuples, "buckets": [[None, tuples]]}],
        )
        | fields
    )


def counters(found: dict[str, list[tuple[dict[str, str], float]]]) -> dict[str, float]:
    """The one value of each tuple counter and histogram part."""
    parts = ("_tuples_total", "_bucket", "_count", "_sum")
    return {name: rows[0][1] for name, rows in found.items() if name.endswith(parts) and "folded" not in name}


@pytest.mark.parametrize("pair_limit", [0, 5_000])
def test_a_restarted_agent_counts_older_workers_from_zero(pair_limit: int) -> None:
    shown = Shown()
    scraper = Scraper(shown, pair_limit=pair_limit, began_at_seconds=4.0)
    shown.show(old_worker(3600))
    first = scraper.scrape()
    assert set(counters(first).values()) == {0.0}
    for series in ("storm_executor_cpu_seconds_total", "storm_worker_cpu_seconds_total"):
        assert first[series][0][1] == 0.0
    shown.show(old_worker(3660))
    grown = counters(scraper.scrape())
    assert grown["storm_executor_executed_tuples_total"] == 60.0
    assert grown["storm_task_executed_tuples_total"] == 60.0
    assert grown["storm_task_transferred_tuples_total"] == 60.0
    assert grown["storm_traffic_tuples_total"] == 60.0
    assert grown["storm_complete_latency_seconds_bucket"] == 60.0
    assert grown["storm_complete_latency_seconds_sum"] == 60.0


def test_what_appears_later_in_an_older_worker_counts_whole() -> None:
    shown = Shown()
    scraper = Scraper(shown, began_at_seconds=4.0)
    shown.show(old_worker(3600, traffic=[]))
    scraper.scrape()
    shown.show(old_worker(3660))
    assert counters(scraper.scrape())["storm_traffic_tuples_total"] == 3660.0


def test_a_restarted_agent_counts_workers_that_start_later_whole() -> None:
    shown = Shown()
    scraper = Scraper(shown, began_at_seconds=4.0)
    shown.end(old_worker(3600))
    shown.show(old_worker(7, started_at_ms=4_500))
    assert counters(scraper.scrape())["storm_executor_executed_tuples_total"] == 7.0


def test_an_agent_tells_when_it_began() -> None:
    assert Scraper(Shown(), began_at_seconds=4.0).scrape()["storm_agent_start_time_seconds"] == [
        ({"supervisor": "sup-1"}, 4.0)
    ]


def test_a_page_tells_how_long_the_agent_had_run_when_it_was_made() -> None:
    ticks = iter((700.0, 703.5, 714.0))
    scraper = Scraper(Shown(), monotonic=lambda: next(ticks))
    told = [scraper.scrape()["storm_agent_uptime_seconds"][0][1] for _ in range(2)]
    assert told == [3.5, 14.0]


def test_an_executor_that_left_is_gone_and_goes_on_when_it_comes_back() -> None:
    shown = Shown()
    scraper = Scraper(shown)
    shown.show(snapshot_document(pid=1, executors=[executor_document(2, executed=10)]))
    scraper.scrape()
    shown.show()
    assert "storm_executor_executed_tuples_total" not in scraper.scrape()
    shown.show(snapshot_document(pid=2, executors=[executor_document(2, executed=1)]))
    assert scraper.scrape()["storm_executor_executed_tuples_total"] == [(EXECUTOR_2, 11.0)]


def test_unknown_is_absent_never_zero() -> None:
    shown = Shown()
    shown.show(snapshot_document(pid=2**22 + 1, executors=[executor_document(2, executed=None, tid=None)]))
    found = Scraper(shown).scrape()
    for name in (
        "storm_executor_executed_tuples_total",
        "storm_executor_cpu_seconds_total",
        "storm_worker_memory_bytes",
    ):
        assert name not in found
    assert "storm_supervisor_round_trip_seconds" not in found
    assert "storm_supervisor_coordinate_seconds" not in found


def test_cpu_is_of_the_executor_s_own_thread() -> None:
    tids: list[int] = []
    ready, done = threading.Event(), threading.Event()

    def idle() -> None:
        tids.append(threading.get_native_id())
        ready.set()
        done.wait()

    thread = threading.Thread(target=idle)
    thread.start()
    ready.wait()
    sum(range(3_000_000))  # on this thread, not on the idle one
    try:
        shown = Shown()
        executors = [executor_document(2, tid=threading.get_native_id()), executor_document(3, tid=tids[0])]
        shown.show(snapshot_document(pid=os.getpid(), executors=executors))
        found = Scraper(shown).scrape()
    finally:
        done.set()
        thread.join()
    used = {labels["executor"]: value for labels, value in found["storm_executor_cpu_seconds_total"]}
    assert used["2-2"] > 10 * used["3-3"] > 0
    assert found["storm_worker_cpu_seconds_total"][0][1] > 0
    assert found["storm_worker_memory_bytes"][0][1] > 1e6
    assert found["storm_supervisor_memory_bytes"][0][1] >= found["storm_worker_memory_bytes"][0][1]


def test_traffic_latency_and_worker() -> None:
    shown = Shown()
    shown.show(
        snapshot_document(
            written_at_ms=2_000,
            executors=[executor_document(1, "spout")],
            traffic=[{"source_task": 1, "stream": "default", "target_task": 5, "tuples": 2.5}],
            complete_latency=[{"task": 1, "sum_ms": 1500, "count": 3, "buckets": [[0.5, 1], [None, 3]]}],
        )
    )
    found = Scraper(shown).scrape()
    traffic = {"source_task": "1", "stream": "default", "target_task": "5"}
    assert found["storm_traffic_tuples_total"] == [({"supervisor": "sup-1", "topology_id": TOPOLOGY} | traffic, 2.5)]
    assert {labels["le"]: value for labels, value in found["storm_complete_latency_seconds_bucket"]} == {
        "0.0005": 1.0,
        "+Inf": 3.0,
    }
    assert found["storm_complete_latency_seconds_sum"][0][1] == 1.5
    assert found["storm_complete_latency_seconds_count"][0][1] == 3.0
    assert found["storm_worker_snapshot_age_seconds"][0][1] == 3.0
    assert found["storm_worker_info"][0][0]["pid"] == "4711"


def test_supervisor_peers_and_enforcement() -> None:
    statistics = {"sup-2": PeerStatistics().after_answer(0.004).after_silence()}
    found = Scraper(Shown(), PeerReport(statistics, Coordinate(1, 2, 3, 0.25))).scrape()
    assert found["storm_supervisor_cpu_capacity_cores"] == [({"supervisor": "sup-1"}, 1.5)]
    assert found["storm_supervisor_round_trip_seconds"] == [({"supervisor": "sup-1", "peer": "sup-2"}, 0.004)]
    assert found["storm_supervisor_availability_ratio"][0][1] == 0.5
    coordinate = {labels["dimension"]: value for labels, value in found["storm_supervisor_coordinate_seconds"]}
    assert coordinate == {"x": 0.001, "y": 0.002, "height": 0.003}
    assert found["storm_supervisor_coordinate_error_ratio"][0][1] == 0.25
    assert found["storm_agent_enforcement"] == [
        ({"supervisor": "sup-1", "mode": "observe-only", "reason": "told not to"}, 1.0)
    ]


@pytest.mark.parametrize("twice", [False, True])
def test_two_workers_do_not_mix(twice: bool) -> None:
    shown = Shown()
    scraper = Scraper(shown)
    shown.show(
        snapshot_document(port=6700, pid=1, executors=[executor_document(2, executed=10)]),
        snapshot_document(port=6701, pid=2, executors=[executor_document(3, executed=20)]),
    )
    if twice:
        scraper.scrape()
    found = scraper.scrape()["storm_executor_executed_tuples_total"]
    assert {labels["port"]: value for labels, value in found} == {"6700": 10.0, "6701": 20.0}

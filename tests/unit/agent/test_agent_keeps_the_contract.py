"""The agent exports what the contract declares: all of it, nothing else, with those labels and types."""

from __future__ import annotations

import json
import os
import threading

from prometheus_client.parser import text_string_to_metric_families

from agent_snapshots import executor_document, snapshot_document
from storm_operator.agent.enforcement import Place
from storm_operator.agent.exporter import AgentExporter
from storm_operator.agent.families import SeriesNames, series_text
from storm_operator.agent.limits import ExecutorKey
from storm_operator.agent.machine import MachineUse
from storm_operator.agent.peer_statistics import PeerStatistics
from storm_operator.agent.peers import PeerReport
from storm_operator.agent.worker_snapshot import WorkerSnapshot, parse_worker_snapshot
from storm_operator.core.vivaldi import Coordinate
from storm_operator.metric_contract import AGENT_METRICS

TOPOLOGY = "wordcount-1-1767268800"


class OneWorker:
    def __init__(self, pid: int, tid: int, pairs: int = 3) -> None:
        traffic = [{"source_task": 2, "stream": "s", "target_task": 5 + n, "tuples": 1.0 + n} for n in range(pairs)]
        document = snapshot_document(
            pid=pid,
            executors=[executor_document(2, tid=tid)],
            executed_from=[{"task": 2, "source_component": "spout", "stream": "s", "tuples": 1}],
            transferred=[{"task": 2, "stream": "s", "tuples": 6}],
            traffic=traffic,
            complete_latency=[{"task": 2, "sum_ms": 15, "count": 3, "buckets": [[0.5, 1], [None, 3]]}],
        )
        self._workers = (parse_worker_snapshot(json.dumps(document).encode()),)

    def workers(self) -> tuple[WorkerSnapshot, ...]:
        return self._workers

    def take_last_words(self) -> tuple[WorkerSnapshot, ...]:
        return ()


class Enforcing:
    mode = "cgroup-v2"
    reason = ""

    @property
    def enforcer(self) -> Enforcing:
        return self

    def limits_in_force(self) -> dict[Place, float]:
        return {Place(ExecutorKey(TOPOLOGY, 2, 2), 6700): 300.0}

    def throttled_seconds(self, place: Place) -> tuple[int, float]:
        return 1, 0.5


class MachineInACgroup:
    def use(self, pids: tuple[int, ...]) -> MachineUse:
        return MachineUse(1.0, 0.25, 2.0, 1.5, 1e6)


def exporter(pair_limit: int = 2) -> AgentExporter:
    peers = PeerReport({"sup-2": PeerStatistics().after_answer(0.004)}, Coordinate(1, 2, 3, 0.25))
    workers = OneWorker(os.getpid(), threading.get_native_id())
    return AgentExporter(
        "sup-1",
        workers,
        MachineInACgroup(),  # type: ignore[arg-type]
        Enforcing(),  # type: ignore[arg-type]
        lambda: peers,
        lambda: 5.0,
        "1.2.3",
        0.0,
        pair_limit,
    )


def test_every_metric_of_the_contract_and_no_other() -> None:
    families = {family.name: family for family in text_string_to_metric_families(exporter().text().decode())}
    assert set(families) == {metric.name.removesuffix("_total") for metric in AGENT_METRICS}
    for metric in AGENT_METRICS:
        family = families[metric.name.removesuffix("_total")]
        assert family.type == metric.kind.value
        assert family.documentation == metric.meaning
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels), sample


def test_pairs_are_bounded() -> None:
    (family,) = (
        family
        for family in text_string_to_metric_families(exporter(2).text().decode())
        if "traffic_tuples" in family.name
    )
    assert {sample.labels["target_task"]: sample.value for sample in family.samples} == {
        "6": 2.0,
        "7": 3.0,
        "other": 1.0,
    }


def test_the_second_scrape_is_like_the_first() -> None:
    one = exporter()
    first = [line.partition(" ")[0] for line in one.text().decode().splitlines()]
    assert [line.partition(" ")[0] for line in one.text().decode().splitlines()] == first


def test_odd_label_values_come_back_as_they_were() -> None:
    odd = 'a "quoted" back\\slash\nand a line'
    ((family,),) = ([*text_string_to_metric_families(series_text("m", ("label",), (odd,)) + "1.0\n")],)
    assert family.samples[0].labels == {"label": odd}


def test_texts_of_series_that_left_are_forgotten() -> None:
    names = SeriesNames("sup-1")
    for port in range(6700, 6710):
        assert f'port="{port}"' in names.of("storm_worker_memory_bytes", (TOPOLOGY, str(port)))
    names.forget_beyond(5)
    assert len(names.known("storm_worker_memory_bytes")) == 10
    names.forget_beyond(1)
    assert not names.known("storm_worker_memory_bytes")

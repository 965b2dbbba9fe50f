"""What `tune` replays, read out of histories that can be checked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from builders import PERIOD_SECONDS, chain_topology, even_traffic, placed, snapshot, supervisors
from learning_scene import CLUSTER, lake_of_passes
from storm_operator.core.history_rows import Pass
from storm_operator.core.history_tables import EDGES, EXECUTORS, PAIRS, PERIODS, SUPERVISORS, TOPOLOGIES
from storm_operator.core.model import Executor, ExecutorLoad, Topology
from storm_pipeline.tuning.reading import read_recording
from storm_pipeline.tuning.recording import Recording

BEGAN = 1_800_000_000.0
RATE = 100.0
READ = (PERIODS, SUPERVISORS, TOPOLOGIES, EDGES, EXECUTORS, PAIRS)
MACHINES = supervisors(1)


def chain(topology_id: str = "w-1-1") -> Topology:
    return chain_topology(topology_id, ("lines", 1), ("split", 2), ("count", 1))


def seen(number: int, topologies: Sequence[Topology], unknown: Sequence[Executor] = ()) -> Pass:
    """The pass at the end of period `number` (from 1): each component of a topology executes and emits `RATE`."""
    loads, rates, places = {}, {}, {}
    for topology in topologies:
        places |= placed(topology, {component.name: "s1" for component in topology.components})
        rates |= even_traffic(topology, RATE)
        for executor in topology.executors:
            share = 1.0 / len(topology.executors_of(executor.component))
            loads[executor] = ExecutorLoad(10.0, RATE * share, RATE * share, RATE * share, 0.0, 0.0)
    known = {executor: load for executor, load in loads.items() if executor not in unknown}
    flows = {pair: rate for pair, rate in rates.items() if pair[0] not in unknown}
    picture = snapshot(topologies, MACHINES, places, rates=flows, loads=known, missing=tuple(unknown))
    return Pass(BEGAN + PERIOD_SECONDS * number, number, picture)


def read(spark: SparkSession, folder: Path, passes: Sequence[Pass]) -> Recording:
    lake = lake_of_passes(spark, folder, passes, READ)
    return read_recording(spark, lake, CLUSTER, PERIOD_SECONDS * len(passes) / 3600.0)


def test_an_edge_carries_as_much_as_where_its_source_was_measured_whole(spark: SparkSession, tmp_path: Path) -> None:
    words = chain()
    one_of_split = words.executors_of("split")[:1]
    passes = [seen(number, (words,), one_of_split if number % 2 else ()) for number in range(1, 11)]
    (topology,) = read(spark, tmp_path, passes).topologies
    assert {edge.source: edge.tuples_per_tuple for edge in topology.edges} == pytest.approx(
        {"lines": 1.0, "split": 1.0}
    )

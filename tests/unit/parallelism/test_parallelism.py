"""How many executors a component should have: fixed, by load, never beyond its tasks."""

from __future__ import annotations

import pytest

from builders import chain_topology
from storm_operator.core.model import Demand, Topology
from storm_operator.core.parallelism import wanted_parallelism
from storm_operator.core.topology_spec import ComponentParallelism, ParallelismMode, ParallelismSpec

CEILING = 1000.0


def topology(executors: int, tasks_per_executor: int = 2) -> Topology:
    return chain_topology("words", ("spout", 1), ("count", executors), tasks_per_executor=tasks_per_executor)


def demand(of: Topology, each_millicores: float | None) -> Demand:
    raw = {} if each_millicores is None else dict.fromkeys(of.executors, each_millicores)
    return Demand(raw, raw)


def auto(**bounds: int) -> ParallelismSpec:
    return ParallelismSpec(ParallelismMode.AUTO, {"count": ComponentParallelism(**bounds)})


def fixed(executors: int) -> ParallelismSpec:
    return ParallelismSpec(ParallelismMode.FIXED, {"count": ComponentParallelism(executors=executors)})


def test_fixed_number_that_is_there_already_changes_nothing() -> None:
    words = topology(2)
    assert wanted_parallelism(words, fixed(2), demand(words, 900.0), CEILING).executors == {}


def test_fixed_number_is_what_it_becomes_up_to_its_tasks() -> None:
    words = topology(2)
    assert wanted_parallelism(words, fixed(3), demand(words, 1.0), CEILING).executors == {"count": 3}
    resize = wanted_parallelism(words, fixed(9), demand(words, 1.0), CEILING)
    assert resize.executors == {"count": 4}
    assert "4 tasks" in resize.notes[0]


def test_component_that_is_none_is_noted() -> None:
    words = topology(2)
    spec = ParallelismSpec(components={"cuont": ComponentParallelism(executors=3)})
    resize = wanted_parallelism(words, spec, demand(words, 1.0), CEILING)
    assert resize.executors == {}
    assert "'cuont'" in resize.notes[0]


@pytest.mark.parametrize(
    ("executors", "each_millicores", "wanted"),
    [
        (2, 950.0, {"count": 4}),  # 1900 of demand at 60% of 1000 each
        (2, 700.0, {}),  # busy, not full
        (4, 100.0, {"count": 1}),  # one would do
        (2, 350.0, {}),  # two are still better than one
    ],
)
def test_auto_follows_the_load(executors: int, each_millicores: float, wanted: dict[str, int]) -> None:
    words = topology(executors)
    assert wanted_parallelism(words, auto(minimum=1), demand(words, each_millicores), CEILING).executors == wanted


def test_auto_keeps_to_its_bounds_and_does_nothing_on_unknown_demand() -> None:
    words = topology(4)
    assert wanted_parallelism(words, auto(minimum=3), demand(words, 10.0), CEILING).executors == {"count": 3}
    assert wanted_parallelism(words, auto(maximum=2), demand(words, 990.0), CEILING).executors == {"count": 2}
    assert wanted_parallelism(words, auto(minimum=1), demand(words, None), CEILING).executors == {}

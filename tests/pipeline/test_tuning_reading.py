"""What `tune` replays, read out of histories that can be checked by hand."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from builders import PERIOD_SECONDS, chain_topology, even_traffic, placed, snapshot, supervisors
from history_scene import small_scenario, specs_of
from learning_scene import CLUSTER, lake_of_passes, recorded_rows, write_passes
from storm_operator.core.history_rows import Pass
from storm_operator.core.history_tables import EDGES, EXECUTORS, PAIRS, PERIODS, SUPERVISORS, TOPOLOGIES
from storm_operator.core.model import Executor, ExecutorLoad, Supervisor, Topology, WorkerSlot
from storm_operator.core.plan_record import PlanRecord
from storm_operator.core.view_from_metrics import UNKNOWN_GROUPING
from storm_operator.loop_ports import PassReport
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_pipeline.lake import Lake
from storm_pipeline.tuning.reading import read_recording, recording_of
from storm_pipeline.tuning.recording import COSTS, InvalidRecording, RecordedTopology, Recording

BEGAN = 1_800_000_000.0
RATE = 100.0
READ = (PERIODS, SUPERVISORS, TOPOLOGIES, EDGES, EXECUTORS, PAIRS)
MACHINES = supervisors(1)


def chain(topology_id: str = "w-1-1") -> Topology:
    return chain_topology(topology_id, ("lines", 1), ("split", 2), ("count", 1))


def seen(
    number: int,
    topologies: Sequence[Topology],
    unknown: Sequence[Executor] = (),
    per_second: float = RATE,
    machines: Sequence[Supervisor] = MACHINES,
) -> Pass:
    """The pass at the end of period `number` (from 1): each component of a topology executes and emits `per_second`."""
    loads: dict[Executor, ExecutorLoad] = {}
    rates: dict[tuple[Executor, Executor], float] = {}
    places: dict[Executor, WorkerSlot] = {}
    for topology in topologies:
        places |= placed(topology, {component.name: machines[0].id for component in topology.components})
        rates |= even_traffic(topology, per_second)
        for executor in topology.executors:
            share = 1.0 / len(topology.executors_of(executor.component))
            own = per_second * share
            loads[executor] = ExecutorLoad(COSTS.idle_executor_millicores + 10.0, own, own, own, 0.0, 0.0)
    known = {executor: load for executor, load in loads.items() if executor not in unknown}
    flows = {pair: rate for pair, rate in rates.items() if pair[0] not in unknown}
    named = [replace(topology, name=topology.id.split("-")[0]) for topology in topologies]
    picture = snapshot(named, machines, places, rates=flows, loads=known, missing=tuple(unknown))
    return Pass(BEGAN + PERIOD_SECONDS * number, number, picture)


def read(spark: SparkSession, folder: Path, passes: Sequence[Pass]) -> Recording:
    """Of all passes, from the recorder's files: to make tables of them first takes several times as long."""
    write_passes(folder, passes)
    tables = {table.name: table for table in READ}

    def within(table: str) -> DataFrame:
        return recorded_rows(spark, Lake(str(folder)), tables[table])

    return recording_of(within, CLUSTER, passes[0].at_seconds - PERIOD_SECONDS, passes[-1].at_seconds)


def test_an_edge_carries_as_much_as_where_its_source_was_measured_whole(spark: SparkSession, tmp_path: Path) -> None:
    words = chain()
    one_of_split = words.executors_of("split")[:1]
    passes = [seen(number, (words,), one_of_split if number % 2 else ()) for number in range(1, 11)]
    (topology,) = read(spark, tmp_path, passes).topologies
    assert {edge.source: edge.tuples_per_tuple for edge in topology.edges} == pytest.approx(
        {"lines": 1.0, "split": 1.0}
    )


def test_periods_filled_in_without_groupings_make_no_second_edge(spark: SparkSession, tmp_path: Path) -> None:
    words = chain_topology("w-1-1", ("lines", 1), ("split", 2), ("count", 1), stateful=("split",))
    edges = tuple(replace(edge, grouping=UNKNOWN_GROUPING) for edge in words.edges)
    filled_in = replace(words, edges=edges)
    passes = [seen(number, (filled_in if number % 2 else words,)) for number in range(1, 11)]
    (topology,) = read(spark, tmp_path, passes).topologies
    found = {edge.source: (edge.grouping, edge.tuples_per_tuple) for edge in topology.edges}
    assert (found, len(topology.edges)) == ({"lines": ("fields", 1.0), "split": ("shuffle", 1.0)}, 2)


def load_of(recording: Recording, at_seconds: float) -> float:
    """Tuples per second that the spouts of all topologies offer then."""
    shapes = [one.load for topology in recording.model().topologies for one in topology.components]
    return sum(shape.rate_at(at_seconds) for shape in shapes if shape is not None)


def test_a_topology_that_was_submitted_anew_is_one_with_the_load_of_both(spark: SparkSession, tmp_path: Path) -> None:
    before, after = chain("w-1-1"), chain("w-2-2")
    lives = [before] * 5 + [None] * 2 + [after] * 5
    recording = read(spark, tmp_path, [seen(n, (one,) if one else ()) for n, one in enumerate(lives, start=1)])
    (topology,) = recording.topologies
    assert (topology.id, topology.name) == ("w-2-2", "w")
    assert [load_of(recording, at) for at in (5.0, 50.0, 65.0, 80.0, 115.0)] == [RATE, RATE, 0.0, RATE, RATE]


def test_a_topology_that_was_killed_offers_nothing_afterwards(spark: SparkSession, tmp_path: Path) -> None:
    killed, others = chain("old-1-1"), chain("w-1-1")
    passes = [seen(n, (killed, others) if 3 <= n <= 6 else (others,)) for n in range(1, 11)]
    recording = read(spark, tmp_path, passes)
    assert [topology.name for topology in recording.topologies] == ["old", "w"]
    offered = [load_of(recording, at) for at in (10.0, 20.0, 30.0, 60.0, 70.0, 100.0)]
    assert offered == [RATE, RATE, 2 * RATE, 2 * RATE, RATE, RATE]


def test_a_life_that_nobody_measured_stands_for_none_and_is_no_absence(spark: SparkSession, tmp_path: Path) -> None:
    before, unknown = chain("w-1-1"), chain("w-2-2")
    passes = [seen(n, (before,)) for n in range(1, 5)] + [seen(n, (unknown,), unknown.executors) for n in range(5, 9)]
    recording = read(spark, tmp_path, passes)
    (topology,) = recording.topologies
    assert topology.id == "w-1-1"
    assert load_of(recording, 75.0) == RATE


AT_WORK = {"lines": 10.0 / RATE, "split": 20.0 / RATE, "count": 10.0 / RATE}


def costs_of(topology: RecordedTopology) -> Mapping[str, float]:
    return {component.name: component.cpu_ms for component in topology.components}


def sent_on(topology: RecordedTopology) -> Mapping[str, float]:
    return {edge.source: edge.tuples_per_tuple for edge in topology.edges}


@pytest.mark.parametrize("is_measured", [False, True], ids=["unknown", "at rest"])
def test_what_a_life_does_not_tell_of_a_bolt_is_as_in_an_earlier_one(
    is_measured: bool, spark: SparkSession, tmp_path: Path
) -> None:
    before, after = chain("w-1-1"), chain("w-2-2")
    unknown = () if is_measured else after.executors_of("split")[:1]
    passes = [seen(n, (before,)) for n in range(1, 5)]
    passes += [seen(n, (after,), unknown, 0.0 if is_measured else RATE) for n in range(5, 9)]
    (topology,) = read(spark, tmp_path, passes).topologies
    assert topology.id == "w-2-2"
    assert costs_of(topology) == pytest.approx(AT_WORK)
    assert sent_on(topology) == pytest.approx({"lines": 1.0, "split": 1.0})


def test_a_bolt_of_which_nothing_is_known_is_not_taken_for_one_that_costs_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    words, others = chain(), chain("old-1-1")
    passes = [seen(n, (words, others), words.executors_of("split")[:1]) for n in range(1, 9)]
    with pytest.raises(InvalidRecording, match=r"^topology w: in no period of that time were all executors of split"):
        read(spark, tmp_path, passes)


def test_a_bolt_that_is_known_to_have_rested_costs_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (topology,) = read(spark, tmp_path, [seen(n, (chain(),), per_second=0.0) for n in range(1, 5)]).topologies
    assert (set(costs_of(topology).values()), topology.edges) == ({0.0}, ())


NEVER_BUSY = ExecutorLoad(None, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_an_executor_that_never_got_a_tuple_hides_nothing_of_its_component(spark: SparkSession, tmp_path: Path) -> None:
    words = chain()
    idle = words.executors_of("split")[0]
    passes = [with_loads(seen(n, (words,)), {idle: NEVER_BUSY}) for n in range(1, 9)]
    (topology,) = read(spark, tmp_path, passes).topologies
    assert costs_of(topology) == pytest.approx(AT_WORK)
    assert [component.executors for component in topology.components if component.name == "split"] == [2]


def test_a_bolt_that_never_got_a_tuple_rested(spark: SparkSession, tmp_path: Path) -> None:
    words = chain()
    idle = dict.fromkeys(words.executors_of("count"), NEVER_BUSY)
    (topology,) = read(spark, tmp_path, [with_loads(seen(n, (words,)), idle) for n in range(1, 9)]).topologies
    assert costs_of(topology)["count"] == 0.0


def with_loads(made: Pass, loads: Mapping[Executor, ExecutorLoad]) -> Pass:
    assert made.snapshot is not None
    return replace(made, snapshot=replace(made.snapshot, loads={**made.snapshot.loads, **loads}))


def test_a_tuple_costs_what_it_costs_at_work_though_most_periods_are_idle(spark: SparkSession, tmp_path: Path) -> None:
    passes = [seen(n, (chain(),), per_second=RATE if n > 7 else 1.0) for n in range(1, 11)]
    (topology,) = read(spark, tmp_path, passes).topologies
    assert costs_of(topology) == pytest.approx(AT_WORK)


def test_a_supervisor_that_came_back_under_another_id_is_one_machine(spark: SparkSession, tmp_path: Path) -> None:
    lost_its_disk = [replace(one, id="another") for one in MACHINES]
    passes = [seen(n, (chain(),), machines=MACHINES if n < 5 else lost_its_disk) for n in range(1, 11)]
    assert [machine.id for machine in read(spark, tmp_path, passes).machines] == ["another"]


def filled_in(number: int, topology: Topology, machines: Sequence[Supervisor]) -> Pass:
    """A pass as agents' metrics show it: supervisors are called by their hosts, and have the ports that are in use."""
    in_use = [replace(one, id=one.host, ports=one.ports[:1] if one is machines[0] else ()) for one in machines]
    return seen(number, (topology,), machines=in_use)


def test_what_a_backfill_does_not_know_is_as_at_other_times(spark: SparkSession, tmp_path: Path) -> None:
    machines = supervisors(2, slots=6)
    words = chain_topology("w-1-1", ("lines", 1), ("split", 2), ("count", 1), stateful=("split",))
    stateless = chain("w-1-1")
    known = [seen(n, (words,), machines=machines) for n in range(1, 5)]
    later = [filled_in(n, stateless, machines) for n in range(5, 9)]
    lake = lake_of_passes(spark, tmp_path, known, READ, later)
    recording = read_recording(spark, lake, CLUSTER, 8 * PERIOD_SECONDS / 3600.0)
    assert {machine.id: machine.slots for machine in recording.machines} == {one.host: 6 for one in machines}
    (topology,) = recording.topologies
    assert {one.name for one in topology.components if one.stateful} == {"split"}
    assert recording.assumed == ()


def test_what_nobody_ever_recorded_is_assumed_and_said(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of_passes(
        spark, tmp_path, [], READ, [filled_in(n, chain(), supervisors(2, slots=6)) for n in range(1, 9)]
    )
    recording = read_recording(spark, lake, CLUSTER, 8 * PERIOD_SECONDS / 3600.0)
    assert [machine.slots for machine in recording.machines] == [4, 4]
    assert not any(component.stateful for component in recording.topologies[0].components)
    assert recording.assumed == (
        "how many worker ports supervisors have was not recorded of 10.77.0.11 and 1 more: 4 are assumed, as Storm has "
        "by default, or as many as were in use",
        "whether components have state was not recorded of w/count and 2 more: none is assumed to have any",
    )


def test_for_how_long_nothing_was_recorded_of_what_is_replayed_is_said(spark: SparkSession, tmp_path: Path) -> None:
    passes = [seen(n, (chain(),), per_second=n * RATE) for n in (1, 2, 3, 8, 9, 10)]
    recording = read(spark, tmp_path, passes)
    assert load_of(recording, 5 * PERIOD_SECONDS) == pytest.approx(5 * RATE)
    assert recording.assumed == (
        "of the 100 s that are replayed 40 s were not recorded: loads are taken to have gone straight from what they "
        "were before to what they were after",
    )


def test_of_more_hours_than_were_recorded_those_that_were_are_replayed(spark: SparkSession, tmp_path: Path) -> None:
    passes = [seen(n, (chain(),), per_second=n * RATE) for n in range(1, 11)]
    recording = read_recording(spark, lake_of_passes(spark, tmp_path, passes, READ), CLUSTER, hours=24.0)
    assert recording.seconds == pytest.approx(10 * PERIOD_SECONDS)
    assert load_of(recording, PERIOD_SECONDS) == pytest.approx(RATE)
    assert recording.ended_at_seconds == pytest.approx(BEGAN + 10 * PERIOD_SECONDS)


def test_days_that_are_not_replayed_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    passes = [seen(n, (chain(),)) for n in (*range(1, 5), *range(8641, 8651))]
    lake = lake_of_passes(spark, tmp_path, passes, READ)
    of_the_day_before = list((tmp_path / "silver").rglob("date=2027-01-15/*.parquet"))
    assert {path.parents[2].name for path in of_the_day_before} == {table.name for table in READ}
    for path in of_the_day_before:
        path.unlink()
    recording = read_recording(spark, lake, CLUSTER, 10 * PERIOD_SECONDS / 3600.0)
    assert recording.seconds == pytest.approx(10 * PERIOD_SECONDS)


@dataclass(slots=True)
class Heard:
    passes: list[PassReport] = field(default_factory=list)

    def on_pass(self, report: PassReport) -> None:
        self.passes.append(report)

    def on_record(self, record: PlanRecord) -> None:
        """Of no interest."""


def play(scenario: Scenario, listener: Heard) -> None:
    stage = SimulatedStage(scenario, listener)
    for _ in range(round(scenario.duration_seconds / PERIOD_SECONDS)):
        stage.run_period(specs_of(scenario))


def cpu_used(passes: Sequence[PassReport]) -> Mapping[str, float]:
    """Millicores of each component, the mean of the periods in which all was known."""
    each: dict[str, list[float]] = {}
    for picture in [
        made.snapshot for made in passes if made.snapshot and not made.snapshot.completeness.missing_executors
    ]:
        used: dict[str, float] = {}
        for executor, load in picture.loads.items():
            used[executor.component] = used.get(executor.component, 0.0) + (load.cpu_millicores or 0.0)
        for component, millicores in used.items():
            each.setdefault(component, []).append(millicores)
    return {component: statistics.fmean(millicores) for component, millicores in each.items()}


def test_a_replay_uses_as_much_cpu_as_was_measured(spark: SparkSession, tmp_path: Path) -> None:
    recorded, replayed = Heard(), Heard()
    scenario = small_scenario(12)
    play(scenario, recorded)
    passes = [Pass(made.at_seconds, number, made.snapshot) for number, made in enumerate(recorded.passes)]
    play(replace(scenario, model=read(spark, tmp_path, passes).model()), replayed)
    was = cpu_used(recorded.passes)
    assert cpu_used(replayed.passes) == pytest.approx(was, rel=0.05)

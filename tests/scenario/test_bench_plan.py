"""The instances that plans are measured on, and the figures that are made of plans."""

from __future__ import annotations

import argparse
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import placement
import pytest
from plan import bench_plan, measure, storms_own
from plan.contest import lines_within, share_of
from plan.instance import Instance, Scale, add_scale_options, make_instance, scale_arguments, scale_from
from plan.picture import picture_of
from plan.storms_own import GivenUp, cluster_to_json, place_resource_aware
from plan.topologies import SMALLEST_TOPOLOGY, random_flow
from plan.yardsticks import graph_of, imbalance_of

from placement_cases import large_case
from storm_operator.core.model import ACKER_COMPONENT, Assignment, ComponentKind
from storm_operator.core.placement.even import place_even
from storm_operator.core.settings import Separation

SCALE = Scale(executors=1000, supervisors=100)
TINY = Scale(executors=10, supervisors=2)
AUTO = Scale(executors=10, supervisors=2, separation=Separation.AUTO)
ASKED_FOR = {
    *("plan_seconds", "replan_seconds", "peak_mb", "share"),
    *("kahip_eco_share", "kahip_eco_seconds", "metis_share", "metis_seconds", "ras_seconds"),
}


@pytest.fixture(scope="module")
def instance() -> Instance:
    return make_instance(SCALE)


def test_the_same_seed_gives_the_same_instance(instance: Instance) -> None:
    again = make_instance(SCALE)
    assert again.demand == instance.demand
    assert again.snapshot.assignment == instance.snapshot.assignment
    assert list(again.snapshot.traffic.pairs()) == list(instance.snapshot.traffic.pairs())


def test_another_seed_gives_another_instance(instance: Instance) -> None:
    assert make_instance(Scale(1000, 100, seed=2)).demand != instance.demand


def test_everybody_is_placed_as_storms_even_scheduler_places(instance: Instance) -> None:
    assert place_even(instance.snapshot, instance.demand, instance.settings) == instance.snapshot.assignment
    assert len(instance.snapshot.assignment.slot_of) == SCALE.executors


def test_cpu_is_filled_as_asked(instance: Instance) -> None:
    capacity = sum(machine.cpu_capacity_millicores or 0.0 for machine in instance.snapshot.supervisors)
    assert sum(instance.demand.millicores.values()) / capacity == pytest.approx(SCALE.use, rel=0.01)
    assert max(instance.demand.millicores.values()) <= 1000.0


def test_ten_thousand_executors_have_about_eighteen_pairs_each() -> None:
    pairs = len(make_instance(Scale(10_000, 1000)).snapshot.traffic.flows()[0])
    assert 17 <= pairs / 10_000 <= 21


def test_few_pairs_carry_most_tuples(instance: Instance) -> None:
    rates = np.sort(instance.snapshot.traffic.flows()[2])[::-1]
    assert rates[: len(rates) // 10].sum() > 0.4 * rates.sum()


def test_topologies_are_from_ten_executors_to_a_few_hundred(instance: Instance) -> None:
    sizes = [len(topology.executors) for topology in instance.snapshot.topologies]
    assert min(sizes) >= 10
    assert max(sizes) <= 500
    assert len(set(sizes)) > 3


@pytest.mark.parametrize("seed", [3804, 4242, 5132])
def test_no_topology_has_more_components_than_executors(seed: int) -> None:
    """Of 8,000 seeds these draw less than one executor for each component."""
    drawn = random_flow("t", SMALLEST_TOPOLOGY, num_workers=1, rng=np.random.default_rng(seed)).topology
    assert len(drawn.components) <= len(drawn.executors) == SMALLEST_TOPOLOGY


def test_unequal_supervisors_and_zones() -> None:
    snapshot = make_instance(Scale(200, 20, zones=2, heterogeneous=True)).snapshot
    assert len({machine.cpu_capacity_millicores for machine in snapshot.supervisors}) > 1
    first, second, third = (machine.slots[0] for machine in snapshot.supervisors[:3])
    assert snapshot.distances.between(first, third) < snapshot.distances.between(first, second)


def test_measured_distances_are_all_different_and_near_what_they_are() -> None:
    distances = make_instance(Scale(40, 4, zones=2, distance_spread=0.1)).snapshot.distances
    assert len(distances.round_trip_ms) == 4 * 3
    assert len(set(distances.round_trip_ms.values())) == 4 * 3 / 2
    assert all(distances.round_trip_ms[b, a] == ms for (a, b), ms in distances.round_trip_ms.items())
    known = make_instance(Scale(40, 4, zones=2)).snapshot.distances
    for (a, b), ms in distances.round_trip_ms.items():
        assert ms == pytest.approx(known.between_supervisors(a, b), rel=0.5)


def test_a_busier_topology_changes_nobody_else(instance: Instance) -> None:
    before, after = instance.demand.millicores, instance.busier_topology(1.5).demand.millicores
    changed = {executor.topology_id for executor in before if after[executor] != before[executor]}
    assert len(changed) == 1
    assert instance.busier_topology(1.5).snapshot.traffic.total() > instance.snapshot.traffic.total()


def test_executors_of_a_dead_supervisor_have_no_place(instance: Instance) -> None:
    after = instance.without_supervisor().snapshot
    lost = instance.snapshot.assignment.slot_of.keys() - after.assignment.slot_of.keys()
    assert lost
    assert len({instance.snapshot.assignment.slot_of[executor].supervisor_id for executor in lost}) == 1
    assert len(after.supervisors) == SCALE.supervisors - 1


def test_a_scale_survives_the_command_line() -> None:
    scale = Scale(300, 20, 4, 0.8, 3, 0.1, True, supervisor_price=0.0, restart_price=0.5, separation=Separation.AUTO)
    parser = argparse.ArgumentParser()
    add_scale_options(parser)
    assert scale_from(parser.parse_args(scale_arguments(scale))) == scale


def test_separation_is_what_was_asked_for_and_always_unless_told_otherwise() -> None:
    asked = {scale: make_instance(scale).settings.scheduling.separation for scale in (AUTO, TINY)}
    assert asked == {AUTO: Separation.AUTO, TINY: Separation.ALWAYS}


def test_a_policy_that_looks_from_time_to_time_is_measured_when_its_time_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.npy"
    options = ["--policy", "t-storm", "--repeats", "1", "--assignment", str(path)]
    monkeypatch.setattr(sys, "argv", ["measure", *scale_arguments(TINY), *options])
    measure.main()
    in_force = tmp_path / "in_force.npy"
    tiny = make_instance(TINY)
    measure.save(in_force, tiny, tiny.snapshot.assignment)
    assert np.load(path).tolist() != np.load(in_force).tolist()
    assert "adaptive" not in capsys.readouterr().out


def test_placement_is_measured_when_a_policys_time_has_come() -> None:
    assert float(placement.measure("t-storm", large_case(40, 4, 2))["inter_supervisor_ratio"]) < 1.0


def test_share_is_that_of_all_tuples(instance: Instance) -> None:
    one = instance.snapshot.supervisors[0].slots[0]
    together = Assignment(dict.fromkeys(instance.snapshot.assignment.slot_of, one))
    assert share_of(instance, together) == 0.0
    assert 0.5 < share_of(instance, instance.snapshot.assignment) < 1.0


def test_imbalance_is_the_heaviest_part_over_the_mean() -> None:
    assert imbalance_of([1.0, 1.0, 4.0], np.array([0, 0, 7])) == pytest.approx(4.0 / 3.0 - 1.0)


def test_the_graph_for_partitioners_has_both_directions_as_whole_numbers(instance: Instance) -> None:
    vertices, begins, edges, neighbours = graph_of(instance)
    assert vertices.sum() == sum(instance.demand.millicores.values())
    rows = np.repeat(np.arange(len(vertices)), np.diff(begins))
    weight = {(a, b): w for a, b, w in zip(rows.tolist(), neighbours.tolist(), edges.tolist(), strict=True)}
    assert all(weight[b, a] == w and w >= 1 and a != b for (a, b), w in weight.items())


def test_storms_scheduler_is_told_what_components_need(instance: Instance) -> None:
    told = cluster_to_json(instance)
    topology, told_topology = instance.snapshot.topologies[0], told["topologies"][0]
    assert sum(component["executors"] for component in told_topology["components"]) == len(topology.executors)
    declared = sum(component["executors"] * component["cpu_percent"] for component in told_topology["components"])
    assert declared == pytest.approx(instance.demand.total(topology.executors) / 10.0, rel=0.02)
    for component in told_topology["components"]:
        assert bool(component["parents"]) == (
            component["kind"] == ComponentKind.BOLT or component["name"] == ACKER_COMPONENT
        )


def put_on_path(monkeypatch: pytest.MonkeyPatch, folder: Path, **scripts: str) -> None:
    """Nothing but these shell scripts is on the path."""
    monkeypatch.setattr(storms_own, "ensure_distribution", lambda say: folder)
    monkeypatch.setenv("PATH", str(folder))
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)


def test_without_java_storms_scheduler_is_given_up_and_said_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_on_path(monkeypatch, tmp_path)
    given_up = place_resource_aware(make_instance(TINY), tmp_path, 10.0)
    assert isinstance(given_up, GivenUp)
    assert "No such file or directory: 'javac'" in given_up.reason


def test_a_jvm_that_runs_out_of_memory_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complaint = 'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space'
    put_on_path(monkeypatch, tmp_path, javac="exit 0", java=f"echo '{complaint}' >&2; echo '\tat Resource' >&2; exit 1")
    assert place_resource_aware(make_instance(TINY), tmp_path, 10.0) == GivenUp(f"java failed: {complaint}")


def test_the_last_line_has_every_figure_also_of_those_who_gave_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_on_path(monkeypatch, tmp_path)
    asked = [*scale_arguments(TINY), "--repeats", "1", "--against", "ras"]
    monkeypatch.setattr(sys, "argv", ["bench_plan", *asked])
    bench_plan.main()
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told.keys() >= ASKED_FOR
    assert {name for name in ASKED_FOR if told[name] is None} == {
        *("kahip_eco_share", "kahip_eco_seconds", "metis_share", "metis_seconds", "ras_seconds")
    }
    assert told["separation"] == "Always"


@pytest.mark.parametrize(
    ("does", "limit_seconds", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", 60.0, "kahip: ended by signal 9"),
        ("import time; time.sleep(60)", 1.0, "kahip: given up, it took longer than 1 s"),
        ("raise SystemExit(3)", 60.0, "kahip: failed with exit status 3"),
    ],
)
def test_why_a_planner_gave_no_answer_is_said(
    does: str, limit_seconds: float, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines_within([sys.executable, "-c", does], limit_seconds, "kahip") == []
    assert said in capsys.readouterr().err


def test_the_picture_is_drawn_also_where_figures_are_missing() -> None:
    whole = {"executors": 10, "plan_seconds": 0.1, "share": 0.4, "even_share": 0.8, "kahip_eco_seconds": 0.02}
    whole |= {"metis_share": 0.3, "metis_fullest": 1.2}
    drawn = ET.fromstring(picture_of([whole, {"executors": 100, "plan_seconds": None, "share": None}]))
    assert len(drawn.findall(".//{*}circle[@r='3.5']")) == 5
    assert len(drawn.findall(".//{*}circle[@fill='#ffffff']")) == 1

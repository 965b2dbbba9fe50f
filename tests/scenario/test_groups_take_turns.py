"""Policies that look every 300 s: who cannot be heard when its time comes is heard soon after, not minutes later."""

from __future__ import annotations

from dataclasses import replace

from loop_scene import SPECS, Scene, scene
from simulator_scene import machines
from storm_operator.adapters.errors import ZooKeeperUnreachable
from storm_operator.core.decision import Hold, HoldReason, Plan
from storm_operator.core.distances import Distances
from storm_operator.core.settings import SchedulingSettings, Trigger
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_loop import Scenario, simulate
from storm_operator.simulator.model import ClusterModel
from storm_operator.simulator.workloads import word_count

SETTLING_SECONDS, PERIOD_SECONDS = 20.0, 10.0
T_STORM = SchedulingSettings(policy="t-storm", trigger=Trigger.POLICY, settling_seconds=SETTLING_SECONDS)


def test_who_is_due_while_the_plan_of_another_group_is_in_hand_is_heard_after_it() -> None:
    topologies = tuple(
        word_count(
            100.0,
            {"split": 2, "count": 2},
            {"split": 0.2, "count": 0.2},
            num_workers=4,
            name=name,
            topology_id=f"{name}-1",
        )
        for name in ("first", "second")
    )
    model = ClusterModel(machines(4, 2000.0), topologies, Distances({}, default_ms=2.0))
    specs = {
        "first": TopologySpec("first", AdoptSource(), scheduling=T_STORM),
        "second": TopologySpec("second", AdoptSource(), scheduling=replace(T_STORM, cool_down_seconds=61.0)),
    }
    report = simulate(Scenario("two groups", model, 450.0, step_seconds=0.5), specs)
    first, second = report.plans[:2]
    assert first.at_seconds == 300.0
    assert second.at_seconds < 300.0 + 60.0
    assert len(report.plans) == 2, "what was made up for is not made up for again"


def run(played: Scene, at_seconds: float) -> Plan | Hold:
    """A pass for one topology under T_STORM."""
    specs = {"words": replace(SPECS["words"], scheduling=T_STORM)}
    return played.run(specs, seconds=at_seconds - played.cluster.clock.seconds)


def before_its_turn() -> Scene:
    played = scene()
    for at in (1180.0, 1190.0):
        hold = run(played, at)
        assert isinstance(hold, Hold)
        assert hold.reason is HoldReason.NOT_DUE
    return played


def test_who_is_due_in_a_pass_that_knows_too_little_is_heard_in_the_next_that_knows_enough() -> None:
    played = before_its_turn()
    played.observer.missing = True
    assert isinstance(run(played, 1200.0), Hold)
    played.observer.missing = False
    assert isinstance(run(played, 1210.0), Plan)


def test_who_is_due_while_the_operator_cannot_look_is_heard_when_it_can() -> None:
    assert isinstance(run(before_its_turn(), 1221.0), Plan)


def test_whose_plan_could_not_be_begun_for_want_of_an_answer_is_heard_again() -> None:
    played = before_its_turn()
    played.journal.refuse_next(ZooKeeperUnreachable("no answer"))
    assert isinstance(run(played, 1200.0), Hold)
    assert isinstance(run(played, 1210.0), Plan)

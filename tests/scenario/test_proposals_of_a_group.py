"""Several plans wait for topologies of one group: what a person said yes to does not wait for what nobody has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import chain_topology, placed
from loop_scene import Scene, scene, with_mode
from simulator_scene import machines
from storm_operator.core.decision import Hold, HoldReason, Plan, PlanCause
from storm_operator.core.distances import Distances
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.settings import ApprovalMode, ApprovalSettings, AutoApproval, Mode, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.core.verify import Verdict
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulator.model import ClusterModel
from storm_operator.simulator.workloads import word_count

RECOMMEND = SchedulingSettings(mode=Mode.RECOMMEND)
SPECS = {name: TopologySpec(name, AdoptSource(), scheduling=RECOMMEND) for name in ("first", "second")}
ONLY_FIRST = {"first": SPECS["first"]}


@pytest.fixture
def stage() -> SimulatedStage:
    topologies = tuple(
        word_count(
            100.0,
            {"split": 2, "count": 2},
            {"split": 0.2, "count": 0.2},
            num_workers=4,
            name=name,
            topology_id=f"{name}-1",
        )
        for name in SPECS
    )
    model = ClusterModel(machines(4, 2000.0), topologies, Distances({}, default_ms=2.0))
    return SimulatedStage(Scenario("one group", model, 600.0, step_seconds=0.5))


def told(stage: SimulatedStage, plan: Plan) -> PlanRecord:
    return stage.notes.records[plan.id]


def plan_that_waits(stage: SimulatedStage, specs: dict[str, TopologySpec]) -> Plan:
    while not stage.loop.memory.proposals.waiting:
        stage.run_period(specs)
    (waiting,) = stage.loop.memory.proposals.waiting
    return waiting.plan


@pytest.mark.parametrize("second", ["paused", "observed", "observed and first in line"])
def test_plan_of_a_group_is_not_taken_back_once_one_of_it_is_not_to_be_moved(
    stage: SimulatedStage, monkeypatch: pytest.MonkeyPatch, second: str
) -> None:
    enforced = {name: replace(spec, scheduling=SchedulingSettings()) for name, spec in SPECS.items()}
    observed = replace(enforced["second"], scheduling=SchedulingSettings(mode=Mode.OBSERVE))
    while not stage.loop.has_pending_plan:
        stage.run_period(enforced)
    (made,) = stage.loop.memory.records
    assert made.plan.topology_ids == ("first-1", "second-1")
    there = stage.engine.cluster.assignment
    monkeypatch.setattr("storm_operator.plan_verification.judge", lambda *_: Verdict(True, "it is worse"))
    match second:
        case "paused":
            specs = {"first": enforced["first"]}
        case "observed":
            specs = {**enforced, "second": observed}
        case _:
            specs = {**enforced, "second": replace(observed, priority=5)}
    while not told(stage, made.plan).state.is_final:
        stage.run_period(specs)
    closed = told(stage, made.plan)
    assert closed.state is PlanState.EXPIRED
    assert closed.message.startswith("it is worse; it is not taken back: ")
    assert stage.engine.cluster.assignment == there


@pytest.mark.parametrize("second", [None, Mode.OBSERVE])
def test_way_back_that_waits_expires_once_one_of_its_topologies_is_not_to_be_moved(
    stage: SimulatedStage, monkeypatch: pytest.MonkeyPatch, second: Mode | None
) -> None:
    enforced = {name: replace(spec, scheduling=SchedulingSettings()) for name, spec in SPECS.items()}
    while not stage.loop.has_pending_plan:
        stage.run_period(enforced)
    monkeypatch.setattr("storm_operator.plan_verification.judge", lambda *_: Verdict(True, "it is worse"))
    back = plan_that_waits(stage, SPECS)
    assert back.topology_ids == ("first-1", "second-1")
    specs = dict(ONLY_FIRST)
    if second is not None:
        specs["second"] = replace(SPECS["second"], scheduling=SchedulingSettings(mode=second))
    stage.run_period(specs)
    assert told(stage, back).state is PlanState.EXPIRED
    assert told(stage, back).message == "second-1 is managed by other settings by now, or by nobody"


def test_way_back_is_begun_though_a_plan_of_another_topology_waits_for_somebody(stage: SimulatedStage) -> None:
    before = stage.engine.cluster.assignment
    plan = plan_that_waits(stage, ONLY_FIRST)
    assert stage.loop.desk.approve(plan.id, "ann")
    while not told(stage, plan).state.is_final:
        stage.run_period(ONLY_FIRST)
    assert plan_that_waits(stage, SPECS).topology_ids == ("second-1",)
    back = stage.loop.desk.propose_way_back(plan, "ann")
    stage.run_period(SPECS)
    assert told(stage, back).state is PlanState.SETTLING
    assert stage.engine.cluster.assignment == before


NEWCOMER = chain_topology("news-7-1010", ("source", 1), ("sink", 1))
"""Submitted when the first pass is made."""


def joined_by_newcomer(played: Scene) -> None:
    """Storm has not placed it yet, unless the cluster says so."""
    original = played.observer.observe

    def observe(*arguments: object) -> ClusterSnapshot:
        picture = original(*arguments)  # type: ignore[arg-type]
        return replace(picture, topologies=(*picture.topologies, NEWCOMER))

    played.observer.observe = observe  # type: ignore[method-assign, assignment]


def with_newcomer(specs: dict[str, TopologySpec]) -> dict[str, TopologySpec]:
    return {**specs, NEWCOMER.name: replace(specs["words"], name=NEWCOMER.name)}


def test_what_storm_is_about_to_place_is_proposed_to_nobody_and_outdates_no_proposal() -> None:
    """Before anybody could look at it, Storm's own scheduler would have outdated it."""
    played, specs = scene(), with_newcomer(with_mode(Mode.RECOMMEND))
    first = played.run(specs)
    assert isinstance(first, Plan)
    joined_by_newcomer(played)
    held = played.run(specs)
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.WARMING_UP
    assert held.message == (
        "news was submitted lately and is yet to be placed by Storm, which would outdate a plan that waits for a "
        "person; where Storm has no place for it one is proposed 90 s after the submission"
    )
    played.cluster.assignment = played.cluster.assignment.with_moves(placed(NEWCOMER, {"source": "s1", "sink": "s1"}))
    played.run(specs)
    assert [record.plan.id for record in played.loop.memory.proposals.waiting] == [first.id]
    assert [record.plan.id for record in played.audience.records] == [first.id]


def test_what_storm_finds_no_place_for_is_proposed_after_a_while() -> None:
    played, specs = scene(), with_newcomer(with_mode(Mode.RECOMMEND))
    joined_by_newcomer(played)
    assert isinstance(played.run(specs), Hold)
    plan = played.run(specs, seconds=90.0)
    assert isinstance(plan, Plan)
    assert plan.cause is PlanCause.WITHOUT_PLACE


@pytest.mark.parametrize("approval", [ApprovalSettings(), ApprovalSettings(ApprovalMode.AUTO, AutoApproval())])
def test_what_needs_no_persons_word_is_placed_at_once(approval: ApprovalSettings) -> None:
    played, enforced = scene(), with_mode(Mode.ENFORCE)["words"]
    scheduling = replace(enforced.scheduling, approval=approval)
    joined_by_newcomer(played)
    plan = played.run(with_newcomer({"words": replace(enforced, scheduling=scheduling)}))
    assert isinstance(plan, Plan)
    assert plan.cause is PlanCause.WITHOUT_PLACE
    assert NEWCOMER.id in played.cluster.plans


def test_executors_of_a_dead_supervisor_are_proposed_though_another_topology_has_come_lately() -> None:
    played, specs = scene(), with_newcomer(with_mode(Mode.RECOMMEND))
    joined_by_newcomer(played)
    played.observer.gone = frozenset({"s3"})
    plan = played.run(specs)
    assert isinstance(plan, Plan)
    assert plan.cause is PlanCause.WITHOUT_PLACE

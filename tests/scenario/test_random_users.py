"""Users that edit, suspend, approve, reject and take back at any moment, on a cluster whose supervisors come and go."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace

import pytest

from simulator_scene import machines
from storm_operator.console.documents import to_bytes
from storm_operator.console.watcher import Watcher
from storm_operator.control_loop import PassReport
from storm_operator.core.model import WorkerSlot
from storm_operator.core.plan_json import record_from_json, record_to_json
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.settings import ApplyMethod, ApprovalMode, ApprovalSettings, Mode, SchedulingSettings, Trigger
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulator.load import Noisy, Step
from storm_operator.simulator.model import ClusterModel, SupervisorDies, SupervisorSlows
from storm_operator.simulator.workloads import word_count

PASSES = 60
NO_FIGURE = re.compile(r"\bnan\b|\binf\b|(?<!\w)-\d[\d.]* s\b", re.IGNORECASE)
MANUAL = ApprovalSettings(ApprovalMode.MANUAL)


class Onlooker:
    """Hears all, and insists that each plan could be carried out when it was made, and comes to one end."""

    def __init__(self) -> None:
        self.watcher = Watcher()
        self.records: dict[str, PlanRecord] = {}

    def on_pass(self, report: PassReport) -> None:
        self.watcher.on_pass(report)

    def on_record(self, record: PlanRecord) -> None:
        known = self.records.get(record.plan.id)
        if known is None:
            owners: dict[WorkerSlot, set[str]] = {}
            for executor, slot in record.plan.target.slot_of.items():
                owners.setdefault(slot, set()).add(executor.topology_id)
            assert all(len(of_slot) == 1 for of_slot in owners.values())
        elif known.state.is_final:
            assert record.state.is_final
        assert record_from_json(json.loads(json.dumps(record_to_json(record), allow_nan=False))) == record
        self.records[record.plan.id] = record
        self.watcher.on_record(record)


def staged(seed: int, onlooker: Onlooker) -> SimulatedStage:
    load = Noisy(Step(((0.0, 50.0), (200.0, 300.0), (400.0, 20.0))), 0.1, seed)
    topologies = tuple(
        word_count(load, cpu_ms={"split": 1.0}, topology_id=f"{name}-1-1", name=name, num_workers=2)
        for name in ("one", "two")
    )
    faults = (SupervisorDies("s1", 150.0, 320.0), SupervisorSlows("s2", 250.0, 0.3, 450.0))
    model = ClusterModel(machines(3, 1000.0), topologies, faults=faults)
    return SimulatedStage(Scenario("users", model, 1e9, step_seconds=2.5, seed=seed), onlooker)


def with_edit(spec: TopologySpec, dice: random.Random) -> TopologySpec:
    scheduling = replace(
        spec.scheduling,
        mode=dice.choice((*Mode, Mode.RECOMMEND)),
        trigger=dice.choice(list(Trigger)),
        apply_method=dice.choice(list(ApplyMethod)),
        approval=dice.choice((ApprovalSettings(), MANUAL)),
        minimum_gain_percent=dice.choice((0.0, 10.0)),
        settling_seconds=dice.choice((0.0, 20.0)),
    )
    return replace(spec, scheduling=scheduling, suspend=dice.random() < 0.3, priority=dice.choice((0, 1)))


def let_somebody_ask(stage: SimulatedStage, onlooker: Onlooker, dice: random.Random) -> None:
    desk, waiting = stage.loop.desk, stage.loop.memory.proposals.waiting
    verified = [record for record in onlooker.records.values() if record.state is PlanState.VERIFIED]
    if waiting and dice.random() < 0.2:
        asked = dice.choice(waiting).plan
        answer = dice.choice((desk.approve, desk.approve, desk.have_made_anew))
        answer(asked.id, "somebody") if dice.random() < 0.8 else desk.reject(asked, "not that one")
    if verified and dice.random() < 0.1:
        desk.propose_way_back(dice.choice(verified).plan, "somebody")


def check(stage: SimulatedStage, onlooker: Onlooker, specs: dict[str, TopologySpec]) -> None:
    """What holds after each pass, whatever was asked before it."""
    memory, seen = stage.loop.memory, onlooker.watcher.seen
    in_hand = [record for record in memory.records if not record.state.is_final]
    assert in_hand in ([], list(memory.records[-1:]))
    asked_of = [topology_id for record in memory.proposals.waiting for topology_id in record.plan.topology_ids]
    assert len(asked_of) == len(set(asked_of)), "no two proposals for a topology"
    assert not [id_ for id_ in asked_of if specs[id_.split("-")[0]].suspend], "nobody looks at these"
    open_ones = {record.plan.id for record in (*in_hand, *memory.proposals.waiting)}
    shown = {known.record.plan.id for known in seen.plans if not known.record.state.is_final}
    assert shown == open_ones, "all that is over was told so"
    if not in_hand:
        assert not stage.engine.cluster.inactive, "spouts that a plan paused are resumed with it"
    texts = [to_bytes(seen.view_now), to_bytes(seen.plan_views()), *(to_bytes(seen.explain(f"{t}-1-1")) for t in specs)]
    assert not [text for text in texts if NO_FIGURE.search(text.decode())]


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_whatever_users_ask_and_clusters_do_the_loop_and_what_it_tells_agree(seed: int) -> None:
    dice, onlooker = random.Random(seed), Onlooker()
    stage = staged(seed, onlooker)
    specs = {name: TopologySpec(name, AdoptSource(), scheduling=SchedulingSettings()) for name in ("one", "two")}
    for _ in range(PASSES):
        if dice.random() < 0.2:
            name = dice.choice(sorted(specs))
            specs[name] = with_edit(specs[name], dice)
        let_somebody_ask(stage, onlooker, dice)
        stage.run_period(specs)
        check(stage, onlooker, specs)
    assert {record.state for record in onlooker.records.values()} & {PlanState.VERIFIED, PlanState.ROLLED_BACK}

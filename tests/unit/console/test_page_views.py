"""What the page shows is what the loop saw: numbers against a cluster that is known exactly."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from builders import chain_topology, even_traffic, placed, same_demand, snapshot, supervisors
from console_scene import PageScene, page_scene, reborn, unseen
from loop_scene import RATE, SPECS, SPREAD, WORDS, with_mode
from storm_operator.adapters.errors import AdapterError
from storm_operator.adapters.observer import with_supervisors_as_told
from storm_operator.console.documents import document
from storm_operator.console.pass_view import NOTHING_SEEN, Given, view_of_pass, view_of_snapshot
from storm_operator.console.traffic_view import MOST_EXECUTOR_FLOWS
from storm_operator.console.views import ExecutorView, PassView, TrafficView
from storm_operator.console.watcher import KEPT_PLANS, Watcher
from storm_operator.core.agent_enforcement import AgentEnforcement
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.distances import Distances
from storm_operator.core.model import Assignment, ExecutorLoad
from storm_operator.core.plan_outcome import outcome_of
from storm_operator.core.plan_record import PlanState
from storm_operator.core.refusal import Refusal
from storm_operator.core.settings import Mode
from storm_operator.demo.recorder import point_of
from storm_operator.loop_ports import PassReport
from storm_operator.operator_metrics import ClusterMetrics
from storm_operator.operator_metrics.durations import Durations

HOLDS, LOOKS_ON = AgentEnforcement("cgroup-v2"), AgentEnforcement("observe-only", "told not to (--no-enforce)")
MACHINES = supervisors(3)
LOADS = {e: ExecutorLoad(cpu_millicores=100.0, executed_per_second=50.0) for e in WORDS.executors[1:]}
PICTURE = snapshot(
    (WORDS,),
    MACHINES,
    SPREAD,
    rates=even_traffic(WORDS, RATE),
    loads=LOADS,
    supervisor_cpu={"s1": 120.0, "s2": 230.0},
)


def test_everything_is_where_it_is_and_refers_to_each_other() -> None:
    view = view_of_snapshot(PICTURE, Given())
    places = {
        (one.component, one.tasks): (
            view.supervisors[view.workers[one.worker].supervisor].id,
            view.workers[one.worker].port,
        )
        for one in view.executors
        if one.worker is not None
    }
    assert places == {(e.component, e.label): (slot.supervisor_id, slot.port) for e, slot in SPREAD.items()}
    assert [(one.id, one.workers, one.executors) for one in view.supervisors] == [
        ("s1", 1, 1),
        ("s2", 2, 2),
        ("s3", 2, 2),
    ]
    assert view.supervisors_used == 3


def test_supervisors_come_by_host_and_what_refers_to_them_follows() -> None:
    turned = replace(PICTURE, supervisors=tuple(reversed(PICTURE.supervisors)))
    assert view_of_snapshot(turned, Given()) == view_of_snapshot(PICTURE, Given())


def test_traffic_is_told_by_level_and_adds_up() -> None:
    traffic = view_of_snapshot(PICTURE, Given()).traffic
    crossing = PICTURE.traffic.inter_supervisor(PICTURE.assignment)
    assert traffic.between_supervisors_tuples_per_second == pytest.approx(crossing)
    total = sum(levels_of(traffic).values())
    assert total == pytest.approx(PICTURE.traffic.total())
    assert sum(flow.tuples_per_second or 0.0 for flow in traffic.supervisor_flows) == pytest.approx(crossing)
    assert sum(flow.tuples_per_second for flow in traffic.executor_flows) == pytest.approx(total)
    assert {flow.round_trip_ms for flow in traffic.supervisor_flows} == {4.0}


def test_a_round_trip_that_nobody_measured_is_unknown_and_not_what_the_planner_takes() -> None:
    guessed = replace(PICTURE, distances=Distances({}, are_assumed=True))
    flows = view_of_snapshot(guessed, Given()).traffic.supervisor_flows
    assert {flow.round_trip_ms for flow in flows} == {None}
    assert sum(flow.tuples_per_second or 0.0 for flow in flows) > 0.0
    told = replace(PICTURE, distances=Distances({}, default_ms=3.0))
    assert {flow.round_trip_ms for flow in view_of_snapshot(told, Given()).traffic.supervisor_flows} == {3.0}


def levels_of(traffic: TrafficView) -> dict[str, float]:
    """Tuples per second by level; an AssertionError where one is unknown."""
    found = {}
    for level in ("in_worker", "between_workers", "between_supervisors"):
        tuples = getattr(traffic, f"{level}_tuples_per_second")
        assert tuples is not None, level
        found[level] = tuples
    return found


def test_traffic_of_a_topology_that_is_not_all_measured_is_unknown_and_not_what_the_others_sent() -> None:
    other = chain_topology("other", ("spout", 1), ("bolt", 1))
    rates = {pair: rate for pair, rate in even_traffic(WORDS, RATE).items() if WORDS.executors[0] not in pair}
    picture = snapshot(
        (WORDS, other),
        MACHINES,
        {**SPREAD, **placed(other, {"spout": "s1:6703", "bolt": "s2:6703"})},
        rates={**rates, **even_traffic(other, RATE)},
        missing=WORDS.executors[:1],
    )
    assert picture.traffic.within("words").total() > 0.0
    view = document(view_of_snapshot(picture, Given()))
    traffic = {
        one["name"]: (one["tuples_per_second"], one["inter_supervisor_tuples_per_second"]) for one in view["topologies"]
    }
    assert traffic == {"words": (None, None), "other": (RATE, RATE)}
    levels = ("in_worker", "between_workers", "between_supervisors")
    assert [view["traffic"][f"{level}_tuples_per_second"] for level in levels] == [None, None, None]
    assert len(view["traffic"]["executor_flows"]) == len(rates) + 1, "what was measured is shown"


@pytest.mark.parametrize(
    ("s2_says", "held_on"),
    [(HOLDS, {"s1", "s2", "s3"}), (LOOKS_ON, {"s1", "s3"}), (None, {"s1", "s3"})],
    ids=["holds", "observes", "says nothing"],
)
def test_executors_are_held_where_the_agent_beside_them_holds(
    s2_says: AgentEnforcement | None, held_on: set[str]
) -> None:
    picture = snapshot((WORDS,), MACHINES, SPREAD)
    host_of = {one.id: one.host for one in MACHINES}
    agents = {host_of["s1"]: HOLDS, host_of["s3"]: HOLDS} | ({host_of["s2"]: s2_says} if s2_says else {})
    limits = dict.fromkeys(WORDS.executors, 300.0)
    report = PassReport(0.0, picture, None, (), limited=frozenset({WORDS.id}), limits_millicores=limits, agents=agents)
    view = view_of_pass(report, NOTHING_SEEN)
    workers = [view.workers[one.worker] for one in _limited(view) if one.worker is not None]
    held = {view.supervisors[worker.supervisor].host for worker in workers}
    assert held == {host_of[one] for one in held_on}
    (topology,) = view.topologies
    assert topology.asks_for_limits
    assert topology.is_held_to_limits is (len(held_on) == 3)
    unlimited = view_of_pass(replace(report, limits_millicores={}), NOTHING_SEEN)
    assert not unlimited.topologies[0].is_held_to_limits, "no limit is in force"


def _limited(view: PassView) -> list[ExecutorView]:
    return [one for one in view.executors if one.limit_millicores is not None]


def test_traffic_between_two_supervisors_is_unknown_where_one_of_their_topologies_is_not_all_measured() -> None:
    """`words` runs on all three; `other` alone is on the fourth, too."""
    other = chain_topology("other", ("spout", 1), ("bolt", 1))
    slots = {**SPREAD, **placed(other, {"spout": "s1:6703", "bolt": "s4:6703"})}
    rates = {**even_traffic(WORDS, RATE), **even_traffic(other, RATE)}
    picture = snapshot((WORDS, other), supervisors(4), slots, rates=rates, missing=WORDS.executors[:1])
    flows = view_of_snapshot(picture, Given()).traffic.supervisor_flows
    assert len(flows) > 2
    known = {(one.source, one.target): one.tuples_per_second for one in flows if one.tuples_per_second is not None}
    assert known == {(0, 3): RATE}
    gathered = placed(WORDS, dict.fromkeys((one.name for one in WORDS.components), "s3"))
    apart = placed(other, {"spout": "s1:6703", "bolt": "s2:6703"})
    of_plan = view_of_snapshot(picture, Given(), assignment=Assignment({**gathered, **apart}))
    assert [one.tuples_per_second for one in of_plan.traffic.supervisor_flows] == [RATE], "by where they run in it"


def test_the_age_of_what_nobody_read_is_unknown() -> None:
    partly, wholly = (
        snapshot((WORDS,), MACHINES, SPREAD, missing=missing) for missing in (WORDS.executors[:1], WORDS.executors)
    )
    nowhere = snapshot((WORDS,), MACHINES, {})
    assert view_of_snapshot(partly, Given()).age_seconds == 0.0
    assert view_of_snapshot(wholly, Given()).age_seconds is None
    assert view_of_snapshot(nowhere, Given()).age_seconds is None
    for picture, is_told in ((partly, True), (wholly, False), (nowhere, False)):
        told = ClusterMetrics("nimbus:6627", Durations())
        told.on_pass(PassReport(1.0, picture, None, ()))
        assert ("metrics_age_seconds" in {one.metric for one in told.readings()}) is is_told


def test_before_anything_has_a_place_its_traffic_is_unknown_and_not_zero() -> None:
    nowhere = snapshot((WORDS,), MACHINES, {})
    for view in (view_of_snapshot(nowhere, Given()), view_of_snapshot(nowhere, Given(), assignment=Assignment(SPREAD))):
        assert view.traffic.between_supervisors_tuples_per_second is view.traffic.in_worker_tuples_per_second is None
        assert view.topologies[0].tuples_per_second is view.topologies[0].inter_supervisor_tuples_per_second is None
    told = ClusterMetrics("nimbus:6627", Durations())
    told.on_pass(PassReport(1.0, nowhere, None, (((WORDS.id,), Hold(HoldReason.WARMING_UP, "unmeasured")),)))
    measured = {one.metric for one in told.readings()}
    assert "topology_executors" in measured
    assert "traffic_tuples_per_second" not in measured
    assert outcome_of(nowhere, (WORDS.id,)).inter_supervisor_tuples_per_second is None
    assert point_of(PassReport(1.0, nowhere, None, ())).inter_supervisor_per_second is None


def test_a_topology_without_any_place_leaves_the_traffic_of_others_known() -> None:
    other = chain_topology("other", ("spout", 1), ("bolt", 1))
    picture = snapshot((WORDS, other), MACHINES, SPREAD, rates=even_traffic(WORDS, RATE))
    view = view_of_snapshot(picture, Given())
    known = {one.id: one.tuples_per_second for one in view.topologies}
    assert known == {"words": pytest.approx(2 * RATE), "other": None}
    assert sum(levels_of(view.traffic).values()) == pytest.approx(2 * RATE)


def test_before_the_first_pass_nothing_is_known() -> None:
    levels = ("in_worker", "between_workers", "between_supervisors")
    assert {getattr(NOTHING_SEEN.traffic, f"{level}_tuples_per_second") for level in levels} == {None}


def test_the_time_line_has_no_figure_for_traffic_that_is_not_all_measured() -> None:
    page = page_scene(passes=1)
    page.played.observer.missing = True
    page.played.run()
    points = page.get("history")["passes"]
    assert points[0]["between_supervisors_tuples_per_second"] is not None
    assert points[1]["between_supervisors_tuples_per_second"] is None


def test_unknown_stays_unknown() -> None:
    view = document(view_of_snapshot(PICTURE, Given()))
    assert view["executors"][0]["cpu_used_millicores"] is None
    assert view["supervisors"][2]["cpu_used_millicores"] is None
    assert view["workers"][0]["cpu_used_millicores"] is None
    assert view["topologies"][0]["latency_p50_ms"] is None
    assert view["executors"][1]["limit_millicores"] is None


def test_an_executor_without_a_place_has_no_worker_and_its_traffic_no_level() -> None:
    homeless = WORDS.executors[0]
    slots = {e: slot for e, slot in SPREAD.items() if e != homeless}
    view = view_of_snapshot(snapshot((WORDS,), MACHINES, slots, rates=even_traffic(WORDS, RATE)), Given())
    assert view.executors[0].worker is None
    levels = levels_of(view.traffic)
    assert levels["between_supervisors"] + levels["between_workers"] == pytest.approx(RATE)


def test_what_runs_on_a_supervisor_that_is_being_emptied_has_its_place_and_its_traffic() -> None:
    emptied = with_supervisors_as_told(PICTURE, {}, {"s3"})
    assert [supervisor.id for supervisor in emptied.supervisors] == ["s1", "s2"]
    seen, whole = view_of_snapshot(emptied, Given()), view_of_snapshot(PICTURE, Given())
    assert [(one.id, one.is_leaving) for one in seen.supervisors] == [("s1", False), ("s2", False), ("s3", True)]
    staying = tuple(replace(one, is_leaving=False) for one in seen.supervisors)
    assert replace(seen, supervisors=staying) == whole


def test_a_supervisor_that_storm_no_longer_sees_is_shown_for_as_long_as_executors_are_placed_there() -> None:
    lost = replace(PICTURE, supervisors=PICTURE.supervisors[:2])
    before = view_of_pass(PassReport(1.0, PICTURE, None, ()), NOTHING_SEEN)
    for known, host in ((before, before.supervisors[2].host), (NOTHING_SEEN, "s3")):
        seen = view_of_pass(PassReport(2.0, lost, None, ()), known)
        (gone,) = [one for one in seen.supervisors if one.is_leaving]
        assert (gone.id, gone.host, gone.executors, gone.cpu_capacity_millicores) == ("s3", host, 2, None)
        assert None not in {one.worker for one in seen.executors}
        assert sum(levels_of(seen.traffic).values()) == pytest.approx(PICTURE.traffic.total())
    moved = {e: slot for e, slot in SPREAD.items() if slot.supervisor_id != "s3"}
    assert len(view_of_snapshot(replace(lost, assignment=Assignment(moved)), Given()).supervisors) == 2


def test_of_very_many_flows_the_heaviest_are_shown_and_the_others_counted() -> None:
    wide = chain_topology("wide", ("spout", 60), ("bolt", 60))
    rates = {pair: 1.0 + at for at, pair in enumerate(even_traffic(wide, 1.0))}
    slots = placed(wide, {"spout": "s1", "bolt": "s2"})
    traffic = view_of_snapshot(snapshot((wide,), MACHINES, slots, rates=rates), Given()).traffic
    assert len(traffic.executor_flows) == MOST_EXECUTOR_FLOWS
    assert traffic.left_out_executor_flows == 3600 - MOST_EXECUTOR_FLOWS
    assert traffic.executor_flows[0].tuples_per_second == 3600.0
    assert traffic.between_supervisors_tuples_per_second == pytest.approx(sum(rates.values()))


def test_limits_are_shown_where_executors_are_held_to_them() -> None:
    page = page_scene(passes=6)
    assert page.played.loop.memory.limited == {"words"}
    assert page.played.loop.memory.demand is not None
    shown = {one["tasks"]: one["limit_millicores"] for one in page.get("view")["executors"]}
    demand = page.played.loop.memory.demand.millicores
    assert shown == {executor.label: demand[executor] for executor in WORDS.executors}


def test_who_is_held_to_less_than_it_needs_is_shown_with_what_it_has() -> None:
    first = WORDS.executors[0]
    held = {first: 30.0}
    report = PassReport(
        1.0, PICTURE, same_demand((WORDS,), 200.0), (), limited=frozenset({"words"}), limits_millicores=held
    )
    shown = view_of_pass(report, NOTHING_SEEN).executors[0]
    assert (shown.tasks, shown.demand_millicores, shown.limit_millicores) == (first.label, 200.0, 30.0)


def test_while_a_plan_settles_its_limits_hold() -> None:
    page = page_scene(passes=2)
    in_force = page.played.loop.applier.documents.read_cpu_limits("words")
    plan = page.played.loop.memory.records[-1].plan
    shown = {one["tasks"]: one["limit_millicores"] for one in page.get("view")["executors"]}
    assert page.get("plans")["plans"][0]["state"] == "Settling"
    assert shown == {executor.label: limit for executor, limit in in_force.items()}
    assert all(limit == 2 * plan.cpu_limits_millicores[executor] for executor, limit in in_force.items()), (
        "they restart"
    )


def test_limits_of_a_plan_that_settles_are_shown_also_when_another_has_been_proposed_since() -> None:
    page = page_scene(passes=1)
    settling = page.played.loop.memory.records[-1]
    elsewhere = replace(settling.plan, id="p-later", created_at_seconds=settling.plan.created_at_seconds + 1.0)
    page.watcher.on_record(replace(settling, plan=elsewhere, state=PlanState.PROPOSED))
    page.played.run()
    in_force = page.played.loop.applier.documents.read_cpu_limits("words")
    assert page.get("plans")["plans"][0]["state"] == "Proposed"
    shown = {one["tasks"]: one["limit_millicores"] for one in page.get("view")["executors"]}
    assert shown == {executor.label: limit for executor, limit in in_force.items()}


def shown_limits(page: PageScene) -> dict[str, float | None]:
    """In millicores, by tasks."""
    return {one["tasks"]: one["limit_millicores"] for one in page.get("view")["executors"]}


def test_limits_that_have_risen_while_a_plan_settles_are_shown_as_they_are() -> None:
    page = page_scene(passes=1)
    page.played.cluster.limits["words"] = dict.fromkeys(WORDS.executors, 1.0)
    page.played.run()
    in_force = page.played.cluster.limits["words"]
    assert page.get("plans")["plans"][0]["state"] == "Settling"
    assert min(in_force.values()) > 1.0, "load needs more than that"
    assert shown_limits(page) == {executor.label: limit for executor, limit in in_force.items()}


def test_executors_whose_need_is_not_known_are_shown_with_the_limit_that_they_keep() -> None:
    page = page_scene(passes=6)
    page.played.cluster.limits["words"] = dict.fromkeys(WORDS.executors, 77.0)
    page.played.observer.missing = True
    page.played.run()
    assert page.get("view")["decisions"][0]["reason"] == "MetricsIncomplete"
    assert shown_limits(page) == {executor.label: 77.0 for executor in WORDS.executors}


def test_a_cluster_that_cannot_be_seen_is_shown_as_it_was_with_its_age() -> None:
    page = page_scene(passes=3)
    before = page.get("view")
    unseen(page.played, AdapterError("no Nimbus answers"))
    after = page.get("view")
    assert after["executors"] == before["executors"]
    assert after["measured_at_seconds"] == before["measured_at_seconds"] == before["at_seconds"]
    assert after["at_seconds"] > before["at_seconds"]
    assert [one["reason"] for one in after["decisions"]] == ["ClusterUnreachable"]
    assert page.get("history")["passes"][-1]["is_measured"] is False


def test_files_that_are_not_followed_are_told_with_each_pass_until_they_are() -> None:
    page = page_scene()
    assert page.get("view")["refused"] == []
    page.watcher.refused = lambda: (Refusal("bad.yaml: not valid YAML"),)
    unseen(page.played, AdapterError("no Nimbus answers"))
    assert page.get("view")["refused"] == ["bad.yaml: not valid YAML"]
    assert "bad.yaml: not valid YAML" in json.loads(page.ask("topologies/bad/explanation").body)["message"]
    page.watcher.refused = tuple
    page.played.run(SPECS)
    assert page.get("view")["refused"] == []


def test_who_asks_for_an_unknown_topology_is_told_of_the_files_that_may_describe_it_and_of_no_other() -> None:
    page = page_scene()
    page.watcher.refused = lambda: (
        Refusal("a.yaml: not valid YAML"),
        Refusal("late: the jar late.jar is not there", "late"),
        Refusal("other.yaml: spec.priority is 'high'", "other"),
    )
    page.played.run(SPECS)
    for asked in ("late", "late-3-1600000000"):
        said = json.loads(page.ask(f"topologies/{asked}/explanation").body)["message"]
        assert said.endswith(": there are words; a.yaml: not valid YAML; late: the jar late.jar is not there")


def test_the_time_line_has_a_gap_where_the_cluster_could_not_be_seen() -> None:
    page = page_scene(passes=3)
    unseen(page.played, AdapterError("no Nimbus answers"))
    seen, not_seen = page.get("history")["passes"][-2:]
    levels = [name for name in seen if name.endswith("_per_second")]
    assert None not in [seen[name] for name in levels]
    assert {not_seen[name] for name in [*levels, "cpu_used_millicores"]} == {None}
    assert seen["topologies"].keys() == not_seen["topologies"].keys() == {"words"}
    assert set(not_seen["topologies"]["words"].values()) == {None}


def test_a_plan_is_shown_on_the_cluster_that_it_was_made_for() -> None:
    page = page_scene(passes=8)
    plan = next(iter(page.played.loop.memory.records)).plan
    scene = page.get(f"plans/{plan.id}/scene")

    def places(view: dict[str, list[dict[str, object]]]) -> dict[object, tuple[object, object]]:
        found = {}
        for one in view["executors"]:
            worker = view["workers"][int(str(one["worker"]))]
            found[one["tasks"]] = view["supervisors"][int(str(worker["supervisor"]))]["id"], worker["port"]
        return found

    for name, assignment in (("before", plan.base), ("after", plan.target)):
        slots = {e.label: (slot.supervisor_id, slot.port) for e, slot in assignment.slot_of.items()}
        assert places(scene[name]) == slots
    assert scene["before"]["traffic"]["between_supervisors_tuples_per_second"] == pytest.approx(
        plan.before.inter_supervisor_tuples_per_second, abs=0.01
    )
    assert scene["after"]["traffic"]["between_supervisors_tuples_per_second"] == pytest.approx(
        plan.after.inter_supervisor_tuples_per_second, abs=0.01
    )


def test_forecast_and_actual_are_of_the_same_period() -> None:
    page = page_scene(passes=2)
    first, second = page.get("forecasts")["passes"]
    loads = {one["component"]: one for one in second["components"]}
    assert {one["component"]: one["forecast_per_second"] for one in first["components"]} == dict.fromkeys(loads)
    assert {name: one["forecast_per_second"] for name, one in loads.items()} == {
        one["component"]: one["next_per_second"] for one in first["components"]
    }


def test_after_a_pass_that_saw_nothing_no_forecast_is_compared_with_what_arrived() -> None:
    """It was made for the period in which nobody looked."""
    page = page_scene(passes=3)
    unseen(page.played, AdapterError("no Nimbus answers"))
    page.played.run()
    page.played.run()
    *_, blind, following = page.get("forecasts")["passes"]
    assert {one["forecast_per_second"] for one in blind["components"]} == {None}
    assert None not in {one["arrived_per_second"] for one in blind["components"]}
    assert None not in {one["forecast_per_second"] for one in following["components"]}


def test_a_plan_that_waits_is_known_to_the_next_life_of_the_operator() -> None:
    """Taken up again, and not told of again: whoever listens to the new life has not heard of it."""
    recommend, before = with_mode(Mode.RECOMMEND), page_scene(passes=0)
    before.played.run(recommend)
    (waiting,) = before.played.loop.memory.proposals.waiting
    page = reborn(before)
    page.played.loop.desk.take_up(waiting)
    page.played.run(recommend)
    (decision,) = page.get("view")["decisions"]
    (plan,) = page.get("plans")["plans"]
    assert (plan["id"], plan["waits_for_approval"]) == (decision["plan_id"], True)
    assert page.ask(f"plans/{plan['id']}/scene").status == 200
    assert page.played.audience.records == []


def test_a_plan_that_settles_is_known_to_the_next_life_of_the_operator() -> None:
    before = page_scene(passes=1)
    page = reborn(before)
    page.played.loop.recover()
    page.played.run()
    (plan,) = page.get("plans")["plans"]
    assert (plan["id"], plan["state"]) == (before.played.loop.memory.records[-1].plan.id, "Settling")
    explained = page.get("topologies/words/explanation")["parts"]
    assert next(part["sentences"][0] for part in explained if part["title"] == "Last plan").startswith(plan["id"])


def test_a_plan_that_is_made_after_the_clock_was_set_back_is_the_last_one() -> None:
    page = page_scene(passes=1)
    record = page.played.loop.memory.records[-1]
    for number in range(KEPT_PLANS + 1):
        made = replace(record.plan, id=f"q-{number}", created_at_seconds=record.plan.created_at_seconds - 10.0 * number)
        page.watcher.on_record(replace(record, plan=made, state=PlanState.VERIFIED))
    assert [plan["id"] for plan in page.get("plans")["plans"][:2]] == [f"q-{KEPT_PLANS}", f"q-{KEPT_PLANS - 1}"]
    explained = page.get("topologies/words/explanation")["parts"]
    (last,) = (part["sentences"][0] for part in explained if part["title"] == "Last plan")
    assert last.startswith(f"q-{KEPT_PLANS} ")


def test_plans_of_before_a_restart_are_in_the_order_in_which_they_were_made() -> None:
    record = page_scene(passes=1).played.loop.memory.records[-1]
    watcher = Watcher()
    for name, at in (("p-third", 30.0), ("p-first", 10.0), ("p-second", 20.0)):
        watcher.on_record(replace(record, plan=replace(record.plan, id=name, created_at_seconds=at)))
    assert [plan.id for plan in watcher.seen.plan_views()] == ["p-third", "p-second", "p-first"]


def test_a_plan_that_waits_is_kept_however_many_come_after_it() -> None:
    page = page_scene(passes=1)
    record = page.played.loop.memory.records[-1]
    for number in range(KEPT_PLANS + 10):
        made = replace(record.plan, id=f"q-{number}", created_at_seconds=record.plan.created_at_seconds + number)
        state = PlanState.VERIFIED if number else PlanState.PROPOSED
        page.watcher.on_record(replace(record, plan=made, state=state, approved_by=""))
    plans = page.get("plans")["plans"]
    assert len(plans) == KEPT_PLANS
    assert [plan["id"] for plan in plans if plan["waits_for_approval"]] == ["q-0"]
    assert plans[0]["id"] == f"q-{KEPT_PLANS + 9}"

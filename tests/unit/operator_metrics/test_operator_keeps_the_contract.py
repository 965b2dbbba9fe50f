"""The operator exports what the contract declares: played by the real loop on a simulated cluster."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from builders import even_traffic, snapshot, supervisors
from history_scene import small_scenario, specs_of
from kube_builders import NOW_SECONDS, plan, plan_record
from loop_scene import RATE, SPREAD, WORDS
from storm_operator.adapters.observer import with_supervisors_as_told
from storm_operator.adapters.peer_calls import CallOutcome, Peer
from storm_operator.core.direct_plan import reverse_plan
from storm_operator.core.plan_record import PlanState
from storm_operator.loop_ports import PassReport
from storm_operator.metric_contract import BY_NAME, OPERATOR_METRICS, Kind
from storm_operator.operator_metrics import ClusterMetrics, OperatorMetrics, RunMode
from storm_operator.operator_metrics.plans import last_plan_readings
from storm_operator.simulated_loop import SimulatedStage

NIMBUS = "nimbus.storm:6627"
PERIODS = 14
Series = Mapping[tuple[str, ...], float]


class Played:
    """An operator that has managed WordCount for some periods, in which it made a plan."""

    def __init__(self) -> None:
        self.operator = OperatorMetrics(RunMode.KUBERNETES, leads=True, watch_ages=lambda: {"StormTopologies": 3.0})
        self.cluster: ClusterMetrics = self.operator.cluster(NIMBUS, lambda _: "streams", resizes_pods=True)
        scenario = small_scenario(PERIODS)
        self.stage, self.specs = SimulatedStage(scenario, self.cluster), specs_of(scenario)
        for _ in range(PERIODS):
            self.run_period()
        self.cluster.resize_asked(True)
        self.cluster.resize_asked(False)
        self.cluster.resize_problems(["Deferred", "Deferred"])
        self.operator.calls(NIMBUS).note(Peer.NIMBUS, "getClusterInfo", CallOutcome.OK, 0.02)
        self.operator.calls().note(Peer.KUBERNETES, "patch", CallOutcome.REFUSED, 0.2)
        exported(self.operator)  # as Prometheus has done all the while

    def run_period(self) -> None:
        self.stage.run_period(self.specs)
        self.cluster.pass_ended(0.25, False, 1, 10.0)


@pytest.fixture(scope="module")
def played() -> Played:
    return Played()


def exported(operator: OperatorMetrics) -> str:
    registry = CollectorRegistry()
    registry.register(operator)
    return generate_latest(registry).decode()


def series(operator: OperatorMetrics) -> dict[str, dict[tuple[str, ...], float]]:
    """Values by name without its prefix, and by labels in the contract's order (without Nimbus)."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(exported(operator)):
        for sample in family.samples:
            metric = BY_NAME.get(sample.name)
            if metric is not None:
                labels = tuple(sample.labels[label] for label in metric.labels if label != "nimbus")
                found.setdefault(metric.name.removeprefix("storm_operator_"), {})[labels] = sample.value
    return found


def test_every_metric_of_the_contract_and_no_other(played: Played) -> None:
    families = {family.name: family for family in text_string_to_metric_families(exported(played.operator))}
    # Of the process, where there is one; and what only a very large cluster has.
    elsewhere = {m.name for m in OPERATOR_METRICS if m.name.startswith("process_")} | {"storm_operator_omitted_series"}
    declared = {metric.name.removesuffix("_total") for metric in OPERATOR_METRICS if metric.name not in elsewhere}
    assert set(families) == declared
    for metric in OPERATOR_METRICS:
        if metric.name not in elsewhere:
            family = families[metric.name.removesuffix("_total")]
            assert family.type == metric.kind.value
            assert family.documentation == metric.meaning
            for sample in family.samples:
                assert set(sample.labels) - {"le"} == set(metric.labels), sample
            if metric.kind is Kind.HISTOGRAM:
                bounds = {float(s.labels["le"]) for s in family.samples if "le" in s.labels}
                assert bounds == {*metric.buckets, float("inf")}


def test_traffic_by_level_adds_up(played: Played) -> None:
    found = series(played.operator)
    levels = {labels[1]: value for labels, value in found["traffic_tuples_per_second"].items()}
    snapshot = played.stage.cluster.meter.read(())
    assert set(levels) == {"worker", "supervisor", "inter_supervisor"}
    pairs = found["supervisor_traffic_tuples_per_second"]
    assert sum(pairs.values()) == pytest.approx(sum(levels.values()))
    crossing = sum(value for (source, target), value in pairs.items() if source != target)
    assert crossing == pytest.approx(levels["inter_supervisor"])
    assert {host for pair in pairs for host in pair} <= {supervisor.host for supervisor in snapshot.supervisors}
    assert found["inter_supervisor_traffic_ratio"]["wordcount",] == pytest.approx(
        levels["inter_supervisor"] / sum(levels.values())
    )


def test_a_supervisor_that_is_being_emptied_is_told_by_its_host_until_it_has_gone() -> None:
    cpu = dict.fromkeys(("s1", "s2", "s3"), 100.0)
    picture = snapshot((WORDS,), supervisors(3), SPREAD, rates=even_traffic(WORDS, RATE), supervisor_cpu=cpu)
    told = []
    for seen in (picture, with_supervisors_as_told(picture, {}, {"s2"})):
        operator = OperatorMetrics(RunMode.KUBERNETES)
        operator.cluster(NIMBUS).on_pass(PassReport(NOW_SECONDS, seen, None, ()))
        told.append(series(operator))
    whole, emptied = told
    for name in ("supervisor_traffic_tuples_per_second", "supervisor_executors", "supervisor_cpu_used_cores"):
        assert emptied[name] == whole[name]


def test_the_plan_is_told_with_what_it_promised_and_what_came(played: Played) -> None:
    found = series(played.operator)
    ((topology, plan_id, policy, reason, state),) = found["last_plan_info"]
    (record,) = [r for r in played.stage.notes.records.values() if r.plan.id == plan_id]
    assert (topology, policy, state) == ("wordcount", "liu", record.state.value)
    assert reason == record.plan.cause == "Savings"
    assert found["plans_total"]["Applying", "liu"] == len(played.stage.notes.records)
    assert found["plans_total"]["Failed", "liu"] == 0.0
    assert found["topology_plans_total"]["wordcount", "Rejected"] == 0.0
    traffic = found["last_plan_inter_supervisor_tuples_per_second"]
    assert traffic["wordcount", "predicted"] == pytest.approx(record.plan.after.inter_supervisor_tuples_per_second)
    assert traffic["wordcount", "before"] > traffic["wordcount", "predicted"]
    assert found["plan_moves_total"][()] == sum(len(r.plan.moves) for r in played.stage.notes.records.values())


def test_a_rollback_that_nobody_weighed_has_no_predicted_figures() -> None:
    back = plan_record(PlanState.VERIFIED, of=reverse_plan(plan(), "p-2", NOW_SECONDS), rollback_of="p-1")
    assert [one for one in last_plan_readings("words", back) if "predicted" in one.labels] == []
    assert [one for one in last_plan_readings("words", plan_record()) if "predicted" in one.labels]


def test_the_moves_of_a_plan_are_counted_by_the_life_that_put_it_in_force() -> None:
    counts = []
    for states in ((PlanState.APPLYING, PlanState.SETTLING, PlanState.VERIFIED), (PlanState.VERIFIED,)):
        operator = OperatorMetrics(RunMode.KUBERNETES)
        told = operator.cluster(NIMBUS)
        for state in states:
            told.on_record(plan_record(state, in_force_at_seconds=NOW_SECONDS))
            found = series(operator)
        counts.append(found["plan_moves_total"][()])
    assert counts == [1, 0]


def test_a_plan_that_is_over_before_anybody_asks_is_an_increase_all_the_same() -> None:
    """A new life finds out in its first step that the plan of the one before has failed: no first value is an increase.

    That is what StormPlanFailedOrRolledBack looks for.
    """
    operator = OperatorMetrics(RunMode.KUBERNETES)
    told = operator.cluster(NIMBUS)
    told.on_record(plan_record(PlanState.FAILED))
    pages = [series(operator) for _ in range(3)]
    assert [page["topology_plans_total"]["words", "Failed"] for page in pages] == [0.0, 1.0, 1.0]
    assert [sum(page["plans_total"].values()) for page in pages] == [0.0, 1.0, 1.0]
    told.on_record(plan_record(PlanState.ROLLED_BACK))
    assert series(operator)["plans_total"]["RolledBack", plan().policy] == 1.0, "the series was there"


def test_the_forecast_s_error_is_a_series(played: Played) -> None:
    before = series(played.operator)["component_next_arrival_tuples_per_second"]
    played.run_period()
    found = series(played.operator)
    assert found["component_forecast_arrival_tuples_per_second"] == pytest.approx(before)
    assert set(found["component_arrival_tuples_per_second"]) <= set(before)
    assert found["component_arrival_tuples_per_second"]["wordcount", "split"] > 0.0


def test_supervisors_demand_is_that_of_their_executors(played: Played) -> None:
    found = series(played.operator)
    assert sum(found["supervisor_cpu_demand_cores"].values()) == pytest.approx(
        sum(found["component_cpu_demand_cores"].values())
    )
    assert sum(found["executor_cpu_demand_cores"].values()) == pytest.approx(
        sum(found["component_cpu_demand_cores"].values())
    )
    assert set(found["supervisor_measured"].values()) == {1.0}


def test_holds_are_counted_from_zero(played: Played) -> None:
    found = series(played.operator)
    assert found["holds_total"]["Infeasible",] == 0.0
    assert sum(found["holds_total"].values()) > 0.0
    assert sum(found["holding"].values()) == len(found["topology_hold"]) == 1


def test_calls_by_peer_and_outcome(played: Played) -> None:
    calls = series(played.operator)["peer_calls_total"]
    assert {labels: count for labels, count in calls.items() if count} == {
        ("nimbus", "getClusterInfo", "ok"): 1.0,
        ("kubernetes", "patch", "refused"): 1.0,
    }
    assert calls["nimbus", "getClusterInfo", "unreachable"] == 0.0, "so that the first one is an increase"
    assert 'storm_operator_peer_call_duration_seconds_count{nimbus="",peer="kubernetes",verb="patch"} 1.0' in exported(
        played.operator
    )

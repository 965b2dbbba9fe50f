"""What is no longer managed, or not known, has no series; what is too much is bounded."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest

from builders import chain_topology, even_traffic, placed, snapshot, supervisors
from history_scene import small_scenario, specs_of
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.snapshot import Completeness
from storm_operator.loop_ports import PassReport
from storm_operator.metric_contract import BY_NAME
from storm_operator.operator_metrics import OperatorMetrics, RunMode
from storm_operator.operator_metrics.exporter import bounded
from storm_operator.operator_metrics.readings import Reading
from storm_operator.operator_metrics.supervisors import pair_readings
from storm_operator.simulated_loop import SimulatedStage

NIMBUS = "nimbus:6627"


class Reports:
    """A listener that keeps all that it hears."""

    def __init__(self) -> None:
        self.passes: list[PassReport] = []

    def on_pass(self, report: PassReport) -> None:
        self.passes.append(report)

    def on_record(self, record: object) -> None:
        """Not wanted."""


def last_report() -> PassReport:
    scenario, heard = small_scenario(3), Reports()
    stage = SimulatedStage(scenario, heard)
    for _ in range(3):
        stage.run_period(specs_of(scenario))
    return heard.passes[-1]


REPORT = last_report()


def text_of(operator: OperatorMetrics) -> str:
    registry = CollectorRegistry()
    registry.register(operator)
    return generate_latest(registry).decode()


def after(*reports: PassReport) -> str:
    operator = OperatorMetrics(RunMode.STANDALONE)
    told = operator.cluster(NIMBUS)
    for report in reports:
        told.on_pass(report)
    return text_of(operator)


def test_a_topology_that_is_no_longer_managed_has_no_series() -> None:
    assert 'topology="wordcount"' in after(REPORT)
    unmanaged = replace(REPORT, decisions=(((), Hold(HoldReason.NOTHING_TO_MANAGE, "none")),))
    assert 'topology="wordcount"' not in after(REPORT, unmanaged)


def test_an_unreachable_cluster_has_no_figures_but_its_reason() -> None:
    blind = PassReport(1.0, None, None, (((), Hold(HoldReason.CLUSTER_UNREACHABLE, "no Nimbus")),))
    text = after(REPORT, blind)
    assert "storm_operator_traffic_tuples_per_second{" not in text
    assert "storm_operator_metrics_completeness_ratio{" not in text
    assert f'storm_operator_holding{{nimbus="{NIMBUS}",reason="ClusterUnreachable"}} 1.0' in text
    assert "forecast_arrival" not in after(blind)


def test_a_pass_that_failed_before_it_looked_leaves_no_figures_of_an_earlier_one() -> None:
    """As when Nimbus does not tell what runs, or another manages the cluster."""
    operator = OperatorMetrics(RunMode.KUBERNETES)
    told = operator.cluster(NIMBUS)
    told.on_pass(REPORT)
    told.pass_ended(1.0, True, 1, 10.0)
    assert "storm_operator_traffic_tuples_per_second{" in text_of(operator), "what failed came after the look"
    told.pass_ended(1.0, True, 1, 10.0)
    text = text_of(operator)
    gone = ("traffic_tuples_per_second", "metrics_completeness_ratio", "holding", "topology_hold")
    assert [name for name in gone if f"storm_operator_{name}{{" in text] == []
    assert f'storm_operator_failed_passes_total{{nimbus="{NIMBUS}"}} 2.0' in text
    assert f'storm_operator_topologies{{nimbus="{NIMBUS}"}} 1.0' in text
    told.on_pass(REPORT)
    told.pass_ended(1.0, False, 1, 10.0)
    assert "storm_operator_traffic_tuples_per_second{" in text_of(operator)


def test_sums_over_a_part_of_a_topology_are_not_exported() -> None:
    assert REPORT.snapshot is not None
    some = REPORT.snapshot.topologies[0].executors[:1]
    partly = replace(REPORT.snapshot, completeness=Completeness(9, some, 2.0, ("one is missing",)))
    text = after(replace(REPORT, snapshot=partly))
    assert "storm_operator_traffic_tuples_per_second{" not in text
    assert "storm_operator_supervisor_traffic_tuples_per_second{" not in text
    assert f'storm_operator_metrics_problems{{nimbus="{NIMBUS}"}} 1.0' in text


def test_tuples_between_supervisors_of_an_incomplete_topology_are_unknown_and_not_what_others_exchange() -> None:
    halves, whole = (chain_topology(name, ("spout", 1), ("split", 1)) for name in ("halves", "whole"))
    everywhere = chain_topology("everywhere", ("spout", 1), ("split", 1))
    places = {
        **placed(halves, {"spout": "s1", "split": "s2"}),
        **placed(whole, {"spout": "s1:6701", "split": "s2:6701"}),
        **placed(everywhere, {"spout": "s2:6702", "split": "s3"}),
    }
    rates = even_traffic(halves, 300.0) | even_traffic(whole, 100.0) | even_traffic(everywhere, 50.0)
    seen = snapshot((halves, whole, everywhere), supervisors(3), places, rates=rates)
    host_of = {one.id: one.host for one in seen.supervisors}
    shared, other = (host_of["s1"], host_of["s2"]), (host_of["s2"], host_of["s3"])
    assert {pair.labels: pair.value for pair in pair_readings(seen)} == {shared: 400.0, other: 50.0}
    partly = replace(seen, completeness=Completeness(6, halves.executors[:1]))
    assert {pair.labels: pair.value for pair in pair_readings(partly)} == {other: 50.0}


def test_a_supervisor_is_measured_from_the_first_answer_of_its_agent_on() -> None:
    """Of one answer nobody knows yet what is used: with long periods that stays so for minutes, and all is well."""
    seen = REPORT.snapshot
    assert seen is not None
    quiet, *others = seen.supervisors
    once = replace(
        seen,
        supervisor_cpu_millicores={},
        completeness=replace(seen.completeness, silent_supervisors=(quiet.id,)),
    )
    lines = after(replace(REPORT, snapshot=once)).splitlines()
    measured = [line for line in lines if line.startswith("storm_operator_supervisor_measured{")]
    expected = {quiet.host: 0.0, **{one.host: 1.0 for one in others}}
    assert sorted(measured) == sorted(
        f'storm_operator_supervisor_measured{{nimbus="{NIMBUS}",supervisor="{host}"}} {value}'
        for host, value in expected.items()
    )


def test_a_supervisor_beside_the_one_in_its_place_has_no_second_series() -> None:
    """Nimbus knows one that was lost, and what ran on it, until its session has ended."""
    seen = REPORT.snapshot
    assert seen is not None
    residents = seen.assignment.residents()
    old = next(one for one in seen.supervisors if one.id in residents)
    twice = replace(seen, supervisors=(replace(old, id="again"), *seen.supervisors))
    text = after(replace(REPORT, snapshot=twice))
    names = Counter(line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#"))
    assert {name for name, times in names.items() if times > 1} == set()
    number = len(residents[old.id])
    assert f'storm_operator_supervisor_executors{{nimbus="{NIMBUS}",supervisor="{old.host}"}} {number}.0' in text


def test_a_cluster_that_nobody_names_any_more_has_no_series() -> None:
    operator = OperatorMetrics(RunMode.KUBERNETES)
    told = operator.cluster(NIMBUS)
    told.on_pass(REPORT)
    told.pass_ended(1.0, False, 1, 10.0)
    assert NIMBUS in text_of(operator)
    operator.forget(NIMBUS)
    assert NIMBUS not in text_of(operator)


def test_the_largest_are_kept_and_the_others_counted() -> None:
    most = 2_000
    metric = BY_NAME["storm_operator_executor_cpu_demand_cores"]
    assert metric.most_series == most
    readings = [Reading("executor_cpu_demand_cores", ("t", "c", f"{n}-{n}"), float(n)) for n in range(most + 5)]
    kept = bounded(metric, readings)
    assert len(kept) == most
    assert min(reading.value for reading in kept) == 5.0
    assert bounded(metric, readings[:most]) == readings[:most]

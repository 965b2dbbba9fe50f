"""What a dashboard's figure shows of series that are played: its very expression, asked by Prometheus' own tool."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from dashboards.all_of_them import Document, documents
from dashboards.frame import Uid
from dashboards.preview.choices import Looked, substituted
from prometheus_server import program

CHOSEN = {"$__rate_interval": "1m", "$topology_id": ".+", "$topology": ".+", "$cluster": ".*"} | {
    "$__range": "1m",
    "$__interval": "15s",
}
"""Grafana's variables, and what they are where scrapes come every 15 s and all topologies are looked at."""


def shown(
    uid: Uid, title: str, series: Mapping[str, str], expected: Mapping[str, float], folder: Path, column: str = "A"
) -> None:
    """Raises CalledProcessError unless the values are `expected`, by labels, a minute after the series began."""
    target = next(target for target in panel_of(uid, title)["targets"] if target["refId"] == column)
    samples = [{"labels": labels, "value": value} for labels, value in expected.items()]
    expression = target["expr"]
    for variable, value in CHOSEN.items():
        expression = expression.replace(variable, value)
    asked = {"expr": expression, "eval_time": "1m", "exp_samples": samples}
    played = [{"series": name, "values": values} for name, values in series.items()]
    by_promtool([{"interval": "15s", "input_series": played, "promql_expr_test": [asked]}], folder)


def panel_of(uid: Uid, title: str) -> Document:
    panels = [one for panel in documents()[uid.value]["panels"] for one in (panel, *panel.get("panels", ()))]
    return next(panel for panel in panels if panel["title"] == title)


def by_promtool(tests: Sequence[Document], folder: Path) -> None:
    """CalledProcessError with what it says unless all that the tests expect is so."""
    case = folder / "case.yml"
    case.write_text(json.dumps({"rule_files": [], "tests": tests}))
    subprocess.run([program("promtool"), "test", "rules", str(case)], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("leaders", "figure"),
    [
        ({}, 0),
        ({'job="a",pod="1"': "1x8", 'job="a",pod="2"': "0x8"}, 1),
        ({'job="a",pod="1"': "0x8", 'job="a",pod="2"': "0x8"}, 0),
        ({'job="a",pod="1"': "1x8", 'job="a",pod="2"': "1x8"}, 2),
        ({'job="a"': "1x8", 'job="b"': "1x8"}, 1),
        ({'job="a",cluster="blue"': "1x8", 'job="a",cluster="green"': "1x8"}, 1),
        ({'job="a"': "0x8", 'job="b"': "1x8"}, 0),
    ],
    ids=["none", "replicas", "nobody", "two at once", "two operators", "two clusters", "one of two without"],
)
def test_of_each_operators_replicas_one_leads(leaders: Mapping[str, str], figure: int, tmp_path: Path) -> None:
    series = {f"storm_operator_leader{{{labels}}}": values for labels, values in leaders.items()}
    shown(Uid.OPERATOR, "Leading", series, {"{}": figure}, tmp_path)


def test_a_pair_of_tasks_is_told_with_what_is_known_of_either(tmp_path: Path) -> None:
    """Tasks 4 and 5 are of one executor, and of the second of them no series tells the component."""
    own = 'topology_id="t-1",supervisor="a"'
    executors = {"1-1": "spout", "4-5": "split", "6-7": "count"}
    series = {
        f'storm_executor_executed_tuples_total{{{own},executor="{executor}",component="{component}"}}': "0+9x8"
        for executor, component in executors.items()
    }
    pairs = {("1", "4"): 400, ("1", "5"): 300, ("5", "6"): 200, ("5", "7"): 100}
    for (source, target), rate in pairs.items():
        labels = f'{own},stream="default",source_task="{source}",target_task="{target}"'
        series[f"storm_traffic_tuples_total{{{labels}}}"] = f"0+{15 * rate}x8"
    names = {"1": "spout", "4": "split", "6": "count"}
    expected = {}
    for (source, target), rate in pairs.items():
        sender = f',sender="{names[source]}"' if source in names else ""
        receiver = f',receiver="{names[target]}"' if target in names else ""
        expected[f'{{{own},source_task="{source}",target_task="{target}"{sender}{receiver}}}'] = float(rate)
    shown(Uid.TRAFFIC, "Heaviest pairs of tasks", series, expected, tmp_path)


REPLICAS = {'pod="1"': "30x2 stale", 'pod="2"': "_x3 40x8"}
"""Of an operator that was started anew, or whose Lease another has taken, within the last minutes."""


def test_what_supervisors_exchange_counts_once_after_a_change_of_the_operator_s_pod(tmp_path: Path) -> None:
    pair = 'nimbus="n",source="a",target="b"'
    series = {
        f"storm_operator_supervisor_traffic_tuples_per_second{{{pair},{pod}}}": values
        for pod, values in REPLICAS.items()
    }
    shown(Uid.TRAFFIC, "From supervisor to supervisor", series, {'{source="a",target="b"}': 40}, tmp_path)


def test_the_growth_of_queues_counts_once_after_a_change_of_the_operator_s_pod(tmp_path: Path) -> None:
    growth = 'storm_operator_component_queue_growth_tuples_per_second{nimbus="n",topology="t"'
    series = {
        f'{growth},component="{name}",{pod}}}': values
        for name in ("split", "count")
        for pod, values in REPLICAS.items()
    }
    shown(Uid.OVERVIEW, "Each topology", series, {'{nimbus="n",topology="t"}': 80}, tmp_path, column="F")


def test_what_stays_on_its_machine_is_in_no_row_while_the_operator_tells_of_no_supervisors(tmp_path: Path) -> None:
    """As after a pass that failed: what the rules made of the pass before is there for a minute more."""
    supervisors = {
        f'storm_operator_supervisor_executors{{nimbus="n",supervisor="{host}"}}': "4x2 stale" for host in ("a", "b")
    }
    pair = 'supervisors:storm_traffic_tuples:current{nimbus="n",source="a",target="b"}'
    recorded = {pair: "30x8", pair.replace('"b"', '"a"'): "9000x8"}
    shown(Uid.TRAFFIC, "Traffic between supervisors over time", supervisors | recorded, {pair: 30}, tmp_path)


@pytest.mark.parametrize(
    ("title", "metric"),
    [("CPU of the operator", "process_cpu_seconds_total"), ("Memory of the operator", "process_resident_memory_bytes")],
)
def test_a_process_of_another_cluster_at_the_operator_s_address_is_not_the_operator(
    title: str, metric: str, tmp_path: Path
) -> None:
    """Pods of two Kubernetes clusters have the same addresses, mostly, and many listen at 8080."""
    operator, other = 'instance="10.244.0.5:8080",job="storm-operator"', 'instance="10.244.0.5:8080",job="shop"'
    info = f'storm_operator_build_info{{{operator},version="1",mode="kubernetes"}}'
    series = {f"{metric}{{{operator}}}": "0+15x8", f"{metric}{{{other}}}": "0+900x8", info: "1x8"}
    if metric.endswith("bytes"):
        shown(Uid.OPERATOR, title, series, {f"{metric}{{{operator}}}": 60.0}, tmp_path)
    else:
        shown(Uid.OPERATOR, title, series, {f"{{{operator}}}": 1.0}, tmp_path)


MOVED = {"a": "0+30x2 stale", "b": "_x3 0+30x8"}
"""A counter of an executor that a plan has brought from one supervisor to another, half a minute ago."""


@pytest.mark.parametrize(
    ("uid", "title", "column", "metric"),
    [
        (Uid.TOPOLOGY, "Executors now", "A", "cpu_seconds"),
        (Uid.TOPOLOGY, "Executors now", "C", "executed_tuples"),
        (Uid.TOPOLOGY, "Executors now", "E", "failed_tuples"),
        (Uid.ENFORCEMENT, "Limit, use and waiting", "B", "cpu_seconds"),
        (Uid.ENFORCEMENT, "Limit, use and waiting", "C", "cpu_seconds"),
        (Uid.ENFORCEMENT, "Limit, use and waiting", "D", "throttled_seconds"),
    ],
)
def test_an_executor_that_was_moved_has_one_row(uid: Uid, title: str, column: str, metric: str, tmp_path: Path) -> None:
    """Windows grow with the time looked at: over a week it would have two for ten minutes."""
    own = 'topology_id="t-1",component="c",executor="1-1",port="6700"'
    series = {f'storm_executor_{metric}_total{{{own},supervisor="{host}"}}': values for host, values in MOVED.items()}
    limit = f"storm_executor_cpu_limit_cores{{{own}"
    series |= {f'{limit},supervisor="a"}}': "1x2 stale", f'{limit},supervisor="b"}}': "_x3 1x8"}
    labels = {
        Uid.TOPOLOGY: '{component="c",executor="1-1",port="6700",supervisor="b"}',
        Uid.ENFORCEMENT: '{topology_id="t-1",component="c",executor="1-1",supervisor="b"}',
    }
    shown(uid, title, series, {labels[uid]: 0.5}, tmp_path, column=column)


@pytest.mark.parametrize(
    ("title", "metric"),
    [
        ("Traffic between supervisors: predicted and measured", "last_plan_inter_supervisor_tuples_per_second"),
        ("Complete latency: predicted and measured", "last_plan_complete_latency_seconds"),
    ],
)
def test_plans_of_topologies_of_one_name_on_two_clusters_are_two(title: str, metric: str, tmp_path: Path) -> None:
    figures = {"n": {"before": 100, "predicted": 5, "measured": 4}, "m": {"before": 10, "predicted": 1, "measured": 90}}
    expected = {
        f'{{nimbus="{nimbus}",topology="t",stage="{stage}"}}': float(value)
        for nimbus, stages in figures.items()
        for stage, value in stages.items()
    }
    series = {f"storm_operator_{metric}{labels}": f"{value}x8" for labels, value in expected.items()}
    shown(Uid.DECISIONS, title, series, expected, tmp_path)


def test_forecasts_of_topologies_of_one_name_on_two_clusters_do_not_make_up_for_each_other(tmp_path: Path) -> None:
    figures = {"n": (100, 150), "m": (100, 50)}
    series = {}
    for nimbus, (arrived, forecast) in figures.items():
        labels = f'{{nimbus="{nimbus}",topology="t",component="c"}}'
        series[f"storm_operator_component_arrival_tuples_per_second{labels}"] = f"{arrived}x8"
        series[f"storm_operator_component_forecast_arrival_tuples_per_second{labels}"] = f"{forecast}x8"
    errors = {"n": 0.5, "m": -0.5}
    expected = {f'{{nimbus="{nimbus}",topology="t",component="c"}}': error for nimbus, error in errors.items()}
    shown(Uid.DECISIONS, "Error of the forecast", series, expected, tmp_path)


@pytest.mark.parametrize(("before", "plans"), [(0, 1), (0, 3), (5, 1), (5, 2)])
@pytest.mark.parametrize("uid", [Uid.OVERVIEW, Uid.DECISIONS], ids=lambda uid: uid.value)
def test_each_plan_is_one_in_one_bar_whenever_it_ended(uid: Uid, before: int, plans: int, tmp_path: Path) -> None:
    """Also one that ended between the last scrape of one bar and the first of the next."""
    scrape_seconds, look = 15, Looked(0.0, 3600.0)
    panel = panel_of(uid, "Plans by what became of them")
    (target,) = panel["targets"]
    step = look.step_seconds(panel)
    chosen = look.built_in(step) | {"cluster": ".*", "topology": ".*"}
    bars = [10 + step * place for place in range(1, 5)]
    counter = 'storm_operator_topology_plans_total{nimbus="n",topology="t",state="Verified"}'
    tests = []
    for scrape in range(int(bars[1]) // scrape_seconds, int(bars[2]) // scrape_seconds + 2):
        bar = next(end for end in bars if end >= scrape * scrape_seconds)
        tests.append(
            {
                "interval": f"{scrape_seconds}s",
                "input_series": [{"series": counter, "values": f"{before}x{scrape - 1} {before + plans}x60"}],
                "promql_expr_test": [
                    {
                        "expr": substituted(target["expr"], chosen),
                        "eval_time": f"{end:.0f}s",
                        "exp_samples": [{"labels": '{state="Verified"}', "value": plans if end == bar else 0}],
                    }
                    for end in bars
                ],
            }
        )
    by_promtool(tests, tmp_path)

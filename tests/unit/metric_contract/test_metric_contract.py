"""The contract keeps Prometheus' conventions, and the reference page says what the contract says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from storm_operator.metric_contract import AGENT_METRICS, METRICS, OPERATOR_METRICS, Kind, Metric

ROOT = Path(__file__).parents[3]
UNIT_ENDS = {"seconds": "_seconds", "bytes": "_bytes", "cores": "_cores", "ratio": "_ratio"}
RATE = "tuples per second"


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_follow_the_conventions(metric: Metric) -> None:
    stem = metric.name.removesuffix("_total")
    assert re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", metric.name)
    assert (metric.kind is Kind.COUNTER) == metric.name.endswith("_total")
    assert not stem.endswith(("_count", "_sum", "_bucket", "_created"))
    assert not re.search("milli|percent|_ms$|_mb$", metric.name)
    if metric.unit in UNIT_ENDS:
        assert stem.endswith(UNIT_ENDS[metric.unit])
    if metric.unit == RATE:
        assert stem.endswith("_tuples_per_second")
    if stem.endswith("_info"):
        assert metric.unit == "always 1"


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_each_says_what_it_means_and_how_many_there_are(metric: Metric) -> None:
    assert metric.meaning.rstrip().endswith(".")
    assert metric.one_for_each
    assert len(set(metric.labels)) == len(metric.labels)
    assert all(re.fullmatch(r"[a-z][a-z_]*", label) for label in metric.labels)
    assert not {"le", "quantile", "job", "instance"} & set(metric.labels)
    assert list(metric.buckets) == sorted(set(metric.buckets))


def test_no_name_is_used_twice() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)


def test_agents_speak_of_their_supervisor_and_the_operator_of_clusters() -> None:
    assert all(metric.labels[0] == "supervisor" for metric in AGENT_METRICS)
    of_process = {metric.labels for metric in OPERATOR_METRICS if "nimbus" not in metric.labels}
    assert of_process == {("version", "mode"), (), ("kind",)}
    assert all(metric.labels[0] == "nimbus" for metric in OPERATOR_METRICS if "nimbus" in metric.labels)


@pytest.mark.parametrize(
    "name",
    [
        "storm_supervisor_cpu_limit_cores",
        "storm_supervisor_throttled_seconds_total",
        "storm_supervisor_cpu_seconds_total",
    ],
)
def test_what_only_the_machines_cgroup_tells_says_which_value_of_the_chart_it_takes(name: str) -> None:
    """It is not the chart's default."""
    (metric,) = (one for one in AGENT_METRICS if one.name == name)
    assert "agent.enforceExecutors" in metric.one_for_each + metric.meaning


def test_an_agent_can_read_it_without_large_libraries() -> None:
    program = (
        "import sys, storm_operator.metric_contract; print(sorted({'numpy', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_page_is_what_the_contract_says() -> None:
    done = subprocess.run([sys.executable, str(ROOT / ".ci/metric_reference.py"), "--check"], check=False)
    assert done.returncode == 0

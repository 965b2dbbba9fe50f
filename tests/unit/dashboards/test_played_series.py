"""The series that the dashboards' speed is measured with: those of the contract, and of the right kind."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from played_series import PlayedCluster
from played_values import Played, checked, write_openmetrics
from prometheus_client.openmetrics.parser import text_fd_to_metric_families

from storm_operator.metric_contract import BY_NAME, Exporter, Kind

SMALL = PlayedCluster(topologies=2, executors_each=8, supervisors=4, targets_each=2)
TIMES = np.arange(1_000_000.0, 1_003_600.0, 60.0)


def test_every_metric_of_executors_and_topologies_is_played() -> None:
    played = {series.name for series in SMALL.series()}
    stems = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in played}
    missing = {name for name in BY_NAME if name not in stems and not name.startswith("process_")}
    assert missing <= {"storm_supervisor_coordinate_seconds", "storm_agent_build_info"}


def test_no_series_is_played_twice() -> None:
    keys = [(series.name, tuple(sorted(series.labels.items()))) for series in SMALL.series()]
    assert len(keys) == len(set(keys))


def test_counters_never_fall() -> None:
    for series in SMALL.series():
        if series.counter:
            assert (np.diff(series.values(TIMES, TIMES[0])) >= 0).all(), series


def test_promtool_can_read_it() -> None:
    output = io.StringIO()
    some = [series for series in SMALL.series() if series.name.startswith("storm_supervisor_cpu")]
    count = write_openmetrics(some, TIMES, TIMES[0], output)
    read: Any = text_fd_to_metric_families  # the library has no types for it
    families = list(read(io.StringIO(output.getvalue())))
    assert sum(len(family.samples) for family in families) == count == len(some) * len(TIMES)


@pytest.mark.parametrize("name", ["storm_no_such_metric", "storm_operator_topologies"])
def test_what_the_contract_does_not_know_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        checked(Played(name, {"colour": "red"}, 1.0))


def test_the_contract_has_histograms_of_both_exporters() -> None:
    histograms = {metric.exporter for metric in BY_NAME.values() if metric.kind is Kind.HISTOGRAM}
    assert histograms == {Exporter.AGENT, Exporter.OPERATOR}

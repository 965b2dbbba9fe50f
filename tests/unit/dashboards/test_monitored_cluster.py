"""What is played beside a monitored cluster looks like what is really exported."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from monitored_cluster import PLAYED, played, write_pipeline_figures
from storm_operator.kube import run_command
from storm_operator.metric_contract import BY_NAME
from storm_pipeline.metrics import METRICS as PIPELINE_METRICS


@pytest.fixture
def samples(tmp_path: Path) -> list[tuple[str, dict[str, str]]]:
    write_pipeline_figures(tmp_path)
    status, body = played("/metrics", 100.0, tmp_path)
    assert status == 200
    families = text_string_to_metric_families(body.decode())
    return [(sample.name, sample.labels) for family in families for sample in family.samples]


def test_played_series_have_the_labels_of_the_contract(samples: list[tuple[str, dict[str, str]]]) -> None:
    labels = {name: set(metric.labels) for name, metric in BY_NAME.items()}
    labels |= {metric.name: {"name", *metric.labels} for metric in PIPELINE_METRICS}
    assert {name for name, _ in samples} >= set(PLAYED)
    assert [(name, found) for name, found in samples if set(found) != labels[name]] == []


def test_played_watches_are_those_that_the_operator_has(samples: list[tuple[str, dict[str, str]]]) -> None:
    kinds = {labels["kind"] for name, labels in samples if name == "storm_operator_watch_age_seconds"}
    source = inspect.getsource(run_command)
    assert kinds
    assert all(f'"{kind}"' in source for kind in kinds)
    assert source.count("WatchCanary(") == len(kinds)


def test_what_is_played_has_a_reason(samples: list[tuple[str, dict[str, str]]]) -> None:
    of_pipeline = {metric.name for metric in PIPELINE_METRICS}
    assert {name for name, _ in samples} - of_pipeline == set(PLAYED)

"""What is played beside a monitored cluster looks like what is really exported."""

from __future__ import annotations

import inspect

import pytest
from prometheus_client.parser import text_string_to_metric_families

from monitored_cluster import PLAYED, played
from pipeline_figures import AGE_SECONDS, LAST_RUN, NEWEST_ROW, pipeline_figures
from storm_operator.kube import leader
from storm_operator.metric_contract import BY_NAME
from storm_pipeline.metrics import METRICS as PIPELINE_METRICS

NOW_SECONDS = 1_900_000_000.0


@pytest.fixture
def samples() -> list[tuple[str, dict[str, str]]]:
    status, body = played("/metrics", 100.0, pipeline_figures(NOW_SECONDS))
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
    source = inspect.getsource(leader)
    assert kinds
    assert all(f'"{kind}"' in source for kind in kinds)
    assert source.count("WatchCanary(") == len(kinds)


def test_what_is_played_has_a_reason(samples: list[tuple[str, dict[str, str]]]) -> None:
    of_pipeline = {metric.name for metric in PIPELINE_METRICS}
    assert {name for name, _ in samples} - of_pipeline == set(PLAYED)


def test_kept_figures_of_jobs_are_of_every_metric_and_every_job_says_what_it_read(
    samples: list[tuple[str, dict[str, str]]],
) -> None:
    assert {name for name, _ in samples} >= {metric.name for metric in PIPELINE_METRICS}
    ran = {labels["name"] for name, labels in samples if name == LAST_RUN}
    assert ran == {
        labels["name"] for name, labels in samples if name == "storm_pipeline_job_rows" and labels["kind"] == "read"
    }


def test_kept_figures_of_jobs_look_as_old_as_it_is_said() -> None:
    families = list(text_string_to_metric_families("\n".join([*pipeline_figures(NOW_SECONDS), ""])))
    (ran,) = (family for family in families if family.name == LAST_RUN)
    assert max(sample.value for sample in ran.samples) == pytest.approx(NOW_SECONDS - AGE_SECONDS)
    (rows,) = (family for family in families if family.name == NEWEST_ROW)
    assert max(sample.value for sample in rows.samples) == pytest.approx(min(sample.value for sample in ran.samples))

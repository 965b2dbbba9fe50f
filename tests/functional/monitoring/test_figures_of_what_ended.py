"""A figure is of now: what a real Prometheus answers where series ended within the time that is looked at."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from dashboards.all_of_them import documents
from dashboards.frame import Uid
from dashboards.preview.asking import answers_of
from dashboards.preview.choices import Chosen, Looked
from dashboards.preview.prometheus import Prometheus, Series
from prometheus_server import PrometheusServer, program

SCRAPE_SECONDS = 15
HOUR_SECONDS = 3600
LAST_WORD_SECONDS = HOUR_SECONDS // 2
EVERYTHING = Chosen(dict.fromkeys(("cluster", "topology", "topology_id"), ".*"), {}, {})

SERIES: Mapping[str, Callable[[int], int]] = {
    'storm_operator_acked_tuples_per_second{nimbus="n",topology="t"}': lambda _: 100,
    'storm_operator_last_pass_age_seconds{nimbus="n"}': lambda _: 5,
    'storm_operator_traffic_tuples_per_second{nimbus="n",topology="t",level="worker"}': lambda _: 60,
    'storm_operator_traffic_tuples_per_second{nimbus="n",topology="t",level="inter_supervisor"}': lambda _: 40,
    'storm_complete_latency_seconds_bucket{supervisor="s",topology_id="t-1-1",le="0.1"}': lambda at: at,
    'storm_complete_latency_seconds_bucket{supervisor="s",topology_id="t-1-1",le="+Inf"}': lambda at: at,
}
FIGURES = [
    (Uid.OVERVIEW, "Completed"),
    (Uid.OPERATOR, "Last pass ended"),
    (Uid.TRAFFIC, "Share of all traffic"),
    (Uid.TOPOLOGY, "Latency p99"),
]
each_figure = pytest.mark.parametrize(("uid", "title"), FIGURES, ids=[title for _, title in FIGURES])


@pytest.fixture(scope="module")
def begin() -> int:
    """What is older than this hour and the one before a server may delete."""
    return int(time.time()) // HOUR_SECONDS * HOUR_SECONDS - HOUR_SECONDS


@pytest.fixture(scope="module")
def prometheus(begin: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It has heard all of `SERIES` for half an hour, and of latency, as of a topology that is idle, for longer."""
    folder = tmp_path_factory.mktemp("ended")
    lines = []
    for name, value in SERIES.items():
        end = HOUR_SECONDS if "latency" in name else LAST_WORD_SECONDS
        times = range(0, end, SCRAPE_SECONDS)
        lines += [f"{name} {value(min(at, LAST_WORD_SECONDS))} {begin + at}\n" for at in times]
    (folder / "metrics").write_text("".join(lines) + "# EOF\n")
    load = [program("promtool"), "tsdb", "create-blocks-from", "openmetrics", f"{folder}/metrics", f"{folder}/data"]
    subprocess.run(load, check=True, capture_output=True)
    with PrometheusServer(folder, {"global": {"scrape_interval": "1h"}}) as server:
        yield Prometheus(server.url)


def shown(uid: Uid, title: str, prometheus: Prometheus, looked: Looked) -> tuple[Series, ...]:
    panel = next(one for one in documents()[uid]["panels"] if one["title"] == title)
    (answer,) = answers_of(panel, prometheus, looked, EVERYTHING)
    assert not answer.error
    return answer.series


@each_figure
def test_a_figure_has_its_value_and_its_course_while_there_is_something(
    uid: Uid, title: str, prometheus: Prometheus, begin: int
) -> None:
    looked = Looked(begin, begin + LAST_WORD_SECONDS - 2 * SCRAPE_SECONDS, SCRAPE_SECONDS)
    (series,) = shown(uid, title, prometheus, looked)
    assert len(series.points) > 50
    assert series.points[-1][1] > 0.0


@each_figure
def test_a_figure_of_what_has_ended_is_empty(uid: Uid, title: str, prometheus: Prometheus, begin: int) -> None:
    """Grafana would take the last value of the course, of half an hour ago, for that of now."""
    assert shown(uid, title, prometheus, Looked(begin, begin + HOUR_SECONDS - SCRAPE_SECONDS, SCRAPE_SECONDS)) == ()

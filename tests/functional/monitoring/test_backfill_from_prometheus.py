"""A backfill from a real Prometheus, whose own answers tell who was there while an agent was silent."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from prometheus_server import PrometheusServer, program
from scraped_agents import SCRAPE_SECONDS, executor, open_metrics
from storm_pipeline.prometheus_history import PERIODS_ASKED_AT_ONCE, PrometheusHistory

PERIOD_SECONDS = 10
PERIODS = 3 * PERIODS_ASKED_AT_ONCE
HOUR_SECONDS = 3600


def test_an_executor_whose_agent_is_silent_beyond_what_is_asked_at_once_is_unknown_and_not_gone(
    tmp_path: Path,
) -> None:
    begin = int(time.time()) // HOUR_SECONDS * HOUR_SECONDS - HOUR_SECONDS  # what is older a server may delete
    end = begin + PERIODS * PERIOD_SECONDS
    silent, gone = (begin + 300, begin + 1300), begin + 400
    series = [
        *executor("h1", "lines", "1-1", begin, end + SCRAPE_SECONDS),
        *executor("h1", "split", "2-2", begin, end + SCRAPE_SECONDS),
        *executor("h2", "split", "3-3", begin, end + SCRAPE_SECONDS, [silent]),
        *executor("h3", "split", "4-4", begin, gone),
    ]
    text = tmp_path / "metrics"
    text.write_text(open_metrics(series))
    load = [program("promtool"), "tsdb", "create-blocks-from", "openmetrics", str(text), str(tmp_path / "data")]
    subprocess.run(load, check=True, capture_output=True)
    with PrometheusServer(tmp_path, {"global": {"scrape_interval": "1h"}}) as server:
        passes = list(PrometheusHistory(server.url).passes(begin, end, PERIOD_SECONDS))
    executed: dict[int, list[float | None]] = {2: [], 3: [], 4: []}
    for made in passes:
        assert made is not None
        assert made.snapshot is not None
        for one in made.snapshot.topologies[0].executors_of("split"):
            load_of = made.snapshot.loads.get(one)
            executed[one.task_start].append(load_of.executed_per_second if load_of is not None else None)
    assert executed[2] == pytest.approx([100.0] * PERIODS)
    assert executed[3] == pytest.approx([100.0] * 30 + [None] * 100 + [100.0] * (PERIODS - 130))
    assert executed[4] == pytest.approx([100.0] * 40)

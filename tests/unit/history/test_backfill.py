"""A backfill records from Prometheus' raw samples what the operator would have recorded live."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from http_server import serving
from storm_operator.history.store import HistoryStore
from storm_pipeline.cli import app

START = 1_767_225_600
TOPOLOGY = "words-1-1767225600"
SCRAPE_SECONDS = 5
RESET_AT = START + 62
"""The worker of `split` starts anew here: its counters begin at 0."""


def series(name: str, per_second: float, reset: bool = False, /, **labels: object) -> dict[str, Any]:
    """A counter scraped every five seconds for two minutes."""
    values = []
    for at in range(START, START + 121, SCRAPE_SECONDS):
        begun = RESET_AT if reset and at >= RESET_AT else START - 100
        values.append([float(at), f"{per_second * (at - begun)}"])
    metric = {"__name__": name, "job": "agents", **{key: str(value) for key, value in labels.items()}}
    return {"metric": metric, "values": values}


def all_series() -> list[dict[str, Any]]:
    found = []
    for component, executor, port, reset in (("lines", "1-1", 6700, False), ("split", "2-2", 6701, True)):
        where = {"supervisor": "h1", "topology_id": TOPOLOGY, "component": component, "executor": executor}
        where["port"] = str(port)
        found += [
            series("storm_executor_cpu_seconds_total", 0.25, reset, **where),
            series("storm_executor_executed_tuples_total", 100.0, reset, **where),
            series("storm_executor_emitted_tuples_total", 100.0, reset, **where),
            series("storm_executor_queue_length", 0.0, **where),
        ]
    of_task = {"supervisor": "h1", "topology_id": TOPOLOGY, "stream": "default"}
    found += [
        series("storm_task_executed_tuples_total", 100.0, True, task=2, source_component="lines", **of_task),
        series("storm_task_transferred_tuples_total", 100.0, task=1, **of_task),
        series("storm_traffic_tuples_total", 100.0, source_task=1, target_task=2, **of_task),
        series("storm_supervisor_cpu_capacity_cores", 0.0, supervisor="h1"),
    ]
    return found


def run(history: Path | str, url: str, *more: str) -> Any:
    times = ("--from", "2026-01-01T00:00:00", "--to", "2026-01-01T00:02:00")
    arguments = ["backfill", str(history), "--prometheus", url, "--cluster", "blue", *times, *more]
    return CliRunner().invoke(app, arguments)


def rows(history: Path, table: str) -> list[dict[str, Any]]:
    import pyarrow.dataset as ds

    found: list[dict[str, Any]] = ds.dataset(history / table, partitioning="hive").to_table().to_pylist()
    return sorted(found, key=lambda row: row["period_end"])


def test_counters_become_rates_and_a_reset_is_no_negative_one(tmp_path: Path) -> None:
    body = json.dumps({"status": "success", "data": {"result": all_series()}}).encode()
    with serving(lambda _: (200, body)) as url:
        done = run(tmp_path, url)
        assert done.exit_code == 0, done.output
        before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
        assert run(tmp_path, url).exit_code == 0
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    executors = rows(tmp_path, "executors")
    split = [row for row in executors if row["component"] == "split"]
    rates = [row["executed_per_second"] for row in split]
    assert len(split) == 12
    assert {row["component_kind"] for row in split} == {"bolt"}
    assert {row["component_kind"] for row in executors if row["component"] == "lines"} == {"spout"}
    ordinary = [rate for row, rate in zip(split, rates, strict=True) if row["period_end"].timestamp() != START + 70]
    assert ordinary == pytest.approx([100.0] * 11)
    assert all(rate >= 0.0 for rate in rates)
    pairs = rows(tmp_path, "pairs")
    assert pairs[0]["tuples_per_second"] == pytest.approx(100.0)
    assert (pairs[0]["source_task"], pairs[0]["target_task"], pairs[0]["target_port"]) == (1, 2, 6701)
    assert {row["source"] for row in rows(tmp_path, "periods")} == {"backfill"}


def test_what_metrics_do_not_tell_is_not_recorded_as_if_it_were_known(tmp_path: Path) -> None:
    idle = series("storm_supervisor_cpu_capacity_cores", 0.0, supervisor="h2")
    assert backfilled_from([*all_series(), idle], tmp_path).exit_code == 0
    there = rows(tmp_path, "supervisors")
    assert {(row["supervisor_id"], row["slots"], row["availability"]) for row in there} == {
        ("h1", None, None),
        ("h2", None, None),
    }
    assert {(row["component"], row["stateful"]) for row in rows(tmp_path, "executors")} == {
        ("lines", None),
        ("split", None),
    }


def test_periods_have_the_length_asked_for_and_count_all_that_flowed(tmp_path: Path) -> None:
    body = json.dumps({"status": "success", "data": {"result": all_series()}}).encode()
    with serving(lambda _: (200, body)) as url:
        assert run(tmp_path, url).exit_code == 0
    periods = rows(tmp_path, "periods")
    assert [row["period_end"].timestamp() for row in periods] == [START + 10.0 * number for number in range(1, 13)]
    assert {row["period_seconds"] for row in periods} == {10.0}, "no gap where the next one begins"
    flowed = sum(row["tuples_per_second"] * row["period_seconds"] for row in rows(tmp_path, "pairs"))
    assert flowed == pytest.approx(100.0 * 120.0)


def test_what_has_ended_is_in_no_later_period(tmp_path: Path) -> None:
    ended = START + 60
    shorter = [
        {**one, "values": [value for value in one["values"] if value[0] <= ended]}
        if one["metric"].get("executor") == "2-2" or one["metric"].get("task") == "2"
        else one
        for one in all_series()
    ]
    body = json.dumps({"status": "success", "data": {"result": shorter}}).encode()
    with serving(lambda _: (200, body)) as url:
        assert run(tmp_path, url).exit_code == 0
    seen = [row["period_end"].timestamp() for row in rows(tmp_path, "executors") if row["component"] == "split"]
    assert max(seen) == ended


def test_an_executor_that_could_not_be_scraped_for_a_while_is_unknown_and_not_gone(tmp_path: Path) -> None:
    other = {"supervisor": "h2", "topology_id": TOPOLOGY, "component": "split", "executor": "3-3", "port": "6700"}
    other_host = [series(f"storm_executor_{name}_tuples_total", 100.0, **other) for name in ("executed", "emitted")]
    silent = range(START + 61, START + 81)
    with_hole = [{**one, "values": [v for v in one["values"] if int(v[0]) not in silent]} for one in other_host]
    body = json.dumps({"status": "success", "data": {"result": all_series() + with_hole}}).encode()
    with serving(lambda _: (200, body)) as url:
        assert run(tmp_path, url).exit_code == 0
    split = [row for row in rows(tmp_path, "executors") if row["task_start"] == 3]
    assert len(split) == 12
    unknown = [row["period_end"].timestamp() - START for row in split if row["executed_per_second"] is None]
    assert unknown == [70.0, 80.0]


def test_a_bolt_stays_one_while_nobody_scrapes_what_feeds_it(tmp_path: Path) -> None:
    silent = range(START + 61, START + 81)
    with_hole = [
        {**one, "values": [v for v in one["values"] if int(v[0]) not in silent]}
        if one["metric"].get("component") == "lines"
        else one
        for one in all_series()
    ]
    assert backfilled_from(with_hole, tmp_path).exit_code == 0
    split = [row for row in rows(tmp_path, "executors") if row["component"] == "split"]
    assert [row["component_kind"] for row in split] == ["bolt"] * 12
    edges = [row["period_end"].timestamp() - START for row in rows(tmp_path, "edges")]
    assert edges == [10.0 * number for number in range(1, 13) if number not in (7, 8)]


def test_a_time_without_any_metrics_has_no_period(tmp_path: Path) -> None:
    silent = range(START + 61, START + 81)
    with_hole = [{**one, "values": [v for v in one["values"] if int(v[0]) not in silent]} for one in all_series()]
    body = json.dumps({"status": "success", "data": {"result": with_hole}}).encode()
    with serving(lambda _: (200, body)) as url:
        said = run(tmp_path, url).output.replace("\n", "")
    assert "10 periods written" in said
    assert "2 without any metrics" in said


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (200, b'{"status": "success", "data": 1}', "unknown form"),
        (400, b'{"status": "error", "error": "parse error"}', "parse error"),
        (502, b"<html>", "answered 502 with something that is not JSON"),
    ],
)
def test_a_server_that_gives_no_samples_is_said_in_a_sentence(
    status: int, body: bytes, words: str, tmp_path: Path
) -> None:
    with serving(lambda _: (status, body)) as url:
        done = run(tmp_path, url.replace("//", "//reader:secret@"))
    said = " ".join(done.output.split())
    assert done.exit_code == 1
    assert words in said
    assert f"{url} " in said
    assert "secret" not in said
    assert "Traceback" not in done.output


def test_what_operator_and_pipeline_say_of_themselves_is_not_asked_for(tmp_path: Path) -> None:
    with serving(lambda _: (400, b'{"status": "error", "error": "no"}')) as url:
        said = run(tmp_path, url).output
    assert '__name__!~"storm_(operator|pipeline)_.*"' in said.replace("\n", "")


@pytest.mark.parametrize("url", ["prometheus:9090", "127.0.0.1:9090", "ftp://prometheus"])
def test_an_address_that_is_no_url_is_refused_before_anything_is_written(url: str, tmp_path: Path) -> None:
    done = run(tmp_path / "history", url)
    assert done.exit_code == 2
    assert f"--prometheus is '{url}': expected a URL such as" in " ".join(done.output.replace("│", " ").split())
    assert not (tmp_path / "history").exists()


def test_a_name_that_spark_would_not_read_as_it_is_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "http://127.0.0.1:9", "--cluster", "Köln")
    assert done.exit_code == 2
    assert "--cluster: the name of a cluster" in done.output
    assert list(tmp_path.iterdir()) == []


def test_times_that_are_none_are_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "http://127.0.0.1:1", "--from", "yesterday")
    assert done.exit_code == 2
    assert "yesterday" in done.output


def backfilled_from(found: list[dict[str, Any]], history: Path) -> Any:
    body = json.dumps({"status": "success", "data": {"result": found}}).encode()
    with serving(lambda _: (200, body)) as url:
        return run(history, url)


def test_that_an_earlier_backfill_of_the_same_times_stays_is_said(tmp_path: Path) -> None:
    one, both = ([of for of in all_series() if of["metric"].get("component") != name] for name in ("split", "nobody"))
    first, second = (backfilled_from(found, tmp_path) for found in (one, both))
    assert "were there already" not in first.output
    assert "were there already" in second.output
    assert {row["component"] for row in rows(tmp_path, "executors")} == {"lines"}


@pytest.mark.parametrize("place", ["file", "nonsense://bucket"])
def test_history_that_cannot_be_written_to_is_said_before_prometheus_is_asked(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    history = place if "://" in place else str(tmp_path / place)
    done = run(history, "http://127.0.0.1:1")
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"HISTORY {history}: nothing can be written there: ")


def test_a_disk_that_is_full_in_the_midst_ends_a_backfill_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HistoryStore, "publish", full)
    body = json.dumps({"status": "success", "data": {"result": all_series()}}).encode()
    with serving(lambda _: (200, body)) as url:
        done = run(tmp_path, url)
    assert done.exit_code == 1
    assert done.stderr == f"{tmp_path} cannot be written to any more: no space left on device\n"


def full(_: HistoryStore) -> None:
    raise OSError("no space left on device")

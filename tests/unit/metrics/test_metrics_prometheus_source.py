"""Answers of a Prometheus server, good and bad. The real server is asked in tests/functional/metrics."""

from __future__ import annotations

import json
import math
import re
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

from http_server import serving
from storm_operator import prometheus_api
from storm_operator.adapters.metrics.addresses import parse_agents
from storm_operator.adapters.metrics.prometheus import PrometheusSource
from storm_operator.assembly import assemble
from storm_operator.cli_snapshot import metrics_source
from storm_operator.core.metrics_window import MetricsWindow, SeriesKey
from storm_operator.core.prometheus_matrix import LABELS_ADDED_BY_PROMETHEUS, METRIC_PREFIX, NOT_OF_AGENTS, parse_matrix
from storm_operator.core.server_url import checked_url, without_userinfo
from storm_operator.kube import connecting
from storm_operator.kube.connecting import RunnerSettings
from storm_operator.kube.submission import JobSettings
from storm_operator.metric_contract import AGENT_METRICS, METRICS, Exporter

ROOT = Path(__file__).parents[3]
COUNT = SeriesKey.of("storm_x_total", {"supervisor": "h1"})
IGNORED = frozenset({"__name__", "instance", "job"})


def series(*values: list[Any], **labels: str) -> dict[str, Any]:
    return {"metric": {"__name__": "storm_x_total", "supervisor": "h1", **labels}, "values": list(values)}


def read(status: int, body: object) -> MetricsWindow:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with serving(lambda _: (status, content)) as url:
        return PrometheusSource(url).read_window(100.0, 20.0)


def answer(*result: object) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(result)}}


def test_samples_become_a_window() -> None:
    window = read(200, answer(series([85.0, "100"], [95.5, "400"], instance="h1:9464", job="agents")))
    assert (window.series[COUNT].increase, window.series[COUNT].span_seconds) == (300.0, 10.5)
    assert window.problems == ()


def test_what_the_scrape_configurations_of_this_project_add_is_left_out_of_account() -> None:
    jobs = yaml.safe_load((ROOT / "monitoring" / "prometheus.yml").read_text())["scrape_configs"]
    added = {name: "x" for job in jobs for static in job["static_configs"] for name in static["labels"]}
    pod_monitor = (ROOT / "charts" / "storm" / "templates" / "podmonitor.yaml").read_text()
    added |= dict.fromkeys(re.findall(r"targetLabel: (\w+)", pod_monitor), "x")
    assert added == {"cluster": "x"}
    window = read(200, answer(series([85.0, "100"], [95.5, "400"], **added)))
    assert window.series[COUNT].increase == 300.0


def test_a_selector_narrows_what_every_command_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clusters whose supervisors are called the same: their series differ in `cluster` alone, which is ignored."""
    queries: list[str] = []

    def answered(_: str, query: str, *__: object) -> object:
        queries.append(query)
        return answer()["data"]

    monkeypatch.setattr(prometheus_api, "_ask", answered)
    monkeypatch.setattr(connecting, "NimbusClient", Mock(return_value=Mock(nimbus_conf=dict)))
    settings = RunnerSettings(JobSettings("storm"), 9464, "http://p:9090", match='cluster="blue"')
    found = connecting.discover("nimbus:6627", settings)
    for source in (
        metrics_source([], "http://p:9090", list, 9464, 'cluster="blue"'),
        assemble(replace(found, zookeeper="zookeeper:2181"), Mock()).metrics,
    ):
        source.read_window(100.0, 20.0)
    assert len(queries) == 2
    assert all(query.endswith(',cluster="blue"}[20000ms]') for query in queries)


def test_values_that_are_no_numbers_come_through() -> None:
    parsed = parse_matrix({"result": [series([85.0, "NaN"], [95.0, "+Inf"])]}, IGNORED)
    assert math.isnan(parsed[COUNT][0].value)
    assert math.isinf(parsed[COUNT][1].value)


def joined(*read: dict[str, Any], key: SeriesKey = COUNT) -> list[tuple[float, float]]:
    return [(sample.timestamp_seconds, sample.value) for sample in parse_matrix({"result": [*read]}, IGNORED)[key]]


def test_an_agent_scraped_under_two_jobs_is_read_by_one_of_them() -> None:
    """In order of time, a page that was long on its way would be a step back of the counter, as after a restart."""
    slow, fast = series([85.0, "102"], [95.0, "112"], job="a"), series([85.5, "100"], [95.5, "110"], job="b")
    assert joined(slow, fast) == joined(fast, slow) == [(85.0, 102), (95.0, 112)]


def test_who_read_more_of_an_agent_is_who_is_read_for_all_of_its_series() -> None:
    """The thread that a series is of was there only for the last reading of the one, for two of the other."""
    late_name = SeriesKey.of("storm_late_total", {"supervisor": "h1"})
    late = [
        series([95.0, "5"], job="a", __name__=late_name.name),
        series([93.0, "3"], [99.0, "9"], job="b", __name__=late_name.name),
    ]
    told_by_a = series([80.0, "1"], [85.0, "2"], [90.0, "3"], [95.0, "4"], job="a")
    told_by_b = series([93.0, "3"], [99.0, "5"], job="b")
    assert joined(*late, told_by_a, told_by_b)[-1] == (95.0, 4)
    assert joined(*late, told_by_a, told_by_b, key=late_name) == [(95.0, 5)]


def test_an_agent_that_another_takes_over_to_scrape_goes_on() -> None:
    """Its pod has another address after a restart, or one of two servers ends."""
    ended, went_on = series([75.0, "1"], [80.0, "5"], [85.0, "6"], job="a"), series([84.0, "5"], [94.0, "7"], job="b")
    assert joined(ended, went_on) == [(75.0, 1), (80.0, 5), (85.0, 6), (94.0, 7)]


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, {"status": "error", "error": "parse error"}, "refused the query"),
        (502, b"<html>Bad Gateway</html>", "answered 502 with something that is not JSON"),
        (200, [], "refused the query"),
        (200, {"status": "success", "data": {"result": [{"metric": {}}]}}, "answered in an unknown form"),
        (200, {"status": "success"}, "answered in an unknown form"),
        (200, answer([]), "answered in an unknown form"),
        (200, answer({"metric": [], "values": []}), "answered in an unknown form"),
        (200, answer(series([10**400, "1"])), "answered in an unknown form"),
        (200, b"[" * 100_000, "answered 200 with something that is not JSON"),
        (200, answer(), "has no storm_* series in this window"),
    ],
)
def test_answers_that_are_of_no_use_are_problems(status: int, body: object, message: str) -> None:
    window = read(status, body)
    assert window.series == {}
    assert len(window.problems) == 1
    assert message in window.problems[0]


def test_server_that_is_not_there_is_a_problem() -> None:
    with serving(lambda _: (200, b"")) as url:
        pass
    window = PrometheusSource(url, timeout_seconds=1.0).read_window(100.0, 20.0)
    assert re.search(r" did not answer: (\[Errno \d+\] )?Connection refused$", window.problems[0])


def test_server_that_hangs_up_is_a_problem_in_plain_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            with server.accept()[0] as peer:
                peer.recv(10_000)

        threading.Thread(target=hang_up, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        window = PrometheusSource(url, timeout_seconds=5.0).read_window(100.0, 20.0)
    plain = r"Remote end closed connection without response|\[Errno \d+\] Connection reset by peer"
    assert re.search(rf" did not answer: ({plain})$", window.problems[0])


def test_no_proxy_is_asked_for_a_server_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one elsewhere it is said that the proxy is in the way, and not that server."""
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    window = read(200, answer(series([85.0, "100"], [95.5, "400"])))
    assert window.problems == ()
    (problem,) = PrometheusSource("http://prometheus.example").read_window(100.0, 20.0).problems
    assert re.search(r" through the proxy that the environment names: (\[Errno \d+\] )?Connection refused$", problem)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_server_that_is_elsewhere_is_asked_the_same_there(status: int) -> None:
    def answered(asked: str) -> tuple[int, bytes]:
        path, _, query = asked.partition("?")
        if path.startswith("/old/"):
            return status, asked.removeprefix("/old").encode()
        wanted = path == "/api/v1/query" and "query=" in query and "time=100.000" in query
        return (200, json.dumps(answer(series([95.0, "1"]))).encode()) if wanted else (404, b"{}")

    with serving(answered, with_query=True) as url:
        window = PrometheusSource(f"{url}/old").read_window(100.0, 20.0)
    assert window.problems == ()
    assert COUNT in window.series


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b'{"status": "error", "error": "no expression found"}'])
def test_a_bad_answer_from_where_it_was_sent_on_to_is_told_with_that_place(body: bytes) -> None:
    def answered(asked: str) -> tuple[int, bytes]:
        return (302, b"/login?token=secret") if asked == "/api/v1/query" else (200, body)

    with serving(answered) as url:
        (problem,) = PrometheusSource(url.replace("//", "//reader:secret@")).read_window(100.0, 20.0).problems
    assert problem.endswith(f" (there it was sent on to {url}/login: name the right address)")
    assert "secret" not in problem


def test_a_password_in_the_address_is_told_to_nobody_but_the_server() -> None:
    with serving(lambda _: (200, json.dumps(answer()).encode())) as url:
        secret = url.replace("//", "//reader:pass@word@")
        nothing = PrometheusSource(secret).read_window(100.0, 20.0)
    away = PrometheusSource(secret, timeout_seconds=1.0).read_window(100.0, 20.0)
    for (problem,) in (nothing.problems, away.problems):
        assert problem.startswith(f"Prometheus at {url} ")
        assert "word" not in problem


@pytest.mark.parametrize("text", ["http://reader:pass/word@h:9090", "reader:password@h:9090", "ftp://r:password@h"])
def test_an_address_that_is_none_is_told_without_what_may_be_a_password(text: str) -> None:
    for refuse in (lambda: checked_url("--prometheus", text), lambda: parse_agents([text])):
        with pytest.raises(ValueError, match="expected") as refused:
            refuse()
        assert "word" not in str(refused.value)
        assert text.rpartition("@")[2] in str(refused.value)


def test_form_is_checked() -> None:
    with pytest.raises(ValueError, match="unknown form"):
        parse_matrix({"result": [series([1.0, "abc"])]}, IGNORED)


def test_only_what_agents_have_measured_is_asked_for() -> None:
    for metric in METRICS:
        is_asked_for = metric.name.startswith(METRIC_PREFIX) and not re.fullmatch(NOT_OF_AGENTS, metric.name)
        assert is_asked_for == (metric.exporter is Exporter.AGENT), metric.name


def test_no_agent_has_a_label_that_is_left_out_of_account() -> None:
    assert not {label for metric in AGENT_METRICS for label in metric.labels} & LABELS_ADDED_BY_PROMETHEUS


def test_an_address_is_told_as_it_is_where_its_at_sign_comes_later() -> None:
    assert without_userinfo("http://h:9090/one@two") == "http://h:9090/one@two"

"""Scraping agents directly."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from http_server import serving
from storm_operator.adapters.metrics.page import ScrapeError, fetch_text
from storm_operator.adapters.metrics.scrape import ScrapeSource, parse_metrics
from storm_operator.core.metrics_window import SeriesKey

COUNT = SeriesKey.of("storm_x_total", {"supervisor": "h1"})


class Agent:
    """What one agent answers, changed by the test."""

    def __init__(self) -> None:
        self.status = 200
        self.body = b""

    def show(self, value: float, supervisor: str = "h1") -> None:
        self.body = f'# TYPE storm_x_total counter\nstorm_x_total{{supervisor="{supervisor}"}} {value}\n'.encode()

    def answer(self, path: str) -> tuple[int, bytes]:
        return (self.status, self.body) if path == "/metrics" else (404, b"")


@pytest.fixture
def agent() -> Agent:
    return Agent()


@pytest.fixture
def url(agent: Agent) -> Iterator[str]:
    with serving(agent.answer) as base:
        yield f"{base}/metrics"


def test_the_second_scrape_makes_a_pair(agent: Agent, url: str) -> None:
    source = ScrapeSource(lambda: {"h1": url})
    agent.show(100)
    assert source.read_window(1000.0, 15.0).series[COUNT].span_seconds == 0.0
    agent.show(400)
    window = source.read_window(1010.0, 15.0)
    assert (window.series[COUNT].increase, window.series[COUNT].span_seconds) == (300.0, 10.0)
    assert window.problems == ()


def test_scrapes_before_the_window_do_not_count(agent: Agent, url: str) -> None:
    source = ScrapeSource(lambda: {"h1": url})
    for at, value in ((1000.0, 0), (1010.0, 100), (1020.0, 300)):
        agent.show(value)
        window = source.read_window(at, 15.0)
    assert window.series[COUNT].increase == 200.0


def test_scrapes_of_before_the_clock_was_set_back_do_not_count(agent: Agent, url: str) -> None:
    source = ScrapeSource(lambda: {"h1": url})
    increases = []
    for at, value in ((1000.0, 1000), (1010.0, 1100), (1020.0, 1200), (1005.0, 1300), (1015.0, 1400), (1025.0, 1500)):
        agent.show(value)
        increases.append(source.read_window(at, 15.0, at - 10.0).series[COUNT].increase)
    assert increases == [0.0, 100.0, 100.0, 0.0, 100.0, 100.0]


def test_a_password_in_an_agent_s_address_is_in_no_problem(agent: Agent, url: str) -> None:
    agent.status = 401
    window = ScrapeSource(lambda: {"h1": url.replace("//", "//reader:secret@")}).read_window(1000.0, 15.0)
    assert window.problems == (f"the agent of h1 at {url} answered 401 instead of 200",)


def test_agent_that_fails_is_a_problem_and_its_older_scrapes_stay(agent: Agent, url: str) -> None:
    source = ScrapeSource(lambda: {"h1": url})
    agent.show(100)
    source.read_window(1000.0, 15.0)
    agent.status = 500
    window = source.read_window(1010.0, 15.0)
    assert window.problems == (f"the agent of h1 at {url} answered 500 instead of 200",)
    assert window.series[COUNT].last.timestamp_seconds == 1000.0


def test_one_dead_agent_does_not_hide_the_others(agent: Agent, url: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{unused.getsockname()[1]}/metrics"
        source = ScrapeSource(lambda: {"h1": url, "h2": dead})
        agent.show(100)
        window = source.read_window(1000.0, 15.0)
    assert COUNT in window.series
    assert len(window.problems) == 1
    assert "the agent of h2" in window.problems[0]
    assert "refused" in window.problems[0]


def test_supervisor_that_is_gone_takes_its_scrapes_along(agent: Agent, url: str) -> None:
    targets = {"h1": url}
    source = ScrapeSource(lambda: targets)
    agent.show(100)
    source.read_window(1000.0, 15.0)
    targets.clear()
    window = source.read_window(1010.0, 15.0)
    assert (window.series, window.problems) == ({}, ("no agent to scrape is known",))


def test_scrapes_are_forgotten_after_a_while(agent: Agent, url: str) -> None:
    source = ScrapeSource(lambda: {"h1": url}, retention_seconds=15.0)
    for at in range(100):
        agent.show(at)
        source.read_window(1000.0 + 10.0 * at, 12.0)
    assert source.read_window(2000.0, 1e6).series[COUNT].increase == 1.0


@pytest.mark.parametrize("body", [b"\xff\xfe\x00", b"<html>hello</html>", b'storm_x{a="b" 3'])
def test_what_is_not_metrics_is_a_problem(agent: Agent, url: str, body: bytes) -> None:
    agent.body = body
    window = ScrapeSource(lambda: {"h1": url}).read_window(1000.0, 15.0)
    assert window.series == {}
    assert len(window.problems) == 1
    assert "answered with something that is not" in window.problems[0]


def test_agent_that_takes_itself_for_another_is_a_problem(agent: Agent, url: str) -> None:
    agent.show(100, supervisor="h2")
    window = ScrapeSource(lambda: {"h1": url}).read_window(1000.0, 15.0)
    assert window.series == {}
    assert "speaks of supervisor 'h2' instead of 'h1'" in window.problems[0]


def test_only_series_of_storm_are_kept() -> None:
    text = 'python_gc_total 3\nstorm_x_total{supervisor="h1"} 5\nstorm_x_created{supervisor="h1"} 1e9\nstorm_nan NaN\n'
    values = parse_metrics(text)
    assert set(values) == {COUNT, SeriesKey("storm_nan")}
    assert values[COUNT] == 5.0


def test_agent_that_accepts_and_is_silent_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/metrics"
        with pytest.raises(ScrapeError, match=r"did not answer within 0\.2 s"):
            fetch_text(url, timeout_seconds=0.2)


def test_agent_that_drips_bytes_forever_is_given_up() -> None:
    """Each byte comes in time; the whole never does."""
    given_up = threading.Event()

    def drip(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not given_up.wait(0.02):
                try:
                    connection.sendall(b"#")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,), daemon=True)
        thread.start()
        try:
            with pytest.raises(ScrapeError, match=r"did not finish its answer within 0\.3 s"):
                fetch_text(f"http://127.0.0.1:{server.getsockname()[1]}/metrics", timeout_seconds=0.3)
        finally:
            given_up.set()
            thread.join()

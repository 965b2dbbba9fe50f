"""Scraping agents directly."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from http_server import serving
from storm_operator.adapters.metrics import scrape
from storm_operator.adapters.metrics.page import NoAnswer, ScrapeError, fetch_text
from storm_operator.adapters.metrics.scrape import ScrapeSource, parse_metrics
from storm_operator.adapters.storm_cluster import StormCluster
from storm_operator.assembly import ClusterConnection, assemble
from storm_operator.core.metrics_window import WINDOW_PERIODS, SeriesKey

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


def test_pages_are_fetched_in_threads_and_parsed_in_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that parse take turns with each other, and with whoever else needs the interpreter."""
    fetching, parsing = set(), set()

    def fetch(url: str, timeout_seconds: float) -> str:
        fetching.add(threading.current_thread())
        return f'storm_x_total{{supervisor="{url}"}} 1\n'

    def parse(text: str) -> Mapping[SeriesKey, float]:
        parsing.add(threading.current_thread())
        return parse_metrics(text)

    monkeypatch.setattr(scrape, "fetch_text", fetch)
    monkeypatch.setattr(scrape, "parse_metrics", parse)
    window = ScrapeSource(lambda: {host: host for host in ("h1", "h2", "h3")}).read_window(1000.0, 15.0)
    assert len(window.series) == 3
    assert parsing == {threading.current_thread()}
    assert not fetching & parsing


def test_no_more_pages_are_held_than_agents_are_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    held: set[str] = set()
    most_held = []

    def fetch(url: str, timeout_seconds: float) -> str:
        held.add(url)
        return f'storm_x_total{{supervisor="{url}"}} 1\n'

    def parse(text: str) -> Mapping[SeriesKey, float]:
        most_held.append(len(held))
        values = parse_metrics(text)
        held.difference_update(key.label("supervisor") for key in values)
        return values

    monkeypatch.setattr(scrape, "fetch_text", fetch)
    monkeypatch.setattr(scrape, "parse_metrics", parse)
    monkeypatch.setattr(scrape, "MAXIMUM_CONCURRENT_SCRAPES", 4)
    window = ScrapeSource(lambda: {f"h{n}": f"h{n}" for n in range(40)}).read_window(1000.0, 15.0)
    assert len(window.series) == 40
    assert max(most_held) <= 4


class Asked:
    """Agents that answer, or not, at once; `timeouts` are those of the last reading, in the order of asking."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, hosts: int, threads: int = 1) -> None:
        self.silent: set[str] = set()
        self.timeouts: dict[str, float] = {}
        self.source = ScrapeSource(lambda: {f"h{n}": f"h{n}" for n in range(hosts)})
        monkeypatch.setattr(scrape, "fetch_text", self.fetch)
        monkeypatch.setattr(scrape, "MAXIMUM_CONCURRENT_SCRAPES", threads)

    def fetch(self, url: str, timeout_seconds: float) -> str:
        self.timeouts[url] = timeout_seconds
        if url in self.silent:
            raise NoAnswer("did not answer")
        return f'storm_x_total{{supervisor="{url}"}} 1\n'

    def read(self, *silent: str) -> int:
        """How many problems there were, while these were silent."""
        self.silent = set(silent)
        self.timeouts.clear()
        return len(self.source.read_window(1000.0, 15.0).problems)


def test_an_agent_that_was_silent_is_asked_last_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, hosts=3)
    assert asked.read("h0") == 1
    assert list(asked.timeouts) == ["h0", "h1", "h2"]
    assert asked.read() == 0
    assert list(asked.timeouts) == ["h1", "h2", "h0"]
    assert set(asked.timeouts.values()) == {3.0}, "one alone is given all its time"
    asked.read()
    assert list(asked.timeouts) == ["h0", "h1", "h2"]


@pytest.mark.parametrize(("silent", "patience_seconds"), [(4, 3.0), (5, 1.5), (40, 0.3), (400, 0.2)])
def test_agents_that_were_silent_share_the_time_of_one(
    monkeypatch: pytest.MonkeyPatch, silent: int, patience_seconds: float
) -> None:
    """Else 500 of them hold up each pass for a minute and a half."""
    asked = Asked(monkeypatch, hosts=silent + 2, threads=4)
    hosts = [f"h{n}" for n in range(silent)]
    assert asked.read(*hosts) == silent
    assert set(asked.timeouts.values()) == {3.0}
    assert asked.read(*hosts) == silent
    assert {asked.timeouts.pop(f"h{silent}"), asked.timeouts.pop(f"h{silent + 1}")} == {3.0}
    assert set(asked.timeouts.values()) == {patience_seconds}


def test_supervisor_that_is_gone_takes_its_scrapes_along(agent: Agent, url: str) -> None:
    targets = {"h1": url}
    source = ScrapeSource(lambda: targets)
    agent.show(100)
    source.read_window(1000.0, 15.0)
    targets.clear()
    window = source.read_window(1010.0, 15.0)
    assert (window.series, window.problems) == ({}, ("no agent to scrape is known",))


@pytest.mark.slow
def test_scrapes_are_forgotten_after_a_while(agent: Agent, url: str) -> None:
    source = ScrapeSource(lambda: {"h1": url}, retention_seconds=15.0)
    for at in range(100):
        agent.show(at)
        source.read_window(1000.0 + 10.0 * at, 12.0)
    assert source.read_window(2000.0, 1e6).series[COUNT].increase == 1.0


@dataclass
class Steady:
    """An agent whose counter shows the time at which it is asked, and a queue whatever the second is."""

    seconds: float = 0.0

    def fetch(self, url: str, timeout_seconds: float) -> str:
        labels = '{supervisor="h1"}'
        return f"storm_x_total{labels} {self.seconds}\nstorm_queue{labels} {self.seconds % 7}\n"


def test_what_the_loop_reads_from_keeps_two_scrapes_of_each_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape of 1,000 executors is several megabytes, and the loop looks back over one period."""
    monkeypatch.setattr(scrape, "fetch_text", Steady().fetch)
    monkeypatch.setattr(StormCluster, "supervisor_ids", lambda _: {})
    connection = ClusterConnection(("nimbus:6627",), "zookeeper:2181", agents={"h1": "http://h1:9464/metrics"})
    metrics = assemble(connection, Mock()).metrics
    assert isinstance(metrics.source, ScrapeSource)
    for now in range(1000, 1200, 10):
        metrics.read_window(now, 15.0, now - 10.0)
    assert [kept.timestamp_seconds for kept in metrics.source._scrapes["h1"]] == [1180, 1190]


@pytest.mark.slow
@settings(max_examples=30)
@given(some.lists(some.sampled_from([0.1, 2.0, 5.0, 9.9, 10.0, 10.1, 14.0, 40.0, 239.0]), min_size=1, max_size=12))
def test_windows_are_those_of_a_source_that_forgets_nothing(pauses: list[float]) -> None:
    """As the loop asks for them, whenever passes come."""
    agent, period_seconds, past_seconds = Steady(1000.0), 10.0, 0.0
    frugal, lavish = ScrapeSource(lambda: {"h1": ""}), ScrapeSource(lambda: {"h1": ""}, retention_seconds=1e6)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scrape, "fetch_text", agent.fetch)
        for pause in [0.0, *pauses]:
            agent.seconds += pause
            past_seconds = max(pause, period_seconds)
            asked = agent.seconds, WINDOW_PERIODS * past_seconds, agent.seconds - past_seconds
            assert frugal.read_window(*asked) == lavish.read_window(*asked)


def test_scrapes_of_an_agent_share_what_does_not_change(agent: Agent, url: str) -> None:
    source = ScrapeSource(lambda: {"h1": url})
    keys = []
    for at in (1000.0, 1010.0):
        agent.show(at)
        (key,) = source.read_window(at, 12.0, at - 10.0).series
        keys.append(key)
    assert keys[0] is keys[1]


@pytest.mark.parametrize("body", [b"\xff\xfe\x00", b"<html>hello</html>", b'storm_x{a="b" 3'])
def test_what_is_not_metrics_is_a_problem(agent: Agent, url: str, body: bytes) -> None:
    agent.body = body
    window = ScrapeSource(lambda: {"h1": url}).read_window(1000.0, 15.0)
    assert window.series == {}
    assert len(window.problems) == 1
    assert "answered with something that is not" in window.problems[0]


def test_another_program_at_the_agents_port_is_a_problem(agent: Agent, url: str) -> None:
    agent.body = b"python_info 1\n"
    window = ScrapeSource(lambda: {"h1": url}).read_window(1000.0, 15.0)
    assert window.series == {}
    assert window.problems == (
        f"the agent of h1 at {url} shows no storm_* series: check that it is an agent, and no other program there",
    )


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

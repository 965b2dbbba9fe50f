"""Whatever one agent answers, its figures are unknown with a reason, and those of others are there."""

from __future__ import annotations

import gzip
import itertools
import math
import socket
import threading
from collections.abc import Iterator

import pytest

from http_server import Sent, serving, speaking
from storm_operator.adapters.metrics import ScrapeSource
from storm_operator.adapters.metrics.exposition import LONGEST_LINE, MOST_LINES
from storm_operator.adapters.metrics.page import fetch_text
from storm_operator.core.metrics_window import MetricsWindow, SeriesKey
from storm_operator.core.window_readings import problems_of_values

GOOD = SeriesKey.of("storm_x_total", {"supervisor": "good"})
TIMEOUT_SECONDS = 2.0
HEAD = b"HTTP/1.1 200 OK\r\n"
PAUSE_SECONDS = 0.02


@pytest.fixture
def good() -> Iterator[str]:
    with serving(lambda _path: (200, b'storm_x_total{supervisor="good"} 7\n')) as base:
        yield f"{base}/metrics"


def scraped_beside(good: str, hostile: str) -> MetricsWindow:
    window = ScrapeSource(lambda: {"bad": hostile, "good": good}, TIMEOUT_SECONDS).read_window(1000.0, 15.0)
    assert window.series[GOOD].last.value == 7.0
    return window


DRIPPED: dict[str, tuple[Sent, str]] = {
    "a status without end": (lambda: itertools.repeat(b"H"), "finish its answer within 2 s"),
    "one header without end": (lambda: itertools.chain([HEAD], itertools.repeat(b"x")), "finish its answer within"),
    "continues for ever": (lambda: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"), "finish its answer within"),
    "chunks without end": (
        lambda: itertools.chain([HEAD, b"Transfer-Encoding: chunked\r\n\r\n"], itertools.repeat(b"1\r\n#\r\n")),
        "finish its answer within",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("parts", "reason"), DRIPPED.values(), ids=DRIPPED.keys())
def test_an_agent_that_never_ends_keeps_nobody(good: str, parts: Sent, reason: str) -> None:
    with speaking(parts, PAUSE_SECONDS) as hostile:
        (problem,) = scraped_beside(good, hostile).problems
    assert f"the agent of bad at {hostile} did not {reason}" in problem


def answer(body: bytes, *headers: bytes) -> Sent:
    head = b"".join(header + b"\r\n" for header in (HEAD.strip(), *headers, b"Connection: close"))
    return lambda: (head, b"\r\n", body)


FLOOD = b"#" * 2**20
ANSWERS: dict[str, tuple[Sent, str]] = {
    "a body without end": (
        lambda: itertools.chain([HEAD, b"\r\n"], itertools.repeat(FLOOD)),
        "answered with more than 67108864 bytes",
    ),
    "headers without end": (
        lambda: itertools.chain([HEAD], (b"x-%d: y\r\n" % number for number in itertools.count())),
        "did not answer: HTTPException",
    ),
    "a status line of a megabyte": (lambda: [b"H" * 2**20], "did not answer: LineTooLong"),
    "no HTTP": (lambda: [b"\x00\xff\x16\x03 hello\r\n\r\n"], "did not answer: BadStatusLine"),
    "nothing": (list, "did not answer: RemoteDisconnected"),
    "chunks of no length": (answer(b"zz\r\n", b"Transfer-Encoding: chunked"), "did not answer: IncompleteRead"),
    "chunks of a length below zero": (answer(b"-5\r\nxx", b"Transfer-Encoding: chunked"), "did not answer: "),
    "a length beyond memory": (answer(b"#", b"Content-Length: 100000000000000"), "broke off 99999999999999 bytes"),
    "text that is packed": (
        answer(gzip.compress(b"#" * 10**8), b"Content-Encoding: gzip"),
        "answered with something that is not",
    ),
    "half a surrogate pair": (answer('storm_x{supervisor="\ud800"} 1'.encode("utf-8", "surrogatepass")), "not UTF-8"),
    "a redirection to a good one": (
        lambda: [b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"],
        "answered 302 instead of 200",
    ),
    "lines without end": (
        answer(b"storm_x 1\n" * (MOST_LINES + 1)),
        f"it has {MOST_LINES + 1} lines, more than {MOST_LINES}",
    ),
    "a line without end": (answer(b"storm_x" * LONGEST_LINE), "characters, more than 65536: 'storm_xstorm_x"),
    "a label without end": (answer(b'storm_x{supervisor="' + b"x" * 2**20 + b'"} 1'), "more than 65536: 'storm_x{"),
    "a name without end": (answer(b'storm_x{supervisor="' + b"x" * 2**15 + b'"} 1'), "speaks of supervisor 'xxxx"),
    "a label twice": (answer(b'storm_x{supervisor="bad",supervisor="bad"} 1'), "no sample is 'storm_x{supervisor"),
    "a label that does not end": (answer(b'storm_x{supervisor="bad} 1'), "no sample is"),
    "an end without a beginning": (answer(b'storm_x supervisor="bad"} 1'), "no sample is"),
    "a number with gaps": (answer(b'storm_x{supervisor="bad"} 1_000'), "no sample is"),
    "no number": (answer(b'storm_x{supervisor="bad"} '), "no sample is"),
    "too many numbers": (answer(b'storm_x{supervisor="bad"} 1 2 3'), "no sample is"),
    "a supervisor that is not told": (answer(b"storm_x 1"), "speaks of supervisor '' instead of 'bad'"),
    "the good one's series": (answer(b'storm_x_total{supervisor="good"} 9'), "speaks of supervisor 'good' instead of"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("parts", "reason"), ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_that_cannot_be_used_is_a_problem_of_that_agent_alone(
    good: str, parts: Sent, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "TIMEOUT_SECONDS", 30.0)
    with speaking(parts) as hostile:
        (problem,) = scraped_beside(good, hostile).problems
    assert problem.startswith(f"the agent of bad at {hostile} ")
    assert reason in problem
    assert len(problem) < 400


@pytest.mark.parametrize("odd", ["NaN", "+Inf", "-Inf", "-5", "1e400", "1.7e308", "9" * 400])
def test_a_number_that_no_counter_can_be_is_unknown_and_said(good: str, odd: str) -> None:
    names = ("storm_x_total", "storm_x_ratio")
    page = "".join(f'{name}{{supervisor="bad"}} {odd}\n' for name in names).encode()
    with speaking(answer(page)) as hostile:
        window = scraped_beside(good, hostile)
    assert math.isnan(window.series[SeriesKey.of("storm_x_total", {"supervisor": "bad"})].increase)
    (said,) = problems_of_values(window)
    assert all(name in said for name in names)
    assert len(said) < 400


def test_labels_come_as_they_were_written(good: str) -> None:
    page = rb'storm_x{ supervisor = "bad", a="\"}{,\\\n \x" ,} 3 1700000000000' + b"\r\n\r\n# TYPE storm_x gauge\n"
    with speaking(answer(page)) as hostile:
        window = scraped_beside(good, hostile)
    assert window.problems == ()
    labels = {"supervisor": "bad", "a": '"}{,\\\n \\x'}
    assert window.series[SeriesKey.of("storm_x", labels)].last.value == 3.0


def test_a_page_in_chunks_and_one_on_a_connection_that_stays_open_are_read() -> None:
    for parts in (
        [HEAD, b"Transfer-Encoding: chunked\r\n\r\n", b"3\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n"],
        [HEAD, b"Content-Length: 5\r\n\r\n", b"abc", b"de", *[b""] * 10**6],
    ):
        with speaking(lambda parts=parts: parts, 0.001) as url:  # type: ignore[misc]
            assert fetch_text(url, 30.0) == "abcde"


def test_a_name_and_a_password_and_a_query_are_sent_as_the_address_has_them() -> None:
    heard: list[bytes] = []

    def listen(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            heard.append(connection.recv(65536))
            connection.sendall(HEAD + b"Content-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=listen, args=(server,), daemon=True).start()
        port = server.getsockname()[1]
        assert fetch_text(f"http://reader:p%40ss@127.0.0.1:{port}/a%20b?c=d e", 30.0) == ""
    (request,) = heard
    first, *headers = request.decode().split("\r\n")
    assert first == "GET /a%20b?c=d%20e HTTP/1.1"
    assert f"Host: 127.0.0.1:{port}" in headers
    assert "Authorization: Basic cmVhZGVyOnBAc3M=" in headers
    assert "Connection: close" in headers

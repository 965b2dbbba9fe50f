"""A Prometheus server that never ends its answer, or sends more than memory is for, keeps no pass."""

from __future__ import annotations

import gzip
import itertools
import socket
import threading

import pytest

from http_server import Sent, speaking
from storm_operator.adapters.metrics import prometheus
from storm_operator.adapters.metrics.prometheus import PrometheusSource

HEAD = b"HTTP/1.1 200 OK\r\n"
PAUSE_SECONDS = 0.02
MOST_BYTES = 2**20

DRIPPED: dict[str, Sent] = {
    "a status without end": lambda: itertools.repeat(b"H"),
    "one header without end": lambda: itertools.chain([HEAD], itertools.repeat(b"x")),
    "continues for ever": lambda: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body by the byte": lambda: itertools.chain([HEAD, b"Content-Length: 100000\r\n\r\n"], itertools.repeat(b" ")),
    "chunks without end": lambda: itertools.chain(
        [HEAD, b"Transfer-Encoding: chunked\r\n\r\n"], itertools.repeat(b"1\r\n \r\n")
    ),
}


def problem_of(parts: Sent, pause_seconds: float = 0.0, timeout_seconds: float = 10.0) -> str:
    with speaking(parts, pause_seconds) as url:
        window = PrometheusSource(url, timeout_seconds=timeout_seconds).read_window(100.0, 20.0)
    assert window.series == {}
    (problem,) = window.problems
    return problem.removeprefix(f"Prometheus at {url} ")


@pytest.mark.slow
@pytest.mark.parametrize("parts", DRIPPED.values(), ids=DRIPPED.keys())
def test_one_that_drips_is_given_up_though_it_never_falls_silent(parts: Sent) -> None:
    """Each byte comes in time; the whole never does."""
    assert problem_of(parts, PAUSE_SECONDS, 0.1) == "did not finish its answer within 0.3 s"


def test_one_that_falls_silent_amid_its_answer_is_given_up_as_soon_as_one_that_says_nothing() -> None:
    parts = [HEAD, b"Content-Length: 100000\r\n\r\n", b"{"]
    with socket.create_server(("127.0.0.1", 0)) as server:

        def fall_silent() -> None:
            with server.accept()[0] as peer:
                peer.recv(10_000)
                peer.sendall(b"".join(parts))
                peer.recv(1)  # until the caller has gone

        threading.Thread(target=fall_silent, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        (problem,) = PrometheusSource(url, timeout_seconds=0.1).read_window(100.0, 20.0).problems
    assert problem.endswith(" said nothing more for 0.1 s in the midst of its answer")


@pytest.mark.parametrize(
    "parts",
    [
        lambda: itertools.chain([HEAD, b"\r\n"], itertools.repeat(b" " * 2**16)),
        lambda: [HEAD, b"Content-Encoding: gzip\r\n\r\n", gzip.compress(b" " * (MOST_BYTES + 1))],
    ],
    ids=["a body without end", "text that is packed"],
)
def test_more_than_memory_is_for_is_not_read(parts: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MOST_BYTES", MOST_BYTES)
    assert problem_of(parts) == f"answered with more than {MOST_BYTES} bytes"

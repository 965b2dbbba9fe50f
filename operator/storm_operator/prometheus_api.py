"""The agents' metrics from a Prometheus server: for the operator of now, for a backfill of the past.

Raw samples are asked for with a range selector, not `rate()` or a range query: both interpolate, and turn 300 tuples
into 314, which differs from what the agents said.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import requests
from urllib3.exceptions import ReadTimeoutError

from storm_operator.bounded_reading import READ_BYTES, Deadline, session_until
from storm_operator.core.http_reasons import innermost
from storm_operator.core.metrics_window import Sample, SeriesKey
from storm_operator.core.prometheus_matrix import AGENTS_SERIES, parse_matrix, parse_vector
from storm_operator.core.server_url import proxies_to, without_userinfo

T = TypeVar("T")
TALK_TIMEOUTS = 3.0
"""One that has begun to answer is given so many times as long for the whole as silence is borne."""


class PrometheusError(Exception):
    """The server did not give samples; the message says why, to be put behind the server's name."""


class NoAnswer(PrometheusError):
    """The server could not be reached, or not in time."""


def fetch_raw_samples(
    url: str,
    at_seconds: float,
    window_seconds: float,
    *,
    matchers: str = "",
    ignored_labels: frozenset[str] = frozenset(),
    timeout_seconds: float = 10.0,
    most_bytes: float = math.inf,
) -> Mapping[SeriesKey, list[Sample]]:
    """All samples of the `window_seconds` before `at_seconds`, by series. Raises `PrometheusError`.

    `matchers` narrows the query, e.g. `cluster="blue"`; `ignored_labels` are those that a scrape configuration adds,
    beside the usual ones. Borne are a silence of `timeout_seconds`, three times that for the whole answer, and
    `most_bytes` of it.
    """
    names = f"{AGENTS_SERIES},{matchers}" if matchers else AGENTS_SERIES
    # Prometheus 3 leaves out the sample at the very start of a range and 2.x does not; window_of_samples decides.
    query = f"{{{names}}}[{round(window_seconds * 1000)}ms]"
    data = _ask(url.rstrip("/"), query, at_seconds, timeout_seconds, most_bytes)
    return _parsed(lambda: parse_matrix(data, ignored_labels))


def fetch_last_seen(
    url: str,
    name: str,
    by: Sequence[str],
    at_seconds: float,
    window_seconds: float,
    step_seconds: float,
    *,
    matchers: str = "",
    timeout_seconds: float = 10.0,
) -> Mapping[SeriesKey, float]:
    """When a series called `name` was last scraped of the `window_seconds` before `at_seconds`, by the labels `by`.

    Far less than its samples: the server looks every `step_seconds`, and misses what was scraped for a shorter time.
    Raises `PrometheusError`.
    """
    within = f"{round(window_seconds * 1000)}ms:{round(step_seconds * 1000)}ms"
    query = f"max by ({', '.join(by)}) (max_over_time(timestamp({name}{{{matchers}}})[{within}]))"
    data = _ask(url.rstrip("/"), query, at_seconds, timeout_seconds)
    return _parsed(lambda: parse_vector(data, name))


def _parsed(parse: Callable[[], T]) -> T:
    try:
        return parse()
    except ValueError as error:
        raise PrometheusError(f"answered in an {error}") from error


def _ask(url: str, query: str, at_seconds: float, timeout_seconds: float, most_bytes: float = math.inf) -> Any:
    deadline = Deadline(TALK_TIMEOUTS * timeout_seconds)
    try:
        # Not POST: where a server sends one on with 301 or 302, its form stays behind.
        with (
            session_until(deadline) as session,
            session.get(
                f"{url}/api/v1/query",
                params={"query": query, "time": f"{at_seconds:.3f}"},
                timeout=timeout_seconds,
                proxies=proxies_to(url),
                stream=True,
            ) as response,
        ):
            answer = _json(response, _body(response, most_bytes))
    except requests.exceptions.ProxyError as error:
        raise NoAnswer(f"cannot be asked through the proxy that the environment names: {innermost(error)}") from error
    except (requests.Timeout, requests.ConnectionError) as error:
        raise NoAnswer(_why_no_answer(error, deadline, timeout_seconds)) from error
    except (requests.RequestException, ValueError) as error:  # the latter of a host that can be none
        raise NoAnswer(f"did not answer: {type(error).__name__}") from error
    if not isinstance(answer, dict) or answer.get("status") != "success":
        reason = answer.get("error", answer) if isinstance(answer, dict) else answer
        raise PrometheusError(f"refused the query {query}: {reason}{_sent_on(response)}")
    return answer.get("data")


def _body(response: requests.Response, most_bytes: float) -> bytearray:
    """As it is when it is unpacked."""
    body = bytearray()
    for part in response.iter_content(READ_BYTES):
        body += part
        if len(body) > most_bytes:
            raise PrometheusError(f"answered with more than {most_bytes} bytes")
    return body


def _json(response: requests.Response, body: bytearray) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PrometheusError(
            f"answered {response.status_code} with something that is not JSON{_sent_on(response)}"
        ) from error


def _why_no_answer(error: requests.RequestException, deadline: Deadline, timeout_seconds: float) -> str:
    if deadline.has_passed():
        return f"did not finish its answer within {TALK_TIMEOUTS * timeout_seconds:g} s"
    if isinstance(error, requests.Timeout):
        return f"did not answer within {timeout_seconds:g} s"
    if any(isinstance(cause, ReadTimeoutError) for cause in error.args):
        return f"said nothing more for {timeout_seconds:g} s in the midst of its answer"
    return f"did not answer: {innermost(error)}"


def _sent_on(response: requests.Response) -> str:
    """To be put behind a bad answer: another server may have given it, or not all that was asked have come there."""
    if not response.history:
        return ""
    return f" (there it was sent on to {without_userinfo(response.url.partition('?')[0])}: name the right address)"

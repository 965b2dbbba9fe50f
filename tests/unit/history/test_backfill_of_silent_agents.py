"""Who was there while an agent was silent: known of all the time that is filled in, not of what is asked at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from http_server import serving
from scraped_agents import PER_SECOND, FakePrometheus, Series, executor
from storm_operator.prometheus_api import PrometheusError
from storm_pipeline import prometheus_history
from storm_pipeline.prometheus_history import PERIODS_ASKED_AT_ONCE, PrometheusHistory

PERIOD_SECONDS = 10
BEGIN, END = 0, 2400
"""Four times what is asked at once."""
AT_ONCE = PERIODS_ASKED_AT_ONCE * PERIOD_SECONDS
LINES = executor("h1", "lines", "1-1", BEGIN - 300, END + 300)
WITH_TWO = [*LINES, *executor("h1", "split", "2-2", BEGIN - 300, END + 300)]
"""A spout, and one of the executors of its bolt; agents were scraped before and after as well."""
WHOLE, UNKNOWN, ALONE = 2 * PER_SECOND, None, PER_SECOND


def loads_of_split(server: FakePrometheus) -> list[float | None]:
    """By period: what all executors of the bolt executed; None where it is not known of one that was there."""
    found: list[float | None] = []
    with serving(server.answer, with_query=True) as url:
        for made in PrometheusHistory(url).passes(BEGIN, END, PERIOD_SECONDS):
            assert made is not None
            assert made.snapshot is not None
            there = made.snapshot.topologies[0].executors_of("split")
            rates = [
                made.snapshot.loads[one].executed_per_second if one in made.snapshot.loads else None for one in there
            ]
            found.append(None if None in rates else sum(rate for rate in rates if rate is not None))
    return found


def runs(loads: Sequence[float | None]) -> list[tuple[float | None, int]]:
    """Each load, and how many periods it lasts (rounded, as rates are made of floats)."""
    found: list[tuple[float | None, int]] = []
    for load in loads:
        rounded = None if load is None else round(load, 6)
        if found and found[-1][0] == rounded:
            found[-1] = rounded, found[-1][1] + 1
        else:
            found.append((rounded, 1))
    return found


@pytest.mark.parametrize("silent", [(500, 700), (590, 1900), (1100, 1300), (900, 2340)])
def test_an_executor_whose_agent_is_silent_for_long_is_unknown_all_the_while(silent: tuple[int, int]) -> None:
    other = executor("h2", "split", "3-3", BEGIN - 300, END + 300, [silent])
    begun, ended = (at // PERIOD_SECONDS for at in silent)
    assert runs(loads_of_split(FakePrometheus([*WITH_TWO, *other]))) == [
        (WHOLE, begun),
        (UNKNOWN, ended - begun),  # the first reading after it has none before it
        (WHOLE, END // PERIOD_SECONDS - ended),
    ]


def test_an_executor_that_comes_back_elsewhere_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus_history, "PERIODS_LOOKED_AHEAD_AT_ONCE", 70)
    before, after = executor("h2", "split", "3-3", BEGIN, 300), executor("h3", "split", "3-3", 2000, END + 300)
    server = FakePrometheus([*WITH_TWO, *before, *after])
    loads = loads_of_split(server)
    assert (loads[29], loads[31], loads[150], loads[198]) == (WHOLE, UNKNOWN, UNKNOWN, UNKNOWN)
    assert loads[202:] == pytest.approx([WHOLE] * 38)
    assert server.asked == Counter(samples=4, ahead=3)


def test_an_executor_that_never_comes_back_is_gone_at_once() -> None:
    for ended in (300, AT_ONCE, AT_ONCE + 400):
        gone = executor("h2", "split", "3-3", BEGIN - 300, ended)
        assert set(loads_of_split(FakePrometheus([*WITH_TWO, *gone]))[ended // PERIOD_SECONDS :]) == {ALONE}


def test_an_executor_whose_tasks_others_have_meanwhile_is_not_there() -> None:
    """As after a rebalance to more executors, and one back."""
    both = [*executor("h1", "split", "2-3", BEGIN, 500), *executor("h1", "split", "2-3", 2000, END + 300)]
    each = [of for tasks in ("2-2", "3-3") for of in executor("h1", "split", tasks, 500, 2000)]
    loads = loads_of_split(FakePrometheus([*LINES, *merged([*both, *each])]))
    assert loads[51:199] == pytest.approx([WHOLE] * 148)


def merged(series: Sequence[Series]) -> list[Series]:
    """Series with the same labels as one."""
    found: dict[tuple[str, str], Series] = {}
    for one in series:
        key = one.name, str(one.labels)
        found[key] = Series(one.name, one.labels, [*(found[key].samples if key in found else ()), *one.samples])
    return list(found.values())


def test_what_is_asked_at_once_needs_no_look_ahead() -> None:
    server = FakePrometheus(WITH_TWO)
    with serving(server.answer, with_query=True) as url:
        assert len(list(PrometheusHistory(url).passes(BEGIN, AT_ONCE, PERIOD_SECONDS))) == PERIODS_ASKED_AT_ONCE
    assert server.asked == Counter(samples=1)


@pytest.mark.parametrize(
    "result", ["{}", '{"result": [{"metric": {}, "values": []}]}', '{"result": [{"metric": {}, "value": []}]}']
)
def test_an_answer_about_what_comes_later_that_is_none_is_said_with_the_servers_name(result: str) -> None:
    body = f'{{"status": "success", "data": {result}}}'.encode()
    with serving(lambda _: (200, body)) as url, pytest.raises(PrometheusError, match=f"^{url} answered in an unknown"):
        next(PrometheusHistory(url).passes(BEGIN, END, PERIOD_SECONDS))

"""When the demo begins to measure: not while the JVMs still compile."""

from __future__ import annotations

import pytest

from storm_operator.demo.settled import PASSES, has_settled


@pytest.mark.parametrize(
    ("values", "settled"),
    [
        ([20.0] * 2 * PASSES, True),
        ([20.0] * (2 * PASSES - 1), False),
        ([1000.0, 600.0, 300.0, 200.0, 100.0, 60.0, 40.0, 30.0], False),
        ([1000.0, 600.0, 300.0, 22.0, 20.0, 19.0, 24.0, 18.0, 21.0, 20.0, 19.0], True),
        ([20.0] * 7 + [900.0], True),
        ([5.0] * 4 + [20.0] * 4, True),
        ([20.0] * 7 + [None], False),
        ([None] * 5 + [20.0] * 8, True),
    ],
    ids=[
        "constant",
        "too few",
        "falls",
        "has fallen",
        "an exception",
        "rises",
        "unknown at the end",
        "unknown long ago",
    ],
)
def test_latency_has_settled_once_it_falls_no_more(values: list[float | None], settled: bool) -> None:
    assert has_settled(values) is settled

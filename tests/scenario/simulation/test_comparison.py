"""Two runs in a sentence: what reads the same is neither better nor worse."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

from storm_operator.simulation_comparison import compared


def report(mean_ms: float, missing: float, restarts: int = 0, acked: float = 1000.0, **means: float) -> Any:
    sums = SimpleNamespace(
        acked=acked,
        unsuccessful=0.0,
        unsent=0.0,
        under_provided_core_seconds=missing,
        over_provided_core_seconds=100.0,
        worker_restarts=restarts,
    )
    return cast(
        "Any",
        SimpleNamespace(
            sums=sums,
            mean_latency_ms=lambda: mean_ms,
            median_latency_ms=lambda **_: 5.0,
            mean_of=lambda figure: means.get(figure, math.nan),
        ),
    )


def test_figures_that_are_shown_alike_are_alike() -> None:
    words = compared(report(10.0, 1.14), report(20.0, 1.06))
    assert words == "better: mean latency 10.0 ms rather than 20.0; worse: nothing by more than 1%."


def test_figures_that_are_shown_otherwise_are_told() -> None:
    words = compared(report(10.0, 1.2), report(10.0, 1.1))
    assert words == "better: nothing by more than 1%; worse: CPU missing 1.2 core-seconds rather than 1.1."


def test_more_that_was_acked_is_better() -> None:
    words = compared(report(20.0, 1.1, acked=820_000.0), report(10.0, 1.1, acked=126_308.0))
    assert words == ("better: acked tuples 820,000 rather than 126,308; worse: mean latency 20.0 ms rather than 10.0.")


def test_traffic_supervisors_and_restarts_are_told() -> None:
    managed = report(10.0, 1.1, restarts=4, inter_supervisor_tuples_per_second=0.0, supervisors_used=1.0)
    alone = report(10.0, 1.1, inter_supervisor_tuples_per_second=1234.5, supervisors_used=2.25)
    assert compared(managed, alone) == (
        "better: tuples between supervisors 0.0 per second rather than 1,234.5, supervisors in use 1 rather than 2.25; "
        "worse: worker restarts 4 rather than 0."
    )
    assert compared(managed, report(10.0, 1.1, restarts=4)) == (
        "better: nothing by more than 1%; worse: nothing by more than 1%."
    ), "what is unknown of either is left out"

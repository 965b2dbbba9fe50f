"""Constant load with 10% noise: after its first plan `adaptive` makes at most one more.

Ten minutes, a seed for each workload; `make bench-reaction` plays an hour with five seeds each.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from reaction.cases import WORKLOADS, noisy_constant, scenario, specs

from storm_operator.simulated_loop import simulate

TEN_MINUTES = 600.0


@pytest.mark.parametrize(("seed", "name"), list(enumerate(WORKLOADS)))
def test_noise_moves_nobody(seed: int, name: str) -> None:
    """The noise is held for a control period: what is drawn anew every second is averaged out before it is seen."""
    workload = WORKLOADS[name]
    load = noisy_constant(workload.base, TEN_MINUTES, seed, held_seconds=10.0)
    played = replace(scenario(workload, load, TEN_MINUTES, seed), step_seconds=2.5)
    report = simulate(played, specs(workload, "adaptive"))
    assert [plan.reason for plan in report.plans[2:]] == []
    assert report.plans[0].state == "Verified"
    assert report.sums.failed == 0.0

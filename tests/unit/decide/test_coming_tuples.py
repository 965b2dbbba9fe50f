"""An executor to which tuples come with a change is given the CPU that they need, from the start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import graph_topology, placed, placement_settings, snapshot, supervisors
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Edge
from storm_operator.core.proposed_change import examine_proposal
from storm_operator.core.settings import ResourceSettings

SMALL = graph_topology("small", {"spout": 1, "split": 2}, [Edge("spout", "default", "split", "shuffle")])
SPOUT, ONE, TWO = SMALL.executors
APART = placed(SMALL, {"spout": "s1", "split": ["s2", "s3"]})
RATES = {(SPOUT, ONE): 1000.0, (SPOUT, TWO): 1000.0}
NEEDS = {SPOUT: 50.0, ONE: 150.0, TWO: 150.0}
GIVEN = {SPOUT: 100.0, ONE: 200.0, TWO: 200.0}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [(ResourceSettings(theta_millicores=200.0), 400.0), (ResourceSettings(ceiling_millicores=250.0), 250.0)],
)
def test_tuples_that_come_raise_a_limit_by_whole_thetas_to_the_ceiling(
    resources: ResourceSettings, expected: float
) -> None:
    """Beside the spout, one split gets all tuples: 300 millicores where it needed 150."""
    now = snapshot([SMALL], supervisors(3), APART, rates=RATES)
    settings = replace(placement_settings([SMALL]), resources=resources)
    change = examine_proposal(now, Demand(GIVEN, NEEDS), Assignment({**APART, ONE: APART[SPOUT]}), settings)
    assert change is not None
    assert change.limits_millicores == {SPOUT: 100.0, ONE: expected, TWO: 200.0}

"""Where all supervisors are full, one of them always has a little too much: to shift that saves nothing."""

from __future__ import annotations

import pytest

from builders import even_traffic, graph_topology, placed, placement_settings, snapshot, supervisors
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Edge, WorkerSlot
from storm_operator.core.proposed_change import ProposedChange, examine_proposal

LINE = graph_topology("line", {"spout": 2, "work": 4}, [Edge("spout", "default", "work", "fields")])
SPOUTS, (W1, W2, W3, W4) = LINE.executors_of("spout"), LINE.executors_of("work")
HERE = placed(LINE, {"spout": ["s1", "s2"], "work": ["s1", "s1", "s2", "s2"]})
S1, S2 = HERE[W1], HERE[W3]


def change(needs: dict[str, float], moves: dict[str, WorkerSlot], machines: int = 2) -> ProposedChange:
    """Executors by name need so much of machines of 500 millicores; all send alike, so that traffic stays the same."""
    of_name = dict(zip(("w1", "w2", "w3", "w4"), (W1, W2, W3, W4), strict=True))
    raw = {of_name[name]: need for name, need in needs.items()} | dict.fromkeys(SPOUTS, 10.0)
    now = snapshot([LINE], supervisors(machines, capacity=500.0), HERE, rates=even_traffic(LINE, 1.0))
    target = Assignment({**HERE, **{of_name[name]: slot for name, slot in moves.items()}})
    found = examine_proposal(now, Demand(raw, raw), target, placement_settings([LINE]))
    assert found is not None
    return found


FULL = {"w1": 245.0, "w2": 240.0, "w3": 230.0, "w4": 225.0}
"""495 and 465 of 500, of which 475 may be borne."""


def test_a_shift_of_what_is_noise_saves_nothing() -> None:
    shifted = change(FULL, {"w1": S2, "w3": S1})  # 480 and 480
    assert shifted.trouble is not None
    assert shifted.saved_cost == pytest.approx(0.0, abs=1.0)


def test_the_same_overload_saves_where_a_machine_is_free() -> None:
    freed = change(FULL, {"w1": WorkerSlot("s3", 6700)}, machines=3)
    assert freed.saved_cost > 1.0


def test_what_is_more_than_noise_saves() -> None:
    lighter = {"w1": 290.0, "w2": 240.0, "w3": 200.0, "w4": 200.0}  # 540 and 410, then 450 and 500
    assert change(lighter, {"w1": S2, "w3": S1}).saved_cost > 1.0


def test_a_little_more_overload_still_costs() -> None:
    level = {"w1": 235.0, "w2": 235.0, "w3": 235.0, "w4": 225.0}  # 480 and 470
    worse = change(level, {"w2": S2})
    assert worse.saved_cost < -1.0

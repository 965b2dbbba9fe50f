"""Where executors go that a supervisor is to lose: to their peers, then to where most room is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from builders import chain_topology, placed, placement_settings, snapshot, supervisors
from storm_operator.core.model import Executor
from storm_operator.core.placement.executor_arrays import executor_arrays
from storm_operator.core.placement.load_shift import shifted

EACH = 100.0
PAIR = chain_topology("pair", ("spout", 1), ("bolt", 2))
SPOUT, FIRST, SECOND = PAIR.executors


@pytest.mark.parametrize(
    ("rates", "room", "where"),
    [
        ({}, (350.0, 400.0), ["s3", "s2"]),  # the second where most room is left
        ({(SPOUT, FIRST): 5.0, (SPOUT, SECOND): 5.0}, (900.0, 150.0), ["s3", "s2"]),  # s3 has room for one of them
        ({(SPOUT, FIRST): 5.0, (SPOUT, SECOND): 5.0}, (900.0, 250.0), ["s3", "s3"]),
        ({(FIRST, SECOND): 5.0}, (350.0, 400.0), ["s3", "s3"]),  # the second follows the first
    ],
)
def test_executors_go_to_their_peers_then_to_where_most_room_is(
    rates: Mapping[tuple[Executor, Executor], float], room: tuple[float, float], where: list[str]
) -> None:
    """The spout is on s3, both bolts on s1, which is to lose them."""
    picture = snapshot((PAIR,), supervisors(3), placed(PAIR, {"spout": "s3", "bolt": "s1"}), rates=dict(rates))
    arrays = executor_arrays(picture, placement_settings((PAIR,)), dict.fromkeys(PAIR.executors, EACH))
    after = shifted(picture, picture.assignment, arrays, np.array([2 * EACH, 0.0, 0.0]), np.array([0.0, *room]))
    assert [after.slot_of[executor].supervisor_id for executor in (FIRST, SECOND)] == where
    assert after.slot_of[SPOUT].supervisor_id == "s3"

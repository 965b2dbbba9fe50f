"""The matrix of who sends how much to whom."""

from __future__ import annotations

import numpy as np
import pytest

from builders import chain_topology, even_traffic
from storm_operator.core.traffic import TrafficMatrix


def test_a_matrix_from_arrays_is_the_one_from_pairs() -> None:
    executors = chain_topology("words", ("spout", 1), ("split", 2)).executors
    pairs = {(executors[0], executors[1]): 3.0, (executors[0], executors[2]): 4.0, (executors[2], executors[0]): 1.0}
    matrix = TrafficMatrix.from_arrays(executors, [2, 0, 0, 0], [0, 2, 1, 2], [1.0, 1.5, 3.0, 2.5])
    assert list(matrix.pairs()) == list(TrafficMatrix(pairs).pairs())


def test_positions_need_sorted_executors() -> None:
    executors = chain_topology("words", ("spout", 1), ("split", 2)).executors
    with pytest.raises(ValueError, match="sorted"):
        TrafficMatrix.from_arrays(executors[::-1], [0], [1], [1.0])


def test_the_traffic_within_a_topology_leaves_out_its_neighbours_by_name() -> None:
    topologies = [chain_topology(name, ("spout", 1), ("split", 2)) for name in ("word", "words", "words-2")]
    rates = {pair: rate for topology in topologies for pair, rate in even_traffic(topology, 10.0).items()}
    within = TrafficMatrix(rates).within("words")
    assert within.executors == topologies[1].executors
    assert {(a, b): rate for a, b, rate in within.pairs()} == even_traffic(topologies[1], 10.0)


def test_changes_add_up_take_away_and_leave_all_others() -> None:
    spout, *splits = chain_topology("words", ("spout", 1), ("split", 3)).executors
    matrix = TrafficMatrix({(spout, split): 10.0 for split in splits} | {(splits[0], spout): 1.0})
    changed = matrix.with_changes([([spout], splits[:2], np.array([[5.0, -10.0]]))])
    assert list(changed.pairs()) == [(spout, splits[0], 15.0), (spout, splits[2], 10.0), (splits[0], spout, 1.0)]
    assert matrix.rate(spout, splits[1]) == 10.0

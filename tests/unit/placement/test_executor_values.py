"""Values by executor as arrays: the same whether they come in order, out of order, or not all."""

from __future__ import annotations

import pytest

from storm_operator.core.arrays import NOWHERE
from storm_operator.core.executor_values import rows_of, values_of
from storm_operator.core.model import Executor

A, B, C = (Executor("words-1", task, task, "count") for task in (1, 2, 3))


@pytest.mark.parametrize("order", [(A, B, C), (C, A, B)], ids=["in-order", "out-of-order"])
def test_values_are_those_of_the_executors_that_are_asked_for(order: tuple[Executor, ...]) -> None:
    value = {A: 1.0, B: 2.0, C: 3.0}
    values = {executor: value[executor] for executor in order}
    assert values_of(values, (A, B, C)).tolist() == [1.0, 2.0, 3.0]
    assert values_of(values, (B,)).tolist() == [2.0]
    assert values_of(values, ()).tolist() == []


def test_who_has_no_value_counts_nothing() -> None:
    assert values_of({A: 1.0, B: 2.0}, (A, C)).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("executors", [(A, B, C), (C, A, B), (A, C), ()])
def test_rows_are_positions(executors: tuple[Executor, ...]) -> None:
    assert [(A, B, C)[row] for row in rows_of(executors, (A, B, C)).tolist()] == list(executors)


def test_who_is_not_there_is_nowhere() -> None:
    assert rows_of((A, C), (A, B)).tolist() == [0, NOWHERE]

"""The exact program for HiGHS, to be measured beside CP-SAT; same variables, products as continuous ones.

CP-SAT proves faster (docs/explanation/optimum.md has the figures), so that this one is for `benchmarks/optimum.py`
alone. Do not import it beside OR-Tools in use: both wheels carry a copy of HiGHS and the dynamic linker mixes them up.
"""

from __future__ import annotations

import time
from math import inf
from typing import Any

import highspy
import numpy as np

from storm_operator.core.placement.optimal_bounds import overload_caps
from storm_operator.core.placement.optimal_model import ExactModel, Pair, Places
from storm_operator.core.placement.optimal_solver import PROOF_TOLERANCE, Solution, company_of
from storm_operator.core.placement.optimal_symmetry import executor_orders, first_in_order, supervisor_orders

Row = dict[int, float]
"""Factor by number of the variable."""

SLACK = 1e-9
"""A supervisor that is filled to the last millicore must not be refused for rounding."""


def solve_with_highs(model: ExactModel, known: Places | None, ceiling: float, effort: float) -> Solution:
    """The best assignment by HiGHS; `effort` is CPU seconds of this process (it has no deterministic measure)."""
    program = _Program(model, ceiling)
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call] # the wheel's annotations stop half-way
    for name, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", PROOF_TOLERANCE / 2.0)):
        solver.setOptionValue(name, value)
    _stop_after(solver, effort)
    solver.passModel(program.matrix())
    if known is not None:
        start = highspy.HighsSolution()
        start.col_value = program.values_of(known)
        solver.setSolution(start)
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return Solution(None, ceiling)
    bound = solver.getInfo().mip_dual_bound * program.unit + program.constant
    if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Solution(known, bound)
    values = solver.getSolution().col_value
    return Solution(tuple(int(np.argmax([values[number] for number in row])) for row in program.on), bound)


def _stop_after(solver: Any, cpu_seconds: float) -> None:
    ends = time.process_time() + cpu_seconds

    def interrupt(event: Any) -> None:
        event.interrupt(time.process_time() > ends)

    solver.cbMipInterrupt += interrupt


class _Program:
    """Variables by number, constraints as rows; `on[executor][supervisor]` is what is decided."""

    def __init__(self, model: ExactModel, ceiling: float) -> None:
        self.model = model
        self.unit = max(model.overload_price, model.supervisor_price, 1e-9)
        self.constant = model.constant
        self._everywhere = range(len(model.supervisors))
        self._price: list[float] = []
        self._upper: list[float] = []
        self._whole: list[bool] = []
        self._rows: list[tuple[float, Row, float]] = []
        self._product: dict[tuple[int, int, int, int], int] = {}
        self._workers: dict[tuple[int, int], int] = {}
        self.on = [[self._variable(cost, whole=True) for cost in costs] for costs in model.place_cost]
        self._in_use = [
            self._variable(0.0 if anyway else model.supervisor_price, whole=True) for anyway in model.in_use_anyway
        ]
        self._over = [
            self._variable(model.overload_price, cap * (1.0 + SLACK)) for cap in overload_caps(model, ceiling)
        ]
        self._kept = [self._variable(-worker.restart_price) for worker in model.keepable]
        self._rows += [(1.0, dict.fromkeys(row, 1.0), 1.0) for row in self.on]
        self._limit_load()
        self._limit_workers()
        self._tie_use_and_restarts()
        for pair in model.pairs:
            self._price_pair(pair)
        self._limit_company()
        self._break_symmetry()

    def matrix(self) -> highspy.HighsLp:
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(self._price), len(self._rows)
        program.col_cost_ = np.array(self._price)
        program.col_lower_, program.col_upper_ = np.zeros(len(self._price)), np.array(self._upper)
        program.row_lower_ = np.array([lower for lower, _, _ in self._rows])
        program.row_upper_ = np.array([upper for _, _, upper in self._rows])
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.cumsum([0] + [len(row) for _, row, _ in self._rows])
        program.a_matrix_.index_ = np.array([number for _, row, _ in self._rows for number in row])
        program.a_matrix_.value_ = np.array([factor for _, row, _ in self._rows for factor in row.values()])
        kinds = highspy.HighsVarType
        program.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in self._whole]
        return program

    def values_of(self, known: Places) -> list[float]:
        """All variables for `known`, as it looks once symmetry is broken."""
        model = self.model
        places = first_in_order(model, known)
        values = [0.0] * len(self._price)
        for at, place in enumerate(places):
            values[self.on[at][place]] = 1.0
        for (a, b, s, t), both in self._product.items():
            values[both] = float(places[a] == s and places[b] == t)
        for s, room in enumerate(model.room):
            load = sum(each for each, place in zip(model.demand, places, strict=True) if place == s)
            values[self._over[s]] = max(0.0, load - room)
            values[self._in_use[s]] = float(s in places)
        for kept, worker in zip(self._kept, model.keepable, strict=True):
            values[kept] = float(model.is_kept(worker, places))
        for (group, s), number in self._workers.items():
            values[number] = float(any(places[at] == s for at in model.members_of(group)))
        return values

    def _variable(self, price: float, upper: float = 1.0, *, whole: bool = False) -> int:
        self._price.append(price / self.unit)
        self._upper.append(upper)
        self._whole.append(whole)
        return len(self._price) - 1

    def _at_most(self, row: Row, limit: float) -> None:
        self._rows.append((-inf, row, limit))

    def _limit_load(self) -> None:
        largest = max(self.model.demand) or 1.0
        for s, room in enumerate(self.model.room):
            if sum(self.model.demand) <= room:
                continue
            row = {places[s]: each / largest for each, places in zip(self.model.demand, self.on, strict=True)}
            row[self._over[s]] = -1.0 / largest
            if room > 0.0:
                row[self._in_use[s]] = -room / largest - SLACK
            self._at_most(row, min(0.0, room / largest))

    def _limit_workers(self) -> None:
        for s, slots in enumerate(self.model.free_slots):
            if self.model.groups <= len(slots):
                continue
            workers = [self._variable(0.0) for _ in range(self.model.groups)]
            self._workers |= {(group, s): worker for group, worker in enumerate(workers)}
            for at, group in enumerate(self.model.group_of):
                self._at_most({self.on[at][s]: 1.0, workers[group]: -1.0}, 0.0)
            self._at_most(dict.fromkeys(workers, 1.0), len(slots))

    def _tie_use_and_restarts(self) -> None:
        for row in self.on:
            for here, in_use in zip(row, self._in_use, strict=True):
                self._at_most({here: 1.0, in_use: -1.0}, 0.0)
        for kept, worker in zip(self._kept, self.model.keepable, strict=True):
            for at in self.model.members_of(worker.group):
                there = self.on[at][worker.supervisor]
                inside = at in worker.members
                self._at_most({kept: 1.0, there: -1.0 if inside else 1.0}, 0.0 if inside else 1.0)

    def _price_pair(self, pair: Pair) -> None:
        first, second, everywhere = self.on[pair.first], self.on[pair.second], self._everywhere
        apart = pair.same_apart
        if apart is not None:
            self.constant += apart
            for s in everywhere:
                both = self._product[pair.first, pair.second, s, s] = self._variable(pair.cost[s][s] - apart)
                self._at_most({both: 1.0, first[s]: -1.0}, 0.0)
                self._at_most({both: 1.0, second[s]: -1.0}, 0.0)
            return
        table = [[self._variable(cost) for cost in row] for row in pair.cost]
        for s in everywhere:
            self._rows.append((0.0, {**dict.fromkeys(table[s], 1.0), first[s]: -1.0}, 0.0))
            self._rows.append((0.0, {**{table[t][s]: 1.0 for t in everywhere}, second[s]: -1.0}, 0.0))
            for t in everywhere:
                self._product[pair.first, pair.second, s, t] = table[s][t]

    def _limit_company(self) -> None:
        demand, largest = self.model.demand, max(self.model.demand) or 1.0
        for (at, s), others in company_of(self._product).items():
            room = self.model.room[s]
            if not 0.0 < room < sum(demand):
                continue
            row = {both: demand[other] / largest for other, both in others}
            row[self.on[at][s]] = -(room - demand[at]) / largest - SLACK
            row[self._over[s]] = -1.0 / largest
            self._at_most(row, 0.0)

    def _break_symmetry(self) -> None:
        for order in executor_orders(self.model):
            kept = {self._kept[number]: -1.0 for number in order.unless_kept}
            for s in self._everywhere[:-1]:
                high = dict.fromkeys(self.on[order.high][: s + 1], 1.0)
                low = dict.fromkeys(self.on[order.low][: s + 1], -1.0)
                self._at_most({**high, **low, **kept}, 0.0)
        for order in supervisor_orders(self.model):
            kept = {self._kept[number]: -1.0 for number in order.unless_kept}
            for at in range(len(self.on)):
                lower = {self.on[earlier][order.low]: -1.0 for earlier in range(at)}
                self._at_most({self.on[at][order.high]: 1.0, **lower, **kept}, 0.0)

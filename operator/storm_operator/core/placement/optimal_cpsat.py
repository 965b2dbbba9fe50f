"""The program of `optimal_model.py` for OR-Tools CP-SAT: whole numbers, one thread, a deterministic limit.

The product of two places is linearised as Adams and Johnson do for quadratic assignment (each row of products sums to
the place itself); with equal distances only the products "both on s" are needed. What strengthens the bound most is
capacity times place (reformulation-linearisation, Sherali and Adams): whoever is on a supervisor has only as much
company there as fits beside it.

Prices become whole numbers of 1e-8 of the dearest one, CPU of 1e-3 millicores.
"""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING

from storm_operator.core.placement.optimal_bounds import UNIT_MILLICORES, overload_caps
from storm_operator.core.placement.optimal_model import ExactModel, Pair, Places
from storm_operator.core.placement.optimal_solver import PROOF_TOLERANCE, Solution, company_of
from storm_operator.core.placement.optimal_symmetry import executor_orders, first_in_order, supervisor_orders

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

RESOLUTION = 1e8


def solve_with_cpsat(model: ExactModel, known: Places | None, ceiling: float, effort: float) -> Solution:
    """The best assignment by CP-SAT; `effort` is its deterministic time, on the order of seconds.

    ImportError when OR-Tools is not installed.
    """
    from ortools.sat.python import cp_model

    program = _Program(model, ceiling, cp_model.CpModel())
    if known is not None:
        program.hint(known)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = effort
    solver.parameters.relative_gap_limit = PROOF_TOLERANCE / 2.0
    # More cuts than by default: what is missing in the hard cases is the bound.
    solver.parameters.linearization_level = 2
    solver.parameters.cut_level = 2
    solver.parameters.max_num_cuts = 50_000
    solver.parameters.add_objective_cut = True
    status = solver.solve(program.program)
    if status == cp_model.INFEASIBLE:
        return Solution(None, ceiling)
    bound = program.to_cost(solver.best_objective_bound)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Solution(known, bound)
    chosen = [[solver.boolean_value(variable) for variable in row] for row in program.on]
    return Solution(tuple(row.index(True) for row in chosen), bound)


class _Program:
    """Variables and constraints; `on[executor][supervisor]` is what is decided."""

    def __init__(self, model: ExactModel, ceiling: float, program: cp_model.CpModel) -> None:
        self.model = model
        self.program = program
        dearest_network = sum(max(max(row) for row in pair.cost) for pair in model.pairs)
        self._scale = RESOLUTION / max(model.overload_price, model.supervisor_price, dearest_network, 1e-9)
        self._constant = model.constant
        self._everywhere = range(len(model.supervisors))
        self._units = [round(each / UNIT_MILLICORES) for each in model.demand]
        self._room_units = [_whole_units(room, sum(self._units)) for room in model.room]
        self._cost: list[tuple[cp_model.IntVar, int]] = []
        self._product: dict[tuple[int, int, int, int], cp_model.IntVar] = {}
        self._workers: dict[tuple[int, int], cp_model.IntVar] = {}
        self.on = [[self._binary(cost) for cost in costs] for costs in model.place_cost]
        for row in self.on:
            program.add_exactly_one(row)
        self._in_use = [self._binary(0.0 if anyway else model.supervisor_price) for anyway in model.in_use_anyway]
        self._over = [self._overload(cap) for cap in overload_caps(model, ceiling)]
        self._overfull: list[cp_model.IntVar] = []
        self._kept = [self._binary(-worker.restart_price) for worker in model.keepable]
        self._limit_load()
        self._limit_memory()
        self._limit_workers()
        self._tie_use_and_restarts()
        for pair in model.pairs:
            self._price_pair(pair)
        self._limit_company()
        self._break_symmetry()
        program.minimize(sum(price * variable for variable, price in self._cost))

    def to_cost(self, objective: float) -> float:
        return objective / self._scale + self._constant

    def hint(self, known: Places) -> None:
        """Begin with `known`, as it looks once symmetry is broken."""
        model, add = self.model, self.program.add_hint
        places = first_in_order(model, known)
        for at, place in enumerate(places):
            for s, variable in enumerate(self.on[at]):
                add(variable, s == place)
        for (a, b, s, t), both in self._product.items():
            add(both, places[a] == s and places[b] == t)
        for s in self._everywhere:
            load = sum(self._units[at] for at, place in enumerate(places) if place == s)
            add(self._over[s], max(0, load - self._room_units[s]))
            add(self._in_use[s], s in places)
            if self._overfull:
                megabytes = sum(floor(model.memory[at] + 1e-6) for at, place in enumerate(places) if place == s)
                add(self._overfull[s], max(0, megabytes - _whole_megabytes(model.memory_room[s], sum(model.memory))))
        for kept, worker in zip(self._kept, model.keepable, strict=True):
            add(kept, model.is_kept(worker, places))
        for (group, s), variable in self._workers.items():
            add(variable, any(places[at] == s for at in model.members_of(group)))

    def _binary(self, price: float) -> cp_model.IntVar:
        variable = self.program.new_bool_var("")
        if price != 0.0:
            self._cost.append((variable, round(price * self._scale)))
        return variable

    def _overload(self, cap: float) -> cp_model.IntVar:
        variable = self.program.new_int_var(0, ceil(cap / UNIT_MILLICORES) + (cap > 0.0), "")
        self._cost.append((variable, round(self.model.overload_price * UNIT_MILLICORES * self._scale)))
        return variable

    def _limit_load(self) -> None:
        for s, room in enumerate(self._room_units):
            load = sum(units * row[s] for units, row in zip(self._units, self.on, strict=True))
            self.program.add(load <= (room * self._in_use[s] if room > 0 else room) + self._over[s])

    def _limit_memory(self) -> None:
        """Whole MB, rounded such that nothing that fits is forbidden: the bound holds whatever was declared.

        What obstacles alone declare beyond their supervisor's memory is a constant, and nothing is left there.
        """
        self._constant += self.model.overfull_price * sum(max(0.0, -room) for room in self.model.memory_room)
        declared = [floor(each + 1e-6) for each in self.model.memory]
        if not any(declared):
            return
        price = round(self.model.overfull_price * self._scale)
        for s, room in enumerate(self.model.memory_room):
            over = self.program.new_int_var(0, sum(declared), "")
            self._overfull.append(over)
            self._cost.append((over, price))
            load = sum(each * row[s] for each, row in zip(declared, self.on, strict=True))
            self.program.add(load <= _whole_megabytes(room, sum(declared)) + over)

    def _limit_workers(self) -> None:
        for s, slots in enumerate(self.model.free_slots):
            if self.model.groups <= len(slots):
                continue
            workers = [self._binary(0.0) for _ in range(self.model.groups)]
            self._workers |= {(group, s): worker for group, worker in enumerate(workers)}
            for at, group in enumerate(self.model.group_of):
                self.program.add_implication(self.on[at][s], workers[group])
            self.program.add(sum(workers) <= len(slots))

    def _tie_use_and_restarts(self) -> None:
        for row in self.on:
            for here, in_use in zip(row, self._in_use, strict=True):
                self.program.add_implication(here, in_use)
        for kept, worker in zip(self._kept, self.model.keepable, strict=True):
            for at in self.model.members_of(worker.group):
                there = self.on[at][worker.supervisor]
                self.program.add_implication(kept, there if at in worker.members else ~there)

    def _price_pair(self, pair: Pair) -> None:
        first, second, everywhere = self.on[pair.first], self.on[pair.second], self._everywhere
        apart = pair.same_apart
        if apart is not None:
            self._constant += apart
            for s in everywhere:
                both = self._product[pair.first, pair.second, s, s] = self._binary(pair.cost[s][s] - apart)
                self.program.add_implication(both, first[s])
                self.program.add_implication(both, second[s])
            return
        table = [[self._binary(cost) for cost in row] for row in pair.cost]
        for s in everywhere:
            self.program.add(sum(table[s]) == first[s])
            self.program.add(sum(table[t][s] for t in everywhere) == second[s])
            for t in everywhere:
                self._product[pair.first, pair.second, s, t] = table[s][t]

    def _limit_company(self) -> None:
        for (at, s), others in company_of(self._product).items():
            left = self._room_units[s] - self._units[at]
            load = sum(self._units[b] * both for b, both in others)
            if self._room_units[s] > 0:
                self.program.add(load <= left * self.on[at][s] + self._over[s])

    def _break_symmetry(self) -> None:
        for order in executor_orders(self.model):
            kept = sum(self._kept[number] for number in order.unless_kept)
            for s in self._everywhere[:-1]:
                self.program.add(sum(self.on[order.high][: s + 1]) <= sum(self.on[order.low][: s + 1]) + kept)
        for order in supervisor_orders(self.model):
            kept_there = [self._kept[number] for number in order.unless_kept]
            for at in range(len(self.on)):
                lower = [self.on[earlier][order.low] for earlier in range(at)]
                self.program.add_bool_or([~self.on[at][order.high], *lower, *kept_there])


def _whole_units(room: float, everything: int) -> int:
    """Room in whole units, no more than anyone could use: unlimited room is infinite."""
    return floor(min(room / UNIT_MILLICORES, everything) + 1e-6)


def _whole_megabytes(room: float, everything: float) -> int:
    """The same of memory, none where there is less than none."""
    return ceil(min(max(0.0, room), everything) - 1e-6)

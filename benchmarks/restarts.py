"""How many workers restart when something changes: from the assignment in force, against a plan made from scratch.

What is in force was made from scratch. Then one topology gets half more load, or a supervisor dies, or every
topology's load changes by a factor of its own, and `adaptive` plans twice: from what is in force, and from scratch
again, as a planner does that does not know what is in force. Two figures are told of the fresh plan's restarts: with
supervisors as it chose them, and at best, its parts given to the supervisors (which are equal) in such a way that as
many as possible of its workers are those in force (an optimal matching).

At the default price of restarts `adaptive` leaves traffic as it is where saving it is not worth the restarts. To
compare at equal traffic the price is lowered until its plan has at most 2% more than the fresh one. The last line is
JSON, by change: `equal_traffic` is in how many cases that was reached, `ratio` (median and worst) is of restarts in
those, `ratio_relabelled` the same against the fresh plan at best; `usual_restarts` are those at the default price, and
`usual_cost` what the objective then says, both summed over the cases.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from plan.instance import Instance, Scale, make_instance
from rich.console import Console
from rich.table import Table
from scipy.optimize import linear_sum_assignment

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.placement.objective import cost_of
from storm_operator.core.traffic import TrafficMatrix

Worker = frozenset[Executor]
EQUAL_TRAFFIC = 1.02
PRICES = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.01, 0.0)
"""Factors for what restarts cost."""
BUSIER = 1.5

Change = Callable[[Instance, int], Instance]
"""The same cluster after something happened, which a seed may choose."""
CHANGES: dict[str, Change] = {
    "one topology busier": lambda instance, _: instance.busier_topology(BUSIER),
    "a supervisor dies": lambda instance, _: instance.without_supervisor(),
    "all loads by 10%": lambda instance, seed: with_other_load(instance, 0.1, seed),
    "all loads by 30%": lambda instance, seed: with_other_load(instance, 0.3, seed),
}

console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Restarted workers and the share of tuples between supervisors, from the plan in force and from scratch."""

    change: str
    seed: int
    price: float
    workers: int
    restarts: int
    fresh_restarts: int
    relabelled_restarts: int
    share: float
    fresh_share: float
    usual_restarts: int
    usual_cost: float

    @property
    def is_equal_traffic(self) -> bool:
        return self.share <= EQUAL_TRAFFIC * self.fresh_share

    @property
    def ratio(self) -> float:
        return self.restarts / max(1, self.fresh_restarts)

    @property
    def ratio_relabelled(self) -> float:
        return self.restarts / max(1, self.relabelled_restarts)


def compare(scale: Scale, change: str) -> Comparison:
    """One cluster, before and after one of CHANGES."""
    instance = make_instance(scale)
    in_force = placed(from_scratch(instance))
    changed = CHANGES[change](instance.in_force(in_force), scale.seed)
    fresh = placed(from_scratch(changed))
    fresh_share = share_between(changed, fresh)
    workers = workers_on(in_force)
    usual = placed(changed)
    for price in PRICES:
        after = placed(with_restart_price(changed, price))
        share = share_between(changed, after)
        if share <= EQUAL_TRAFFIC * fresh_share:
            break
    return Comparison(
        change=change,
        seed=scale.seed,
        price=price,
        workers=len(in_force.workers()),
        restarts=len(after.workers()) - kept_in_place(workers, workers_on(after)),
        fresh_restarts=len(fresh.workers()) - kept_in_place(workers, workers_on(fresh)),
        relabelled_restarts=len(fresh.workers()) - kept_at_most(workers, workers_on(fresh)),
        share=share,
        fresh_share=fresh_share,
        usual_restarts=len(usual.workers()) - kept_in_place(workers, workers_on(usual)),
        usual_cost=cost_of(changed.snapshot, usual, changed.demand, changed.settings).total,
    )


def from_scratch(instance: Instance) -> Instance:
    """Nothing in force, but supervisors at the price that they have: it is told by how many are in use."""
    used = len(instance.snapshot.assignment.used_supervisors())
    scheduling = instance.settings.scheduling
    weights = replace(scheduling.weights, supervisor_in_use=scheduling.weights.supervisor_in_use / used)
    settings = replace(instance.settings, scheduling=replace(scheduling, weights=weights))
    return replace(instance.in_force(Assignment({})), settings=settings)


def with_restart_price(instance: Instance, factor: float) -> Instance:
    scheduling = instance.settings.scheduling
    weights = scheduling.weights
    cheaper = replace(weights, worker_restart=factor * weights.worker_restart, state_lost=factor * weights.state_lost)
    return replace(instance, settings=replace(instance.settings, scheduling=replace(scheduling, weights=cheaper)))


def placed(instance: Instance) -> Assignment:
    found = place_adaptive(instance.snapshot, instance.demand, instance.settings)
    if isinstance(found, Infeasible):
        raise SystemExit(found.reason)
    return found


def with_other_load(instance: Instance, swing: float, seed: int) -> Instance:
    """Every topology carries another load; all together as much as before, so that it fits.

    `swing` is the standard deviation of the logarithm of each topology's factor.
    """
    rng = np.random.default_rng((seed, 7))
    factor = {topology.id: float(rng.lognormal(0.0, swing)) for topology in instance.snapshot.topologies}
    demand = {e: value * factor[e.topology_id] for e, value in instance.demand.millicores.items()}
    same = sum(instance.demand.millicores.values()) / sum(demand.values())
    demand = {e: min(1000.0, value * same) for e, value in demand.items()}
    traffic = instance.snapshot.traffic
    sources, targets, rates = traffic.flows()
    factors = np.array([same * factor[executor.topology_id] for executor in traffic.executors])
    traffic = TrafficMatrix.from_arrays(traffic.executors, sources, targets, rates * factors[sources])
    return replace(instance, snapshot=replace(instance.snapshot, traffic=traffic), demand=Demand(demand, demand))


def workers_on(assignment: Assignment) -> dict[str, set[Worker]]:
    """The sets of executors that share a worker, by supervisor."""
    found: dict[str, set[Worker]] = {}
    for slot, executors in assignment.workers().items():
        found.setdefault(slot.supervisor_id, set()).add(frozenset(executors))
    return found


def kept_in_place(before: dict[str, set[Worker]], after: dict[str, set[Worker]]) -> int:
    """Workers that go on as they are where they are."""
    return sum(len(workers & before.get(at, set())) for at, workers in after.items())


def kept_at_most(before: dict[str, set[Worker]], after: dict[str, set[Worker]]) -> int:
    """Workers that could go on if the supervisors of `after` were renamed in the best way."""
    old, new = sorted(before), sorted(after)
    common = np.array([[len(after[b] & before[a]) for a in old] for b in new])
    rows, columns = linear_sum_assignment(common, maximize=True)
    return int(common[rows, columns].sum())


def share_between(instance: Instance, assignment: Assignment) -> float:
    """The part of all tuples that goes between supervisors."""
    traffic = instance.snapshot.traffic
    return traffic.inter_supervisor(assignment) / sum(rate for _, _, rate in traffic.pairs())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executors", type=int, default=1000)
    parser.add_argument("--supervisors", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--changes", nargs="+", default=list(CHANGES), choices=list(CHANGES))
    options = parser.parse_args()
    table = Table("change", "seed", "restarts", "from scratch", "relabelled", "traffic", "usual")
    found = []
    for change in options.changes:
        for seed in range(1, options.seeds + 1):
            one = compare(Scale(options.executors, options.supervisors, seed=seed), change)
            found.append(one)
            console.print(f"{change}, seed {seed}: {one.restarts} restarts, {one.fresh_restarts} from scratch")
            table.add_row(*_cells(one))
    console.print(table)
    console.print(
        "Restarted workers at equal traffic, by a plan from scratch, and by that one given to the supervisors in the "
        "best way; traffic between supervisors over that of the plan from scratch; restarts at the usual price."
    )
    summary = {change: _summed_up([one for one in found if one.change == change]) for change in options.changes}
    sys.stdout.write(json.dumps(summary) + "\n")


def _cells(one: Comparison) -> tuple[str, ...]:
    traffic = f"{one.share / one.fresh_share:.3f}" + ("" if one.is_equal_traffic else ", not equal")
    restarts = (one.restarts, one.fresh_restarts, one.relabelled_restarts)
    return one.change, str(one.seed), *map(str, restarts), traffic, str(one.usual_restarts)


def _summed_up(cases: Sequence[Comparison]) -> dict[str, float | list[float]]:
    equal = [one for one in cases if one.is_equal_traffic]
    ratios, relabelled = [one.ratio for one in equal], [one.ratio_relabelled for one in equal]
    summary: dict[str, float | list[float]] = {"cases": len(cases), "equal_traffic": len(equal)}
    summary["usual_restarts"] = sum(one.usual_restarts for one in cases)
    summary["usual_cost"] = round(sum(one.usual_cost for one in cases))
    if equal:
        summary["ratio"] = [round(statistics.median(ratios), 3), round(max(ratios), 3)]
        summary["ratio_relabelled"] = [round(statistics.median(relabelled), 3), round(max(relabelled), 3)]
    return summary


if __name__ == "__main__":
    main()

"""How many workers restart when load has changed: from the assignment in force, against a plan made from scratch.

What is in force was made from scratch. Then every topology's rates and demand change by a factor of its own, and
`adaptive` plans twice: from what is in force, and from scratch again. The fresh plan is then given to the supervisors,
which are equal, so that as many of its workers as possible are those in force (an optimal matching): the best that it
could do.

At the default price of restarts `adaptive` leaves traffic as it is where saving it is not worth the restarts. To
compare at equal traffic the price is lowered until its plan has at most 2% more than the fresh one. The last line is
JSON: `equal_traffic` is in how many cases that was reached, the ratios are of restarts in those.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import dataclass, fields, replace

import numpy as np
from plan.instance import Instance, Scale, make_instance
from rich.console import Console
from rich.table import Table
from scipy.optimize import linear_sum_assignment

from storm_operator.core.model import Assignment, Demand, Executor, Infeasible
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.traffic import TrafficMatrix

Worker = frozenset[Executor]
EQUAL_TRAFFIC = 1.02
PRICES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)
"""Factors for what restarts cost."""

console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Restarted workers and the share of tuples between supervisors, from the plan in force and from scratch."""

    seed: int
    swing: float
    price: float
    workers: int
    restarts: int
    fresh_restarts: int
    share: float
    fresh_share: float

    @property
    def is_equal_traffic(self) -> bool:
        return self.share <= EQUAL_TRAFFIC * self.fresh_share

    @property
    def ratio(self) -> float:
        return self.restarts / max(1, self.fresh_restarts)


def compare(scale: Scale, swing: float) -> Comparison:
    """One cluster; `swing` is the standard deviation of the logarithm of each topology's factor."""
    instance = make_instance(scale)
    in_force = placed(from_scratch(instance))
    changed = with_other_load(instance.in_force(in_force), swing, scale.seed)
    fresh = placed(from_scratch(changed))
    fresh_share = share_between(changed, fresh)
    for price in PRICES:
        after = placed(with_restart_price(changed, price))
        share = share_between(changed, after)
        if share <= EQUAL_TRAFFIC * fresh_share:
            break
    workers = workers_on(in_force)
    return Comparison(
        seed=scale.seed,
        swing=swing,
        price=price,
        workers=len(in_force.workers()),
        restarts=len(after.workers()) - kept_in_place(workers, workers_on(after)),
        fresh_restarts=len(fresh.workers()) - kept_at_most(workers, workers_on(fresh)),
        share=share,
        fresh_share=fresh_share,
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
    """Every topology carries another load; all together as much as before, so that it fits."""
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
    parser.add_argument("--swings", type=float, nargs="+", default=[0.1, 0.3])
    options = parser.parse_args()
    columns = "seed", "swing", "price", "workers", "restarts", "from scratch", "share", "from scratch", "equal traffic"
    table = Table(*columns)
    found = []
    for swing in options.swings:
        for seed in range(1, options.seeds + 1):
            one = compare(Scale(options.executors, options.supervisors, seed=seed), swing)
            found.append(one)
            console.log(one)
            cells = [getattr(one, field.name) for field in fields(one)]
            table.add_row(*(f"{cell:.3g}" for cell in cells), "yes" if one.is_equal_traffic else "NO")
    console.print(table)
    ratios = [one.ratio for one in found if one.is_equal_traffic] or [float("nan")]
    summary = {
        "cases": len(found),
        "equal_traffic": sum(one.is_equal_traffic for one in found),
        "median_ratio": round(statistics.median(ratios), 3),
        "worst_ratio": round(max(ratios), 3),
    }
    sys.stdout.write(json.dumps(summary) + "\n")


if __name__ == "__main__":
    main()

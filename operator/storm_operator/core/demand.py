"""How much CPU each executor is to have in the next control period (Liu et al., section III-A.2, eq. 2-5).

A component's CPU per tuple (kappa) times the tuples that it will have to process (psi, from the forecast) is its need;
its executors share that, and each share is rounded up to the granularity theta with at least theta/2 to spare. A share
goes up at once, and down only when it has fallen by theta/2 or more.

Beyond the paper:

- kappa divides by the tuples that were *executed*. The paper's psi_k is "the number of tuples processed", and that is
  what CPU was spent on: in a saturated component arrivals would make a tuple look cheaper than it is.
- Periods that executed next to nothing say what idling costs, not what a tuple costs; they are left out of kappa. A
  component that executed nothing at all needs what it was measured to use.
- Executors need not be equal (fields grouping on a skewed key; shuffle, which prefers receivers nearby). Where one
  used clearly more than its even share, each gets the component's need in proportion to what it used: even shares for
  the others would count what that one does twice.
- An executor that runs at its enforced limit would use more if it could, and back-pressure hides by how much: it needs
  at least theta more than its limit, so that it grows by two steps a period instead of one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.forecast import ComponentKey, LoadForecast, busy_periods, forecast_loads, measured_loads
from storm_operator.core.model import Executor, Topology, in_order
from storm_operator.core.settings import Enforcement, Forecast, ResourceSettings
from storm_operator.core.snapshot import ClusterSnapshot, ComponentLoad

LEAST_SKEW, SURE_SKEW = 1.1, 1.4
"""Times the mean of its component: an executor that uses less than the one is noise, than the other more and more skew.
Between them shares pass from even to own, so that nobody's need jumps with the noise."""

AT_LIMIT_FRACTION = 0.95
"""Using this much of the limit is being held back by it."""

ROUNDING_NOISE = 1e-9


def estimate_demand(
    snapshot: ClusterSnapshot,
    previous: Demand | None,
    settings: ResourceSettings,
    phi: int,
    forecast: Forecast = Forecast.LINE,
) -> Demand:
    """CPU in millicores for every executor whose component's load and CPU are known; the others are absent.

    `previous` is the demand of the period before (None at the start); `phi` the periods to look back over;
    `forecast` is how they are continued, as Liu does unless told otherwise.
    """
    return demand_of_forecasts(snapshot, forecast_loads(snapshot, phi, forecast), previous, settings, phi)


def demand_of_forecasts(
    snapshot: ClusterSnapshot,
    forecasts: Mapping[ComponentKey, LoadForecast],
    previous: Demand | None,
    settings: ResourceSettings,
    phi: int,
) -> Demand:
    """`estimate_demand` where the loads to come are known already, whoever forecast them."""
    needs: dict[Executor, float] = {}
    for topology in snapshot.topologies:
        for component, need in component_needs(topology, snapshot, forecasts, phi).items():
            needs.update(shared_out(need, topology.executors_of(component), snapshot))
    raw = {executor: _steady(executor, need, previous, snapshot, settings) for executor, need in needs.items()}
    return Demand(
        millicores={executor: allocation(need, settings) for executor, need in raw.items()}, raw_millicores=raw
    )


def executors_without_demand(snapshot: ClusterSnapshot, demand: Demand) -> tuple[Executor, ...]:
    """The executors of the snapshot's topologies whose need nobody can tell, sorted."""
    return tuple(
        in_order(
            executor
            for topology in snapshot.topologies
            for executor in topology.executors
            if not demand.is_known(executor)
        )
    )


def component_needs(
    topology: Topology, snapshot: ClusterSnapshot, forecasts: Mapping[ComponentKey, LoadForecast], phi: int
) -> Mapping[str, float]:
    """Liu's R (eq. 3): millicores that each component needs next; unknown ones are absent."""
    window = snapshot.history[-phi:]
    needs = {}
    for name in (component.name for component in topology.components):
        forecast = forecasts.get((topology.id, name))
        loads = [load for _, load in measured_loads(topology, name, window)]
        if forecast is not None and loads:
            kappa = cpu_per_tuple(loads)
            needs[name] = loads[-1].cpu_millicores if kappa is None else forecast.to_process_per_second * kappa
    return needs


def cpu_per_tuple(loads: Sequence[ComponentLoad]) -> float | None:
    """Liu's kappa (eq. 2) in millicores per (tuple per second): the mean over the busy periods; None if all idled."""
    busy = busy_periods(loads)
    return statistics.fmean(load.cpu_millicores / load.executed_per_second for load in busy) if busy else None


def allocation(need_millicores: float, settings: ResourceSettings) -> float:
    """Liu's eq. 5: `need` and theta/2, rounded up to whole thetas; then kept between floor and ceiling."""
    theta = settings.theta_millicores
    steps = math.ceil((need_millicores + theta / 2.0) / theta - ROUNDING_NOISE)
    return min(max(steps * theta, settings.floor_millicores), settings.ceiling_millicores)


def held_share(need_millicores: float, held_millicores: float | None, theta_millicores: float) -> float:
    """Up at once, down late: the share to go by, given the one held so far (None: none)."""
    if held_millicores is None or need_millicores > held_millicores:
        return need_millicores
    fallen_enough = held_millicores - need_millicores >= theta_millicores / 2.0
    return need_millicores if fallen_enough else held_millicores


def shared_out(need: float, executors: Sequence[Executor], snapshot: ClusterSnapshot) -> Mapping[Executor, float]:
    """Liu's r (eq. 4): `need` split evenly, or in proportion to what was used where the traffic is skewed."""
    if not executors:
        return {}
    even = need / len(executors)
    used = {executor: _used(executor, snapshot) for executor in executors}
    known = [value for value in used.values() if value is not None]
    if len(known) < len(executors) or sum(known) <= 0.0:
        return dict.fromkeys(executors, even)
    skew = max(known) / statistics.fmean(known)
    skewed = min(1.0, max(0.0, (skew - LEAST_SKEW) / (SURE_SKEW - LEAST_SKEW)))
    own = {executor: need * value / sum(known) for executor, value in used.items() if value is not None}
    return {executor: even + skewed * (share - even) for executor, share in own.items()}


def _steady(
    executor: Executor,
    need: float,
    previous: Demand | None,
    snapshot: ClusterSnapshot,
    settings: ResourceSettings,
) -> float:
    if previous is None:
        return need
    limit = previous.millicores.get(executor)
    if limit is not None and is_held_back(executor, limit, snapshot, settings):
        need = max(need, limit + settings.theta_millicores)
    return held_share(need, previous.raw_millicores.get(executor), settings.theta_millicores)


def is_held_back(executor: Executor, limit: float, snapshot: ClusterSnapshot, settings: ResourceSettings) -> bool:
    """Whether the executor uses all of its enforced `limit` (millicores), and would use more if it could."""
    used = _used(executor, snapshot)
    if used is None or settings.enforcement is not Enforcement.EXECUTOR:
        return False
    # Far above the limit means that the limit is not in force (no permission, a worker that has just started).
    return AT_LIMIT_FRACTION * limit <= used <= limit / AT_LIMIT_FRACTION


def _used(executor: Executor, snapshot: ClusterSnapshot) -> float | None:
    load = snapshot.loads.get(executor)
    return None if load is None else load.cpu_millicores

"""How much each component will have to process in the next control period (Liu et al., section III-A.1).

A component's arrivals are forecast twice: from its own past, by linear least squares over the last phi periods (or
by `damped_trend`), and from its parents, as what they will have to process times what they emit for each tuple. The
larger one wins.

Where a season was learned for a component it alone counts, and its children hear nothing of it: its backtest judged it
alone, and the larger of two forecasts that are each right on average is too much on average. A component without a
season is forecast as if nothing had been learned.

Where the paper is silent or disagrees with itself:

- delta. Section III-A calls it the change of the queue's length, section IV-A measures executed - arrived, which has
  the opposite sign. Taken as growth (positive when the queue grows), because psi = L + delta is what a component
  *needs* to process: its arrivals and the backlog that built up. A shrinking queue is not subtracted from the
  arrivals: that would starve a component just as it catches up.
- rho is one number for each parent, so that every child would be sent all that its parent emits. Where the traffic
  between executors was measured, the edge's own traffic in the newest period corrects that (several streams, system
  streams, `all` grouping): it counts as a share of what the parent emitted, but for no more than what went along the
  edge for each tuple that the parent executed. Acks follow what is executed, not what is emitted. An edge without any
  traffic while both ends were measured has none. Otherwise the child is sent all, as in the paper.
- Periods that executed next to nothing are left out of rho, as they are of kappa: a window that is flushed while the
  source pauses tells nothing of what a tuple leads to.
- A spout has no input queue: what waits at it are acks. What it emits is taken for what arrived at it and what it
  processed (Storm's executed count of a spout is about acks, too), so that its rho is 1.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import networkx as nx

from storm_operator.core.damped_trend import damped_trend
from storm_operator.core.learned_profile import NOTHING_LEARNED, SEASONAL, Learned
from storm_operator.core.model import ComponentKind, Topology
from storm_operator.core.seasonal import seasonal_forecast
from storm_operator.core.settings import Forecast
from storm_operator.core.snapshot import ClusterSnapshot, ComponentLoad, LoadPeriod
from storm_operator.core.traffic import TrafficMatrix

LEAST_PER_SECOND = 1e-6
"""A rate below this is nothing: no ratio is formed with it."""

IDLE_FRACTION = 0.05
"""A period that executed less than this share of the busiest one says nothing about what a tuple costs or leads to."""

PARENTS = "Parents"
"""The forecaster of a component that nobody measured: what its parents will send it."""

Point = tuple[float, float]
Measured = Mapping[str, Sequence[tuple[float, ComponentLoad]]]


@dataclass(frozen=True, slots=True)
class LoadForecast:
    """One component in the next period: L (arrivals) and the mean delta (queue growth), both in tuples per second.

    `forecaster` is what its arrivals were forecast with (`Forecast`'s values, `Seasonal`, or `Parents` where nobody
    measured it); `why_not_learned` says why that is not its learned season, where a profile was given.
    """

    arrivals_per_second: float
    queue_growth_per_second: float
    forecaster: str = ""
    why_not_learned: str = ""

    @property
    def to_process_per_second(self) -> float:
        """Liu's psi (eq. 1): arrivals, and the backlog if it has been growing."""
        return self.arrivals_per_second + max(0.0, self.queue_growth_per_second)


ComponentKey = tuple[str, str]
"""(topology id, component)."""


def forecast_loads(
    snapshot: ClusterSnapshot, phi: int, method: Forecast = Forecast.LINE, learned: Learned = NOTHING_LEARNED
) -> Mapping[ComponentKey, LoadForecast]:
    """The load of every component of the snapshot's topologies in its next period; unknown ones are absent.

    By any method but Liu's own line, all that waits in queues now is to be worked off in that period: in a saturated
    topology queues are as long as they get, so that they grow no more, and back-pressure keeps from the arrivals what
    sources would send.
    """
    found = {}
    for topology in snapshot.topologies:
        waiting = {} if method is Forecast.LINE else _waiting_per_second(topology, snapshot)
        loads = forecast_load(topology, snapshot.history, phi, snapshot.traffic, method, learned, waiting)
        found.update({(topology.id, component): load for component, load in loads.items()})
    return found


def forecast_load(
    topology: Topology,
    history: Sequence[LoadPeriod],
    phi: int,
    traffic: TrafficMatrix | None = None,
    method: Forecast = Forecast.LINE,
    learned: Learned = NOTHING_LEARNED,
    waiting_per_second: Mapping[str, float] | None = None,
) -> Mapping[str, LoadForecast]:
    """The load of each component in the period after `history`, which is oldest first.

    With fewer than `phi` periods those there are count; with one, its value is repeated. A component that nobody
    measured and whose parents are unknown too is absent. `traffic` is that of the newest period. `method` is how a
    component's own past is continued: as Liu does unless told otherwise, or `learned` has a season for it.
    """
    window = tuple(history[-phi:])
    measured = {component.name: measured_loads(topology, component.name, window) for component in topology.components}
    flows = _edge_flows(topology, measured, traffic, frozenset(window[-1].components) if window else frozenset())
    plain: dict[str, LoadForecast] = {}
    forecasts: dict[str, LoadForecast] = {}
    for name in _parents_first(topology):
        series = [load for _, load in measured[name]]
        points = [(at, load.arrived_per_second) for at, load in measured[name]]
        own = _from_window(points, window, method)
        inherited = _load_from_parents(topology, name, plain, measured, flows)
        known = [arrivals for arrivals in (own, inherited) if arrivals is not None]
        if not known:
            continue
        growth = statistics.fmean(load.queue_growth_per_second for load in series) if series else 0.0
        waiting = 0.0 if waiting_per_second is None else waiting_per_second.get(name, 0.0)
        plain[name] = LoadForecast(max(known), max(growth, waiting), method.value if own is not None else PARENTS)
        season, why_not = _in_season((topology.id, name), points, window, learned)
        forecasts[name] = (
            replace(plain[name], why_not_learned=why_not)
            if season is None
            else replace(plain[name], arrivals_per_second=season, forecaster=SEASONAL)
        )
    return forecasts


def _waiting_per_second(topology: Topology, snapshot: ClusterSnapshot) -> Mapping[str, float]:
    """Tuples that wait at each component, by the seconds of a period; those of which nobody knows count nothing."""
    spouts = {component.name for component in topology.components if component.kind is ComponentKind.SPOUT}
    waiting: dict[str, float] = {}
    for executor in topology.executors:
        load = snapshot.loads.get(executor)
        tuples = None if load is None else load.waiting_tuples
        if tuples is not None and executor.component not in spouts:
            waiting[executor.component] = waiting.get(executor.component, 0.0) + tuples
    seconds = _seconds_to_work_off(snapshot)
    return {component: tuples / seconds for component, tuples in waiting.items()}


def _seconds_to_work_off(snapshot: ClusterSnapshot) -> float:
    """The length of a period. After a late pass the next one follows at once: no less than its rates are of."""
    return max([snapshot.period_seconds, *(newest.period_seconds for newest in snapshot.history[-1:])])


def measured_loads(
    topology: Topology, component: str, window: Sequence[LoadPeriod]
) -> tuple[tuple[float, ComponentLoad], ...]:
    """(end of period, load) for each period of `window` that measured `component`; spouts as the module says."""
    is_spout = topology.component(component).kind is ComponentKind.SPOUT
    found = []
    for period in window:
        load = period.components.get((topology.id, component))
        if load is not None:
            found.append((period.ended_at_seconds, _as_source(load) if is_spout else load))
    return tuple(found)


def busy_periods(loads: Sequence[ComponentLoad]) -> tuple[ComponentLoad, ...]:
    """Those of a component's `loads` that can be divided by what was executed; none where all idled."""
    busiest = max((load.executed_per_second for load in loads), default=0.0)
    if busiest < LEAST_PER_SECOND:
        return ()
    return tuple(load for load in loads if load.executed_per_second >= IDLE_FRACTION * busiest)


def forecast_series(points: Sequence[Point], at_seconds: float) -> float | None:
    """The least-squares line through (time, value) `points`, read at `at_seconds`; never negative, None of nothing."""
    if not points:
        return None
    if len(points) == 1:
        return max(0.0, points[0][1])
    # Times count from the forecast's own: the line's value there is its intercept, exact also for seconds since 1970.
    times = [time - at_seconds for time, _ in points]
    line = statistics.linear_regression(times, [value for _, value in points])
    return max(0.0, line.intercept)


def _in_season(
    key: ComponentKey, points: Sequence[Point], window: Sequence[LoadPeriod], learned: Learned
) -> tuple[float | None, str]:
    """What a component's learned season leads to; None, and why, where there is none to go by."""
    profile = learned.components.get(key)
    if profile is None:
        return None, learned.refusals.get(key[0], "")
    if profile.season is None:
        return None, "the profile has no season to go by"
    if profile.forecaster != SEASONAL:
        return None, f"the profile found {profile.forecaster} to be better than its season"
    if window:
        found = seasonal_forecast(profile.season, points, _next_period_end(window), window[-1].period_seconds)
        if found is not None:
            return found, ""
    return None, "the last periods do not tell how far the load is from its season"


def _from_window(points: Sequence[Point], window: Sequence[LoadPeriod], method: Forecast) -> float | None:
    end = _next_period_end(window)
    if method is Forecast.LINE or not window:
        return forecast_series(points, end)
    return damped_trend(points, end, window[-1].period_seconds)


def _as_source(load: ComponentLoad) -> ComponentLoad:
    return ComponentLoad(
        arrived_per_second=load.emitted_per_second,
        executed_per_second=load.emitted_per_second,
        emitted_per_second=load.emitted_per_second,
        queue_growth_per_second=0.0,
        cpu_millicores=load.cpu_millicores,
    )


def _next_period_end(window: Sequence[LoadPeriod]) -> float:
    return window[-1].ended_at_seconds + window[-1].period_seconds if window else 0.0


def _parents_first(topology: Topology) -> list[str]:
    """Components in topological order; those of a cycle in the order of their names.

    Ackers answer to spouts; that is no load of theirs, and would make one cycle of every acked topology.
    """
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(component.name for component in topology.components)
    graph.add_edges_from((edge.source, edge.target) for edge in topology.edges if not _is_spout(topology, edge.target))
    cycles = nx.condensation(graph)
    members = {group: sorted(cycles.nodes[group]["members"]) for group in cycles}
    return [name for group in nx.lexicographical_topological_sort(cycles, key=members.get) for name in members[group]]


def _load_from_parents(
    topology: Topology,
    component: str,
    forecasts: Mapping[str, LoadForecast],
    measured: Measured,
    flows: Mapping[tuple[str, str], float],
) -> float | None:
    """Liu's eq. 1: the sum of psi * rho over the parents that are known; None when none of them is.

    A parent that comes later (in a cycle) is left to the component's own regression.
    """
    if _is_spout(topology, component):
        return None
    sent = []
    for parent in topology.parents_of(component):
        rho = _emitted_for_each(measured[parent])
        if parent in forecasts and rho is not None:
            flow = flows.get((parent, component))
            sent_for_each = rho if flow is None else _sent_for_each(flow, measured[parent][-1][1], rho)
            sent.append(forecasts[parent].to_process_per_second * sent_for_each)
    return sum(sent) if sent else None


def _is_spout(topology: Topology, component: str) -> bool:
    return topology.component(component).kind is ComponentKind.SPOUT


def _emitted_for_each(loads: Sequence[tuple[float, ComponentLoad]]) -> float | None:
    """Liu's rho: tuples emitted for each tuple executed, the mean of the busy periods; None if all idled."""
    busy = busy_periods([load for _, load in loads])
    ratios = [load.emitted_per_second / load.executed_per_second for load in busy]
    return statistics.fmean(ratios) if ratios else None


def _sent_for_each(flow_per_second: float, newest: ComponentLoad, rho: float) -> float:
    """Tuples along an edge for each that its parent executes; the parent's `rho` where nothing else is known.

    `newest` is the parent in the period of the flow. The smaller of two counts: a share of little emitted is no share
    of the mean's rho, and what a burst sent along the edge is not sent in every period.
    """
    known = []
    if newest.emitted_per_second >= LEAST_PER_SECOND:
        known.append(rho * flow_per_second / newest.emitted_per_second)
    if newest.executed_per_second >= LEAST_PER_SECOND:
        known.append(flow_per_second / newest.executed_per_second)
    return min(known, default=rho)


def _edge_flows(
    topology: Topology, measured: Measured, traffic: TrafficMatrix | None, measured_now: Collection[ComponentKey]
) -> Mapping[tuple[str, str], float]:
    """Tuples per second from parent to child, for the parents that emitted something and whose traffic was measured.

    A child that is not among those that are `measured_now` and got nothing may have got more than is known: absent.
    """
    if traffic is None:
        return {}
    component_of = {executor: executor.component for executor in topology.executors}
    flows = traffic.within(topology.id).flows_between(component_of.get)
    sent = {(source, target): rate for source, target, rate in flows.summed()}
    senders = {source for source, _ in sent}
    idle = {
        (edge.source, edge.target): 0.0
        for edge in topology.edges
        if edge.source in senders and (topology.id, edge.target) in measured_now
    }
    emitted = {name: series[-1][1].emitted_per_second for name, series in measured.items() if series}
    return {edge: rate for edge, rate in {**idle, **sent}.items() if emitted.get(edge[0], 0.0) >= LEAST_PER_SECOND}

"""How much each component will have to process in the next control period (Liu et al., section III-A.1).

A component's arrivals are forecast twice: from its own past, by linear least squares over the last phi periods (or
by `damped_trend`, or by its learned season), and from its parents, as what they will have to process times what they
emit for each tuple. The larger one wins.

Where the paper is silent or disagrees with itself:

- delta. Section III-A calls it the change of the queue's length, section IV-A measures executed - arrived, which has
  the opposite sign. Taken as growth (positive when the queue grows), because psi = L + delta is what a component
  *needs* to process: its arrivals and the backlog that built up. A shrinking queue is not subtracted from the
  arrivals: that would starve a component just as it catches up.
- rho is one number for each parent, so that every child would be sent all that its parent emits. Where the traffic
  between executors was measured, the edge's own share of the parent's emissions in the newest period corrects that
  (several streams, system streams, `all` grouping); otherwise the share is 1, as in the paper.
- A spout has no input queue. What it emits is taken for what arrived at it and what it processed (Storm's executed
  count of a spout is about acks), so that its rho is 1.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from storm_operator.core.damped_trend import damped_trend
from storm_operator.core.learned_profile import NOTHING_LEARNED, SEASONAL, Learned
from storm_operator.core.model import ComponentKind, Topology
from storm_operator.core.seasonal import Outlook, Season, seasonal_outlook
from storm_operator.core.settings import Forecast
from storm_operator.core.snapshot import ClusterSnapshot, ComponentLoad, LoadPeriod
from storm_operator.core.traffic import TrafficMatrix

LEAST_PER_SECOND = 1e-6
"""A rate below this is nothing: no ratio is formed with it."""

PARENTS = "Parents"
"""The forecaster of a component that nobody measured: what its parents will send it."""

Point = tuple[float, float]
Measured = Mapping[str, Sequence[tuple[float, ComponentLoad]]]


@dataclass(frozen=True, slots=True)
class LoadForecast:
    """One component in the next period: L (arrivals) and the mean delta (queue growth), both in tuples per second.

    `forecaster` is what its arrivals were forecast with (`Forecast`'s values, `Seasonal`, or `Parents` where nobody
    measured it); `why_not_learned` says why that is not its learned season, where a profile was given. A season is
    ready for more than is expected: `expected_per_second` are its arrivals without that, None where it is the same.
    """

    arrivals_per_second: float
    queue_growth_per_second: float
    forecaster: str = ""
    why_not_learned: str = ""
    expected_per_second: float | None = None

    @property
    def to_process_per_second(self) -> float:
        """Liu's psi (eq. 1): arrivals, and the backlog if it has been growing."""
        return self.arrivals_per_second + max(0.0, self.queue_growth_per_second)

    @property
    def expected_to_process_per_second(self) -> float:
        """The same without what only readiness adds: what children are sent. Each is ready for its own part of it."""
        expected = self.arrivals_per_second if self.expected_per_second is None else self.expected_per_second
        return expected + max(0.0, self.queue_growth_per_second)


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
    shares = _edge_shares(topology, measured, traffic)
    forecasts: dict[str, LoadForecast] = {}
    for name in _parents_first(topology):
        series = [load for _, load in measured[name]]
        points = [(at, load.arrived_per_second) for at, load in measured[name]]
        own, forecaster, why_not = _continued((topology.id, name), points, window, method, learned)
        inherited = _load_from_parents(topology, name, forecasts, measured, shares)
        if own is None and inherited is None:
            continue
        arrivals, expected = (
            _larger(value, inherited) for value in ((own.ready, own.expected) if own else (None, None))
        )
        growth = statistics.fmean(load.queue_growth_per_second for load in series) if series else 0.0
        waiting = 0.0 if waiting_per_second is None else waiting_per_second.get(name, 0.0)
        forecasts[name] = LoadForecast(
            arrivals_per_second=arrivals,
            queue_growth_per_second=max(growth, waiting),
            forecaster=forecaster if own else PARENTS,
            why_not_learned=why_not,
            expected_per_second=expected if expected < arrivals else None,
        )
    return forecasts


def _waiting_per_second(topology: Topology, snapshot: ClusterSnapshot) -> Mapping[str, float]:
    """Tuples that wait at each component, by the seconds of a period; those of which nobody knows count nothing."""
    waiting: dict[str, float] = {}
    for executor in topology.executors:
        load = snapshot.loads.get(executor)
        if load is not None and load.queue_length is not None:
            waiting[executor.component] = waiting.get(executor.component, 0.0) + load.queue_length
    return {component: tuples / snapshot.period_seconds for component, tuples in waiting.items()}


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


def _continued(
    key: ComponentKey, points: Sequence[Point], window: Sequence[LoadPeriod], method: Forecast, learned: Learned
) -> tuple[Outlook | None, str, str]:
    """What a component's own past leads to, by which forecaster, and why not by what was learned (or empty)."""
    profile, why_not = learned.components.get(key), learned.refusals.get(key[0], "")
    if profile is not None and (profile.forecaster != SEASONAL or profile.season is None):
        why_not = f"the profile found {profile.forecaster} to be better than its season"
    elif profile is not None and profile.season is not None:
        found = _in_season(profile.season, points, window)
        if found is not None:
            return found, SEASONAL, ""
        why_not = "the last periods do not tell how far the load is from its season"
    found_plainly = _from_window(points, window, method)
    return None if found_plainly is None else Outlook(found_plainly, found_plainly), method.value, why_not


def _in_season(season: Season, points: Sequence[Point], window: Sequence[LoadPeriod]) -> Outlook | None:
    if not window:
        return None
    return seasonal_outlook(season, points, _next_period_end(window), window[-1].period_seconds)


def _from_window(points: Sequence[Point], window: Sequence[LoadPeriod], method: Forecast) -> float | None:
    end = _next_period_end(window)
    if method is Forecast.LINE or not window:
        return forecast_series(points, end)
    return damped_trend(points, end, window[-1].period_seconds)


def _larger(one: float | None, other: float | None) -> float:
    """Liu's rule; at least one of them is known."""
    return max(value for value in (one, other) if value is not None)


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
    shares: Mapping[tuple[str, str], float],
) -> float | None:
    """Liu's eq. 1: the sum of psi * rho over the parents that are known; None when none of them is.

    Readiness is not handed down: each component adds its own, and of several the largest would win every time.

    A parent that comes later (in a cycle) is left to the component's own regression.
    """
    if _is_spout(topology, component):
        return None
    sent = []
    for parent in topology.parents_of(component):
        rho = _emitted_for_each(measured[parent])
        if parent in forecasts and rho is not None:
            sent.append(forecasts[parent].expected_to_process_per_second * rho * shares.get((parent, component), 1.0))
    return sum(sent) if sent else None


def _is_spout(topology: Topology, component: str) -> bool:
    return topology.component(component).kind is ComponentKind.SPOUT


def _emitted_for_each(loads: Sequence[tuple[float, ComponentLoad]]) -> float | None:
    """Liu's rho: tuples emitted for each tuple executed, the mean of the periods in which any was executed."""
    ratios = [
        load.emitted_per_second / load.executed_per_second
        for _, load in loads
        if load.executed_per_second >= LEAST_PER_SECOND
    ]
    return statistics.fmean(ratios) if ratios else None


def _edge_shares(
    topology: Topology, measured: Measured, traffic: TrafficMatrix | None
) -> Mapping[tuple[str, str], float]:
    """What part of a parent's emissions goes to each child, for the parents whose traffic was measured."""
    if traffic is None:
        return {}
    component_of = {executor: executor.component for executor in topology.executors}
    flows = traffic.within(topology.id).flows_between(component_of.get)
    sent = {(source, target): rate for source, target, rate in flows.summed()}
    emitted = {name: series[-1][1].emitted_per_second for name, series in measured.items() if series}
    return {
        edge: rate / emitted[edge[0]] for edge, rate in sent.items() if emitted.get(edge[0], 0.0) >= LEAST_PER_SECOND
    }

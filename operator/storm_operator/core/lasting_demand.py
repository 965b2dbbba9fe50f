"""CPU for as long as a plan is expected to last, where `demand` (Liu's) tells the next control period alone.

A plan costs restarts, so it is made for more than the next ten seconds. For each executor:

- need: as Liu's, but who is held back by the ceiling of limits is taken to need twice as much;
- peak: the highest need of the recent past, up to the ceiling of limits, which fades towards the need (`peak_seconds`):
  a backlog that asks for many cores is worked off by one all the same. It is what the executor is given (rounded as
  Liu's): limits rise at once and fall slowly, since a limit takes nothing from anybody who does not use it, and one
  that is too low makes tuples wait. Who uses all of its limit, or is kept waiting by it for a tenth of the time, is
  given twice as much, although it needs no more on the average, and keeps that while it still waits now and then: work
  comes in bursts, and where the spouts wait for acks, what limits delay is never offered. That is a matter of limits
  alone, and moves nobody;
- room: what placement keeps free for it: the peak and a share to spare, the peak of a longer past
  (`room_peak_seconds`), or the need after a growth that is sure to go on, as far as the cluster has so much. Where
  there is too little even for the needs, all get the same part of theirs, so that supervisors are filled alike: the
  fullest one sets the pace of a topology. Overload is told by the need, so that the load may move between need and
  room without moving anybody. What comes again within that longer past, as spikes and waves do, moves executors once:
  a limit is raised at no cost, a move restarts workers;
- coming: the need after a rise that was seen for long and will leave the cluster hardly any CPU to spare. A plan may be
  made for it before there is an overload: what one at the peak makes wait could not be worked off.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.demand import allocation, component_needs, is_held_back, shared_out
from storm_operator.core.fading_peaks import at_most, fading_peaks
from storm_operator.core.forecast import LEAST_PER_SECOND, ComponentKey, LoadForecast, measured_loads
from storm_operator.core.model import Executor, Topology
from storm_operator.core.settings import Enforcement, ResourceSettings, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot, LoadPeriod

CERTAINTY = 3.0
"""Growth counts as far as it is more than so many standard errors of the line's slope. Noise of 10% looks like a tenth
or more of growth three times in a hundred where four or five periods are seen, ten times where three are."""

LEAST_POINTS = 3
POINTS_OF_A_STEP = 3

MOST_GROWTH = 10.0
"""Nobody is thought to need more than so many times what it needs now: lines do not go on for ever."""

HELD_BACK_FACTOR = 2.0

GAP_PERIODS = 1.5
"""A period that ended longer after the one before does not follow it."""

STEADY_PERIODS, LEAST_STEADY_POINTS = 10, 8
"""What is to come is told from more of the past than room is: it alone may be why executors move."""
AHEAD = 1.5
"""A steady rise is believed for so many times as long as it was seen."""

NEARLY_FULL = 0.75
"""Of what may be filled: who comes to need more cannot work off soon what a plan at the peak would make wait, so that
the plan must come before. Where there is more CPU to spare, to wait for the overload is cheaper than to believe."""

WAITING_FRACTION = 0.1
"""Of a period, for which a limit may keep an executor waiting; for longer, it is given more."""
BARELY_WAITING_FRACTION = 0.02
"""Who waits for longer than that needs what it has: it would wait again with less."""

PACKABLE_SHARE = 0.98
"""Of the room of all supervisors together; executors do not come in every size."""


def lasting_demand(
    snapshot: ClusterSnapshot,
    forecasts: Mapping[ComponentKey, LoadForecast],
    previous: Demand | None,
    resources: ResourceSettings,
    scheduling: SchedulingSettings,
) -> Demand:
    """CPU in millicores for every executor whose component's load and CPU are known.

    `previous` is the demand of the period before. Executors that nobody measured keep their peak for later.
    """
    needs: dict[Executor, float] = {}
    growth: dict[Executor, float] = {}
    soon: dict[Executor, float] = {}
    for topology in snapshot.topologies:
        for component, need in component_needs(topology, snapshot, forecasts, scheduling.history_periods).items():
            executors = topology.executors_of(component)
            needs.update(shared_out(need, executors, snapshot))
            growth.update(dict.fromkeys(executors, _growth(topology, component, snapshot.history, scheduling)))
            soon.update(dict.fromkeys(executors, _growth_soon(topology, component, snapshot.history)))
    before = previous or Demand({}, {})
    needs = {e: _unhidden(e, need, before, snapshot, resources) for e, need in needs.items()}
    without_waiting = {e: _without_waiting(e, need, before, snapshot, resources) for e, need in needs.items()}
    ceiling, spare = resources.ceiling_millicores, 1.0 + scheduling.spare_fraction
    # What goes beyond the ceiling nobody can be given: to remember it would keep the ceiling for hours.
    known, known_room, known_limits = (
        at_most(ceiling, of)
        for of in (before.peak_millicores, before.room_peak_millicores, before.limit_peak_millicores)
    )
    peaks = fading_peaks(needs, known, snapshot, scheduling.peak_seconds)
    room_peaks = fading_peaks(needs, known_room, snapshot, scheduling.room_peak_seconds)
    limit_peaks = fading_peaks(without_waiting, known_limits, snapshot, scheduling.peak_seconds)
    return Demand(
        millicores={e: allocation(limit_peaks[e], resources) for e in needs},
        raw_millicores=needs,
        room_millicores={
            e: min(ceiling, max(spare * peaks[e], room_peaks[e], need * growth[e])) for e, need in needs.items()
        },
        peak_millicores=peaks,
        room_peak_millicores=room_peaks,
        limit_peak_millicores=limit_peaks,
        coming_millicores={e: min(ceiling, need * soon[e]) for e, need in needs.items() if soon[e] > 1.0},
    )


def remembering_peaks(
    demand: Demand,
    previous: Demand | None,
    snapshot: ClusterSnapshot,
    resources: ResourceSettings,
    scheduling: SchedulingSettings,
) -> Demand:
    """Liu's `demand`, and beside it what was needed at most of late: neither limits nor room know it, but numbers of
    executors fall by it. `previous` is the demand of the period before."""
    known = at_most(resources.ceiling_millicores, previous.room_peak_millicores if previous is not None else {})
    peaks = fading_peaks(demand.raw_millicores, known, snapshot, scheduling.room_peak_seconds)
    return replace(demand, room_peak_millicores=peaks)


def with_room_that_fits(
    demand: Demand, snapshot: ClusterSnapshot, usable_share: float, *, are_all_equal: bool = True
) -> Demand:
    """No more room altogether than supervisors have, all in the same proportion of what it is beyond the needs.

    Where the needs alone are more, all in proportion to theirs. A placement that cannot make all the room would be all
    about which part of it is missing, and indifferent to how unevenly that is. Where priorities differ (not
    `are_all_equal`), needs stay whole: who goes short is decided by rank then. `usable_share` is the part of
    supervisors' capacity that may be filled; the room stays as it is where a capacity is unknown, and nothing that is
    to come counts. Nor does it where it leaves CPU to spare.
    """
    capacities = [supervisor.cpu_capacity_millicores for supervisor in snapshot.supervisors]
    known = [capacity for capacity in capacities if capacity is not None]
    if len(known) < len(capacities):
        return replace(demand, coming_millicores={})
    usable = PACKABLE_SHARE * usable_share * math.fsum(known)
    needs, coming = demand.of_now().room_millicores, demand.of_coming().room_millicores
    counts = math.fsum(coming.values()) >= NEARLY_FULL * usable
    fitting = _fitting(needs, coming, usable, are_all_equal=True)
    return replace(
        demand,
        room_millicores=_fitting(needs, demand.room_millicores, usable, are_all_equal=are_all_equal),
        coming_millicores={e: max(needs[e], fitting[e]) for e in demand.coming_millicores if counts},
    )


def _fitting(
    needs: Mapping[Executor, float], wanted: Mapping[Executor, float], usable: float, *, are_all_equal: bool
) -> Mapping[Executor, float]:
    """`wanted` (at least the needs), or what there is of it where `usable` millicores are less."""
    need, whole = math.fsum(needs.values()), math.fsum(wanted.values())
    if whole <= usable:
        return wanted
    if need >= usable:
        part = usable / need if are_all_equal and need > 0.0 else 1.0
        return {e: part * own for e, own in needs.items()}
    part = (usable - need) / (whole - need)
    return {e: needs[e] + part * (own - needs[e]) for e, own in wanted.items()}


def _unhidden(
    executor: Executor, need: float, previous: Demand, snapshot: ClusterSnapshot, resources: ResourceSettings
) -> float:
    """What the executor needs that is held back by the most that any executor is given: nobody can see how much more.

    Below that, its limit is doubled instead, at no cost, and the next period shows what it needs: need itself would
    tell of an overload that there may not be, and move executors for it.
    """
    limit = previous.millicores.get(executor, 0.0)
    if limit < resources.ceiling_millicores or not is_held_back(executor, limit, snapshot, resources):
        return need
    return max(need, HELD_BACK_FACTOR * limit)


def _without_waiting(
    executor: Executor, need: float, previous: Demand, snapshot: ClusterSnapshot, resources: ResourceSettings
) -> float:
    """What the executor must be given lest its limit keep it waiting; its need where that does not."""
    limit = previous.millicores.get(executor)
    if limit is None:
        return need
    waited = waited_fraction(executor, limit, snapshot, resources)
    if waited < BARELY_WAITING_FRACTION:
        return need
    if waited < WAITING_FRACTION:
        return max(need, previous.limit_peak_millicores.get(executor, need))
    return max(need, min(HELD_BACK_FACTOR * limit, resources.ceiling_millicores))


def waited_fraction(executor: Executor, limit: float, snapshot: ClusterSnapshot, resources: ResourceSettings) -> float:
    """Of the last period, for which an enforced `limit` (millicores) kept the executor waiting; 0 where unknown."""
    load = snapshot.loads.get(executor)
    if load is None or resources.enforcement is not Enforcement.EXECUTOR:
        return 0.0
    if is_held_back(executor, limit, snapshot, resources):
        return 1.0  # all the time, whatever the kernel has counted
    return load.throttled_fraction or 0.0


def _growth(topology: Topology, component: str, history: Sequence[LoadPeriod], scheduling: SchedulingSettings) -> float:
    """How many times its present load the component has when a plan of now has lived its life; at least 1."""
    points = _arrivals(topology, component, history[-scheduling.history_periods :])
    return _grown(points, sure_slope(points) * scheduling.expected_life_seconds)


def _growth_soon(topology: Topology, component: str, history: Sequence[LoadPeriod]) -> float:
    """How many times its present load the component will soon have, if it has risen for long; at least 1.

    The later half must rise by itself: a line through a step rises too.
    """
    points = _arrivals(topology, component, history[-STEADY_PERIODS:])
    if len(points) < LEAST_STEADY_POINTS:
        return 1.0
    rise = min(sure_slope(points), sure_slope(points[len(points) // 2 :]))
    return _grown(points, rise * AHEAD * (points[-1][0] - points[0][0]))


def _arrivals(topology: Topology, component: str, window: Sequence[LoadPeriod]) -> list[tuple[float, float]]:
    """(end of period, arrivals) of the periods of `window` since the last gap in what was measured of the component.

    What changed while nobody measured, as where a worker died and its backlog follows, would look like a sure rise: a
    line through what was before the gap and what is after it fits almost exactly.
    """
    own = [period for period in window if (topology.id, component) in period.components]
    gaps = [at for at, (before, period) in enumerate(pairwise(own), start=1) if _is_gap_between(before, period)]
    unbroken = own[gaps[-1] :] if gaps else own
    return [(at, load.arrived_per_second) for at, load in measured_loads(topology, component, unbroken)]


def _is_gap_between(before: LoadPeriod, period: LoadPeriod) -> bool:
    return period.ended_at_seconds - before.ended_at_seconds > GAP_PERIODS * period.period_seconds


def _grown(points: Sequence[tuple[float, float]], more_per_second: float) -> float:
    """How many times the newest of `points` it is with so many tuples per second more."""
    if not points or points[-1][1] < LEAST_PER_SECOND:
        return 1.0
    return min(MOST_GROWTH, 1.0 + more_per_second / points[-1][1])


def sure_slope(points: Sequence[tuple[float, float]]) -> float:
    """By how much a second (time, value) `points` surely rise: the least-squares slope less CERTAINTY standard errors.

    No more than they rise beside a step, so that one is no growth, wherever within the periods it falls. Never
    negative; 0 of fewer points than tell anything.
    """
    if len(points) < LEAST_POINTS:
        return 0.0
    times = [time - points[-1][0] for time, _ in points]
    values = [value for _, value in points]
    line = statistics.linear_regression(times, values)
    errors = math.fsum((v - line.intercept - line.slope * t) ** 2 for t, v in zip(times, values, strict=True))
    mean = statistics.fmean(times)
    spread = math.fsum((time - mean) ** 2 for time in times)
    error = math.sqrt(errors / (len(points) - 2) / spread)
    return max(0.0, min(line.slope - CERTAINTY * error, _slope_beside_a_step(points)))


def _slope_beside_a_step(points: Sequence[tuple[float, float]]) -> float:
    """The mean slope without the steepest part over three points: a step within a period has a value on its way.

    Three points leave nothing beside it: no bound then.
    """
    if len(points) <= POINTS_OF_A_STEP:
        return math.inf
    ends = zip(points, points[POINTS_OF_A_STEP - 1 :], strict=False)
    step, seconds = max((last[1] - first[1], last[0] - first[0]) for first, last in ends)
    (begin, first_value), (end, last_value) = points[0], points[-1]
    return (last_value - first_value - step) / (end - begin - seconds)

"""CPU of one step: who used how much, what was reserved, and what delays follow from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from storm_operator.core.arrays import NOWHERE, Floats, Ints
from storm_operator.simulator.arrays import ratio, times, total_by
from storm_operator.simulator.conditions import Conditions, quota_share
from storm_operator.simulator.cpu import (
    held_back,
    mean_wait_seconds,
    stretch_by_others,
)
from storm_operator.simulator.model import LIMIT_PERIOD_SECONDS, MILLICORES_PER_CORE, MS_PER_SECOND, Costs
from storm_operator.simulator.roots import Delays
from storm_operator.simulator.routing import Routing
from storm_operator.simulator.totals import Totals

USED_UP_FRACTION = 0.999
"""Of a limit, short of rounding errors."""


@dataclass(frozen=True, slots=True)
class Work:
    """What was done in one step, in tuples by executor; `levels` is what contention leaves to a thread at most."""

    executed: Floats
    arrived: Floats
    due: Floats
    """What came to be executed: what arrived, at spouts what they were offered and might emit."""
    mean_queue: Floats
    levels: Floats
    seconds: float


def count_cpu(totals: Totals, work: Work, routing: Routing, conditions: Conditions, costs: Costs) -> None:
    """Add the step's CPU to `totals`."""
    supervisors = len(conditions.capacity_millicores)
    place, hosted = np.maximum(routing.supervisor_of, 0), routing.supervisor_of != NOWHERE
    busy = work.executed * routing.cpu_ms
    quota = quota_share(conditions.capacity_millicores, conditions.cores)
    idle_share = 1.0 - np.minimum(busy / (MILLICORES_PER_CORE * work.seconds), 1.0)
    idle_share *= np.where(np.isfinite(work.levels), quota, 1.0)[place]
    idling = np.where(conditions.is_down, 0.0, idle_share * conditions.idle_executor_millicores[place] * work.seconds)
    on_supervisor = total_by(place, (busy + idling) * hosted, supervisors)
    workers = times(routing.network_cpu_ms, work.executed) + costs.worker_cpu_share * on_supervisor
    totals.executor_cpu_ms += busy + idling
    totals.throttled_ms += _throttled_ms(busy, work, place, conditions)
    totals.supervisor_cpu_ms += on_supervisor + workers + conditions.idle_workers_millicores * work.seconds

    share = np.minimum(conditions.most_millicores, work.levels[place]) * work.seconds
    needed = work.due * routing.cpu_ms + idling
    limited = np.where(conditions.has_limit & hosted, conditions.most_millicores * work.seconds, 0.0)
    has_unlimited = total_by(place, hosted & ~conditions.has_limit, supervisors) > 0
    whole = conditions.capacity_millicores * work.seconds
    given = np.where(has_unlimited, whole, np.minimum(total_by(place, limited, supervisors), whole))
    met = total_by(place, np.minimum(needed, share) * hosted, supervisors)
    totals.over_provided_ms += np.maximum(given - met, 0.0)
    totals.under_provided_ms += total_by(place, np.maximum(needed - share, 0.0) * hosted, supervisors)


def _throttled_ms(busy_ms: Floats, work: Work, place: Ints, conditions: Conditions) -> Floats:
    """How long limits kept executors waiting: who has used all of its quota stands still until the next."""
    limit = conditions.most_millicores
    is_held = conditions.has_limit & (limit < conditions.speed_millicores) & (limit <= work.levels[place])
    is_used_up = busy_ms >= USED_UP_FRACTION * limit * work.seconds
    standing_still = 1.0 - limit / np.maximum(conditions.speed_millicores, 1e-9)
    return np.where(is_held & is_used_up & ~conditions.is_down, MS_PER_SECOND * work.seconds * standing_still, 0.0)


def delays_of(work: Work, routing: Routing, conditions: Conditions, deviation: Floats, costs: Costs) -> Delays:
    """What tuples meet at each executor: the backlog, a random wait, and a service that others on the cores stretch."""
    place = np.maximum(routing.supervisor_of, 0)
    capacity = conditions.capacity_millicores
    busy = work.executed * routing.cpu_ms / work.seconds
    on_place = total_by(place, busy, len(capacity)) + conditions.idle_millicores
    on_place += times(routing.network_cpu_ms, work.executed) / work.seconds + costs.worker_cpu_share * on_place
    stretch = _stretch(busy, on_place, place, conditions)
    service = routing.cpu_ms / conditions.speed_millicores * stretch
    # While its supervisor is silent an executor gets nothing; between outages it works at its full rate.
    silent = conditions.silent_seconds > 0.0
    most = np.where(silent, conditions.speed_millicores, conditions.most_millicores)
    rate = _rate(np.minimum(most, work.levels[place]), routing.cpu_ms, service)
    free_rate = _rate(np.minimum(conditions.speed_millicores, work.levels[place]), routing.cpu_ms, service)
    arrivals = work.arrived / work.seconds
    quota = conditions.most_millicores * LIMIT_PERIOD_SECONDS / np.maximum(routing.cpu_ms, 1e-9)
    is_held = conditions.has_limit & (conditions.most_millicores > 0.0)
    held = np.where(is_held, held_back(arrivals / rate, quota, deviation, routing.batch), 0.0)
    wait = _between(held, *(mean_wait_seconds(arrivals, at, deviation, routing.batch) for at in (free_rate, rate)))
    chance = _between(held, *(np.clip(arrivals / at, 0.0, 1.0) for at in (free_rate, rate)))
    backlog = work.mean_queue / rate
    wait *= ratio(wait, wait + backlog, 1.0)  # with a backlog nobody ever finds the executor free: no chance is left
    return Delays(
        backlog=_with_outages(backlog, conditions),
        wait=wait,
        busy=chance,
        service=service,
        deviation=deviation,
        is_down=conditions.is_down,
    )


def held_to_pending(delays: Delays, work: Work, routing: Routing, topology_of: Ints, most_pending: Floats) -> Delays:
    """`delays` with no more tuples in random waits than belong to trees that may be pending and are nowhere else.

    The formulas of waits are those of sources that send whatever is on its way already: close to saturation they know
    of queues that are longer than few trees could fill. `most_pending` is by topology: infinite where nothing is set.
    """
    arrivals, tuples_of_tree = work.arrived / work.seconds, np.maximum(routing.visits, 1.0)
    elsewhere = (work.mean_queue + arrivals * delays.service) / tuples_of_tree
    waiting = total_by(topology_of, arrivals * delays.wait / tuples_of_tree, len(most_pending))
    may_wait = np.maximum(most_pending - total_by(topology_of, elsewhere, len(most_pending)), 0.0)
    return replace(delays, wait=delays.wait * np.minimum(ratio(may_wait, waiting, 1.0), 1.0)[topology_of])


def _with_outages(work_seconds: Floats, conditions: Conditions) -> Floats:
    """How long that much work takes on average: this outage is waited for, and those that interrupt the work.

    Without end where the supervisor never answers again.
    """
    availability = conditions.availability
    interrupted = np.where(availability > 0.0, work_seconds / np.maximum(availability, 1e-12), np.inf)
    outages = (1.0 - availability) * np.minimum(interrupted, conditions.availability_seconds)
    return work_seconds + conditions.silent_seconds + outages


def _stretch(busy_millicores: Floats, used_millicores: Floats, place: Ints, conditions: Conditions) -> Floats:
    """By executor, how much longer a service takes because of others on the cores; `used` is by supervisor, of all.

    What daemons and workers use beside executors counts as one thread more, what others than Storm take as a thread on
    each core.
    """
    supervisors = len(used_millicores)
    whole = conditions.capacity_millicores + conditions.foreign_millicores
    core = np.maximum(whole / conditions.cores, MILLICORES_PER_CORE)
    own, used, foreign = busy_millicores / core[place], used_millicores / core, conditions.foreign_millicores / core
    beside = used - total_by(place, own, supervisors)
    squares = total_by(place, own**2, supervisors) + beside * np.minimum(beside, 1.0)
    squares += foreign * np.minimum(foreign / conditions.cores, 1.0)
    others, cores = np.maximum((used + foreign)[place] - own, 0.0), conditions.cores[place]
    one_of_them = ratio(squares[place] - own**2, others, 0.0)
    return stretch_by_others(others / cores, cores, one_of_them / cores)


def _rate(millicores: Floats, cpu_ms: Floats, service_seconds: Floats) -> Floats:
    """Tuples per second that the share of a core and the time that one takes allow."""
    rate = np.minimum(millicores / np.maximum(cpu_ms, 1e-9), 1.0 / np.maximum(service_seconds, 1e-12))
    return np.maximum(rate, 1e-9)


def _between(share: Floats, none: Floats, whole: Floats) -> Floats:
    return none + share * (whole - none)

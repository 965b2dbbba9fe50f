"""What a topology's executors use of CPU and may use, and how full their supervisors are, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from storm_operator.console.views import ExecutorView, PassView, TopologyView
from storm_operator.core.host_names import short_names
from storm_operator.core.wording import figure, first_of

MOST_NAMED = 3
LEAST_MILLICORES = 1.0
"""Less than that is rounding."""


def cpu_sentences(topology: TopologyView, view: PassView, own: Sequence[ExecutorView]) -> tuple[str, ...]:
    """What its executors use and may use, as far as either is known, and the supervisors of it that are nearest to
    full."""
    used = _total([one.cpu_used_millicores for one in own])
    if topology.is_held_to_limits:
        most = _total([one.limit_millicores for one in own])
        bound = f" and are held to {figure(most)}"
    else:
        most = _total([one.demand_millicores for one in own])
        bound = "" if most is None else f" and would get {figure(most)} as CPU limits"
    sentences = []
    if used is not None or most is not None:
        sentences.append(f"Its executors use {figure(used)} millicores{bound}{_tightest(own)}.")
    if topology.workers and topology.asks_for_limits and not topology.is_held_to_limits:
        sentences.append("They are not all held to the CPU limits that are asked for.")
    places = {view.workers[one.worker].supervisor for one in own if one.worker is not None}
    sized = [
        (place, capacity) for place in sorted(places) if (capacity := view.supervisors[place].cpu_capacity_millicores)
    ]
    return (*sentences, *_fullest(view, sized), *_limits_beyond_capacity(view, sized))


def _tightest(executors: Sequence[ExecutorView]) -> str:
    near = [
        (one.cpu_used_millicores / one.limit_millicores, one)
        for one in executors
        if one.cpu_used_millicores is not None and one.limit_millicores
    ]
    if not near:
        return ""
    share, one = max(near, key=lambda item: (item[0], item[1].tasks))
    return f"; nearest to its limit is {one.component} {one.tasks} with {100 * share:.0f}% of it"


def _fullest(view: PassView, places: Sequence[tuple[int, float]]) -> tuple[str, ...]:
    """`places` are positions of supervisors, with their capacity."""
    hosts = short_names([one.host for one in view.supervisors])
    filled = []
    for place, capacity in places:
        one = view.supervisors[place]
        if one.cpu_used_millicores is not None:
            percent = 100 * one.cpu_used_millicores / capacity
            filled.append((-percent, f"{hosts[one.host]} uses {percent:.0f}% of {figure(capacity)} millicores"))
    return (f"{first_of([words for _, words in sorted(filled)], '; ', MOST_NAMED)}.",) if filled else ()


def _limits_beyond_capacity(view: PassView, places: Sequence[tuple[int, float]]) -> tuple[str, ...]:
    """Those of all executors there, of whichever topology: a limit is an upper bound, and reserves nothing."""
    hosts = short_names([one.host for one in view.supervisors])
    given: dict[int, float] = {}
    for one in view.executors:
        if one.worker is not None and one.limit_millicores is not None:
            place = view.workers[one.worker].supervisor
            given[place] = given.get(place, 0.0) + one.limit_millicores
    beyond = []
    for place, capacity in places:
        most = given.get(place, 0.0)
        if most > capacity + LEAST_MILLICORES:
            host = hosts[view.supervisors[place].host]
            beyond.append((-most / capacity, f"{figure(most)} of {figure(capacity)} millicores on {host}"))
    if not beyond:
        return ()
    named = first_of([words for _, words in sorted(beyond)], "; ", MOST_NAMED)
    return (
        f"CPU limits add up to more than there is: {named}. Executors that use all of theirs at once share what there"
        " is.",
    )


def _total(values: Sequence[float | None]) -> float | None:
    """The sum; None where any is unknown, or there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None

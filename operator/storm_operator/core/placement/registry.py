"""Every placement policy by the name that `spec.scheduling.policy` gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.doubtful_supervisors import without_free_slots
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement import (
    aniello_offline,
    aniello_online,
    ant_colony,
    dqos,
    dynamic_weighted_round_robin,
    etw_wtn,
    feedback,
    fuzzy,
    genetic,
    least_task_first,
    nearest_load_first,
    r_storm,
    random_choice,
    round_robin,
    shortest_job_first,
    t_storm,
    weighted_round_robin,
)
from storm_operator.core.placement.adaptive_shares import place_adaptive_as_shared
from storm_operator.core.placement.aniello_offline import place_aniello_offline
from storm_operator.core.placement.aniello_online import place_aniello_online
from storm_operator.core.placement.even import place_even
from storm_operator.core.placement.liu import place_liu
from storm_operator.core.placement.optimal import NAME as OPTIMAL
from storm_operator.core.placement.optimal import WITHOUT_SOLVER, has_solver, place_optimal
from storm_operator.core.placement.parameters import (
    Ascending,
    Parameters,
    check_ascending,
    read_parameters,
    wrong_parameters,
)
from storm_operator.core.placement.signature import PlacementPolicy
from storm_operator.core.placement.triggers import as_if_due, has_passed, seconds_until, someone_has_no_place
from storm_operator.core.settings import PlacementSettings, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot

POLICIES: Mapping[str, PlacementPolicy] = MappingProxyType(
    {
        "adaptive": place_adaptive_as_shared,
        aniello_offline.NAME: place_aniello_offline,
        aniello_online.NAME: place_aniello_online,
        ant_colony.NAME: ant_colony.place_ant_colony,
        dqos.NAME: dqos.place_dqos,
        "even": place_even,
        feedback.NAME: feedback.place_feedback,
        fuzzy.NAME: fuzzy.place_fuzzy,
        genetic.NAME: genetic.place_genetic,
        "liu": place_liu,
        dynamic_weighted_round_robin.NAME: dynamic_weighted_round_robin.place_dynamic_weighted_round_robin,
        etw_wtn.NAME: etw_wtn.place_etw_wtn,
        least_task_first.NAME: least_task_first.place_least_task_first,
        nearest_load_first.NAME: nearest_load_first.place_nearest_load_first,
        r_storm.NAME: r_storm.place_r_storm,
        random_choice.NAME: random_choice.place_at_random,
        round_robin.NAME: round_robin.place_round_robin,
        shortest_job_first.NAME: shortest_job_first.place_shortest_job_first,
        t_storm.NAME: t_storm.place_t_storm,
        weighted_round_robin.NAME: weighted_round_robin.place_weighted_round_robin,
        OPTIMAL: place_optimal,
    }
)

_PARAMETERS: Mapping[str, Parameters] = MappingProxyType(
    {
        aniello_offline.NAME: aniello_offline.PARAMETERS,
        aniello_online.NAME: aniello_online.PARAMETERS,
        ant_colony.NAME: ant_colony.PARAMETERS,
        dqos.NAME: dqos.PARAMETERS,
        feedback.NAME: feedback.PARAMETERS,
        fuzzy.NAME: fuzzy.PARAMETERS,
        genetic.NAME: genetic.PARAMETERS,
        dynamic_weighted_round_robin.NAME: dynamic_weighted_round_robin.PARAMETERS,
        etw_wtn.NAME: etw_wtn.PARAMETERS,
        nearest_load_first.NAME: nearest_load_first.PARAMETERS,
        r_storm.NAME: r_storm.PARAMETERS,
        random_choice.NAME: random_choice.PARAMETERS,
        shortest_job_first.NAME: shortest_job_first.PARAMETERS,
        t_storm.NAME: t_storm.PARAMETERS,
    }
)

_ASCENDING: Mapping[str, Ascending] = MappingProxyType({fuzzy.NAME: fuzzy.ASCENDING})

_AT_ONCE: Mapping[str, Callable[[ClusterSnapshot, PlacementSettings], bool]] = MappingProxyType(
    {aniello_online.NAME: aniello_online.is_overloaded, t_storm.NAME: t_storm.is_overloaded}
)
"""What lets a policy look for something better although its period has not passed."""

_LOOKS_IN_A_PERIOD: Mapping[str, Callable[[ClusterSnapshot], int]] = MappingProxyType({dqos.NAME: dqos.loops_in})
"""Policies that look at one part after the other, in equal steps: in how many a period."""


def policy_named(name: str) -> PlacementPolicy:
    """The policy called `name`; ValueError with the names that there are."""
    if name not in POLICIES:
        raise ValueError(f"scheduling.policy = {name!r}: no such policy; there are {', '.join(sorted(POLICIES))}")
    return POLICIES[name]


def proposed(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """What the policy of `settings` proposes. On supervisors whose agent is silent no worker begins, unless there is no
    other place."""
    policy, silent = policy_named(settings.scheduling.policy), snapshot.completeness.silent_supervisors
    proposal = policy(without_free_slots(snapshot, silent), demand, settings)
    return policy(snapshot, demand, settings) if silent and isinstance(proposal, Infeasible) else proposal


def parameters_of(name: str) -> Parameters:
    """The numbers that policy `name` takes in `scheduling.parameters`, with defaults and ranges."""
    policy_named(name)
    return _PARAMETERS.get(name, {})


def period_of(name: str, given: Iterable[tuple[str, float]] = ()) -> float | None:
    """Seconds between the times at which policy `name` looks for something better; None where it always does."""
    known = parameters_of(name)
    values = read_parameters(name, known, given)
    return next((values[key] for key, parameter in known.items() if parameter.is_period), None)


def once_due(snapshot: ClusterSnapshot, scheduling: SchedulingSettings) -> ClusterSnapshot:
    """The snapshot for who asks the policy of `scheduling` what it would do once its time has come."""
    period = period_of(scheduling.policy, scheduling.parameters)
    return snapshot if period is None else as_if_due(snapshot, period)


def seconds_until_it_looks(snapshot: ClusterSnapshot, settings: PlacementSettings) -> float | None:
    """When the policy of `settings` looks for something better by itself; None where it does in this very pass."""
    name = settings.scheduling.policy
    period = period_of(name, settings.scheduling.parameters)
    if period is None:
        return None
    looks = _LOOKS_IN_A_PERIOD.get(name)
    step = period if looks is None else period / looks(snapshot)
    if has_passed(snapshot, step) or someone_has_no_place(snapshot, settings):
        return None
    at_once = _AT_ONCE.get(name)
    return None if at_once is not None and at_once(snapshot, settings) else seconds_until(snapshot, step)


def check_policy(name: str, given: Iterable[tuple[str, float]]) -> None:
    """ValueError naming the field, the value and what would be right, for settings at the edge: a policy that there is,
    that can work where this runs, and numbers that it takes."""
    wrong = policy_mistakes(name, given)
    if wrong:
        raise ValueError("; ".join(wrong))


def policy_mistakes(name: str, given: Iterable[tuple[str, float]]) -> list[str]:
    """What `check_policy` raises for, a sentence each. ValueError where there is no such policy."""
    known, numbers = parameters_of(name), dict(given)
    wrong = wrong_parameters(name, known, numbers)
    if name == OPTIMAL and not has_solver():
        wrong.append(f"scheduling.policy = {name!r} {WITHOUT_SOLVER}")
    if wrong:
        return wrong
    try:
        check_ascending(_ASCENDING.get(name, ()), read_parameters(name, known, numbers.items()))
    except ValueError as error:
        return [str(error)]
    return []

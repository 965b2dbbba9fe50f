"""Aniello, Baldoni, Querzoni, "Adaptive Online Scheduling in Storm", DEBS'13: the online scheduler (section 3.2).

Algorithm 1 in two greedy phases: pairs of executors by descending traffic to workers, then pairs of workers by
descending traffic to supervisors; of at most 9 assignments of each pair the one with the least traffic between workers
(supervisors) is taken. Load is measured CPU in millicores, where the paper has Hz (section 3.2.1).

A new schedule is returned when a supervisor's CPU has been at its bound B for more than X seconds, or, once in P
seconds, when it lowers the traffic between supervisors by more than R percent (section 3.2.1); else the assignment in
force. The paper gives no values for B, X, P and R: P follows figure 3, where the first new schedule comes after 40 s.
Alpha = 0 is that of figures 3 to 7 (section 4.1); in figure 8 this scheduler is best at 0.05.

The paper's scheduler has the cluster for itself. Here other topologies may be under other settings: their traffic is no
part of that of which R percent must be saved, and a supervisor that runs none but them is not overloaded.

`two_phases` says what was decided where the paper is silent.
"""

from __future__ import annotations

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.load_history import KEPT_SECONDS
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.aniello_offline import ALPHA
from storm_operator.core.placement.parameters import Parameter, read_parameters
from storm_operator.core.placement.triggers import DAY_SECONDS, has_passed, someone_has_no_place, was_at_bound
from storm_operator.core.placement.two_phases import movable_inter_supervisor, place_in_two_phases
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "aniello-online"

MOST_OVERLOAD_SECONDS = KEPT_SECONDS - 60.0
"""What was longer ago is not kept, so that X could never be reached; the minute is for passes that come late."""

PARAMETERS = {
    "alpha": ALPHA,
    "capacity_fraction": Parameter(0.9, 0.01, 1.0, "B, as a share of a supervisor's CPU capacity"),
    "overload_seconds": Parameter(30.0, 0.0, MOST_OVERLOAD_SECONDS, "X: reschedule when CPU was at B for longer"),
    "reschedule_seconds": Parameter(
        40.0, 1.0, DAY_SECONDS, "P: time between comparisons with a new schedule", is_period=True
    ),
    "least_reduction_percent": Parameter(10.0, 0.0, 100.0, "R: inter-supervisor traffic must fall by more"),
}


def place_aniello_online(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> Assignment | Infeasible:
    """A new schedule when a trigger of section 3.2.1 fires or an executor has no place, else the one in force."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)
    overloaded = is_overloaded(snapshot, settings)
    homeless = someone_has_no_place(snapshot, settings)
    if not (overloaded or homeless or has_passed(snapshot, values["reschedule_seconds"])):
        return snapshot.assignment
    schedule = place_in_two_phases(snapshot, demand, settings, values["alpha"], values["capacity_fraction"])
    if overloaded or homeless or isinstance(schedule, Infeasible):
        return schedule
    now = movable_inter_supervisor(snapshot, settings, snapshot.assignment)
    then = movable_inter_supervisor(snapshot, settings, schedule)
    return schedule if then < now * (1.0 - values["least_reduction_percent"] / 100.0) else snapshot.assignment


def is_overloaded(snapshot: ClusterSnapshot, settings: PlacementSettings) -> bool:
    """Whether a supervisor's CPU has been at B for more than X, which brings a new schedule at once."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)
    return was_at_bound(snapshot, settings, values["capacity_fraction"], values["overload_seconds"])

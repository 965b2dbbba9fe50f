"""Jayalakshmi, Geetha, Manaswini, "Adaptive Scheduler in Apache Storm": algorithms ETW and WTN.

ETW gives executors to workers, WTN workers to nodes: pairs by descending rate, both ends of a fresh pair to the least
loaded worker (node), else the best assignment to those that hold either end and the least loaded one. That is Aniello's
Algorithm 1 (the paper's [12]) in other words, so both run `two_phases`; triggers and alpha are this paper's own.

At each interval Nimbus checks the criteria (section III, figures 3 to 6) and reschedules when a monitor objects:
- the load monitor, when a node's CPU is at its load capacity;
- the inter-node traffic manager, when the new schedule has less traffic between nodes.
The topology manager places an executor without a place at once. The paper gives no thresholds: capacity is that of
`aniello-online`, and any fall of the traffic will do. The interval is that of figure 8, where the scheduler begins to
work at second 50; alpha = 0.05 is where figures 13 and 14 are best.
"""

from __future__ import annotations

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.aniello_offline import ALPHA
from storm_operator.core.placement.parameters import Parameter, read_parameters
from storm_operator.core.placement.triggers import DAY_SECONDS, has_passed, someone_has_no_place, was_at_bound
from storm_operator.core.placement.two_phases import movable_inter_supervisor, place_in_two_phases
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "etw-wtn"

PARAMETERS = {
    "alpha": Parameter(0.05, ALPHA.least, ALPHA.most, ALPHA.meaning),
    "capacity_fraction": Parameter(0.9, 0.01, 1.0, "load capacity of a node, as a share of its CPU"),
    "reschedule_seconds": Parameter(50.0, 1.0, DAY_SECONDS, "interval between checks of the criteria", is_period=True),
}


def place_etw_wtn(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """A new schedule when an executor has no place or a monitor objects at the interval, else the one in force."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)
    homeless = someone_has_no_place(snapshot, settings)
    if not homeless and not has_passed(snapshot, values["reschedule_seconds"]):
        return snapshot.assignment
    schedule = place_in_two_phases(snapshot, demand, settings, values["alpha"], values["capacity_fraction"])
    if (
        homeless
        or isinstance(schedule, Infeasible)
        or was_at_bound(snapshot, settings, values["capacity_fraction"], 0.0)
    ):
        return schedule
    now = movable_inter_supervisor(snapshot, settings, snapshot.assignment)
    then = movable_inter_supervisor(snapshot, settings, schedule)
    return schedule if then < now else snapshot.assignment

"""CPU limits where a supervisor is too small: by priority, by need within one, never below the floor."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from builders import chain_topology, placed, same_demand, snapshot, supervisors
from storm_operator.adapters.plan_documents import CpuLimits, decode_cpu_limits, encode_cpu_limits
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.groups import Group, group_by_settings, priority_of_topologies
from storm_operator.core.model import Executor, ExecutorLoad, Topology, WorkerSlot
from storm_operator.core.served_first import NOBODY_SERVED, STEP_MILLICORES, Served, hidden_needs, serve_by_priority
from storm_operator.core.settings import ResourceSettings, SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, TopologySpec

HIGH, LOW, OTHER = (chain_topology(name, ("spout", 1), ("bolt", 1)) for name in ("high", "low", "other"))
ALL = (HIGH, LOW, OTHER)
PRIORITY = {"high": 2, "low": 1}


def limits(
    demand: Demand,
    priority: Mapping[str, int] = PRIORITY,
    capacity: float | None = 1000.0,
    where: str = "s1",
    floor: float = 100.0,
) -> dict[str, list[float]]:
    """By topology, of spout and bolt; `high` is on `s1`, `low` on `where`, `other` on `s2`; 90% may be filled."""
    slot_of: dict[Executor, WorkerSlot] = {}
    for topology, place in ((HIGH, "s1:6700"), (LOW, f"{where}:6701"), (OTHER, "s2:6702")):
        slot_of |= placed(topology, {"spout": place, "bolt": place})
    picture = snapshot(ALL, supervisors(2, capacity=capacity), slot_of)
    group = Group(SchedulingSettings(), ResourceSettings(floor_millicores=floor), tuple(sorted(priority)))
    found = serve_by_priority(picture, demand, (group,), priority).limits

    def of(topology: Topology) -> list[float]:
        return [found[topology.executors_of(name)[0]] for name in ("spout", "bolt")]

    return {topology.id: of(topology) for topology in ALL}


def test_where_all_is_carried_everybody_has_what_the_demand_says() -> None:
    assert limits(same_demand(ALL, 220.0)) == {name: [220.0, 220.0] for name in ("high", "low", "other")}


def test_lower_priority_shares_what_is_left_by_need() -> None:
    demand = same_demand(ALL, 300.0)
    found = limits(Demand(demand.millicores, {**demand.raw_millicores, LOW.executors_of("bolt")[0]: 150.0}))
    assert found["high"] == [300.0, 300.0]
    assert found["low"] == [200.0, 100.0], "300 of 900 are left"
    assert found["other"] == [300.0, 300.0]


def test_nobody_gets_less_than_the_floor() -> None:
    assert limits(same_demand(ALL, 430.0))["low"] == [100.0, 100.0]
    small = same_demand(ALL, 430.0, spout=50.0)
    squeezed = limits(same_demand(ALL, 800.0, spout=50.0))
    assert limits(small)["low"] == [50.0, 370.0], "a floor is no reason for more than the demand"
    assert squeezed["low"] == [50.0, 100.0]


def test_where_nothing_is_left_and_there_is_no_floor_the_limit_is_one_that_can_be_written_and_read() -> None:
    found = limits(same_demand(ALL, 460.0), floor=0.0)["low"]
    assert found == [STEP_MILLICORES, STEP_MILLICORES]
    document = CpuLimits("low", "", dict(zip(LOW.executors, found, strict=True)))
    assert decode_cpu_limits(encode_cpu_limits(document)).millicores == document.millicores


def test_highest_priority_on_a_supervisor_is_never_held_back() -> None:
    assert limits(same_demand(ALL, 800.0))["high"] == [800.0, 800.0]
    assert limits(same_demand(ALL, 800.0), where="s2")["low"] == [800.0, 800.0], "there the other is nobody's"


def test_what_nobody_manages_takes_its_part_and_keeps_it() -> None:
    found = limits(same_demand(ALL, 200.0), {"high": 2, "low": 1, "other": 1}, where="s2")
    assert found["low"] == found["other"] == [200.0, 200.0]
    three = {"low": 1, "elsewhere": 2}
    squeezed = limits(same_demand(ALL, 400.0), three)
    assert squeezed["high"] == [400.0, 400.0]
    assert squeezed["low"] == [400.0, 400.0], "the highest that is managed there"


def test_settings_of_topologies_elsewhere_hold_nobody_back() -> None:
    slot_of: dict[Executor, WorkerSlot] = {}
    for topology, place in ((HIGH, "s1:6700"), (LOW, "s1:6701"), (OTHER, "s2:6702")):
        slot_of |= placed(topology, {"spout": place, "bolt": place})
    picture = snapshot(ALL, supervisors(2, capacity=1000.0), slot_of)
    careful = Group(SchedulingSettings(headroom_fraction=0.3), ResourceSettings(), ("other",))
    groups = (Group(SchedulingSettings(), ResourceSettings(), ("high", "low")), careful)
    demand = same_demand(ALL, 220.0)
    found = serve_by_priority(picture, demand, groups, {**PRIORITY, "other": 1})
    assert found.limits == demand.millicores, "880 of the 900 millicores that may be filled on s1"
    assert not found.needs_of_held


def test_whom_a_plan_brings_beside_others_is_held_by_the_overhead_that_was_measured_before_it() -> None:
    """CPU that was used before the plan says nothing of the executors that are there after it."""
    slot_of = {**placed(HIGH, {"spout": "s1", "bolt": "s1"}), **placed(LOW, {"spout": "s2", "bolt": "s2"})}
    loads = {executor: ExecutorLoad(500.0, 100.0, 100.0) for executor in slot_of}
    used = {"s1": 1250.0, "s2": 1250.0}
    measured = snapshot((HIGH, LOW), supervisors(2, capacity=2000.0), slot_of, loads=loads, supervisor_cpu=used)
    group = Group(SchedulingSettings(), ResourceSettings(floor_millicores=100.0), ("high", "low"))
    demand = same_demand((HIGH, LOW), 500.0)
    planned = measured.assignment.with_moves(placed(LOW, {"spout": "s1:6701", "bolt": "s1:6701"}))
    assert serve_by_priority(measured, demand, (group,), PRIORITY).limits == demand.millicores
    found = serve_by_priority(measured, demand, (group,), PRIORITY, planned).limits
    left = 0.9 / 1.25 * 2000.0 - 1000.0
    assert [found[executor] for executor in LOW.executors] == [left / 2.0, left / 2.0]


@pytest.mark.parametrize("capacity", [None, 1000.0])
def test_equal_priorities_and_unknown_capacities_change_nothing(capacity: float | None) -> None:
    demand = same_demand(ALL, 800.0)
    priority = PRIORITY if capacity is None else {"high": 1, "low": 1}
    assert limits(demand, priority, capacity) == {name: [800.0, 800.0] for name in ("high", "low", "other")}


def test_unknown_demand_stays_unknown() -> None:
    known = dict.fromkeys((*HIGH.executors, LOW.executors_of("bolt")[0]), 600.0)
    slot_of = {e: s for t in (HIGH, LOW) for e, s in placed(t, {"spout": "s1", "bolt": "s1"}).items()}
    picture = snapshot((HIGH, LOW), supervisors(1), slot_of)
    group = Group(SchedulingSettings(), ResourceSettings(floor_millicores=100.0), ("high", "low"))
    found = serve_by_priority(picture, Demand(known, known), (group,), PRIORITY).limits
    assert set(found) == set(known)
    assert found[LOW.executors_of("bolt")[0]] == 100.0


def test_who_is_not_measured_now_still_takes_what_it_needed_lately() -> None:
    """As where the agent of another supervisor, on which it runs too, is silent."""
    known = same_demand((LOW,), 400.0)
    lately = dict.fromkeys((*HIGH.executors, *LOW.executors), 300.0)
    found = served({}, Demand(known.millicores, known.raw_millicores, peak_millicores=lately))
    assert found.limits == dict.fromkeys(LOW.executors, 150.0), "300 of 900 are left"


def test_a_suspended_topology_takes_its_part_as_one_that_nobody_manages() -> None:
    slot_of = {e: s for t in (HIGH, LOW) for e, s in placed(t, {"spout": "s1", "bolt": "s1"}).items()}
    picture = snapshot((HIGH, LOW), supervisors(1), slot_of)
    specs = {
        "high": TopologySpec("high", AdoptSource(), priority=2),
        "low": TopologySpec("low", AdoptSource(), priority=1, suspend=True),
    }
    demand = same_demand((HIGH, LOW), 400.0)
    priority = priority_of_topologies(picture, specs)
    found = serve_by_priority(picture, demand, group_by_settings(picture, specs), priority).limits
    assert found == demand.millicores, "who is alone managed there is never held back"
    assert priority == {"high": 2}


def served(used: Mapping[str, ExecutorLoad], needs: Demand, before: Served = NOBODY_SERVED) -> Served:
    """`high` and `low` on one supervisor; `used` by the bolt and the spout of `low`."""
    slot_of = {e: s for t in (HIGH, LOW) for e, s in placed(t, {"spout": "s1", "bolt": "s1"}).items()}
    loads = {e: used[e.component] for e in LOW.executors if e.component in used}
    picture = snapshot((HIGH, LOW), supervisors(1), slot_of, loads=loads)
    group = Group(SchedulingSettings(), ResourceSettings(floor_millicores=50.0), ("high", "low"))
    hidden = hidden_needs(before, picture, (group,))
    return serve_by_priority(picture, needs.no_less_than(hidden), (group,), PRIORITY)


def needs_of_low(bolt: float, spout: float) -> Demand:
    needs = dict.fromkeys(HIGH.executors, 300.0) | {
        LOW.executors_of("bolt")[0]: bolt,
        LOW.executors_of("spout")[0]: spout,
    }
    return Demand(dict.fromkeys(needs, 1000.0), needs)


def test_who_waits_for_its_limit_needs_what_it_needed_before_it_was_held() -> None:
    """Spouts wait for acks: what a limit delays is not offered, so that the need falls to the limit."""
    bolt, spout = LOW.executors_of("bolt")[0], LOW.executors_of("spout")[0]
    held = served({}, needs_of_low(bolt=900.0, spout=100.0))
    assert (held.limits[bolt], held.limits[spout]) == (270.0, 50.0), "300 of 900 are left, by need"
    full = {"bolt": ExecutorLoad(cpu_millicores=269.0), "spout": ExecutorLoad(cpu_millicores=20.0)}
    for _ in range(5):
        again = served(full, needs_of_low(bolt=269.0, spout=20.0), held)
        assert again == held
        held = again
    delayed = {"bolt": ExecutorLoad(cpu_millicores=200.0, throttled_fraction=0.3)}
    assert served(delayed, needs_of_low(bolt=200.0, spout=20.0), held) == held


def test_who_no_longer_uses_its_limit_is_held_no_longer() -> None:
    held = served({}, needs_of_low(bolt=900.0, spout=100.0))
    calm = {"bolt": ExecutorLoad(cpu_millicores=200.0), "spout": ExecutorLoad(cpu_millicores=20.0)}
    free = served(calm, needs_of_low(bolt=200.0, spout=20.0), held)
    assert free.limits == needs_of_low(0.0, 0.0).millicores
    assert free.needs_of_held == {}


def test_that_nobody_measured_who_is_held_does_not_say_that_it_waits_no_longer() -> None:
    held = served({}, needs_of_low(bolt=900.0, spout=100.0))
    assert served({}, needs_of_low(bolt=269.0, spout=20.0), held) == held
    unknown = {"bolt": ExecutorLoad(executed_per_second=9.0), "spout": ExecutorLoad(executed_per_second=9.0)}
    assert served(unknown, needs_of_low(bolt=269.0, spout=20.0), held) == held


def test_who_is_held_stays_so_while_it_runs_and_nobody_knows_its_demand() -> None:
    """As after any plan: to let go of it meanwhile would take CPU from higher priorities."""
    held = served({}, needs_of_low(bolt=900.0, spout=100.0))
    running = snapshot((HIGH, LOW), supervisors(1))
    of_low = {executor: held.limits[executor] for executor in LOW.executors}
    assert NOBODY_SERVED.remembering(held, running) == Served(of_low, held.needs_of_held)
    assert NOBODY_SERVED.remembering(held, snapshot((HIGH,), supervisors(1))) == NOBODY_SERVED, "it was killed"
    free = Served(dict.fromkeys(LOW.executors, 1000.0))
    assert free.remembering(held, running) == free, "its demand is known again"

"""How many executors a component should have: fixed, by load, never beyond its tasks; when load has its way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import NOW_SECONDS, chain_topology, component_load, history, placed, snapshot, supervisors
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decision import HoldReason
from storm_operator.core.decision_memory import DecisionMemory
from storm_operator.core.groups import Group, estimate_group_demand, forecast_groups
from storm_operator.core.model import ACKER_COMPONENT, ComponentKind, Topology
from storm_operator.core.parallelism import Resize, wanted_parallelism, why_growth_waits, why_load_waits
from storm_operator.core.settings import (
    ApprovalMode,
    ApprovalSettings,
    AutoApproval,
    ExcludedWindow,
    Forecast,
    Mode,
    PlacementSettings,
    ResourceSettings,
    SchedulingSettings,
)
from storm_operator.core.topology_spec import ComponentParallelism, ParallelismMode, ParallelismSpec

CEILING = 1000.0


def topology(executors: int, tasks_per_executor: int = 2) -> Topology:
    return chain_topology("words", ("spout", 1), ("count", executors), tasks_per_executor=tasks_per_executor)


def demand(of: Topology, each_millicores: float | None) -> Demand:
    raw = {} if each_millicores is None else dict.fromkeys(of.executors, each_millicores)
    return Demand(raw, raw)


def auto(**bounds: int) -> ParallelismSpec:
    """`spout` is held at what it has, so that only `count` is in question."""
    only = {"spout": ComponentParallelism(executors=1)}
    return ParallelismSpec(ParallelismMode.AUTO, {"count": ComponentParallelism(**bounds), **only})


def fixed(executors: int) -> ParallelismSpec:
    return ParallelismSpec(ParallelismMode.FIXED, {"count": ComponentParallelism(executors=executors)})


def wanted(of: Topology, spec: ParallelismSpec, each_millicores: float | None) -> Resize:
    return wanted_parallelism(of, spec, demand(of, each_millicores), CEILING)


def test_fixed_number_that_is_there_already_changes_nothing() -> None:
    assert wanted(topology(2), fixed(2), 900.0) == Resize({})


def test_fixed_number_is_what_it_becomes_up_to_its_tasks() -> None:
    assert wanted(topology(2), fixed(3), 1.0) == Resize({"count": 3})
    resize = wanted(topology(2), fixed(9), 1.0)
    assert resize.asked == {"count": 4}
    assert "4 tasks" in resize.notes[0]


def test_component_that_is_none_is_noted() -> None:
    spec = ParallelismSpec(components={"cuont": ComponentParallelism(executors=3)})
    resize = wanted(topology(2), spec, 1.0)
    assert resize.asked == {}
    assert "'cuont'" in resize.notes[0]


@pytest.mark.parametrize("forecast", list(Forecast))
def test_executors_are_kept_after_a_peak_whatever_the_forecast(forecast: Forecast) -> None:
    words = topology(4)
    group = Group(SchedulingSettings(forecast=forecast), ResourceSettings(), (words.id,))
    known: Demand | None = None
    for need in (2400.0, 2400.0, 200.0):
        periods = history(words.id, {"count": [component_load(need, cpu=need)]})
        seen = snapshot((words,), supervisors(1), periods=periods)
        known = estimate_group_demand(seen, (group,), forecast_groups(seen, (group,)), known, {})
    assert known is not None
    assert known.raw_millicores[words.executors_of("count")[0]] == pytest.approx(50.0)
    assert wanted_parallelism(words, auto(minimum=1), known, CEILING).by_load == {}


def test_what_was_needed_lately_is_known_beyond_a_change_of_numbers() -> None:
    """Eight executors that needed 300 each have become four: one would be too few for the next such peak."""
    known: Demand | None = None
    for executors, need in ((8, 2400.0), (4, 200.0)):
        words = chain_topology("words", ("spout", executors), ("count", executors), tasks_per_executor=16 // executors)
        group = Group(SchedulingSettings(), ResourceSettings(), (words.id,))
        periods = history(words.id, {"count": [component_load(need, cpu=need)]})
        seen = snapshot((words,), supervisors(1), periods=periods)
        known = estimate_group_demand(seen, (group,), forecast_groups(seen, (group,)), known, {})
    assert known is not None
    assert wanted_parallelism(words, auto(minimum=1), known, CEILING).by_load == {}


@pytest.mark.parametrize(
    ("executors", "each_millicores", "by_load"),
    [
        (2, 950.0, {"count": 4}),  # 1900 of demand at 60% of 1000 each
        (2, 700.0, {}),  # busy, not full
        (4, 100.0, {"count": 1}),  # one would do
        (2, 350.0, {}),  # two are still better than one
    ],
)
def test_auto_follows_the_load(executors: int, each_millicores: float, by_load: dict[str, int]) -> None:
    assert wanted(topology(executors), auto(minimum=1), each_millicores) == Resize({}, by_load)


def by_load(of: Topology, *millicores: float) -> dict[str, int]:
    """What load asks for where the executors of `count` need so much."""
    raw = dict.fromkeys(of.executors, 100.0) | dict(zip(of.executors_of("count"), millicores, strict=True))
    return dict(wanted_parallelism(of, auto(minimum=1), Demand(raw, raw), CEILING).by_load)


def alone_with_its_task(of: Topology) -> Topology:
    """The same, where the first executor of `count` has given its second task to the next one."""
    first, second, *others = of.executors_of("count")
    alone = replace(first, task_end=first.task_start)
    return replace(
        of,
        executors=tuple(
            sorted((*of.executors_of("spout"), alone, replace(second, task_start=alone.task_end + 1), *others))
        ),
    )


def test_load_asks_for_nothing_while_the_need_of_one_executor_is_unknown() -> None:
    words = topology(4)
    for millicores in (100.0, 950.0):
        raw = dict.fromkeys(words.executors[:-1], millicores)
        assert wanted_parallelism(words, auto(minimum=1), Demand(raw, raw), CEILING) == Resize({})


def test_hot_key_is_given_executors_only_as_long_as_its_own_has_tasks_to_give_away() -> None:
    words = topology(4)
    assert by_load(words, 950.0, 100.0, 100.0, 100.0) == {"count": 5}
    assert by_load(alone_with_its_task(words), 950.0, 100.0, 100.0, 100.0) == {}


def test_all_that_are_busy_get_more_though_a_hot_key_stays_full() -> None:
    assert by_load(alone_with_its_task(topology(4)), 950.0, 700.0, 700.0, 700.0) == {"count": 6}


def test_fewer_executors_never_fill_the_one_of_a_hot_key() -> None:
    assert by_load(topology(8, tasks_per_executor=1), 800.0, *[50.0] * 7) == {}
    assert by_load(topology(8, tasks_per_executor=1), 300.0, *[50.0] * 7) == {"count": 2}
    # Of two, one would need the hot key's and three mean tasks' CPU: 819 of 900, and 956.
    assert by_load(topology(8, tasks_per_executor=1), 500.0, *[50.0] * 7) == {"count": 2}
    assert by_load(topology(8, tasks_per_executor=1), 600.0, *[50.0] * 7) == {}


def test_fewer_executors_never_bring_two_hot_keys_together() -> None:
    """It would be full at once, and the next passes give one more executor after the other until all is as it was."""
    eight = topology(8, tasks_per_executor=1)
    assert by_load(eight, 475.0, 475.0, *[4.0] * 6) == {}
    assert by_load(eight, 475.0, *[4.0] * 6, 475.0) == {"count": 2}
    assert by_load(topology(2, tasks_per_executor=4), 962.0, 16.0) == {"count": 3}


def test_auto_needs_no_component_named_and_leaves_storms_own_alone() -> None:
    words = chain_topology("words", ("spout", 1), ("count", 4), (ACKER_COMPONENT, 4), ("__metrics", 4))
    kinds = tuple(
        replace(one, kind=ComponentKind.ACKER) if one.name == ACKER_COMPONENT else one for one in words.components
    )
    words = replace(words, components=kinds)
    alone = ParallelismSpec(ParallelismMode.AUTO)
    assert wanted(words, alone, 100.0) == Resize({}, {"count": 1})
    named = ParallelismSpec(ParallelismMode.AUTO, {ACKER_COMPONENT: ComponentParallelism(minimum=2)})
    assert wanted(words, named, 100.0) == Resize({}, {"count": 1, ACKER_COMPONENT: 2})
    assert wanted(words, ParallelismSpec(), 100.0) == Resize({}), "Fixed leaves what is not named"


def test_load_that_asks_for_more_than_there_are_tasks_gets_one_for_each() -> None:
    assert wanted(topology(2), ParallelismSpec(ParallelismMode.AUTO), 1000.0) == Resize({}, {"count": 4, "spout": 2})


def test_auto_goes_down_by_the_most_that_was_needed_lately() -> None:
    words = topology(4)
    raw = dict.fromkeys(words.executors, 100.0)
    busy_lately = Demand(raw, raw, room_peak_millicores=dict.fromkeys(words.executors, 800.0))
    assert wanted_parallelism(words, auto(minimum=1), busy_lately, CEILING) == Resize({})


def test_bounds_are_the_users_word_and_what_lies_between_is_the_loads() -> None:
    assert wanted(topology(4), auto(minimum=3), 10.0) == Resize({}, {"count": 3})
    assert wanted(topology(4), auto(maximum=2), 990.0) == Resize({"count": 2})
    assert wanted(topology(2), auto(minimum=3), 990.0) == Resize({"count": 3}, {"count": 4})
    assert wanted(topology(2), auto(minimum=3), None) == Resize({"count": 3})


def test_auto_does_nothing_on_unknown_demand() -> None:
    assert wanted(topology(4), auto(minimum=1), None) == Resize({})


WORDS = topology(2)
EVERY_MINUTE = (ExcludedWindow("* * * * *", 3600),)


OTHERS = history("others", {"spout": [component_load(300.0)] * 20})


def hold(memory: DecisionMemory | None = None, missing: bool = False, **settings: Any) -> HoldReason | None:
    """Why a resize by load waits under `settings`, after three periods that were seen, of others many more."""
    loads = {name: [component_load(300.0)] * 3 for name in ("spout", "count")}
    where = placed(WORDS, {"spout": "s1", "count": "s1"})
    picture = snapshot(
        (WORDS,),
        supervisors(1),
        where,
        periods=(*OTHERS, *history("words", loads)),
        missing=WORDS.executors[:1] if missing else (),
    )
    found = why_load_waits(
        "words",
        picture,
        demand(WORDS, 950.0),
        SchedulingSettings(**settings),
        memory or DecisionMemory(),
        now_seconds=NOW_SECONDS,
    )
    return found.reason if found is not None else None


def test_load_has_its_way_where_plans_need_no_approval() -> None:
    assert hold() is None
    assert hold(approval=ApprovalSettings(auto_approve_when=AutoApproval())) is None, "no condition is none"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"mode": Mode.OBSERVE}, HoldReason.OBSERVE_ONLY),
        ({"mode": Mode.RECOMMEND}, HoldReason.AWAITING_APPROVAL),
        ({"approval": ApprovalSettings(ApprovalMode.MANUAL)}, HoldReason.AWAITING_APPROVAL),
        (
            {"approval": ApprovalSettings(auto_approve_when=AutoApproval(maximum_restarted_workers=1))},
            HoldReason.AWAITING_APPROVAL,
        ),
        ({"excluded_windows": EVERY_MINUTE}, HoldReason.EXCLUDED_WINDOW),
        ({"minimum_periods": 4}, HoldReason.WARMING_UP),
        ({"missing": True}, HoldReason.METRICS_INCOMPLETE),
    ],
)
def test_load_waits_for_what_plans_wait_for(settings: dict[str, Any], reason: HoldReason) -> None:
    assert hold(**settings) is reason


def test_load_waits_for_the_cool_down_of_its_own_topology() -> None:
    just_now = DecisionMemory().with_change("words", NOW_SECONDS - 59.0)
    assert hold(just_now) is HoldReason.COOL_DOWN
    assert hold(DecisionMemory().with_change("words", NOW_SECONDS - 60.0)) is None
    assert hold(DecisionMemory().with_change("others", NOW_SECONDS)) is None


SHORT = DecisionMemory(short_topologies=frozenset({"words"}), unhelped_topologies=frozenset({"words"}))


def growth(
    memory: DecisionMemory = SHORT,
    by_load: int = 4,
    others: tuple[float | None, ...] = (1000.0,),
    used: bool = True,
) -> HoldReason | None:
    """Why `count`, whose two executors need 1,300 millicores on s1, does not become `by_load`.

    The spout needs 100, on the second supervisor if that is `used`; the first has 1,000 millicores.
    """
    machines = tuple(
        replace(one, cpu_capacity_millicores=capacity)
        for one, capacity in zip(supervisors(1 + len(others)), (1000.0, *others), strict=True)
    )
    picture = snapshot((WORDS,), machines, placed(WORDS, {"spout": "s2" if used else "s1", "count": "s1"}))
    raw = dict.fromkeys(WORDS.executors, 100.0) | dict.fromkeys(WORDS.executors_of("count"), 650.0)
    settings = PlacementSettings(SchedulingSettings(headroom_fraction=0.9), frozenset({"words"}))
    found = why_growth_waits(WORDS, {"count": by_load}, picture, Demand(raw, raw), settings, memory)
    return found.reason if found is not None else None


def test_no_executors_are_added_where_those_that_there_are_lack_cpu_and_none_is_left() -> None:
    assert growth() is HoldReason.TOO_LITTLE_CAPACITY
    assert growth(others=(1150.0,)) is HoldReason.TOO_LITTLE_CAPACITY, (
        "1,935 may be filled, 1,400 and 600 are asked for"
    )


def test_executors_are_added_where_one_supervisor_is_full_and_another_has_room() -> None:
    assert growth(others=(1300.0,)) is None
    assert growth(used=False) is None, "a pod that has just come"
    assert growth(others=(None,)) is None, "nobody has measured what it has"


def test_executors_are_added_as_long_as_the_policy_may_help_who_is_short() -> None:
    assert growth(DecisionMemory()) is None
    assert growth(replace(SHORT, unhelped_topologies=frozenset())) is None


def test_executors_go_also_where_cpu_is_short() -> None:
    assert growth(by_load=1) is None

"""What was measured is enough or not: by what may be moved and runs, not by neighbours, nor by the dead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    NOW_SECONDS,
    chain_topology,
    component_load,
    even_traffic,
    history,
    placed,
    placement_settings,
    same_demand,
    snapshot,
    supervisors,
)
from storm_operator.core.decide import decide
from storm_operator.core.decision import Hold, HoldReason, Plan, PlanCause
from storm_operator.core.decision_memory import DecisionMemory
from storm_operator.core.groups import Group
from storm_operator.core.measurement_check import check_measurements, unmeasured_topologies
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.settings import PlacementSettings, ResourceSettings, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot, Completeness

WORDS = chain_topology("words", ("spout", 1), ("split", 2), ("count", 1))
OTHERS = chain_topology("others", ("spout", 2), ("bolt", 2))
WHERE = placed(WORDS, {"spout": "s1", "split": ["s2", "s3"], "count": "s1"}) | placed(
    OTHERS, {"spout": "s1:6701", "bolt": "s2:6701"}
)
PERIODS = history("words", {name: [component_load(100)] for name in ("spout", "split", "count")})
DEMAND = same_demand([WORDS], 100)


def picture(completeness: Completeness, gone: str = "") -> ClusterSnapshot:
    machines = [machine for machine in supervisors(3) if machine.id != gone]
    seen = snapshot((WORDS, OTHERS), machines, WHERE, rates=even_traffic(WORDS, 100), periods=PERIODS)
    return replace(seen, completeness=completeness)


def check(completeness: Completeness, gone: str = "", settings: PlacementSettings | None = None) -> HoldReason | None:
    held = check_measurements(picture(completeness, gone), DEMAND, settings or placement_settings([WORDS]))
    return held.reason if isinstance(held, Hold) else None


def test_neighbours_that_nobody_measured_hold_nobody() -> None:
    assert check(Completeness(8, OTHERS.executors)) is None
    assert check(Completeness(8, OTHERS.executors), settings=placement_settings([WORDS, OTHERS])) is (
        HoldReason.METRICS_INCOMPLETE
    )


def test_who_is_not_measured_is_told_of_each_topology_and_by_its_own_settings() -> None:
    def told(*least: float) -> frozenset[str]:
        groups = [
            Group(SchedulingSettings(minimum_completeness=share), ResourceSettings(), (topology.id,))
            for topology, share in zip((WORDS, OTHERS), least, strict=True)
        ]
        return unmeasured_topologies(picture(Completeness(8, WORDS.executors[:2])), both, groups)

    both = same_demand([WORDS, OTHERS], 100)
    assert told(1.0, 1.0) == {"words"}
    assert told(0.5, 1.0) == frozenset()


def test_who_is_placed_with_one_that_is_not_measured_is_measured_all_the_same() -> None:
    both = same_demand([WORDS, OTHERS], 100)
    together = Group(SchedulingSettings(), ResourceSettings(), ("others", "words"))
    seen = picture(Completeness(8, WORDS.executors[:2]))
    assert unmeasured_topologies(seen, both, [together]) == {"words"}
    stale = picture(Completeness(8, topology_age_seconds={"others": 60.0, "words": 1.0}))
    assert unmeasured_topologies(stale, both, [together]) == {"others"}
    silent = replace(picture(Completeness(8, silent_supervisors=("s3",))), history=())
    assert unmeasured_topologies(silent, both, [together]) == {"words"}


def test_neighbours_that_were_measured_make_up_for_nobody() -> None:
    half = placement_settings([WORDS], scheduling=SchedulingSettings(minimum_completeness=0.5))
    assert check(Completeness(8, WORDS.executors[:3]), settings=half) is HoldReason.METRICS_INCOMPLETE
    assert check(Completeness(8, WORDS.executors[:2]), settings=half) is None


@pytest.mark.parametrize(
    ("silent", "reason"),
    [
        ((), HoldReason.WARMING_UP),
        (("s3",), HoldReason.METRICS_INCOMPLETE),
        (("s4",), HoldReason.WARMING_UP),  # nobody runs there: nothing will be missing
    ],
)
def test_warming_up_ends_for_nobody_whose_agent_is_silent(silent: tuple[str, ...], reason: HoldReason) -> None:
    unmeasured = replace(
        picture(Completeness(8, WORDS.executors, silent_supervisors=silent)), supervisors=supervisors(4), history=()
    )
    held = check_measurements(unmeasured, DEMAND, placement_settings([WORDS]))
    assert held is not None
    assert held.reason is reason
    assert all(host_of(unmeasured, gone) in held.message for gone in silent if reason is not HoldReason.WARMING_UP)


@pytest.mark.parametrize(
    ("lost", "told"), [((), ""), (("s3",), "; not running, since Storm has yet to place them: 1 executor of words")]
)
def test_those_that_do_not_run_are_told_of_before_anything_is_measured(lost: tuple[str, ...], told: str) -> None:
    there = tuple(one for one in supervisors(4) if one.id not in lost)
    unmeasured = replace(picture(Completeness(8, WORDS.executors)), supervisors=there, history=())
    held = check_measurements(unmeasured, DEMAND, placement_settings([WORDS]))
    assert held is not None
    unless_told = "no control period has been measured since the start, or since the last plan or suspension"
    assert held.message == unless_told + told


def host_of(seen: ClusterSnapshot, supervisor_id: str) -> str:
    return seen.supervisor(supervisor_id).host


def test_executors_of_a_supervisor_that_is_gone_lack_no_metrics() -> None:
    on_s3 = tuple(executor for executor, slot in WHERE.items() if slot.supervisor_id == "s3")
    assert on_s3
    assert check(Completeness(8, on_s3)) is HoldReason.METRICS_INCOMPLETE
    assert check(Completeness(8, on_s3), gone="s3") is None


def test_they_are_given_a_place_at_once() -> None:
    on_s3 = next(executor for executor, slot in WHERE.items() if slot.supervisor_id == "s3")
    proposal = Assignment({**WHERE, on_s3: WHERE[WORDS.executors[0]]})
    made = decide(
        picture(Completeness(8, (on_s3,)), gone="s3"),
        DEMAND,
        proposal,
        placement_settings([WORDS]),
        DecisionMemory(changed_at_seconds={"words": NOW_SECONDS}),
        now_seconds=NOW_SECONDS,
        plan_id="p-1",
    )
    assert isinstance(made, Plan)
    assert made.cause is PlanCause.WITHOUT_PLACE


def test_old_figures_of_neighbours_are_no_old_figures() -> None:
    assert check(Completeness(8, age_seconds=40.0, topology_age_seconds={"words": 1.0, "others": 40.0})) is None
    stale = Completeness(8, age_seconds=40.0, topology_age_seconds={"words": 40.0, "others": 1.0})
    assert check(stale) is HoldReason.METRICS_STALE
    assert check(Completeness(8, age_seconds=40.0)) is HoldReason.METRICS_STALE, "by topology nobody knows"


def test_what_is_unknown_is_told_by_share_and_name() -> None:
    both = placement_settings([WORDS, OTHERS], scheduling=SchedulingSettings(minimum_completeness=0.9))

    def unknown_of(*executors: Executor) -> str:
        held = check_measurements(picture(Completeness(8, executors)), same_demand([WORDS, OTHERS], 100), both)
        return held.message if held is not None else ""

    five, six = (tuple(sorted((*WORDS.executors, *OTHERS.executors))[:count]) for count in (5, 6))
    named = ", ".join(f"{e.component} {e.label} of {e.topology_id}" for e in five)
    assert unknown_of(*five) == f"37% of executors have metrics, 90% are needed; unknown: {named}"
    assert unknown_of(*six) == f"25% of executors have metrics, 90% are needed; unknown: {named} and 1 more"


def test_as_many_as_are_needed_are_enough() -> None:
    many = chain_topology("words", ("spout", 1), ("split", 99))
    seen = snapshot((many,), supervisors(1), placed(many, {"spout": "s1", "split": "s1"}), periods=PERIODS)
    seen = replace(seen, completeness=Completeness(100, many.executors[:7]))

    def held(share: float) -> Hold | None:
        settings = placement_settings([many], scheduling=SchedulingSettings(minimum_completeness=share))
        return check_measurements(seen, same_demand([many], 100), settings)

    assert held(0.93) is None
    assert held(0.94) is not None


def test_share_of_what_is_known_is_never_rounded_up_to_what_is_needed() -> None:
    """One of many that is missing would else read `100% of executors have metrics, 100% are needed`."""
    many = chain_topology("words", ("spout", 1), ("split", 299))
    seen = snapshot((many,), supervisors(1), placed(many, {"spout": "s1", "split": "s1"}), periods=PERIODS)
    seen = replace(seen, completeness=Completeness(300, many.executors[-1:]))
    held = check_measurements(seen, same_demand([many], 100), placement_settings([many]))
    assert held is not None
    assert held.message.startswith("99% of executors have metrics, 100% are needed; unknown: split")


def test_age_is_never_rounded_down_to_what_is_allowed() -> None:
    held = check_measurements(picture(Completeness(8, age_seconds=15.3)), DEMAND, placement_settings([WORDS]))
    assert held is not None
    assert held.message.startswith("metrics are 15.3 s old, at most 15 s are allowed")


def test_of_many_problems_the_first_are_told_and_the_others_counted() -> None:
    """All of them, as of a large cluster whose agents are silent, would be more than a status can hold."""
    problems = tuple(f"the agent of s{n} did not answer" for n in range(400))
    told = f"; {'; '.join(problems[:5])}; and 395 more"
    unknown = Completeness(8, WORDS.executors, 0.0, problems)
    for seen in (
        picture(unknown),
        picture(Completeness(8, age_seconds=40.0, problems=problems)),
        replace(picture(Completeness(8, problems=problems)), history=()),
    ):
        held = check_measurements(seen, DEMAND, placement_settings([WORDS]))
        assert held is not None
        assert held.message.endswith(told)


def test_of_many_hosts_without_an_agent_the_first_are_named_and_the_others_counted() -> None:
    machines, wide = supervisors(30), chain_topology("words", ("spout", 30))
    where = {executor: WorkerSlot(s.id, s.ports[0]) for executor, s in zip(wide.executors, machines, strict=True)}
    silent = Completeness(30, wide.executors, silent_supervisors=tuple(s.id for s in machines))
    seen = replace(snapshot((wide,), machines, where), completeness=silent, history=())
    held = check_measurements(seen, DEMAND, placement_settings([wide]))
    named = ", ".join(sorted(s.host for s in machines)[:5])
    assert held is not None
    assert held.message.startswith(f"no agent speaks for {named} and 25 more, where executors run; ")


def test_where_no_topology_runs_nothing_is_waited_for() -> None:
    held = check_measurements(snapshot((), supervisors(1)), DEMAND, placement_settings([WORDS]))
    assert held == Hold(HoldReason.NO_CHANGE, "no topology runs: there is nothing to place")

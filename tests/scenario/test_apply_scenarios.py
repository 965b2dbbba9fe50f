"""A plan on its way into force: order of deeds, and an operator that dies at every step of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from unittest.mock import Mock

import pytest

from builders import chain_topology, placed
from fake_cluster import FakeClock, FakeCluster, Killed
from storm_operator.adapters.errors import OUT_OF_REACH, AdapterError, NimbusError, RebalanceInProgress
from storm_operator.adapters.plan_documents import Acknowledgement
from storm_operator.apply import SUPERVISOR_SYNC_SECONDS, Applier
from storm_operator.core.decision import Move, Plan, Prediction
from storm_operator.core.model import Assignment, Executor
from storm_operator.core.plan_json import record_from_json, record_to_json
from storm_operator.core.plan_progress import Component, InFlight, Way, executors_not_running, still_reached
from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState, WorkerSeen, executor_key
from storm_operator.core.settings import ApplyMethod
from storm_operator.draining import DRAIN_TIMEOUT_SECONDS

WORDS = chain_topology("words", ("spout", 1), ("split", 1), ("count", 1), stateful=("count",))
BASE = Assignment(placed(WORDS, {"spout": "s1:6700", "split": "s1:6700", "count": "s2:6700"}))
COUNT = WORDS.executors_of("count")[0]
SPLIT = WORDS.executors_of("split")[0]
UNKNOWN = Outcome(None, None, None, None, None)
NOTHING = Prediction(0.0, 0.0, 0.0, 1, 0.0)


def plan() -> Plan:
    target = Assignment(placed(WORDS, {"spout": "s1:6700", "split": "s1:6700", "count": "s1:6701"}))
    slot = target.slot_of[COUNT]
    return Plan(
        id="p-1",
        created_at_seconds=1000.0,
        policy="adaptive",
        reason="closer",
        topology_ids=("words",),
        base=BASE,
        target=target,
        moves=(Move(COUNT, BASE.slot_of[COUNT], slot),),
        restarted_workers=(slot,),
        kept_workers=(target.slot_of[SPLIT],),
        cpu_limits_millicores={COUNT: 200.0, SPLIT: 400.0},
        before=NOTHING,
        after=NOTHING,
    )


def record(method: ApplyMethod) -> PlanRecord:
    return PlanRecord(plan(), method, PlanState.PROPOSED, UNKNOWN, started_at_seconds=1000.0)


def applier_for(cluster: FakeCluster) -> Applier:
    return Applier(cluster, cluster, cluster, cluster.clock)


@pytest.mark.parametrize("method", list(ApplyMethod))
def test_plan_gets_in_force_and_the_kept_worker_is_counted(method: ApplyMethod) -> None:
    cluster = FakeCluster(BASE, FakeClock())
    saved: list[PlanRecord] = []
    done = applier_for(cluster).apply(record(method), saved.append)
    assert done.state is PlanState.SETTLING
    assert cluster.assignment.slot_of == plan().target.slot_of
    assert done.workers_kept == 1
    assert done.seconds_to_in_force is not None
    assert done.seconds_to_running is not None
    assert saved[0].state is PlanState.APPLYING
    assert saved[-1] == done


def test_of_many_executors_that_were_not_seen_to_run_the_first_are_named() -> None:
    wide = chain_topology("words", ("spout", 7))
    base, target = (Assignment(placed(wide, {"spout": slot})) for slot in ("s1:6700", "s2:6700"))
    moves = tuple(Move(one, base.slot_of[one], target.slot_of[one]) for one in wide.executors)
    restarted = tuple(sorted(target.workers()))
    moved = replace(plan(), base=base, target=target, moves=moves, restarted_workers=restarted, kept_workers=())
    cluster = FakeCluster(base, FakeClock(), hidden=True)
    done = applier_for(cluster).apply(replace(record(ApplyMethod.REBALANCE), plan=moved), lambda _: None)
    assert done.state is PlanState.SETTLING
    assert done.message.endswith(
        "not seen to run: spout[1-1], spout[2-2], spout[3-3], spout[4-4], spout[5-5] and 2 more"
    )


def killed_after(cluster: FakeCluster, seconds: float, topology_id: str = "words") -> None:
    """Somebody kills a topology so long after now."""
    schedule, moment = cluster.clock.on_sleep, cluster.clock.monotonic() + seconds

    def look() -> None:
        schedule()
        if cluster.clock.monotonic() >= moment:
            cluster.kill(topology_id)

    cluster.clock.on_sleep = look


@pytest.mark.parametrize("method", list(ApplyMethod))
def test_executors_of_a_topology_that_is_killed_meanwhile_are_not_waited_for(method: ApplyMethod) -> None:
    cluster = FakeCluster(BASE, FakeClock(), hidden=True)
    killed_after(cluster, 10.0)
    done = applier_for(cluster).apply(record(method), lambda _: None)
    assert done.state is PlanState.SETTLING
    assert done.message == "", "that it no longer runs is what the next pass finds"
    assert done.seconds_to_running is None, "they never ran"
    assert cluster.clock.slept_seconds < 20.0


def test_plan_of_a_topology_that_is_killed_before_it_is_in_force_is_not_waited_for() -> None:
    cluster = FakeCluster(BASE, FakeClock())
    cluster.schedule = lambda: None  # type: ignore[method-assign]  # Nimbus is slow
    cluster.clock.on_sleep = lambda: None
    killed_after(cluster, 5.0)
    done = applier_for(cluster).apply(record(ApplyMethod.REBALANCE), lambda _: None)
    assert done.state is PlanState.SETTLING
    assert done.seconds_to_running is None
    assert cluster.clock.slept_seconds < 15.0


def test_topology_that_lives_on_is_waited_for_though_another_of_the_plan_is_killed() -> None:
    both = record_of_two()
    both = replace(both, plan=replace(both.plan, restarted_workers=tuple(both.plan.target.workers())))
    cluster = FakeCluster(both.plan.base, FakeClock(), hidden=True)
    killed_after(cluster, 10.0)
    done = applier_for(cluster).apply(both, lambda _: None)
    assert done.seconds_to_running is None
    assert done.message.endswith("not seen to run: source[1-1]")
    assert cluster.clock.slept_seconds > 80.0


@pytest.mark.parametrize("error", OUT_OF_REACH)
def test_nimbus_that_does_not_answer_ends_no_wait_for_workers(error: type[AdapterError]) -> None:
    cluster = FakeCluster(BASE, FakeClock(), hidden=True)
    cluster.not_ended = Mock(side_effect=error("away"))  # type: ignore[method-assign]
    done = applier_for(cluster).apply(record(ApplyMethod.IN_PLACE), lambda _: None)
    assert done.state is PlanState.SETTLING
    assert "not seen to run" in done.message


def test_limits_rise_before_the_move_and_fall_after_it() -> None:
    cluster = FakeCluster(BASE, FakeClock())
    cluster.limits["words"] = {COUNT: 300.0, SPLIT: 200.0}
    at_move: list[dict[Executor, float]] = []
    original = cluster.write_plan

    def spy(topology_id: str, plan: Plan) -> None:
        at_move.append(dict(cluster.limits["words"]))
        original(topology_id, plan)

    cluster.write_plan = spy  # type: ignore[method-assign]
    applier_for(cluster).apply(record(ApplyMethod.REBALANCE), lambda _: None)
    assert at_move == [{COUNT: 300.0, SPLIT: 400.0}]
    # The worker of count was restarted: twice its limit until the plan is verified, since its code is cold.
    assert cluster.limits["words"] == {COUNT: 400.0, SPLIT: 400.0}
    applier_for(cluster).limits.follow("words", plan().cpu_limits_millicores, plan().target.slot_of)
    assert cluster.limits["words"] == {COUNT: 200.0, SPLIT: 400.0}


def test_in_place_never_calls_nimbus() -> None:
    cluster = FakeCluster(BASE, FakeClock())
    applier_for(cluster).apply(record(ApplyMethod.IN_PLACE), lambda _: None)
    assert not [call for call in cluster.calls if call.startswith(("rebalance", "activate", "deactivate"))]


def test_drain_waits_until_nothing_is_in_flight_and_resumes_last() -> None:
    cluster = FakeCluster(BASE, FakeClock(), in_flight=[5.0, 2.0, 0.0])
    applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None)
    order = [call.split()[0] for call in cluster.calls if not call.startswith("write_cpu")]
    assert order == ["deactivate", "write_plan", "activate"]
    assert cluster.in_flight == [0.0]


def test_drain_waits_for_a_bolt_that_works_on_one_tuple_though_nothing_waits() -> None:
    clock = FakeClock()
    cluster = FakeCluster(BASE, clock, busy_until_seconds=clock.now() + 15.0)
    done = applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None)
    assert done.in_force_at_seconds is not None
    assert done.in_force_at_seconds >= cluster.busy_until_seconds
    assert done.message == ""


def test_drain_that_waits_in_vain_for_a_bolt_says_that_its_tuple_may_fail() -> None:
    clock = FakeClock()
    cluster = FakeCluster(BASE, clock, busy_until_seconds=clock.now() + 100.0)
    assert "still in flight" in applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None).message


def test_drain_does_not_wait_for_an_agent_where_nothing_of_the_topology_was() -> None:
    clock = FakeClock()
    cluster = FakeCluster(BASE, clock, silent_supervisors={"s3"})
    done = applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None)
    assert done.seconds_to_in_force is not None
    assert done.seconds_to_in_force < 5.0
    assert (done.message, done.failures_before) == ("", {})


def test_drain_that_an_agent_says_nothing_of_does_not_say_that_tuples_were_in_flight() -> None:
    cluster = FakeCluster(BASE, FakeClock(), silent_supervisors={"s2"})
    done = applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None)
    assert done.message == (
        "whether tuples were still in flight after 30 s of draining, and may fail, is unknown: an agent did not answer"
    )


@pytest.mark.parametrize(("method", "waits_seconds"), [(ApplyMethod.REBALANCE, 0.0), (ApplyMethod.DRAIN, 30.0)])
def test_workers_that_no_agent_can_show_are_not_waited_for_as_if_one_could(
    method: ApplyMethod, waits_seconds: float
) -> None:
    cluster = FakeCluster(BASE, FakeClock(), silent_supervisors={"s1", "s2"})
    done = applier_for(cluster).apply(record(method), lambda _: None)
    assert done.state is PlanState.SETTLING
    assert done.message.endswith("in force, but not seen to run: no agent answers")
    assert done.seconds_to_running is None
    assert done.in_force_at_seconds is not None
    waited = cluster.clock.now() - done.in_force_at_seconds
    assert waits_seconds <= waited < waits_seconds + 5.0


def test_workers_of_an_agent_that_falls_silent_are_waited_for_as_long_as_others_answer() -> None:
    cluster = FakeCluster(BASE, FakeClock(), silent_supervisors={"s1"})
    done = applier_for(cluster).apply(record(ApplyMethod.REBALANCE), lambda _: None)
    assert done.message == f"in force, but after 90 s not seen to run: count[{COUNT.label}]"


def test_workers_are_waited_for_where_none_ran_before_and_one_agent_is_silent() -> None:
    """As after a restart of the whole cluster: of failures nothing is known then, and nobody had seen a worker."""
    cluster = FakeCluster(BASE, FakeClock(), silent_supervisors={"s2"})
    begun = replace(record(ApplyMethod.REBALANCE), worker_pids_before={}, failures_before=None)
    done = applier_for(cluster).resume(begun, lambda _: None)
    assert (done.message, done.seconds_to_running is None) == ("", False)


def test_drain_does_not_take_a_worker_that_writes_nothing_for_one_that_has_nothing_to_do() -> None:
    cluster = FakeCluster(BASE, FakeClock(), age_seconds=lambda passed: passed)
    done = applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None)
    assert cluster.clock.slept_seconds >= DRAIN_TIMEOUT_SECONDS
    assert "may fail, is unknown: a worker has told its agent nothing for" in done.message


def test_drain_does_not_take_a_queue_that_no_agent_shows_for_an_empty_one() -> None:
    cluster = FakeCluster(BASE, FakeClock(), without_queue={COUNT})
    done = applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None)
    assert cluster.clock.slept_seconds >= DRAIN_TIMEOUT_SECONDS
    assert done.message == (
        "whether tuples were still in flight after 30 s of draining, and may fail, is unknown:"
        f" no agent shows the queues of count[{COUNT.label}]"
    )


def test_drain_waits_until_the_queue_of_a_worker_that_has_just_started_is_seen() -> None:
    cluster = FakeCluster(BASE, FakeClock(), without_queue={COUNT})

    def pass_time() -> None:
        if cluster.clock.slept_seconds >= 10.0:
            cluster.without_queue.clear()
        cluster.schedule()

    cluster.clock.on_sleep = pass_time
    done = applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None)
    assert done.message == ""
    assert 10.0 <= cluster.clock.slept_seconds < 20.0


def test_drain_does_not_wait_for_queues_of_a_topology_that_is_killed_meanwhile() -> None:
    cluster = FakeCluster(BASE, FakeClock(), without_queue={COUNT})
    killed_after(cluster, 5.0)
    done = applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None)
    assert done.message == ""
    assert cluster.clock.slept_seconds < 20.0


@pytest.mark.parametrize("period_seconds", [1.0, 2.0, 5.0])
def test_drain_ends_once_each_worker_has_written_twice_however_seldom_they_write(period_seconds: float) -> None:
    """Ten workers that write one after the other: some word is always nearly a period old."""
    cluster = FakeCluster(BASE, FakeClock(), age_seconds=lambda _: 0.95 * period_seconds)
    done = applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None)
    assert done.message == ""


def test_drain_asks_nothing_of_an_agent_that_serves_only_topologies_that_go_on() -> None:
    lines = chain_topology("lines", ("spout", 1))
    there = placed(lines, {"spout": "s3:6700"})
    both = replace(
        plan(),
        topology_ids=("lines", "words"),
        base=Assignment({**BASE.slot_of, **there}),
        target=Assignment({**plan().target.slot_of, **there}),
    )
    cluster = FakeCluster(both.base, FakeClock(), silent_supervisors={"s3"})
    done = applier_for(cluster).apply(replace(record(ApplyMethod.DRAIN), plan=both), lambda _: None)
    assert done.message == ""


def test_drain_does_not_wait_for_what_bolts_emit_on_ticks() -> None:
    cluster = FakeCluster(BASE, FakeClock(), ticks=True, in_flight=[5.0, 2.0, 0.0])
    done = applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None)
    assert done.message == ""
    assert done.seconds_to_in_force is not None
    assert done.seconds_to_in_force < 10.0


def executed(spout_split: float = 9.0, split_count: float = 0.0, count_report: float = 0.0) -> dict[Way, float]:
    """Counts of a chain in which a spout has sent to `split`."""
    return {
        ("words", "spout", "split"): spout_split,
        ("words", "split", "count"): split_count,
        ("words", "count", "report"): count_report,
        ("words", "__acker", "spout"): 9.0,
    }


IDLE = {"split": 3.0, "count": 5.0}
NOBODY = frozenset[Component]()


@pytest.mark.parametrize(
    ("now", "reached"),
    [
        (InFlight(0.0, executed(), {"split": 3.0, "count": 5.02}), NOBODY),
        (InFlight(0.0, executed(), {"split": 3.0, "count": 6.0}), None),
        (InFlight(0.0, executed(spout_split=10.0), IDLE), frozenset({("words", "split")})),
        (InFlight(1.0, executed(), IDLE), None),
        (InFlight(0.0, executed(), {"elsewhere": 70.0}), NOBODY),
        (InFlight(0.0, executed(), {"split": 0.0, "count": 0.0}), NOBODY),
    ],
    ids=["idle", "one tuple", "executed", "waiting", "seen for the first time", "agent restarted"],
)
def test_what_is_quiet(now: InFlight, reached: frozenset[Component] | None) -> None:
    assert still_reached(InFlight(0.0, executed(), IDLE), now, 1.2) == reached


@pytest.mark.parametrize(("used_seconds", "reached"), [(0.9, NOBODY), (1.1, None)])
def test_the_longer_agents_let_wait_the_more_cpu_an_idle_executor_has_taken(
    used_seconds: float, reached: frozenset[Component] | None
) -> None:
    before, now = InFlight(0.0, executed(), {"count": 5.0}), InFlight(0.0, executed(), {"count": 5.0 + used_seconds})
    assert still_reached(before, now, 10.0) == reached


def test_what_a_bolt_sends_is_in_flight_as_long_as_something_reached_that_bolt() -> None:
    """`count` emits on ticks all the while; the last tuple of a spout goes from bolt to bolt, look by look."""
    looks = [executed(9.0, 7.0, 1.0), executed(10.0, 7.0, 2.0), executed(10.0, 8.0, 3.0), executed(10.0, 8.0, 4.0)]
    looks += [executed(10.0, 8.0, 5.0), executed(11.0, 8.0, 6.0)]
    reached, seen = None, []
    for before, now in pairwise(InFlight(0.0, look) for look in looks):
        reached = still_reached(before, now, 1.2, reached)
        assert reached is not None
        seen.append({component for _, component in reached})
    assert seen == [{"split", "report"}, {"count"}, {"report"}, set(), {"split"}]


def test_anybody_may_have_been_reached_while_tuples_wait() -> None:
    before, waits, now = (
        InFlight(0.0, executed()),
        InFlight(3.0, executed()),
        InFlight(0.0, executed(count_report=1.0)),
    )
    reached = still_reached(before, waits, 1.2, frozenset())
    assert still_reached(waits, now, 1.2, reached) == frozenset({("words", "report")})


@pytest.mark.parametrize(("deaf", "at_least_seconds"), [(False, 0.0), (True, SUPERVISOR_SYNC_SECONDS)])
def test_drain_waits_for_supervisors_that_cannot_be_told(deaf: bool, at_least_seconds: float) -> None:
    cluster = FakeCluster(BASE, FakeClock(), supervisors_are_deaf=deaf)
    done = applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None)
    assert cluster.told == {"s1", "s2"}
    assert done.in_force_at_seconds is not None
    waited = cluster.clock.now() - done.in_force_at_seconds
    assert at_least_seconds <= waited < at_least_seconds + 5.0


@pytest.mark.parametrize("step_seconds", [-3600.0, 3600.0])
def test_a_clock_that_is_set_while_spouts_are_paused_neither_lengthens_the_pause_nor_cuts_it_short(
    step_seconds: float,
) -> None:
    def passed(moment: float | None) -> tuple[PlanRecord, float]:
        clock = FakeClock()
        cluster = FakeCluster(BASE, clock, supervisors_are_deaf=True, in_flight=[1.0])
        schedule = clock.on_sleep

        def and_set() -> None:
            nonlocal moment
            schedule()
            if moment is not None and clock.slept_seconds > moment:
                clock.seconds += step_seconds
                moment = None

        clock.on_sleep = and_set
        return applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None), clock.slept_seconds

    usual, usual_seconds = passed(None)
    for moment in (1.0, usual_seconds - 1.0):
        done, seconds = passed(moment)
        assert seconds == pytest.approx(usual_seconds)
        assert done.seconds_to_running == pytest.approx(usual.seconds_to_running)
        assert done.message == usual.message
        assert done.seconds_to_in_force == pytest.approx(usual.seconds_to_in_force)


def test_nobody_knows_how_long_a_plan_took_that_began_before_the_clock_was_set_back() -> None:
    begun = replace(record(ApplyMethod.REBALANCE), started_at_seconds=FakeClock().now() + 3600.0)
    done = applier_for(FakeCluster(BASE, FakeClock())).apply(begun, lambda _: None)
    assert (done.state, done.seconds_to_in_force) == (PlanState.SETTLING, None)


def test_worker_that_was_never_told_to_end_is_running_where_the_plan_wants_it() -> None:
    # A plan took count away and another brings it back before the supervisor has heard of the first.
    applying = replace(record(ApplyMethod.REBALANCE), worker_pids_before={plan().target.slot_of[COUNT]: 7})
    slot = plan().target.slot_of[COUNT]
    same = WorkerSeen(7, frozenset({executor_key(COUNT)}), frozenset())
    assert executors_not_running(applying, {slot: same}) == ()
    other = WorkerSeen(7, frozenset({executor_key(COUNT), executor_key(SPLIT)}), frozenset())
    assert executors_not_running(applying, {slot: other}) == (COUNT,)
    assert executors_not_running(applying, {}) == (COUNT,)


def test_a_worker_of_which_nobody_knew_the_process_may_be_that_of_before() -> None:
    """As where an agent did not answer when the plan began: of a slot that had a worker, not of a new one."""
    before, after = BASE.slot_of[COUNT], plan().target.slot_of[COUNT]
    both = WorkerSeen(7, frozenset({executor_key(COUNT), executor_key(SPLIT)}), frozenset())
    count = WorkerSeen(7, frozenset({executor_key(COUNT)}), frozenset())
    stays = replace(plan(), target=Assignment({COUNT: before}), restarted_workers=(before,))
    unseen = replace(record(ApplyMethod.REBALANCE), worker_pids_before={})
    assert executors_not_running(replace(unseen, plan=stays), {before: both}) == (COUNT,)
    assert executors_not_running(replace(unseen, plan=stays), {before: count}) == ()
    assert executors_not_running(unseen, {after: both}) == ()


@pytest.mark.parametrize("unseen", [{COUNT}, set(BASE.slot_of)], ids=["one", "all"])
def test_abandoned_plan_does_not_come_into_force_when_a_supervisor_is_back(unseen: set[Executor]) -> None:
    cluster = FakeCluster(BASE, FakeClock(), out_of_sight=unseen)
    cluster.clock.on_sleep = lambda: None  # nothing is scheduled: the target's supervisor is away, too
    begun = record(ApplyMethod.IN_PLACE)
    assert applier_for(cluster).apply(begun, lambda _: None).state is PlanState.FAILED
    assert cluster.plans["words"].target == BASE


def test_rejected_plan_changes_nothing_and_says_why() -> None:
    cluster = FakeCluster(BASE, FakeClock(), rejects=True)
    done = applier_for(cluster).apply(record(ApplyMethod.DRAIN), lambda _: None)
    assert done.state is PlanState.FAILED
    assert "named twice" in done.message
    assert cluster.assignment.slot_of == BASE.slot_of
    assert cluster.plans["words"].target == BASE
    assert not cluster.inactive


@pytest.mark.parametrize(
    ("said_of", "words"),
    [
        (None, "the plan scheduler has not acknowledged it (is it Nimbus' storm.scheduler?)"),
        ("another plan", "the plan scheduler has not acknowledged it (is it Nimbus' storm.scheduler?)"),
        (plan().id, "s1:6700 is not free"),
    ],
)
def test_a_plan_that_is_not_put_in_force_ends_with_what_the_scheduler_said_of_it(
    said_of: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeCluster, "schedule", lambda _: None)
    cluster = FakeCluster(BASE, FakeClock())
    said = None if said_of is None else Acknowledgement(said_of, "words", "applied", "s1:6700 is not free", 0, (), 0)
    monkeypatch.setattr(cluster, "read_acknowledgement", lambda _: said)
    done = applier_for(cluster).apply(record(ApplyMethod.REBALANCE), lambda _: None)
    assert done.state is PlanState.FAILED
    assert done.message.endswith(f"not in force after 60 s: {words}")


OTHER = chain_topology("other", ("source", 1))


def record_of_two() -> PlanRecord:
    """Drains both topologies and moves one executor of each."""
    here = Assignment({**BASE.slot_of, **placed(OTHER, {"source": "s2:6702"})})
    there = Assignment({**plan().target.slot_of, **placed(OTHER, {"source": "s1:6702"})})
    source = OTHER.executors[0]
    move = Move(source, here.slot_of[source], there.slot_of[source])
    both = replace(
        plan(), topology_ids=("other", "words"), base=here, target=there, moves=(*plan().moves, move), kept_workers=()
    )
    return replace(record(ApplyMethod.DRAIN), plan=both)


@pytest.mark.parametrize("step", [None, "write_plan other"])
def test_drain_leaves_a_topology_inactive_that_its_owner_had_deactivated(step: str | None) -> None:
    drained = record_of_two()
    cluster = FakeCluster(drained.plan.base, FakeClock(), die_at=step, inactive={"other"})
    saved: list[PlanRecord] = []
    if step is None:
        done = applier_for(cluster).apply(drained, saved.append)
    else:
        with pytest.raises(Killed):
            applier_for(cluster).apply(drained, saved.append)
        done = applier_for(cluster).resume(record_from_json(record_to_json(saved[-1])), saved.append)
    assert done.state is PlanState.SETTLING
    assert cluster.inactive == {"other"}


def test_abandoned_plan_leaves_nobody_paused_whom_nimbus_resumes() -> None:
    drained = record_of_two()
    cluster = FakeCluster(drained.plan.base, FakeClock(), refuses=frozenset({"deactivate words"}))
    with pytest.raises(NimbusError):
        applier_for(cluster).apply(drained, lambda _: None)
    assert cluster.inactive == {"other"}
    assert applier_for(cluster).abandon(drained, "", lambda _: None).state is PlanState.FAILED
    assert not cluster.inactive


@pytest.mark.parametrize("refused", ["activate other", "write_plan other"])
def test_refusal_for_one_topology_keeps_no_other_paused(refused: str) -> None:
    drained = record_of_two()
    cluster = FakeCluster(drained.plan.base, FakeClock(), refuses=frozenset({refused}), inactive={"other", "words"})
    with pytest.raises(NimbusError, match=refused):
        applier_for(cluster).abandon(drained, "", lambda _: None)
    assert "words" not in cluster.inactive


def test_drain_pauses_nobody_while_somebody_rebalances_one_of_its_topologies() -> None:
    drained, saved = record_of_two(), list[PlanRecord]()
    cluster = FakeCluster(drained.plan.base, FakeClock(), rebalancing={"words"})
    with pytest.raises(RebalanceInProgress, match="words is being rebalanced"):
        applier_for(cluster).apply(drained, saved.append)
    assert (saved, cluster.calls) == ([], [])


@pytest.mark.parametrize("again", [False, True])
def test_rebalance_that_begins_while_spouts_are_paused_keeps_no_other_topology_paused(again: bool) -> None:
    drained, saved = record_of_two(), list[PlanRecord]()
    cluster = FakeCluster(drained.plan.base, FakeClock())
    original = cluster.deactivate

    def deactivate(topology_id: str) -> None:
        original(topology_id)
        cluster.rebalancing.add("words")

    cluster.deactivate = deactivate  # type: ignore[method-assign]
    with pytest.raises(RebalanceInProgress):
        applier_for(cluster).apply(drained, saved.append)
    if again:
        cluster.inactive = {"other"}  # as where the operator was killed before it could resume them
        with pytest.raises(RebalanceInProgress):
            applier_for(cluster).resume(saved[-1], saved.append)
    assert not cluster.inactive
    cluster.rebalancing.clear()
    cluster.deactivate = original  # type: ignore[method-assign]
    assert applier_for(cluster).resume(saved[-1], saved.append).state is PlanState.SETTLING


@pytest.mark.parametrize("in_flight", [0.0, 5.0])
def test_plan_that_is_in_force_is_not_drained_again_by_the_next_life(in_flight: float) -> None:
    cluster = FakeCluster(BASE, FakeClock(), die_at="activate words", in_flight=[in_flight])
    saved: list[PlanRecord] = []
    with pytest.raises(Killed):
        applier_for(cluster).apply(record(ApplyMethod.DRAIN), saved.append)
    cluster.calls.clear()
    done = applier_for(cluster).resume(record_from_json(record_to_json(saved[-1])), saved.append)
    assert "deactivate words" not in cluster.calls
    assert ("may fail" in done.message) is bool(in_flight), "what could not be waited for is said all the same"
    assert not cluster.inactive


def test_how_long_restarts_take_is_unknown_of_a_plan_that_nobody_watched_all_the_while() -> None:
    cluster = FakeCluster(BASE, FakeClock(), die_at="activate words")
    saved: list[PlanRecord] = []
    with pytest.raises(Killed):
        applier_for(cluster).apply(record(ApplyMethod.DRAIN), saved.append)
    in_force = saved[-1]
    cluster.clock.sleep(300.0)
    done = applier_for(cluster).resume(record_from_json(record_to_json(in_force)), saved.append)
    assert done.seconds_to_running is None
    assert in_force.in_force_at_seconds is not None
    assert done.in_force_at_seconds == in_force.in_force_at_seconds
    assert done.seconds_to_in_force == in_force.seconds_to_in_force
    assert done.running_at_seconds == cluster.clock.now(), "spouts were paused until then"


@pytest.mark.parametrize("method", list(ApplyMethod))
def test_how_long_a_plan_took_is_unknown_where_it_came_into_force_while_nobody_looked(method: ApplyMethod) -> None:
    cluster = FakeCluster(BASE, FakeClock())
    saved: list[PlanRecord] = []

    def die_in_the_wait() -> None:
        if cluster.plans:
            raise Killed("in the wait")

    cluster.clock.on_sleep = die_in_the_wait
    cluster.schedule = lambda: None  # type: ignore[method-assign]  # Nimbus is slow
    with pytest.raises(Killed):
        applier_for(cluster).apply(record(method), saved.append)
    del cluster.schedule
    cluster.clock.on_sleep = cluster.schedule
    cluster.clock.sleep(600.0)
    done = applier_for(cluster).resume(record_from_json(record_to_json(saved[-1])), saved.append)
    assert done.state is PlanState.SETTLING
    assert (done.seconds_to_in_force, done.seconds_to_running) == (None, None)


def test_drain_is_given_up_when_the_operator_is_told_to_end_before_the_move_has_begun() -> None:
    cluster = FakeCluster(BASE, FakeClock(), in_flight=[5.0])
    applier = replace(applier_for(cluster), is_ending=lambda: cluster.clock.slept_seconds > 3.0)
    done = applier.apply(record(ApplyMethod.DRAIN), lambda _: None)
    assert (done.state, done.message) == (
        PlanState.FAILED,
        "abandoned: storm-operator was ended before the move had begun",
    )
    assert cluster.clock.slept_seconds < 6.0
    assert not cluster.inactive
    assert cluster.plans["words"].target == BASE


def test_plan_that_an_earlier_life_has_handed_to_nimbus_is_not_given_up_as_one_that_has_not_begun() -> None:
    cluster = FakeCluster(BASE, FakeClock())
    saved: list[PlanRecord] = []
    applier_for(cluster).apply(record(ApplyMethod.DRAIN), saved.append)
    before_it_was_known = saved[0]
    assert (before_it_was_known.state, before_it_was_known.in_force_at_seconds) == (PlanState.APPLYING, None)
    applier = replace(applier_for(cluster), is_ending=lambda: True)
    done = applier.resume(before_it_was_known, saved.append)
    assert done.state is PlanState.SETTLING
    assert not cluster.inactive


def test_plan_in_force_that_waits_for_a_rebalance_asks_for_nothing_else_meanwhile() -> None:
    cluster = FakeCluster(BASE, FakeClock(), rebalancing={"words"}, silent_supervisors={"s1"})
    begun = replace(record(ApplyMethod.DRAIN), state=PlanState.APPLYING, in_force_at_seconds=cluster.clock.now())
    cluster.plans["words"] = plan()
    cluster.schedule()
    slept = cluster.clock.slept_seconds
    with pytest.raises(RebalanceInProgress):
        applier_for(cluster).resume(begun, lambda _: None)
    assert cluster.clock.slept_seconds == slept, "all topologies of the cluster would wait for it in each pass"


def test_way_back_is_drained_for_though_the_operator_is_told_to_end() -> None:
    """Who comes next would not know that a plan is in force which did harm."""
    cluster = FakeCluster(BASE, FakeClock(), in_flight=[5.0])
    applier = replace(applier_for(cluster), is_ending=lambda: True)
    done = applier.apply(replace(record(ApplyMethod.DRAIN), rollback_of="p-0"), lambda _: None)
    assert done.state is PlanState.SETTLING
    assert not cluster.inactive


STEPS = {
    ApplyMethod.REBALANCE: ("write_cpu_limits words", "write_plan words", "rebalance words"),
    ApplyMethod.IN_PLACE: ("write_cpu_limits words", "write_plan words"),
    ApplyMethod.DRAIN: ("deactivate words", "write_plan words", "activate words"),
}


@pytest.mark.parametrize(("method", "step"), [(method, step) for method, steps in STEPS.items() for step in steps])
def test_operator_killed_at_any_step_finishes_after_its_restart(method: ApplyMethod, step: str) -> None:
    cluster = FakeCluster(BASE, FakeClock(), die_at=step)
    saved: list[PlanRecord] = []
    with pytest.raises(Killed):
        applier_for(cluster).apply(record(method), saved.append)
    assert saved[-1].state is PlanState.APPLYING

    done = applier_for(cluster).resume(saved[-1], saved.append)
    assert done.state is PlanState.SETTLING
    assert cluster.assignment.slot_of == plan().target.slot_of
    assert done.workers_kept == 1
    assert not cluster.inactive


def test_resume_of_a_plan_already_in_force_does_not_rebalance_again() -> None:
    cluster = FakeCluster(BASE, FakeClock())
    saved: list[PlanRecord] = []
    applier_for(cluster).apply(record(ApplyMethod.REBALANCE), saved.append)
    cluster.calls.clear()
    applier_for(cluster).resume(replace(saved[0]), saved.append)
    assert "rebalance words" not in cluster.calls

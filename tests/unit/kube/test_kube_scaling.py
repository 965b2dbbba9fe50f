"""How many supervisor pods: one more at once when needed, fewer only when calm, none that is used ever taken."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from kube_builders import plan
from storm_operator.adapters.kube.pods import SupervisorPod
from storm_operator.core.decision import Decision, Hold, HoldReason
from storm_operator.core.topology_spec import ScaleLimits
from storm_operator.kube.scaling import (
    CALM_PASSES,
    PATIENT_PASSES,
    ScaleState,
    ScaleStep,
    beyond_maximum,
    merged_limits,
    scale_step,
    wanted_replicas,
    why_none_is_added,
)

LIMITS = ScaleLimits(1, 4)
NO_CHANGE = Hold(HoldReason.NO_CHANGE, "all is well")
INFEASIBLE = Hold(HoldReason.INFEASIBLE, "no supervisor has 400 millicores free")
TOO_LITTLE = Hold(HoldReason.TOO_LITTLE_CAPACITY, "1 supervisor lacks 300 millicores of CPU", 0.0, ("words",))
OVERLOADED = plan(after=replace(plan().after, overloaded_millicores=120.0))
FULL_THREADS = replace(OVERLOADED, beyond_threads_millicores=120.0)


def pods(
    count: int, ready: bool = True, stateful_set: str = "s", namespace: str = "storm"
) -> tuple[SupervisorPod, ...]:
    return tuple(
        SupervisorPod(namespace, f"{stateful_set}-{n}", "s", stateful_set, ready, None, None, None)
        for n in range(count)
    )


def after_passes(
    passes: int, replicas: int, used: Collection[int], decision: Decision = NO_CHANGE, limits: ScaleLimits = LIMITS
) -> ScaleStep | None:
    """The step of the last of so many equal passes."""
    state, step = ScaleState(), None
    for _ in range(passes):
        assert step is None
        step, state = scale_step(limits, pods(replicas), replicas, used, [decision], state)
    return step


def passed(passes: int, replicas: int, used: Collection[int]) -> ScaleState:
    """The state after so many equal calm passes, none of which takes a step."""
    state = ScaleState()
    for _ in range(passes):
        step, state = scale_step(LIMITS, pods(replicas), replicas, used, [NO_CHANGE], state)
        assert step is None
    return state


class TestMergedLimits:
    def test_nobody_asks(self) -> None:
        assert merged_limits([None, None]) is None

    def test_highest_minimum_and_lowest_maximum_hold(self) -> None:
        assert merged_limits([ScaleLimits(1, 5), None, ScaleLimits(2, 3)]) == ScaleLimits(2, 3)

    def test_maximum_wins_where_they_contradict(self) -> None:
        """No pod is added beyond it: that is what it is for."""
        assert merged_limits([ScaleLimits(1, 2), ScaleLimits(4, 6)]) == ScaleLimits(2, 2)
        assert merged_limits([ScaleLimits(500, 500), ScaleLimits(1, 4)]) == ScaleLimits(4, 4)

    def test_name_that_one_gives_holds_for_all(self) -> None:
        assert merged_limits([ScaleLimits(1, 2), ScaleLimits(1, 2, "storm-supervisor")]) == ScaleLimits(
            1, 2, "storm-supervisor"
        )


class TestUp:
    def test_at_once_when_no_placement_fits(self) -> None:
        step = after_passes(1, 2, {0, 1}, INFEASIBLE)
        assert step == ScaleStep("storm", "s", 3, "no placement fits: no supervisor has 400 millicores free")

    def test_at_once_when_capacity_is_short_and_all_pods_are_used(self) -> None:
        step = after_passes(1, 2, {0, 1}, TOO_LITTLE)
        assert step == ScaleStep("storm", "s", 3, "1 supervisor lacks 300 millicores of CPU")
        assert after_passes(1, 2, {0}, TOO_LITTLE) is None

    def test_at_once_when_the_best_placement_overloads(self) -> None:
        step = after_passes(1, 2, {0, 1}, OVERLOADED)
        assert step is not None
        assert (step.replicas, step.reason) == (3, "even the best placement overloads a supervisor")

    def test_not_for_threads_that_have_more_to_do_than_one_can(self) -> None:
        """No supervisor has room for that, however many there are."""
        assert after_passes(1, 2, {0, 1}, FULL_THREADS) is None
        assert after_passes(1, 2, {0, 1}, replace(OVERLOADED, beyond_threads_millicores=20.0)) is not None

    def test_at_once_to_the_minimum(self) -> None:
        step = after_passes(1, 1, {0}, limits=ScaleLimits(3, 4))
        assert step is not None
        assert (step.replicas, step.reason) == (3, "spec.supervisors.minimum is 3")

    @pytest.mark.parametrize("short", [INFEASIBLE, TOO_LITTLE, OVERLOADED])
    def test_to_the_minimum_in_one_step_also_while_too_few_are_what_is_wrong(self, short: Decision) -> None:
        step = after_passes(1, 1, {0}, short, ScaleLimits(10, 20))
        assert step is not None
        assert (step.replicas, step.reason) == (10, "spec.supervisors.minimum is 10")

    def test_the_last_to_the_minimum_waits_for_no_pod_that_may_never_be_ready(self) -> None:
        starting = (*pods(2), replace(pods(3)[2], ready=False))
        step, _ = scale_step(ScaleLimits(4, 20), starting, 3, {0, 1}, [NO_CHANGE], ScaleState())
        assert step is not None
        assert step.replicas == 4

    def test_never_beyond_the_maximum(self) -> None:
        assert after_passes(1, 4, {0, 1, 2, 3}, INFEASIBLE) is None

    def test_any_group_of_topologies_can_need_it(self) -> None:
        step, _ = scale_step(LIMITS, pods(2), 2, {0}, [NO_CHANGE, INFEASIBLE], ScaleState())
        assert step is not None
        assert step.replicas == 3

    def test_waits_for_the_pod_that_it_asked_for_before(self) -> None:
        starting = (*pods(2), replace(pods(3)[2], ready=False))
        step, _ = scale_step(LIMITS, starting, 3, {0, 1}, [INFEASIBLE], ScaleState())
        assert step is None


class TestWhyNoneIsAdded:
    @pytest.mark.parametrize("needed", [INFEASIBLE, TOO_LITTLE, OVERLOADED], ids=["infeasible", "short", "overloaded"])
    def test_a_pod_that_is_not_ready_is_named(self, needed: Decision) -> None:
        starting = (*pods(2), replace(pods(3)[2], ready=False))
        assert why_none_is_added(LIMITS, starting, 3, range(3), [needed]) == "s-2 is not ready"
        assert scale_step(LIMITS, starting, 3, range(3), [needed], ScaleState())[0] is None

    def test_pods_that_are_not_seen_are_told(self) -> None:
        assert why_none_is_added(LIMITS, pods(2), 3, range(2), [INFEASIBLE]) == "only 2 of 3 pods are seen"

    def test_the_maximum_is_named(self) -> None:
        assert why_none_is_added(LIMITS, pods(4), 4, range(4), [TOO_LITTLE]) == "spec.supervisors.maximum is 4"

    def test_what_the_condition_of_the_maximum_says_is_not_said_twice(self) -> None:
        assert beyond_maximum(ScaleLimits(1, 3), 5, range(5))
        assert why_none_is_added(ScaleLimits(1, 3), pods(5), 5, range(5), [TOO_LITTLE]) == ""

    @pytest.mark.parametrize(
        ("limits", "count", "used", "decision"),
        [
            (LIMITS, 2, range(2), TOO_LITTLE),
            (LIMITS, 4, range(4), NO_CHANGE),
            (LIMITS, 4, range(3), TOO_LITTLE),
            (ScaleLimits(3, 4), 2, range(2), INFEASIBLE),
        ],
        ids=["one is added", "none is needed", "one is unused", "below the minimum"],
    )
    def test_nothing_is_said_otherwise(
        self, limits: ScaleLimits, count: int, used: Collection[int], decision: Decision
    ) -> None:
        assert why_none_is_added(limits, pods(count), count, used, [decision]) == ""


class TestDown:
    def test_only_after_so_many_calm_passes(self) -> None:
        assert after_passes(CALM_PASSES - 1, 4, {0, 1}) is None
        step = after_passes(CALM_PASSES, 4, {0, 1})
        assert step == ScaleStep("storm", "s", 2, "all executors are on 2 pods")

    def test_used_pods_that_would_go_are_emptied_first(self) -> None:
        state = passed(CALM_PASSES, 4, {3})
        assert state.leaving == {1, 2, 3}
        assert scale_step(LIMITS, pods(4), 4, {3}, [plan()], state) == (None, state)
        step, after = scale_step(LIMITS, pods(4), 4, {0}, [NO_CHANGE], state)
        assert step == ScaleStep("storm", "s", 1, "all executors are on 1 pod")
        assert after == ScaleState()

    def test_pods_that_no_plan_empties_are_used_again(self) -> None:
        assert passed(PATIENT_PASSES, 4, {3}).leaving == {1, 2, 3}
        assert passed(PATIENT_PASSES + 1, 4, {3}) == ScaleState(given_up=frozenset({3}))

    @pytest.mark.parametrize("needed", [INFEASIBLE, TOO_LITTLE, OVERLOADED], ids=["infeasible", "short", "overloaded"])
    def test_pods_that_turn_out_to_be_needed_stay_until_others_are_used(self, needed: Decision) -> None:
        state = passed(CALM_PASSES, 4, {2, 3})
        assert state.leaving == {2, 3}
        step, state = scale_step(LIMITS, pods(4), 4, {2, 3}, [needed], state)
        assert (step, state.leaving) == (None, frozenset())
        for _ in range(2 * CALM_PASSES):
            step, state = scale_step(LIMITS, pods(4), 4, {2, 3}, [NO_CHANGE], state)
            assert (step, state.leaving) == (None, frozenset())
        _, state = scale_step(LIMITS, pods(4), 4, {3}, [NO_CHANGE], state)
        assert state == ScaleState(1, 1)

    def test_pods_behind_the_last_that_could_not_be_emptied_go(self) -> None:
        """Of 4, executors stay on the first and the third: the fourth hosts none."""
        state = ScaleState(given_up=frozenset({0, 2}))
        for _ in range(CALM_PASSES - 1):
            step, state = scale_step(LIMITS, pods(4), 4, {0, 2}, [NO_CHANGE], state)
            assert (step, state.leaving) == (None, frozenset())
        step, state = scale_step(LIMITS, pods(4), 4, {0, 2}, [NO_CHANGE], state)
        assert step == ScaleStep("storm", "s", 3, "all executors are on the first 3 pods")
        for _ in range(2 * CALM_PASSES):
            assert scale_step(LIMITS, pods(3), 3, {0, 2}, [NO_CHANGE], state) == (None, state)
        step, _ = scale_step(LIMITS, pods(3), 2, {0, 2}, [NO_CHANGE], state)
        assert step is None, "one that somebody else takes away just now is not brought back for that"

    @pytest.mark.parametrize("reason", [HoldReason.EXCLUDED_WINDOW, HoldReason.COOL_DOWN])
    def test_pods_are_not_given_up_while_no_plan_is_to_be_applied(self, reason: HoldReason) -> None:
        leaving = passed(CALM_PASSES, 4, {3})
        state = leaving
        for _ in range(2 * PATIENT_PASSES):
            _, state = scale_step(LIMITS, pods(4), 4, {3}, [Hold(reason, "not now")], state)
        assert state == leaving
        _, state = scale_step(LIMITS, pods(4), 4, {3}, [Hold(reason, "not now"), NO_CHANGE], state)
        assert state.passes == leaving.passes + 1
        step, _ = scale_step(LIMITS, pods(4), 4, {0}, [Hold(reason, "not now")], state)
        assert step is not None, "what hosts nobody may go whenever that is seen"

    @pytest.mark.parametrize("reason", [HoldReason.TOO_LITTLE_CAPACITY, HoldReason.NOT_DUE])
    def test_while_cpu_is_short_the_pod_that_was_added_for_it_stays_though_nobody_uses_it_yet(
        self, reason: HoldReason
    ) -> None:
        short = replace(TOO_LITTLE, reason=reason)
        assert after_passes(2 * CALM_PASSES, 3, {0, 1}, short) is None
        step = after_passes(CALM_PASSES, 4, {0, 1}, short)
        assert step == ScaleStep("storm", "s", 3, "all executors are on 2 pods")

    def test_never_below_the_minimum(self) -> None:
        step = after_passes(CALM_PASSES, 4, (), limits=ScaleLimits(2, 4))
        assert step is not None
        assert step.replicas == 2

    @pytest.mark.parametrize("decision", [INFEASIBLE, OVERLOADED])
    def test_never_because_the_maximum_is_below_what_there_is(self, decision: Decision) -> None:
        assert after_passes(2 * CALM_PASSES, 6, {0, 1, 2, 3, 4, 5}, decision) is None

    def test_disagreement_begins_the_count_anew(self) -> None:
        _, state = scale_step(LIMITS, pods(4), 4, {0, 1}, [NO_CHANGE], ScaleState(2, CALM_PASSES - 1 - 1))
        assert state == ScaleState(2, CALM_PASSES - 1)
        _, state = scale_step(LIMITS, pods(4), 4, {0, 1, 2}, [NO_CHANGE], state)
        assert state == ScaleState(3, 1)

    def test_pass_in_which_all_pods_are_used_forgets_the_count(self) -> None:
        assert scale_step(LIMITS, pods(4), 4, {0, 1, 2, 3}, [NO_CHANGE], ScaleState(2, 5)) == (None, ScaleState())

    def test_pass_that_makes_a_plan_is_not_calm(self) -> None:
        # The plan may lead to the very pods that nobody uses now.
        assert scale_step(LIMITS, pods(4), 4, {0, 1}, [plan()], ScaleState(2, 5)) == (None, ScaleState())

    def test_count_is_forgotten_after_a_step(self) -> None:
        _, state = scale_step(LIMITS, pods(4), 4, {0}, [NO_CHANGE], ScaleState(1, CALM_PASSES - 1))
        assert state == ScaleState()


class TestOrdinalsThatBeginAtFive:
    @staticmethod
    def state_after(passes: int, used: Collection[int]) -> tuple[ScaleStep | None, ScaleState]:
        step, state = None, ScaleState()
        for _ in range(passes):
            step, state = scale_step(LIMITS, pods(3), 3, used, [NO_CHANGE], state, 5)
        return step, state

    def test_unused_pods_at_the_end_go(self) -> None:
        step, _ = self.state_after(CALM_PASSES, {5, 6})
        assert step == ScaleStep("storm", "s", 2, "all executors are on 2 pods")

    def test_unused_pods_behind_the_last_that_could_not_be_emptied_go(self) -> None:
        state = ScaleState(given_up=frozenset({6}))
        for _ in range(CALM_PASSES):
            step, state = scale_step(LIMITS, pods(3), 3, {6}, [NO_CHANGE], state, 5)
        assert step == ScaleStep("storm", "s", 2, "all executors are on the first 2 pods")

    def test_used_pods_at_the_end_are_emptied(self) -> None:
        assert self.state_after(CALM_PASSES, {5, 7}) == (None, ScaleState(2, CALM_PASSES, frozenset({7})))


class TestWhose:
    def test_without_limits_nothing_is_touched(self) -> None:
        assert scale_step(None, pods(2), 2, {0}, [INFEASIBLE], ScaleState()) == (None, ScaleState())

    def test_pods_of_no_stateful_set_are_not_scaled(self) -> None:
        assert scale_step(LIMITS, pods(2, stateful_set=""), 2, {0}, [INFEASIBLE], ScaleState())[0] is None

    def test_named_stateful_set_is_the_one_that_is_scaled(self) -> None:
        both = (*pods(2, stateful_set="a"), *pods(2, stateful_set="b"))
        step, _ = scale_step(replace(LIMITS, stateful_set="b"), both, 2, {0, 1}, [INFEASIBLE], ScaleState())
        assert step is not None
        assert step.stateful_set == "b"

    @pytest.mark.parametrize("other", [pods(2, stateful_set="b"), pods(2, namespace="elsewhere")])
    def test_of_two_that_could_be_meant_none_is_touched(self, other: tuple[SupervisorPod, ...]) -> None:
        assert scale_step(LIMITS, (*pods(2), *other), 2, {0}, [INFEASIBLE], ScaleState())[0] is None


class TestBeyondTheMaximum:
    def test_pods_that_are_in_use_stay_and_it_is_said_why(self) -> None:
        limits = ScaleLimits(1, 3)
        assert after_passes(PATIENT_PASSES, 5, range(5), limits=limits) is None
        words = beyond_maximum(limits, 5, range(5))
        assert words.startswith(
            "spec.supervisors.maximum is 3, and executors are on 5 of 5 pods: none is added, and none"
        )

    @pytest.mark.parametrize(("replicas", "used"), [(3, range(3)), (5, range(3)), (5, ()), (3, range(5))])
    def test_nothing_is_said_where_those_beyond_it_are_not_used(self, replicas: int, used: Collection[int]) -> None:
        assert beyond_maximum(ScaleLimits(1, 3), replicas, used) == ""


def test_nothing_is_wanted_when_all_fits() -> None:
    assert wanted_replicas(LIMITS, 2, {0, 1}, [NO_CHANGE]) == (2, "")

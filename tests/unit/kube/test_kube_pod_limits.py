"""CPU limits of supervisor pods: opened before a move, what executors need between plans, and no needless resizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import same_demand
from resized_pods import BOTH_ON_S1, DEMAND, NEEDED_BY_S1, S1, S2, WORDS, FakePods, Scene, pod, scene
from storm_operator.adapters.kube.errors import Conflict, Forbidden, KubernetesError, NoAnswer, Refused
from storm_operator.core.backoff import FIRST_RETRY_SECONDS
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Supervisor
from storm_operator.kube.pod_cpu import is_worth_a_resize
from storm_operator.kube.pod_limits import SLOW_ANSWER_SECONDS
from storm_operator.kube.pod_need import SUPERVISOR_OWN_MILLICORES, USE_STANDS_SECONDS, needed_millicores
from storm_operator.kube.resize_problem import RETRY_SECONDS, problem_reason


def test_a_pod_that_uses_all_it_has_is_given_more_although_its_executors_seem_to_need_no_more() -> None:
    seen = scene(pod(wanted=600.0))
    assert seen.follow(s1=300.0) == [], "200 for itself, and 400 for what needs 360"
    assert seen.follow(s1=590.0) == [("sup-0", 740)]
    assert seen.follow(s1=735.0) == [("sup-0", 920)]
    for _ in range(9):
        seen.follow(s1=2000.0)
    assert seen.pods.pods["sup-0"].wanted_millicores == 2000.0, "never more than it can have"


def test_what_is_well_used_is_kept_and_the_rest_given_back() -> None:
    seen = scene(pod(wanted=1000.0))
    assert [seen.follow(s1=used) for used in (790.0, 610.0, 700.0)] == [[], [], []]
    assert seen.follow(s1=500.0) == [("sup-0", 630)]
    assert seen.follow(s1=100.0) == [], "630 is near enough to 600"
    assert scene(pod(wanted=1000.0)).follow() == [("sup-0", 600)], "what it uses is not known"


def test_limit_is_not_lowered_below_what_a_pod_was_seen_to_use_because_its_agent_misses_a_scrape() -> None:
    seen = scene(pod(wanted=1000.0))
    assert seen.follow(s1=900.0) == [("sup-0", 1130)]
    assert seen.follow(s1=900.0) == []
    assert seen.follow() == [], "it was seen to use 900 of 1130"
    assert seen.follow(s1=300.0) == [("sup-0", 600)], "it uses less: that is known"


def test_what_a_pod_was_last_seen_to_use_counts_for_some_minutes() -> None:
    seen = scene(pod(wanted=1000.0))
    seen.follow(s1=900.0)
    assert seen.follow(seconds=USE_STANDS_SECONDS - 1.0) == []
    assert seen.follow(seconds=1.0) == [("sup-0", 600)]


def test_problem_of_a_pod_of_the_same_name_in_another_namespace_is_none_of_a_supervisors_here() -> None:
    seen = scene(pod())
    seen.pods.pods["theirs"] = replace(pod(problem="Infeasible: node has 1 CPU"), namespace="green")
    seen.limits.see(("green", "storm"))
    assert list(seen.limits.problems.values()) == ["Infeasible: node has 1 CPU"]
    assert seen.limits.problems_of([S1.host]) == {}


def test_pods_of_one_name_are_left_alone_where_a_supervisor_calls_itself_by_that_alone() -> None:
    """One of them may be another Storm cluster's."""
    seen = scene(pod())
    seen.pods.pods["theirs"] = replace(pod(), namespace="green")
    seen.limits.see(("green", "storm"))
    by_name = replace(S1, host="sup-0")
    seen.limits.follow((by_name,), BOTH_ON_S1, DEMAND, 0.9, {})
    assert (seen.pods.resizes, seen.limits.capacities(["sup-0"])) == ([], {})
    seen.limits.follow((S1,), BOTH_ON_S1, DEMAND, 0.9, {})
    assert seen.pods.resizes == [("sup-0", 600)]


def test_pod_needs_what_its_executors_need_and_something_for_itself() -> None:
    assert needed_millicores(S1, BOTH_ON_S1, DEMAND, 0.9) == pytest.approx(NEEDED_BY_S1)


def test_pod_without_executors_keeps_a_little() -> None:
    assert needed_millicores(S1, Assignment({}), DEMAND, 0.9) == SUPERVISOR_OWN_MILLICORES


def test_one_executor_with_unknown_demand_makes_the_need_unknown() -> None:
    partly = Demand(dict.fromkeys(WORDS.executors[1:], 180.0), {})
    assert needed_millicores(S1, BOTH_ON_S1, partly, 0.9) is None
    assert needed_millicores(S2, BOTH_ON_S1, partly, 0.9) is not None


@pytest.mark.parametrize(
    ("now", "wanted", "worth"),
    [
        (1000.0, 1100.0, False),
        (1000.0, 1101.0, True),
        (1000.0, 900.0, False),
        (1000.0, 899.0, True),
        (None, 10.0, True),
    ],
)
def test_change_of_a_tenth_or_less_is_not_worth_a_resize(now: float | None, wanted: float, worth: bool) -> None:
    assert is_worth_a_resize(now, wanted) is worth


def test_limits_follow_demand_in_steps_of_ten_rounded_up() -> None:
    assert scene(pod(0), pod(1)).follow() == [("sup-0", 600), ("sup-1", 400)]
    assert scene(pod(0)).follow(same_demand((WORDS,), 181.0)) == [("sup-0", 610)]


def test_steady_demand_is_asked_for_once() -> None:
    played = scene(pod(0), pod(1))
    played.follow()
    assert played.follow() == []
    assert played.follow(same_demand((WORDS,), 190.0)) == []


def test_pod_is_wide_open_while_an_executor_on_it_is_not_measured_yet() -> None:
    played = scene(pod(0), pod(1))
    assert played.follow() == [("sup-0", 600), ("sup-1", 400)]
    starting = next(e for e, slot in BOTH_ON_S1.slot_of.items() if slot.supervisor_id == "s2")
    others = {executor: 180.0 for executor in DEMAND.millicores if executor != starting}
    assert played.follow(Demand(others, others)) == [("sup-1", 2000)]
    assert played.follow() == [("sup-1", 400)]


def test_what_is_needed_is_reserved_and_what_a_pod_is_opened_by_is_not() -> None:
    played = scene(pod(0, wanted=600.0))
    played.limits.open_up([S1.host])
    played.follow()
    assert list(zip(played.pods.resizes, played.pods.reserved, strict=True)) == [
        (("sup-0", 2000), False),
        (("sup-0", 600), True),
    ]


def test_what_is_not_reserved_yet_is_though_the_limit_fits() -> None:
    played = scene(replace(pod(0, wanted=600.0), requested_millicores=100.0), pod(1, wanted=400.0))
    assert played.follow() == [("sup-0", 600)]
    assert played.follow() == []


def test_pod_that_is_not_ready_is_not_given_the_reservation_of_the_one_before_it() -> None:
    made_anew = replace(pod(0), ready=False, requested_millicores=100.0)
    played = scene(made_anew)
    assert played.follow() == []
    played.pods.pods["sup-0"] = replace(made_anew, ready=True)
    assert (played.follow(), played.pods.reserved) == ([("sup-0", 600)], [True])


def test_pod_that_is_not_ready_is_given_more_where_it_needs_that_but_no_reservation() -> None:
    played = scene(replace(pod(0, wanted=300.0), ready=False, requested_millicores=100.0))
    assert (played.follow(), played.pods.reserved) == ([("sup-0", 600)], [False])


def test_limits_stay_until_the_first_figures_of_an_operators_life() -> None:
    played = scene(pod(0, wanted=600.0), pod(1, wanted=400.0))
    assert played.follow(Demand({}, {})) == []
    played.follow()
    assert played.follow(Demand({}, {})) == [("sup-0", 2000), ("sup-1", 2000)]


def test_need_beyond_the_capacity_gets_the_capacity() -> None:
    assert scene(pod(0, wanted=300.0, capacity=500.0)).follow() == [("sup-0", 500)]


def test_rounding_up_does_not_go_beyond_the_capacity() -> None:
    assert scene(pod(0, wanted=300.0, capacity=505.0)).follow() == [("sup-0", 505)]


def test_pod_without_a_known_capacity_is_left_alone() -> None:
    played = scene(pod(0, capacity=None))
    assert played.follow() == []
    played.limits.open_up([S1.host])
    assert played.pods.resizes == []


def test_supervisor_that_is_no_pod_is_left_alone() -> None:
    assert scene(pod(7)).follow() == []


def test_before_a_move_the_pods_get_all_they_can_have() -> None:
    played = scene(pod(0, wanted=600.0), pod(1, wanted=400.0), pod(2, wanted=400.0))
    played.limits.open_up([S2.host, S1.host])
    assert played.pods.resizes == [("sup-0", 2000), ("sup-1", 2000)]


class TestRelease:
    """Once nobody wants executors held to their CPU."""

    @staticmethod
    def release(played: Scene, seconds: float = 10.0) -> list[tuple[str, int]]:
        """One pass later; the resizes that were asked for."""
        played.now += seconds
        played.limits.see(("storm",))
        before = len(played.pods.resizes)
        played.limits.release((S1.host, S2.host))
        return played.pods.resizes[before:]

    def test_pods_that_were_held_get_all_they_can_have_and_are_left_alone_from_then_on(self) -> None:
        played = scene(pod(0), pod(1))
        assert played.follow() == [("sup-0", 600), ("sup-1", 400)]
        assert self.release(played) == [("sup-0", 2000), ("sup-1", 2000)]
        assert self.release(played) == []
        played.pods.pods["sup-0"] = pod(0, wanted=300.0)  # by its owner
        assert self.release(played) == []

    def test_pods_that_were_never_held_are_left_alone(self) -> None:
        assert self.release(scene(pod(0, wanted=300.0))) == []

    def test_pods_that_an_earlier_life_of_the_operator_held_get_all_they_can_have(self) -> None:
        killed = scene(pod(0), pod(1), pod(2))
        killed.follow()
        killed.pods.pods["sup-2"] = replace(pod(2, wanted=300.0), is_resized=True)  # of another Storm cluster
        reborn = Scene(killed.pods)
        assert self.release(reborn) == [("sup-0", 2000), ("sup-1", 2000)]
        assert self.release(reborn) == []

    def test_what_was_refused_is_tried_until_it_worked(self) -> None:
        played = scene(pod(0))
        played.follow()
        played.pods.refusal = KubernetesError("no answer")
        assert self.release(played) == [("sup-0", 2000)]
        played.pods.refusal = None
        assert self.release(played, seconds=RETRY_SECONDS) == [("sup-0", 2000)]
        assert self.release(played) == []

    def test_pod_within_a_tenth_of_what_it_can_have_gets_that_too(self) -> None:
        played = scene(replace(pod(0, wanted=1900.0), is_resized=True))
        assert self.release(played) == [("sup-0", 2000)]
        assert self.release(played) == []

    def test_what_was_reserved_is_given_back(self) -> None:
        played = scene(replace(pod(0), requested_millicores=100.0))
        played.pods.own_request = 100.0
        played.follow()
        assert played.pods.pods["sup-0"].requested_millicores == 600.0
        assert self.release(played) == [("sup-0", 2000)]
        assert played.pods.pods["sup-0"].requested_millicores == 100.0
        assert self.release(played) == []

    @pytest.mark.parametrize("unknown", [None, KubernetesError("read StatefulSet storm/sup: no answer")])
    def test_what_was_reserved_stays_while_nobody_knows_what_there_was_before(
        self, unknown: KubernetesError | None
    ) -> None:
        played = scene(replace(pod(0), requested_millicores=100.0))
        played.pods.own_request = unknown
        played.follow()
        assert self.release(played) == [("sup-0", 2000)]
        assert played.pods.pods["sup-0"].requested_millicores == 600.0
        assert played.said == ([str(unknown)] if unknown is not None else [])
        played.pods.own_request = 100.0
        assert self.release(played, seconds=RETRY_SECONDS) == [("sup-0", 2000)]
        assert played.pods.pods["sup-0"].requested_millicores == 100.0

    def test_no_more_is_reserved_than_the_limit(self) -> None:
        played = scene(replace(pod(0, wanted=300.0, capacity=500.0), requested_millicores=300.0, is_resized=True))
        played.pods.pods["sup-0"] = replace(played.pods.pods["sup-0"], is_reserved=True)
        played.pods.own_request = 800.0
        assert self.release(played) == [("sup-0", 500)]
        assert self.release(played) == []

    def test_pod_within_a_tenth_gets_that_too_although_its_node_cannot_reserve_what_was_asked_for_with_it(self) -> None:
        deferred = replace(
            pod(0, problem="Deferred: node is full"),
            limit_millicores=1900.0,
            requested_millicores=1900.0,
            reserved_millicores=600.0,
            is_resized=True,
        )
        played = scene(deferred)
        assert self.release(played) == [("sup-0", 2000)]
        assert played.pods.reserved == [False]

    def test_request_that_somebody_else_set_is_left_alone(self) -> None:
        played = scene(replace(pod(0), requested_millicores=500.0, is_resized=True))
        played.pods.own_request = 100.0
        assert self.release(played) == []

    def test_pod_that_is_gone_is_none_to_release(self) -> None:
        played = scene(pod(0))
        played.follow()
        played.pods.pods = {}
        assert self.release(played) == []


def test_pods_that_are_left_open_while_others_are_held_get_back_what_was_taken_from_them() -> None:
    held = [replace(pod(ordinal, wanted=300.0), is_resized=True) for ordinal in range(2)]
    played = scene(*held, pod(2, wanted=300.0))
    played.limits.held = frozenset({("storm", "sup-0")})
    for _ in range(2):
        played.limits.see(("storm",))
        played.limits.leave_open([S2.host, "sup-2.sup.storm.svc.cluster.local"])
    assert played.pods.resizes == [("sup-1", 2000)], "nobody took anything from sup-2"
    assert played.limits.held == {("storm", "sup-0")}


def test_pod_that_is_open_already_is_not_asked_again() -> None:
    played = scene(pod(0, wanted=2000.0))
    played.limits.open_up([S1.host])
    assert played.pods.resizes == []


def test_capacity_is_known_by_host() -> None:
    played = scene(pod(0, capacity=1500.0), pod(1, capacity=None))
    assert played.limits.capacities([S1.host, S2.host, "10.0.0.1"]) == {S1.host: 1500.0}


class TestRefusal:
    @staticmethod
    def refusing() -> Scene:
        played = scene(pod(0))
        played.pods.refusal = Refused("resize pod storm/sup-0 to 600m CPU: not allowed")
        return played

    def test_is_said_and_remembered_as_the_pods_problem(self) -> None:
        played = self.refusing()
        played.follow()
        assert played.said == ["resize pod storm/sup-0 to 600m CPU: not allowed"]
        assert played.limits.problems == {("storm", "sup-0"): played.said[0]}

    def test_is_told_and_so_is_acceptance(self) -> None:
        played, told = self.refusing(), list[bool]()
        played.limits.asked = told.append
        played.follow()
        played.pods.refusal = None
        played.follow(seconds=RETRY_SECONDS)
        assert told == [False, True]

    def test_does_not_stop_the_other_pods(self) -> None:
        played = Scene(FakePods((pod(0), pod(1))))
        played.pods.refusal = Refused("no")
        assert played.follow() == [("sup-0", 600), ("sup-1", 400)]

    def test_is_not_asked_for_again_at_once(self) -> None:
        played = self.refusing()
        played.follow()
        assert played.follow() == []
        assert played.follow(seconds=RETRY_SECONDS - 11.0) == []

    def test_is_not_asked_for_again_at_once_for_a_pod_of_its_name_that_was_made_anew(self) -> None:
        played = self.refusing()
        played.follow()
        before, played.pods.pods = played.pods.pods, {}
        assert played.follow() == []
        played.pods.pods = before
        assert played.follow() == []
        assert list(played.limits.problems.values()) == [str(played.pods.refusal)]
        assert played.follow(seconds=RETRY_SECONDS) == [("sup-0", 600)]

    def test_stays_a_problem_until_it_is_wanted_no_more(self) -> None:
        played = self.refusing()
        played.follow()
        played.follow()
        assert played.limits.problems == {("storm", "sup-0"): played.said[0]}
        played.follow(same_demand((WORDS,), 810.0))
        assert played.limits.problems == {}

    def test_is_asked_for_again_after_a_while(self) -> None:
        played = self.refusing()
        played.follow()
        assert played.follow(seconds=RETRY_SECONDS) == [("sup-0", 600)]

    def test_that_was_no_answer_at_all_is_asked_for_again_soon_and_ever_more_slowly(self) -> None:
        played = self.refusing()
        played.pods.refusal = KubernetesError("resize pod storm/sup-0 to 600m CPU: too many requests")
        asked = [bool(played.follow(seconds=FIRST_RETRY_SECONDS)) for _ in range(8)]
        assert asked == [True, True, False, True, False, False, False, True]
        assert played.limits.capacities([S1.host]) == {S1.host: 2000.0}

    def test_that_was_no_answer_at_all_is_waited_for_once_a_pass_however_many_pods_there_are(self) -> None:
        supervisors = tuple(Supervisor(f"s{i}", f"sup-{i}.sup.storm.svc.cluster.local", (6700,)) for i in range(100))
        played = scene(*(pod(ordinal) for ordinal in range(100)))
        played.pods.refusal = NoAnswer("resize pod storm/sup-0 to 200m CPU: the Kubernetes API does not answer")
        played.limits.follow(supervisors, Assignment({}), DEMAND, 0.9, {})
        played.limits.open_up([supervisor.host for supervisor in supervisors])
        assert played.pods.resizes == [("sup-0", 200)]
        assert len(played.limits.problems) == 100
        assert played.limits.problems["storm", "sup-99"] == (
            "not resized to 200m CPU, as another was not: resize pod storm/sup-0 to 200m CPU: the Kubernetes API does"
            " not answer"
        )
        assert played.said == [str(played.pods.refusal)]
        played.pods.refusal = None
        played.limits.see(("storm",))
        played.limits.follow(supervisors, Assignment({}), DEMAND, 0.9, {})
        assert played.pods.resizes[1:] == [(f"sup-{ordinal}", 200) for ordinal in range(1, 100)], "sup-0 a little later"

    @pytest.mark.parametrize("error", [Conflict, KubernetesError], ids=["conflict", "too many requests"])
    def test_that_was_answered_at_once_does_not_stop_the_other_pods(self, error: type[KubernetesError]) -> None:
        played = scene(pod(0), pod(1))
        played.pods.refusal = error("resize pod storm/sup-0 to 600m CPU: no")
        assert played.follow() == [("sup-0", 600), ("sup-1", 400)]

    def test_that_took_long_is_waited_for_once_a_pass(self) -> None:
        """A webhook that hangs ends in an answer of the API server's."""
        played = scene(pod(0), pod(1))
        played.pods.refusal = KubernetesError("resize pod storm/sup-0 to 600m CPU: failed calling webhook")
        played.pods.before_refusal = lambda: setattr(played, "now", played.now + SLOW_ANSWER_SECONDS)
        assert played.follow() == [("sup-0", 600)]

    def test_of_one_pod_that_is_never_answered_is_in_nobodys_way_however_seldom_passes_are(self) -> None:
        played = scene(pod(0), pod(1))
        played.pods.refusal, played.pods.refused_pod = NoAnswer("no answer"), "sup-0"
        assert played.follow(seconds=RETRY_SECONDS) == [("sup-0", 600)]
        assert played.follow(seconds=RETRY_SECONDS) == [("sup-1", 400), ("sup-0", 600)]

    def test_of_one_value_does_not_stop_another(self) -> None:
        played = self.refusing()
        played.follow()
        assert played.follow(same_demand((WORDS,), 360.0)) == [("sup-0", 1000)]


def test_resize_that_the_kubelet_has_not_done_is_a_problem_until_it_has() -> None:
    played = scene(pod(0, problem="Infeasible: node has 1 CPU"))
    assert played.limits.problems == {("storm", "sup-0"): "Infeasible: node has 1 CPU"}
    played.pods.pods = {"sup-0": pod(0)}
    played.limits.see(("storm",))
    assert played.limits.problems == {}


class TestWhatCannotBeHad:
    """A pod has 600 millicores; its spec asks for 2000, and the kubelet does not give them."""

    @staticmethod
    def short(problem: str = "Infeasible: node has 1 CPU", limit: float = 600.0) -> Scene:
        return scene(replace(pod(0, problem=problem), limit_millicores=limit))

    @pytest.mark.parametrize("problem", ["Infeasible: too much", "Deferred: node is full", "Error: no cgroup"])
    def test_is_not_planned_with(self, problem: str) -> None:
        assert self.short(problem).limits.capacities([S1.host]) == {S1.host: 600.0}

    def test_is_not_planned_with_for_a_while_after_the_request_was_lowered(self) -> None:
        played = self.short()
        assert played.follow(same_demand((WORDS,), 90.0)) == [("sup-0", 400)]
        played.pods.pods["sup-0"] = pod(0, wanted=400.0)
        played.limits.see(("storm",))
        assert played.limits.capacities([S1.host]) == {S1.host: 600.0}
        played.now += RETRY_SECONDS
        assert played.limits.capacities([S1.host]) == {S1.host: 2000.0}

    def test_ceiling_rises_with_what_the_pod_got(self) -> None:
        played = self.short()
        played.pods.pods["sup-0"] = pod(0, wanted=900.0)
        played.limits.see(("storm",))
        assert played.limits.capacities([S1.host]) == {S1.host: 900.0}

    def test_pod_that_has_more_than_it_asks_for_keeps_its_capacity(self) -> None:
        lowered = replace(pod(0, wanted=500.0, problem="Deferred: busy"), limit_millicores=800.0)
        assert scene(lowered).limits.capacities([S1.host]) == {S1.host: 2000.0}

    def test_pod_without_any_limit_keeps_its_capacity(self) -> None:
        unlimited = replace(pod(0, problem="Infeasible: x"), limit_millicores=None)
        played = scene(unlimited)
        assert played.limits.capacities([S1.host]) == {S1.host: 2000.0}
        assert played.follow() == [("sup-0", 600)]

    def test_pod_without_any_limit_keeps_its_capacity_though_one_is_refused(self) -> None:
        played = scene(pod(0, wanted=None))
        played.pods.refusal = Refused("resize pod storm/sup-0 to 600m CPU: no")
        assert played.follow() == [("sup-0", 600)]
        assert played.limits.capacities([S1.host]) == {S1.host: 2000.0}

    def test_pod_that_may_not_have_less_keeps_its_capacity(self) -> None:
        played = scene(pod(0, wanted=1000.0))
        played.pods.refusal = Refused("resize pod storm/sup-0 to 600m CPU: no")
        assert played.follow() == [("sup-0", 600)]
        assert played.limits.capacities([S1.host]) == {S1.host: 2000.0}

    @pytest.mark.parametrize(("error", "capped"), [(Refused, True), (Forbidden, True), (KubernetesError, False)])
    def test_what_the_api_server_refuses_is_not_planned_with(self, error: type[KubernetesError], capped: bool) -> None:
        played = scene(pod(0, wanted=300.0))
        played.pods.refusal = error("resize pod storm/sup-0 to 600m CPU: no")
        played.follow()
        assert played.limits.capacities([S1.host]) == {S1.host: 300.0 if capped else 2000.0}

    def test_before_a_move_no_more_is_asked_for_than_there_was(self) -> None:
        played = self.short()
        played.limits.open_up([S1.host])
        assert played.pods.resizes == [("sup-0", 600)]

    def test_infeasible_one_is_asked_for_again_after_a_while_and_differently(self) -> None:
        played, demand = self.short(), same_demand((WORDS,), 810.0)
        assert played.follow(demand) == []
        assert played.follow(demand, seconds=RETRY_SECONDS) == [("sup-0", 1990)]
        assert played.follow(demand) == []
        assert played.follow(demand, seconds=RETRY_SECONDS) == [("sup-0", 2000)]

    @pytest.mark.parametrize("problem", ["Deferred: node is full", "Error: no cgroup"])
    def test_kubelet_that_goes_on_trying_is_not_asked_again(self, problem: str) -> None:
        played, demand = self.short(problem), same_demand((WORDS,), 810.0)
        assert [played.follow(demand, seconds=RETRY_SECONDS) for _ in range(3)] == [[], [], []]

    def test_less_than_what_was_infeasible_is_asked_for_at_once(self) -> None:
        assert self.short().follow(same_demand((WORDS,), 360.0)) == [("sup-0", 1000)]

    def test_more_than_what_was_infeasible_is_not(self) -> None:
        played = scene(replace(pod(0, wanted=1000.0, problem="Infeasible: x"), limit_millicores=600.0))
        demand = same_demand((WORDS,), 540.0)
        assert played.follow(demand) == []
        assert played.follow(demand, seconds=RETRY_SECONDS) == [("sup-0", 1400)]


def test_pods_of_other_namespaces_are_not_seen() -> None:
    played = scene(pod(0))
    played.limits.see(("elsewhere",))
    assert played.limits.present == ()


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        ("Deferred: node is full", "Deferred"),
        ("Infeasible: too much", "Infeasible"),
        ("Error: no cgroup", "Error"),
        ("storm-operator.dev/cpu-capacity-millicores is 'x'; give a whole number", "Invalid"),
        ("resize pod a/b to 100m CPU: quota exceeded", "Refused"),
    ],
)
def test_a_problem_has_one_word_for_metrics(problem: str, reason: str) -> None:
    assert problem_reason(problem) == reason

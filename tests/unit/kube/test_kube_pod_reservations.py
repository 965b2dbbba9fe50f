"""Supervisor pods' CPU that their node, or their namespace's quota, does not reserve."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from builders import same_demand
from resized_pods import S1, WORDS, FullNode, Scene, pod, scene
from storm_operator.core.cpu_demand import Demand
from storm_operator.kube.resize_problem import RETRY_SECONDS


class TestReservationThatCannotBeHad:
    """A pod was born with a limit of 1000 and a request of 100; no more than 350 can be reserved for it."""

    LOW, HIGH = same_demand((WORDS,), 45.0), same_demand((WORDS,), 270.0)
    """300 and 800 millicores for the pod."""

    @pytest.fixture(params=["full node", "quota"])
    def played(self, request: pytest.FixtureRequest) -> Scene:
        """Held at 300 when the need rises to 800."""
        node = FullNode(350.0) if request.param == "full node" else FullNode(9000.0, quota=350.0)
        played = Scene(node)
        played.follow(self.LOW)
        assert self.in_force(played) == (300.0, 300.0)
        played.follow(self.HIGH)
        return played

    @staticmethod
    def in_force(played: Scene) -> tuple[float, float]:
        """Limit and request that the kubelet has granted."""
        played.limits.see(("storm",))
        (seen,) = played.limits.present
        return seen.limit_millicores or 0.0, seen.reserved_millicores or 0.0

    def test_does_not_withhold_the_limit_that_executors_need(self, played: Scene) -> None:
        assert self.in_force(played) == (300.0, 300.0)
        played.follow(self.HIGH)
        assert self.in_force(played) == (800.0, 300.0)

    def test_does_not_withhold_the_limit_while_an_executor_starts(self, played: Scene) -> None:
        played.follow(Demand({}, {}))
        assert self.in_force(played) == (1000.0, 300.0)

    def test_does_not_withhold_the_limit_before_a_move(self, played: Scene) -> None:
        played.limits.see(("storm",))
        played.limits.open_up([S1.host])
        assert self.in_force(played) == (1000.0, 300.0)

    def test_does_not_withhold_a_lower_limit(self) -> None:
        played = Scene(FullNode(350.0))
        for _ in range(2):
            played.follow(self.HIGH)
        assert self.in_force(played) == (800.0, 100.0)

    def test_is_not_asked_for_in_each_pass(self, played: Scene) -> None:
        played.follow(self.HIGH)
        assert [played.follow(self.HIGH) for _ in range(9)] == [[]] * 9

    def test_stays_a_problem_and_is_not_planned_with(self, played: Scene) -> None:
        for number, seconds in enumerate((10.0, 10.0, RETRY_SECONDS, 10.0, 10.0, RETRY_SECONDS, 10.0)):
            played.follow(self.HIGH if number < 5 else same_demand((WORDS,), 315.0), seconds)
            played.limits.see(("storm",))
            assert played.limits.capacities([S1.host]) == {S1.host: 300.0}
            assert list(played.limits.problems) == [("storm", "sup-0")]

    def test_is_asked_for_again_after_a_while(self, played: Scene) -> None:
        played.follow(self.HIGH)
        node = cast("FullNode", played.pods)
        node.room = node.quota = 2000.0
        played.follow(self.HIGH, seconds=RETRY_SECONDS)
        assert self.in_force(played) == (800.0, 800.0)
        assert played.limits.problems == {}
        assert played.limits.capacities([S1.host]) == {S1.host: 800.0}

    def test_does_not_withhold_what_a_pod_gets_back_once_nobody_wants_it_held(self, played: Scene) -> None:
        played.limits.see(("storm",))
        (seen,) = played.limits.present
        played.pods.pods = {seen.name: replace(seen, is_reserved=True)}
        played.pods.own_request = 100.0
        played.limits.see(("storm",))
        played.limits.release([S1.host])
        assert self.in_force(played) == (1000.0, 100.0)
        assert played.limits.problems == {}

    def test_does_not_withhold_the_limit_of_a_pod_that_is_not_ready(self, played: Scene) -> None:
        cast("FullNode", played.pods).is_ready = False
        played.follow(self.HIGH)
        assert self.in_force(played) == (800.0, 300.0)

    def test_does_not_withhold_what_a_pod_gets_back_although_it_was_made_to_request_more(self, played: Scene) -> None:
        """And is given the request as well, once there is room for it."""
        node = cast("FullNode", played.pods)
        played.limits.see(("storm",))
        (seen,) = played.limits.present
        played.pods.pods = {seen.name: replace(seen, is_reserved=True)}
        played.pods.own_request = 600.0
        for _ in range(3):
            played.now += 10.0
            played.limits.see(("storm",))
            played.limits.release([S1.host])
        assert self.in_force(played) == (1000.0, 300.0)
        assert played.limits.capacities([S1.host]) == {S1.host: 1000.0}
        node.room = node.quota = 9000.0
        played.now += RETRY_SECONDS
        played.limits.see(("storm",))
        played.limits.release([S1.host])
        assert self.in_force(played) == (1000.0, 600.0)
        assert played.limits.problems == {}

    def test_is_planned_without_what_the_pod_had_in_another_hour(self, played: Scene) -> None:
        node = cast("FullNode", played.pods)
        node.room = node.quota = 2000.0
        for demand in (self.HIGH, Demand({}, {}), self.LOW, self.LOW):
            played.follow(demand, seconds=RETRY_SECONDS)
        assert self.in_force(played) == (300.0, 300.0)
        node.room = node.quota = 350.0
        played.now += 24 * RETRY_SECONDS
        for _ in range(4):
            played.follow(self.HIGH)
        assert self.in_force(played) == (800.0, 300.0)
        assert played.limits.capacities([S1.host]) == {S1.host: 300.0}

    def test_is_no_problem_for_ever_where_hardly_more_is_needed_than_is_kept_free(self, played: Scene) -> None:
        node = cast("FullNode", played.pods)
        node.room, node.quota = min(node.room, 305.0), min(node.quota, 305.0)
        played.follow(self.HIGH)
        for _ in range(3):
            played.follow(same_demand((WORDS,), 54.0))
        assert self.in_force(played) == (320.0, 300.0), "within a tenth of what is reserved"
        assert played.limits.problems == {}

    def test_does_not_stay_pending_once_hardly_more_is_needed_than_is_kept_free(self) -> None:
        played = Scene(FullNode(310.0, cores=310.0))
        played.follow(self.LOW)
        played.follow(same_demand((WORDS,), 67.5))
        for _ in range(3):
            played.follow(same_demand((WORDS,), 56.0))
        assert self.in_force(played) == (330.0, 300.0), "of 350, which the node can never keep free, nothing is left"
        assert played.limits.problems == {}

    def test_is_nothing_that_matters_once_less_is_needed(self, played: Scene) -> None:
        played.follow(self.HIGH)
        played.follow(self.LOW)
        assert self.in_force(played) == (300.0, 300.0)
        assert played.limits.problems == {}


class TestLimitBeyondWhatItsNodeHas:
    """A pod with a limit of 8000, and a request of 100, was given to a node of 4 cores; it needs 4200."""

    NEEDS = same_demand((WORDS,), 1800.0)

    @pytest.fixture
    def played(self) -> Scene:
        played = Scene(FullNode(4000.0, limit=8000.0, cores=4000.0))
        played.follow(self.NEEDS)
        return played

    def test_is_not_planned_with(self, played: Scene) -> None:
        for seconds in (10.0, 10.0, 10.0, RETRY_SECONDS, 10.0, 10.0, RETRY_SECONDS):
            played.now += seconds
            played.limits.see(("storm",))
            assert played.limits.capacities([S1.host]) == {S1.host: 4000.0}
            played.follow(self.NEEDS, seconds=0.0)

    def test_is_not_planned_with_where_the_limit_was_to_rise_further(self) -> None:
        infeasible = "Infeasible: Node didn't have enough capacity: cpu, requested: 8000, capacity: 4000"
        asking = replace(pod(0, wanted=8000.0, capacity=8000.0, problem=infeasible), limit_millicores=5000.0)
        assert scene(asking).limits.capacities([S1.host]) == {S1.host: 4000.0}

    def test_is_lowered_at_once_and_its_reservation_asked_for_again_after_a_while_and_differently(
        self, played: Scene
    ) -> None:
        node = cast("FullNode", played.pods)
        assert [played.follow(self.NEEDS) for _ in range(4)] == [[("sup-0", 4200)], [], [], []]
        assert played.follow(self.NEEDS, seconds=RETRY_SECONDS) == [("sup-0", 4200)]
        assert node.requests == [4200.0, 100.0, 4200.0]
        assert played.follow(self.NEEDS) == []
        assert played.follow(self.NEEDS, seconds=RETRY_SECONDS) == [("sup-0", 4190)]
        assert node.requests[3:] == [4190.0]

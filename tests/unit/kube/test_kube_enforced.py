"""Whether executors are held to their CPU: by what pods and agents do, and unknown where that is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storm_operator.core.agent_enforcement import AgentEnforcement, agent_enforcement
from storm_operator.core.metrics_window import Sample, SeriesKey, window_of_samples
from storm_operator.core.settings import Enforcement
from storm_operator.kube.enforced import EnforcedPlace, LimitsInForce, verdict

HOLDS = AgentEnforcement("cgroup-v2")
LOOKS_ON = AgentEnforcement("observe-only", "told not to (--no-enforce)")
GOOD = EnforcedPlace("s1", "sup-0", True, "", HOLDS)
OTHER = replace(GOOD, host="s2", pod="sup-1")
LIMITED = LimitsInForce(5, 5)
POD, EXECUTOR = Enforcement.POD, Enforcement.EXECUTOR


@pytest.mark.parametrize(
    ("enforcement", "second", "status", "reason", "words"),
    [
        (POD, OTHER, True, "Pod", "follow demand"),
        (EXECUTOR, OTHER, True, "Executor", "agents hold each executor"),
        (EXECUTOR, replace(OTHER, agent=LOOKS_ON), True, "PodOnly", "agent of s2: told not to (--no-enforce)"),
        (POD, replace(OTHER, agent=LOOKS_ON), True, "Pod", "follow demand"),
        (EXECUTOR, replace(OTHER, agent=None), None, "AgentsUnknown", "is not known: s2"),
        (POD, replace(OTHER, agent=None), True, "Pod", "follow demand"),
        (POD, replace(OTHER, has_capacity=False), False, "NoCapacity", "on sup-1"),
        (EXECUTOR, replace(OTHER, has_capacity=False), True, "ExecutorOnly", "by agents alone"),
        (EXECUTOR, replace(OTHER, has_capacity=False, agent=LOOKS_ON), False, "NoCapacity", "on sup-1"),
        (EXECUTOR, replace(OTHER, has_capacity=False, agent=None), False, "NoCapacity", "on sup-1"),
        (POD, replace(OTHER, is_left_open=True), False, "Shared", "sup-1 host executors, too, of topologies"),
        (EXECUTOR, replace(OTHER, is_left_open=True), True, "ExecutorOnly", "by agents alone: sup-1 host executors"),
        (POD, replace(OTHER, pod="", has_capacity=False), False, "NoPod", "for s2"),
        (EXECUTOR, replace(OTHER, problem="Infeasible: 1 CPU"), False, "ResizeRefused", "sup-1: Infeasible: 1 CPU"),
        (POD, replace(OTHER, problem="resize pod a/sup-1: quota"), False, "ResizeRefused", "quota"),
    ],
)
def test_verdict(enforcement: Enforcement, second: EnforcedPlace, status: bool | None, reason: str, words: str) -> None:
    judged = verdict(enforcement, (GOOD, second), LIMITED)
    assert judged[:2] == (status, reason)
    assert words in judged[2]


def test_without_limits_agents_hold_nobody() -> None:
    bare = replace(GOOD, has_capacity=False)
    assert verdict(EXECUTOR, (GOOD,), LimitsInForce(0, 5))[:2] == (False, "NoLimits")
    assert verdict(EXECUTOR, (bare,), LimitsInForce(0, 5))[:2] == (False, "NoCapacity")
    assert verdict(POD, (GOOD,), LimitsInForce(0, 5))[:2] == (True, "Pod")


def test_nothing_is_known_while_it_is_placed_nowhere() -> None:
    assert verdict(POD, (), LIMITED)[:2] == (None, "Unknown")


def test_words_stay_while_the_nodes_use_changes() -> None:
    said = {
        verdict(POD, (replace(GOOD, problem=f"Deferred: Node didn't have enough cpu, used: {used}"),), LIMITED)
        for used in (7900, 8100)
    }
    assert len(said) == 1


def test_many_supervisors_are_counted_not_listed() -> None:
    silent = tuple(replace(GOOD, host=f"s{at}", agent=None) for at in range(9))
    assert verdict(EXECUTOR, silent, LIMITED)[2].endswith("s0, s1, s2 and 6 more")


def test_agents_are_taken_at_their_last_word() -> None:
    def key(mode: str, reason: str) -> SeriesKey:
        return SeriesKey.of("storm_agent_enforcement", {"supervisor": "s1", "mode": mode, "reason": reason})

    early, late = [Sample(1.0, 10.0)], [Sample(1.0, 20.0)]
    window = window_of_samples(
        {key("observe-only", "no worker has been seen yet"): early, key("cgroup-v2", ""): late}, 25.0, 25.0
    )
    assert agent_enforcement(window) == {"s1": HOLDS}
    assert agent_enforcement(window_of_samples({}, 25.0, 25.0)) == {}
    assert not LOOKS_ON.enforces

"""What standalone's terminal shows of a plan: each state once, the reason with the first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from loop_scene import scene, with_mode
from storm_operator.adapters.errors import ZooKeeperUnreachable
from storm_operator.adapters.profile_file import ProfileFile
from storm_operator.core.decision import Hold, HoldReason, Plan
from storm_operator.core.settings import Mode
from storm_operator.loop_ports import PassReport
from storm_operator.standalone import last_words
from storm_operator.terminal import KEPT_PLANS, TerminalListener


def test_each_state_of_a_plan_is_said_once_and_its_reason_first() -> None:
    played, said = scene(), list[str]()
    played.loop.listener = TerminalListener(said.append)
    plan = played.run()
    assert isinstance(plan, Plan)
    played.observer.latency_ms = 2.0
    for _ in range(4):
        played.run()
    first, second, *others = [sentence for sentence in said if sentence.startswith(f"plan {plan.id}: ")]
    assert first == f"plan {plan.id}: Applying: {plan.reason}"
    assert second == f"plan {plan.id}: Settling"
    (last,) = others
    assert last.startswith(f"plan {plan.id}: Verified; ")
    assert len([sentence for sentence in said if plan.reason in sentence]) == 1


def test_a_plan_that_waits_is_said_once_and_again_when_it_is_approved() -> None:
    played, said = scene(), list[str]()
    played.loop.listener = TerminalListener(said.append)
    plan = played.run(with_mode(Mode.RECOMMEND))
    assert isinstance(plan, Plan)
    played.run(with_mode(Mode.RECOMMEND))
    (proposed,) = said
    assert proposed.startswith(f"plan {plan.id}: Proposed: {plan.reason}; ")
    assert played.loop.desk.approve(plan.id, "ann")
    assert said[1:] == [f"plan {plan.id}: Proposed; approved by ann; it begins with the next pass"]


def test_at_the_end_plans_that_wait_are_told_to_come_again() -> None:
    played = scene()
    assert last_words(played.loop, begun=True) == "ended; topologies are left running under the plans in force"
    plan = played.run(with_mode(Mode.RECOMMEND))
    assert isinstance(plan, Plan)
    told = last_words(played.loop, begun=True)
    assert told.endswith(f"; what waited for approval ({plan.id}) is proposed anew by the next start")


def test_how_to_approve_is_said_with_the_first_plan_that_waits() -> None:
    played, said = scene(), list[str]()
    played.loop.listener = TerminalListener(said.append, "nobody can")
    plan = played.run(with_mode(Mode.RECOMMEND))
    assert isinstance(plan, Plan)
    played.loop.desk.withdraw(plan.id, "for a test")
    played.run(with_mode(Mode.RECOMMEND))
    assert said[1] == "nobody can"
    assert said.count("nobody can") == 1


def test_only_so_many_plans_are_remembered() -> None:
    played, said = scene(), list[str]()
    terminal = TerminalListener(said.append)
    played.run()
    record = played.audience.records[0]
    for number in range(2 * KEPT_PLANS):
        terminal.last_words[f"p-{number}"] = ""
    terminal.on_record(record)
    assert len(terminal.last_words) == KEPT_PLANS
    terminal.on_record(record)
    assert len(said) == 1


def test_each_outage_is_said_and_that_it_is_over() -> None:
    played, said = scene(), list[str]()
    played.loop.listener = TerminalListener(said.append)
    for _ in range(2):
        played.run(with_mode(Mode.OBSERVE))
        played.observer.error = ZooKeeperUnreachable("ZooKeeper does not answer")
        played.run(with_mode(Mode.OBSERVE))
        played.observer.error = None
    played.run(with_mode(Mode.OBSERVE))
    watched, out = "hold, ObserveOnly: mode is Observe: measured, not planned", "hold, ClusterUnreachable: "
    assert said == [watched, f"{out}ZooKeeper does not answer", watched, f"{out}ZooKeeper does not answer", watched]


def test_a_hold_is_not_said_again_for_topologies_that_join_and_is_for_a_group_that_comes_back_to_it() -> None:
    said = list[str]()
    terminal = TerminalListener(said.append)
    unmeasured = Hold(HoldReason.WARMING_UP, "no control period has been measured")
    nothing_better = Hold(HoldReason.NO_CHANGE, "adaptive proposes the assignment in force")

    def run(*decisions: tuple[tuple[str, ...], Hold]) -> None:
        terminal.on_pass(PassReport(0.0, None, None, decisions))

    run((("a-1-1",), unmeasured))
    run((("a-1-1", "b-2-2"), unmeasured), (("c-3-3",), unmeasured))
    assert said == ["hold, WarmingUp: no control period has been measured"]
    run((("a-1-1", "b-2-2"), nothing_better), (("c-3-3",), unmeasured))
    assert said[1:] == ["hold, NoChange: adaptive proposes the assignment in force"]
    run((("a-1-1", "b-2-2"), unmeasured), (("c-3-3",), unmeasured))
    assert said[2:] == ["hold, WarmingUp: no control period has been measured"]
    run((("a-1-1", "b-2-2"), nothing_better), (("c-3-3",), nothing_better))
    assert said[3:] == ["hold, NoChange: adaptive proposes the assignment in force"]


def test_a_hold_with_other_figures_is_not_said_again_for_topologies_that_join_and_is_for_strangers() -> None:
    said = list[str]()
    terminal = TerminalListener(said.append)

    def holds(seen: int, *groups: tuple[str, ...]) -> None:
        hold = Hold(HoldReason.WARMING_UP, f"load was seen for {seen} of 9 periods")
        terminal.on_pass(PassReport(0.0, None, None, tuple((group, hold) for group in groups)))

    holds(1, ("a-1-1",))
    holds(2, ("a-1-1",))
    holds(3, ("a-1-1", "b-2-2"))
    assert said == ["hold, WarmingUp: load was seen for 1 of 9 periods"]
    holds(4, ("a-1-1", "b-2-2"), ("c-3-3",))
    assert said[1:] == ["hold, WarmingUp: load was seen for 4 of 9 periods"]


def test_another_peer_in_the_way_is_said_too() -> None:
    played, said = scene(), list[str]()
    terminal = TerminalListener(said.append)
    played.loop.listener = terminal
    for words in ("Nimbus does not answer", "Nimbus does not answer", "ZooKeeper does not answer"):
        played.loop.tell_out_of_reach(ZooKeeperUnreachable(words))
    assert said == [f"hold, ClusterUnreachable: {words} does not answer" for words in ("Nimbus", "ZooKeeper")]


def test_a_pass_that_forecasts_nothing_says_nothing_of_a_profile(tmp_path: Path) -> None:
    played, said = scene(), list[str]()
    played.loop.listener = TerminalListener(said.append)
    played.loop.profiles = ProfileFile(tmp_path, "blue")
    watched = with_mode(Mode.OBSERVE)
    for specs in (watched, {}, watched):
        played.run(specs)
    (told,) = [sentence for sentence in said if "forecast" in sentence or "profile" in sentence]
    assert told.startswith("words: forecast by ")
    assert "cannot be read: [Errno 21] Is a directory" in told


def test_what_was_said_of_an_ended_topology_is_forgotten_and_not_where_nobody_could_look(tmp_path: Path) -> None:
    """Each that is submitted anew has another id."""
    played, terminal = scene(), TerminalListener(lambda _: None)
    played.loop.listener = terminal
    played.loop.profiles = ProfileFile(tmp_path, "blue")
    played.run(with_mode(Mode.OBSERVE))
    played.loop.tell_out_of_reach(ZooKeeperUnreachable("ZooKeeper does not answer"))
    assert terminal.last_forecasters.keys() == {"words"}
    seen = played.observer.observe({}, (), 1100.0, 10.0, 0.0)
    terminal.on_pass(PassReport(1100.0, replace(seen, topologies=()), None, ()))
    assert not terminal.last_forecasters

"""Settings that are tried, who goes on, how history is replayed, and what comes out against the present settings."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from storm_operator.core.settings import SchedulingSettings
from storm_operator.settings_overrides import InvalidOverride
from storm_operator.simulator.model import Grouping
from storm_pipeline.cli import app
from storm_pipeline.jobs.tune import ReplaysDone, changed, ladder_of, tell_assumptions, verdict
from storm_pipeline.tuning import candidates as tried
from storm_pipeline.tuning.candidates import OF_POLICY, candidates, settings_of
from storm_pipeline.tuning.halving import PRESENT, Ladder, Standing, climb, is_surely_better, standings
from storm_pipeline.tuning.recording import (
    InvalidRecording,
    RecordedComponent,
    RecordedEdge,
    RecordedMachine,
    RecordedTopology,
    Recording,
)
from storm_pipeline.tuning.replay import (
    Outcome,
    Prices,
    Try,
    insist_on_playable,
    least_seconds,
    replay,
    warm_up_seconds,
)

WORDS = RecordedTopology(
    "words-1",
    "words",
    2,
    1,
    (
        RecordedComponent("spout", "spout", 1, False, 0.1, ((0.0, 50.0), (300.0, 150.0), (600.0, 50.0))),
        RecordedComponent("count", "bolt", 2, True, 1.0),
    ),
    (RecordedEdge("spout", "default", "count", "fields", 2.0),),
)
RECORDING = Recording(
    "blue", 600.0, 10.0, 1.0, (RecordedMachine("s1", 2, 2000.0), RecordedMachine("s2", 2, None)), (WORDS,), 600.0
)
LADDER = Ladder(1000.0, rungs=3, keep=3, finalists=2, replays=4)


def test_candidates_are_valid_all_different_and_the_present_ones_come_first() -> None:
    chosen = candidates(100, 1, ("periodSeconds=5",))
    assert chosen[PRESENT] == ("periodSeconds=5",)
    assert len(chosen) == len(set(chosen)) == 100
    assert {settings_of(one).scheduling.policy for one in chosen} == set(OF_POLICY)
    assert all(settings_of(one).scheduling.period_seconds == 5.0 for one in chosen)
    assert candidates(100, 1) == candidates(100, 1) != candidates(100, 2)
    numbers = ("periodSeconds=0", "thetaMillicores=0.5", "headroomFraction=2", "ceilingMillicores=50")
    for wrong in ("nonsense=1", "policy=best", "parameters.beta=1", *numbers):
        with pytest.raises(InvalidOverride):
            settings_of((wrong,))


def test_the_numbers_of_a_policy_are_not_handed_to_another() -> None:
    given = ("policy=aniello-online", "parameters.capacity_fraction=0.8", "thetaMillicores=80")
    chosen = candidates(100, 1, given)
    assert chosen[PRESENT] == given
    for one in chosen:
        settings = settings_of(one).scheduling
        assert ("parameters.capacity_fraction=0.8" in one[:3]) == (settings.policy == "aniello-online")
        assert one[0] == given[0]
        assert "thetaMillicores=80" in one


def test_spaces_in_what_was_given_do_not_get_into_a_table_that_has_them_between_settings() -> None:
    """They would come out of it as other settings, and be published as advice."""
    for one in candidates(20, 1, ("coolDownSeconds = 45", " policy =aniello-online", "parameters.alpha= 0.5")):
        assert tuple(" ".join(one).split()) == one
        settings_of(one)
    assert candidates(20, 1, ("coolDownSeconds = 45",)) == candidates(20, 1, ("coolDownSeconds=45",))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("coolDownSeconds", "'coolDownSeconds' has no key or no value: KEY=VALUE is needed, e.g. coolDownSeconds=0"),
        (" = 3", "' = 3' has no key or no value: KEY=VALUE is needed, e.g. coolDownSeconds=0"),
        ("thetaMillicores=1=2", "thetaMillicores is '1=2': expected a number"),
        ("forecast=Line=", "forecast is 'Line=': expected one of Line, DampedTrend"),
        ("theta=200", "'theta' is no setting: expected parameters.<name> or one of "),
    ],
)
def test_what_was_given_wrongly_is_said_in_one_message(given: str, said: str) -> None:
    told = CliRunner().invoke(app, ["tune", "lake", "--set", given], env={"COLUMNS": "2000"})
    assert (told.exit_code, told.stdout) == (2, "")
    (line,) = [line for line in told.stderr.splitlines() if "--set" in line]
    assert f"Invalid value for '--set': {said}" in line


def test_a_setting_that_no_executor_could_play_is_named_before_any_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tried, "OF_POLICY", {**OF_POLICY, "liu": {"parameters.alpha": ("0.5",)}})
    with pytest.raises(InvalidOverride, match="alpha"):
        candidates(10, 1)


def outcome(tried: Try, score: float) -> Outcome:
    return Outcome(tried, score, 0.0, score, 0.0, 0.0, 0)


def play(tries: Sequence[Try]) -> list[Outcome]:
    """Candidate 5 is the best, the present settings are the worst; every seed moves all alike."""
    return [outcome(one, 100.0 + abs(one.candidate - 5) + 20.0 * (one.candidate == PRESENT)) for one in tries]


def test_the_best_climbs_to_the_top_and_is_compared_with_the_present() -> None:
    played = climb([(f"k={number}",) for number in range(27)], LADDER, 0, play)
    alive = [sorted({o.tried.candidate for o in played if o.tried.rung == rung}) for rung in range(4)]
    assert [len(rung) for rung in alive] == [27, 10, 5, 3]
    assert all(PRESENT in rung and 5 in rung for rung in alive)
    assert [LADDER.length(rung) for rung in range(3)] == [120.0, pytest.approx(1000.0 / 3.0), 1000.0]
    best, *others = standings(played, LADDER)
    assert best.candidate == 5
    assert best.low_percent <= best.change_percent <= best.high_percent
    assert best.change_percent == pytest.approx(-20.0)
    assert others[0].candidate == PRESENT
    assert (others[0].change_percent, others[0].high_percent) == (0.0, 0.0)
    assert [(len(best.outcomes), len(one.outcomes)) for one in others] == [(4, 4), (4, LADDER.choosing)]


def test_what_decides_is_played_on_stretches_and_seeds_that_chose_nobody() -> None:
    played = climb([(f"k={number}",) for number in range(27)], LADDER, 0, play)
    deciding = [o.tried for o in played if o.tried.rung == LADDER.final + 1]
    assert {one.candidate for one in deciding} == {PRESENT, 5}
    assert len(deciding) == 2 * LADDER.replays
    assert not {one.seed for one in deciding} & {o.tried.seed for o in played if o.tried.rung <= LADDER.final}
    mine, theirs = ([(t.seed, t.start_seconds) for t in deciding if t.candidate == who] for who in (5, PRESENT))
    assert mine == theirs


def test_a_finalist_that_was_not_played_again_is_not_recommended_however_lucky_it_was() -> None:
    def lucky_once(tries: Sequence[Try]) -> list[Outcome]:
        chosen = {one.candidate: 10.0 if one.candidate in (3, 4) else 100.0 for one in tries}
        decides = tries[0].rung == LADDER.final + 1
        return [outcome(one, 110.0 if decides and one.candidate else chosen[one.candidate]) for one in tries]

    found = standings(climb([(f"k={number}",) for number in range(27)], LADDER, 0, lucky_once), LADDER)
    assert [one.candidate for one in found] == [PRESENT, 3, 4]
    assert found[2].high_percent < 0.0
    assert not is_surely_better(found[0].high_percent)


def recommended(better_by: float, run: int) -> Standing | None:
    """What is recommended out of 200 settings, one of them better than all others, with 5% of noise in each replay."""
    random = np.random.default_rng(run)

    def play_noisily(tries: Sequence[Try]) -> list[Outcome]:
        means = [100.0 * (1.0 - better_by * (one.candidate == 7)) for one in tries]
        return [outcome(t, mean * random.normal(1.0, 0.05)) for t, mean in zip(tries, means, strict=True)]

    ladder = Ladder(3600.0)
    best = standings(climb([(f"k={n}",) for n in range(200)], ladder, run, play_noisily), ladder)[0]
    return best if is_surely_better(best.high_percent) else None


def test_of_settings_that_are_all_alike_none_is_recommended_but_for_one_run_in_twenty() -> None:
    found = [recommended(0.0, run) for run in range(300)]
    assert sum(one is not None for one in found) <= 0.08 * len(found)


def test_settings_that_are_a_tenth_better_are_mostly_recommended_with_the_effect_that_they_have() -> None:
    found = [recommended(0.1, run) for run in range(300)]
    right = [one for one in found if one is not None and one.candidate == 7]
    assert len(right) >= 0.7 * len(found)
    assert np.mean([one.change_percent for one in right]) == pytest.approx(-10.0, abs=0.5)
    assert np.mean([one.low_percent <= -10.0 <= one.high_percent for one in right]) == pytest.approx(0.9, abs=0.05)


def test_all_of_a_rung_are_played_on_the_same_history() -> None:
    played = climb([(f"k={number}",) for number in range(9)], LADDER, 0, play)
    for rung in range(LADDER.rungs):
        assert (
            len({(o.tried.start_seconds, o.tried.seconds, o.tried.seed) for o in played if o.tried.rung == rung}) == 1
        )
    finals = [o.tried for o in played if o.tried.rung == LADDER.rungs]
    assert all(len({t.candidate for t in finals if t.seed == one.seed}) == 3 for one in finals)


def test_a_recording_is_a_model_of_what_was_seen() -> None:
    model = RECORDING.model()
    (topology,) = model.topologies
    assert [machine.capacity_millicores for machine in model.supervisors] == [2000.0, 1000.0]
    assert topology.component("spout").load is not None
    assert topology.edges[0].tuples_per_tuple == 2.0
    part = RECORDING.part(300.0, 100.0)
    load = part.model().topologies[0].component("spout").load
    assert load is not None
    assert load.rate_at(0.0) == 150.0
    with pytest.raises(InvalidRecording, match="nothing is known of what spout"):
        replace(RECORDING, topologies=(_silent(),)).model()
    with pytest.raises(InvalidRecording, match="no supervisors"):
        replace(RECORDING, machines=()).model()


def test_a_tuple_sent_to_all_is_copied_once() -> None:
    # Two executors of `count` get a copy each: two tuples were seen for each that the spout emitted.
    to_all = replace(WORDS, edges=(RecordedEdge("spout", "default", "count", "all", 2.0),))
    (edge,) = replace(RECORDING, topologies=(to_all,)).model().topologies[0].edges
    assert (edge.grouping, edge.tuples_per_tuple) == (Grouping.ALL, 1.0)


def test_a_recording_that_no_replay_could_begin_with_is_refused_before_any_does() -> None:
    insist_on_playable(RECORDING, SchedulingSettings())
    crowded = replace(RECORDING, machines=(RecordedMachine("s1", 1, None),), topologies=(WORDS, _twin()))
    with pytest.raises(InvalidRecording, match="the history of blue cannot be replayed: topology other needs"):
        insist_on_playable(crowded, SchedulingSettings())
    with pytest.raises(InvalidRecording, match=r"^topology words: nothing is known"):
        insist_on_playable(replace(RECORDING, topologies=(_silent(),)), SchedulingSettings())


def _twin() -> RecordedTopology:
    return replace(WORDS, id="words-2", name="other")


def _silent() -> RecordedTopology:
    spout = RecordedComponent("spout", "spout", 1, False, 0.1)
    return RecordedTopology("words-1", "words", 2, 1, (spout,), ())


def test_a_replay_tells_what_settings_cost_and_can_be_repeated() -> None:
    tight, wide = (
        Try(0, number, (f"thetaMillicores={theta}",), 0.0, 300.0, 0) for number, theta in enumerate(("50", "400"))
    )
    first = replay(RECORDING, tight, Prices())
    assert first == replay(RECORDING, tight, Prices())
    assert first.over_core_seconds < replay(RECORDING, wide, Prices()).over_core_seconds
    dear = replay(RECORDING, tight, Prices(restart=1000.0))
    assert dear.score - first.score == pytest.approx(990.0 * first.restarts)
    assert SchedulingSettings().period_seconds == RECORDING.period_seconds


@pytest.mark.parametrize("period", [10.0, 100.0])
def test_the_shortest_stretch_is_long_enough_for_settings_to_differ(period: float) -> None:
    """Else who goes on would be who comes first of those that nobody could tell apart."""
    hour = replace(RECORDING, seconds=3600.0)
    settings = (f"periodSeconds={period:g}", "minimumGainPercent=0")
    shortest = ladder_of(hour, settings_of(settings).scheduling, 8).length(0)
    thrifty, lavish = (
        replay(hour, Try(0, number, (*settings, f"thetaMillicores={theta}"), 0.0, shortest, 0), Prices())
        for number, theta in enumerate((50, 300))
    )
    assert thrifty.score < 0.8 * lavish.score


def steady(seconds: float = 3600.0) -> Recording:
    """The same load all the time."""
    spout = replace(WORDS.components[0], load=((0.0, 50.0),))
    return replace(RECORDING, seconds=seconds, topologies=(replace(WORDS, components=(spout, WORDS.components[1])),))


@pytest.mark.parametrize(("period", "rung"), [(1.0, 0), (10.0, 0), (10.0, 2), (60.0, 2)])
def test_that_a_setting_left_the_start_once_is_not_billed_in_each_stretch_again(period: float, rung: int) -> None:
    """Per hour of a short stretch it would cost many times what it does, and settings that never move would win."""
    calm, settings = steady(), ("policy=liu", f"periodSeconds={period:g}")
    seconds = ladder_of(calm, settings_of(settings).scheduling, 8).length(rung)
    moved, stayed = (
        replay(calm, Try(rung, number, (*settings, f"minimumGainPercent={gain}"), 0.0, seconds, 0), Prices())
        for number, gain in enumerate((20, 90))
    )
    assert (moved.plans, stayed.plans) == (1, 0)
    assert moved.restarts == 0.0
    assert moved.score == pytest.approx(stayed.score, rel=0.01)


def test_what_does_not_count_is_the_same_for_all_candidates() -> None:
    chosen = candidates(100, 1, ("minimumPeriods=5", "periodSeconds=20"))
    assert {warm_up_seconds(settings_of(one).scheduling, 300.0) for one in chosen} == {200.0}


def test_figures_are_per_hour_of_the_time_that_counts_also_where_the_last_control_period_is_cut_off() -> None:
    """From 480 s on; the 25th period of 60 s would end after the stretch."""
    still = ("mode=Observe", "periodSeconds=60")
    cut, whole = (replay(steady(), Try(0, 0, still, 0.0, seconds, 0), Prices()) for seconds in (1490.0, 2400.0))
    assert cut.over_core_seconds == pytest.approx(whole.over_core_seconds, rel=0.03)


def test_a_history_in_which_no_settings_tell_is_refused() -> None:
    scheduling = SchedulingSettings()
    assert least_seconds(scheduling) == 240.0
    insist_on_playable(replace(RECORDING, seconds=240.0), scheduling)
    told = (
        "the history of blue that is replayed has 230 s, and settings with a control period of 10 s tell in 240 s or "
        "more, of which 80 s pass until each has moved for the first time: replay 0.07 hours or more (--hours), and "
        "record as many"
    )
    with pytest.raises(InvalidRecording) as refused:
        insist_on_playable(replace(RECORDING, seconds=230.0), scheduling)
    assert str(refused.value) == told
    with pytest.raises(InvalidRecording, match="tell in 1,440 s or more"):
        insist_on_playable(RECORDING, replace(scheduling, period_seconds=60.0))
    with pytest.raises(InvalidRecording, match="tell in 1,920 s or more"):
        insist_on_playable(RECORDING, replace(scheduling, period_seconds=60.0, minimum_periods=11))


def test_cpu_that_a_spout_lacks_is_no_gain() -> None:
    dear = replace(WORDS.components[0], cpu_ms=5.0, load=((0.0, 150.0),))
    heavy = replace(RECORDING, topologies=(replace(WORDS, components=(dear, WORDS.components[1])),))
    starved, fed = (
        replay(heavy, Try(0, number, (f"ceilingMillicores={most}",), 0.0, 300.0, 0), Prices())
        for number, most in enumerate(("200", "1000"))
    )
    assert fed.under_core_seconds < 1.0
    assert starved.under_core_seconds == pytest.approx(0.55 * 3600.0, rel=0.1)  # it needs 750 millicores
    assert fed.score < starved.score


def standing(candidate: int, high_percent: float, *overrides: str) -> Standing:
    return Standing(candidate, overrides, high_percent - 5.0, high_percent - 10.0, high_percent, ())


def test_what_is_replayed_without_having_been_recorded_is_told() -> None:
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    tell_assumptions("blue", replace(RECORDING, assumed=("four ports [each]", "no state")), console)
    tell_assumptions("red", RECORDING, console)
    assert shown.getvalue() == "blue: four ports [each]\nblue: no state\n"


def test_what_a_candidate_changes_is_told_and_what_stays_is_not() -> None:
    present = ("thetaMillicores=50", "coolDownSeconds=60")
    better = standing(3, -2.0, *present, "policy=liu", "thetaMillicores=100", "coolDownSeconds=60")
    assert changed(better, present) == ("thetaMillicores=100", "policy=liu")
    assert changed(standing(PRESENT, 0.0, *present), present) == ()
    assert "surely better, in replays that had not chosen them: thetaMillicores=100 policy=liu" in verdict(
        [better], present
    )


def test_what_a_candidate_leaves_at_its_default_is_not_told_as_a_change() -> None:
    usual = SchedulingSettings()
    drawn = (f"policy={usual.policy}", f"forecast={usual.forecast}", "historyPeriods=8", "weights.workerRestart=30")
    assert changed(standing(3, -2.0, *drawn), ()) == drawn[2:]
    of_another_policy = ("policy=aniello-offline", "parameters.alpha=1")
    assert changed(standing(3, -2.0, *of_another_policy), ()) == of_another_policy
    assert changed(standing(3, -2.0, "coolDownSeconds=60"), ("cool_down_seconds = 60",)) == ()


def test_the_present_settings_are_kept_unless_others_are_surely_better() -> None:
    assert verdict([standing(PRESENT, 0.0)], ()).startswith("keep the present settings")
    assert verdict([standing(2, 1.0, "policy=liu")], ()).startswith("keep the present settings")


def test_how_far_a_round_is_is_read_anew_each_time_that_it_is_shown() -> None:
    done = Mock(value=0)
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=60)
    with terminal.status(ReplaysDone(done, 1200)):
        done.value = 1004
    assert "1,004 of 1,200 replays done" in shown.getvalue()

"""`storm-operator plan`: a plan from a file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from builders import chain_topology, component_load, even_traffic, history, snapshot, supervisors
from full_disk import run_on_full_disk
from placement_cases import measured_example
from storm_operator.cli import app
from storm_operator.cli_plan import propose, read_snapshot
from storm_operator.core.placement.registry import POLICIES, period_of
from storm_operator.core.snapshot_json import dump_snapshot
from storm_operator.core.wording import figure
from storm_operator.settings_overrides import Settings

EXAMPLE = Path(__file__).parents[3] / "examples" / "snapshots" / "wordcount.json"


def run_plan(*arguments: str, snapshot: Path = EXAMPLE) -> Result:
    """Liu's policy unless told otherwise: it is quick."""
    if "--policy" not in arguments:
        arguments = ("--policy", "liu", *arguments)
    return CliRunner().invoke(app, ["plan", "--snapshot", str(snapshot), *arguments], env={"COLUMNS": "200"})


def test_plan_shows_what_moves_why_and_what_it_brings() -> None:
    done = run_plan("--policy", "adaptive")
    assert done.exit_code == 0
    for expected in ("Plan by adaptive", "What moves", "10.77.0.11:6700", "between supervisors, tuples/s"):
        assert expected in done.output


def test_the_heading_counts_the_moves_that_the_table_lists() -> None:
    output = " ".join(run_plan().output.split())
    told = re.search(r"; moves (\d+) executors, changes only the port of (\d+) executors, restarts", output)
    assert told is not None
    listed = re.findall(r"│ wordcount │ \S+ │ \d+-\d+ │ (\S+):\d+ │ (\S*):\d+ (\(port only\) )?│", output)
    assert [bool(note) for _, _, note in listed] == [host == "" for _, host, _ in listed]
    assert int(told[1]) == sum(host not in ("", source) for source, host, _ in listed) > 0
    assert int(told[2]) == sum(host == "" for _, host, _ in listed) > 0


@pytest.mark.parametrize("policy", ["adaptive", "liu", "even", "optimal"])
def test_a_cluster_that_runs_nothing_is_a_hold(policy: str, tmp_path: Path) -> None:
    idle = json.loads(EXAMPLE.read_text()) | {"topologies": [], "workers": [], "history": []}
    (tmp_path / "idle.json").write_text(json.dumps(idle))
    done = run_plan("--policy", policy, snapshot=tmp_path / "idle.json")
    assert "no topology runs: there is nothing to place" in " ".join(done.output.split())


def test_in_a_pipe_long_names_are_whole(tmp_path: Path) -> None:
    pod = "storm-supervisor-{}.storm-supervisor.storm.svc.cluster.local"
    known = EXAMPLE.read_text()
    for number in range(11, 15):
        known = known.replace(f'"10.77.0.{number}"', f'"{pod.format(number)}"')
    (tmp_path / "pods.json").write_text(known)
    plan = json.loads(run_plan("-o", "json", snapshot=tmp_path / "pods.json").output)["plan"]
    arguments = ["plan", "--snapshot", str(tmp_path / "pods.json"), "--policy", "liu"]
    output = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"}).output
    rows = [line.strip("│").split("│") for line in output.splitlines() if line.startswith("│")]
    sources = "".join(row[3].strip() for row in rows if len(row) == 5)
    moved = [move["source"] for move in plan["moves"]]
    assert sources == "".join(f"{pod.format(slot['supervisor_id'][-2:])}:{slot['port']}" for slot in moved)


def test_in_a_narrow_terminal_names_are_whole() -> None:
    output = CliRunner().invoke(app, ["plan", "--snapshot", str(EXAMPLE), "--policy", "liu"], env={"COLUMNS": "40"})
    assert "│ wordcount │ __acker   │" in output.output


def test_what_a_terminal_s_encoding_lacks_is_written_as_its_number(tmp_path: Path) -> None:
    (tmp_path / "named.json").write_text(EXAMPLE.read_text().replace('"split"', '"spl漢t"'), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "storm_operator", "plan", "--snapshot", str(tmp_path / "named.json"), "--policy", "liu"],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"spl\\u6f22t" in done.stdout


def test_json_is_for_programs() -> None:
    done = run_plan("-o", "json")
    document = json.loads(done.output)
    assert (document["version"], document["decision"]) == (1, "plan")
    plan = document["plan"]
    assert plan["policy"] == "liu"
    assert plan["moves"]
    before, after = plan["before"], plan["after"]
    assert after["inter_supervisor_tuples_per_second"] < before["inter_supervisor_tuples_per_second"]


def test_of_whom_nobody_knows_what_they_need_the_loop_s_assumption_is_shown() -> None:
    seen = measured_example().snapshot
    unmeasured = set(seen.topologies[0].executors_of("count"))
    known = seen.topologies[0].components
    periods = history("example", {one.name: [component_load(100.0)] for one in known if one.name != "count"})
    used = dict.fromkeys(("s1", "s2", "s3"), 1000.0)
    demand = propose(replace(seen, history=periods, supervisor_cpu_millicores=used), Settings()).demand
    assert demand.assumed == unmeasured
    assert min(demand.room_millicores[executor] for executor in unmeasured) > 0.0


def test_a_snapshot_that_an_editor_has_marked_as_utf_8_is_read(tmp_path: Path) -> None:
    (tmp_path / "marked.json").write_text(EXAMPLE.read_text(), encoding="utf-8-sig")
    assert run_plan(snapshot=tmp_path / "marked.json").exit_code == 0


def test_the_same_snapshot_gives_the_same_plan() -> None:
    assert run_plan("-o", "json").output == run_plan("-o", "json").output


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_gives_an_answer(policy: str) -> None:
    done = run_plan("--policy", policy, "-o", "json")
    assert done.exit_code == 0
    assert json.loads(done.output)["decision"] in ("plan", "hold")


NOTHING_TO_BALANCE = {"feedback", "fuzzy"}
"""They move CPU from the busiest supervisors, of which the example has none."""


@pytest.mark.parametrize(
    "policy", [name for name in sorted(POLICIES) if period_of(name) is not None and name not in NOTHING_TO_BALANCE]
)
def test_a_policy_with_a_period_of_its_own_is_asked_as_if_its_time_had_come(policy: str, tmp_path: Path) -> None:
    example = read_snapshot(EXAMPLE)
    between_times = replace(example, taken_at_seconds=example.taken_at_seconds + 137.0)
    path = tmp_path / "snapshot.json"
    path.write_text(dump_snapshot(between_times), encoding="utf-8")
    done = run_plan("--policy", policy, "--set", "trigger=Policy", "-o", "json", snapshot=path)
    assert json.loads(done.output)["decision"] == "plan"


def test_gap_to_the_optimum_is_told_when_asked(tmp_path: Path) -> None:
    small = tmp_path / "small.json"
    small.write_text(dump_snapshot(measured_example().snapshot), encoding="utf-8")
    assert "Gap to optimum" not in run_plan(snapshot=small).output
    assert "(proven)" in run_plan("--gap", snapshot=small).output.partition("Gap to optimum: ")[2]
    liu, optimal = (
        json.loads(run_plan("--gap", "-o", "json", "--policy", policy, snapshot=small).output)["gap_to_optimum"]
        for policy in ("liu", "optimal")
    )
    assert liu["proven"]
    assert liu["percent"] == liu["at_most_percent"] >= optimal["percent"] == 0.0


def test_the_cost_that_a_gap_is_of_is_told_with_its_restarts_and_without_as_the_plan_tells_it() -> None:
    told = json.loads(run_plan("--gap", "-o", "json").output)
    gap = told["gap_to_optimum"]
    assert gap["restart_cost"] > 0.0
    without = gap["cost"] - gap["restart_cost"]
    assert f"-> {figure(without)} tuple-ms/s" in told["plan"]["reason"]
    said = " ".join(run_plan("--gap").output.split())
    assert f"cost with restarts, {figure(gap['cost'])} tuple-ms/s" in said
    assert f"the proposal costs {figure(without)}." in said


def test_what_a_bound_of_zero_says_of_the_gap_is_unknown_and_not_infinity(tmp_path: Path) -> None:
    """More executors and supervisors than a program is written down for, and no price but the network's."""
    words = chain_topology("words", ("spout", 10), ("split", 20), ("count", 20), num_workers=10)
    machines = supervisors(30, capacity=4000.0)
    large = tmp_path / "large.json"
    where = {executor: machines[at % 10].slots[0] for at, executor in enumerate(words.executors)}
    periods = history("words", {name: [component_load(1000.0, cpu=2000.0)] * 3 for name in ("spout", "split", "count")})
    picture = snapshot((words,), machines, where, rates=even_traffic(words, 3000.0), periods=periods)
    large.write_text(dump_snapshot(picture), encoding="utf-8")
    free = ("--gap", "--set", "weights.supervisorInUse=0")
    gap = json.loads(run_plan(*free, "-o", "json", snapshot=large).output, parse_constant=pytest.fail)["gap_to_optimum"]
    assert gap["bound"] == 0.0 < gap["cost"]
    assert gap["at_most_percent"] is None
    said = " ".join(run_plan(*free, snapshot=large).output.split())
    assert "above the best found; how much at most is unknown: the bound is 0 (not proven)" in said


def test_gap_without_the_solver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    done = run_plan("--gap")
    assert done.exit_code == 2
    assert "pip install '.[optimum]' in a clone of storm-operator" in done.output
    held = run_plan("--policy", "optimal")
    assert held.exit_code == 0
    assert "'.[optimum]' in a clone of storm-operator" in " ".join(held.output.split())


def test_hold_is_an_answer_with_its_reason() -> None:
    done = run_plan("--set", "minimumGainPercent=99")
    assert done.exit_code == 0
    assert "Hold (GainTooSmall)" in done.output
    document = json.loads(run_plan("--set", "minimumGainPercent=99", "-o", "json").output)
    assert (document["decision"], document["reason"]) == ("hold", "GainTooSmall")
    assert document["message"]


def test_separation_reaches_the_policy() -> None:
    always, never = (
        json.loads(run_plan("--policy", "adaptive", "--separation", choice, "-o", "json").output)["plan"]["target"]
        for choice in ("Always", "Never")
    )
    assert always != never


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", ""], "plan: --policy is '': one of adaptive, "),
        (["--policy", "magic"], "policy is 'magic': one of adaptive, "),
        (["--set", "thetaMillicores=0"], "plan: thetaMillicores is 0.0: is less than the minimum of 1"),
        (["--set", "minimumCompleteness=2"], "plan: minimumCompleteness is 2.0: is greater than the maximum of 1"),
        (["--set", "coolDown"], "'coolDown' has no key or no value: KEY=VALUE is needed"),
        (["--policy", "t-storm", "--set", "gamma=2"], "'gamma' is no setting: did you mean parameters.gamma?"),
        (["--set", "colour=blue"], "'colour' is no setting: expected parameters.<name> or one of applyMethod"),
        (["--set", "coolDownSeconds=-1"], "coolDownSeconds is -1.0: is less than the minimum of 0"),
        (["--set", "historyPeriods=2.5"], "historyPeriods is '2.5': expected a whole number"),
        (["--set", "mode=Sometimes"], "mode is 'Sometimes': expected one of Observe, Recommend, Enforce"),
        (["--set", "parameters.nothing=1"], "nothing"),
    ],
)
def test_bad_options_give_one_message_and_exit_code_2(arguments: list[str], message: str) -> None:
    done = run_plan(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert len(done.output.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not JSON"),
        (b'{"version": 7}', "version is 7: expected 1"),
        (b"\xff\xfe", "is not UTF-8 text"),
    ],
)
def test_bad_file_gives_one_message_and_exit_code_2(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    done = run_plan(snapshot=path)
    assert done.exit_code == 2
    assert "broken.json" in done.output
    assert message in done.output


def test_absent_file(tmp_path: Path) -> None:
    done = run_plan(snapshot=tmp_path / "absent.json")
    assert done.exit_code == 2
    assert "cannot be read: No such file" in done.output


def test_output_that_cannot_be_written_is_said_in_a_sentence() -> None:
    done = run_on_full_disk("storm_operator", "plan", "--snapshot", str(EXAMPLE), "-o", "json")
    assert done.returncode == 1
    assert done.stderr == "storm-operator plan: the output cannot be written: No space left on device\n"

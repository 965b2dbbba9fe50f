"""Scenarios in YAML: what they become, and what is said about those that are none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from learned_profiles import component, season
from storm_operator import simulate_command
from storm_operator.cli import app
from storm_operator.core.learned_profile import LearnedProfile
from storm_operator.core.learned_profile_json import dump_profile
from storm_operator.core.settings import SchedulingSettings
from storm_operator.core.short_repr import short_repr
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.scenario_fields import InvalidScenario
from storm_operator.scenario_file import parse_scenario, read_scenario
from storm_operator.simulated_loop import Scenario, simulate
from storm_operator.simulation_report import SimulationReport, Sums
from storm_operator.simulator.load import Constant, Sine
from storm_operator.simulator.load_text import parse_load
from storm_operator.simulator.model import AvailabilityDrops, SupervisorDies

EXAMPLE = Path(__file__).parents[3] / "examples" / "simulations" / "wordcount.yaml"
FAULT = {"kind": "dies", "supervisor": "supervisor-1"}
SUPERVISORS = "a number of 0 or more, a mapping with any of count, capacityMillicores, .*, or a list of such mappings"


def smallest(**more: object) -> dict[str, Any]:
    return {"topologies": [{"workload": "wordcount"}], **more}


def test_the_example_is_read_as_it_is_written() -> None:
    read = read_scenario(EXAMPLE)
    model = read.scenario.model
    assert read.scenario.name == "wordcount"
    assert len(model.supervisors) == 4
    assert model.distances.default_ms == 4.0
    assert model.faults == (SupervisorDies("supervisor-2", 500.0, 620.0),)
    assert model.topologies[0].component("sentences").load == Sine(50.0, 500.0, 600.0)
    assert model.topologies[0].component("count").executors == 3
    assert read.specs["wordcount"].resources.theta_millicores == 50.0


def test_supervisors_may_differ_and_faults_are_of_three_kinds() -> None:
    read = parse_scenario(
        smallest(
            supervisors=[{"count": 2, "slots": 2}, {"capacityMillicores": 4000, "threadSpeed": 2, "availability": 0.9}],
            faults=[{"kind": "availability", "supervisor": "supervisor-3", "atSeconds": 5, "availability": 0.5}],
        ),
        "x",
    )
    machines = read.scenario.model.supervisors
    assert [machine.capacity_millicores for machine in machines] == [1000.0, 1000.0, 4000.0]
    assert [len(machine.ports) for machine in machines] == [2, 2, 4]
    assert read.scenario.model.faults == (AvailabilityDrops("supervisor-3", 5.0, 0.5),)


def test_a_small_rate_is_one_too() -> None:
    document = smallest(topologies=[{"workload": "wordcount", "load": 0.00001}])
    assert parse_scenario(document, "s").scenario.model.topologies[0].component("sentences").load == Constant(0.00001)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scheduling": {"coolDown": 5}}, "scheduling: unknown field coolDown; known are .*coolDownSeconds"),
        ({"scheduling": {"mode": "Sometimes"}}, "scheduling.mode is 'Sometimes': one of Observe"),
        ({"resources": {"thetaMillicores": 0}}, "resources.thetaMillicores is 0: "),
        ({"resources": {"thetaMillicores": math.nan}}, "^resources.thetaMillicores is nan: a finite number is right"),
        ({"scheduling": {"periodSeconds": math.inf}}, "^scheduling.periodSeconds is inf: a finite number is right"),
        ({"durationSeconds": 10**400}, "^durationSeconds is a whole number of over 300 digits: a number of more than"),
        ({"topologies": []}, "topologies is \\[\\]: a list of at least one is right"),
        ({"topologies": [{"workload": "words"}]}, "workload is 'words': one of wordcount, http-monitor"),
        (
            {"topologies": [{"workload": "wordcount", "load": "300/s"}]},
            "^topologies\\[0\\]\\.load '300/s': steady:RATE",
        ),
        ({"topologies": [{"workload": "wordcount", "load": -5}]}, "^topologies\\[0\\]\\.load"),
        ({"topologies": [{"workload": "wordcount", "load": True}]}, "load is True: a text is right"),
        ({"topologies": [{"workload": "wordcount", "load": "step:1,2@x"}]}, "^topologies\\[0\\]\\.load step '2@x'"),
        ({"duration": 5}, "unknown field 'duration'"),
        ({"durationSeconds": -1}, "^durationSeconds is -1: a number of more than 0, up to"),
        ({"faults": [{"kind": "dies", "supervisor": "s9"}]}, "^faults\\[0\\]\\.supervisor: 's9' is no supervisor"),
        ({"faults": [FAULT, FAULT | {"supervisor": "s9"}]}, "^faults\\[1\\].*supervisor-1, supervisor-2, super"),
        (
            {"faults": [{"kind": "explodes", "supervisor": "supervisor-1"}]},
            "^faults\\[0\\]\\.kind is 'explodes': one of dies",
        ),
        ({"scheduling": []}, "scheduling is \\[\\]: a mapping is right"),
        (
            {"scheduling": {"policy": "adaptivee"}},
            "^scheduling\\.policy is 'adaptivee': one of adaptive, .* is right",
        ),
        (
            {"scheduling": {"parameters": {"nope": 1}}},
            "^scheduling\\.parameters\\.nope = 1: policy adaptive has no such",
        ),
        ({"parallelism": {"mode": "Automatic"}}, "^parallelism\\.mode is 'Automatic'"),
        (
            {"parallelism": {"components": {"sieve": {"executors": 4}}}},
            "^parallelism\\.components\\.sieve: no topology",
        ),
        (
            {"parallelism": {"components": {"split": {"minimum": 4}}}},
            "minimum and maximum of components need mode Auto",
        ),
        (
            {"topologies": [{"workload": "wordcount"}, {"workload": "wordcount"}]},
            r"^topologies\[1\]\.name is 'wordcount', as of one before",
        ),
        ({"parallelism": {"workers": 3}}, "^parallelism\\.workers: simulated workers stay as many as"),
        (
            {"topologies": [{"workload": "wordcount", "parallelism": {"mode": "Auto"}}]},
            r"^topologies\[0\]\.parallelism\.mode is 'Auto': a whole number of 1 or more is right",
        ),
        (
            {"topologies": [{"workload": "wordcount", "tasks": {"sieve": 8}}]},
            r"^topologies\[0\]\.tasks\.sieve: one of count, sentences, split is right",
        ),
        (
            {"topologies": [{"workload": "wordcount", "tasks": {"split": 1}}]},
            r"^topologies\[0\], component split: tasks = 1; at least its 2 executors",
        ),
        ({"supervisors": "zero"}, f"^supervisors is 'zero': {SUPERVISORS}"),
        ({"supervisors": True}, f"^supervisors is True: {SUPERVISORS}"),
        ({"supervisors": -1}, f"^supervisors is -1: {SUPERVISORS}"),
        ({"supervisors": [{}, 3]}, "^supervisors\\[1\\] is 3: a mapping is right"),
        ({"supervisors": {"count": -4}}, "^supervisors\\.count is -4: a whole number of 0 or more is right"),
        ({"supervisors": [{}, {"slots": 1.5}]}, "^supervisors\\[1\\]\\.slots is 1.5: a whole number of 1 or more is"),
        ({"supervisors": {"capacityMillicores": 0}}, "^supervisors\\.capacityMillicores is 0: a number of 50 or more"),
        ({"supervisors": {"capacityMillicores": 1}}, "^supervisors\\.capacityMillicores is 1: a number of 50 or more"),
        ({"supervisors": {"availability": 1.5}}, "^supervisors\\.availability is 1.5: a number from 0 to 1 is right"),
        ({"supervisors": 0}, "^supervisors have 0 slots together: topology wordcount needs at least one free slot"),
        ({"name": ["x"]}, "^name is \\['x'\\]: a text is right"),
        ({"seed": 1.5}, "^seed is 1.5: a whole number of 0 or more is right"),
        ({"roundTripMs": float("nan")}, "^roundTripMs is nan: a number of 0 or more is right"),
        ({"periodSeconds": 0}, "^periodSeconds is 0: a number of 1 or more is right"),
        (
            {"durationSeconds": 0},
            "^durationSeconds is 0: a number of more than 0, up to 31,536,000 \\(a year\\), is right",
        ),
        ({"durationSeconds": 86_400_000}, "^durationSeconds is 86400000: a number of more than 0, up to 31,536,000"),
        (
            {"supervisors": {"capacityMillicores": 1e300}},
            "^supervisors\\.capacityMillicores is 1e\\+300: a number of 50",
        ),
        ({"durationSeconds": 5}, "^durationSeconds is 5: a period of 10 seconds or more is right"),
        (
            {"durationSeconds": 1205, "warmUpSeconds": 6000},
            "^warmUpSeconds is 6000: less than 1200, when the last period of durationSeconds ends, is right",
        ),
        ({"faults": 5}, "^faults is 5: a list is right"),
        ({"durationSeconds": None}, "^durationSeconds is left empty: a number of more than 0, up to"),
        ({"supervisors": None}, "^supervisors is left empty: a number of 0 or more, a mapping"),
        ({"topologies": [{}]}, "^topologies\\[0\\]\\.workload is left empty: one of wordcount, http-monitor"),
        ({"faults": [{}]}, "^faults\\[0\\]\\.kind is left empty: one of dies, slows, availability is right"),
        ({"supervisors": {"count": 100_000_000}}, "^supervisors\\.count is 100000000: up to 10,000 can be simulated"),
        ({"supervisors": 100_000_000}, "^supervisors\\.count is 100000000: up to 10,000 can be simulated"),
        (
            {"supervisors": [{"count": 6000}, {"count": 6000}]},
            "^supervisors\\[1\\]: up to 10,000 supervisors can be simulated together",
        ),
        ({"supervisors": {"slots": 1_000_000}}, "^supervisors\\.slots is 1000000: up to 1,000 can be simulated"),
        (
            {"topologies": [{"workload": "wordcount", "parallelism": {"split": 60_000, "count": 60_000}}]},
            "^topologies have 120,002 executors together: up to 100,000 can be simulated",
        ),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidScenario, match=message):
        parse_scenario(smallest(**change), "x")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"messageTimeoutSeconds": "ten"}, ".messageTimeoutSeconds is 'ten': a number of more than 0 is right"),
        ({"messageTimeoutSeconds": 0}, ".messageTimeoutSeconds is 0: a number of more than 0 is right"),
        ({"parallelism": {"split": 2_000_000}}, ".parallelism.split is 2000000: up to 100,000 can be simulated"),
        ({"tasks": {"split": 2_000_000}}, ".tasks.split is 2000000: up to 100,000 can be simulated"),
        ({"ackers": 2_000_000}, ".ackers is 2000000: up to 100,000 can be simulated"),
        ({"maxSpoutPending": 0}, ".maxSpoutPending is 0: a whole number of 1 or more is right"),
        ({"maxSpoutPending": 2**31}, ".maxSpoutPending is 2147483648: up to 2,147,483,647 can be simulated"),
        (
            {"maxSpoutPending": 10**400},
            f".maxSpoutPending is {short_repr(10**400)}: up to 2,147,483,647 can be simulated",
        ),
        ({"load": 10**400}, f".load {short_repr(str(10**400))}: numbers up to 1e+18 are right"),
        ({"workers": 0}, ".workers is 0: a whole number of 1 or more is right"),
        ({"ackers": "one"}, ".ackers is 'one': a whole number of 0 or more is right"),
        ({"replaysFailed": "no"}, ".replaysFailed is 'no': true or false is right"),
        ({"cpuMs": {"split": -0.2}}, ".cpuMs.split is -0.2: a number of 0 or more is right"),
        ({"cpuMs": {"split": "0.2"}}, ".cpuMs.split is '0.2': a number of 0 or more is right"),
        ({"cpuMs": {"sieve": 0.2}}, ".cpuMs.sieve: one of count, sentences, split is right"),
        ({"cpuMs": 0.2}, ".cpuMs is 0.2: a mapping is right"),
        ({"name": ""}, ".name is '': a text is right"),
        (
            {"stages": 7},
            " (wordcount) has the unknown field 'stages': only workload, name, load, parallelism, tasks, cpuMs, "
            "workers, ackers, maxSpoutPending, messageTimeoutSeconds, replaysFailed, sourceKeepsBacklog, "
            "stateRestoreSeconds are known",
        ),
        ({"workload": "reference-chain", "stages": 1}, ".stages is 1: a whole number of 2 or more is right"),
        ({"workload": "application", "cpuMs": {"a": 1}}, ".cpuMs is {'a': 1}: a number of 0 or more is right"),
        ({"load": "sine:50..500/0s"}, ".load period '0s': more than 0 s is right"),
        ({"load": "step:100,200@60/30s"}, ".load period '30s': 60 s, what it holds, or more is right"),
        (
            {"load": "step:100,200@60,300@30"},
            ".load step '300@30': a time after 60 s, when the one before begins, is right",
        ),
        ({"load": "random:500..50/10s"}, ".load range '500..50': LOW..HIGH with LOW at most HIGH is right"),
        ({"load": "spike:200,900@60+0s"}, ".load length '0s': more than 0 s is right"),
    ],
)
def test_what_is_wrong_in_a_topology_is_named_by_its_path(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        parse_scenario({"topologies": [{"workload": "wordcount"} | change]}, "x")
    assert str(refused.value) == f"topologies[0]{message}"


def test_a_fault_after_the_last_period_would_have_no_effect_and_is_refused() -> None:
    """Of 100 s with a period of 60 s, 60 s are played."""
    right = "less than 60, when the last period of durationSeconds ends, is right"
    with pytest.raises(InvalidScenario) as refused:
        parse_scenario(smallest(durationSeconds=100, periodSeconds=60, faults=[FAULT | {"atSeconds": 70}]), "x")
    assert str(refused.value) == f"faults[0].atSeconds is 70: {right}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"atSeconds": 500, "untilSeconds": 20},
            ".untilSeconds is 20: a number of more than atSeconds, 500, is right",
        ),
        (
            {"atSeconds": 600},
            ".atSeconds is 600: less than 600, when the last period of durationSeconds ends, is right",
        ),
        ({"atSeconds": "soon"}, ".atSeconds is 'soon': a number of 0 or more is right"),
        ({"kind": "slows", "factor": 1.5}, ".factor is 1.5: a number from 0 to 1 is right"),
        ({"kind": "availability", "availability": 85}, ".availability is 85: a number from 0 to 1 is right"),
        (
            {"factor": 0.5},
            " (dies) has the unknown field 'factor': only kind, supervisor, atSeconds, untilSeconds are known",
        ),
    ],
)
def test_what_is_wrong_in_a_fault_is_named_by_its_path(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        parse_scenario(smallest(faults=[FAULT | change]), "x")
    assert str(refused.value) == f"faults[0]{message}"


def test_fields_are_what_each_workload_takes() -> None:
    chain = {"workload": "reference-chain", "stages": 4, "cpuMs": {"simple": 1}, "parallelism": {"ack": 2}}
    application = {"workload": "application", "cpuMs": 2, "ackers": 0}
    read = parse_scenario({"topologies": [chain, application]}, "x").scenario.model.topologies
    assert [len(topology.components) for topology in read] == [4, 7]
    assert [topology.components[1].cpu_ms_per_tuple for topology in read] == [1.0, 2.0]


def test_a_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(InvalidScenario, match=r"^cannot be read: line 1, column 5: expected .*, while parsing"):
        read_scenario(tmp_path / "bad.yaml")


@pytest.mark.parametrize(
    ("text", "at", "rate"),
    [
        ("300", 5.0, 300.0),
        ("steady:300", 5.0, 300.0),
        ("step:300,600@60", 59.0, 300.0),
        ("step:300,600@60s,100@120/180s", 61.0, 600.0),
        ("step:300,600@60s,100@120/180s", 190.0, 300.0),
        ("sine:100..500/120s", 30.0, 500.0),
        ("spike:200,900@60+10s", 65.0, 900.0),
        ("spike:200,900@60+10s/100s", 170.5, 200.0),
        ("spike:0,900@60+10s", 65.0, 900.0),
        ("spike:0,900@0+10s", 5.0, 900.0),
        ("spike:0,900@60+10s/100s", 130.0, 0.0),
    ],
)
def test_loads_are_written_as_for_the_example_topologies(text: str, at: float, rate: float) -> None:
    assert parse_load(text).rate_at(at) == pytest.approx(rate)


def test_a_random_load_stays_within_its_range() -> None:
    shape = parse_load("random:50..400/10s;seed=7")
    rates = [shape.rate_at(10.0 * n) for n in range(200)]
    assert min(rates) >= 50.0
    assert max(rates) <= 400.0
    assert max(rates) - min(rates) > 300.0
    assert isinstance(parse_load("7"), Constant)


@pytest.mark.parametrize(("low", "high"), [(2.5, 2.5), (0.4, 0.4), (0.0, 0.0), (0.6, 1000.0), (0.1, 0.2)])
def test_a_random_load_reaches_the_very_ends_of_its_range(low: float, high: float) -> None:
    shape = parse_load(f"random:{low}..{high}/1s")
    rates = [shape.rate_at(float(n)) for n in range(10_000)]
    assert (min(rates), max(rates)) == pytest.approx((low, high))


@pytest.mark.parametrize("text", ["sine:500/120s", "step:300", "spike:1,2", "lots", "wave:1", "step:1,2@x"])
def test_other_loads_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is right"):
        parse_load(text)


def test_the_command_plays_a_scenario_and_keeps_its_reports(tmp_path: Path) -> None:
    document = yaml.safe_load(EXAMPLE.read_text()) | {"durationSeconds": 60, "warmUpSeconds": 0, "faults": []}
    (tmp_path / "short.yaml").write_text(yaml.safe_dump(document))
    twice = ["--policy", "liu", "--policy", "liu"]
    told = CliRunner().invoke(app, ["simulate", str(tmp_path / "short.yaml"), *twice, "-f", str(tmp_path)])
    assert told.exit_code == 0, told.output
    assert "Storm alone " in told.output
    assert told.output.splitlines()[2].count("policy liu") == 1, "played once"
    report = SimulationReport.from_json((tmp_path / "liu.json").read_text())
    assert report.policy == "liu"
    assert (tmp_path / "as-it-starts.json").exists()


def test_a_policy_that_cannot_work_here_is_refused_before_anything_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storm_operator.core.placement.optimal.find_spec", lambda _: None)
    told = CliRunner().invoke(app, ["simulate", str(EXAMPLE), "--policy", "optimal"])
    assert told.exit_code == 2
    assert "needs OR-Tools, which is not installed" in told.output


def test_a_learned_profile_is_played_beside_whatever_its_age_and_cluster(tmp_path: Path) -> None:
    document = yaml.safe_load(EXAMPLE.read_text()) | {"durationSeconds": 60, "warmUpSeconds": 0, "faults": []}
    (tmp_path / "short.yaml").write_text(yaml.safe_dump(document))
    topologies = {
        topology.name: {c.name: component(season(100.0, 1000.0)) for c in topology.components}
        for topology in (one.as_topology() for one in read_scenario(tmp_path / "short.yaml").scenario.model.topologies)
    }
    (tmp_path / "profile.json").write_text(dump_profile(LearnedProfile("elsewhere", 0.0, 1.0, topologies)))
    arguments = ["simulate", str(tmp_path / "short.yaml"), "-f", str(tmp_path)]
    told = CliRunner().invoke(app, [*arguments, "--profile", str(tmp_path / "profile.json")])
    assert told.exit_code == 0, told.output
    played = [SimulationReport.from_json((tmp_path / f"adaptive{name}.json").read_text()) for name in ("", "-learned")]
    assert played[0].sums != played[1].sums
    assert "with profile" in told.output
    assert "The operator with policy adaptive and the profile, beside without: better: " in told.output


@pytest.mark.parametrize(
    ("profile", "why"),
    [
        (LearnedProfile("elsewhere", 0.0, 1.0, {"other": {"spout": component(season(1.0, 1.0))}}), "has no topology"),
        (None, "No such file"),
    ],
)
def test_a_profile_of_other_topologies_is_refused(profile: LearnedProfile | None, why: str, tmp_path: Path) -> None:
    if profile is not None:
        (tmp_path / "profile.json").write_text(dump_profile(profile))
    told = CliRunner().invoke(app, ["simulate", str(EXAMPLE), "--profile", str(tmp_path / "profile.json")])
    assert told.exit_code == 2
    assert why in " ".join(told.output.replace("│", " ").split())


def test_parameters_are_those_of_the_policy_that_the_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = smallest(durationSeconds=20, scheduling={"policy": "t-storm", "parameters": {"gamma": 2}})
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(given))
    played: dict[str, SchedulingSettings] = {}

    def listen(scenario: Scenario, specs: Mapping[str, TopologySpec] | None = None, *_: object, **__: object) -> object:
        played.update({spec.scheduling.policy: spec.scheduling for spec in (specs or {}).values()})
        return simulate(scenario, specs)

    monkeypatch.setattr(simulate_command, "play", listen)
    told = CliRunner().invoke(
        app, ["simulate", str(tmp_path / "t.yaml"), "--policy", "t-storm", "--policy", "adaptive"]
    )
    assert told.exit_code == 0, told.output
    assert played["t-storm"].parameters == (("gamma", 2.0),)
    assert played["adaptive"].parameters == ()


def report_of(over: float, under: float, unsent: float = 0.0) -> SimulationReport:
    return SimulationReport("x", "x", 10.0, 0.0, (), (), Sums(0, 0, 0, 0, unsent, 0, 0, over, under, 0))


def test_what_the_columns_show_is_told_in_words() -> None:
    even, managed, learned = report_of(13000.0, 14.1), report_of(1300.0, 70.2, 59000.0), report_of(1306.5, 6.7, 10.0)
    said = simulate_command.against_even("liu", managed, even)
    assert said.startswith(
        "The operator with policy liu, beside Storm alone: "
        "better: CPU reserved in vain 1,300 core-seconds rather than 13,000; "
        "worse: tuples never sent 59,000 rather than 0, CPU missing 70.2 core-seconds rather than 14.1. "
    )
    said = simulate_command.against_unlearned("liu", learned, managed)
    assert said == (
        "The operator with policy liu and the profile, beside without: "
        "better: tuples never sent 10 rather than 59,000, CPU missing 6.7 core-seconds rather than 70.2; "
        "worse: nothing by more than 1%."
    )


def test_the_command_names_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("topologies: 5")
    told = CliRunner().invoke(app, ["simulate", str(tmp_path / "bad.yaml")])
    assert told.exit_code == 2
    assert "topologies is 5" in told.output
    told = CliRunner().invoke(app, ["simulate", str(EXAMPLE), "--policy", "best"])
    assert told.exit_code == 2
    assert "adaptive" in told.output


def test_a_folder_that_reports_cannot_be_written_to_is_said_before_anything_is_played() -> None:
    done = CliRunner().invoke(app, ["simulate", str(EXAMPLE), "--output", "/proc"], env={"COLUMNS": "300"})
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--output: /proc is no folder that can be written to: " in done.stderr


def test_a_profile_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    profile = tmp_path / "nope.json"
    done = CliRunner().invoke(app, ["simulate", str(EXAMPLE), "--profile", str(profile)], env={"COLUMNS": "400"})
    assert done.exit_code == 2
    assert f"--profile: {profile} cannot be read: No such file or directory" in done.stderr


def test_an_empty_file_is_told_as_empty(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing yet\n")
    done = CliRunner().invoke(app, ["simulate", str(tmp_path / "empty.yaml")])
    assert done.exit_code == 2
    assert "empty.yaml: it is empty: a scenario is right" in done.stderr


def test_what_is_wrong_is_told_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [")
    for arguments, words in (
        ([str(tmp_path / "bad.yaml")], "bad.yaml: cannot be read"),
        ([str(EXAMPLE), "--policy", "best"], "--policy best: there are adaptive"),
        ([str(EXAMPLE), "--pace", "5"], "--pace is for --page"),
        ([str(EXAMPLE), "--page-port", "0"], "--page-port is for --page"),
        ([str(EXAMPLE), "--page", "--profile", "learned.json"], "--profile is not for --page"),
        ([str(EXAMPLE), "--page", "--output", str(tmp_path)], "--output is not for --page"),
        ([str(EXAMPLE), "--page", "--history", str(tmp_path)], "--history is not for --page"),
        ([str(EXAMPLE), "--page", "--policy", "liu", "--policy", "even"], "under one --policy"),
    ):
        done = CliRunner().invoke(app, ["simulate", *arguments], env={"COLUMNS": "300"})
        assert (done.exit_code, done.stdout) == (2, "")
        assert words in done.stderr


@pytest.mark.parametrize(
    ("root", "words"),
    [
        ("s3://", "it names no bucket"),
        ("nowhere://x", "nowhere"),
        ("/proc/nope", "/proc/nope"),
        ("", "it is empty: a folder or s3://bucket/prefix is right"),
    ],
)
def test_a_history_that_cannot_be_written_is_told_before_anything_is_played(root: str, words: str) -> None:
    done = CliRunner().invoke(app, ["simulate", str(EXAMPLE), "--history", root], env={"COLUMNS": "300"})
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"--history: '{root}' cannot be written to" in done.stderr
    assert words in done.stderr


def test_a_scenario_that_was_edited_is_not_taken_for_the_one_that_was_recorded(tmp_path: Path) -> None:
    file, history = tmp_path / "words.yaml", tmp_path / "history"
    short = "topologies: [{workload: wordcount, load: '50'}]\ndurationSeconds: 40\n"

    def recorded(text: str) -> Result:
        file.write_text(text)
        return CliRunner().invoke(app, ["simulate", str(file), "--history", str(history)], env={"COLUMNS": "400"})

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in sorted(history.rglob("*.parquet"))}

    first = recorded(short)
    assert (first.exit_code, "history:" in first.stdout) == (0, False)
    kept = files()
    again = recorded("# the same\ndurationSeconds: 40\n" + short.partition("\n")[0] + "\n")
    assert again.exit_code == 0
    assert f"history: {len(kept)} files of cluster words-adaptive were there already, of this very" in again.stdout
    for other in (short.replace("'50'", "'80'"), f"{short}seed: 1\n"):
        refused = recorded(other)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "holds a recording of cluster words-adaptive already, of another scenario, seed or" in refused.stderr
    assert files() == kept
    assert recorded(f"{short.replace('50', '80')}name: busy\n").exit_code == 0
    assert kept.items() < files().items()


def test_a_scenario_whose_name_no_recorded_cluster_can_have_is_told_before_it_is_played(tmp_path: Path) -> None:
    file = tmp_path / "Köln.yaml"
    file.write_text(EXAMPLE.read_text())
    done = CliRunner().invoke(app, ["simulate", str(file), "--history", str(tmp_path / "h")], env={"COLUMNS": "300"})
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--history: the name of a cluster in the history is of ASCII characters" in done.stderr


def test_brackets_in_what_was_given_are_said_as_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "a[b]" / "absent[c].yaml"
    for arguments, words in (([str(file)], f"{file}:"), ([str(EXAMPLE), "--policy", "[/x]"], "--policy [/x]:")):
        told = CliRunner().invoke(app, ["simulate", *arguments])
        assert told.exit_code == 2
        assert words in told.output

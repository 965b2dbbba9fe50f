"""The program: commands are imported when called, and a broken one does not break the others."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

from full_disk import run_on_full_disk
from storm_operator.cli import COMMANDS, PROGRAM, app
from storm_operator.lazy_commands import LazyCommand, load_available
from storm_pipeline.cli import JOBS, load_job
from storm_pipeline.cli import app as pipeline

RUNNER = CliRunner()
SCENARIO = Path("examples/simulations/wordcount.yaml")
OWN = ("storm_operator.cli", "storm_operator.lazy_commands")


def modules_after(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_help_lists_every_command_without_importing_any() -> None:
    loaded = modules_after(
        "from typer.testing import CliRunner\n"
        "from storm_operator.cli import COMMANDS, app\n"
        "text = CliRunner().invoke(app, ['--help']).output\n"
        "assert all(name in text for name in COMMANDS), text"
    )
    assert not [name for name in loaded if name.startswith("storm_operator.") and name not in OWN]


def test_agent_does_not_import_numpy() -> None:
    loaded = modules_after(
        "from typer.testing import CliRunner\n"
        "from storm_operator.cli import app\n"
        "done = CliRunner().invoke(app, ['agent', '--help'])\n"
        "assert done.exit_code == 0, done.output"
    )
    assert "storm_operator.agent.commands" in loaded
    assert not {"numpy", "scipy", "networkx"} & loaded


@pytest.mark.parametrize("arguments", ["plan --snapshot examples/snapshots/wordcount.json", "agent", "--version"])
def test_a_closed_stdout_is_a_sentence_for_every_command(arguments: str) -> None:
    closed = f"exec '{sys.executable}' -m storm_operator {arguments} >&-"
    done = subprocess.run(["sh", "-c", closed], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "storm-operator: stdout is closed: say where the output goes, as with > /dev/null\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments",
    [
        "storm_operator --help",
        "storm_operator --version",
        "storm_operator local up --help",
        "storm_operator.agent --help",
        "storm_pipeline ingest --help",
    ],
)
def test_help_that_cannot_be_written_is_a_sentence(arguments: str, unbuffered: str) -> None:
    done = run_on_full_disk(*arguments.split(), unbuffered=unbuffered)
    assert done.returncode == 1
    told = arguments.rpartition(" ")[0]
    assert done.stderr == f"python -m {told}: the output cannot be written: No space left on device\n"


def test_a_page_of_a_simulation_that_nobody_can_be_told_of_ends_in_a_sentence() -> None:
    simulate = ("storm_operator", "simulate", str(SCENARIO), "--page", "--page-port", "0")
    done = run_on_full_disk(*simulate, unbuffered="1")
    assert done.returncode == 1
    assert done.stderr == "storm-operator simulate: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["status", "-o", "x"], "Invalid value for '--output' / '-o': 'x' is not one of 'table', 'json'."),
        (["local", "status", "-o", "x"], "Invalid value for '--output' / '-o': 'x' is not one of 'table', 'json'."),
        (
            ["plan", "--separation", "x"],
            "Invalid value for '--separation': 'x' is not one of 'Always', 'Never', 'Auto'.",
        ),
    ],
)
def test_what_is_wrong_with_an_option_is_said_without_the_words_of_a_library(arguments: list[str], words: str) -> None:
    refused = RUNNER.invoke(app, arguments)
    assert refused.exit_code == 2
    assert refused.output.splitlines()[-1] == f"Error: {words}"


@pytest.mark.parametrize("name", COMMANDS)
def test_command_can_be_imported(name: str) -> None:
    assert load_available(PROGRAM, name, COMMANDS[name]) is not None


@pytest.mark.parametrize("name", JOBS)
def test_job_can_be_imported(name: str) -> None:
    assert load_job(name).name == name


@pytest.mark.parametrize(
    "target", ["storm_operator.no_such_module:command", "storm_operator.cli:no_such_function", "no_such_package:x"]
)
def test_missing_command_says_so_and_leaves_the_others_alone(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "broken", LazyCommand(target, "Broken."))
    broken = RUNNER.invoke(app, ["broken", "up", "--fast"])
    assert broken.exit_code == 1
    assert "broken is not available in this installation" in broken.output
    assert RUNNER.invoke(app, ["plan", "--help"]).exit_code == 0


@pytest.mark.parametrize(
    ("program", "words"),
    [
        *(pytest.param(app, [name], id=name) for name in COMMANDS),
        *(pytest.param(app, ["local", name], id=f"local-{name}") for name in ("up", "down", "status")),
        *(pytest.param(pipeline, [name], id=f"pipeline-{name}") for name in JOBS),
    ],
)
def test_help_fills_80_columns_and_cuts_nothing_off(program: Typer, words: list[str]) -> None:
    told = RUNNER.invoke(program, [*words, "--help"], env={"COLUMNS": "80"}).output
    assert "…" not in told
    assert max(len(line) for line in told.splitlines()) <= 80
    # What stands before the options are sentences: no line of theirs ends where the next one's first word had room.
    sentences = told.partition("\n\n")[2].partition("\nOptions:")[0].partition("\nArguments:")[0].splitlines()
    assert sentences
    for line, following in pairwise(sentences):
        if line.strip() and following.strip():
            assert len(line) + 1 + len(following.split()[0]) > 78, line


def test_unknown_command_is_bad_usage() -> None:
    assert RUNNER.invoke(app, ["fly"]).exit_code == 2


def test_version() -> None:
    assert RUNNER.invoke(app, ["--version"]).output.startswith("storm-operator 0.")


def test_the_agents_own_program_has_the_help_of_the_command() -> None:
    alone, command = (
        subprocess.run(
            [sys.executable, "-m", *words, "--help"],
            env={**os.environ, "COLUMNS": "80"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.partition("\n")
        for words in (["storm_operator.agent"], ["storm_operator", "agent"])
    )
    assert alone[1:] == command[1:]

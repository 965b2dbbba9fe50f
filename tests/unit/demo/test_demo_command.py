"""`storm-operator demo`: what cannot be is said before anything is played."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
import typer
from typer.testing import CliRunner

from storm_operator.cli import app
from storm_operator.demo import commands
from storm_operator.demo.ended import Ended
from storm_operator.demo.run import DemoError, run_demo
from storm_operator.local import build


@pytest.fixture(autouse=True)
def nothing_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("run_demo", "play_simulated", "play_beside_page"):
        monkeypatch.delattr(commands, name)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--pace", "5"], "--pace is for --page"),
        (["--simulated", "--pace", "5"], "--pace is for --page"),
        (["--simulated", "--page-port", "0"], "--page-port is for --page"),
        (["--page"], "--page needs --simulated"),
        (["--minutes", "inf"], "Input should be less than or equal to 1440"),
        (["--minutes", "1e9"], "Input should be less than or equal to 1440"),
        (["--output", "/proc/demo"], "--output: /proc/demo is no folder that can be written to"),
        (["--simulated", "--output", "/proc/demo"], "--output: /proc/demo is no folder that can be written to"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_played(arguments: list[str], words: str) -> None:
    done = CliRunner().invoke(app, ["demo", *arguments], env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert words in done.output


def test_what_a_program_said_of_its_failure_is_shown_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> NoReturn:
        raise DemoError("[main] INFO o.a.s.Client - nobody answers [/127.0.0.1:6627]")

    monkeypatch.setattr(commands, "run_demo", fails, raising=False)
    done = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)], env={"COLUMNS": "300"})
    assert done.output == ("the demo could not go on: [main] INFO o.a.s.Client - nobody answers [/127.0.0.1:6627]\n")
    assert done.exit_code == 1


def test_where_there_are_no_sources_the_way_without_them_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where it is installed: the demo takes no path of a jar."""
    monkeypatch.setattr(commands, "run_demo", run_demo, raising=False)
    monkeypatch.setattr(build, "repository_root", lambda: None)
    done = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)], env={"COLUMNS": "300"})
    assert done.exit_code == 1
    assert done.output.splitlines()[-1] == (
        "the demo could not go on: there are no sources here to build jars from: it takes a checkout of the repository "
        "(`storm-operator demo --simulated` takes none)"
    )


def test_a_file_is_no_folder_for_a_report(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for options in ([], ["--simulated"]):
        done = CliRunner().invoke(app, ["demo", *options, "--output", str(tmp_path / "file")], env={"COLUMNS": "300"})
        assert done.exit_code == 2
        assert "is no folder that can be written to" in done.output
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize(("compared", "code"), [(True, 0), (False, 3)])
def test_the_exit_code_tells_whether_there_was_something_to_compare(
    compared: bool, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        commands, "run_demo", lambda *_: Ended(tmp_path / "report.html", compared=compared), raising=False
    )
    done = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)], env={"COLUMNS": "300"})
    assert done.exit_code == code
    assert done.output.startswith(f"report: {tmp_path}/report.html and ")


def test_what_cannot_be_shown_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "run_demo", lambda *told: told[-1].print("begun"), raising=False)
    with Path("/dev/full").open("w", buffering=1) as full, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", full)
        with pytest.raises(typer.Exit) as ended:
            commands.demo(output=tmp_path)
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err == "storm-operator demo: the output cannot be written: No space left on device\n"

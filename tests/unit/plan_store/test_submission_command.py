"""The command line of a submission, and what a failed one's output means. No JVM here."""

from __future__ import annotations

import sys
import tempfile
import time
import zipfile
from pathlib import Path

import pytest

from storm_operator.adapters.errors import (
    AdapterError,
    InvalidTopology,
    MainClassMissing,
    NimbusUnreachable,
    NotAJar,
    SubmissionError,
    SubmissionFailed,
    SubmissionTimedOut,
    TopologyAlreadyAlive,
)
from storm_operator.adapters.submission import (
    FluxSubmission,
    JarSubmission,
    StormClientHome,
    check_jar,
    command,
    explain_failure,
    storm_options,
    submit_flux,
    submit_jar,
)

WORDS = JarSubmission(Path("/jars/words.jar"), "Words", ("words", "--fast"), {"topology.workers": 2})


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "words.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Words.class", b"")
    return path


@pytest.fixture
def home(tmp_path: Path) -> StormClientHome:
    """A Storm client whose java is a Python script, taking the place of the JVM."""
    (tmp_path / "lib-worker").mkdir()
    (tmp_path / "storm.yaml").write_text("nimbus.seeds: [n1]\n", encoding="utf-8")
    return StormClientHome(tmp_path, tmp_path, jvm_options=())


def with_java(home: StormClientHome, script: str) -> StormClientHome:
    java = home.storm_home / "java"
    java.write_text(f"#!{sys.executable}\n{script}\n", encoding="utf-8")
    java.chmod(0o755)
    return StormClientHome(home.storm_home, home.conf_dir, str(java), ())


def test_the_command_is_what_storm_jar_runs(home: StormClientHome) -> None:
    parts = command(WORDS, home)
    assert parts[-3:] == ("Words", "words", "--fast")
    assert "-Dstorm.jar=/jars/words.jar" in parts
    assert "-Dstorm.options=topology.workers%3D2" in parts
    class_path = parts[parts.index("-cp") + 1].split(":")
    assert class_path == [
        f"{home.storm_home}/lib-worker/*",
        f"{home.storm_home}/extlib/*",
        "/jars/words.jar",
        str(home.conf_dir),
    ]


def test_options_survive_commas_spaces_and_quotes() -> None:
    assert storm_options({"b": [1, "x,y"], "a": "c d"}) == "a%3D%22c+d%22,b%3D%5B1%2C+%22x%2Cy%22%5D"


@pytest.mark.parametrize("name", ["words", "count of words"])
def test_what_was_submitted_is_read_from_the_log(jar: Path, home: StormClientHome, name: str) -> None:
    home = with_java(
        home, f"print('x INFO StormSubmitter - Finished submitting topology: {name} \\nx INFO Words - done')"
    )
    assert submit_jar(JarSubmission(jar, "Words"), home).topology_names == (name,)


def test_a_main_class_that_submits_nothing_has_failed(jar: Path, home: StormClientHome) -> None:
    with pytest.raises(SubmissionFailed, match="Words ended without submitting a topology"):
        submit_jar(JarSubmission(jar, "Words"), with_java(home, "print('usage: ...')"))


def test_a_main_class_that_throws_shows_its_exception_and_the_end_of_its_log(jar: Path, home: StormClientHome) -> None:
    java = with_java(
        home,
        "import sys\n"
        "print('line\\n' * 100)\n"
        "sys.exit('Exception in thread \"main\" java.lang.IllegalStateException: no rates\\n\\tat Words.main(W:1)')",
    )
    with pytest.raises(SubmissionFailed) as caught:
        submit_jar(JarSubmission(jar, "Words"), java)
    assert "Words failed with exit code 1: java.lang.IllegalStateException: no rates\n" in str(caught.value)
    assert caught.value.log_tail.endswith("at Words.main(W:1)")
    assert caught.value.log_tail.count("\n") < 30


@pytest.mark.slow
def test_a_main_class_that_hangs_is_stopped_with_its_children(jar: Path, home: StormClientHome, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    java = with_java(
        home,
        "import os, signal, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)",
    )
    with pytest.raises(SubmissionTimedOut, match=r"did not end within 2 s and was stopped.*--submission-seconds"):
        submit_jar(JarSubmission(jar, "Words"), java, timeout_seconds=2.0)
    deadline = time.monotonic() + 10.0
    while any(_runs(pid) for pid in pids.read_text(encoding="utf-8").split()):
        assert time.monotonic() < deadline, "the stopped main class left processes behind"
        time.sleep(0.01)


def _runs(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("output", "expected", "message"),
    [
        ("Error: Could not find or load main class Words\n", MainClassMissing, "/jars/words.jar has no class Words"),
        ("Error: Main method not found in class Words, please", MainClassMissing, "with a main method"),
        (
            'Exception in thread "main" java.lang.RuntimeException: Topology name words is either not allowed or it '
            "already exists on the cluster\n\tat x",
            TopologyAlreadyAlive,
            "a topology words runs already",
        ),
        (
            "Topology name count of words is either not allowed or it already exists on the cluster",
            TopologyAlreadyAlive,
            "a topology count of words runs already",
        ),
        ("Caused by: AlreadyAliveException(msg:words)", TopologyAlreadyAlive, "runs already"),
        (
            "NimbusLeaderNotFoundException: Could not find leader nimbus from seed hosts [n1, n2]. Did you",
            NimbusUnreachable,
            r"among the seeds \[n1, n2\]",
        ),
        (
            'Exception in thread "main" InvalidTopologyException(msg:Component: [b] subscribes from non-existent)',
            InvalidTopology,
            "subscribes from non-existent",
        ),
        ("Killed", SubmissionFailed, "failed with exit code 1"),
    ],
)
def test_failures_are_told_apart(output: str, expected: type[AdapterError], message: str) -> None:
    error = explain_failure(WORDS, 1, output)
    assert type(error) is expected
    with pytest.raises(expected, match=message):
        raise error


def test_what_is_no_jar(tmp_path: Path) -> None:
    text = tmp_path / "notes.jar"
    text.write_text("not a jar", encoding="utf-8")
    with pytest.raises(NotAJar, match=r"notes\.jar is not a jar"):
        check_jar(text)
    with pytest.raises(NotAJar, match=r"no file .*gone\.jar"):
        check_jar(tmp_path / "gone.jar")
    with pytest.raises(NotAJar, match="cannot read"):
        check_jar(tmp_path)


def test_a_home_without_storm_or_java(jar: Path, tmp_path: Path, home: StormClientHome) -> None:
    with pytest.raises(SubmissionError, match="has neither lib-worker nor lib"):
        submit_jar(JarSubmission(jar, "Words"), StormClientHome(tmp_path / "nowhere", tmp_path))
    with pytest.raises(SubmissionError, match=r"no .*/nowhere/storm\.yaml; it must name nimbus\.seeds"):
        submit_jar(JarSubmission(jar, "Words"), StormClientHome(tmp_path, tmp_path / "nowhere"))
    with pytest.raises(SubmissionError, match=r"cannot run /no/java: No such file.*; install Java 17, and put"):
        submit_jar(JarSubmission(jar, "Words"), StormClientHome(tmp_path, tmp_path, "/no/java"))


@pytest.mark.parametrize("argument", ["a\0b", "\ud800"])
def test_an_argument_that_no_program_can_be_given_is_in_the_way_of_its_topology_alone(
    jar: Path, home: StormClientHome, argument: str
) -> None:
    java = with_java(home, "print('Finished submitting topology: words')")
    with pytest.raises(SubmissionFailed, match=r"an argument of Words is '.*': a text without NUL"):
        submit_jar(JarSubmission(jar, "Words", ("fine", argument)), java)


def test_a_command_line_that_is_too_long_is_not_put_down_to_java(jar: Path, home: StormClientHome) -> None:
    java = with_java(home, "print('Finished submitting topology: words')")
    longer_than_any = {"a": "x" * 200_000}
    with pytest.raises(SubmissionFailed, match=r"Argument list too long; .*spec\.config, must be shorter"):
        submit_jar(JarSubmission(jar, "Words", (), longer_than_any), java)


def test_where_no_temporary_file_can_be_written_the_submission_fails_and_nothing_else(
    jar: Path, home: StormClientHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = with_java(home, "print('Finished submitting topology: words')")
    monkeypatch.setattr(tempfile, "tempdir", str(jar.parent / "gone"))
    with pytest.raises(SubmissionFailed, match=r"no temporary file can be written for the submission: .*gone"):
        submit_jar(JarSubmission(jar, "Words"), java)
    with pytest.raises(SubmissionFailed, match=r"no temporary file can be written for the submission: .*gone"):
        submit_flux(FluxSubmission(jar, "name: words"), java)

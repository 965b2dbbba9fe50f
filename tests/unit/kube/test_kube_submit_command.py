"""What the submission Job runs: fetching the jar, handing it on, and telling what went wrong on the last line."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import psutil
import pytest
import typer
import yaml
from eventually import eventually

from http_server import serving
from storm_operator.adapters.errors import SubmissionFailed
from storm_operator.adapters.submission import FluxSubmission, JarSubmission, StormClientHome, Submitted
from storm_operator.kube import submit_command
from storm_operator.kube.submit_command import TOLD_TO_END, carry_out, download, submit

CONTENT = b"PK words" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
REQUEST: dict[str, Any] = {
    "topology": "words",
    "nimbus": "nimbus.storm:6627",
    "conf": {"topology.debug": True},
    "jar": {"path": "/opt/words.jar"},
    "mainClass": "a.Words",
    "args": ["--rate", "5"],
}


class Storm:
    """Stands for the JVM: remembers what it was given, and submits `names`."""

    def __init__(self) -> None:
        self.given: list[JarSubmission | FluxSubmission] = []
        self.timeouts_seconds: list[float] = []
        self.conf: Any = None
        self.names: tuple[str, ...] = ("words",)
        self.error: Exception | None = None

    def submit(
        self, submission: JarSubmission | FluxSubmission, home: StormClientHome, timeout_seconds: float
    ) -> Submitted:
        self.given.append(submission)
        self.timeouts_seconds.append(timeout_seconds)
        self.conf = yaml.safe_load((home.conf_dir / "storm.yaml").read_text())
        if self.error is not None:
            raise self.error
        return Submitted(self.names, "")


@pytest.fixture
def storm(monkeypatch: pytest.MonkeyPatch) -> Storm:
    storm = Storm()
    monkeypatch.setattr(submit_command, "submit_jar", storm.submit)
    monkeypatch.setattr(submit_command, "submit_flux", storm.submit)
    return storm


class TestDownload:
    def test_content_that_was_named_is_kept(self, tmp_path: Path) -> None:
        with serving(lambda _: (200, CONTENT)) as url:
            jar = download(f"{url}/words.jar", SHA256.upper(), tmp_path / "topology.jar")
        assert jar.read_bytes() == CONTENT

    def test_other_content_is_not_kept_and_both_hashes_are_told(self, tmp_path: Path) -> None:
        target = tmp_path / "topology.jar"
        with serving(lambda _: (200, b"something else")) as url, pytest.raises(SubmissionFailed) as caught:
            download(f"{url}/words.jar", SHA256, target)
        assert "spec.jar.sha256" in str(caught.value)
        assert SHA256 in str(caught.value)
        assert hashlib.sha256(b"something else").hexdigest() in str(caught.value)
        assert not target.exists()

    def test_missing_file_is_told_with_its_address(self, tmp_path: Path) -> None:
        with serving(lambda _: (404, b"")) as url, pytest.raises(SubmissionFailed, match=r"spec.jar.url: .*404"):
            download(f"{url}/words.jar", SHA256, tmp_path / "topology.jar")

    def test_server_that_is_not_there_is_told(self, tmp_path: Path) -> None:
        with serving(lambda _: (200, b"")) as url:
            pass
        with pytest.raises(SubmissionFailed, match="cannot be fetched"):
            download(f"{url}/words.jar", SHA256, tmp_path / "topology.jar")

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ((404, b""), "cannot be fetched: answered 404 Not Found"),
            ((302, b"http://127.0.0.1:1/b.jar?token=t0ken"), "cannot be fetched: ConnectionError: .*refused"),
            ((302, b"ftp://ci:s3cret@nexus/b.jar?token=t0ken"), "leads to, no address of a server"),
            ((200, b"something else"), "what http://127.0.0.1:[0-9]+/words.jar holds has sha256"),
        ],
        ids=["missing", "away", "elsewhere", "other content"],
    )
    def test_password_and_token_of_the_url_are_told_nobody(
        self, tmp_path: Path, answer: tuple[int, bytes], words: str
    ) -> None:
        """The Job's log is read by more people than the StormTopology, and goes into its status and events."""
        with serving(lambda path: answer if path == "/words.jar" else (404, b"")) as url:
            secret = url.replace("//", "//ci:s3cret@") + "/words.jar?token=t0ken"
            with pytest.raises(SubmissionFailed, match=words) as caught:
                download(secret, SHA256, tmp_path / "topology.jar")
        assert f"{url}/words.jar" in str(caught.value)
        assert not any(part in str(caught.value) for part in ("ci:", "s3cret", "t0ken", "?"))

    @pytest.mark.parametrize("url", ["http://ci:s3/cret@nexus/a.jar?token=t0ken", "http:///a.jar?token=t0ken"])
    def test_what_is_no_address_is_told_without_them_too(self, tmp_path: Path, url: str) -> None:
        with pytest.raises(SubmissionFailed, match=r"^spec\.jar\.url: .* no address of a server") as caught:
            download(url, SHA256, tmp_path / "topology.jar")
        assert not any(part in str(caught.value) for part in ("ci:", "s3", "cret", "t0ken"))


class TestCarryOut:
    def test_jar_is_submitted_with_its_arguments_to_the_nimbus(self, storm: Storm, tmp_path: Path) -> None:
        carry_out(REQUEST, Path("/opt/storm"), tmp_path)
        (given,) = storm.given
        assert given == JarSubmission(Path("/opt/words.jar"), "a.Words", ("--rate", "5"), {"topology.debug": True})
        assert storm.conf == {"nimbus.seeds": ["nimbus.storm"], "nimbus.thrift.port": 6627}

    def test_leader_is_looked_for_among_all_nimbuses_of_the_cluster_that_have_its_port(
        self, storm: Storm, tmp_path: Path
    ) -> None:
        others = ["nimbus2.example.com:6627", "nimbus3.example.com:7000"]
        carry_out({**REQUEST, "otherNimbuses": others}, Path("/opt/storm"), tmp_path)
        assert storm.conf == {"nimbus.seeds": ["nimbus.storm", "nimbus2.example.com"], "nimbus.thrift.port": 6627}

    def test_jar_is_fetched_first(self, storm: Storm, tmp_path: Path) -> None:
        with serving(lambda _: (200, CONTENT)) as url:
            request = {**REQUEST, "jar": {"url": f"{url}/words.jar", "sha256": SHA256}}
            carry_out(request, Path("/opt/storm"), tmp_path)
        (given,) = storm.given
        assert given.jar.read_bytes() == CONTENT

    def test_wrong_jar_is_not_submitted(self, storm: Storm, tmp_path: Path) -> None:
        with serving(lambda _: (200, b"other")) as url:
            request = {**REQUEST, "jar": {"url": f"{url}/words.jar", "sha256": SHA256}}
            with pytest.raises(SubmissionFailed):
                carry_out(request, Path("/opt/storm"), tmp_path)
        assert storm.given == []

    def test_flux_definition_is_submitted_as_one(self, storm: Storm, tmp_path: Path) -> None:
        carry_out({**REQUEST, "flux": "name: words"}, Path("/opt/storm"), tmp_path)
        assert storm.given == [FluxSubmission(Path("/opt/words.jar"), "name: words", {"topology.debug": True})]

    @pytest.mark.parametrize("flux", [None, "name: words"])
    def test_a_main_class_has_the_time_that_the_operator_gives_it(
        self, flux: str | None, storm: Storm, tmp_path: Path
    ) -> None:
        carry_out({**REQUEST, "flux": flux, "timeoutSeconds": 870}, Path("/opt/storm"), tmp_path)
        assert storm.timeouts_seconds == [870]

    def test_topology_of_another_name_is_told_with_what_to_change(self, storm: Storm, tmp_path: Path) -> None:
        storm.names = ("one", "two")
        with pytest.raises(SubmissionFailed, match=r"submitted one, two, not 'words'; .*spec.topologyName"):
            carry_out(REQUEST, Path("/opt/storm"), tmp_path)

    def test_a_flux_definition_names_its_topology_itself(self, storm: Storm, tmp_path: Path) -> None:
        storm.names = ("one",)
        with pytest.raises(SubmissionFailed, match=r"^the Flux definition submitted one, not 'words'; .* its name: "):
            carry_out({**REQUEST, "flux": "name: one"}, Path("/opt/storm"), tmp_path)


class TestCommand:
    @staticmethod
    def failure(request: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
        """The lines of the Job's log."""
        with pytest.raises(typer.Exit) as caught:
            submit(request, Path("/opt/storm"))
        assert caught.value.exit_code == 1
        return capsys.readouterr().err.rstrip().splitlines()

    def test_success_is_said(self, storm: Storm, capsys: pytest.CaptureFixture[str]) -> None:
        submit(json.dumps(REQUEST), Path("/opt/storm"))
        assert capsys.readouterr().err == "submitted words\n"

    def test_reason_is_the_last_line_after_the_log(self, storm: Storm, capsys: pytest.CaptureFixture[str]) -> None:
        # Of a log its end is kept.
        storm.error = SubmissionFailed("a.Words ended with exit code 1", "a line\nanother line\n")
        assert self.failure(json.dumps(REQUEST), capsys) == ["a line", "another line", "a.Words ended with exit code 1"]

    def test_reason_without_a_log_stands_alone(self, storm: Storm, capsys: pytest.CaptureFixture[str]) -> None:
        storm.error = SubmissionFailed("a.Words submitted nothing")
        assert self.failure(json.dumps(REQUEST), capsys) == ["a.Words submitted nothing"]

    @pytest.mark.parametrize("request_text", ["", "{", "{}", "[]", json.dumps({**REQUEST, "nimbus": "host:port"})])
    def test_request_that_is_none_is_told(
        self, storm: Storm, capsys: pytest.CaptureFixture[str], request_text: str
    ) -> None:
        (line,) = self.failure(request_text, capsys)
        assert "request cannot be read" in line or "host:port" in line
        assert request_text != "{}" or line.endswith(": it has no field 'nimbus'")
        assert storm.given == []


@pytest.mark.slow
def test_job_that_is_told_to_end_takes_its_jvm_with_it(tmp_path: Path) -> None:
    """As a deleted Job is, before what it began gets into Storm."""
    (tmp_path / "lib").mkdir()
    with zipfile.ZipFile(tmp_path / "words.jar", "w") as jar:
        jar.writestr("a/Words.class", "")
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; exec sleep 600\n")
    java.chmod(0o755)
    request = json.dumps({**REQUEST, "jar": {"path": str(tmp_path / "words.jar")}})
    command = [sys.executable, "-m", "storm_operator", "submit", "--storm-home", str(tmp_path)]
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    with subprocess.Popen(command, env=os.environ | {"STORM_OPERATOR_REQUEST": request, "PATH": path}) as submitting:
        eventually((tmp_path / "pid").exists, "the JVM runs")
        submitting.send_signal(signal.SIGTERM)
        assert submitting.wait() == TOLD_TO_END
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))

"""Submits a topology the way `storm jar` does: by running a JVM main class that calls StormSubmitter.

Flux definitions go through Flux's own main class, which the jar must bundle (`org.apache.storm:flux-core`) unless
Storm's class path has it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TypeVar
from urllib.parse import quote_plus

from storm_operator.adapters.errors import (
    AdapterError,
    InvalidTopology,
    MainClassMissing,
    NimbusUnreachable,
    NotAJar,
    SubmissionFailed,
    SubmissionTimedOut,
    TopologyAlreadyAlive,
)
from storm_operator.adapters.os_text import is_os_text
from storm_operator.core.model import read_only
from storm_operator.core.short_repr import short_repr

T = TypeVar("T")

FLUX_MAIN_CLASS = "org.apache.storm.flux.Flux"
DEFAULT_TIMEOUT_SECONDS = 120.0
MORE_TIME = (
    "Where a large jar or a slow Nimbus takes longer, give it more: --submission-seconds of storm-operator standalone, "
    "submission.deadlineSeconds of the operator's chart"
)
LOG_TAIL_LINES = 25
LOG_TAIL_BYTES = 200_000
STOP_GRACE_SECONDS = 5.0
ALREADY_ALIVE = re.compile(
    r"Topology name (?P<name>.+) is either not allowed or it already exists|AlreadyAliveException"
)
THROWN = re.compile(r'Exception in thread "main" (?P<thrown>.*?)(?=\n\s+at |\Z)', re.DOTALL)
SUBMITTED = re.compile(r"Finished submitting topology: (?P<name>.*\S)")
"""Storm takes names with spaces."""


@dataclass(frozen=True, slots=True)
class StormClientHome:
    """Where a Storm client finds its classes (`lib-worker/`, or `lib/`, and `extlib/`) and its storm.yaml."""

    storm_home: Path
    conf_dir: Path
    java: str = "java"
    jvm_options: tuple[str, ...] = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True, slots=True)
class JarSubmission:
    """A jar, the main class in it, its arguments, and Storm conf laid over storm.yaml (values as in JSON)."""

    jar: Path
    main_class: str
    args: tuple[str, ...] = ()
    conf_overrides: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "conf_overrides", read_only(self.conf_overrides))


@dataclass(frozen=True, slots=True)
class FluxSubmission:
    """A Flux definition (YAML text), and the jar with the classes that it names and with Flux itself."""

    jar: Path
    definition: str
    conf_overrides: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "conf_overrides", read_only(self.conf_overrides))


@dataclass(frozen=True, slots=True)
class Submitted:
    """What a main class submitted: the topologies' names in order, and the end of its output."""

    topology_names: tuple[str, ...]
    log_tail: str


def submit_jar(
    submission: JarSubmission, home: StormClientHome, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
) -> Submitted:
    """Runs the main class to its end and says what it submitted.

    Raises NotAJar, MainClassMissing, TopologyAlreadyAlive, InvalidTopology, NimbusUnreachable, SubmissionTimedOut, or
    SubmissionFailed when the main class throws or ends without submitting anything.
    """
    check_jar(submission.jar)
    check_home(home)
    check_arguments(submission)
    with _opened(tempfile.TemporaryFile) as log:
        exit_code = _run(command(submission, home), home, log, timeout_seconds)
        output = _end_of(log)
    if exit_code is None:
        raise SubmissionTimedOut(
            f"{submission.main_class} of {submission.jar} did not end within {timeout_seconds:g} s and was stopped; "
            f"whether it submitted its topology is for Nimbus to say. {MORE_TIME}",
            _tail(output),
        )
    names = tuple(match["name"] for match in SUBMITTED.finditer(output))
    if exit_code != 0 or not names:
        raise explain_failure(submission, exit_code, output)
    return Submitted(names, _tail(output))


def submit_flux(
    submission: FluxSubmission, home: StormClientHome, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
) -> Submitted:
    """Submits a Flux definition; errors as `submit_jar`. What is wrong in a definition is in SubmissionFailed's log."""
    with _opened(partial(tempfile.TemporaryDirectory, prefix="storm-operator-flux-")) as folder:
        path = Path(folder) / "topology.yaml"
        with _temporary_files():
            path.write_text(submission.definition, encoding="utf-8")
        arguments = ("--remote", "--no-splash", str(path))
        jar = JarSubmission(submission.jar, FLUX_MAIN_CLASS, arguments, submission.conf_overrides)
        return submit_jar(jar, home, timeout_seconds)


def check_jar(jar: Path) -> None:
    """Raises NotAJar unless `jar` is a readable zip file with at least one entry."""
    try:
        with zipfile.ZipFile(jar) as archive:
            if not archive.namelist():
                raise NotAJar(f"{jar} is an empty archive; give a jar with the topology's classes")
    except FileNotFoundError as error:
        raise NotAJar(f"no file {jar}; give the path of the topology's jar") from error
    except (zipfile.BadZipFile, UnicodeDecodeError, NotImplementedError) as error:  # also of names, or its version
        raise NotAJar(f"{jar} is not a jar ({error}); give a jar with the topology's classes") from error
    except OSError as error:
        raise NotAJar(f"cannot read {jar}: {error.strerror or error}") from error


def check_home(home: StormClientHome) -> None:
    """Raises SubmissionFailed unless Storm's classes and a storm.yaml are where `home` says."""
    if not any((home.storm_home / name).is_dir() for name in ("lib-worker", "lib")):
        raise SubmissionFailed(f"{home.storm_home} has neither lib-worker nor lib; give the folder of a Storm release")
    if not (home.conf_dir / "storm.yaml").is_file():
        raise SubmissionFailed(f"no {home.conf_dir / 'storm.yaml'}; it must name nimbus.seeds")


def check_arguments(submission: JarSubmission) -> None:
    """Raises SubmissionFailed for an argument that no program can be given."""
    for argument in submission.args:
        if not is_os_text(argument):
            raise SubmissionFailed(
                f"an argument of {submission.main_class} is {short_repr(argument)}: a text without NUL, and without"
                " half characters, is right"
            )


@contextmanager
def _opened(make: Callable[[], AbstractContextManager[T]]) -> Iterator[T]:
    with ExitStack() as stack:
        with _temporary_files():
            opened = stack.enter_context(make())
        yield opened


@contextmanager
def _temporary_files() -> Iterator[None]:
    """Around what needs some: a full disk is in the way of one submission, and of nothing else."""
    try:
        yield
    except OSError as error:
        raise SubmissionFailed(f"no temporary file can be written for the submission: {error}") from error


def command(submission: JarSubmission, home: StormClientHome) -> tuple[str, ...]:
    """Pure: the command line that `storm jar` would run."""
    libraries = [home.storm_home / name / "*" for name in ("lib-worker", "extlib")]
    if not (home.storm_home / "lib-worker").is_dir():
        libraries[0] = home.storm_home / "lib" / "*"
    class_path = [*map(str, libraries), str(submission.jar.absolute()), str(home.conf_dir)]
    return (
        home.java,
        *home.jvm_options,
        f"-Dstorm.home={home.storm_home}",
        f"-Dstorm.jar={submission.jar.absolute()}",
        f"-Dstorm.options={storm_options(submission.conf_overrides)}",
        "-Dstorm.conf.file=",
        "-Dstorm.dependency.jars=",
        "-Dstorm.dependency.artifacts={}",
        # Without a Log4j file of its own the JVM says only what went wrong; what was submitted is said at INFO.
        "-Dlog4j2.level=INFO",
        "-cp",
        os.pathsep.join(class_path),
        submission.main_class,
        *submission.args,
    )


def storm_options(overrides: Mapping[str, object]) -> str:
    """Storm's own form of overrides on a command line: `key=json`, URL-encoded, separated by commas."""
    return ",".join(quote_plus(f"{key}={json.dumps(value)}") for key, value in sorted(overrides.items()))


def explain_failure(submission: JarSubmission, exit_code: int, output: str) -> AdapterError:
    """Pure: the error that the submitting JVM's exit code and output speak of."""
    tail = _tail(output)
    main_class = submission.main_class
    if "Could not find or load main class" in output or "Main method not found in class" in output:
        return MainClassMissing(f"{submission.jar} has no class {main_class} with a main method", tail)
    alive = ALREADY_ALIVE.search(output)
    if alive:
        name = alive["name"] or "of that name"
        return TopologyAlreadyAlive(
            f"a topology {name} runs already: choose another name, here and where the topology is given it;"
            " or kill that one first"
        )
    if "NimbusLeaderNotFoundException" in output or "Could not find leader nimbus" in output:
        seeds = re.search(r"from seed hosts (?P<seeds>\[[^\]]*\])", output)
        where = seeds["seeds"].replace('"', "") if seeds else "of storm.yaml"
        return NimbusUnreachable(f"{main_class} found no leading Nimbus among the seeds {where}; check that one runs")
    if "InvalidTopologyException" in output:
        return InvalidTopology(f"Nimbus refuses the topology of {main_class}: {_thrown(output)}")
    if exit_code == 0:
        return SubmissionFailed(f"{main_class} ended without submitting a topology", tail)
    return SubmissionFailed(f"{main_class} failed with exit code {exit_code}: {_thrown(output)}".rstrip(": "), tail)


def _run(arguments: tuple[str, ...], home: StormClientHome, log: IO[bytes], timeout_seconds: float) -> int | None:
    """The exit code, or None when time ran out. The child has a session of its own, so that all of it can be ended."""
    environment = {**os.environ, "STORM_CONF_DIR": str(home.conf_dir)}
    try:
        child = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        right = "install Java 17, and put its `java` on PATH"
        if error.errno == errno.E2BIG:
            right = "the main class's arguments, or spec.config, must be shorter"
        raise SubmissionFailed(f"cannot run {home.java}: {error.strerror}; {right}") from error
    try:
        return child.wait(timeout_seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _stop(child)


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is not None:
        return
    os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(STOP_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _end_of(log: IO[bytes]) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - LOG_TAIL_BYTES))
    return log.read().decode("utf-8", errors="replace")


def _tail(output: str) -> str:
    return "\n".join(output.rstrip().splitlines()[-LOG_TAIL_LINES:])


def _thrown(output: str) -> str:
    """What the main thread died of: the exception with its message, without the stack."""
    match = THROWN.search(output)
    return " ".join(match["thrown"].split()) if match else ""

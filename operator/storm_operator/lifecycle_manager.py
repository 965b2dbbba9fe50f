"""Brings topologies to where their specs say, one step a pass: submits, replaces, suspends, resumes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from storm_operator.adapters.errors import AdapterError, SubmissionError
from storm_operator.adapters.submission import (
    FluxSubmission,
    JarSubmission,
    StormClientHome,
    check_jar,
    submit_flux,
    submit_jar,
)
from storm_operator.core.lifecycle import (
    FINGERPRINT_KEY,
    Action,
    Kill,
    Resume,
    RunningTopology,
    Submit,
    Suspend,
    Wait,
    by_name,
    fingerprint,
    next_action,
)
from storm_operator.core.topology_spec import AdoptSource, FluxSource, JarSource, TopologySpec

KILL_WAIT_SECONDS = 5
FIRST_RETRY_SECONDS = 10.0
SLOWEST_RETRY_SECONDS = 300.0


class TopologyCommands(Protocol):
    """What a lifecycle needs of Nimbus. Raises `AdapterError`."""

    def running(self) -> tuple[RunningTopology, ...]: ...

    def activate(self, topology_id: str) -> None: ...

    def deactivate(self, topology_id: str) -> None: ...

    def kill(self, name: str, wait_seconds: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Retry:
    """A topology whose last step failed: not tried again before `not_before_seconds`, unless its source changes."""

    identity: str
    not_before_seconds: float
    pause_seconds: float


@dataclass(slots=True)
class LifecycleManager:
    """`say` gets one sentence for each thing that was done, or could not be done."""

    storm: TopologyCommands
    home: StormClientHome | None
    say: Callable[[str], None]
    retries: dict[str, Retry] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    suspended: set[str] = field(default_factory=set)

    def step(self, specs: Mapping[str, TopologySpec], now_seconds: float) -> None:
        """One step for every topology that needs one. A failure of one is said and does not stop the others."""
        running = by_name(self.storm.running())
        for name in sorted(specs):
            wanted, obstacle = _fingerprint_or_obstacle(specs[name])
            identity = wanted or str(obstacle)
            if not self._may_try(name, identity, now_seconds):
                continue
            try:
                if obstacle is not None:
                    raise obstacle
                action = next_action(specs[name], running.get(name), wanted, name in self.suspended)
                self._carry_out(action, running.get(name))
                self.retries.pop(name, None)
            except AdapterError as error:
                self._put_off(name, identity, now_seconds, error)

    def _may_try(self, name: str, identity: str, now_seconds: float) -> bool:
        retry = self.retries.get(name)
        return retry is None or retry.identity != identity or now_seconds >= retry.not_before_seconds

    def _put_off(self, name: str, identity: str, now_seconds: float, error: AdapterError) -> None:
        last = self.retries.get(name)
        pause = FIRST_RETRY_SECONDS if last is None else min(last.pause_seconds * 2, SLOWEST_RETRY_SECONDS)
        self.retries[name] = Retry(identity, now_seconds + pause, pause)
        self._say_once(name, f"{name}: {error} (next try in {pause:.0f} s, or when its file or jar changes)")

    def _carry_out(self, action: Action | None, running: RunningTopology | None) -> None:
        match action:
            case Submit(spec, wanted):
                self.say(f"{spec.name}: submitting")
                self._submit(spec, wanted)
                self.say(f"{spec.name}: submitted")
            case Kill(name, reason):
                self.say(f"{name}: replaced, because {reason}; the old one gets {KILL_WAIT_SECONDS} s to finish")
                self.storm.kill(name, KILL_WAIT_SECONDS)
            case Suspend(name) if running is not None:
                self.storm.deactivate(running.id)
                self.suspended.add(name)
                self.say(f"{name}: suspended")
            case Resume(name) if running is not None:
                self.storm.activate(running.id)
                self.suspended.discard(name)
                self.say(f"{name}: resumed")
            case Wait(name, reason):
                self._say_once(name, f"{name}: {reason}")

    def _say_once(self, name: str, sentence: str) -> None:
        """The same sentence about the same topology is not repeated every period."""
        if self.said.get(name) != sentence.split(" (next try")[0]:
            self.said[name] = sentence.split(" (next try")[0]
            self.say(sentence)

    def _submit(self, spec: TopologySpec, wanted: str) -> None:
        if self.home is None:
            raise SubmissionError("no Storm client is configured; give --storm-home and --storm-conf-dir")
        conf = {**spec.config, FINGERPRINT_KEY: wanted}
        if isinstance(spec.source, JarSource):
            submission = JarSubmission(Path(spec.source.path), spec.source.main_class, spec.source.args, conf)
            _expect_name(spec.name, submit_jar(submission, self.home).topology_names)
        elif isinstance(spec.source, FluxSource):
            flux = FluxSubmission(Path(spec.source.jar), flux_definition(spec.source), conf)
            _expect_name(spec.name, submit_flux(flux, self.home).topology_names)


def _fingerprint_or_obstacle(spec: TopologySpec) -> tuple[str, AdapterError | None]:
    try:
        return source_fingerprint(spec), None
    except AdapterError as error:
        return "", error
    except OSError as error:  # a jar that is being replaced at this very moment
        return "", SubmissionError(f"the jar cannot be read: {error}")


def source_fingerprint(spec: TopologySpec) -> str:
    """See `core.lifecycle.fingerprint`; raises the adapters' errors when the jar cannot be read."""
    if isinstance(spec.source, AdoptSource):
        return "adopted"
    jar = Path(spec.source.path if isinstance(spec.source, JarSource) else spec.source.jar)
    check_jar(jar)
    stat = jar.stat()
    content = _jar_sha256(jar, stat.st_mtime_ns, stat.st_size)
    if isinstance(spec.source, FluxSource):
        content += hashlib.sha256(flux_definition(spec.source).encode()).hexdigest()
    return fingerprint(spec, content)


@lru_cache(maxsize=64)
def _jar_sha256(jar: Path, mtime_ns: int, size_bytes: int) -> str:
    """Read once for each version of the file: jars are large, and passes many."""
    with jar.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def flux_definition(source: FluxSource) -> str:
    """The definition's text, from the spec or from its file."""
    if source.definition is not None:
        return source.definition
    try:
        return Path(source.path or "").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SubmissionError(f"spec.flux.path: {source.path} cannot be read: {error}") from error


def _expect_name(wanted: str, submitted: tuple[str, ...]) -> None:
    if wanted not in submitted:
        raise SubmissionError(
            f"the main class submitted {', '.join(submitted)}, not {wanted!r}; give that name to it in its arguments,"
            " or its name to spec.topologyName"
        )

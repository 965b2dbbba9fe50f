"""Submits topologies by running a JVM on this machine, as `storm jar` does: the standalone way."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from storm_operator.adapters.errors import SubmissionError
from storm_operator.adapters.submission import (
    DEFAULT_TIMEOUT_SECONDS,
    FluxSubmission,
    JarSubmission,
    StormClientHome,
    check_jar,
    submit_flux,
    submit_jar,
)
from storm_operator.core.lifecycle import fingerprint, submission_conf
from storm_operator.core.topology_spec import AdoptSource, FluxSource, JarSource, TopologySpec


@dataclass(frozen=True, slots=True)
class JvmSubmitter:
    """`home` None: nothing can be submitted, only managed. A main class is ended after `timeout_seconds`."""

    home: StormClientHome | None
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS

    def fingerprint(self, spec: TopologySpec) -> str:
        """See `core.lifecycle.fingerprint`; raises the adapters' errors when the jar cannot be read."""
        return source_fingerprint(spec)

    def submit(self, spec: TopologySpec, wanted: str) -> bool:
        """Submit now; True once it is done. Raises `SubmissionError` and its kin."""
        if self.home is None:
            raise SubmissionError("no Storm client is configured; give --storm-home and --storm-conf-dir")
        conf = submission_conf(spec, wanted)
        if isinstance(spec.source, JarSource):
            submission = JarSubmission(Path(spec.source.path), spec.source.main_class, spec.source.args, conf)
            submitted = submit_jar(submission, self.home, self.timeout_seconds)
            _expect_name(spec.name, submitted.topology_names, BY_MAIN_CLASS)
        elif isinstance(spec.source, FluxSource):
            flux = FluxSubmission(Path(spec.source.jar), flux_definition(spec.source), conf)
            submitted = submit_flux(flux, self.home, self.timeout_seconds)
            _expect_name(spec.name, submitted.topology_names, BY_FLUX)
        return True

    def withdraw(self, spec: TopologySpec) -> bool:
        """`submit` ends with the submission: none is ever under way."""
        return True


def source_fingerprint(spec: TopologySpec) -> str:
    """See `core.lifecycle.fingerprint`; raises the adapters' errors when the jar cannot be read.

    Where the files lie takes no part, for what they contain does: a folder that is moved, or reached by another link,
    is no reason to kill what runs.
    """
    if isinstance(spec.source, AdoptSource):
        return "adopted"
    jar = Path(spec.source.path if isinstance(spec.source, JarSource) else spec.source.jar)
    check_jar(jar)
    try:
        stat = jar.stat()
        content = _jar_sha256(jar, stat.st_mtime_ns, stat.st_size, stat.st_ino)
    except OSError as error:  # a jar that is being replaced at this very moment
        raise SubmissionError(f"the jar cannot be read: {error}") from error
    source: JarSource | FluxSource
    if isinstance(spec.source, FluxSource):
        content += hashlib.sha256(flux_definition(spec.source).encode()).hexdigest()
        source = replace(spec.source, jar="", path=None, definition=None)
    else:
        source = replace(spec.source, path="")
    return fingerprint(replace(spec, source=source), content)


@lru_cache(maxsize=64)
def _jar_sha256(jar: Path, mtime_ns: int, size_bytes: int, inode: int) -> str:
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


BY_MAIN_CLASS = ("the main class", "its arguments")
BY_FLUX = ("the Flux definition", "its name: field")
"""Who names a topology, and where another name is given to it."""


def _expect_name(wanted: str, submitted: tuple[str, ...], named: tuple[str, str]) -> None:
    who, where = named
    if wanted not in submitted:
        raise SubmissionError(
            f"{who} submitted {', '.join(submitted)}, not {wanted!r}; give that name to it in {where},"
            f" or its name to spec.topologyName. {', '.join(submitted)} runs now and nobody manages it: kill it first"
        )

"""`storm-operator submit`: what the submission Job runs. Fetches the jar if need be, then submits as `storm jar`."""

from __future__ import annotations

import hashlib
import json
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import requests
import typer
import yaml

from storm_operator.adapters.errors import AdapterError, SubmissionError, SubmissionFailed
from storm_operator.adapters.nimbus.connection import NimbusAddress
from storm_operator.adapters.submission import (
    DEFAULT_TIMEOUT_SECONDS,
    FluxSubmission,
    JarSubmission,
    StormClientHome,
    Submitted,
    submit_flux,
    submit_jar,
)
from storm_operator.core.http_reasons import innermost
from storm_operator.core.server_url import without_userinfo

DOWNLOAD_TIMEOUT_SECONDS = 60.0
TOLD_TO_END = 128 + signal.SIGTERM
CHUNK_BYTES = 1024 * 1024


def submit(
    request: Annotated[
        str, typer.Option(envvar="STORM_OPERATOR_REQUEST", help="What to submit, as JSON (made by the operator).")
    ],
    storm_home: Annotated[Path, typer.Option(envvar="STORM_HOME", help="The Storm installation.")] = Path("/opt/storm"),
) -> None:
    """Submit one topology and end: 0 when Nimbus has taken it, else 1 with the reason as the last line."""
    # The first process of a container has no usual answer to SIGTERM: a deleted Job would submit all the same.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TOLD_TO_END))
    try:
        wanted = _request(request)
        with tempfile.TemporaryDirectory(prefix="storm-operator-submit-") as folder:
            done = carry_out(wanted, storm_home, Path(folder))
    except (AdapterError, ValueError, KeyError) as error:
        print(_log_and_reason(error), file=sys.stderr)  # noqa: T201 - this is the Job's log
        raise typer.Exit(1) from error
    print(f"submitted {', '.join(done.topology_names)}", file=sys.stderr)  # noqa: T201


def _request(text: str) -> Mapping[str, Any]:
    wanted = json.loads(text)
    if not isinstance(wanted, dict):
        raise ValueError(f"{text} is no JSON object, such as the operator makes")
    return wanted


def _log_and_reason(error: Exception) -> str:
    if not isinstance(error, AdapterError):
        what = f"it has no field {error.args[0]!r}" if isinstance(error, KeyError) else str(error)
        return f"the request cannot be read: {what}"
    if not isinstance(error, SubmissionError) or not error.log_tail:
        return str(error)
    reason = str(error).removesuffix(error.log_tail.rstrip()).rstrip()
    return f"{error.log_tail.rstrip()}\n{reason}"  # the end of a log is what is kept of it


def carry_out(wanted: Mapping[str, Any], storm_home: Path, folder: Path) -> Submitted:
    """Submit what the request describes; `folder` is for temporary files. Raises the adapters' errors."""
    seconds = wanted.get("timeoutSeconds", DEFAULT_TIMEOUT_SECONDS)
    home = StormClientHome(storm_home, _write_conf(wanted["nimbus"], wanted.get("otherNimbuses", ()), folder))
    jar = _jar(wanted["jar"], folder)
    if wanted.get("flux") is not None:
        done = submit_flux(FluxSubmission(jar, wanted["flux"], wanted["conf"]), home, seconds)
    else:
        jar_and_class = JarSubmission(jar, wanted["mainClass"], tuple(wanted["args"]), wanted["conf"])
        done = submit_jar(jar_and_class, home, seconds)
    if wanted["topology"] not in done.topology_names:
        is_flux = wanted.get("flux") is not None
        who = "the Flux definition" if is_flux else "the main class"
        where = "its name: field" if is_flux else "spec.jar.args"
        raise SubmissionFailed(
            f"{who} submitted {', '.join(done.topology_names)}, not {wanted['topology']!r}; give that name"
            f" to it in {where}, or its name to spec.topologyName. {', '.join(done.topology_names)} runs now and"
            " nobody manages it: kill it first"
        )
    return done


def _write_conf(nimbus: str, others: Sequence[str], folder: Path) -> Path:
    """Storm has one port for all seeds."""
    address = NimbusAddress.parse(nimbus)
    seeds = [address, *(other for other in map(NimbusAddress.parse, others) if other.port == address.port)]
    conf = {"nimbus.seeds": [seed.host for seed in seeds], "nimbus.thrift.port": address.port}
    (folder / "storm.yaml").write_text(yaml.safe_dump(conf), encoding="utf-8")
    return folder


def _jar(jar: Mapping[str, str], folder: Path) -> Path:
    if "path" in jar:
        return Path(jar["path"])
    return download(jar["url"], jar["sha256"], folder / "topology.jar")


def download(url: str, sha256: str, target: Path) -> Path:
    """Fetch `url` into `target`, and keep it only if its content is the one that was named.

    What is said of it many may read: without the password and the token that the URL may have.
    """
    told, digest = without_userinfo(url).partition("?")[0], hashlib.sha256()
    fails = f"spec.jar.url: {told} cannot be fetched"
    try:
        with requests.get(url, stream=True, timeout=DOWNLOAD_TIMEOUT_SECONDS) as answer:
            if not answer.ok:
                raise SubmissionFailed(f"{fails}: answered {answer.status_code} {answer.reason}")
            with target.open("wb") as file:
                for chunk in answer.iter_content(CHUNK_BYTES):
                    digest.update(chunk)
                    file.write(chunk)
    except ValueError as error:  # also of what the server sends on to
        raise SubmissionFailed(f"{fails}: it is, or leads to, no address of a server") from error
    except requests.RequestException as error:
        raise SubmissionFailed(f"{fails}: {type(error).__name__}: {innermost(error)}") from error
    except OSError as error:
        raise SubmissionFailed(f"{fails}: {error}") from error
    if digest.hexdigest() != sha256.lower():
        target.unlink()
        raise SubmissionFailed(
            f"spec.jar.sha256: what {told} holds has sha256 {digest.hexdigest()}, not {sha256}; name the right one"
        )
    return target

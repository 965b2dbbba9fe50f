"""Whether a daemon ends again and again while the cluster is waited for, and what it said last."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ENDS_BORNE = 1
"""One end may be a neighbour's fault that was not there yet: the daemon is started again, and then finds it."""
LONGEST_TAIL_BYTES = 65_536
LOGGED_ERROR = re.compile(r"^\d{4}-\d\d-\d\d .* \[(?:ERROR|FATAL)\] ")
LOGGED = re.compile(r"^\d{4}-\d\d-\d\d .* \[[A-Z]+\] ")
THROWN = re.compile(r"^(?:Caused by: |Exception in thread \S+ )?[\w.$]+(?:Exception|Error)\b.*")
WRAPPER = re.compile(r"^java\.lang\.(?:Error|RuntimeException): (?=[\w.$]+(?:Exception|Error)\b)")

Daemons = Sequence[Mapping[str, Any]]
"""As the keeper tells them: `name`, `pid` (None: does not run), `starts`, `wanted`, `log`."""


def given_up(before: Daemons, now: Daemons) -> Mapping[str, Any] | None:
    """The first of the daemons that are meant to run that has ended more than `ENDS_BORNE` times in between."""
    starts = {daemon["name"]: max(daemon["starts"], 1) for daemon in before}
    for daemon in now:
        ends = daemon["starts"] - starts.get(daemon["name"], 1) + (0 if daemon["pid"] else 1)
        if daemon["wanted"] and ends > ENDS_BORNE:
            return daemon
    return None


def last_words(daemon: Mapping[str, Any]) -> str:
    """A sentence with the daemon's last error and the file in which it stands: its log, or else what it printed."""
    printed = Path(daemon["log"])
    for file in (printed.with_suffix(".log"), printed):
        error = last_error(_tail(file))
        if error:
            return f"{daemon['name']} ended: {error} (see {file})"
    return f"{daemon['name']} ended (see {printed})"


def last_error(text: str) -> str:
    """The last error of a log, with what was thrown; without one, the last line of what is no log."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    at = max((i for i, line in enumerate(lines) if LOGGED_ERROR.match(line)), default=None)
    if at is None:
        return _cause(lines) or (lines[-1] if lines and not LOGGED.match(lines[-1]) else "")
    after = next((i for i in range(at + 1, len(lines)) if LOGGED.match(lines[i])), len(lines))
    return _cause(lines[at + 1 : after]) or LOGGED.sub("", lines[at])


def _cause(lines: Sequence[str]) -> str:
    """What was thrown, and where that does not say it, what was at its root."""
    thrown = [WRAPPER.sub("", line.removeprefix("Caused by: ")) for line in lines if THROWN.match(line)]
    if not thrown:
        return ""
    return thrown[0] if thrown[-1] in thrown[0] else f"{thrown[0]}; caused by {thrown[-1]}"


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as log:
            log.seek(max(0, file.stat().st_size - LONGEST_TAIL_BYTES))
            return log.read().decode(errors="replace")
    except OSError:
        return ""

"""The API server's own account of who asked what of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

CONTROLLERS = "system:serviceaccounts:kube-system"
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    # A watch is one call, however long it lasts.
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "None", "userGroups": [CONTROLLERS]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True, slots=True)
class Call:
    """One answered request. `what` is the resource with its subresource, `name` empty for a list or a watch."""

    verb: str
    what: str
    name: str


def write_policy(file: Path) -> None:
    """JSON is YAML."""
    file.write_text(json.dumps(POLICY))


def read_calls(log: Path, user: str) -> tuple[Call, ...]:
    """A user's calls, oldest first. A line that is just being written is left for the next time."""
    if not log.exists():
        return ()
    lines = log.read_text().splitlines(keepends=True)
    events = (json.loads(line) for line in lines if line.endswith("\n") and user in line)
    return tuple(_call(event) for event in events if event["user"]["username"] == user)


def _call(event: dict[str, dict[str, str]]) -> Call:
    target = event.get("objectRef", {})
    what = "/".join(filter(None, (target.get("resource", "?"), target.get("subresource"))))
    return Call(str(event["verb"]), what, target.get("name", ""))

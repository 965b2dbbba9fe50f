"""What the administrator gives the pods of submission Jobs: resources, and where and with what they may start."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEADLINE_SECONDS = 300
START_SECONDS = 30
"""Of a Job's time this much, and no more than half of it, is for its pod to start: a main class that takes too long is
ended while its log can still be told, since Kubernetes takes away the pod of a Job that is over its time."""


class InvalidSubmissionPod(ValueError):
    """The settings are not what they should be; the message names the field and says what would be right."""


@dataclass(frozen=True, slots=True)
class SubmissionPod:
    """As in a pod's spec. Empty: the cluster's own defaults hold (LimitRange, default ServiceAccount, any node)."""

    resources: Mapping[str, Any] = field(default_factory=dict)
    """Of each container: the one that submits, and the one that copies the jar out of an image."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    image_pull_secrets: tuple[Mapping[str, str], ...] = ()
    """They must be there in the namespace of each StormTopology."""
    deadline_seconds: int = DEADLINE_SECONDS
    """A Job that has not ended by then is ended: pulling a large image for the first time may take longer."""

    @property
    def main_class_seconds(self) -> float:
        """A main class that has not ended by then is ended."""
        return max(self.deadline_seconds - START_SECONDS, self.deadline_seconds / 2)

    def container_fields(self) -> dict[str, Any]:
        return {"resources": dict(self.resources)} if self.resources else {}

    def pod_fields(self) -> dict[str, Any]:
        fields = {
            "nodeSelector": dict(self.node_selector),
            "tolerations": [dict(one) for one in self.tolerations],
            "imagePullSecrets": [dict(one) for one in self.image_pull_secrets],
        }
        return {name: value for name, value in fields.items() if value}


KNOWN = ("resources", "nodeSelector", "tolerations", "imagePullSecrets", "deadlineSeconds")


def parse_submission_pod(text: str) -> SubmissionPod:
    """From JSON, e.g. `{"nodeSelector": {"disk": "ssd"}}`. Raises `InvalidSubmissionPod`."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise InvalidSubmissionPod(f"not JSON: {error}") from None
    if not isinstance(given, dict):
        raise InvalidSubmissionPod(f"{text}: must be an object with any of {', '.join(KNOWN)}")
    unknown = sorted(set(given) - set(KNOWN))
    if unknown:
        raise InvalidSubmissionPod(f"{unknown[0]}: unknown; it may have {', '.join(KNOWN)}")
    selector = _object(given, "nodeSelector")
    for label, value in selector.items():
        if not isinstance(value, str):
            raise InvalidSubmissionPod(f"nodeSelector.{label}: {value!r} must be text")
    secrets = _objects(given, "imagePullSecrets")
    for number, secret in enumerate(secrets):
        if not isinstance(secret.get("name"), str):
            raise InvalidSubmissionPod(f"imagePullSecrets[{number}]: must name a Secret, as in {{'name': 'registry'}}")
    resources = _object(given, "resources")
    for name, amounts in resources.items():
        if name not in ("requests", "limits") or not isinstance(amounts, dict):
            raise InvalidSubmissionPod(f"resources.{name}: must be requests or limits, each an object of amounts")
    return SubmissionPod(resources, selector, _objects(given, "tolerations"), secrets, _deadline(given))


def _deadline(given: Mapping[str, Any]) -> int:
    value = given.get("deadlineSeconds", DEADLINE_SECONDS)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidSubmissionPod(f"deadlineSeconds: {value!r} must be a whole number of seconds, 1 or more")
    return value


def _object(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = given.get(name) or {}
    if not isinstance(value, dict):
        raise InvalidSubmissionPod(f"{name}: {value!r} must be an object")
    return value


def _objects(given: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], ...]:
    value = given.get(name) or []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InvalidSubmissionPod(f"{name}: {value!r} must be a list of objects")
    return tuple(value)

"""A StormTopology's metadata: its name, and whether it is paused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from storm_operator.adapters.resource_schema import Mistake
from storm_operator.core.short_repr import short_repr
from storm_operator.core.topology_spec import PAUSED_ANNOTATION

PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
OBJECT_NAME = re.compile(rf"{PART}(\.{PART})*")
LONGEST_NAME = 253


def metadata_mistakes(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> list[Mistake]:
    """What Kubernetes would refuse, or whoever needs the topology's name; of annotations those that are ours."""
    wrong = {
        ("metadata", "name"): _wrong_name(metadata.get("name"), spec),
        ("metadata", "annotations"): _wrong_annotations(metadata.get("annotations") or {}),
    }
    return [Mistake(path, words) for path, words in wrong.items() if words]


def is_paused(metadata: Mapping[str, Any]) -> bool:
    """Any value but `true` pauses nothing (see `idle_pause`)."""
    return (metadata.get("annotations") or {}).get(PAUSED_ANNOTATION) == "true"


def idle_pause(document: Mapping[str, Any]) -> list[str]:
    """Said where the annotation may have been meant to pause, and does not.

    Of files alone: a resource on Kubernetes that is invalid would be left for that, and deleted without a kill.
    """
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    value = annotations.get(PAUSED_ANNOTATION) if isinstance(annotations, dict) else None
    return [_wrong_pause(value)] if isinstance(value, str) and value not in ("true", "", "false") else []


def _wrong_name(name: object, spec: Mapping[str, Any]) -> str:
    """The object's own name must be such as Kubernetes takes: an RFC 1123 subdomain."""
    if name is None:
        return (
            ""
            if spec.get("topologyName")
            else "metadata.name is missing; give the topology's name there or in spec.topologyName"
        )
    if not isinstance(name, str):
        return f"metadata.name is {short_repr(name)}: a text is right; put it in quotes"
    if len(name) > LONGEST_NAME or OBJECT_NAME.fullmatch(name) is None:
        return (
            f"metadata.name is {short_repr(name)}: small letters, digits, - and . are right, a letter or a digit at "
            f"both ends of each part, {LONGEST_NAME} characters at most; spec.topologyName may have other characters"
        )
    return ""


def _wrong_annotations(annotations: object) -> str:
    """They are texts, as Kubernetes has it."""
    if not isinstance(annotations, dict):
        return f"metadata.annotations is {short_repr(annotations)}: texts by name are right"
    value = annotations.get(PAUSED_ANNOTATION)
    return "" if isinstance(value, str | None) else _wrong_pause(value)


def _wrong_pause(value: object) -> str:
    right = "'true' in quotes is right, or 'false', which pauses nothing"
    return f"metadata.annotations.{PAUSED_ANNOTATION} is {short_repr(value)}: {right}"

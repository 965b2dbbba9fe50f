"""A StormTopology's metadata: its name, and whether it is paused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from storm_operator.adapters.resource_schema import Mistake, topology_schema
from storm_operator.core.short_repr import short_repr
from storm_operator.core.topology_spec import PAUSED_ANNOTATION

PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
OBJECT_NAME = re.compile(rf"{PART}(\.{PART})*")
LONGEST_NAME = 253
OWN_PREFIX = "storm-operator.dev/"
"""Of annotations; those of the libraries that the operator is made with have longer ones."""

OBJECT_META = (
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""The fields of any Kubernetes object's metadata, as `kubectl get -o yaml` writes them."""


def metadata_mistakes(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> list[Mistake]:
    """What Kubernetes would refuse, or whoever needs the topology's name; of annotations those that are ours."""
    wrong = {
        ("metadata", "name"): _wrong_name(metadata.get("name"), spec),
        ("metadata", "annotations"): _wrong_annotations(metadata.get("annotations") or {}),
    }
    return [Mistake(path, words) for path, words in wrong.items() if words]


def is_paused(metadata: Mapping[str, Any]) -> bool:
    """Any value but `true` pauses nothing (see `idle_metadata`)."""
    return (metadata.get("annotations") or {}).get(PAUSED_ANNOTATION) == "true"


def idle_metadata(document: Mapping[str, Any]) -> list[str]:
    """Of what may have been meant to do something, and does not: another value to pause, unknown names.

    Files are refused for it. A resource on Kubernetes is told: one that is invalid would be left for that, and deleted
    without a kill.
    """
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return []
    annotations = metadata.get("annotations")
    own = annotations if isinstance(annotations, dict) else {}
    return [*idle_annotations(own), *_unknown_fields(metadata)]


def idle_annotations(annotations: Mapping[Any, Any]) -> list[str]:
    """Of a StormTopology's, those of ours that do nothing."""
    return [*_idle_pause(annotations.get(PAUSED_ANNOTATION)), *unknown_annotations(annotations, PAUSED_ANNOTATION)]


def unknown_annotations(annotations: Mapping[Any, Any], known: str) -> list[str]:
    """Of those with our prefix all but the one that is `known`."""
    ours = sorted(name for name in map(str, annotations) if name.startswith(OWN_PREFIX) and name != known)
    return [f"metadata.annotations: unknown annotation {name}; known is {known}" for name in ours]


def _idle_pause(value: object) -> list[str]:
    return [_wrong_pause(value)] if isinstance(value, str) and value not in ("true", "", "false") else []


def _unknown_fields(metadata: Mapping[Any, Any]) -> list[str]:
    unknown = sorted({*map(str, metadata)} - {*OBJECT_META})
    if not unknown:
        return []
    of_spec = topology_schema()["properties"]["spec"]["properties"]
    named = ", ".join(f"{name}, which is one of spec" if name in of_spec else name for name in unknown)
    return [f"metadata: unknown field {named}; known are {', '.join(OBJECT_META)}"]


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

"""StormTopology documents (YAML or already parsed) to `TopologySpec`, checked against the CRD's schema and rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from storm_operator.adapters.kubernetes_only import refuse_kubernetes_only
from storm_operator.adapters.os_text import is_os_text
from storm_operator.adapters.resource_rules import check_rules
from storm_operator.adapters.resource_schema import (
    TOO_DEEP,
    InvalidResource,
    UnreadableResource,
    check_schema,
    crd_file,
    topology_schema,
    value_in_words,
    with_defaults,
)
from storm_operator.adapters.resource_settings import parallelism_spec, resource_settings, scheduling_settings
from storm_operator.adapters.yaml_text import InvalidYaml, SeveralDocuments, yaml_document, yaml_documents
from storm_operator.core.nimbus_name import with_nimbus_port
from storm_operator.core.short_repr import short_repr
from storm_operator.core.topology_spec import (
    PAUSED_ANNOTATION,
    AdoptSource,
    ConfigMapKey,
    DeletionPolicy,
    FluxSource,
    JarSource,
    ScaleLimits,
    StatefulSpec,
    TopologySource,
    TopologySpec,
)
from storm_operator.folders import is_folder, is_pipe

__all__ = [
    "API_VERSION",
    "KIND",
    "SUFFIXES",
    "InvalidResource",
    "UnreadableResource",
    "crd_file",
    "files_of",
    "parse_topology",
    "read_documents",
    "read_topology_file",
    "topology_files",
    "topology_schema",
]

T = TypeVar("T")

API_VERSION = "storm-operator.dev/v1alpha1"
KIND = "StormTopology"
PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
OBJECT_NAME = re.compile(rf"{PART}(\.{PART})*")
LONGEST_NAME = 253
SUFFIXES = (".yaml", ".yml")
"""Of the files in a folder that may describe topologies."""


def topology_files(path: Path) -> list[Path]:
    """The files of a folder that may describe topologies, sorted; of what is no folder that one. OSError."""
    return files_of(path) if is_folder(path) else [path]


def files_of(folder: Path) -> list[Path]:
    """Those in a folder that may describe topologies, sorted; no pipe is one. OSError."""
    return sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES and not is_pipe(file))


def read_topology_file(path: Path) -> TopologySpec:
    """The StormTopology in a YAML file, to be managed without Kubernetes; paths in it are relative to its folder.

    Raises `InvalidResource`, whose message begins with the file's name; `UnreadableResource` where only that is wrong.
    """
    document: Any = None
    try:
        document = _parsed(path, yaml_document)
        spec = parse_topology(document, base_folder=path.parent)
        refuse_kubernetes_only(document["spec"])
        refuse_idle_pause(spec, document)
    except InvalidResource as error:
        raise type(error)(f"{path.name}: {error.in_one_sentence}", topology=_topology_named_in(document)) from error
    return spec


def _topology_named_in(document: object) -> str:
    """Whatever else is wrong with it; empty where that cannot be told."""
    spec, metadata = (document.get(key) if isinstance(document, dict) else None for key in ("spec", "metadata"))
    if not isinstance(spec, dict) or not isinstance(metadata, dict):
        return ""
    name = spec.get("topologyName") or metadata.get("name")
    return name if isinstance(name, str) else ""


def read_documents(path: Path) -> list[object]:
    """All documents of a YAML file, of whatever kind; of a list, as `kubectl get` writes one, those that are in it.

    Raises `InvalidResource`.
    """
    return [one for document in _parsed(path, yaml_documents) for one in _listed(document)]


def _listed(document: object) -> list[object]:
    items = document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else None
    return items if items and isinstance(items, list) else [document]


def _parsed(path: Path, parse: Callable[[str], T]) -> T:
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableResource(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidResource(f"cannot be read: {error}") from error
    except SeveralDocuments as error:
        raise InvalidResource(f"{error}: give each a file of its own") from error
    except InvalidYaml as error:
        raise InvalidResource(f"not valid YAML: {error}") from error


def parse_topology(document: object, base_folder: Path | None = None) -> TopologySpec:
    """A parsed StormTopology document as a `TopologySpec`; relative paths are taken from `base_folder`.

    What it says under `status` is not looked at. Raises `InvalidResource`.
    """
    try:
        return _topology_in(document, base_folder)
    except RecursionError:
        raise InvalidResource(TOO_DEEP) from None


def _topology_in(document: object, base_folder: Path | None) -> TopologySpec:
    if document is None:
        raise InvalidResource("the document is empty; a StormTopology (a mapping) is expected")
    if not isinstance(document, dict):
        found = "a list" if isinstance(document, list) else short_repr(document)
        raise InvalidResource(f"the document is {found}; a StormTopology (a mapping) is expected")
    _expect(document, "apiVersion", API_VERSION)
    _expect(document, "kind", KIND)
    wanted = {key: value for key, value in document.items() if key != "status"}
    check_schema(wanted, topology_schema())
    filled: dict[str, Any] = with_defaults(wanted, topology_schema())
    spec = filled["spec"]
    metadata = filled.get("metadata", {})
    given_name = _object_name(metadata)
    name = spec.get("topologyName") or given_name
    if name is None:
        raise InvalidResource("metadata.name is missing; give the topology's name there or in spec.topologyName")
    check_rules(filled, topology_schema())
    _check_config(spec["config"])
    return TopologySpec(
        name=name,
        source=_source(spec, base_folder),
        config=spec["config"],
        stateful=StatefulSpec(tuple(spec["stateful"]["stateful"]), tuple(spec["stateful"]["stateless"])),
        scheduling=scheduling_settings(spec["scheduling"]),
        resources=resource_settings(spec["resources"]),
        suspend=spec["suspend"],
        nimbus=_nimbus(spec.get("nimbus")),
        supervisors=_scale_limits(spec.get("supervisors")),
        parallelism=parallelism_spec(spec["parallelism"]),
        priority=int(spec["priority"]),
        kill_wait_seconds=int(spec["killWaitSeconds"]),
        deletion_policy=DeletionPolicy(spec["deletionPolicy"]) if "deletionPolicy" in spec else None,
        rebalance_history_limit=int(spec["rebalanceHistoryLimit"]),
        learned_profile=_config_map_key(spec["learnedProfile"]["configMap"]) if "learnedProfile" in spec else None,
        is_paused=_is_paused(metadata),
    )


def _expect(document: Mapping[str, Any], field: str, value: str) -> None:
    if document.get(field) != value:
        found = value_in_words(document[field]) if field in document else "missing"
        raise InvalidResource(f"{field} is {found}; it must be {value!r}")


def _object_name(metadata: Mapping[str, Any]) -> str | None:
    """The object's own name, such as Kubernetes takes: an RFC 1123 subdomain."""
    name = metadata.get("name")
    if name is None:
        return None
    if not isinstance(name, str):
        raise InvalidResource(f"metadata.name is {short_repr(name)}: a text is right; put it in quotes")
    if len(name) > LONGEST_NAME or OBJECT_NAME.fullmatch(name) is None:
        raise InvalidResource(
            f"metadata.name is {short_repr(name)}: small letters, digits, - and . are right, a letter or a digit at "
            f"both ends of each part, {LONGEST_NAME} characters at most; spec.topologyName may have other characters"
        )
    return name


def _is_paused(metadata: Mapping[str, Any]) -> bool:
    """Annotations are texts, as Kubernetes has it; any but `true` pauses nothing (see `refuse_idle_pause`)."""
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, dict):
        raise InvalidResource(f"metadata.annotations is {short_repr(annotations)}: texts by name are right")
    value = annotations.get(PAUSED_ANNOTATION)
    if not isinstance(value, str | None):
        raise _wrong_pause(value)
    return value == "true"


def refuse_idle_pause(spec: TopologySpec, document: Mapping[str, Any]) -> None:
    """Raises `InvalidResource` where the annotation may have been meant to pause, and does not.

    Of files alone: a resource on Kubernetes that is invalid would be left for that, and deleted without a kill.
    """
    value = (document["metadata"].get("annotations") or {}).get(PAUSED_ANNOTATION)
    if not spec.is_paused and value not in (None, "", "false"):
        raise _wrong_pause(value)


def _wrong_pause(value: object) -> InvalidResource:
    right = "'true' in quotes is right, or 'false', which pauses nothing"
    return InvalidResource(f"metadata.annotations.{PAUSED_ANNOTATION} is {short_repr(value)}: {right}")


def _check_config(config: Mapping[str, Any]) -> None:
    for key, value in config.items():
        try:
            json.dumps(value)
        except TypeError:
            raise InvalidResource(
                f"spec.config.{key} is {short_repr(value)}, which has no form in JSON; put it in quotes"
            ) from None


def _nimbus(address: str | None) -> str | None:
    return None if address is None else with_nimbus_port(address)


def _source(spec: Mapping[str, Any], base_folder: Path | None) -> TopologySource:
    if "jar" in spec:
        jar = spec["jar"]
        path, origin = _location(jar, base_folder)
        return JarSource(path, jar["mainClass"], tuple(jar["args"]), **origin)
    if "flux" in spec:
        return _flux(spec["flux"], base_folder)
    return AdoptSource()


def _location(jar: Mapping[str, Any], base_folder: Path | None) -> tuple[str, dict[str, str]]:
    """Where the jar is: its path (empty: a URL has none), and the fields of `JarOrigin` that are not None."""
    if "url" in jar:
        return "", {"url": jar["url"], "sha256": jar["sha256"].lower()}
    if "persistentVolumeClaim" in jar:
        claim = jar["persistentVolumeClaim"]
        return claim["path"], {"claim": claim["claimName"]}
    return _from_folder(jar["path"], base_folder), {"image": jar["image"]} if "image" in jar else {}


def _flux(flux: Mapping[str, Any], base_folder: Path | None) -> FluxSource:
    jar, origin = _location(flux.get("jarFrom") or {"path": flux["jar"]}, base_folder)
    return FluxSource(
        jar,
        definition=yaml.safe_dump(flux["definition"], sort_keys=False) if "definition" in flux else None,
        path=_from_folder(flux["path"], base_folder) if "path" in flux else None,
        config_map=_config_map_key(flux["configMap"]) if "configMap" in flux else None,
        **origin,
    )


def _config_map_key(given: Mapping[str, Any]) -> ConfigMapKey:
    return ConfigMapKey(given["name"], given["key"])


def _from_folder(path: str, base_folder: Path | None) -> str:
    """Links on the way are left: where one leads may change while the document stays as it is."""
    if base_folder is None:
        return path
    if not is_os_text(path):
        raise InvalidResource(f"the path {short_repr(path)} is none that a file can have")
    return str((base_folder / path).absolute())


def _scale_limits(given: Mapping[str, Any] | None) -> ScaleLimits | None:
    if given is None:
        return None
    return ScaleLimits(int(given["minimum"]), int(given["maximum"]), given.get("statefulSet"))

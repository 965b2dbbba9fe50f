"""StormTopology documents (YAML or already parsed) to `TopologySpec`, checked against the CRD's schema and rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from storm_operator.adapters.kubernetes_only import kubernetes_only
from storm_operator.adapters.os_text import is_os_text
from storm_operator.adapters.resource_metadata import idle_metadata, is_paused, metadata_mistakes
from storm_operator.adapters.resource_rules import rule_mistakes
from storm_operator.adapters.resource_schema import (
    TOO_DEEP,
    InvalidResource,
    Mistake,
    UnreadableResource,
    crd_file,
    refuse,
    schema_mistakes,
    topology_schema,
    value_in_words,
    with_defaults,
    with_text_keys,
)
from storm_operator.adapters.resource_settings import (
    parallelism_spec,
    resource_settings,
    scheduling_mistakes,
    scheduling_settings,
)
from storm_operator.adapters.yaml_text import InvalidYaml, SeveralDocuments, yaml_document, yaml_documents
from storm_operator.core.nimbus_name import with_nimbus_port
from storm_operator.core.short_repr import short_repr
from storm_operator.core.topology_spec import (
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
ReadersRule = Callable[[Mapping[str, Any]], list[str]]
"""What of a document, as its user wrote it, is wrong for who reads it: sentences."""

API_VERSION = "storm-operator.dev/v1alpha1"
KIND = "StormTopology"
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
        return parse_topology(document, path.parent, (kubernetes_only, idle_metadata))
    except InvalidResource as error:
        raise type(error)(f"{path.name}: {error.in_one_sentence}", topology=_topology_named_in(document)) from error


def _topology_named_in(document: object) -> str:
    """Whatever else is wrong with it; empty where that cannot be told."""
    spec, metadata = (document.get(key) if isinstance(document, dict) else None for key in ("spec", "metadata"))
    if not isinstance(spec, dict) or not isinstance(metadata, dict):
        return ""
    name = spec.get("topologyName") or metadata.get("name")
    return name if isinstance(name, str) else ""


def whose(document: object, number: int, count: int) -> str:
    """What is put before a mistake of the StormTopology `number` (from 1) of `count` in a file: nothing if it is alone.

    NAMESPACE/NAME, as far as it has them.
    """
    if count == 1:
        return ""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    known = metadata if isinstance(metadata, dict) else {}
    names = [str(known[key]) for key in ("namespace", "name") if known.get(key)]
    return f"{'/'.join(names) if known.get('name') else f'number {number} of its StormTopologies'}: "


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


def parse_topology(
    document: object, base_folder: Path | None = None, rules: Sequence[ReadersRule] = ()
) -> TopologySpec:
    """A parsed StormTopology document as a `TopologySpec`; relative paths are taken from `base_folder`.

    What it says under `status` is not looked at. Raises `InvalidResource`, with all that can be told to be wrong;
    `rules` are those that whoever reads it has beyond the CRD's.
    """
    try:
        return _topology_in(document, base_folder, rules)
    except RecursionError:
        raise InvalidResource(TOO_DEEP) from None


def _topology_in(document: object, base_folder: Path | None, rules: Sequence[ReadersRule]) -> TopologySpec:
    if document is None:
        raise InvalidResource("the document is empty; a StormTopology (a mapping) is expected")
    if not isinstance(document, dict):
        found = "a list" if isinstance(document, list) else short_repr(document)
        raise InvalidResource(f"the document is {found}; a StormTopology (a mapping) is expected")
    _expect(document, "apiVersion", API_VERSION)
    _expect(document, "kind", KIND)
    wanted = with_text_keys({key: value for key, value in document.items() if key != "status"})
    filled: dict[str, Any] = with_defaults(wanted, topology_schema())
    further = (Mistake((), words) for rule in rules for words in rule(document))
    refuse((*_mistakes(wanted, filled), *further))
    spec = filled["spec"]
    metadata = filled.get("metadata", {})
    return TopologySpec(
        name=spec.get("topologyName") or metadata["name"],
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
        is_paused=is_paused(metadata),
    )


def _mistakes(document: Mapping[str, Any], filled: Mapping[str, Any]) -> list[Mistake]:
    """All that can be told at once: what follows from a mistake, or hides behind it, shows when that is mended."""
    schema = topology_schema()
    found = schema_mistakes(document, schema)
    spec, metadata = _section(filled, "spec"), filled.get("metadata", {})
    if isinstance(metadata, dict):
        found += metadata_mistakes(metadata, spec)
    found += rule_mistakes(filled, schema, found)
    found += scheduling_mistakes(_section(spec, "scheduling"), found)
    return found + _config_mistakes(_section(spec, "config"))


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Empty where it is no mapping, which the schema has told."""
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _expect(document: Mapping[str, Any], field: str, value: str) -> None:
    if document.get(field) != value:
        found = value_in_words(document[field]) if field in document else "missing"
        raise InvalidResource(f"{field} is {found}; it must be {value!r}")


def _config_mistakes(config: Mapping[str, Any]) -> list[Mistake]:
    found = []
    for key, value in config.items():
        try:
            json.dumps(value)
        except TypeError:
            words = f"spec.config.{key} is {short_repr(value)}, which has no form in JSON; put it in quotes"
            found.append(Mistake(("spec", "config", key), words))
    return found


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

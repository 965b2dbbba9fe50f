"""StormTopology documents (YAML or already parsed) to `TopologySpec`, checked against the CRD's own schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from storm_operator.core.placement.registry import check_parameters
from storm_operator.core.settings import (
    ApplyMethod,
    Enforcement,
    Mode,
    ResourceSettings,
    SchedulingSettings,
    Separation,
)
from storm_operator.core.topology_spec import (
    AdoptSource,
    FluxSource,
    JarSource,
    StatefulSpec,
    TopologySource,
    TopologySpec,
)

PACKAGE = Path(__file__).parent.parent
CRD_FOLDERS = (PACKAGE / "crds", PACKAGE.parent.parent / "crds")
"""Installed, the CRDs lie in the package; in a checkout, where kubectl takes them from."""
API_VERSION = "storm-operator.dev/v1alpha1"
KIND = "StormTopology"
S = TypeVar("S", SchedulingSettings, ResourceSettings)
SOURCES = ("jar", "flux", "adopt")

_ENUMS: Mapping[str, type] = {
    "mode": Mode,
    "apply_method": ApplyMethod,
    "separation": Separation,
    "enforcement": Enforcement,
}


_WHOLE_NUMBERS = ("history_periods",)


class InvalidResource(ValueError):
    """A document that is not a valid StormTopology; the message names the field, the value and what would be right."""


def crd_file(plural: str) -> Path:
    """The file that defines a resource, by the resource's plural."""
    files = (folder / f"{plural}.storm-operator.dev.yaml" for folder in CRD_FOLDERS)
    return next(file for file in files if file.is_file())


@cache
def topology_schema() -> Mapping[str, Any]:
    """The CRD's OpenAPI schema, closed: a field that it does not know is an error (the API server would prune it)."""
    crd = yaml.safe_load(crd_file("stormtopologies").read_text(encoding="utf-8"))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return cast("Mapping[str, Any]", _closed(schema))


def read_topology_file(path: Path) -> TopologySpec:
    """The StormTopology in a YAML file. Raises `InvalidResource`, whose message begins with the file's name."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidResource(f"{path.name}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise InvalidResource(f"{path.name}: not valid YAML: {' '.join(str(error).split())}") from error
    try:
        return parse_topology(document, base_folder=path.parent)
    except InvalidResource as error:
        raise InvalidResource(f"{path.name}: {error}") from error


def parse_topology(document: object, base_folder: Path | None = None) -> TopologySpec:
    """A parsed StormTopology document as a `TopologySpec`; relative paths are taken from `base_folder`."""
    if not isinstance(document, dict):
        raise InvalidResource(f"document is {type(document).__name__}; a StormTopology (a mapping) is expected")
    _expect(document, "apiVersion", API_VERSION)
    _expect(document, "kind", KIND)
    problem = best_match(Draft202012Validator(topology_schema()).iter_errors(document))
    if problem is not None:
        raise InvalidResource(_sentence(problem))
    spec = document["spec"]
    name = spec.get("topologyName") or (document.get("metadata") or {}).get("name")
    if not isinstance(name, str) or not name:
        raise InvalidResource("metadata.name is missing; give the topology's name there or in spec.topologyName")
    _check_config(spec.get("config") or {})
    scheduling = _settings(SchedulingSettings, spec.get("scheduling") or {})
    resources = _settings(ResourceSettings, spec.get("resources") or {})
    _check_settings(scheduling, resources)
    stateful = spec.get("stateful") or {}
    return TopologySpec(
        name=name,
        source=_source(spec, base_folder),
        config=spec.get("config") or {},
        stateful=StatefulSpec(tuple(stateful.get("stateful", ())), tuple(stateful.get("stateless", ()))),
        scheduling=scheduling,
        resources=resources,
        suspend=bool(spec.get("suspend", False)),
        nimbus=spec.get("nimbus"),
    )


def _expect(document: Mapping[str, Any], field: str, value: str) -> None:
    if document.get(field) != value:
        raise InvalidResource(f"{field} is {document.get(field)!r}; it must be {value!r}")


def _check_config(config: Mapping[str, Any]) -> None:
    for key, value in config.items():
        try:
            json.dumps(value)
        except TypeError:
            raise InvalidResource(
                f"spec.config.{key} is {value!r}, which has no form in JSON; put it in quotes"
            ) from None


def _check_settings(scheduling: SchedulingSettings, resources: ResourceSettings) -> None:
    """What no schema of single fields can tell."""
    try:
        check_parameters(scheduling.policy, scheduling.parameters)
    except ValueError as error:
        raise InvalidResource(f"spec.scheduling.parameters: {error}") from error
    if resources.floor_millicores > resources.ceiling_millicores:
        raise InvalidResource(
            f"spec.resources.floorMillicores is {resources.floor_millicores:g}; it must not be more than"
            f" ceilingMillicores, {resources.ceiling_millicores:g}"
        )
    if resources.enforcement is Enforcement.POD:
        raise InvalidResource("spec.resources.enforcement is 'Pod', which needs Kubernetes; say None or Executor")


def _source(spec: Mapping[str, Any], base_folder: Path | None) -> TopologySource:
    given = [name for name in SOURCES if name in spec]
    if len(given) != 1:
        found = " and ".join(f"spec.{name}" for name in given) or "none"
        raise InvalidResource(f"exactly one of spec.jar, spec.flux and spec.adopt is needed; found {found}")
    if "jar" in spec:
        jar = spec["jar"]
        return JarSource(_resolve(jar["path"], base_folder), jar["mainClass"], tuple(jar.get("args", ())))
    if "flux" in spec:
        return _flux(spec["flux"], base_folder)
    return AdoptSource()


def _flux(flux: Mapping[str, Any], base_folder: Path | None) -> FluxSource:
    if ("definition" in flux) == ("path" in flux):
        raise InvalidResource("exactly one of spec.flux.definition and spec.flux.path is needed")
    definition = yaml.safe_dump(flux["definition"], sort_keys=False) if "definition" in flux else None
    path = _resolve(flux["path"], base_folder) if "path" in flux else None
    return FluxSource(jar=_resolve(flux["jar"], base_folder), definition=definition, path=path)


def _resolve(path: str, base_folder: Path | None) -> str:
    return str((base_folder / path).resolve()) if base_folder is not None else path


def _settings(kind: type[S], given: Mapping[str, Any]) -> S:
    values: dict[str, Any] = {}
    known = {field.name for field in fields(kind)}
    for key, value in given.items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", key).lower()
        if name == "parameters":
            values[name] = tuple(sorted((k, float(v)) for k, v in value.items()))
        elif name in _ENUMS:
            values[name] = _ENUMS[name](value)
        elif name in known:
            values[name] = int(value) if name in _WHOLE_NUMBERS else value
    return kind(**values)


def _closed(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items() if key not in ("properties", "items")}
    if "items" in schema:
        closed["items"] = _closed(schema["items"])
    if "properties" in schema:
        closed["properties"] = {name: _closed(sub) for name, sub in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            closed.setdefault("additionalProperties", False)
    return closed


def _sentence(error: ValidationError) -> str:
    """jsonschema's message with the field's path in front, and without the whole document in it."""
    path = ".".join(str(part) for part in error.absolute_path) or "document"
    if error.validator == "additionalProperties":
        properties = cast("Mapping[str, Any]", error.schema).get("properties", {})
        extra = ", ".join(sorted(set(cast("Mapping[str, Any]", error.instance)) - set(properties)))
        return f"{path}: unknown field {extra}; known are {', '.join(sorted(properties))}"
    if error.validator == "required":
        return f"{path}: {error.message}"
    return f"{path} is {error.instance!r}: {error.message.removeprefix(repr(error.instance)).strip()}"

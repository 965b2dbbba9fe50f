"""What StormTopologies say of the topologies of one Nimbus, for a command that looks at it once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from storm_operator.adapters.resources import (
    KIND,
    InvalidResource,
    parse_topology,
    read_documents,
    topology_files,
    whose,
)
from storm_operator.core.nimbus_name import nimbus_name
from storm_operator.core.topology_spec import TopologySpec

USUAL_NAMESPACE = "default"


def read_told_specs(source: Path, nimbus: Collection[str], say: Callable[[str], None]) -> Mapping[str, TopologySpec]:
    """By topology name, those of these Nimbus in a folder or a file, which may be what `kubectl get -o yaml` writes.

    Those of another Nimbus are left out, and that is said. Raises `InvalidResource`, with the file's name.
    """
    specs: dict[str, TopologySpec] = {}
    topologies = list(_topologies(source))
    for path, document, beginning in topologies:
        try:
            spec = parse_topology(document, base_folder=path.parent)
        except InvalidResource as error:
            raise InvalidResource(f"{path}: {beginning}{error.in_one_sentence}") from error
        if not _is_of(nimbus, spec, document):
            say(f"{path}: {spec.name} is left out: spec.nimbus is {spec.nimbus}, not {', '.join(nimbus)}")
        elif spec.name in specs:
            raise InvalidResource(f"{path}: {spec.name} is described already; describe each topology once")
        else:
            specs[spec.name] = spec
    if not topologies:
        say(f"{source}: no {KIND} is in it")
    return specs


def _topologies(source: Path) -> Iterator[tuple[Path, dict[str, Any], str]]:
    """Each with its file, and what a mistake of it begins with."""
    for path in _files(source):
        try:
            documents = read_documents(path)
        except InvalidResource as error:
            raise InvalidResource(f"{path}: {error.in_one_sentence}") from error
        ours = [one for one in documents if isinstance(one, dict) and one.get("kind") == KIND]
        for number, document in enumerate(ours, 1):
            yield path, document, whose(document, number, len(ours))


def _files(source: Path) -> list[Path]:
    try:
        return topology_files(source)
    except OSError as error:
        raise InvalidResource(f"{source}: cannot be read: {error.strerror}") from error


def _is_of(nimbus: Collection[str], spec: TopologySpec, document: Mapping[str, Any]) -> bool:
    own, namespace = told_nimbus(spec, document), namespace_of(document)
    return own is None or own in {nimbus_name(one, namespace) for one in nimbus}


def told_nimbus(spec: TopologySpec, document: Mapping[str, Any]) -> str | None:
    """The one name of the Nimbus that a StormTopology's document, read as `spec`, is for; None where it names none."""
    return None if spec.nimbus is None else nimbus_name(spec.nimbus, namespace_of(document))


def namespace_of(document: Mapping[str, Any]) -> str:
    return str(document.get("metadata", {}).get("namespace") or USUAL_NAMESPACE)

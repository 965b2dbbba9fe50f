"""`storm-operator check`: whether StormTopology files are right, by the CRD's schema and rules, without a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from storm_operator.adapters.resource_metadata import idle_metadata
from storm_operator.adapters.resources import (
    API_VERSION,
    KIND,
    InvalidResource,
    parse_topology,
    read_documents,
    topology_files,
    whose,
)
from storm_operator.cli_output import written_out
from storm_operator.core.topology_spec import PAUSED_ANNOTATION
from storm_operator.told_specs import told_nimbus

EXIT_BAD_INPUT = 2
OTHER_KIND = "StormRebalance"
Topology = tuple[str | None, str]
"""A topology by Nimbus and name."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What is said of one StormTopology of a file, or of the file itself where it cannot be read: one line."""

    path: Path
    words: str
    is_right: bool = False
    topology: Topology | None = None
    """Of what is right alone."""


def check(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="YAML files, or folders of them (not their subfolders).")
    ],
) -> None:
    """Say of each StormTopology whether the operator would take it, and if not, what is wrong; exit code 2 then.

    Other kinds in a file are not looked at. A file or folder that is named must have a StormTopology, and no file be
    empty. What a cluster alone can tell is not checked: whether a jar, a ConfigMap or a component of that name is
    there.
    """
    found = [checked for path in paths for checked in _check_path(path)]
    with written_out("check"):
        for checked in found:
            typer.echo(f"{checked.path}: {checked.words}", err=not checked.is_right)
    if not all(checked.is_right for checked in found):
        raise typer.Exit(EXIT_BAD_INPUT)


def _check_path(path: Path) -> list[Checked]:
    """Of what was named something is always said: files that have to do with us are not found by themselves."""
    try:
        files = topology_files(path)
    except OSError as error:
        return [Checked(path, f"cannot be read: {error.strerror}")]
    found = _each_described_once([checked for file in files for checked in _check_file(file)])
    return found or [Checked(path, f"no {KIND} is in it{_other_kinds(files)}")]


def _other_kinds(files: Iterable[Path]) -> str:
    """Said where nothing was found: a name of a kind with a letter too few looks like another kind."""
    documents = [document for file in files for document in read_documents(file)]
    kinds = sorted({str(document["kind"]) for document in documents if isinstance(document, dict)})
    return f"; found were {', '.join(kinds)}" if kinds else ""


def _check_file(path: Path) -> list[Checked]:
    try:
        documents = read_documents(path)
    except InvalidResource as error:
        return [Checked(path, str(error))]
    ours = [document for document in documents if _is_ours(document)]
    if all(document is None for document in documents):
        ours = [None]
    told = ((document, whose(document, number, len(ours))) for number, document in enumerate(ours, 1))
    return [checked for document, beginning in told for checked in _check_document(path, document, beginning)]


def _is_ours(document: object) -> bool:
    """What is no resource at all was meant to be one of ours; what says that it is something else is not.

    A kind that our API does not have is one of its names with a letter too few.
    """
    if not isinstance(document, dict):
        return document is not None
    kind = document.get("kind", KIND)
    return kind == KIND or (document.get("apiVersion") == API_VERSION and kind != OTHER_KIND)


def _check_document(path: Path, document: object, beginning: str) -> list[Checked]:
    """All that is wrong with it, as far as it can be told at once, each with that `beginning`; or that nothing is."""
    try:
        spec = parse_topology(document, path.parent, (idle_metadata,))
    except InvalidResource as error:
        return [Checked(path, beginning + words) for words in (str(error), *error.others)]
    topology = (told_nimbus(spec, cast("Mapping[str, Any]", document)), spec.name)  # else there would be no spec of it
    paused = f"; it is paused by the annotation {PAUSED_ANNOTATION}, and left as it is" if spec.is_paused else ""
    return [Checked(path, f"{spec.name} is right{paused}", is_right=True, topology=topology)]


def _each_described_once(found: Sequence[Checked]) -> list[Checked]:
    """Of several that describe one topology all are wrong, as for standalone: which of them is meant nobody knows."""
    paths: dict[Topology, list[Path]] = {}
    for one in found:
        if one.topology is not None:
            paths.setdefault(one.topology, []).append(one.path)
    told = (_unless_again(one, paths[one.topology]) if one.topology is not None else one for one in found)
    return list(dict.fromkeys(told))


def _unless_again(checked: Checked, paths: Sequence[Path]) -> Checked:
    if checked.topology is None or len(paths) == 1:
        return checked
    others = dict.fromkeys(path.name for path in paths if path != checked.path)
    where = f"in {', '.join(others)}, too" if others else "more than once in this file"
    return Checked(checked.path, f"{checked.topology[1]} is described {where}; describe each topology once")

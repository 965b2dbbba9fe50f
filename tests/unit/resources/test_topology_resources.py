"""StormTopology documents: what is read, and the one message that a mistake gets."""

from __future__ import annotations

import datetime
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from storm_operator.adapters.resources import (
    API_VERSION,
    InvalidResource,
    parse_topology,
    read_topology_file,
    topology_schema,
)
from storm_operator.core.settings import ApplyMethod, ResourceSettings, SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, FluxSource, JarSource


def document(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "StormTopology", "metadata": {"name": "wc"}, "spec": spec}


def test_jar_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "wc.yaml"
    file.write_text(
        f"apiVersion: {API_VERSION}\nkind: StormTopology\nmetadata: {{name: wc}}\n"
        "spec: {jar: {path: lib/a.jar, mainClass: a.B, args: ['1']}, scheduling: {applyMethod: Drain}}\n"
    )
    spec = read_topology_file(file)
    assert spec.source == JarSource(str(tmp_path / "lib/a.jar"), "a.B", ("1",))
    assert spec.scheduling.apply_method is ApplyMethod.DRAIN


def test_inlined_flux_becomes_yaml_text() -> None:
    spec = parse_topology(document(flux={"jar": "a.jar", "definition": {"name": "x"}}))
    assert spec.source == FluxSource(jar="a.jar", definition="name: x\n")


def test_defaults_are_those_of_the_settings() -> None:
    spec = parse_topology(document(adopt={}))
    assert spec.source == AdoptSource()
    assert spec.scheduling == SchedulingSettings()
    assert spec.resources == ResourceSettings()


@pytest.mark.parametrize(
    ("section", "settings"), [("scheduling", SchedulingSettings()), ("resources", ResourceSettings())]
)
def test_crd_defaults_and_fields_equal_the_settings(section: str, settings: Any) -> None:
    properties = topology_schema()["properties"]["spec"]["properties"][section]["properties"]
    by_name = {
        "".join(["_" + c.lower() if c.isupper() else c for c in key]): value for key, value in properties.items()
    }
    expected = {field.name for field in fields(settings)} - {"weights"}
    assert set(by_name) == expected
    for name in expected - {"parameters"}:
        assert by_name[name]["default"] == getattr(settings, name), name


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, ["exactly one of spec.jar, spec.flux and spec.adopt", "none"]),
        ({"adopt": {}, "jar": {"path": "a", "mainClass": "b"}}, ["spec.jar and spec.adopt"]),
        ({"jar": {"path": "a"}}, ["spec.jar", "mainClass"]),
        ({"adopt": {}, "scheduling": {"policy": "best"}}, ["spec.scheduling.policy", "'best'", "adaptive"]),
        ({"adopt": {}, "scheduling": {"perriod": 1}}, ["spec.scheduling", "perriod", "periodSeconds"]),
        ({"adopt": {}, "scheduling": {"periodSeconds": -1}}, ["spec.scheduling.periodSeconds", "-1", "minimum"]),
        ({"adopt": {}, "nimbus": "nowhere"}, ["spec.nimbus", "nowhere"]),
        ({"adopt": {}, "scheduling": {"parameters": {"nope": 1}}}, ["spec.scheduling.parameters", "nope"]),
        ({"adopt": {}, "config": {"since": datetime.date(2024, 1, 1)}}, ["spec.config.since", "quotes"]),
        (
            {"adopt": {}, "resources": {"floorMillicores": 500, "ceilingMillicores": 100}},
            ["floorMillicores", "500", "100"],
        ),
        ({"adopt": {}, "resources": {"enforcement": "Pod"}}, ["spec.resources.enforcement", "Kubernetes"]),
        ({"flux": {"jar": "a"}}, ["spec.flux.definition", "spec.flux.path"]),
    ],
)
def test_a_mistake_gets_one_message_that_names_it(spec: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InvalidResource) as caught:
        parse_topology(document(**spec))
    for word in words:
        assert word in str(caught.value)


def test_yaml_that_is_none_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("a: [1, 2")
    with pytest.raises(InvalidResource, match=r"broken\.yaml: not valid YAML"):
        read_topology_file(file)

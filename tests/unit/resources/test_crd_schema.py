"""The CRD against the code: defaults, fields, and each rule's twin in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import pytest

from crd_cases import RULES, Case, document
from crd_field_cases import FIELDS, REQUIRED
from storm_operator.adapters.resource_rules import TWINS, WITHOUT_TWIN, rule_messages
from storm_operator.adapters.resource_schema import with_defaults
from storm_operator.adapters.resources import InvalidResource, parse_topology, topology_schema
from storm_operator.core.placement.registry import POLICIES
from storm_operator.core.settings import ApprovalSettings, ExcludedWindow, ResourceSettings, SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, ParallelismSpec, TopologySpec

SPEC = topology_schema()["properties"]["spec"]["properties"]
WINDOW = SPEC["scheduling"]["properties"]["excludedWindows"]["items"]
NOT_IN_THE_CRD = {"weights"}
NESTED = {"parameters", "approval", "excluded_windows", "pinned_components"}


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def by_field_name(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {snake(name): sub for name, sub in schema["properties"].items()}


@pytest.mark.parametrize(
    ("section", "settings"), [("scheduling", SchedulingSettings()), ("resources", ResourceSettings())]
)
def test_crd_defaults_and_fields_equal_the_settings(section: str, settings: Any) -> None:
    properties = by_field_name(SPEC[section])
    expected = {field.name for field in fields(settings)} - NOT_IN_THE_CRD
    assert set(properties) == expected
    for name in expected - NESTED:
        assert properties[name]["default"] == getattr(settings, name), name


def test_nested_defaults_equal_the_settings() -> None:
    scheduling = SPEC["scheduling"]["properties"]
    assert scheduling["approval"]["properties"]["mode"]["default"] == ApprovalSettings().mode
    assert tuple(scheduling["excludedWindows"]["default"]) == SchedulingSettings().excluded_windows
    assert tuple(scheduling["pinnedComponents"]["default"]) == SchedulingSettings().pinned_components
    assert by_field_name(WINDOW)["time_zone"]["default"] == ExcludedWindow("", 60).time_zone
    spec = TopologySpec("words", AdoptSource())
    assert SPEC["parallelism"]["properties"]["mode"]["default"] == ParallelismSpec().mode
    for name in ("suspend", "priority", "kill_wait_seconds", "rebalance_history_limit"):
        assert by_field_name({"properties": SPEC})[name]["default"] == getattr(spec, name), name


def test_a_document_of_defaults_alone_is_the_value_of_defaults_alone() -> None:
    assert parse_topology(document({"adopt": {}})) == TopologySpec("words", AdoptSource())


def test_the_crd_knows_every_policy() -> None:
    assert set(SPEC["scheduling"]["properties"]["policy"]["enum"]) == set(POLICIES)


def patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (schema["pattern"],) if isinstance(schema.get("pattern"), str) else ()
        for below in schema.values():
            yield from patterns(below)


def test_every_pattern_is_of_the_whole_text() -> None:
    found = set(patterns(topology_schema()))
    assert found
    assert all(pattern.startswith("^") and pattern.endswith("$") for pattern in found)


def test_every_rule_has_a_twin_or_a_reason_to_have_none() -> None:
    assert set(rule_messages(topology_schema())) == set(TWINS) | WITHOUT_TWIN


def test_every_rule_has_a_case() -> None:
    about_changes = {message for message in WITHOUT_TWIN if "cannot change" in message}
    missing = {
        message
        for message in set(rule_messages(topology_schema())) - about_changes
        if not any(case.words in message for case in RULES)
    }
    assert not missing


def leaves(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Paths of the fields that hold a value, as the cases write them (of lists the first item, of maps any)."""
    for name, sub in schema.get("properties", {}).items():
        others = sub.get("additionalProperties")
        if sub["type"] == "array" and "properties" in sub["items"]:
            yield from leaves(sub["items"], f"{path}.{name}[0]")
        elif isinstance(others, dict):
            yield from leaves(others, f"{path}.{name}.*") if "properties" in others else (f"{path}.{name}.*",)
        elif "properties" in sub:
            yield from leaves(sub, f"{path}.{name}")
        else:
            yield f"{path}.{name}"


def test_every_field_has_a_case() -> None:
    covered = {re.sub(r"(components|parameters)\.\w+", r"\1.*", case.field) for case in FIELDS}
    assert covered == set(leaves(topology_schema()["properties"]["spec"], "spec"))


CASES = [case for case in (*RULES, *FIELDS, *REQUIRED) if not case.server_only]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_good_value_is_read_and_bad_value_is_refused_by_name(case: Case) -> None:
    parse_topology(document(case.good, case.name))
    with pytest.raises(InvalidResource) as caught:
        parse_topology(document(case.bad, case.name))
    assert str(caught.value).startswith(case.field)
    assert case.words in str(caught.value)


@pytest.mark.parametrize("case", [case for case in RULES if case.server_only], ids=lambda case: case.id)
def test_what_only_the_server_refuses_is_read_here(case: Case) -> None:
    assert parse_topology(document(case.bad, case.name)).name == case.name


def test_defaults_fill_items_and_maps_and_leave_the_given_alone() -> None:
    schema = {
        "properties": {
            "a": {"default": {}, "properties": {"b": {"default": 1}, "c": {}}},
            "list": {"items": {"properties": {"d": {"default": 2}}}},
            "map": {"additionalProperties": {"properties": {"e": {"default": 3}}}},
        }
    }
    given = {"list": [{}, {"d": 0}], "map": {"x": {}}}
    assert with_defaults(given, schema) == {"a": {"b": 1}, "list": [{"d": 2}, {"d": 0}], "map": {"x": {"e": 3}}}
    assert given == {"list": [{}, {"d": 0}], "map": {"x": {}}}

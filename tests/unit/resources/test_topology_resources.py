"""StormTopology documents: what is read, and the one message that a mistake gets."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from crd_cases import document
from storm_operator.adapters.resources import API_VERSION, InvalidResource, parse_topology, read_topology_file
from storm_operator.core.settings import ApplyMethod, ResourceSettings, SchedulingSettings
from storm_operator.core.topology_spec import PAUSED_ANNOTATION, AdoptSource, FluxSource, JarSource


def file_of(folder: Path, **spec: Any) -> Path:
    file = folder / "words.yaml"
    file.write_text(yaml.safe_dump(document(spec)))
    return file


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
    spec = parse_topology(document({"flux": {"jar": "a.jar", "definition": {"name": "x"}}}))
    assert spec.source == FluxSource(jar="a.jar", definition="name: x\n")


def test_defaults_are_those_of_the_settings() -> None:
    spec = parse_topology(document({"adopt": {}}))
    assert spec.source == AdoptSource()
    assert spec.scheduling == SchedulingSettings()
    assert spec.resources == ResourceSettings()


def test_settings_have_the_types_of_their_defaults() -> None:
    given = {"periodSeconds": 3, "historyPeriods": 4.0, "policy": "aniello-offline", "parameters": {"alpha": 1}}
    scheduling = parse_topology(document({"adopt": {}, "scheduling": given})).scheduling
    assert isinstance(scheduling.period_seconds, float)
    assert isinstance(scheduling.history_periods, int)
    assert scheduling.parameters == (("alpha", 1.0),)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, ["exactly one of spec.jar, spec.flux and spec.adopt", "found none"]),
        ({"adopt": {}, "jar": {"path": "a", "mainClass": "b"}}, ["spec:", "found jar and adopt"]),
        ({"jar": {"path": "a"}}, ["spec.jar", "mainClass"]),
        ({"adopt": {}, "scheduling": {"policy": "best"}}, ["spec.scheduling.policy", "'best'", "adaptive"]),
        ({"adopt": {}, "scheduling": {"perriod": 1}}, ["spec.scheduling", "perriod", "periodSeconds"]),
        ({"adopt": {}, "scheduling": {"periodSeconds": -1}}, ["spec.scheduling.periodSeconds", "-1", "minimum"]),
        ({"adopt": {}, "nimbus": "no where"}, ["spec.nimbus", "no where"]),
        ({"adopt": {}, "scheduling": {"parameters": {"nope": 1}}}, ["spec.scheduling.parameters.nope = 1"]),
        ({"adopt": {}, "config": {"since": datetime.date(2024, 1, 1)}}, ["spec.config.since", "quotes"]),
        (
            {"adopt": {}, "resources": {"floorMillicores": 500, "ceilingMillicores": 100}},
            ["spec.resources:", "floorMillicores 500 and ceilingMillicores 100"],
        ),
        ({"flux": {"jar": "a"}}, ["spec.flux.definition", "spec.flux.path"]),
        (
            {"adopt": {}, "stateful": {"stateful": ["count", "split", "count"]}},
            ["spec.stateful.stateful has 'count' more than once: once is right"],
        ),
        ({"adopt": {}, "suspend": None}, ["spec.suspend is left empty: true or false is right"]),
    ],
)
def test_a_mistake_gets_one_message_that_names_it(spec: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InvalidResource) as caught:
        parse_topology(document(spec))
    for word in words:
        assert word in str(caught.value)


def test_a_word_that_is_left_empty_is_one_mistake() -> None:
    with pytest.raises(InvalidResource) as caught:
        parse_topology(document({"adopt": {}, "scheduling": {"mode": None, "periodSeconds": "x"}}))
    assert {str(caught.value), *caught.value.others} == {
        "spec.scheduling.mode is left empty: a text is right",
        "spec.scheduling.periodSeconds is 'x': a number is right",
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "^the document is a list; a StormTopology \\(a mapping\\) is expected$"),
        ("x" * 1000, "^the document is 'xxx.{,100}xxx'; a StormTopology"),
        ({"kind": "StormTopology"}, "^apiVersion is missing; it must be 'storm-operator.dev/v1alpha1'$"),
        ({"apiVersion": API_VERSION, "kind": None}, "^kind is left empty; it must be 'StormTopology'$"),
        ({"apiVersion": "storm-operator.dev/v2", "kind": "StormTopology"}, "apiVersion is 'storm-operator.dev/v2'"),
        ({"apiVersion": API_VERSION, "kind": "Storm"}, "kind is 'Storm'"),
        ({"apiVersion": API_VERSION, "kind": "StormTopology"}, "^spec is missing: a mapping is right$"),
        (
            {"apiVersion": API_VERSION, "kind": "StormTopology", "spec": None},
            "^spec is left empty: a mapping is right$",
        ),
        (
            {"apiVersion": API_VERSION, "kind": "StormTopology", "spec": {}, "x": 1},
            "^the document: unknown field x; known",
        ),
        ({"apiVersion": API_VERSION, "kind": "StormTopology", "spec": {"adopt": {}}}, "metadata.name is missing"),
    ],
)
def test_what_is_no_storm_topology_is_said_so(body: object, words: str) -> None:
    with pytest.raises(InvalidResource, match=words):
        parse_topology(body)


@pytest.mark.parametrize(
    "wrong",
    [
        {"flux": {"jar": "x.jar", "definition": "name: words\n" * 1000}},
        {"adopt": {}, "scheduling": {"policy": "x" * 5000}},
        {"adopt": {}, "nimbus": "x" * 5000},
        {"adopt": {}, "topologyName": "a/b" * 5000},
        {"adopt": {}, "stateful": {"stateful": ["a"] * 190, "stateless": ["a"]}},
        {"adopt": {}, "stateful": {"stateful": [f"a{at}" for at in range(190)], "stateless": ["a7"]}},
        {"adopt": {}, "scheduling": {"excludedWindows": [{"cron": " " * 190, "durationSeconds": 60}]}},
        {"adopt": {}, "config": {"a": [datetime.date(2024, 1, 1).replace(day=1 + at) for at in range(31)]}},
    ],
)
def test_a_value_at_length_is_not_told_at_length(wrong: dict[str, Any]) -> None:
    """As of a definition that is written as a text: the message goes to a terminal, the page and a log."""
    with pytest.raises(InvalidResource) as caught:
        parse_topology(document(wrong))
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("levels", range(200, 1100, 100))
def test_what_is_nested_deeply_is_read_or_refused(levels: int) -> None:
    """How much of that each step of the reading bears is its own affair."""
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    flux = {"flux": {"jar": "a.jar", "definition": {"name": "x", "config": nested}}}
    said = set()
    for spec in (flux, {"adopt": {}, "config": {"a": nested}}):
        try:
            parse_topology({**document({}), "spec": spec})
        except InvalidResource as error:
            said.add(str(error))
    assert said <= {"the document is nested too deeply"}


def test_a_status_of_another_version_does_not_matter() -> None:
    body = document({"adopt": {}}) | {"status": {"phase": "Unheard-of", "figureOfTomorrow": 1}}
    assert parse_topology(body).source == AdoptSource()


@pytest.mark.parametrize(
    ("annotations", "is_paused"),
    [
        ({"storm-operator.dev/paused": "true"}, True),
        ({"storm-operator.dev/paused": "false", "note": 3}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_pause_is_an_annotation_that_says_true(annotations: object, is_paused: bool) -> None:
    body = document({"adopt": {}})
    body["metadata"] = {"name": "words", "annotations": annotations}
    assert parse_topology(body).is_paused is is_paused


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"storm-operator.dev/paused": True}, r"storm-operator\.dev/paused is True: 'true' in quotes is right"),
        (["storm-operator.dev/paused"], r"metadata\.annotations is \['storm"),
    ],
)
def test_a_pause_that_kubernetes_would_refuse_is_refused(annotations: object, words: str) -> None:
    body = document({"adopt": {}})
    body["metadata"] = {"name": "words", "annotations": annotations}
    with pytest.raises(InvalidResource, match=words):
        parse_topology(body)


@pytest.mark.parametrize("value", ["yes", "True", " true"])
def test_a_pause_that_would_pause_nothing_is_refused_of_a_file_alone(value: str, tmp_path: Path) -> None:
    """On Kubernetes an invalid StormTopology is left, and nothing is killed when it is deleted."""
    body = document({"adopt": {}})
    body["metadata"] = {"name": "words", "annotations": {PAUSED_ANNOTATION: value}}
    assert not parse_topology(body).is_paused
    file = tmp_path / "words.yaml"
    file.write_text(yaml.safe_dump(body))
    words = rf"paused is '{value}': 'true' in quotes is right, or 'false'"
    with pytest.raises(InvalidResource, match=words):
        read_topology_file(file)


def test_yaml_that_is_none_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("a: [1, 2")
    with pytest.raises(InvalidResource, match=r"broken\.yaml: not valid YAML"):
        read_topology_file(file)


def test_several_resources_in_a_file_are_told_as_that(tmp_path: Path) -> None:
    file = tmp_path / "both.yaml"
    file.write_text("a: 1\n---\nb: 2\n---\nc: 3\n")
    with pytest.raises(InvalidResource) as refused:
        read_topology_file(file)
    assert str(refused.value) == (
        "both.yaml: it has 3 documents (between lines of ---); one is right here: give each a file of its own"
    )


def test_a_text_that_is_written_wrong_is_answered_in_words() -> None:
    with pytest.raises(InvalidResource) as refused:
        parse_topology(document({"adopt": {}, "topologyName": "a/b"}))
    assert str(refused.value).startswith(
        "spec.topologyName is 'a/b', and should be: The topology's name in Storm, without dots, slashes and colons"
    )


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"jar": {"mainClass": "a.B", "url": "https://x/a.jar", "sha256": "0" * 64}}, "spec.jar.url needs Kubernetes"),
        (
            {"jar": {"mainClass": "a.B", "persistentVolumeClaim": {"claimName": "jars", "path": "a.jar"}}},
            "spec.jar.persistentVolumeClaim needs Kubernetes",
        ),
        ({"jar": {"mainClass": "a.B", "path": "a.jar", "image": "x:1"}}, "spec.jar.image needs Kubernetes"),
        (
            {"flux": {"jar": "a.jar", "configMap": {"name": "a", "key": "b"}}},
            "spec.flux.configMap needs Kubernetes; give spec.flux.path",
        ),
        ({"flux": {"definition": {}, "jarFrom": {"path": "/a.jar"}}}, "spec.flux.jarFrom needs Kubernetes"),
        ({"adopt": {}, "supervisors": {"minimum": 1, "maximum": 2}}, "spec.supervisors needs Kubernetes"),
        ({"adopt": {}, "rebalanceHistoryLimit": 1}, "spec.rebalanceHistoryLimit needs Kubernetes"),
        ({"adopt": {}, "deletionPolicy": "Kill"}, "spec.deletionPolicy is 'Kill', which needs Kubernetes"),
        ({"adopt": {}, "resources": {"enforcement": "Pod"}}, "spec.resources.enforcement is 'Pod', which needs"),
        (
            {"adopt": {}, "scheduling": {"approval": {"mode": "Manual"}}},
            "spec.scheduling.approval.mode is 'Manual', which needs Kubernetes; say scheduling.mode Recommend: plans"
            " then wait for a yes on the page (standalone --page-approval)",
        ),
        (
            {"adopt": {}, "scheduling": {"approval": {"autoApproveWhen": {"minimumGainPercent": 1}}}},
            "spec.scheduling.approval.autoApproveWhen needs Kubernetes",
        ),
    ],
)
def test_a_file_cannot_ask_for_what_only_kubernetes_has(tmp_path: Path, spec: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidResource) as caught:
        read_topology_file(file_of(tmp_path, **spec))
    assert str(caught.value).startswith("words.yaml: ")
    assert words in str(caught.value)
    parse_topology(document(spec))


def test_all_that_needs_kubernetes_is_said_at_once(tmp_path: Path) -> None:
    file = file_of(tmp_path, adopt={}, deletionPolicy="Kill", supervisors={"minimum": 1, "maximum": 2})
    with pytest.raises(InvalidResource, match=r"spec\.supervisors .*; spec\.deletionPolicy "):
        read_topology_file(file)


def test_a_file_may_say_what_holds_without_kubernetes_anyway(tmp_path: Path) -> None:
    file = file_of(tmp_path, adopt={}, deletionPolicy="Leave", scheduling={"approval": {"mode": "Auto"}})
    assert read_topology_file(file).name == "words"


EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("file", sorted((EXAMPLES / "topologies").glob("*.yaml*")), ids=lambda file: file.name)
def test_the_examples_for_the_standalone_mode_can_be_read(file: Path) -> None:
    assert read_topology_file(file).name


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_the_examples_for_kubernetes_can_be_read(file: Path) -> None:
    documents = [one for one in yaml.safe_load_all(file.read_text()) if one["kind"] == "StormTopology"]
    assert [parse_topology(one).name for one in documents]

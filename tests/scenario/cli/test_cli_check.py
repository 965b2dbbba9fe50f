"""`storm-operator check`: StormTopology files without a cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from storm_operator.adapters.resources import InvalidResource, parse_topology, read_topology_file
from storm_operator.cli import app

EXAMPLES = Path(__file__).parents[3] / "examples"
RIGHT = (EXAMPLES / "adopted.yaml").read_text(encoding="utf-8")
BARE = "apiVersion: storm-operator.dev/v1alpha1\nkind: StormTopology\nmetadata: {name: payments}\nspec:\n  adopt: {}\n"


def checked(*paths: Path) -> Result:
    return CliRunner().invoke(app, ["check", *map(str, paths)])


def test_all_examples_are_right() -> None:
    done = checked(EXAMPLES, EXAMPLES / "topologies")
    assert done.exit_code == 0, done.output
    assert f"{EXAMPLES / 'wordcount-flux.yaml'}: wordcount-flux is right" in done.output


def test_what_is_paused_is_said_to_be(tmp_path: Path) -> None:
    paused = BARE.replace("payments}", "payments, annotations: {storm-operator.dev/paused: 'true'}}")
    (tmp_path / "a.yaml").write_text(paused, encoding="utf-8")
    done = checked(tmp_path)
    words = "payments is right; it is paused by the annotation storm-operator.dev/paused, and left as it is"
    assert (done.exit_code, done.output) == (0, f"{tmp_path / 'a.yaml'}: {words}\n")


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (
            "annotations: {storm-operator.dev/pause: 'true', team: a}",
            "metadata.annotations: unknown annotation storm-operator.dev/pause; known is storm-operator.dev/paused",
        ),
        ("priority: 5", "metadata: unknown field priority, which is one of spec; known are annotations, creationTime"),
        ("anotations: {}, 7: 1", "metadata: unknown field 7, anotations; known are annotations, creationTimestamp, "),
    ],
)
def test_what_of_the_metadata_would_do_nothing_is_told(metadata: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(BARE.replace("payments}", f"payments, {metadata}}}"), encoding="utf-8")
    done = checked(file)
    (line,) = done.output.splitlines()
    assert done.exit_code == 2
    assert line.startswith(f"{file}: {words}")
    with pytest.raises(InvalidResource, match=re.escape(words)):
        read_topology_file(file)
    assert parse_topology(yaml.safe_load(file.read_text(encoding="utf-8"))).name == "payments", "as of a cluster"


def test_what_kubernetes_and_others_write_into_the_metadata_is_right(tmp_path: Path) -> None:
    """As `kubectl get -o yaml` has it."""
    metadata = {
        "name": "payments",
        "generateName": "pay",
        "namespace": "streams",
        "labels": {"storm-operator.dev/team": "a"},
        "annotations": {"kopf.storm-operator.dev/last-handled-configuration": "{}", "argocd.argoproj.io/x": ""},
        "uid": "2b6f",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2027-01-15T08:00:00Z",
        "deletionTimestamp": "2027-01-15T08:00:00Z",
        "deletionGracePeriodSeconds": 0,
        "finalizers": ["storm-operator.dev/finalizer"],
        "ownerReferences": [],
        "managedFields": [{"manager": "kubectl"}],
        "selfLink": "",
    }
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({**yaml.safe_load(BARE), "metadata": metadata}), encoding="utf-8")
    assert checked(tmp_path).output == f"{tmp_path / 'a.yaml'}: payments is right\n"


def test_what_is_wrong_is_named_and_the_others_are_checked_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(RIGHT.replace("spec:", "spec:\n  priorty: 3", 1), encoding="utf-8")
    (tmp_path / "b.yml").write_text(RIGHT, encoding="utf-8")
    (tmp_path / "c.txt").write_text("no YAML of ours: [", encoding="utf-8")
    done = checked(tmp_path)
    assert done.exit_code == 2
    assert "a.yaml: spec: unknown field priorty" in done.output
    assert "b.yml: " in done.output
    assert "c.txt" not in done.output


def test_all_that_is_wrong_with_one_is_said_each_thing_on_a_line_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"{BARE}  priorty: 1\n  priority: 1.5\n  scheduling: {{mode: Never, nope: 3}}\n", encoding="utf-8")
    lines = [line.removeprefix(f"{file}: ") for line in checked(file).output.splitlines()]
    assert [line.partition(";")[0] for line in sorted(lines)] == [
        "spec.priority is 1.5: a whole number is right",
        "spec.scheduling.mode is 'Never': one of Observe, Recommend, Enforce is right",
        "spec.scheduling: unknown field nope",
        "spec: unknown field priorty",
    ]


def test_all_rules_that_one_breaks_are_said(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    broken = "  jar: {path: x.jar, mainClass: A}\n  supervisors: {minimum: 5, maximum: 2}\n"
    file.write_text(f"{BARE}{broken}", encoding="utf-8")
    assert checked(file).output.splitlines() == [
        f"{file}: spec: exactly one of spec.jar, spec.flux and spec.adopt is needed; found jar and adopt",
        f"{file}: spec.supervisors: minimum must not be more than maximum; found minimum 5 and maximum 2",
    ]


def test_mistakes_of_all_kinds_are_said_at_once(tmp_path: Path) -> None:
    """Of fields, of what does not go together, of cron and time zones, of a policy's numbers, of the metadata."""
    file = tmp_path / "a.yaml"
    window = '{cron: "99 8 * * *", durationSeconds: 60, timeZone: Mars/X}'
    numbers = "policy: fuzzy, parameters: {nope: 1, low: -5}, periodSeconds: .nan"
    metadata = "metadata: {name: A B, annotations: {storm-operator.dev/paused: 'yes'}}"
    file.write_text(
        f"{BARE.replace('metadata: {name: payments}', metadata)}  priority: 1.5\n"
        f"  stateful: {{stateful: [a], stateless: [a]}}\n  scheduling: {{{numbers}, excludedWindows: [{window}]}}\n",
        encoding="utf-8",
    )
    said = checked(file).output.replace(f"{file}: ", "")
    for words in (
        "spec.scheduling.periodSeconds is nan",
        "spec.priority is 1.5",
        "metadata.name is 'A B'",
        "spec.stateful: a component cannot be both",
        "excludedWindows[0].cron is '99 8 * * *'",
        "excludedWindows[0].timeZone: there is no time zone 'Mars/X'",
        "spec.scheduling.parameters.nope = 1: policy fuzzy has no such parameter",
        "spec.scheduling.parameters.low = -5: must be from",
        "paused is 'yes'",
    ):
        assert words in said
    assert len(said.splitlines()) == 9


@pytest.mark.parametrize(
    ("was", "instead", "words"),
    [
        ("adopt: {}", "stateful: 3", ["spec.stateful is 3: a mapping is right", "spec: exactly one of spec.jar"]),
        ("adopt: {}", "adopt: {}\n  supervisors: {minimum: x, maximum: 2}", ["spec.supervisors.minimum is 'x'"]),
        ("spec:\n  adopt: {}\n", "", ["spec is missing"]),
        ("spec:\n  adopt: {}", "spec: 3", ["spec is 3: a mapping is right"]),
        ("metadata: {name: payments}", "metadata: [a]", ["metadata is ['a']: a mapping is right"]),
        ("adopt: {}", "adopt: {}\n  scheduling: 3\n  config: 4", ["spec.config is 4", "spec.scheduling is 3"]),
        (
            "adopt: {}",
            "adopt: {}\n  scheduling: {excludedWindows: [3], parameters: 4}",
            ["[0] is 3", "ters is 4"],
        ),
    ],
)
def test_what_follows_from_a_mistake_is_not_said_beside_it(
    was: str, instead: str, words: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(BARE.replace(was, instead), encoding="utf-8")
    lines = checked(file).output.splitlines()
    assert len(lines) == len(words)
    assert all(any(word in line for line in lines) for word in words)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("parallelism: {components: {7: {executors: 2}, a: {executors: 2}}}", "payments is right"),
        ("parallelism: {components: {7: {}, a: {}}}", "spec.parallelism.components.7: give executors"),
        ("scheduling: {policy: fuzzy, parameters: {7: 1, low: 30}}", "spec.scheduling.parameters.7 = 1: policy fuzzy"),
        ("parallelism: {components: {7: [], a: []}}", "spec.parallelism.components.7 is []: a mapping is right"),
    ],
)
def test_a_name_of_digits_is_a_text_as_for_kubernetes(spec: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"{BARE}  {spec}\n", encoding="utf-8")
    assert words in checked(tmp_path).output


def test_a_field_that_is_missing_since_it_is_misspelt_is_said_once(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(BARE.replace("adopt: {}", "jar: {path: x.jar, mainclass: A}"), encoding="utf-8")
    (line,) = checked(file).output.splitlines()
    assert line.startswith(f"{file}: spec.jar: unknown field mainclass; ")


def test_other_kinds_are_left_alone_and_what_has_no_kind_is_not(tmp_path: Path) -> None:
    several = f"kind: ConfigMap\nnonsense: 1\n---\n---\n{RIGHT}\n---\nspec: {{}}\n"
    (tmp_path / "several.yaml").write_text(several, encoding="utf-8")
    done = checked(tmp_path)
    assert done.exit_code == 2
    assert done.output.count("is right") == 1
    assert done.output.count("several.yaml: ") == 2


def test_a_file_that_cannot_be_read_or_has_none_is_said(tmp_path: Path) -> None:
    assert checked(tmp_path).output == f"{tmp_path}: no StormTopology is in it\n"
    gone = checked(tmp_path / "gone.yaml")
    assert gone.exit_code == 2
    assert gone.output.endswith("gone.yaml: cannot be read: No such file or directory\n")
    (tmp_path / "broken.yaml").write_text("a: [", encoding="utf-8")
    assert "broken.yaml: not valid YAML" in checked(tmp_path).output


@pytest.mark.parametrize(
    ("was", "instead", "words"),
    [
        ("spec:", "spec:\n  priority: 1\n  priority: 2", "'priority' stands here again"),
        (
            "spec:",
            "spec:\n  resources: {thetaMillicores: .nan}",
            "spec.resources.thetaMillicores is nan: a finite",
        ),
        ("spec:", "spec:\n  config: {a: [1.0, -.inf]}", "spec.config.a[1] is -inf: a finite number is right"),
        ("spec:", "spec:\n  config: {a: &self [*self]}", "nested too deeply"),
        ("spec:", "spec:\n  1: 2", "spec: unknown field 1"),
        ("spec:", "spec:\n  config: {a: 2026-13-45}", "not valid YAML: month must be in 1..12"),
        ("name: payments", "name: Bad Name!", "metadata.name is 'Bad Name!': small letters, digits, - and . are right"),
        (
            "name: payments",
            "name: payments, annotations: {storm-operator.dev/paused: 'yes'}",
            "paused is 'yes': 'true' in quotes is right",
        ),
        ("name: payments", "name: 5", "metadata.name is 5: a text is right; put it in quotes"),
    ],
)
def test_what_would_harm_later_is_refused(was: str, instead: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BARE.replace(was, instead, 1), encoding="utf-8")
    done = checked(tmp_path)
    assert done.exit_code == 2, done.output
    assert words in done.output


def test_a_topology_that_a_file_describes_twice_is_wrong_and_that_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text(f"{RIGHT}\n---\n{RIGHT}", encoding="utf-8")
    done = checked(tmp_path)
    assert done.exit_code == 2
    words = "payments is described more than once in this file; describe each topology once"
    assert done.output == f"{tmp_path / 'twice.yaml'}: {words}\n"


def test_a_topology_that_two_files_of_a_folder_describe_is_wrong_in_both(tmp_path: Path) -> None:
    """As standalone has it, which follows none until one is left."""
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(RIGHT, encoding="utf-8")
    done = checked(tmp_path)
    assert done.exit_code == 2
    assert "a.yaml: payments is described in b.yaml, too" in done.output
    assert "b.yaml: payments is described in a.yaml, too" in done.output
    assert checked(tmp_path / "a.yaml", tmp_path / "b.yaml").exit_code == 0, "they may be for one cluster each"


def test_topologies_of_one_name_may_be_on_the_nimbus_of_two_namespaces(tmp_path: Path) -> None:
    """One word is a Service of the topology's own namespace."""
    body = yaml.safe_load(RIGHT)
    nimbuses = {"a": "storm-nimbus", "b": "storm-nimbus:6627", "c": "storm-nimbus.a.svc:6627"}
    for namespace, nimbus in nimbuses.items():
        told = {"metadata": body["metadata"] | {"namespace": namespace}, "spec": body["spec"] | {"nimbus": nimbus}}
        (tmp_path / f"{namespace}.yaml").write_text(yaml.safe_dump(body | told))
    output = checked(tmp_path).output
    assert "b.yaml: payments is right" in output
    assert "c.yaml: payments is described in a.yaml, too" in output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: List\nitems: []\n", "no StormTopology is in it; found were List"),
        ("&a {kind: List, items: [*a]}", "no StormTopology is in it; found were List"),
    ],
)
def test_a_list_that_has_none_is_said_to_have_none(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "got.yaml").write_text(text)
    done = checked(tmp_path)
    assert done.exit_code == 2
    assert words in done.output


def test_of_several_in_a_file_each_mistake_is_told_with_whose_it_is(tmp_path: Path) -> None:
    """As in what `kubectl get stormtopologies -A -o yaml` writes: else the same mistake of two is one line."""
    items = [
        yaml.safe_load(RIGHT) | {"metadata": metadata, "spec": {"adopt": {}, "priority": "1"}}
        for metadata in ({"name": "words", "namespace": "a"}, {"name": "words", "namespace": "b"}, {"name": "c"}, {})
    ]
    file = tmp_path / "got.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    lines = [line for line in checked(file).output.splitlines() if "spec.priority" in line]
    whose = ("a/words", "b/words", "c", "number 4 of its StormTopologies")
    assert lines == [f"{file}: {one}: spec.priority is '1': a whole number is right" for one in whose]


def test_what_kubectl_has_put_into_a_list_is_checked(tmp_path: Path) -> None:
    right = yaml.safe_load(RIGHT)
    wrong = right | {"metadata": {"name": "second"}, "spec": {}}
    (tmp_path / "got.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [right, wrong]}))
    done = checked(tmp_path)
    assert done.exit_code == 2
    assert done.output.count("got.yaml: ") == 2
    assert "payments is right" in done.output


def test_path_that_may_not_even_be_looked_at_is_said_in_a_sentence(tmp_path: Path) -> None:
    """Too long here: as root nobody is denied anything."""
    file = tmp_path / ("x" * 300)
    done = checked(file)
    assert done.exit_code == 2
    assert done.stderr == f"{file}: cannot be read: File name too long\n"


def test_a_folder_that_may_not_be_listed_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", denied)
    done = checked(tmp_path)
    assert (done.exit_code, done.stderr) == (2, f"{tmp_path}: cannot be read: Permission denied\n")


def test_where_there_is_none_the_kinds_that_are_there_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("kind: StormTopolgy\n---\nkind: ConfigMap\n---\n", encoding="utf-8")
    done = checked(tmp_path / "x.yaml")
    assert done.exit_code == 2
    assert done.output == f"{tmp_path / 'x.yaml'}: no StormTopology is in it; found were ConfigMap, StormTopolgy\n"


def test_a_file_that_is_named_must_have_one_whatever_the_others_have(tmp_path: Path) -> None:
    right, other, bare = tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "empty"
    right.write_text(RIGHT, encoding="utf-8")
    other.write_text("apiVersion: v1\nkind: ConfigMap\n", encoding="utf-8")
    bare.mkdir()
    assert checked(tmp_path).exit_code == 0
    done = checked(right, other, bare)
    assert done.exit_code == 2
    assert done.stdout == f"{right}: payments is right\n"
    assert done.stderr == (
        f"{other}: no StormTopology is in it; found were ConfigMap\n{bare}: no StormTopology is in it\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BARE.replace("StormTopology", "StormTopolgy"), "kind is 'StormTopolgy'; it must be 'StormTopology'"),
        ("# not written yet\n", "the document is empty; a StormTopology (a mapping) is expected"),
    ],
)
def test_what_standalone_refuses_in_a_folder_is_found_beside_right_files(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(RIGHT, encoding="utf-8")
    (tmp_path / "b.yaml").write_text(text, encoding="utf-8")
    done = checked(tmp_path)
    assert done.exit_code == 2
    assert done.stderr == f"{tmp_path / 'b.yaml'}: {words}\n"


def test_plans_in_a_file_are_another_kind(tmp_path: Path) -> None:
    plan = "apiVersion: storm-operator.dev/v1alpha1\nkind: StormRebalance\n"
    (tmp_path / "a.yaml").write_text(f"{RIGHT}\n---\n{plan}", encoding="utf-8")
    assert checked(tmp_path).exit_code == 0


def test_a_misspelt_field_is_named_rather_than_the_one_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        """apiVersion: storm-operator.dev/v1alpha1
kind: StormTopology
metadata: {name: x}
spec: {jar: {path: x.jar, mainclass: foo}}
""",
        encoding="utf-8",
    )
    assert "spec.jar: unknown field mainclass; known are " in checked(tmp_path / "x.yaml").output

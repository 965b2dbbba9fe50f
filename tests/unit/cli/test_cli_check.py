"""`storm-operator check`: StormTopology files without a cluster."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from storm_operator.cli import app

EXAMPLES = Path(__file__).parents[3] / "examples"
RIGHT = (EXAMPLES / "adopted.yaml").read_text(encoding="utf-8")


def checked(*paths: Path) -> Result:
    return CliRunner().invoke(app, ["check", *map(str, paths)])


def test_all_examples_are_right() -> None:
    done = checked(EXAMPLES, EXAMPLES / "topologies")
    assert done.exit_code == 0, done.output
    assert f"{EXAMPLES / 'wordcount-flux.yaml'}: wordcount-flux is right" in done.output


def test_what_is_wrong_is_named_and_the_others_are_checked_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(RIGHT.replace("spec:", "spec:\n  priorty: 3", 1), encoding="utf-8")
    (tmp_path / "b.yml").write_text(RIGHT, encoding="utf-8")
    (tmp_path / "c.txt").write_text("no YAML of ours: [", encoding="utf-8")
    done = checked(tmp_path)
    assert done.exit_code == 2
    assert "a.yaml: spec: unknown field priorty" in done.output
    assert "b.yml: " in done.output
    assert "c.txt" not in done.output


def test_other_kinds_are_left_alone_and_what_has_no_kind_is_not(tmp_path: Path) -> None:
    several = f"kind: ConfigMap\nnonsense: 1\n---\n---\n{RIGHT}\n---\nspec: {{}}\n"
    (tmp_path / "several.yaml").write_text(several, encoding="utf-8")
    done = checked(tmp_path)
    assert done.exit_code == 2
    assert done.output.count("is right") == 1
    assert done.output.count("several.yaml: ") == 2


def test_a_file_that_cannot_be_read_or_has_none_is_said(tmp_path: Path) -> None:
    assert checked(tmp_path).output == f"no StormTopology in {tmp_path}\n"
    gone = checked(tmp_path / "gone.yaml")
    assert gone.exit_code == 2
    assert "gone.yaml: cannot be read" in gone.output
    (tmp_path / "broken.yaml").write_text("a: [", encoding="utf-8")
    assert "broken.yaml: not valid YAML" in checked(tmp_path).output

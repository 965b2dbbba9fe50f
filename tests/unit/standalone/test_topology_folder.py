"""A folder of StormTopology files: changes are followed, mistakes are said once and lose nothing."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from storm_operator import topology_folder
from storm_operator.adapters.resources import read_topology_file, topology_files
from storm_operator.core.refusal import Refusal
from storm_operator.core.settings import Mode
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.jvm_submitter import source_fingerprint
from storm_operator.topology_folder import SETTLED_SECONDS, TopologyFolder

GOOD = (
    "apiVersion: storm-operator.dev/v1alpha1\nkind: StormTopology\nmetadata: {{name: {name}}}\n"
    "spec: {{adopt: {{}}, scheduling: {{policy: {policy}}}}}\n"
)


def write(path: Path, text: str, at: int) -> None:
    path.write_text(text)
    os.utime(path, (at, at))


def sentences(folder: TopologyFolder) -> tuple[str, ...]:
    return tuple(refusal.sentence for refusal in folder.refusals())


def test_files_are_followed_and_mistakes_keep_the_last_good_spec(tmp_path: Path) -> None:
    said: list[str] = []
    folder = TopologyFolder(tmp_path, said.append)
    assert folder.read() == {}

    file = tmp_path / "a.yaml"
    write(file, GOOD.format(name="words", policy="liu"), at=1)
    assert folder.read()["words"].scheduling.policy == "liu"

    write(file, GOOD.format(name="words", policy="even"), at=2)
    assert folder.read()["words"].scheduling.policy == "even"

    write(file, "kind: [", at=3)
    assert folder.read()["words"].scheduling.policy == "even"
    assert folder.read()["words"].scheduling.policy == "even"
    assert len([sentence for sentence in said if "not valid YAML" in sentence and "last good" in sentence]) == 1

    write(file, GOOD.format(name="words", policy="liu, periodSeconds: .nan"), at=4)
    assert folder.read()["words"].scheduling.policy == "even"
    assert said[-1] == (
        "a.yaml: spec.scheduling.periodSeconds is nan: a finite number is right; its last good version stays in use"
    )

    file.unlink()
    assert folder.read() == {}
    assert said[-1].endswith("is gone; no longer managed, and left running where it runs")


def test_nobody_reads_that_a_file_has_changed_that_says_what_it_said_before(tmp_path: Path) -> None:
    said: list[str] = []
    folder, file, good = (
        TopologyFolder(tmp_path, said.append),
        tmp_path / "a.yaml",
        GOOD.format(name="words", policy="liu"),
    )
    for at, text in enumerate((good, f"# a note\n{good}", "kind: [", good), start=1):
        write(file, text, at)
        assert set(folder.read()) == {"words"}
    mistake, mended = said
    assert "not valid YAML" in mistake
    assert mended == "words: a.yaml can be followed again, and says what it said before"
    assert folder.refusals() == ()


def test_what_is_ignored_or_paused_is_not_said_to_be_followed_again(tmp_path: Path) -> None:
    said: list[str] = []
    folder, good = TopologyFolder(tmp_path, said.append), GOOD.format(name="words", policy="liu")
    paused = good.replace("words}", "others, annotations: {storm-operator.dev/paused: 'true'}}")
    write(tmp_path / "a.yaml", good, at=1)
    folder.read()
    for at, (beside, left) in enumerate(((good, paused), ("kind: [", "kind: ["), (good, paused)), start=1):
        write(tmp_path / "b.yaml", beside, at)
        write(tmp_path / "c.yaml", left, at)
        assert set(folder.read()) == {"words"}
    assert [words for words in said if "followed again" in words] == []
    assert said[-1].startswith("others: paused by the annotation")


def test_values_that_are_equal_to_python_alone_are_a_change(tmp_path: Path) -> None:
    said: list[str] = []
    folder, good = TopologyFolder(tmp_path, said.append), GOOD.format(name="words", policy="liu")
    for at, value in enumerate(("1", "true", "1.0"), start=1):
        write(
            tmp_path / "a.yaml",
            good.replace("adopt: {}", f"adopt: {{}}, config: {{topology.acker.executors: {value}}}"),
            at,
        )
        folder.read()
    assert said == ["words: a.yaml has changed and is followed"] * 2


def test_a_link_to_nothing_is_said_once_and_keeps_the_last_good_spec(tmp_path: Path) -> None:
    said: list[str] = []
    folder, target = TopologyFolder(tmp_path, said.append), tmp_path / "kept-elsewhere"
    (tmp_path / "a.yaml").symlink_to(target)
    assert folder.read() == folder.read() == {}
    write(target, GOOD.format(name="words", policy="liu"), at=1)
    assert set(folder.read()) == {"words"}
    target.unlink()
    assert set(folder.read()) == set(folder.read()) == {"words"}
    missing = "a.yaml: the file that it links to is not there"
    assert said == [missing, f"{missing}; its last good version stays in use"]


def test_all_that_is_wrong_in_a_file_is_told_at_once(tmp_path: Path) -> None:
    """Else whoever mends it finds the second mistake only after the first."""
    said: list[str] = []
    folder = TopologyFolder(tmp_path, said.append)
    wrong = GOOD.format(name="words", policy="nobody").replace("adopt: {}", "adopt: {}, suspend: 7")
    write(tmp_path / "a.yaml", wrong, at=1)
    folder.read()
    assert "spec.suspend" in said[0]
    assert "spec.scheduling.policy" in said[0]
    assert sentences(folder) == tuple(said)


def test_what_is_not_followed_as_it_stands_is_told_for_as_long_as_it_is_not(tmp_path: Path) -> None:
    folder = TopologyFolder(tmp_path, lambda _: None)
    write(tmp_path / "a.yaml", GOOD.format(name="words", policy="liu"), at=1)
    folder.read()
    write(tmp_path / "b.yaml", GOOD.format(name="words", policy="even"), at=1)
    (tmp_path / "c.yaml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "d.yaml").write_text("kind: [")
    folder.read()
    link, broken, twin = sentences(folder)
    assert link == "c.yaml: the file that it links to is not there"
    assert broken.startswith("d.yaml: not valid YAML")
    assert twin == "b.yaml: topology 'words' is already described by a.yaml; b.yaml is ignored"

    (tmp_path / "b.yaml").unlink()
    (tmp_path / "c.yaml").unlink()
    write(tmp_path / "d.yaml", GOOD.format(name="others", policy="even"), at=2)
    write(tmp_path / "a.yaml", "kind: [", at=2)
    folder.read()
    folder.read()
    (refusal,) = folder.refusals()
    assert refusal.sentence.endswith("; its last good version stays in use")
    assert refusal.topology == "words", "as its last good version says, where nobody can read it"

    write(tmp_path / "a.yaml", GOOD.format(name="words", policy="liu"), at=3)
    folder.read()
    assert folder.refusals() == ()


@pytest.mark.parametrize(
    ("text", "topology"),
    [
        (GOOD.format(name="words", policy="nobody"), "words"),
        (GOOD.format(name="small", policy="nobody").replace("adopt", "topologyName: Words, adopt"), "Words"),
        (GOOD.format(name="5", policy="liu"), ""),
        ("kind: [", ""),
        ("[]", ""),
    ],
)
def test_what_is_not_followed_has_the_name_of_its_topology_where_that_can_be_read(
    text: str, topology: str, tmp_path: Path
) -> None:
    folder = TopologyFolder(tmp_path, lambda _: None)
    write(tmp_path / "a.yaml", text, at=1)
    folder.read()
    (refusal,) = folder.refusals()
    assert refusal.topology == topology


def test_two_files_of_one_topology_are_not_both_believed(tmp_path: Path) -> None:
    said: list[str] = []
    write(tmp_path / "a.yaml", GOOD.format(name="words", policy="liu"), at=1)
    write(tmp_path / "b.yaml", GOOD.format(name="words", policy="even"), at=1)
    folder = TopologyFolder(tmp_path, said.append)
    assert folder.read() == folder.read() == {}, "either may be the wrong one, with which what runs would be replaced"
    assert said == ["a.yaml, b.yaml: all describe topology 'words'; none is followed until one is left"]
    assert sentences(folder) == tuple(said)
    (tmp_path / "a.yaml").unlink()
    assert folder.read()["words"].scheduling.policy == "even"
    write(tmp_path / "a.yaml", GOOD.format(name="words", policy="liu"), at=2)
    assert folder.read()["words"].scheduling.policy == "even", "what is followed stays so, whatever comes beside it"
    assert said[1:] == ["a.yaml: topology 'words' is already described by b.yaml; a.yaml is ignored"]


def test_each_of_several_files_of_one_topology_is_refused_once(tmp_path: Path) -> None:
    said: list[str] = []
    folder = TopologyFolder(tmp_path, said.append)
    write(tmp_path / "a.yaml", GOOD.format(name="words", policy="liu"), at=1)
    folder.read()
    for name in "bc":
        write(tmp_path / f"{name}.yaml", GOOD.format(name="words", policy="liu"), at=1)
    for _ in range(3):
        folder.read()
    assert [sentence.split(":")[0] for sentence in said] == ["b.yaml", "c.yaml"]


def test_a_file_that_takes_the_name_of_another_no_longer_stands_for_its_own(tmp_path: Path) -> None:
    folder = TopologyFolder(tmp_path, lambda _: None)
    write(tmp_path / "a.yaml", GOOD.format(name="words", policy="liu"), at=1)
    write(tmp_path / "b.yaml", GOOD.format(name="lines", policy="even"), at=1)
    assert set(folder.read()) == {"lines", "words"}

    write(tmp_path / "b.yaml", GOOD.format(name="words", policy="even"), at=2)
    assert {name: spec.scheduling.policy for name, spec in folder.read().items()} == {"words": "liu"}


def test_two_files_may_exchange_their_names(tmp_path: Path) -> None:
    folder = TopologyFolder(tmp_path, lambda _: None)
    for at, names in enumerate((("words", "lines"), ("lines", "words")), start=1):
        for file, name, policy in zip("ab", names, ("liu", "even"), strict=True):
            write(tmp_path / f"{file}.yaml", GOOD.format(name=name, policy=policy), at=at)
        folder.read()
    assert {name: spec.scheduling.policy for name, spec in folder.read().items()} == {"lines": "liu", "words": "even"}


def test_files_that_exchange_their_names_are_both_followed_at_once(tmp_path: Path) -> None:
    said: list[str] = []
    folder = TopologyFolder(tmp_path, said.append)
    for at, names in enumerate((("words", "lines"), ("lines", "words")), start=1):
        for file, name, policy in zip("ab", names, ("liu", "even"), strict=True):
            write(tmp_path / f"{file}.yaml", GOOD.format(name=name, policy=policy), at=at)
        specs = folder.read()
    assert {name: spec.scheduling.policy for name, spec in specs.items()} == {"lines": "liu", "words": "even"}
    assert not [sentence for sentence in said if "ignored" in sentence]


def test_topology_that_its_file_pauses_is_left_as_it_is_until_it_no_longer_does(tmp_path: Path) -> None:
    said: list[str] = []
    folder = TopologyFolder(tmp_path, said.append)
    good = GOOD.format(name="words", policy="liu")
    paused = good.replace("{name: words}", "{name: words, annotations: {storm-operator.dev/paused: 'true'}}")
    write(tmp_path / "words.yaml", paused, at=1)
    assert folder.read() == {}
    write(tmp_path / "words.yml", good, at=1)
    assert folder.read() == folder.read() == {}, "and no other file has its name meanwhile"
    told = "words: paused by the annotation storm-operator.dev/paused in words.yaml: left as it is"
    assert said.count(told) == 1
    ignored, left = folder.refusals()
    assert "words.yml is ignored" in ignored.sentence
    assert left == Refusal("words.yaml: paused by annotation: left as it is", "words", is_pause=True)
    (tmp_path / "words.yml").unlink()
    write(tmp_path / "words.yaml", good, at=2)
    assert set(folder.read()) == {"words"}
    assert folder.refusals() == ()
    write(tmp_path / "words.yaml", paused, at=3)
    assert folder.read() == {}
    assert said[-2:] == ["words: words.yaml has changed and is followed", told]


def test_renamed_file_goes_on_to_be_followed_and_so_it_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    folder = TopologyFolder(tmp_path, said.append)
    write(tmp_path / "z.yaml", GOOD.format(name="words", policy="liu"), at=1)
    folder.read()
    (tmp_path / "z.yaml").rename(tmp_path / "y z.yaml")
    assert set(folder.read()) == {"words"}
    assert said == ["words: z.yaml is gone; y z.yaml describes it, and is followed"]


def test_topology_that_its_file_no_longer_describes_is_said_to_be_left(tmp_path: Path) -> None:
    said: list[str] = []
    folder = TopologyFolder(tmp_path, said.append)
    write(tmp_path / "a.yaml", GOOD.format(name="words", policy="liu"), at=1)
    folder.read()
    write(tmp_path / "a.yaml", GOOD.format(name="lines", policy="liu"), at=2)
    assert set(folder.read()) == {"lines"}
    assert said == [
        "words: a.yaml no longer describes it; no longer managed, and left running where it runs",
        "lines: a.yaml has changed and is followed",
    ]


def test_file_of_the_same_age_and_size_that_takes_the_place_of_another_is_read(tmp_path: Path) -> None:
    """As tools lay them down that give all files one time; Observe and Enforce have as many letters."""
    folder = TopologyFolder(tmp_path, print)
    text = GOOD.format(name="words", policy="liu").replace("policy: liu", "mode: Observe")
    write(tmp_path / "a.yaml", text, at=1)
    assert folder.read()["words"].scheduling.mode is Mode.OBSERVE
    write(tmp_path / "new", text.replace("Observe", "Enforce"), at=1)
    (tmp_path / "new").rename(tmp_path / "a.yaml")
    assert folder.read()["words"].scheduling.mode is Mode.ENFORCE


def test_file_for_another_nimbus_is_not_for_us(tmp_path: Path) -> None:
    said: list[str] = []
    write(
        tmp_path / "a.yaml", GOOD.format(name="words", policy="liu").replace("spec: {", "spec: {nimbus: 'a:1', "), at=1
    )
    assert TopologyFolder(tmp_path, said.append, ("b:1",)).read() == {}
    assert "a:1" in said[0]
    assert set(TopologyFolder(tmp_path, said.append, ("a:1",)).read()) == {"words"}


@pytest.mark.parametrize("written", ["Nimbus.Storm", "nimbus.storm:6627", "nimbus.storm.svc.cluster.local"])
def test_file_for_this_nimbus_by_another_spelling_is_for_us(written: str, tmp_path: Path) -> None:
    text = GOOD.format(name="words", policy="liu").replace("spec: {", f"spec: {{nimbus: '{written}', ")
    write(tmp_path / "a.yaml", text, at=1)
    assert set(TopologyFolder(tmp_path, print, ("nimbus.storm:6627",)).read()) == {"words"}


WRITTEN_AT = 1_000_000


def test_half_of_a_file_is_not_followed_though_it_is_valid(tmp_path: Path) -> None:
    """Of `name: words-eu` its first half is another topology: the one that runs would be left, and that one adopted."""
    said: list[str] = []
    text = GOOD.format(name="x", policy="liu").replace("metadata: {name: x}\n", "") + "metadata:\n  name: words-eu\n"
    file = tmp_path / "a.yaml"
    other = text.replace("liu", "even")
    writes = iter((text[:-4], text[:-3], other, other))

    def write_on(_: float) -> None:
        write(file, next(writes), at=WRITTEN_AT)

    folder = TopologyFolder(tmp_path, said.append, clock=lambda: WRITTEN_AT + 0.5, pause=write_on)
    write(file, text, at=1)
    assert set(folder.read()) == {"words-eu"}
    for _ in range(2):
        write(file, next(writes), at=WRITTEN_AT)
        assert set(folder.read()) == {"words-eu"}
    assert said == [
        "a.yaml: it is still being written, and is read later; its last good version stays in use",
        "words-eu: a.yaml has changed and is followed",
    ]


def test_file_that_was_written_a_moment_ago_is_followed_when_it_stays(tmp_path: Path) -> None:
    waited: list[float] = []
    folder = TopologyFolder(tmp_path, print, clock=lambda: WRITTEN_AT - 5.0, pause=waited.append)
    write(tmp_path / "a.yaml", GOOD.format(name="words", policy="liu"), at=WRITTEN_AT)  # by a clock that is ahead
    for _ in range(2):
        assert set(folder.read()) == {"words"}
    assert waited == [SETTLED_SECONDS]


def test_file_that_is_written_while_it_is_read_keeps_its_last_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.yaml"
    folder = TopologyFolder(tmp_path, print)
    write(file, GOOD.format(name="words", policy="liu"), at=1)
    folder.read()
    write(file, GOOD.format(name="lines", policy="liu"), at=2)

    def read_too_early(path: Path) -> TopologySpec:
        spec = read_topology_file(path)
        write(path, GOOD.format(name="words", policy="even"), at=3)
        return spec

    with monkeypatch.context() as patch:
        patch.setattr(topology_folder, "read_topology_file", read_too_early)
        assert set(folder.read()) == {"words"}
    assert folder.read()["words"].scheduling.policy == "even"


def test_folder_that_vanishes_loses_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    inside = tmp_path / "inside"
    inside.mkdir()
    write(inside / "a.yaml", GOOD.format(name="words", policy="liu"), at=1)
    folder = TopologyFolder(inside, said.append)
    assert set(folder.read()) == {"words"}
    (inside / "a.yaml").unlink()
    inside.rmdir()
    assert set(folder.read()) == {"words"}
    assert "cannot be read" in said[0]
    assert sentences(folder) == (said[0],)


def test_file_that_could_not_be_read_is_read_again_although_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `chmod`, or when a disk that failed is back: neither changes the file."""
    said: list[str] = []
    folder = TopologyFolder(tmp_path, said.append)
    file = tmp_path / "a.yaml"
    write(file, GOOD.format(name="words", policy="liu"), at=1)
    with monkeypatch.context() as context:
        context.setattr(Path, "read_text", refuse)
        assert (folder.read(), folder.read()) == ({}, {})
    assert said == ["a.yaml: cannot be read: Permission denied"]
    assert folder.read()["words"].scheduling.policy == "liu"
    with monkeypatch.context() as context:
        context.setattr(Path, "read_text", refuse)
        write(file, GOOD.format(name="words", policy="even"), at=2)
        assert folder.read()["words"].scheduling.policy == "liu"
        assert said[-1].endswith("; its last good version stays in use")
        file.rename(tmp_path / "a")
        assert folder.read() == {}
        (tmp_path / "a").rename(file)
    assert folder.read()["words"].scheduling.policy == "even"


def refuse(*_: object, **__: object) -> str:
    raise PermissionError(13, "Permission denied")


def test_a_pipe_is_no_file_of_a_topology_and_nobody_waits_for_it(tmp_path: Path) -> None:
    said: list[str] = []
    os.mkfifo(tmp_path / "a.yaml")
    folder = TopologyFolder(tmp_path, said.append)
    assert folder.is_empty()
    assert folder.read() == {}
    assert topology_files(tmp_path) == []
    assert said == []


def test_file_that_cannot_even_be_looked_at_is_said_once_and_stops_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "a.yaml").symlink_to(tmp_path / "a.yaml")
    write(tmp_path / "b.yaml", GOOD.format(name="words", policy="liu"), at=1)
    folder = TopologyFolder(tmp_path, said.append)
    assert folder.read().keys() == {"words"}
    assert folder.read().keys() == {"words"}
    assert said == ["a.yaml: cannot be read: Too many levels of symbolic links"]


@pytest.mark.parametrize("path", ["a\\0.jar", "\\ud800.jar"])
def test_path_that_no_file_can_have_is_a_mistake_like_others(path: str, tmp_path: Path) -> None:
    said: list[str] = []
    text = GOOD.format(name="lines", policy="liu").replace("adopt: {}", f'jar: {{path: "{path}", mainClass: A}}')
    write(tmp_path / "a.yaml", text, at=1)
    write(tmp_path / "b.yaml", GOOD.format(name="words", policy="liu"), at=1)
    assert set(TopologyFolder(tmp_path, said.append).read()) == {"words"}
    assert said == [f"a.yaml: the path {path.encode().decode('unicode_escape')!r} is none that a file can have"]


@pytest.mark.parametrize("place", ["current.jar", "release/words.jar"])
def test_a_link_that_leads_to_another_jar_is_another_jar(place: str, tmp_path: Path) -> None:
    """As where a release is put in place: the StormTopology stays as it is, and what it names is another file."""
    jars = [tmp_path / release / "words.jar" for release in ("1.0", "1.1")]
    for path in jars:
        path.parent.mkdir()
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("Words.class", str(path))
    link = tmp_path / place.partition("/")[0]
    targets = [path if place == "current.jar" else path.parent for path in jars]
    (tmp_path / "topologies").mkdir()
    text = GOOD.format(name="words", policy="liu").replace("adopt: {}", f"jar: {{path: ../{place}, mainClass: A}}")
    write(tmp_path / "topologies" / "a.yaml", text, at=1)
    folder, found = TopologyFolder(tmp_path / "topologies", print), list[str]()
    for target in targets:
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        found.append(source_fingerprint(folder.read()["words"]))
    assert len(set(found)) == 2

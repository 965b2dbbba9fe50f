"""Profiles from a file and from ConfigMaps: followed when they change, never in the loop's way."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from learned_profiles import CLUSTER, profile, season
from storm_operator.adapters.errors import AdapterError, SubmissionError
from storm_operator.adapters.profile_file import ProfileFile
from storm_operator.core.learned_profile import LearnedProfile, NoProfile
from storm_operator.core.learned_profile_json import dump_profile
from storm_operator.core.topology_spec import AdoptSource, ConfigMapKey, TopologySpec
from storm_operator.kube.profile_maps import REREAD_SECONDS, ProfileMaps

FIRST = profile("words", ("spout",), season(1.0, 2.0))
SECOND = replace(FIRST, made_at_seconds=5.0)
WORDS = TopologySpec("words", AdoptSource())
SPECS = {"words": WORDS}


def test_a_file_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    source = ProfileFile(path, CLUSTER)
    missing = source.read(SPECS)["words"]
    assert isinstance(missing, NoProfile)
    assert "profile.json cannot be read" in missing.reason
    path.write_text(dump_profile(FIRST))
    first = source.read(SPECS)["words"]
    assert first == FIRST
    assert source.read(SPECS)["words"] is first
    path.write_text(dump_profile(SECOND))
    os.utime(path, ns=(1, 1))
    assert source.read(SPECS)["words"] == SECOND
    path.write_text("nonsense")
    nonsense = source.read(SPECS)["words"]
    assert isinstance(nonsense, NoProfile)
    assert "not JSON" in nonsense.reason
    path.write_bytes(b"\xff\xfe")
    assert isinstance(source.read(SPECS)["words"], NoProfile)


def test_a_disk_that_does_not_answer_takes_no_profile_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "profile.json"
    path.write_text(dump_profile(FIRST))
    source = ProfileFile(path, CLUSTER)

    def no_answer(_: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", no_answer)
        never_read = source.read(SPECS)["words"]
    assert isinstance(never_read, NoProfile)
    assert "Input/output error" in never_read.reason
    assert source.read(SPECS)["words"] == FIRST
    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", no_answer)
        assert source.read(SPECS)["words"] == FIRST
    path.unlink()
    assert isinstance(source.read(SPECS)["words"], NoProfile)


class Maps:
    """ConfigMaps by (namespace, name, key), and how often they were asked for."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str, str], str] = {}
        self.asked = 0
        self.now = 1000.0
        self.answers = True

    def text(self, namespace: str, name: str, key: str, field: str) -> str:
        self.asked += 1
        if not self.answers:
            raise AdapterError("the Kubernetes API does not answer")
        if (namespace, name, key) not in self.texts:
            raise SubmissionError(f"{field}: there is no ConfigMap {name} in {namespace}")
        return self.texts[namespace, name, key]

    def source(self, default: ConfigMapKey | None = None) -> ProfileMaps:
        return ProfileMaps(CLUSTER, self.text, lambda name: f"ns-{name}", default, lambda: self.now)


def test_nothing_is_asked_where_no_config_map_is_named() -> None:
    maps = Maps()
    assert maps.source().read(SPECS) == {}
    assert maps.asked == 0


def test_a_config_map_is_asked_for_once_a_minute_in_the_topologys_namespace() -> None:
    maps = Maps()
    maps.texts["ns-words", "learned", "profile.json"] = dump_profile(FIRST)
    source = maps.source(ConfigMapKey("learned", "profile.json"))
    for _ in range(5):
        assert source.read(SPECS)["words"] == FIRST
    assert maps.asked == 1
    maps.texts["ns-words", "learned", "profile.json"] = dump_profile(SECOND)
    maps.now += REREAD_SECONDS
    assert source.read(SPECS)["words"] == SECOND
    assert maps.asked == 2


def test_a_request_that_fails_takes_no_profile_back_and_is_made_again_by_the_next_pass() -> None:
    maps = Maps()
    maps.texts["ns-words", "learned", "profile.json"] = dump_profile(FIRST)
    source = maps.source(ConfigMapKey("learned", "profile.json"))
    found = []
    for answers in (False, True, False, True):
        maps.answers = answers
        found.append(source.read(SPECS)["words"])
        maps.now += 0.6 * REREAD_SECONDS
    assert isinstance(found[0], NoProfile)
    assert "does not answer" in found[0].reason
    assert found[1:] == [FIRST, FIRST, FIRST]
    maps.texts["ns-words", "learned", "profile.json"] = dump_profile(SECOND)
    maps.now += REREAD_SECONDS
    maps.answers = False
    assert source.read(SPECS)["words"] == FIRST
    maps.answers = True
    assert source.read(SPECS)["words"] == SECOND


def test_a_request_that_fails_is_made_once_a_pass_however_many_topologies_share_the_config_map() -> None:
    maps = Maps()
    maps.answers = False
    source = ProfileMaps(CLUSTER, maps.text, lambda _: "ns", ConfigMapKey("learned", "profile.json"), lambda: maps.now)
    found = source.read({name: replace(WORDS, name=name) for name in ("words", "lines", "counts")})
    assert (maps.asked, len(found)) == (1, 3)


def test_a_profile_goes_with_the_last_topology_that_it_is_for() -> None:
    maps = Maps()
    maps.texts["ns-words", "learned", "profile.json"] = dump_profile(FIRST)
    source = maps.source(ConfigMapKey("learned", "profile.json"))
    source.read(SPECS)
    source.read({})
    assert source._readings == {}


def test_a_topologys_own_config_map_goes_before_the_default() -> None:
    maps = Maps()
    maps.texts["ns-words", "own", "p"] = dump_profile(SECOND)
    specs = {"words": replace(WORDS, learned_profile=ConfigMapKey("own", "p")), "lines": replace(WORDS, name="lines")}
    found = maps.source(ConfigMapKey("learned", "profile.json")).read(specs)
    assert isinstance(found["words"], LearnedProfile)
    assert isinstance(found["lines"], NoProfile)
    assert "there is no ConfigMap learned in ns-lines" in found["lines"].reason


def test_a_config_map_that_comes_back_unchanged_is_read_again() -> None:
    maps = Maps()
    place = ("ns-words", "learned", "profile.json")
    source = maps.source(ConfigMapKey("learned", "profile.json"))
    for text in (dump_profile(FIRST), None, dump_profile(FIRST)):
        maps.texts.pop(place, None)
        if text is not None:
            maps.texts[place] = text
        maps.now += REREAD_SECONDS
        assert isinstance(source.read(SPECS)["words"], LearnedProfile) == (text is not None)

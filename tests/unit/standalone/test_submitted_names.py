"""What a JVM on this machine is given to submit a topology, and one that it submitted under another name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from storm_operator import jvm_submitter
from storm_operator.adapters.errors import AdapterError
from storm_operator.adapters.submission import StormClientHome, Submitted
from storm_operator.core.topology_spec import FluxSource, JarSource, TopologySpec
from storm_operator.jvm_submitter import JvmSubmitter


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (JarSource("x.jar", "a.Words"), "the main class submitted other, not 'words'; give that name to it in its arg"),
        (
            FluxSource("x.jar", definition="name: other"),
            "the Flux definition submitted other, not 'words'; give that name to it in its name: field",
        ),
    ],
)
def test_what_to_change_is_told(
    source: JarSource | FluxSource, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for way in ("submit_jar", "submit_flux"):
        monkeypatch.setattr(jvm_submitter, way, lambda *_: Submitted(("other",), ""))
    submitter = JvmSubmitter(StormClientHome(tmp_path, tmp_path))
    with pytest.raises(AdapterError) as refused:
        submitter.submit(replace(TopologySpec("words", source)), "a")
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("source", [JarSource("x.jar", "a.Words"), FluxSource("x.jar", definition="name: words")])
def test_a_main_class_has_the_time_that_is_asked_for(
    source: JarSource | FluxSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    def submit(_submission: object, _home: StormClientHome, timeout_seconds: float) -> Submitted:
        given.append(timeout_seconds)
        return Submitted(("words",), "")

    for way in ("submit_jar", "submit_flux"):
        monkeypatch.setattr(jvm_submitter, way, submit)
    JvmSubmitter(StormClientHome(tmp_path, tmp_path), 600.0).submit(TopologySpec("words", source), "a")
    assert given == [600.0]

"""Profiles that the pipeline published into ConfigMaps: the operator goes by a good one, and says why not by others."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from eventually import eventually

from learned_profiles import DAY_SECONDS, profile, season
from operator_scene import OperatorProcess, PlayedKubelet, Scene
from storm_operator.core.learned_profile import SEASONAL
from storm_pipeline.publishing import KEY, publish_to_config_map

pytestmark = pytest.mark.functional

NAME = "learned"
COMPONENTS = ("sentences", "split", "count")


def go_by(scene: Scene, config_map: str) -> None:
    """Another ConfigMap is read at once; the same one only once a minute."""
    named = {"configMap": {"name": config_map}}
    scene.apply(scene.topology(NAME, scheduling={"mode": "Observe"}, learnedProfile=named))


def forecasters(scene: Scene) -> dict[str, str]:
    """By component, as the status says."""
    return {one["component"]: one["forecaster"] for one in scene.status(NAME).get("forecasts", ())}


def refusals(scene: Scene) -> set[str]:
    """Why what was learned is not gone by."""
    return {one.get("whyNotLearned", "") for one in scene.status(NAME).get("forecasts", ())}


def test_a_published_profile_is_gone_by_and_others_are_refused_with_their_reason(
    scene: Scene, operator: OperatorProcess, kubelet: PlayedKubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(scene.kube.kubeconfig))
    now = time.time()
    good = profile(NAME, COMPONENTS, season(60.0, 60.0), now, scene.nimbus)
    old = replace(good, made_at_seconds=now - 20 * DAY_SECONDS, valid_until_seconds=now - DAY_SECONDS)
    foreign = replace(good, cluster="elsewhere:6627")
    for name, published in (("old", old), ("foreign", foreign), ("renewed", old), ("renewed", good)):
        publish_to_config_map(published, scene.namespace, name)
    # What the pipeline checks before it publishes can only be spoilt by hand.
    scene.kube.kubectl("delete", "configmap", "malformed", "-n", scene.namespace, "--ignore-not-found")
    scene.kube.kubectl(
        "create", "configmap", "malformed", "-n", scene.namespace, f'--from-literal={KEY}={{"version": 9}}'
    )

    submissions = len(kubelet.started)
    for name, reason in (
        ("absent", f"there is no ConfigMap absent in {scene.namespace}"),
        ("old", "the profile was valid until"),
        ("foreign", f"the profile is of cluster 'elsewhere:6627', this is {scene.nimbus!r}"),
        ("malformed", "version"),
    ):
        go_by(scene, name)
        eventually(lambda reason=reason: any(reason in why for why in refusals(scene)), f"{name}: {reason}")  # type: ignore[misc]
        assert SEASONAL not in forecasters(scene).values()
    go_by(scene, "renewed")
    eventually(lambda: {SEASONAL} == {forecasters(scene).get(name) for name in COMPONENTS}, "the season is gone by")
    assert len(kubelet.started) == submissions + 1, "another profile is no reason to submit anew"
    scene.delete(NAME)
    eventually(lambda: scene.is_gone(NAME), "the resource is gone")

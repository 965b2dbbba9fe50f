"""A watch that hangs without an error: the liveness probe must fail, so that the kubelet starts the operator anew."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import requests
from eventually import eventually

from freezing_proxy import FreezingProxy
from operator_scene import OperatorProcess, Scene
from storm_operator.adapters.kube.resources import API_VERSION, REBALANCES, TOPOLOGIES

pytestmark = pytest.mark.functional

NAME = "unseen"
LOOKS = ("--watch-look-seconds", "2")


def health(operator: OperatorProcess) -> tuple[int, str]:
    answer = requests.get(f"http://127.0.0.1:{operator.health_port}/healthz", timeout=10)
    return answer.status_code, answer.text


def topology(scene: Scene, **spec: Any) -> dict[str, Any]:
    """One that nobody can run, because it names no Nimbus: its status tells at once which version has been seen."""
    body = scene.topology(NAME, **spec)
    del body["spec"]["nimbus"]
    return body


def propose(scene: Scene) -> None:
    """A StormRebalance that nobody has approved."""
    spec = {"planId": "p-1", "planHash": "1", "baseHash": "2", "topologies": ["unseen-1-1"], "plan": "{}"}
    metadata = {"name": NAME, "namespace": scene.namespace}
    scene.apply({"apiVersion": API_VERSION, "kind": "StormRebalance", "metadata": metadata, "spec": spec})


def test_frozen_watch_is_noticed_and_a_new_life_sees_again(scene: Scene, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with FreezingProxy(scene.kube.kubeconfig) as proxy:
        through_proxy = proxy.kubeconfig(tmp_path / "kubeconfig")
        with OperatorProcess(
            scene.kube, scene.namespace, log, kubeconfig=through_proxy, lease="frozen", options=LOOKS
        ) as operator:
            scene.clear()
            scene.apply(topology(scene))
            for plural in (TOPOLOGIES, REBALANCES):
                eventually(lambda plural=plural: proxy.watches(plural), f"{plural} are watched")  # type: ignore[misc]
            eventually(lambda: scene.status(NAME).get("observedGeneration") == 1, "it is seen")
            eventually(lambda: health(operator) == (200, "ok"), "all is well")

            proxy.freeze()
            scene.apply(topology(scene, priority=7))
            propose(scene)
            for kind in ("StormTopologies", "StormRebalances"):
                unseen = f"the watch of {kind} is frozen: it has not seen {scene.namespace}/{NAME}"
                eventually(lambda unseen=unseen: unseen in health(operator)[1], f"it is noticed of {kind}")  # type: ignore[misc]
            assert health(operator)[0] == 503
            assert not operator.has_ended, "it holds its lease all the while"
            assert scene.status(NAME)["observedGeneration"] == 1

            operator.end(signal.SIGTERM)  # as the kubelet does then
            operator.start()
            eventually(lambda: scene.status(NAME).get("observedGeneration") == 2, "the next life sees it")
            eventually(lambda: health(operator) == (200, "ok"), "all is well again")
            scene.forget_plans()
            scene.delete(NAME)
            eventually(lambda: scene.is_gone(NAME), "the resource is gone")

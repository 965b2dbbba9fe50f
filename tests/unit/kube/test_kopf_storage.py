"""kopf itself, with the operator's handlers: what is written into a resource's annotations keeps it from nothing."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import kopf
import pytest
from kopf._cogs.structs.ephemera import AnyMemo, Memo
from kopf._cogs.structs.references import Resource
from kopf._core.actions import application
from kopf._core.actions.lifecycles import all_at_once
from kopf._core.engines.indexing import OperatorIndexers
from kopf._core.intents.causes import Activity
from kopf._core.reactor.inventory import ResourceMemories
from kopf._core.reactor.processing import process_resource_event

from kube_builders import NIMBUS, topology_body
from storm_operator.adapters.kube.resources import PAGE_SIZES, REBALANCES
from storm_operator.kube.handlers import Watched, build_registry
from storm_operator.kube.kopf_storage import ProgressInMemory
from storm_operator.kube.managed import Registry

KEY = ("streams", "words")
DELETION: dict[str, Any] = {"finalizers": ["storm-operator.dev/finalizer"], "deletionTimestamp": "2027-01-15T08:00:00Z"}
LAST_HANDLED = "kopf.storm-operator.dev/last-handled-configuration"


class Scene:
    """One life of the operator; patches are only noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.registry = Registry(NIMBUS)
        self.gone: set[str] = set()
        self.patches: list[dict[str, Any]] = []
        watched = Watched(self.registry, self.gone, lambda *_: None, lambda: datetime(2027, 1, 15, 8, tzinfo=UTC))
        self.handlers = build_registry(watched)
        self.settings = kopf.OperatorSettings()
        (configures,) = [
            one for one in self.handlers._activities.get_all_handlers() if one.activity is Activity.STARTUP
        ]
        configures.fn(settings=self.settings)  # type: ignore[call-arg]
        self.memories = ResourceMemories()
        monkeypatch.setattr(application, "patch_and_check", self._patched)

    async def _patched(self, *, patch: Any, **_: Any) -> tuple[None, None]:
        self.patches.append(dict(patch))
        return None, None

    def event(self, body: dict[str, Any]) -> None:
        asyncio.run(self._event(body))

    async def _event(self, body: dict[str, Any]) -> None:
        awake = asyncio.Event()
        awake.set()  # nothing is slept for
        await process_resource_event(
            lifecycle=all_at_once,
            indexers=OperatorIndexers(),
            registry=self.handlers,
            settings=self.settings,
            memories=self.memories,
            memobase=AnyMemo(Memo()),
            resource=Resource(
                "storm-operator.dev",
                "v1alpha1",
                "stormtopologies",
                kind="StormTopology",
                namespaced=True,
                subresources=frozenset({"status"}),
                verbs=frozenset({"list", "watch", "patch"}),
                preferred=True,
            ),
            raw_event={"type": "MODIFIED", "object": body},  # type: ignore[typeddict-item]
            event_queue=asyncio.Queue(),
            stream_pressure=awake,
        )


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


@pytest.mark.parametrize("written", ["", "garbage", "[1]", '{"spec": 3}'])
def test_a_resource_is_heard_of_whatever_its_annotations_say(written: str, scene: Scene) -> None:
    scene.event(topology_body(annotations={LAST_HANDLED: written}))
    assert scene.registry.topology(KEY) is not None


@pytest.mark.parametrize("written", ["garbage", "1", '{"delayed": "tomorrow"}', '{"success": true}'])
def test_a_deletion_is_handled_whatever_its_annotations_say(written: str, scene: Scene) -> None:
    (deletes,) = scene.handlers._changing.get_all_handlers()
    storage = kopf.AnnotationsProgressStorage(prefix="kopf.storm-operator.dev")
    names = storage.make_keys(deletes.id, body=kopf.Body(topology_body()))  # type: ignore[arg-type]
    body = topology_body(annotations=dict.fromkeys(names, written), **DELETION)
    scene.event(body)
    assert not any("finalizers" in patch.get("metadata", {}) for patch in scene.patches), "its topology may still run"
    scene.gone.add("uid-words")
    before = len(scene.patches)
    scene.settings.persistence.progress_storage = ProgressInMemory("kopf.storm-operator.dev")  # no pause is waited for
    scene.event(body)
    assert len(scene.patches) > before


def test_nothing_but_its_status_is_written_into_a_resource_that_has_its_finalizer(scene: Scene) -> None:
    scene.event(topology_body(finalizers=["storm-operator.dev/finalizer"]))
    assert {key for patch in scene.patches for key in patch} == {"status"}


def test_what_is_watched_is_listed_a_page_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Scene(monkeypatch).settings.watching.chunk_size == PAGE_SIZES[REBALANCES]

"""A page to test: the loop on the fake cluster, a watcher that listens to it, and the API over that."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loop_scene import SPECS, Scene, scene
from storm_operator.console.api import Api
from storm_operator.console.documents import unsqueezed
from storm_operator.console.messages import Request, Response
from storm_operator.console.watcher import Watcher
from storm_operator.loop_ports import Audience


@dataclass
class PageScene:
    played: Scene
    watcher: Watcher
    api: Api

    def get(self, path: str, **query: str) -> Any:
        """The document at `path`; an AssertionError where the answer is no success."""
        answer = self.ask(path, **query)
        assert answer.status == 200, answer.body
        return json.loads(unsqueezed(answer.body) if answer.is_gzip else answer.body)

    def ask(self, path: str, tag: str = "", **query: str) -> Response:
        return self.api.answer(Request("GET", f"/api/v1/{path}", query, known_tag=tag))


def page_scene(passes: int = 1, stopwatch: Callable[[], float] = time.monotonic) -> PageScene:
    """After so many passes; the first makes the plan that gathers what is spread."""
    played, watcher = scene(), Watcher(stopwatch=stopwatch)
    played.loop.listener = watcher
    for _ in range(passes):
        played.run(SPECS)
    return PageScene(played, watcher, Api(lambda: {"nimbus:6627": watcher}))


def reborn(page: PageScene) -> PageScene:
    """The next life of that operator before its first pass, on the same cluster and with the same journal."""
    played, watcher, killed = scene(), Watcher(), page.played
    played.cluster = played.observer.cluster = killed.cluster
    loop = played.loop
    loop.applier, loop.clock, loop.journal = killed.loop.applier, killed.cluster.clock, killed.journal
    loop.listener = Audience((watcher, played.audience), print)
    return PageScene(played, watcher, Api(lambda: {"nimbus:6627": watcher}))


def unseen(played: Scene, error: Exception) -> None:
    """One more pass, in which the cluster does not answer."""
    played.observer.error = error
    played.run(SPECS)
    played.observer.error = None

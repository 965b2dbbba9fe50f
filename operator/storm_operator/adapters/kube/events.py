"""Kubernetes events on the operator's objects; the same one is not repeated, but counted by its series of one."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from kubernetes.client import ApiClient, CoreV1Api

from storm_operator.adapters.kube.errors import Conflict, KubernetesError, NoAnswer, api_errors
from storm_operator.core.backoff import Retry, put_off
from storm_operator.core.clock_steps import is_younger

TIMEOUT_SECONDS = 5.0
LONGEST_MESSAGE = 1000
REPEATED_AFTER_SECONDS = 3600.0
RETRIED_AFTER_SECONDS = 60.0
"""Of news that could not be posted, where it is told again: an API server that refuses is not asked each time."""
KEPT = 2000


class Events:
    """Posts events, for all threads. An event is news for people: that one could not be posted stops nothing.

    Nor is it waited for again and again: where one was not answered none is posted for a while, ever longer. A plan is
    told to each of its topologies, of which there may be hundreds, and their spouts be paused.

    `now` is the time with its zone; `clock` one that nobody sets, in seconds.
    """

    def __init__(
        self,
        client: ApiClient,
        now: Callable[[], datetime],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api: Any = CoreV1Api(client)
        self._now = now
        self._say = say
        self._clock = clock
        self._silence: Retry | None = None
        self._lock = threading.Lock()
        self._posted: dict[str, float] = {}

    def post(self, about: Mapping[str, Any], reason: str, message: str, warning: bool = False) -> None:
        """Post once per object, reason and message an hour. `about` is the object's body."""
        if self._is_silent():
            return
        metadata = about["metadata"]
        now = self._now()
        key = f"{metadata.get('uid', '')} {reason} {message}"
        if not self._is_news(key, now.timestamp()):
            return
        body = event_body(about, reason, message, warning, now)
        try:
            with api_errors(f"event {reason} on {metadata['namespace']}/{metadata['name']}"):
                self._api.create_namespaced_event(metadata["namespace"], body, _request_timeout=TIMEOUT_SECONDS)
        except Conflict:
            return
        except KubernetesError as error:
            if isinstance(error, NoAnswer) and not self._is_silent():  # else another thread has just seen it
                self._silence = put_off(self._silence, "", self._clock())
            self._is_news_again(key, now.timestamp() + RETRIED_AFTER_SECONDS)
            self._say(str(error))
        else:
            self._silence = None

    def _is_silent(self) -> bool:
        silence = self._silence  # read once: other threads write it
        return silence is not None and self._clock() < silence.not_before_seconds

    def _is_news_again(self, key: str, from_seconds: float) -> None:
        with self._lock:
            self._posted[key] = from_seconds - REPEATED_AFTER_SECONDS

    def _is_news(self, key: str, now_seconds: float) -> bool:
        """Whether it is to be posted; from now on it is no news."""
        with self._lock:
            posted_seconds = self._posted.get(key)
            if posted_seconds is not None and is_younger(posted_seconds, REPEATED_AFTER_SECONDS, now_seconds):
                return False
            self._posted.pop(key, None)  # those posted last stand last
            self._posted[key] = now_seconds
            if len(self._posted) > KEPT:
                self._posted.pop(next(iter(self._posted)))
            return True


def event_body(about: Mapping[str, Any], reason: str, message: str, warning: bool, now: datetime) -> dict[str, Any]:
    """Pure: the event. Its name is that of its content and hour, so that a second replica cannot post it twice."""
    metadata = about["metadata"]
    about_what = f"{metadata.get('uid', '')} {reason} {message} {now:%Y%m%d%H}"
    digest = hashlib.sha256(about_what.encode()).hexdigest()[:12]
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "metadata": {"name": f"{metadata['name'][:200].rstrip('-.')}.{digest}", "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
            "resourceVersion": metadata.get("resourceVersion", ""),
        },
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": message[:LONGEST_MESSAGE],
        "source": {"component": "storm-operator"},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }

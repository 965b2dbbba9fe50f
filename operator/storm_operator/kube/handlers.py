"""kopf only, thin: events of resources go into the registry; a deletion waits until the topology is gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import kopf

from storm_operator.adapters.kube.resources import GROUP, PAGE_SIZES, REBALANCES, TOPOLOGIES, VERSION
from storm_operator.kube.calling_off import SUBMISSION_NOT_ENDED
from storm_operator.kube.kept_rebalance import as_kept
from storm_operator.kube.kopf_storage import NothingCompared, ProgressInMemory
from storm_operator.kube.letting_go import KILL_REFUSED, LET_GO
from storm_operator.kube.managed import Body, Managed, Registry, key_of
from storm_operator.kube.rebalances import WAITING_STATES, cluster_of, state_of
from storm_operator.kube.runners import IDLE_LIMIT_SECONDS
from storm_operator.kube.status import accepted_status, refused_status
from storm_operator.kube.status_news import is_news

DELETION_POLL_SECONDS = 2.0
DELETION_PATIENCE_SECONDS = 90.0
"""After this without an answer, and the time that killing takes, a resource goes even if nobody could see to its
topology: a finalizer must never block for ever. A loop that is busy has not asked yet: it has `IDLE_LIMIT_SECONDS`."""

FIRST_LOOK_SECONDS = 300.0
"""So long, and the time that killing takes, an operator that has just heard of a deletion has at least: it may have
been away for hours, or its clock be ahead of the API server's. Less than a loop that is stuck has before it is begun
anew."""

IN_THE_WAY = frozenset({SUBMISSION_NOT_ENDED, KILL_REFUSED})
"""Reasons of conditions that say why a resource could not be let go although Nimbus answered."""

WATCH_SERVER_TIMEOUT_SECONDS = 300
WATCH_CLIENT_TIMEOUT_SECONDS = 320
CONNECT_TIMEOUT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Watched:
    """What handlers share with the loops. `gone` has the uids of resources whose topology no longer needs us, until
    they are deleted; `leaving`, by uid, since when those that wait for that are known here, by `clock`."""

    registry: Registry
    gone: set[str]
    tell: Callable[[Managed, str, str, bool], None]
    now: Callable[[], datetime]
    deletion_patience_seconds: float = DELETION_PATIENCE_SECONDS
    clock: Callable[[], float] = time.monotonic
    leaving: dict[str, float] = field(default_factory=dict)


def build_registry(watched: Watched) -> kopf.OperatorRegistry:
    """All handlers, bound to `watched`."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.startup(registry=handlers)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        # A watch that the server never ends can freeze without a sign; these make it begin anew.
        settings.watching.server_timeout = WATCH_SERVER_TIMEOUT_SECONDS
        settings.watching.client_timeout = WATCH_CLIENT_TIMEOUT_SECONDS
        settings.watching.connect_timeout = CONNECT_TIMEOUT_SECONDS
        settings.watching.chunk_size = PAGE_SIZES[REBALANCES]
        settings.networking.request_timeout = 30
        settings.persistence.finalizer = f"{GROUP}/finalizer"
        settings.persistence.progress_storage = ProgressInMemory(f"kopf.{GROUP}")
        settings.persistence.diffbase_storage = NothingCompared()
        settings.posting.enabled = False
        settings.scanning.disabled = True

    @kopf.on.login(registry=handlers)
    def log_in(**context: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**context) or kopf.login_with_kubeconfig(**context)

    @kopf.on.event(GROUP, VERSION, TOPOLOGIES, registry=handlers)
    async def topology_seen(type: str | None, body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:  # noqa: A002 - kopf's
        on_topology_event(watched, type, dict(body), patch)

    @kopf.on.event(GROUP, VERSION, REBALANCES, registry=handlers)
    async def rebalance_seen(type: str | None, body: kopf.Body, **_: Any) -> None:  # noqa: A002 - kopf's name
        if type == "DELETED":
            on_rebalance_end(watched.registry, dict(body))
        else:
            watched.registry.put_rebalance(as_kept(dict(body)))

    @kopf.on.delete(GROUP, VERSION, TOPOLOGIES, registry=handlers)
    def topology_leaves(body: kopf.Body, **_: Any) -> None:
        on_deletion(watched, dict(body))

    return handlers


def on_topology_event(watched: Watched, kind: str | None, body: dict[str, Any], patch: Any) -> None:
    """Remember the resource; answer at once what its spec alone tells: accepted, or what is wrong with it."""
    if kind == "DELETED":
        on_topology_end(watched.registry, watched.gone, body)
        return
    managed = watched.registry.put_topology(body)
    if managed.is_being_deleted:
        return
    old = body.get("status") or {}
    now = watched.now().timestamp()
    if managed.spec is None:
        status = refused_status(managed, "InvalidSpec", managed.problem, now)
        if is_news(old, status):
            patch.status.update(status)
    elif not old:
        patch.status.update(accepted_status(managed, now))


def on_topology_end(registry: Registry, gone: set[str], body: Body) -> None:
    """The resource is gone, whoever noticed it."""
    uid = str(body["metadata"]["uid"])
    registry.forget_topology(key_of(body), uid)
    gone.discard(uid)


def on_rebalance_end(registry: Registry, body: Body) -> None:
    """A plan that waits for a person can no longer be answered: its loop hears of that."""
    registry.forget_rebalance(key_of(body))
    if state_of(body) in WAITING_STATES:
        registry.note_deleted_proposal(cluster_of(body), key_of(body))


def on_deletion(watched: Watched, body: dict[str, Any]) -> None:
    """Let the resource go once its topology is seen to, or when that takes too long; raises kopf.TemporaryError."""
    managed = watched.registry.put_topology(body)
    if managed.uid in watched.gone:
        watched.leaving.pop(managed.uid, None)
        return
    if managed.spec is None:
        what = _what_may_run(body.get("status") or {})
        if what:
            words = f"its spec is invalid, so nothing was killed: {what} may still run; `storm kill` ends it"
            watched.tell(managed, LET_GO, words, True)
        return
    asked_at = datetime.fromisoformat(str(body["metadata"]["deletionTimestamp"]).replace("Z", "+00:00"))
    waited = (watched.now() - asked_at.astimezone(UTC)).total_seconds()
    why = _why_let_go(watched, managed, waited, managed.spec.kill_wait_seconds)
    if why:
        watched.leaving.pop(managed.uid, None)
        watched.tell(managed, LET_GO, f"{why}; the topology may still run there", True)
        return
    raise kopf.TemporaryError(f"waiting for Nimbus {managed.nimbus}", delay=DELETION_POLL_SECONDS)


def _what_may_run(status: Body) -> str:
    """For a resource with that status, in words; empty where nothing does. A Job may be faster than its end."""
    submission = status.get("submission") or {}
    is_open = "job" in submission and not submission.get("submittedAt")
    return str(status.get("topologyId") or (f"what its job {submission['job']} submitted" if is_open else ""))


def _why_let_go(watched: Watched, managed: Managed, waited_seconds: float, kill_seconds: float) -> str:
    """Why nobody is waited for any more; empty while somebody is."""
    nimbus = managed.nimbus
    patience_seconds = watched.deletion_patience_seconds + kill_seconds
    known_seconds = watched.clock() - watched.leaving.setdefault(managed.uid, watched.clock())
    asked = watched.registry.unanswered(nimbus)
    unanswered = 0.0 if asked is None else min(waited_seconds, watched.now().timestamp() - asked.since_seconds)
    if asked is not None and unanswered > patience_seconds:
        if asked.why:
            return f"nobody could see to it on Nimbus {nimbus} for {unanswered:.0f} s: {asked.why}"
        return f"Nimbus {nimbus} did not answer for {unanswered:.0f} s"
    has_looked = known_seconds > FIRST_LOOK_SECONDS + kill_seconds
    if waited_seconds > IDLE_LIMIT_SECONDS + patience_seconds and has_looked:
        for condition in (managed.body.get("status") or {}).get("conditions") or ():
            if condition.get("reason") in IN_THE_WAY:
                return f"it was waited for {waited_seconds:.0f} s: {condition.get('message')}"
        return f"nobody could see to it on Nimbus {nimbus} for {waited_seconds:.0f} s"
    return ""

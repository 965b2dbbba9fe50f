"""The JSON API under the page: what each path answers. No sockets here: a request in, a response out."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.metadata import version

from storm_operator.console.api_documents import ClusterEntry, Clusters, Failure, Plans, Verdicts
from storm_operator.console.approval import Approver, Verdict, not_waiting
from storm_operator.console.documents import squeezed, to_bytes, unsqueezed
from storm_operator.console.explain import held_view
from storm_operator.console.messages import BadRequest, Request, Response, tag_of
from storm_operator.console.routes import matched
from storm_operator.console.views import PassView
from storm_operator.console.watcher import Seen, Watcher

NOTHING_YET = "no pass has been made yet: ask again in a moment"


@dataclass(slots=True)
class Api:
    """`clusters` tells the watchers by cluster name; `approver` None: the page cannot approve.

    `trouble` says why there is nothing to be seen here, if so.
    """

    clusters: Callable[[], Mapping[str, Watcher]]
    approver: Approver | None = None
    trouble: Callable[[], str] = lambda: ""
    instance: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    """Another one for each life of the operator: a caller that sees another one starts over."""

    def answer(self, request: Request) -> Response:
        """Never raises for what a caller does wrong."""
        try:
            name, values = matched(request)
            return getattr(self, f"_{name}")(request, values)  # type: ignore[no-any-return]
        except BadRequest as error:
            return Response(error.status, to_bytes(Failure(str(error))))

    def _clusters(self, request: Request, _: Mapping[str, str]) -> Response:
        watchers = dict(sorted(self.clusters().items()))
        seen = {name: watcher.seen for name, watcher in watchers.items()}
        ages = {name: watcher.pass_age_seconds for name, watcher in watchers.items()}
        # Time that passes is news once a minute: who asks each second is not sent all of it each time, and a browser
        # that opens the page again does not go by an age of long ago.
        minutes = {name: None if age is None else age // 60.0 for name, age in ages.items()}
        tag = tag_of(to_bytes(self._listed(seen, minutes)))
        return self._unless_known(request, tag, lambda: to_bytes(self._listed(seen, ages)))

    def _listed(self, seen: Mapping[str, Seen], pass_ages: Mapping[str, float | None]) -> Clusters:
        approval = "off" if self.approver is None else "token" if self.approver.needs_token else "open"
        return Clusters(
            instance=self.instance,
            version=version("storm-operator"),
            approval=approval,
            trouble=self.trouble(),
            clusters=tuple(
                ClusterEntry(
                    name=name,
                    life=one.life,
                    passes=one.passes,
                    plan_changes=one.plan_changes,
                    at_seconds=one.view.at_seconds if one.passes else None,
                    pass_age_seconds=pass_ages.get(name),
                    period_seconds=one.view.period_seconds,
                    topologies=len(one.view.topologies),
                    executors=len(one.view.executors),
                    held_resizes={id_: held_view(held) for id_, held in sorted(one.held_resizes.items())},
                )
                for name, one in seen.items()
            ),
        )

    def _view(self, request: Request, _: Mapping[str, str]) -> Response:
        seen = self._cluster(request)
        at = _number(request, "at")
        if at is None:
            return self._view_now(request, seen)
        kept = seen.history.at(at)
        if kept is None:
            raise BadRequest(NOTHING_YET, HTTPStatus.SERVICE_UNAVAILABLE)
        return self._unless_known(request, f"{seen.life}-{kept.number}", lambda: kept.view, is_gzip=True)

    def _view_now(self, request: Request, seen: Seen) -> Response:
        newest, now = seen.history.newest, seen.view_now
        if newest is None:
            raise BadRequest(NOTHING_YET, HTTPStatus.SERVICE_UNAVAILABLE)
        tag = f"{seen.life}-{newest.number}-{seen.plan_changes}"
        kept = newest.view
        make = (lambda: kept) if now is seen.view else (lambda: squeezed(to_bytes(now)))
        return self._unless_known(request, tag, make, is_gzip=True)

    def _history(self, request: Request, _: Mapping[str, str]) -> Response:
        seen, since = self._cluster(request), _number(request, "since") or 0
        passes = seen.history.since(int(since))
        tag = f"{seen.life}-{seen.passes}-{int(since)}"
        return self._unless_known(request, tag, lambda: _list("passes", [one.point for one in passes]))

    def _forecasts(self, request: Request, _: Mapping[str, str]) -> Response:
        seen, since = self._cluster(request), _number(request, "since") or 0
        passes = seen.history.since(int(since))
        tag = f"{seen.life}-{seen.passes}-{int(since)}"
        return self._unless_known(request, tag, lambda: _list("passes", [unsqueezed(one.loads) for one in passes]))

    def _plans(self, request: Request, _: Mapping[str, str]) -> Response:
        seen = self._cluster(request)
        tag = f"{seen.life}-{seen.changes}"
        return self._unless_known(request, tag, lambda: to_bytes(Plans(seen.plan_views())))

    def _scene(self, request: Request, values: Mapping[str, str]) -> Response:
        seen, plan_id = self._cluster(request), values["plan"]
        known = seen.plan(plan_id)
        if known is None:
            raise _no_plan(plan_id)
        scene = known.scene
        if scene is None:
            raise BadRequest(
                f"the cluster that {plan_id} was made for is known when the pass that made it has ended, and not after "
                f"a restart of the operator",
                HTTPStatus.NOT_FOUND,
            )
        found = scene
        return self._unless_known(request, f"{seen.life}-{plan_id}", lambda: found, is_gzip=True)

    def _explanation(self, request: Request, values: Mapping[str, str]) -> Response:
        seen = self._cluster(request)
        found = seen.explain(values["topology"])
        if found is None and seen.view.measured_at_seconds is None:
            raise BadRequest(_why_never_seen(seen.view), HTTPStatus.SERVICE_UNAVAILABLE)
        if found is None:
            names = ", ".join(sorted(one.name for one in seen.view.topologies)) or "none at all"
            refused = (one.sentence for one in seen.refused if one.concerns(values["topology"]))
            raise BadRequest(
                "; ".join((f"there is no topology {values['topology']!r}: there are {names}", *refused)),
                status=HTTPStatus.NOT_FOUND,
            )
        return self._unless_known(request, f"{seen.life}-{seen.changes}", lambda: to_bytes(found))

    def _verdict(self, request: Request, values: Mapping[str, str]) -> Response:
        if self.approver is None:
            raise BadRequest(
                "plans are not approved here: start the operator with --page-approval", HTTPStatus.FORBIDDEN
            )
        self._cluster(request)
        plan_id = values["plan"]
        answer = self.approver.take(plan_id, _asked(request.body), request.token)
        if answer == not_waiting(plan_id) and all(one.seen.plan(plan_id) is None for one in self.clusters().values()):
            raise _no_plan(plan_id)
        return Response(answer.status, to_bytes(Verdicts(answer.message)))

    def _cluster(self, request: Request) -> Seen:
        clusters = self.clusters()
        name = request.query.get("cluster") or next(iter(sorted(clusters)), "")
        if not clusters:
            words = self.trouble() or "no Storm cluster is managed yet: no StormTopology names one"
            raise BadRequest(words, HTTPStatus.SERVICE_UNAVAILABLE)
        if name not in clusters:
            known = ", ".join(sorted(clusters))
            raise BadRequest(f"cluster is {name!r}: one of {known} is right", HTTPStatus.NOT_FOUND)
        return clusters[name].seen

    def _unless_known(self, request: Request, tag: str, make: Callable[[], bytes], is_gzip: bool = False) -> Response:
        quoted = f'"{tag}"'
        if request.known_tag == quoted:
            return Response(HTTPStatus.NOT_MODIFIED, b"", tag=quoted)
        return Response(HTTPStatus.OK, make(), tag=quoted, is_gzip=is_gzip)


def _no_plan(plan_id: str) -> BadRequest:
    return BadRequest(f"there is no plan {plan_id!r} among the last ones", HTTPStatus.NOT_FOUND)


def _why_never_seen(view: PassView) -> str:
    """Which topologies there are nobody knows."""
    told = [decision.message for decision in view.decisions]
    return f"the cluster has not been seen yet: {'; '.join(told)}" if told else NOTHING_YET


def _number(request: Request, name: str) -> float | None:
    text = request.query.get(name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0.0 <= value < float("inf"):
        raise BadRequest(f"{name} is {text!r}: a number of 0 or more is right")
    return value


def _asked(body: bytes) -> Verdict:
    bodies = " or ".join(f'{{"verdict": "{verdict}"}}' for verdict in Verdict)
    try:
        given = json.loads(body)
        return Verdict(given["verdict"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadRequest(f"the body must be {bodies}") from error


def _list(name: str, items: list[bytes]) -> bytes:
    """An object with a list of documents that are text already."""
    return b'{"' + name.encode() + b'":[' + b",".join(items) + b"]}"

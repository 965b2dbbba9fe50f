"""`storm-operator status` and `explain`: what the page shows, for people who live in a terminal. Asks the API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn
from urllib.parse import quote

import requests
import typer

from storm_operator.cli_output import Form, Output, plain_console, table_console, written_out
from storm_operator.core.server_url import proxies_to, without_userinfo
from storm_operator.status_view import explanation_view, status_view

DEFAULT_URL = "http://127.0.0.1:8088"
VERSION = 1
TIMEOUT_SECONDS = 10.0
EXIT_UNREACHABLE = 1

Document = Mapping[str, Any]
Url = Annotated[str, typer.Option(envvar="STORM_OPERATOR_URL", help="Where the operator serves its page.")]
Cluster = Annotated[str | None, typer.Option(help="Only this Storm cluster (its Nimbus); else all.")]


class NotToBeHad(Exception):
    """The operator does not answer, or says no; the message says what to do."""


class NothingManaged(NotToBeHad):
    """The operator answers, and has no cluster to tell of."""


def status(url: Url = DEFAULT_URL, cluster: Cluster = None, output: Form = Output.TABLE) -> None:
    """Topologies, how they fare, what was decided last, and where everything runs. Asks a running operator.

    Ends with 1 where it cannot tell of one of the clusters, after it has told of the others.
    """
    try:
        names = _cluster_names(url, cluster)
    except NothingManaged as error:
        if output is Output.TABLE:
            _fail("status", str(error))
        names = []
    except NotToBeHad as error:
        _fail("status", str(error))
    found, troubles = _all_statuses(url, names)
    with written_out("status"):
        if output is Output.JSON:
            typer.echo(json.dumps({"version": VERSION, "clusters": found}, indent=2))
        else:
            console = table_console()
            for one in found:
                console.print(status_view(**one, url=without_userinfo(url)))
    if troubles:
        _fail("status", "; ".join(troubles))


def explain(
    topology: Annotated[str, typer.Argument(help="Its name, or its id in Storm.")],
    url: Url = DEFAULT_URL,
    cluster: Cluster = None,
    output: Form = Output.TABLE,
) -> None:
    """Why the last decision about a topology was what it was, in plain words with the numbers."""
    try:
        found = _explanation(url, _cluster_names(url, cluster), topology)
    except NotToBeHad as error:
        _fail("explain", str(error))
    with written_out("explain"):
        if output is Output.JSON:
            typer.echo(json.dumps({"version": VERSION, **found}, indent=2))
        else:
            plain_console().print(explanation_view(found))


def _all_statuses(url: str, clusters: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Of each cluster that the operator can tell of; and why it cannot of the others, by name."""
    found, troubles = [], []
    for cluster in clusters:
        try:
            found.append(_status_of(url, cluster))
        except NotToBeHad as error:
            troubles.append(f"{cluster}: {error}")
    return found, troubles


def _status_of(url: str, cluster: str) -> dict[str, Any]:
    query = {"cluster": cluster}
    view, plans = _get(url, "view", query), _get(url, "plans", query)["plans"]
    known = _get(url, "clusters", {})  # last, so that a pass meanwhile is no old one
    age = next((one.get("pass_age_seconds") for one in known["clusters"] if one["name"] == cluster), None)
    approval = known.get("approval", "")
    return {"name": cluster, "view": view, "plans": plans, "pass_age_seconds": age, "approval": approval}


def _explanation(url: str, clusters: list[str], topology: str) -> Document:
    """From the one cluster that runs it."""
    answers: dict[str, Document] = {}
    refusals = []
    for cluster in clusters:
        try:
            answers[cluster] = _get(url, f"topologies/{quote(topology, safe='')}/explanation", {"cluster": cluster})
        except NotToBeHad as error:
            refusals.append(str(error))
    if not answers:
        raise NotToBeHad("; ".join(refusals))
    if len(answers) > 1:
        raise NotToBeHad(f"{topology} runs on {', '.join(sorted(answers))}: say which with --cluster")
    return next(iter(answers.values()))


def _cluster_names(url: str, wanted: str | None) -> list[str]:
    answer = _get(url, "clusters", {})
    try:
        names, trouble = [str(one["name"]) for one in answer["clusters"]], str(answer["trouble"])
    except (KeyError, TypeError) as error:
        raise _no_operator(url) from error
    if not names and trouble:
        raise NotToBeHad(trouble)
    if wanted is not None and wanted not in names:
        right = f"one of {', '.join(names)} is right" if names else "no Storm cluster is managed yet"
        raise NotToBeHad(f"--cluster is {wanted!r}: {right}")
    if not names:
        raise NothingManaged("no Storm cluster is managed yet: no StormTopology names one")
    return names if wanted is None else [wanted]


def _get(url: str, path: str, query: Mapping[str, str]) -> Document:
    told = without_userinfo(url)
    if not url.lower().startswith(("http://", "https://")):
        raise NotToBeHad(f"--url is {told!r}: it must begin with http:// or https://, like {DEFAULT_URL}")
    address = f"{url.rstrip('/')}/api/v1/{path}"
    try:
        answer = requests.get(address, params=query, timeout=TIMEOUT_SECONDS, proxies=proxies_to(url))
        document = answer.json()
    except requests.JSONDecodeError as error:
        raise _no_operator(url) from error
    except (requests.RequestException, ValueError) as error:  # the latter of a host that can be none
        raise NotToBeHad(
            f"no operator answers at {told}: start one (storm-operator standalone), forward its port (kubectl "
            f"port-forward deployment/storm-operator 8088), or say where it is with --url"
        ) from error
    if not isinstance(document, dict) or not (answer.ok or "message" in document):
        raise _no_operator(url)
    if not answer.ok:
        raise NotToBeHad(str(document["message"]))
    return document


def _no_operator(url: str) -> NotToBeHad:
    return NotToBeHad(
        f"what answers at {without_userinfo(url)} is no storm-operator: --url must be where it serves its page"
    )


def _fail(command: str, message: str) -> NoReturn:
    typer.echo(f"storm-operator {command}: {message}", err=True)
    raise typer.Exit(EXIT_UNREACHABLE)

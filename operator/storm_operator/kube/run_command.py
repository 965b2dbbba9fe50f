"""`storm-operator run`: the operator in Kubernetes."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import typer

from storm_operator.adapters.kube.clients import NoKubernetes, connect
from storm_operator.adapters.kube.leases import Lease, LeaseTerms
from storm_operator.adapters.nimbus.connection import NimbusAddress
from storm_operator.assembly import DEFAULT_AGENT_PORT
from storm_operator.console.server import DEFAULT_PORT
from storm_operator.core.host_and_port import host_and_port
from storm_operator.core.nimbus_name import nimbus_name
from storm_operator.core.server_url import checked_url
from storm_operator.core.topology_spec import ConfigMapKey
from storm_operator.history.settings import MOST_DAYS, MOST_GIGABYTES, HistorySettings
from storm_operator.http_listening import ALL_ADDRESSES
from storm_operator.kube.canary import LOOK_SECONDS
from storm_operator.kube.connecting import RunnerSettings
from storm_operator.kube.handlers import DELETION_PATIENCE_SECONDS
from storm_operator.kube.health import serve_health
from storm_operator.kube.leader import Operator
from storm_operator.kube.leadership import lead_under, wait_for_leadership
from storm_operator.kube.managed import Registry
from storm_operator.kube.page import KubePage
from storm_operator.kube.runners import Runners
from storm_operator.kube.submission import JobSettings
from storm_operator.kube.submission_pod import InvalidSubmissionPod, parse_submission_pod
from storm_operator.log_lines import log_to_stderr
from storm_operator.operator_metrics import ListenError, OperatorMetrics, RunMode

NO_KUBERNETES = 1
LOST_LEADERSHIP = 3
LAST_DEED_SECONDS = 0.7
"""Less than the `leadership.LAST_MOMENT_SECONDS` before the Lease lapses."""
PROFILE_KEY = "profile.json"
log = logging.getLogger("storm_operator")


def env(name: str) -> str:
    return f"STORM_OPERATOR_{name}"


def run(
    nimbus: Annotated[
        str | None, typer.Option(envvar=env("NIMBUS"), metavar="HOST:PORT", help="Nimbus of resources that name none.")
    ] = None,
    watch_namespace: Annotated[
        list[str] | None,
        typer.Option(envvar=env("WATCH_NAMESPACE"), help="Namespace to watch (repeatable; none: all of them)."),
    ] = None,
    storm_image: Annotated[
        str, typer.Option(envvar=env("STORM_IMAGE"), help="Image with Storm, for the Jobs that submit topologies.")
    ] = "storm-operator/storm",
    storm_image_pull_policy: Annotated[str, typer.Option(envvar=env("STORM_IMAGE_PULL_POLICY"))] = "IfNotPresent",
    submitter_service_account: Annotated[
        str, typer.Option(envvar=env("SUBMITTER_SERVICE_ACCOUNT"), help="ServiceAccount of those Jobs.")
    ] = "default",
    submission_pod: Annotated[
        str,
        typer.Option(
            envvar=env("SUBMISSION_POD"),
            metavar="JSON",
            help="More of those Jobs' pods: resources, nodeSelector, tolerations, imagePullSecrets, as Kubernetes has "
            "them; and deadlineSeconds of the Jobs.",
        ),
    ] = "{}",
    agent_port: Annotated[
        int,
        typer.Option(envvar=env("AGENT_PORT"), min=1, max=65535, help="Port of the agents beside the supervisors."),
    ] = DEFAULT_AGENT_PORT,
    prometheus: Annotated[
        str | None,
        typer.Option(
            envvar=env("PROMETHEUS"),
            metavar="URL",
            help="Ask this Prometheus instead of the agents; it scrapes every 3/4 period or oftener. "
            "While a plan is applied the agents are asked all the same.",
        ),
    ] = None,
    match: Annotated[
        str,
        typer.Option(
            envvar=env("MATCH"), help="Narrows --prometheus to the series of the clusters managed: 'cluster=\"blue\"'."
        ),
    ] = "",
    history: Annotated[
        str | None,
        typer.Option(envvar=env("HISTORY"), metavar="PATH", help="Record every period to this folder or s3:// prefix."),
    ] = None,
    history_days: Annotated[
        float, typer.Option(envvar=env("HISTORY_DAYS"), min=1.0, max=MOST_DAYS, help="Recorded days that are kept.")
    ] = 400.0,
    history_gigabytes: Annotated[
        float,
        typer.Option(
            envvar=env("HISTORY_GIGABYTES"),
            min=0.01,
            max=MOST_GIGABYTES,
            help="Recorded gigabytes kept of each cluster.",
        ),
    ] = 20.0,
    learned_profile: Annotated[
        str | None,
        typer.Option(
            envvar=env("LEARNED_PROFILE"),
            metavar="NAME",
            help="ConfigMap with the learned profile (key profile.json) of topologies that name none, each in its "
            "own namespace.",
        ),
    ] = None,
    deletion_patience_seconds: Annotated[
        float,
        typer.Option(
            envvar=env("DELETION_PATIENCE_SECONDS"),
            min=0.0,
            help="A deleted StormTopology whose Nimbus does not answer is let go after so long.",
        ),
    ] = DELETION_PATIENCE_SECONDS,
    watch_look_seconds: Annotated[
        float,
        typer.Option(
            envvar=env("WATCH_LOOK_SECONDS"),
            min=0.5,
            help="So often what is watched is listed: after three times without what is listed, a watch is frozen.",
        ),
    ] = LOOK_SECONDS,
    lease_namespace: Annotated[
        str, typer.Option(envvar="POD_NAMESPACE", help="Namespace of the lease for leader election.")
    ] = "default",
    lease_name: Annotated[str, typer.Option(envvar=env("LEASE_NAME"))] = "storm-operator",
    health_port: Annotated[int, typer.Option(envvar=env("HEALTH_PORT"), min=1, max=65535, help="GET /healthz")] = 8081,
    metrics_port: Annotated[
        int, typer.Option(envvar=env("METRICS_PORT"), min=1, max=65535, help="GET /metrics")
    ] = 8080,
    page_port: Annotated[
        int,
        typer.Option(envvar=env("PAGE_PORT"), min=0, max=65535, help="Port of the page and its JSON API; 0: none."),
    ] = DEFAULT_PORT,
    page_approval: Annotated[
        bool,
        typer.Option(
            "--page-approval",
            envvar=env("PAGE_APPROVAL"),
            help="Plans can be approved on the page, with a Kubernetes token that may patch stormrebalances.",
        ),
    ] = False,
    kubeconfig: Annotated[
        str | None, typer.Option(help="A kubeconfig file; else the pod's ServiceAccount, or the usual file.")
    ] = None,
) -> None:
    """Manage StormTopology resources. Ends when told to; topologies run on under the plans in force."""
    try:
        submitter = parse_submission_pod(submission_pod)
    except InvalidSubmissionPod as error:
        raise typer.BadParameter(f"--submission-pod: {error}") from None
    _check_addresses(nimbus, prometheus)
    _refuse_what_does_nothing(match, prometheus, page_approval, page_port)
    _set_up_logging()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    pod = os.environ.get("POD_NAME")
    identity = f"{pod or socket.gethostname()}-{os.getpid()}"
    terms = LeaseTerms(lease_namespace, lease_name, identity)
    if kubeconfig is not None:
        os.environ["KUBECONFIG"] = kubeconfig  # for both clients: kopf's and our own
    metrics = OperatorMetrics(RunMode.KUBERNETES)
    try:
        clients = connect(log.info, metrics.calls())
    except NoKubernetes as error:
        typer.echo(f"storm-operator run: {error}; name one with --kubeconfig", err=True)
        raise typer.Exit(NO_KUBERNETES) from None
    lease = Lease(clients.api, terms, lambda: datetime.now(UTC))
    settings = RunnerSettings(
        JobSettings(storm_image, storm_image_pull_policy, submitter_service_account, submitter),
        agent_port,
        prometheus,
        HistorySettings(history, None, history_days, history_gigabytes) if history else None,
        ConfigMapKey(learned_profile, PROFILE_KEY) if learned_profile else None,
        KubePage() if page_port else None,
        f"{lease_namespace}/{pod}" if pod else "",
        match,
    )
    registry = Registry(nimbus_name(nimbus, lease_namespace) if nimbus else None)
    operator = Operator(clients, registry, settings, tuple(watch_namespace or ()), metrics, watch_look_seconds)
    metrics.watch_ages = operator.watch_ages
    _serve_health(health_port, operator)
    try:
        metrics.serve(metrics_port)
    except ListenError as error:
        raise typer.BadParameter(f"--metrics-port: {error}") from None
    if page_port:
        operator.show_page(page_port, page_approval)
    log.info("storm-operator starts as %s", identity)
    held_since = wait_for_leadership(lease, terms, stop, log.info)
    if held_since is not None:
        lead = partial(operator.lead, stop, deletion_patience_seconds)
        lead_under(lease, terms, held_since, lead, partial(end_at_once, operator.runners), log.info)
    log.info("ended; topologies run on under the plans in force")


def _check_addresses(nimbus: str | None, prometheus: str | None) -> None:
    if nimbus:
        try:
            NimbusAddress.parse(nimbus)
        except ValueError as error:
            raise typer.BadParameter(f"--nimbus: {error}") from None
    if prometheus:
        try:
            checked_url("--prometheus", prometheus)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None


def _refuse_what_does_nothing(match: str, prometheus: str | None, page_approval: bool, page_port: int) -> None:
    if match and not prometheus:
        raise typer.BadParameter("--match narrows what a Prometheus is asked for: give --prometheus URL as well")
    if page_approval and not page_port:
        raise typer.BadParameter("--page-approval is for the page; --page-port 0 says: none")


def _serve_health(port: int, operator: Operator) -> None:
    try:
        serve_health(port, operator.problem)
    except OSError as error:
        address = host_and_port(ALL_ADDRESSES, port)
        raise typer.BadParameter(f"--health-port: cannot listen on {address}: {error.strerror}") from None


def _set_up_logging() -> None:
    log_to_stderr()
    logging.getLogger("kopf").setLevel(logging.WARNING)
    # kazoo and the Kubernetes client tell their callers what is wrong; in the log it would be told twice.
    for chatty in ("kazoo", "urllib3", "kubernetes"):
        logging.getLogger(chatty).setLevel(logging.ERROR)
    for handler in logging.getLogger().handlers:
        # That a deletion waits for Nimbus is how it is meant to be; kopf calls it an error every two seconds.
        handler.addFilter(lambda record: "failed temporarily" not in record.getMessage())


def end_at_once(runners: Runners, reason: str) -> None:
    """Before another replica may act. Without the API server none may, perhaps for long, and go on with a plan that has
    spouts paused: these are resumed, if Nimbus answers at once."""
    log.error("%s: ending at once, so that two never act together", reason)
    try:
        runners.resume_paused(LAST_DEED_SECONDS)
    finally:
        os._exit(LOST_LEADERSHIP)

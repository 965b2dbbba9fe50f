"""The parts that only the leader runs, put together as `storm-operator run` does it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from kube_builders import NIMBUS, plan, rebalance, registry_of, topology_body
from storm_operator.adapters.kube.resources import TOPOLOGIES
from storm_operator.cli import app
from storm_operator.http_listening import ALL_ADDRESSES, HttpServer
from storm_operator.kube import run_command
from storm_operator.kube.canary import TOLERATED_LOOKS
from storm_operator.kube.connecting import RunnerSettings
from storm_operator.kube.leader import Operator
from storm_operator.kube.leadership import LAST_MOMENT_SECONDS
from storm_operator.kube.managed import Registry, key_of, rightful
from storm_operator.kube.page import KubePage
from storm_operator.kube.submission import JobSettings
from storm_operator.operator_metrics import OperatorMetrics, RunMode

RIGHTFUL = topology_body("prod", "z", spec={"adopt": {}, "topologyName": "words"})
LATE = topology_body("copy", "a", spec={"adopt": {}, "topologyName": "words"}, creationTimestamp="2026-02-02T12:00:00Z")


@pytest.mark.parametrize("nimbus", ["storm-nimbus.storm:66270", "storm-nimbus:many", ":6627"])
def test_default_nimbus_that_cannot_be_is_refused_at_once(nimbus: str) -> None:
    done = CliRunner().invoke(app, ["run", "--nimbus", nimbus], terminal_width=200)
    assert done.exit_code == 2
    assert "give host or host:port with a port of 1 to 65535" in re.sub(r"[│\s]+", " ", done.output)


@pytest.mark.parametrize(
    ("option", "value", "right"),
    [
        ("--prometheus", "prometheus.monitoring:9090", "expected a URL such as"),
        ("--agent-port", "0", "Input should be greater than or equal to 1"),
        ("--health-port", "-3", "Input should be greater than or equal to 1"),
        ("--metrics-port", "70000", "Input should be less than or equal to 65535"),
        ("--deletion-patience-seconds", "-1", "Input should be greater than or equal to 0"),
    ],
)
def test_what_no_option_can_be_is_refused_before_a_cluster_is_looked_for(option: str, value: str, right: str) -> None:
    done = CliRunner().invoke(app, ["run", option, value], terminal_width=200)
    said = re.sub(r"[│\s]+", " ", done.output)
    assert (done.exit_code, option in said, right in said) == (2, True, True), said


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            ["--match", 'cluster="blue"'],
            "--match narrows what a Prometheus is asked for: give --prometheus URL as well",
        ),
        (["--page-approval", "--page-port", "0"], "--page-approval is for the page; --page-port 0 says: none"),
    ],
)
def test_what_would_do_nothing_is_refused(options: list[str], why: str) -> None:
    done = CliRunner().invoke(app, ["run", *options], terminal_width=200)
    said = re.sub(r"[│\s]+", " ", done.output)
    assert (done.exit_code, why in said) == (2, True), said


@pytest.mark.parametrize("trouble", [None, RuntimeError("can't start new thread")])
def test_who_may_lead_no_more_resumes_spouts_and_ends_whatever_comes_of_that(
    monkeypatch: pytest.MonkeyPatch, trouble: Exception | None
) -> None:
    ended, runners = Mock(), Mock(resume_paused=Mock(side_effect=trouble))
    monkeypatch.setattr(os, "_exit", ended)
    with contextlib.suppress(RuntimeError):
        run_command.end_at_once(runners, "the lease could not be renewed in time")
    ended.assert_called_once_with(run_command.LOST_LEADERSHIP)
    (within_seconds,) = runners.resume_paused.call_args.args
    assert within_seconds < LAST_MOMENT_SECONDS


def test_a_port_that_is_taken_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_command, "connect", Mock())
    monkeypatch.setattr(signal, "signal", Mock())
    with HttpServer((ALL_ADDRESSES, 0), BaseHTTPRequestHandler) as taken:
        port = taken.server_port
        done = CliRunner().invoke(app, ["run", "--health-port", str(port)], terminal_width=200)
    said = re.sub(r"[│\s]+", " ", done.output)
    assert done.exit_code == 2
    assert re.search(rf"--health-port: cannot listen on \S+:{port}: Address already in use", said), said


@pytest.mark.parametrize("text", [None, "", "a: [", "contexts: []"])
def test_without_a_cluster_one_sentence_says_where_it_was_looked_for(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    file = tmp_path / "kubeconfig"
    if text is not None:
        file.write_text(text)
    done = CliRunner().invoke(app, ["run", "--kubeconfig", str(file)])
    assert done.exit_code == 1
    assert done.stderr.startswith(
        f"storm-operator run: this is no pod, and the kubeconfig {file} leads to no cluster: "
    )
    assert done.stderr.endswith("; name one with --kubeconfig\n")
    assert done.stderr.count("\n") == 1


def test_loops_know_all_that_name_a_topology_before_they_act_for_any_of_them() -> None:
    registry = Registry(NIMBUS)
    kinds = Mock()
    kinds.list.side_effect = lambda plural, *_: (LATE, RIGHTFUL) if plural == TOPOLOGIES else ()
    settings = RunnerSettings(JobSettings("storm"), 9464)
    operator = Operator(Mock(kinds=kinds), registry, settings, (), OperatorMetrics(RunMode.KUBERNETES), 30.0)
    owners_at_start: list[tuple[str, str]] = []

    def make(nimbus: str) -> Any:
        owners, _ = rightful(registry.of_cluster(nimbus))
        owners_at_start.append(owners["words"].key)
        return Mock()

    operator.runners.make = make
    delivered = iter((LATE, RIGHTFUL))

    def wait(_: float) -> bool:
        body = next(delivered, None)
        if body is not None:
            registry.put_topology(body)
        return bool(owners_at_start)

    operator.runners.run(Mock(is_set=lambda: False, wait=wait))
    assert owners_at_start == [("z", "prod")]


def test_resource_whose_deletion_the_watch_missed_is_managed_no_longer() -> None:
    registry = registry_of(RIGHTFUL)
    kinds = Mock()
    kinds.list.return_value = ()
    settings = RunnerSettings(JobSettings("storm"), 9464)
    operator = Operator(Mock(kinds=kinds), registry, settings, (), OperatorMetrics(RunMode.KUBERNETES), 30.0)
    (topologies,) = (canary for canary in operator._canaries if canary.kind == "StormTopologies")
    for _ in range(TOLERATED_LOOKS):
        assert len(registry.topologies()) == 1
        topologies.look()
    assert registry.topologies() == ()


def shown(state: str, plan_id: str, version: str = "7") -> dict[str, Any]:
    body = rebalance(state, of=plan(plan_id))
    return {**body, "metadata": {**body["metadata"], "uid": f"uid-{plan_id}", "resourceVersion": version}}


def test_proposal_whose_deletion_the_watch_missed_waits_for_nobody_any_more() -> None:
    waiting, begun = shown("Proposed", "p-waiting"), shown("Applying", "p-begun", "9")
    others = (shown("Approved", "p-approved"), shown("Verified", "p-done"), shown("Proposed", "p-begun"))
    registry = registry_of(waiting, *others)
    kinds = Mock()
    kinds.list.side_effect = lambda _, __, fields: (begun,) if fields == "metadata.name=p-begun" else ()
    settings = RunnerSettings(JobSettings("storm"), 9464)
    operator = Operator(Mock(kinds=kinds), registry, settings, (), OperatorMetrics(RunMode.KUBERNETES), 30.0)
    (proposals,) = (canary for canary in operator._canaries if canary.kind == "StormRebalances")
    for _ in range(TOLERATED_LOOKS):
        assert len(registry.rebalances()) == 4
        proposals.look()
    assert {name for _, name in map(key_of, registry.rebalances())} == {"p-approved", "p-done", "p-begun"}
    assert registry.rebalance(key_of(begun)) == begun
    assert registry.take_deleted_proposals(NIMBUS) == {key_of(waiting)}


def test_nothing_is_kept_of_a_cluster_whose_loop_has_ended() -> None:
    page, metrics = KubePage(), OperatorMetrics(RunMode.KUBERNETES)
    settings = RunnerSettings(JobSettings("storm"), 9464, page=page)
    operator = Operator(Mock(), Registry(NIMBUS), settings, (), metrics, 30.0)
    for nimbus in (NIMBUS, "other.storm:6627"):
        page.watcher_of(nimbus)
        metrics.cluster(nimbus)
    operator.runners.ended(NIMBUS)
    assert list(page.watchers) == ["other.storm:6627"]
    operator.runners.ended("never.shown:6627")

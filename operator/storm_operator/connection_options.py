"""Where the Storm cluster is, by the options of a command; what cannot be is a usage error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from storm_operator.adapters.metrics.addresses import parse_agents
from storm_operator.assembly import ClusterConnection
from storm_operator.core.server_url import check_address, check_zookeeper, checked_url
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.spec import LocalClusterError

ADDRESSES = {
    "--zookeeper-root": "storm_root",
    "--agent": "agents",
    "--agent-port": "agent_port",
    "--prometheus": "prometheus",
    "--match": "match",
    "--storm-home": "storm_home",
    "--storm-conf-dir": "storm_conf_dir",
}
"""Options that say where parts of a cluster are, beside --nimbus and --zookeeper, by their fields of the connection."""


def connection_from(
    local: str | None, nimbus: Sequence[str] | None, zookeeper: str | None, **others: Any
) -> ClusterConnection:
    """To the local cluster of that name, or to what the other options describe; a usage error where neither is told."""
    if local is not None:
        usual = ClusterConnection((), "")
        unusual = {option: others.get(name) not in (None, getattr(usual, name)) for option, name in ADDRESSES.items()}
        _refuse_beside_local({"--nimbus": nimbus, "--zookeeper": zookeeper, **unusual})
        return _connection_to_local(local)
    if others.get("match") and others.get("prometheus") is None:
        raise typer.BadParameter("--match narrows what a Prometheus is asked for: give --prometheus URL as well")
    if not nimbus or not zookeeper:
        raise typer.BadParameter("give --local NAME, or both --nimbus and --zookeeper")
    try:
        for address in nimbus:
            check_address("--nimbus", address, address, "nimbus.example:6627")
        check_zookeeper("--zookeeper", zookeeper)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return ClusterConnection(
        nimbus=tuple(nimbus),
        zookeeper=zookeeper,
        nimbus_named_by="--nimbus",
        zookeeper_named_by="--zookeeper",
        root_named_by="--zookeeper-root",
        **others,
    )


def _refuse_beside_local(others: Mapping[str, object]) -> None:
    given = " and ".join(option for option, value in others.items() if value)
    if given:
        raise typer.BadParameter(f"--local names a cluster with its addresses: leave out {given}, or --local")


def _connection_to_local(name: str) -> ClusterConnection:
    """How to reach the local cluster called `name`; a usage error when there is none."""
    try:
        cluster = LocalCluster.attach(name)
    except LocalClusterError as error:
        raise typer.BadParameter(f"--local: {error}") from error
    return connection_of(cluster)


def connection_of(cluster: LocalCluster) -> ClusterConnection:
    """How to reach `cluster`."""
    host, port = cluster.nimbus
    return ClusterConnection(
        nimbus=(f"{host}:{port}",),
        zookeeper=cluster.zookeeper,
        agents={machine.host: machine.agent_url for machine in cluster.machines},
        storm_home=cluster.storm_home,
        storm_conf_dir=cluster.conf_dir,
    )


def prometheus_from(url: str | None) -> str | None:
    """The value of --prometheus, checked."""
    try:
        return None if url is None else checked_url("--prometheus", url)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def agents_from(texts: Sequence[str]) -> Mapping[str, str]:
    """URLs by host, of the values of --agent."""
    try:
        return parse_agents(texts)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error

"""`storm-operator agent`: the command that runs beside each supervisor."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from storm_operator.agent.options import (
    DEFAULT_LISTEN,
    DEFAULT_ZOOKEEPER_ROOT,
    AgentOptions,
    OptionError,
    checked_zookeeper,
    choose_metrics_dir,
    parse_address,
    parse_peer,
)
from storm_operator.agent.service import ListenError, run_agent
from storm_operator.log_lines import log_to_stderr
from storm_operator.metric_contract import DEFAULT_PAIR_LIMIT


def agent(
    host: Annotated[str, typer.Option(help="The supervisor's storm.local.hostname.")],
    metrics_dir: Annotated[
        Path | None, typer.Option(help="Where workers write their snapshots (storm_operator.metrics.dir).")
    ] = None,
    storm_local_dir: Annotated[
        Path | None, typer.Option(help="storm.local.dir; its folder storm-operator-metrics is the --metrics-dir.")
    ] = None,
    listen: Annotated[
        str,
        typer.Option(metavar="ADDRESS:PORT", help="Where metrics are served; at [::] over IPv6 and IPv4 alike."),
    ] = DEFAULT_LISTEN,
    zookeeper: Annotated[
        str | None, typer.Option(metavar="HOST:PORT,...", help="Storm's ZooKeeper, where CPU limits come from.")
    ] = None,
    zookeeper_root: Annotated[
        str, typer.Option(help="The operator's node in it: storm.zookeeper.root with /storm-operator after it.")
    ] = DEFAULT_ZOOKEEPER_ROOT,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST=ADDRESS:PORT", help="Another supervisor's agent (repeatable; of many, 32 are probed)."
        ),
    ] = None,
    cgroup: Annotated[
        Path | None, typer.Option(help="The machine's cgroup folder (default: that of the first worker).")
    ] = None,
    shared_cgroup: Annotated[
        bool,
        typer.Option(
            "--shared-cgroup",
            help="Workers of other supervisors are in the same cgroup: "
            "CPU and memory are counted by process, and limits are not enforced.",
        ),
    ] = False,
    cpu_capacity_millicores: Annotated[
        float | None,
        typer.Option(min=1, help="CPU for all workers (default: the cgroup's quota, else all cores)."),
    ] = None,
    enforce: Annotated[bool, typer.Option(help="Hold executors to the CPU limits of the plan.")] = True,
    pair_limit: Annotated[
        int, typer.Option(min=1, help="Pairs of tasks exported one by one; the smallest beyond that are folded.")
    ] = DEFAULT_PAIR_LIMIT,
) -> None:
    """Measure one supervisor's executors, export it for scraping, and hold them to their CPU limits."""
    log_to_stderr()
    # Its client reports every failed attempt to connect; the reader says what matters, once.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    try:
        options = AgentOptions(
            host=host,
            metrics_dir=choose_metrics_dir(metrics_dir, storm_local_dir),
            listen=parse_address("--listen", listen),
            zookeeper=checked_zookeeper(zookeeper),
            zookeeper_root=zookeeper_root,
            peers=dict(parse_peer(text) for text in peer or ()),
            cgroup=cgroup,
            shared_cgroup=shared_cgroup,
            cpu_capacity_millicores=cpu_capacity_millicores,
            enforce=enforce,
            pair_limit=pair_limit,
        )
    except OptionError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        run_agent(options)
    except ListenError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None

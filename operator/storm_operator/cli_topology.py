"""`storm-operator topology`: Storm's topologies by hand, for who has no Storm client. The Storm image has none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer

from storm_operator.adapters.errors import AdapterError, TopologyNotAlive
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.nimbus.supervisors import zookeeper_of
from storm_operator.adapters.plan_store import PlanStore
from storm_operator.adapters.zookeeper import ZooKeeperSession
from storm_operator.cli_output import Form, Output, written_out
from storm_operator.lazy_commands import PLAIN, PlainCommand, PlainGroup

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
PATIENCE_SECONDS = 10.0

app = typer.Typer(
    help="Storm's topologies by hand. What an operator manages it soon has again as its StormTopology says.",
    cls=PlainGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=PLAIN,
)
Nimbus = Annotated[list[str], typer.Option(metavar="HOST:PORT", help="A Nimbus (repeatable).")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The topology's name in Storm.")]


@app.command("list", cls=PlainCommand)
def list_topologies(nimbus: Nimbus, output: Form = Output.TABLE) -> None:
    """Names, states and ids of the topologies that Nimbus has."""
    with asked("list", nimbus) as client:
        found = client.cluster_info().topologies
    rows = sorted((one.name, one.status, one.id) for one in found)
    with written_out("topology list"):
        if output is Output.JSON:
            typer.echo(json.dumps([dict(zip(("name", "state", "id"), row, strict=True)) for row in rows], indent=2))
            return
        rows = [("TOPOLOGY", "STATE", "ID"), *rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@app.command(cls=PlainCommand)
def activate(name: Name, nimbus: Nimbus) -> None:
    """Let its spouts emit again."""
    with asked("activate", nimbus) as client:
        client.activate(name)
    _done("activate", f"the spouts of {name} emit again")


@app.command(cls=PlainCommand)
def deactivate(name: Name, nimbus: Nimbus) -> None:
    """Stop its spouts; bolts go on with what is queued."""
    with asked("deactivate", nimbus) as client:
        client.deactivate(name)
    _done("deactivate", f"the spouts of {name} have stopped")


@app.command(cls=PlainCommand)
def kill(
    name: Name,
    nimbus: Nimbus,
    wait_seconds: Annotated[
        int, typer.Option(min=0, max=3600, help="Between the stop of its spouts and the end of its workers.")
    ] = 5,
) -> None:
    """End it."""
    with asked("kill", nimbus) as client:
        client.kill(name, wait_seconds=wait_seconds)
    _done("kill", f"{name} ends in {wait_seconds} s")


@app.command(cls=PlainCommand)
def hand_back(name: Name, nimbus: Nimbus) -> None:
    """Forget its last plan and CPU limits.

    Once nobody manages it: Storm's own scheduler has it again. An operator that manages it makes another plan.
    """
    with asked("hand-back", nimbus) as client:
        running = client.cluster_info()
        topology = running.topology_named(name)
        if topology is None:
            others = ", ".join(sorted(one.name for one in running.topologies)) or "none"
            raise TopologyNotAlive(f"no topology {name!r} runs on Nimbus {', '.join(nimbus)}; those that run: {others}")
        servers, root = zookeeper_of(client.nimbus_conf())
        session = ZooKeeperSession(servers)
        try:
            PlanStore(session, root).delete_plan(topology.id)
        finally:
            session.close()
    _done("hand-back", f"{topology.id} has no plan and no CPU limits: Storm's own scheduler places it")


@contextmanager
def asked(command: str, nimbus: list[str]) -> Iterator[NimbusClient]:
    """Around what is asked of Nimbus and ZooKeeper; what goes wrong is said in a sentence, and ends `command`."""
    try:
        client = NimbusClient(nimbus, patience_seconds=PATIENCE_SECONDS, named_by="--nimbus")
    except ValueError as error:
        _fail(command, str(error), EXIT_BAD_INPUT)
    try:
        yield client
    except AdapterError as error:
        _fail(command, str(error), EXIT_FAILED)
    finally:
        client.close()


def _done(command: str, sentence: str) -> None:
    with written_out(f"topology {command}"):
        typer.echo(sentence)


def _fail(command: str, message: str, code: int) -> NoReturn:
    typer.echo(f"storm-operator topology {command}: {message}", err=True)
    raise typer.Exit(code)

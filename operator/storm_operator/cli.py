"""`storm-operator`: one program, a command for each part. A command's module is imported only when it is called.

The agent runs beside every supervisor and must stay small: it must not pay for numpy because `plan` needs it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

PROGRAM = "storm-operator"


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is: `module:attribute`, the attribute being a function or a Typer app; and its line of help."""

    target: str
    summary: str


COMMANDS: Mapping[str, LazyCommand] = {
    "run": LazyCommand("storm_operator.kube.run_command:run", "The operator in Kubernetes: manage StormTopologies."),
    "standalone": LazyCommand(
        "storm_operator.standalone_command:standalone", "Manage the topologies described in a folder."
    ),
    "plan": LazyCommand("storm_operator.cli_plan:plan", "Make a plan from a snapshot file: no cluster needed."),
    "simulate": LazyCommand(
        "storm_operator.simulate_command:simulate", "Play a scenario on a simulated cluster: no Storm, no Java."
    ),
    "snapshot": LazyCommand("storm_operator.cli_snapshot:snapshot", "Write a snapshot of a live cluster."),
    "submit": LazyCommand(
        "storm_operator.kube.submit_command:submit", "Submit one topology and end: what the operator's Jobs run."
    ),
    "agent": LazyCommand("storm_operator.agent.commands:agent", "Measure one supervisor and enforce CPU limits there."),
    "local": LazyCommand("storm_operator.local.commands:app", "A real Storm cluster on this machine."),
    "demo": LazyCommand("storm_operator.demo.commands:demo", "Storm's own scheduler against storm-operator, live."),
}


class LazyGroup(TyperGroup):
    """A group whose commands are imported when they are called; `--help` imports none of them."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        known = COMMANDS.get(cmd_name)
        if known is None:
            return None
        if self._listing:
            return TyperCommand(cmd_name, help=known.summary)
        return load_command(cmd_name, known)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


def load_command(name: str, command: LazyCommand) -> Any:
    """The command itself; when its module cannot be imported, one that says why, so that others still work."""
    module_name, _, attribute = command.target.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        found = _unavailable(name, str(error))
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    single = typer.Typer(add_completion=False)
    single.command(name, context_settings=getattr(found, "context_settings", None))(found)
    return typer.main.get_command(single)


def _unavailable(name: str, reason: str) -> Callable[..., None]:
    def unavailable() -> None:
        """Not available in this installation."""
        typer.echo(f"{PROGRAM}: {name} is not available in this installation: {reason}", err=True)
        raise typer.Exit(1)

    unavailable.context_settings = {"allow_extra_args": True, "ignore_unknown_options": True}  # type: ignore[attr-defined]
    return unavailable


app = typer.Typer(
    name=PROGRAM,
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    help="Places Apache Storm executors by live traffic and CPU, moves as few as possible, and can say why.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {version(PROGRAM)}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and end.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the program itself."""


def main() -> None:
    """The console script."""
    app()

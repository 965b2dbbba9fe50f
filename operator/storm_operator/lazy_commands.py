"""A program of many commands whose modules are imported only when they are called."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

DISTRIBUTION = "storm-operator"
PLAIN = None
"""`rich_markup_mode` of a Typer app. In rich's boxes 80 columns have no room for long names, which are cut off, and
what is below a command's first paragraph is broken where its source is."""
PYDANTICS = "Value error, "
"""What a message begins with that the library has from another one."""


class PlainCommand(TyperCommand):
    """A command that says in a sentence of its own what is wrong with its arguments, or its help cannot be written."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        with _plainly_read(info_name, parent):
            return super().make_context(info_name, args, parent, **extra)


class PlainGroup(TyperGroup):
    """A group of commands that does the same for its own arguments."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        with _plainly_read(info_name, parent):
            return super().make_context(info_name, args, parent, **extra)


@contextmanager
def _plainly_read(name: str | None, parent: Any) -> Iterator[None]:
    """Around the reading of arguments, where nothing is written but help and a version."""
    try:
        yield
    except typer.BadParameter as error:
        error.message = error.message.removeprefix(PYDANTICS)
        raise
    except OSError as error:
        from storm_operator.cli_output import not_written  # with all that tables need, which an agent does without

        raise not_written(f"{parent.command_path} {name}" if parent else f"{name}", error) from None


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is: `module:attribute`, the attribute being a function or a Typer app; and its line of help."""

    target: str
    summary: str


def lazy_program(program: str, commands: Mapping[str, LazyCommand], summary: str) -> typer.Typer:
    """A command line of `commands`, with `--version`."""
    app = typer.Typer(
        name=program,
        cls=lazy_group(program, commands),
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=PLAIN,
        pretty_exceptions_show_locals=False,
        help=summary,
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"{program} {version(DISTRIBUTION)}")
            raise typer.Exit

    # As a default and not in the annotation: those are looked up among a module's names, and this is a local one.
    shown = typer.Option(False, "--version", help="Show the version and end.", callback=show_version, is_eager=True)

    @app.callback()
    def root(_version: bool = shown) -> None:
        """Options of the program itself."""

    return app


def lazy_group(program: str, commands: Mapping[str, LazyCommand]) -> type[TyperGroup]:
    """A group of `commands` for a Typer app; `--help` imports none of them."""

    class LazyGroup(PlainGroup):
        _listing = False

        def list_commands(self, ctx: Any) -> list[str]:
            return list(commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            known = commands.get(cmd_name)
            if known is None:
                return None
            if self._listing:
                return TyperCommand(cmd_name, help=known.summary)
            return load_command(program, cmd_name, known)

        def format_help(self, ctx: Any, formatter: Any) -> None:
            self._listing = True
            try:
                super().format_help(ctx, formatter)
            finally:
                self._listing = False

    return LazyGroup


class CommandUnavailable(Exception):
    """A command whose module cannot be imported here: the program was installed without what it needs."""


def load_command(program: str, name: str, command: LazyCommand) -> Any:
    """The command itself; when its module cannot be imported, one that says why, so that others still work."""
    try:
        return load_available(program, name, command)
    except CommandUnavailable as error:
        return _as_command(name, _unavailable(str(error)))


def load_available(program: str, name: str, command: LazyCommand) -> Any:
    """The command itself. Raises CommandUnavailable, which says why."""
    module_name, _, attribute = command.target.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise CommandUnavailable(f"{program}: {name} is not available in this installation: {error}") from error
    return typer.main.get_command(found) if isinstance(found, typer.Typer) else _as_command(name, found)


def run_alone(function: Callable[..., Any]) -> None:
    """The program of a package that is a command of its own (`python -m`), with help that is as that of all."""
    _as_command(function.__name__, function)()


def _as_command(name: str, function: Callable[..., Any]) -> Any:
    single = typer.Typer(add_completion=False, rich_markup_mode=PLAIN)
    single.command(name, cls=PlainCommand, context_settings=getattr(function, "context_settings", None))(function)
    return typer.main.get_command(single)


def _unavailable(why: str) -> Callable[..., None]:
    def unavailable() -> None:
        """Not available in this installation."""
        typer.echo(why, err=True)
        raise typer.Exit(1)

    unavailable.context_settings = {"allow_extra_args": True, "ignore_unknown_options": True}  # type: ignore[attr-defined]
    return unavailable

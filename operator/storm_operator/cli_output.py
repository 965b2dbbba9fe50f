"""What a command writes to the terminal, a pipe or a full disk."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from io import TextIOWrapper
from typing import Annotated

import typer
from rich.console import Console

EXIT_NOT_WRITTEN = 1
LEAST_COLUMNS = 72
"""In fewer, cells of tables would be cut off; a narrower terminal breaks lines that are whole."""


class Output(StrEnum):
    """Tables for people, JSON for programs."""

    TABLE = "table"
    JSON = "json"


Form = Annotated[Output, typer.Option("--output", "-o", help="Tables for people, JSON for programs.")]


def plain_console() -> Console:
    """For sentences. Not `markup`: names are the users' own, and may have brackets in them."""
    return Console(highlight=False, markup=False, emoji=False)


def table_console() -> Console:
    """The same for tables."""
    console = plain_console()
    console.width = max(console.width, LEAST_COLUMNS)
    return console


@contextmanager
def written_out(command: str) -> Iterator[None]:
    """The block writes to stdout; where that cannot be, one sentence says so and ends `command`.

    A character that stdout's encoding lacks is written as its number.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        raise not_written(f"storm-operator {command}", error) from None


def not_written(program: str, error: OSError) -> typer.Exit:
    """The end of `program`, whose output `error` has stopped, once that is said."""
    give_up_stdout()
    if error.errno != errno.EPIPE:  # who reads a pipe may end before us
        typer.echo(f"{program}: the output cannot be written: {error.strerror}", err=True)
    return typer.Exit(EXIT_NOT_WRITTEN)


def give_up_stdout() -> None:
    """What waits to be written would be tried again at the end of the program, and fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)

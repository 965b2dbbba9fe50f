"""What a command writes to the terminal, a pipe or a full disk."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

EXIT_NOT_WRITTEN = 1


@contextmanager
def written_out(command: str) -> Iterator[None]:
    """The block writes to stdout; where that cannot be, one sentence says so and ends `command`."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        give_up_stdout()
        if error.errno != errno.EPIPE:  # who reads a pipe may end before us
            typer.echo(f"storm-operator {command}: the output cannot be written: {error.strerror}", err=True)
        raise typer.Exit(EXIT_NOT_WRITTEN) from None


def give_up_stdout() -> None:
    """What waits to be written would be tried again at the end of the program, and fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)

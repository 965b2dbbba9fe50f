"""Where the jobs say what they do and have found, for people: beside the tables, which are what they make."""

from __future__ import annotations

from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.status import Status

from storm_operator.cli_output import give_up_stdout


class JobConsole(Console):
    """Stdout; where nobody reads it any more, as behind `| head`, the job goes on without it."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        give_up_stdout()

    def status(self, status: RenderableType, **more: Any) -> Status:
        return super().status(escape(status) if isinstance(status, str) else status, **more)


def job_console() -> Console:
    """Stdout as it is now. Names of components and clusters are anybody's: brackets in them are no markup."""
    return JobConsole(highlight=False, markup=False)

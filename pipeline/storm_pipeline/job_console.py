"""Where the jobs say what they do and have found, for people: beside the tables, which are what they make."""

from __future__ import annotations

from rich.console import Console

from storm_operator.cli_output import give_up_stdout


class JobConsole(Console):
    """Stdout; where nobody reads it any more, as behind `| head`, the job goes on without it."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        give_up_stdout()


def job_console() -> Console:
    """Stdout as it is now."""
    return JobConsole(highlight=False)
